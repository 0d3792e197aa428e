"""The line of progress on a terminal, after a second: what is being done and how long it will take."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO, TypeVar, cast

from dovetail_protocol.terminal_text import printable

if TYPE_CHECKING:
    from dovetail.core.progress import Progress

Thing = TypeVar("Thing")

SILENT = 1.0  # seconds before anything is shown
_LONG = 20.0  # seconds after which a faster way is worth a line
_REFRESH = 0.2  # seconds
_ERASE = "\r\x1b[2K"
_BAR = 16  # letters
_RUN_ON = ("collect",)  # its servers work until they are stopped


@dataclass
class Watch:
    """The line about the work at hand; it is erased for good when something else is printed.

    Parameters
    ----------
    title : str
        The verb.
    stream : text stream
        A terminal.
    clock : function
        Seconds.
    width : function
        Letters in a line of the terminal.
    """

    title: str
    stream: TextIO
    clock: Callable[[], float] = time.monotonic
    width: Callable[[], int] = lambda: 80
    step: str = "working"
    done: int = 0
    total: int = 1
    began: float = field(init=False)
    step_began: float = field(init=False)
    over: bool = False

    def __post_init__(self) -> None:
        self.began = self.step_began = self.clock()
        self._drawing = threading.RLock()
        self._shown = ""

    def progress(self, step: str, done: int, total: int) -> None:
        """Note the step of the job and how much of it is done."""
        if step != self.step:
            self.step, self.step_began = step, self.clock()
        self.done, self.total = done, total

    def draw(self) -> None:
        """Show the line, unless the work has only just begun."""
        with self._drawing:
            if not self.over and self.clock() - self.began >= SILENT:
                line = self.line()[: max(1, self.width() - 1)]
                if line != self._shown:
                    self.stream.write(_ERASE + line)
                    self.stream.flush()
                    self._shown = line

    def stop(self) -> None:
        """Erase the line for good."""
        with self._drawing:
            self.over = True
            if self._shown:
                self.stream.write(_ERASE)
                self.stream.flush()
                self._shown = ""

    def line(self) -> str:
        """Line of the progress: step, share done, seconds so far, and seconds left where they are known."""
        now, part = self.clock(), min(1.0, self.done / max(1, self.total))
        parts = [f"{self.title}: {printable(self.step)}"]
        if self.total > 1:
            filled = int(_BAR * part)
            parts.append("━" * filled + "─" * (_BAR - filled))
            parts.append(f"{self.done:,} of {self.total:,}")
        parts.append(duration(now - self.began))
        if self.total > 1 and 0.0 < part < 1.0:
            left = (now - self.step_began) * (1.0 - part) / part
            parts.append(f"about {duration(max(1.0, left))} left")
        return "  ".join(parts)


_WATCHED: ContextVar[Watch | None] = ContextVar("_WATCHED", default=None)


@contextmanager
def watching(arguments: list[str]) -> Iterator[None]:
    """Show the line while one command line runs; nothing for machines and where nobody watches."""
    verb = next((word for word in arguments if not word.startswith("-")), "")
    if not verb or "--json" in arguments or not is_terminal(sys.stderr):
        yield
        return
    terminal = sys.stderr
    watch = Watch(verb, terminal, width=lambda: os.get_terminal_size(terminal.fileno()).columns or 80)
    finished = threading.Event()
    ticker = threading.Thread(target=_tick, args=(watch, finished), daemon=True)
    token = _WATCHED.set(watch)
    with ExitStack() as stack:
        for redirect, stream in ((redirect_stdout, sys.stdout), (redirect_stderr, sys.stderr)):
            stack.enter_context(redirect(cast(TextIO, _Announced(stream, watch.stop))))
        if verb not in _RUN_ON:
            ticker.start()
        try:
            yield
        finally:
            finished.set()
            watch.stop()
            _WATCHED.reset(token)
            if verb not in _RUN_ON and watch.clock() - watch.began > _LONG and (hint := faster()):
                terminal.write(f"{hint}\n")


@contextmanager
def progress_bar(*, hidden: bool) -> Iterator[Progress]:
    """How a verb tells how far it is; hidden for machines and where nobody watches."""
    watch = _WATCHED.get()
    if hidden or watch is None:
        yield lambda step, done, total: None
        return
    finished = threading.Event()
    if watch.title in _RUN_ON:
        threading.Thread(target=_tick, args=(watch, finished), daemon=True).start()
    try:
        yield watch.progress
    finally:
        finished.set()
        watch.progress("working", 0, 1)


def tell(step: str) -> None:
    """Say what is done next, where somebody watches."""
    if (watch := _WATCHED.get()) is not None:
        watch.progress(step, 0, 1)


def each(things: Iterable[Thing], step: str) -> Iterator[Thing]:
    """Each of them, and where somebody watches how many are done and how long the others take.

    >>> list(each("ab", "letters"))
    ['a', 'b']
    """
    every, watch = list(things), _WATCHED.get()
    for done, one in enumerate(every):
        if watch is not None:
            watch.progress(step, done, len(every))
        yield one
    if watch is not None:
        watch.progress("draw and write", 0, 1)


def faster() -> str:
    """Say what would have made the loops of this process faster; empty where nothing would."""
    loops = sys.modules.get("dovetail.core.compiled")
    return "" if loops is None or loops.COMPILED else loops.hint()


def is_terminal(stream: TextIO) -> bool:
    """True if somebody watches, on a terminal that can erase a line."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def duration(seconds: float) -> str:
    """Seconds as people say them.

    >>> duration(4.2), duration(65), duration(7300)
    ('4 s', '1 min 5 s', '2 h 1 min')
    """
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _tick(watch: Watch, finished: threading.Event) -> None:
    while not finished.wait(_REFRESH) and not watch.over:
        watch.draw()


@dataclass
class _Announced:
    """A stream that calls `before` before each text that goes to it."""

    stream: TextIO
    before: Callable[[], None]

    def write(self, text: str) -> int:
        self.before()
        return self.stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

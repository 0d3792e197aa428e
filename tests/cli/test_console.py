"""Who waits is told so on a terminal alone, who has seen enough may go, and shells complete what is typed."""

import ast
import inspect
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from tests.tiers import one_in
from tests.trees import tree_of
from tests.waiting import PATIENCE

from dovetail.cli.main import app
from dovetail.cli.output import Facts, Grid, show
from dovetail.cli.progress import _WATCHED, SILENT, Watch, duration, each
from dovetail.cli.verbs import VERBS
from dovetail.core.stages import RANDOMIZERS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="terminals, pipes and signals are POSIX")


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def watch(width: int = 80) -> tuple[Watch, Clock, io.StringIO]:
    clock, terminal = Clock(), io.StringIO()
    return Watch("run", terminal, clock=clock, width=lambda: width), clock, terminal


def last(terminal: io.StringIO) -> str:
    """What is to be seen on the line."""
    return terminal.getvalue().rpartition("\x1b[2K")[2]


# --- the line ------------------------------------------------------------------------------------------------------


def test_nothing_is_shown_of_short_work() -> None:
    line, clock, terminal = watch()
    line.draw()
    clock.now = 0.9 * SILENT
    line.draw()
    line.stop()
    assert terminal.getvalue() == ""


def test_the_line_says_what_is_done_how_far_it_is_and_how_long_it_takes() -> None:
    line, clock, terminal = watch()
    line.progress("read the table", 0, 1)
    clock.now = 10.0
    line.progress("attack", 0, 40)
    clock.now = 13.0
    line.progress("attack", 10, 40)
    line.draw()
    assert last(terminal) == "run: attack  ━━━━────────────  10 of 40  13 s  about 9 s left"


def test_no_time_is_promised_where_none_is_known() -> None:
    line, clock, terminal = watch()
    line.progress("read the table", 0, 1)
    clock.now = 75.0
    line.draw()
    assert last(terminal) == "run: read the table  1 min 15 s"


def test_the_line_never_wraps_and_is_erased_for_good() -> None:
    line, clock, terminal = watch(width=20)
    clock.now = 5.0
    line.progress("something with a very long name", 3, 7)
    line.draw()
    assert len(last(terminal)) == 19
    line.stop()
    assert terminal.getvalue().endswith("\r\x1b[2K")
    line.draw()
    assert last(terminal) == ""


def test_a_foreign_name_moves_no_cursor() -> None:
    line, clock, terminal = watch()
    line.progress("evil\x1b[2J\n", 0, 1)
    clock.now = 5.0
    line.draw()
    assert "\x1b" not in last(terminal) and "\n" not in last(terminal)


@pytest.mark.parametrize(("seconds", "words"), [(0.2, "0 s"), (59.6, "1 min 0 s"), (3600, "1 h 0 min")])
def test_durations_are_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_titles_of_tables_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    wide = "of many letters"  # a title is as wide as its table
    show({}, Grid("d[bold]/o.key", ("a",), [(wide,)]), Facts("[red]x\x1b[2J", {"b": wide}), as_json=False)
    said = capsys.readouterr().out
    assert "d[bold]/o.key" in said and "[red]x" in said and "\x1b" not in said


# --- on a terminal -------------------------------------------------------------------------------------------------


SLOW = """
import signal, sys, time
import dovetail.cli.progress as progress
from dovetail.cli.main import invoke
import dovetail.leak.vulnerability as leak

progress.SILENT = progress._REFRESH = 0.0
drawn = progress.Watch.draw
work = leak.vulnerability

def draw(watch):
    drawn(watch)
    watch.seen = "exact sums" in str(watch._shown)  # not only that something is done

def slowly(*given, **more):
    watch = progress._WATCHED.get()
    while watch is not None and not getattr(watch, "seen", False):
        time.sleep(0.01)  # until the line is there
    print("working", file=sys.__stdout__, flush=True) if "forever" in sys.argv else None
    while "forever" in sys.argv:
        time.sleep(0.01)
    return work(*given, **more)

progress.Watch.draw, leak.vulnerability = draw, slowly
sys.exit(invoke(["leak", "--n", "10", "--k", "3", "--p", "0.9", *sys.argv[2:]]))
"""


def on_terminal(*options: str, interrupt: bool = False) -> tuple[int, str, str]:
    """Exit status, standard output, and what came to the terminal on standard error."""
    ours, theirs = pty.openpty()
    mode = "forever" if interrupt else "once"
    command = [sys.executable, "-c", SLOW, mode, *options]
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, text=True, env=environment) as process:
        os.close(theirs)
        if interrupt:
            assert process.stdout is not None and process.stdout.readline() == "working\n"
            process.send_signal(signal.SIGINT)
        seen = b""
        while True:
            try:
                seen += (part := os.read(ours, 4096))
            except OSError:  # a terminal that nobody writes to any more
                break
            if not part:
                break
        output, _ = process.communicate(timeout=PATIENCE)
    os.close(ours)
    return process.returncode, output, seen.decode()


def remains(terminal: str) -> list[str]:
    """The lines that stay on the terminal once everything was erased that is."""
    return [text for line in terminal.split("\n") if (text := re.split(r"\x1b\[2K", line)[-1].strip("\r"))]


@pytest.mark.exhaust
def test_a_verb_that_takes_long_says_what_it_does_and_leaves_nothing() -> None:
    status, output, terminal = on_terminal()
    assert status == 0 and "Chance of guessing" in output and "\x1b[2K" not in output
    assert "leak: exact sums for 10 people" in terminal and remains(terminal) == []


@pytest.mark.exhaust
def test_machines_are_shown_nothing() -> None:
    status, output, terminal = on_terminal("--json")
    assert status == 0 and json.loads(output)["n"] == 10 and terminal == ""


@pytest.mark.exhaust
def test_nothing_is_shown_where_nobody_watches() -> None:
    done = subprocess.run([sys.executable, "-c", SLOW, "once"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == ""


@pytest.mark.exhaust
def test_ctrl_c_leaves_one_line() -> None:
    status, _, terminal = on_terminal(interrupt=True)
    assert status == 1 and remains(terminal) == ["error: interrupted; nothing was written."]


# --- pipes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    one_in(4, [["--help"], ["--version"], ["leak", "--n", "9", "--k", "3", "--p", "0.9"], ["study", "--json"]]),
    ids=" ".join,
)  # fmt: skip
def test_a_reader_who_has_seen_enough_may_go(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)  # as `head` does
    command = [sys.executable, "-m", "dovetail", *arguments]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


# --- completion ----------------------------------------------------------------------------------------------------


def complete(line: str) -> list[str]:
    """What bash is told for a line whose last word is being typed."""
    asked = {"_DOVETAIL_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    program = (
        "import sys\nsys.argv = ['dovetail']\nfrom dovetail.cli.main import main\n"
        "try:\n    main()\nfinally:\n    print('numpy' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **asked}, capture_output=True, text=True, check=True
    )
    return [*done.stdout.split(), done.stderr.strip()]


@pytest.mark.exhaust
@pytest.mark.parametrize(
    ("line", "known"),
    one_in(
        4,
        [
            ("dovetail ", lambda: [*VERBS, "False"]),  # False: nothing of numpy was loaded
            ("dovetail pl", lambda: [*(verb for verb in VERBS if verb.startswith("pl")), "False"]),
            ("dovetail --sh", lambda: ["--show-completion", "False"]),
            ("dovetail randomize --randomizer ", lambda: [*RANDOMIZERS.names(), "True"]),
        ],
    ),
)
def test_shells_complete_verbs_options_and_randomizers(line: str, known: Callable[[], list[str]]) -> None:
    assert complete(line) == known()


@pytest.mark.exhaust
def test_the_script_for_a_shell_is_printed() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dovetail", "--show-completion", "bash"],
        env={**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "_DOVETAIL_COMPLETE=complete_bash" in done.stdout


def test_each_of_several_things_tells_how_many_are_done() -> None:
    line, _, _ = watch()
    token = _WATCHED.set(line)
    told = []
    try:
        for thing in each("abc", "letters"):
            told.append((thing, line.step, line.done, line.total))
    finally:
        _WATCHED.reset(token)
    assert told == [("a", "letters", 0, 3), ("b", "letters", 1, 3), ("c", "letters", 2, 3)]
    assert line.total == 1


# do no more than read or write a small file, ask a server once, or run until they are stopped and say so in lines
QUICK = {
    "web", "plan-strings", "refine", "survey new", "survey build", "survey run",
    *(f"collect {verb}" for verb in (
        "new", "keys", "sign", "hand-over", "audit", "shuffler", "relay", "analyzer", "query", "status", "close",
        "drop", "clock", "submit", "demo", "rotate keys", "rotate campaign", "rotate add", "rotate finish",
        "roster add", "roster revoke", "roster list", "roster index", "token add", "token withdraw", "token list",
        "issued", "issuer", "invite",
    )),
}  # fmt: skip


def verbs(command: Any, path: str = "") -> Iterator[tuple[str, Callable[..., Any]]]:
    inner = getattr(command, "commands", {})
    if not inner:
        yield path, command.callback
    for name, one in inner.items():
        yield from verbs(one, f"{path} {name}".strip())


def says_a_step(functions: dict[str, ast.FunctionDef], name: str, seen: set[str]) -> bool:
    """Whether a function, or one of its module that it names, tells a step."""
    if name in seen or name not in functions:
        return False
    seen.add(name)
    named = {node.id for node in ast.walk(functions[name]) if isinstance(node, ast.Name)}
    called = {getattr(node.func, "id", "") for node in ast.walk(functions[name]) if isinstance(node, ast.Call)}
    return bool(called & {"tell", "each", "progress_bar"}) or any(says_a_step(functions, one, seen) for one in named)


def test_every_verb_that_may_take_long_says_what_it_does() -> None:
    silent = set()
    for path, callback in verbs(typer.main.get_command(app)):
        function = inspect.unwrap(callback)
        tree = tree_of(Path(str(sys.modules[function.__module__].__file__)))
        functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        if not says_a_step(functions, function.__name__, set()):
            silent.add(path)
    assert silent == QUICK

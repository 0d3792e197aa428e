"""What the blocks of a page run in: one folder and one set of names. Needs no Sphinx, so tests run pages too."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COLUMNS = "88"


def _scratch(name: str) -> str:
    """A folder that goes when this process ends."""
    made = tempfile.mkdtemp(prefix=f"dovetail-{name}-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


@dataclass
class Session:
    """The names and the folder that the blocks of a page share."""

    folder: Path = field(default_factory=lambda: Path(_scratch("page")))
    names: dict[str, Any] = field(default_factory=dict)
    # people of one page are not those of another, though their numbers are the same
    ledger: str = field(default_factory=lambda: _scratch("ledger"))

    def python(self, code: str) -> str:
        """What the code prints."""
        with self._inside() as output:
            exec(compile(code, "<page>", "exec"), self.names)
        return output.getvalue()

    def command(self, line: str, status: int = 0) -> str:
        """What a command line `dovetail ..` prints; RuntimeError if it ends otherwise than said."""
        from dovetail.cli.main import invoke

        program, *arguments = shlex.split(line, comments=True)
        if program == "cat":
            return "".join((self.folder / name).read_text() for name in arguments)
        if program != "dovetail":
            raise RuntimeError(f"only dovetail and cat can be run here, got {line!r}")
        *arguments, into = [*arguments, ""] if ">" not in arguments else [*arguments[:-2], arguments[-1]]
        with self._inside() as output:
            ended = invoke(arguments)
        if ended != status:
            raise RuntimeError(f"{line}: exit status {ended}\n{output.getvalue()}")
        if into:
            (self.folder / into).write_text(output.getvalue())
        return "" if into else output.getvalue()

    @contextlib.contextmanager
    def _inside(self) -> Iterator[io.StringIO]:
        own = {"COLUMNS": COLUMNS, "DOVETAIL_LEDGER": self.ledger}
        output, home, before = io.StringIO(), Path.cwd(), {name: os.environ.get(name) for name in own}
        os.chdir(self.folder)
        os.environ |= own
        try:
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                yield output
        finally:
            os.chdir(home)
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


def joined(text: str) -> list[str]:
    """Command lines, those that end in a backslash joined with the next."""
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]


_BLOCK = re.compile(r"^```\{(command|run|code-cell)\}[^\n]*\n((?::[^\n]*\n)*)(.*?)^```$", re.M | re.S)


def blocks(text: str) -> list[tuple[str, int, str]]:
    """Every block of a page that is run: its kind, the exit status that it ends with, what it says."""
    found = []
    for kind, options, body in _BLOCK.findall(text):
        status = re.search(r"^:status: (\d+)$", options, re.M)
        code = re.sub(r"\A---\n.*?^---\n", "", body, flags=re.S | re.M)  # what a cell says of its picture
        found.append((kind, int(status[1]) if status else 0, code))
    return found


def _parts(body: str) -> list[tuple[bool, str]]:
    """What a cell of a notebook says, cut where lines of a shell and lines of Python meet."""
    cut: list[tuple[bool, str]] = []
    for line in body.splitlines():
        shell = line.startswith("!")
        if cut and not shell and not cut[-1][0]:
            cut[-1] = (False, f"{cut[-1][1]}\n{line}")
        else:
            cut.append((shell, line.removeprefix("!")))
    return cut


def run_page(text: str) -> str:
    """Run the blocks of a page in order; returns all that they print."""
    session, printed = Session(), []
    for kind, status, body in blocks(text):
        if kind == "command":
            printed += [session.command(line, status) for line in joined(body)]
        else:
            printed += [session.command(part) if shell else session.python(part) for shell, part in _parts(body)]
    return "".join(printed)

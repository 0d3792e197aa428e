"""The list of mutants: single changes to the sources, each of which a named test must notice.

One file of tables for each stage, `tests/mutants/STAGE.toml`:

    [[mutant]]
    loss = "What a user loses when the line is wrong, as one sentence."
    file = "src/dovetail/core/guarantee.py"
    line = "text that occurs in the file exactly once"
    replacement = "what stands there instead"
    tests = ["tests/core/test_guarantee.py::test_a_name"]

`line` may hold several lines, where one alone occurs twice.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType

LIST = Path(__file__).parent
REPOSITORY = LIST.parent.parent
KEYS = {"loss", "file", "line", "replacement", "tests"}


@dataclass(frozen=True)
class Mutant:
    """One change to one file, and the tests of which at least one must fail because of it."""

    stage: str
    loss: str
    file: str
    line: str
    replacement: str
    tests: tuple[str, ...]
    change: str = ""  # in short, where line and replacement are long

    @property
    def name(self) -> str:
        """How the runner speaks of it."""
        change = self.change or f"{' '.join(self.line.split())} -> {' '.join(self.replacement.split())}"
        return f"{self.stage}: {self.file}: {change}"

    def applied(self, text: str) -> str:
        """The file with the change."""
        return text.replace(self.line, self.replacement)


def load_mutants(folder: Path = LIST) -> list[Mutant]:
    """Every mutant of every stage, in the order of the files."""
    return [_mutant(path, table) for path in sorted(folder.glob("*.toml")) for table in _tables(path)]


def _tables(path: Path) -> list[dict[str, object]]:
    tables = tomllib.loads(path.read_text())
    if set(tables) != {"mutant"}:
        raise ValueError(f"{path} must hold [[mutant]] tables only, got {sorted(tables)}.")
    return list(tables["mutant"])


def _mutant(path: Path, table: dict[str, object]) -> Mutant:
    if set(table) != KEYS:
        raise ValueError(f"A mutant in {path} must have the keys {sorted(KEYS)}, got {table}.")
    fields = {key: str(table[key]) for key in KEYS - {"tests"}}
    tests = table["tests"]
    if not isinstance(tests, list):
        raise ValueError(f"`tests` must be a list, got {tests!r} in {path}.")
    return Mutant(stage=path.stem, tests=tuple(tests), **fields)


def faults(mutants: Iterable[Mutant], root: Path = REPOSITORY) -> list[str]:
    """What is wrong with the list itself; nothing, or one sentence for each entry that no longer fits the sources."""
    listed = list(mutants)
    twice = Counter(
        (mutant.file, mutant.applied(_text(root / mutant.file)))
        for mutant in listed
        if _text(root / mutant.file).count(mutant.line) == 1
    )
    return [f"{mutant.name}: {fault}" for mutant in listed for fault in _faults_of(mutant, root)] + [
        f"{file} has the same mutant {count} times" for (file, _), count in twice.items() if count > 1
    ]


def misplaced(mutant: Mutant, root: Path = REPOSITORY) -> list[str]:
    """What is wrong with the places that an entry names: its line, its tests."""
    text = _text(root / mutant.file)
    found = text.count(mutant.line) if mutant.line else 0
    if found != 1:
        return [f"`line` must occur exactly once in the file, occurs {found} times"]
    wrong = [f"no test is called {test}" for test in mutant.tests if not _exists(root, test)]
    return wrong if mutant.tests else [*wrong, "names no test"]


def _faults_of(mutant: Mutant, root: Path) -> list[str]:
    text, wrong = _text(root / mutant.file), misplaced(mutant, root)
    if text.count(mutant.line) != 1 or not mutant.line:
        return wrong
    try:
        if mutant.file.endswith(".py"):
            same = _meaning(text) == _meaning.__wrapped__(mutant.applied(text))
        else:  # configuration as it is shipped
            same = text.split() == mutant.applied(text).split()
    except SyntaxError:
        return [*wrong, "the replacement is not Python"]
    return [*wrong, "the replacement changes nothing"] if same else wrong


@cache
def _meaning(text: str) -> CodeType:
    """The program that a file is, whatever its layout and its remarks."""
    return _bare(compile(text, "", "exec", dont_inherit=True))


def _bare(code: CodeType) -> CodeType:
    """A program without the places of its lines."""
    inner = tuple(_bare(one) if isinstance(one, CodeType) else one for one in code.co_consts)
    return code.replace(co_consts=inner, co_firstlineno=1, co_linetable=b"")


def _exists(root: Path, test: str) -> bool:
    path, _, name = test.partition("::")
    return name.split("[")[0] in _names(root / path)


@cache
def _names(path: Path) -> frozenset[str]:
    """The tests of a file; those of a class (a state machine's) by the name of the class alone."""
    if not path.is_file():
        return frozenset()
    return frozenset(re.findall(r"^(?:def|class) (test\w*)", path.read_text(), re.MULTILINE | re.IGNORECASE))


@cache
def _text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""

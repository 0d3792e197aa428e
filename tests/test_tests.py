"""What holds for every file of tests: it reads no clock, and a statistical one shows what it catches."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CLOCKS = {"sleep", "monotonic", "perf_counter", "process_time", "time", "thread_time", "monotonic_ns", "time_ns"}
WAITS = {"wait", "result", "settimeout"}  # which take their limit by place too
LIMITED = WAITS | {"communicate", "get", "run", "create_connection"}
LEAST = 60.0  # seconds that a wait for something may last
ASKS = {"get", "post", "put", "request", "stream", "Client"}
MAY_READ_CLOCKS = (
    "tests/waiting.py",  # is what the others wait with
    "tests/collect/soak*.py",  # make load until they are told to end
    "tests/*/__main__.py",  # jobs, which say how long they took
)
MAY_WAIT = re.compile(rf"\b(time|asyncio|httpx)\b|\btimeout\b|\.({'|'.join(WAITS)})\(")
STATISTICAL = re.compile(r"\b(expect_(law|mean|standard_error|share|coverage|at_least)|misfit|FALSE_ALARM)\b")
CATCHES = re.compile(r"\bexpect_(broken|caught)\(|< FALSE_ALARM")
FILES = sorted(TESTS.rglob("*.py"))


def named(path: Path) -> str:
    return str(path.relative_to(TESTS.parent))


def clocks(source: str) -> Iterator[str]:
    """Calls that make a test depend on the time that something takes."""
    if not MAY_WAIT.search(source):  # most files, which are not parsed then
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            yield f"line {node.lineno}: from time import"
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        called, owner = node.func.attr, ast.unparse(node.func.value)
        if owner in ("time", "asyncio") and called in CLOCKS:
            yield f"line {node.lineno}: {owner}.{called}"
        limits = [word.value for word in node.keywords if word.arg == "timeout"]
        if owner == "httpx" and called in ASKS and not limits and "MockTransport" not in ast.unparse(node):
            yield f"line {node.lineno}: httpx.{called} without a limit of its own"
        if called in LIMITED:
            for limit in [*limits, *(node.args[:1] if called in WAITS else [])]:
                value = limit.value if isinstance(limit, ast.Constant) else None
                if isinstance(value, int | float) and not isinstance(value, bool) and value < LEAST:
                    yield f"line {node.lineno}: {called} gives up after {value} s"


def shows_nothing(source: str) -> bool:
    """Whether a statistical test does not show that it would catch anything."""
    return bool(STATISTICAL.search(source)) and not CATCHES.search(source)


def test_no_test_depends_on_how_fast_the_machine_is() -> None:
    judged = [path for path in FILES if not any(path.match(pattern) for pattern in MAY_READ_CLOCKS)]
    assert {named(path): found for path in judged if (found := list(clocks(path.read_text())))} == {}


def test_statistical_tests_show_the_broken_mechanism_that_they_catch() -> None:
    assert [named(path) for path in FILES if shows_nothing(path.read_text())] == []


@pytest.mark.parametrize(
    "line",
    [
        "time.sleep(0.1)",
        "from time import perf_counter",
        "begun = time.monotonic()",
        "await asyncio.sleep(0.5)",
        "process.communicate(timeout=20)",
        "answer.result(5)",
        "httpx.get(url)",
        "subprocess.run(words, timeout=30)",
    ],
)
def test_a_test_that_depends_on_the_clock_would_be_found(line: str) -> None:
    source = line if not line.startswith("await") else f"async def f():\n    {line}"
    assert list(clocks(source))
    assert not list(clocks("until(lambda: ready)\nprocess.communicate(timeout=PATIENCE)\nfound.get('a')"))


def test_a_statistical_test_that_catches_nothing_would_be_found() -> None:
    assert shows_nothing("expect_law(counts, law)") and not shows_nothing("x = 1")
    assert not shows_nothing("expect_law(counts, law)\nexpect_broken(counts, other)")

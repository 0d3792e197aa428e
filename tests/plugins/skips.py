"""Each run ends with what it skipped and what would run it; with DOVETAIL_NO_SKIPS=1 a test that skips fails.

Where everything is meant to be installed, a skipped test would hide that something is missing. The reasons in
ALLOWED are allowed everywhere.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections import Counter
from collections.abc import Generator, Iterable
from pathlib import Path

import pytest
from tests.browser import NO_AXE
from tests.node import NOT_BUILT

ALLOWED = {
    "needs the public data sets": "large, and others' to give",
    NO_AXE: "from npm, which not every machine has",
    "atheris has no wheel for this Python": "so the index decides",
    "all tests skipped by +SKIP option": "examples that read public data; tests/datasets runs them where it is",
    "nobody may read the memory of another process here": "the machine's rights, nothing to install",
}
DISTRIBUTIONS = {
    "PIL": "pillow",
    "flint": "python-flint",
    "paho": "paho-mqtt",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
LEFT_TO = {
    "test",
    "check",
    "docs",
    "release",
    "bench",
}  # extras of those who work on Dovetail: other ones are smaller
PROGRAMS = {"initdb": "postgresql", "mosquitto_pub": "mosquitto-clients", "nginx": "nginx-light"}
REMEDIES = {
    "needs the public data sets": "set DOVETAIL_DATA to the folder that docs/datasets.md describes",
    "all tests skipped by +SKIP option": "examples of the same data sets; tests/datasets runs them",
    "needs the extra test": "pip install --editable '.[test]'",
    "there is no chromium here": "apt-get install chromium",
    NOT_BUILT: "make typescript, which takes Node 20 and npm",
}


def extra_of(module: str) -> str | None:
    """The extra that brings this module; None if none does."""
    name = DISTRIBUTIONS.get(module, module).replace("_", "-")
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    bringing = [
        extra for extra, needs in extras.items() if any(re.match(rf"{name}(?![\w.-])", need) for need in needs)
    ]
    return min(bringing, key=LEFT_TO.__contains__, default=None)


def remedy(reason: str) -> str | None:
    """What to do to run a test that is skipped for this reason; None if the reason is all that there is to say."""
    if missing := re.match(r"could not import '(\w+)", reason):
        extra = extra_of(missing[1])
        return None if extra is None else f"pip install --editable '.[{extra}]'"
    if missing := re.fullmatch(r"(\S+) is not installed", reason):
        return f"apt-get install {PROGRAMS.get(missing[1], missing[1])}"
    return REMEDIES.get(reason)


def summary(reasons: Iterable[str]) -> list[str]:
    """A line for each reason, with the number of tests and what would run them; the most frequent first."""
    lines = [f"{reason.partition(':')[0]}: {do}" if (do := remedy(reason)) else reason for reason in reasons]
    return [f"{count:5} {line}" for line, count in Counter(lines).most_common()]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if reports := terminalreporter.stats.get("skipped"):
        terminalreporter.section("skipped, and what would run it")
        for line in summary(reason_of(report) for report in reports):
            terminalreporter.write_line(line)


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Why this report's test was skipped."""
    reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")


def forbidden(report: pytest.TestReport | pytest.CollectReport) -> str | None:
    """Why this report's skip counts as a failure here; None if it does not."""
    if os.environ.get("DOVETAIL_NO_SKIPS") != "1" or not report.skipped or hasattr(report, "wasxfail"):
        return None
    reason = reason_of(report)
    return None if reason in ALLOWED else f"skipped, and DOVETAIL_NO_SKIPS=1 forbids it: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if (why := forbidden(report)) is not None:
        report.outcome, report.longrepr = "failed", why
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if (why := forbidden(report)) is not None:
        report.outcome, report.longrepr = "failed", why
    return report

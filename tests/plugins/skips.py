"""With DOVETAIL_NO_SKIPS=1 a test that skips fails, except for the reasons listed here.

Where everything is meant to be installed, a skipped test would hide that something is missing.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest
from tests.browser import NO_AXE

ALLOWED = {
    "needs the public data sets": "large, and others' to give",
    NO_AXE: "from npm, which not every machine has",
    "atheris has no wheel for this Python": "so the index decides",
    "all tests skipped by +SKIP option": "examples that read public data; tests/datasets runs them where it is",
    "nobody may read the memory of another process here": "the machine's rights, nothing to install",
}


def forbidden(report: pytest.TestReport | pytest.CollectReport) -> str | None:
    """Why this report's skip counts as a failure here; None if it does not."""
    if os.environ.get("DOVETAIL_NO_SKIPS") != "1" or not report.skipped or hasattr(report, "wasxfail"):
        return None
    reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = reason.removeprefix("Skipped: ")
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

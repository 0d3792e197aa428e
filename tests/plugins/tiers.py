"""The first tier runs a few cases of each parametrized test and a few examples of each property; the second, all.

The hash of their names draws which cases, the same in every run and on every machine. Without `-m`, everything runs.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Generator, Iterable
from pathlib import Path
from zlib import crc32

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import is_hypothesis_test, settings
from tests.tiers import EXHAUST

MOST = 2  # cases of a parametrized test in the first tier
EXAMPLES = 10  # of a property in the first tier
WHOLE = ("tests/test_", "tests/laws/")  # whose cases are no samples: one for each page, name, randomizer
FIRST, SECOND = "not exhaust", "exhaust"


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # until all tests are collected, which stay until the end
    config.addinivalue_line("markers", "every_case: all cases of this parametrized test run in the first tier")
    if config.option.markexpr == FIRST:
        settings.register_profile(
            "short", settings.get_profile(settings.get_current_profile_name()), max_examples=EXAMPLES
        )
        settings.load_profile("short")


def later(names: Iterable[str], most: int = MOST) -> set[str]:
    """The cases of one test that the second tier runs alone: all but `most`, drawn by their names."""
    return set(sorted(names, key=lambda name: crc32(name.encode()))[most:])


def is_sample(item: pytest.Item) -> bool:
    """Whether a test is one of many cases, of which the first tier runs a few."""
    kept = item.nodeid.startswith(WHOLE) or any(item.iter_markers("every_case"))
    return hasattr(item, "callspec") and not kept and not any(item.iter_markers("exhaust"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    cases = defaultdict[str, dict[str, pytest.Item]](dict)
    for item in items:
        if config.option.markexpr == SECOND and is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(EXHAUST)  # once more, with all its examples
        elif is_sample(item):
            cases[item.nodeid.partition("[")[0]][item.nodeid] = item
    for together in cases.values():
        for name in later(together):
            together[name].add_marker(EXHAUST)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Looks for examples only in files that have some: the search costs as much as the collection of tests."""
    found = yield
    if file_path.suffix == ".py" and ">>>" not in file_path.read_text():
        found = [one for one in found if not isinstance(one, DoctestModule)]
    return found

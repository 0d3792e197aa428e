"""The first tier runs one case of each parametrized test and a few examples of each property; the second, all.

The hash of their names draws which case, the same in every run and on every machine. Without `-m`, everything runs.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Generator, Iterable
from pathlib import Path
from zlib import crc32

import pytest
from _pytest.doctest import DoctestItem, DoctestModule
from hypothesis import is_hypothesis_test, settings
from hypothesis.internal.conjecture import providers
from tests.tiers import EXHAUST

EXAMPLES = 5  # of a property in the first tier
WHOLE = "tests/test_"  # whose cases are no samples: one for each page, name
LAWS = "tests/laws/"  # of each law and class, one example; an example is named by its repr
FIRST, SECOND = "not exhaust", "exhaust"
LONG_EXAMPLES = (  # docstrings that take a quarter of a second or more
    "dovetail.account.accountant.Accountant",
    "dovetail.account.calibrate.max_epsilon",
    "dovetail.account.compose.Composition",
    "dovetail.account.compose.compose",
    "dovetail.account.compose.compose_upper",
    "dovetail.account.compose.composed_delta",
    "dovetail.attack.experiment.reidentify.ForestAttack",
    "dovetail.attack.experiment.voter_selection.select_voters",
    "dovetail.attack.likelihood.Likelihood",
    "dovetail.core.keyed_hash.keyed_hashes",
    "dovetail.engine.run.run",
    "dovetail.memorize.copying.data_copying.CopyingTest",
    "dovetail.plan.compare.compare_mechanisms",
    "dovetail.plan.planner.plan_collection",
    "dovetail.randomize.vectors.gaussian.gaussian_channel",
)


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # until all tests are collected, which stay until the end
    config.addinivalue_line("markers", "every_case: all cases of this parametrized test run in the first tier")
    if config.option.markexpr == FIRST:
        settings.register_profile(
            "short", settings.get_profile(settings.get_current_profile_name()), max_examples=EXAMPLES
        )
        settings.load_profile("short")
        # Hypothesis would parse all our sources in each process, for constants to try among its examples.
        providers._get_local_constants = lambda: providers._local_constants


def later(names: Iterable[str]) -> set[str]:
    """The cases of one test that the second tier runs alone: all but one, drawn by their names."""
    return set(sorted(names, key=lambda name: crc32(name.encode()))[1:])


def is_sample(item: pytest.Item) -> bool:
    """Whether a test is one of many cases, of which the first tier runs one."""
    kept = item.nodeid.startswith(WHOLE) or any(item.iter_markers("every_case"))
    return hasattr(item, "callspec") and not kept and not any(item.iter_markers("exhaust"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    cases = defaultdict[str, dict[str, pytest.Item]](dict)
    for item in items:
        if config.option.markexpr == SECOND and is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(EXHAUST)  # once more, with all its examples
        elif isinstance(item, DoctestItem) and item.name in LONG_EXAMPLES:
            item.add_marker(EXHAUST)
        elif is_sample(item):
            cases[item.nodeid.partition("(" if item.nodeid.startswith(LAWS) else "[")[0]][item.nodeid] = item
    for together in cases.values():
        for name in later(together):
            together[name].add_marker(EXHAUST)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)  # arrays are freed without it; cycles are few, and to look for them costs
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Looks for examples only in files that have some: the search costs as much as the collection of tests."""
    found = yield
    if file_path.suffix == ".py" and ">>>" not in file_path.read_text():
        found = [one for one in found if not isinstance(one, DoctestModule)]
    return found

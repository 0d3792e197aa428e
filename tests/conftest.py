"""What every test can ask for."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.statistics import rng_of

from dovetail.core.entropy import Entropy

pytest_plugins = ["tests.plugins.selection", "tests.plugins.skips"]

# slow examples are no failures: the machine may be busy, or compile the first one
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> Entropy:
    """Reproducible randomness, seeded by the test's own name."""
    return rng_of(request.node.nodeid)


@pytest.fixture(scope="session")
def ledgers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Iterator[int]]:
    """Where this process keeps the ledgers of its tests, and the next one's number."""
    return tmp_path_factory.mktemp("ledgers"), count()


@pytest.fixture(autouse=True)
def ledger_of_its_own(ledgers: tuple[Path, Iterator[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """A release in a test is recorded in a ledger of this test alone, never in the one of whoever runs the tests."""
    folder, number = ledgers
    monkeypatch.setenv("DOVETAIL_LEDGER", str(folder / str(next(number))))

"""What every test can ask for."""

import os
import ssl
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.statistics import rng_of

from dovetail.core.entropy import Entropy

pytest_plugins = [
    "tests.plugins.selection",
    "tests.plugins.skips",
    "tests.plugins.tiers",
    "tests.plugins.kernels",
    "dovetail.audit.pytest_plugin",
]

# Slow examples are no failures: the machine may be busy, or compile the first one. The examples are the same in every
# run, so that a tree that passed passes for whoever clones it; DOVETAIL_EXPLORE=1 draws new ones, before a release.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.register_profile("explorer", settings.get_profile("patient"), derandomize=False)
settings.load_profile("explorer" if os.environ.get("DOVETAIL_EXPLORE") else "patient")


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


@pytest.fixture(scope="session", autouse=True)
def authorities_are_read_once() -> Iterator[None]:
    """Clients of HTTP share contexts of TLS: to read all authorities takes longer than most tests of a server."""
    plain = ssl.create_default_context

    @cache
    def made(trusted: str | None, *given: object, **named: object) -> ssl.SSLContext:
        return plain(*given, **named)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", lambda *a, **b: made(os.environ.get("SSL_CERT_FILE"), *a, **b))
        yield

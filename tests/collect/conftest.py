"""Servers for the tests of the service: one of each per worker, started when first asked for."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from tests.collect import servers
from tests.waiting import PATIENCE

from dovetail.collect import http, logs


@pytest.fixture(scope="session")
def postgres() -> Iterator[servers.Postgres]:
    """A PostgreSQL without fsync; `postgres.database(name)` is the URL of an empty database."""
    try:
        with servers.postgres() as server:
            yield server
    except servers.Absent as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def mosquitto() -> Iterator[servers.Mosquitto]:
    """A Mosquitto; its address is `mosquitto.url`."""
    try:
        with servers.mosquitto() as server:
            yield server
    except servers.Absent as error:
        pytest.skip(str(error))


@pytest.fixture(autouse=True)
def patient_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers in this process cut nobody off because a machine is slow; tests of deadlines put a clock forward."""
    monkeypatch.setattr(http, "SECONDS", 6 * PATIENCE)
    for read in (http.read_limited, http.stream_limited):
        monkeypatch.setitem(read.__kwdefaults__, "seconds", 6 * PATIENCE)


@pytest.fixture(autouse=True)
def no_server_logs() -> Iterator[None]:
    """A verb that runs a server inside a test sets up its logs; the next test has none."""
    yield
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, logs.ServerHandler)]:
        root.removeHandler(handler)

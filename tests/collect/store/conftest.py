"""Places for stores: in memory, in a file, on a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from dovetail.collect.store.analyzer_store import DatabaseAnalyzerStore, open_analyzer_store
from dovetail.collect.store.engine import Database
from dovetail.collect.store.shuffler_store import DatabaseShufflerStore, open_shuffler_store

LASTING = ("file", "postgres")


def url_of(kind: str, request: pytest.FixtureRequest, folder: Path) -> str:
    """A new place of this kind."""
    if kind == "memory":
        return "sqlite://"
    if kind == "file":
        return f"sqlite:///{folder / 'store.sqlite'}"
    return str(request.getfixturevalue("postgres").database("store"))


@pytest.fixture(params=["memory", *LASTING])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request.param, request, tmp_path)


@pytest.fixture(params=LASTING)
def lasting(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place that outlives the process, and that several may open."""
    return url_of(request.param, request, tmp_path)


@pytest.fixture
def store(url: str) -> Iterator[DatabaseShufflerStore]:
    store = open_shuffler_store(url)
    yield store
    store.close()


@pytest.fixture
def analyzer(url: str) -> Iterator[DatabaseAnalyzerStore]:
    store = open_analyzer_store(url)
    yield store
    store.close()


@pytest.fixture
def query() -> Callable[[str, str], list[tuple[object, ...]]]:
    """Rows of a database as they lie there, past the store."""

    def ask(url: str, statement: str) -> list[tuple[object, ...]]:
        database = Database(url)
        try:
            return database.read(lambda connection: [tuple(row) for row in connection.execute(text(statement))])
        finally:
            database.close()

    return ask

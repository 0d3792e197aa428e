"""Several replicas on one database: one decides, the others notice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier
from typing import TypeVar

import pytest
from sqlalchemy import event, inspect
from tests.collect.servers import Postgres
from tests.collect.store.samples import BUSES, count, fill, outgoing, report, state
from tests.waiting import until

from dovetail.collect.store import engine
from dovetail.collect.store.analyzer_store import DatabaseAnalyzerStore, open_analyzer_store
from dovetail.collect.store.engine import Database
from dovetail.collect.store.interfaces import BatchRecord, CountedBatch, GroupTally
from dovetail.collect.store.shuffler_store import DatabaseShufflerStore, open_shuffler_store
from dovetail.core.errors import StorageError

REPLICAS = 4
T = TypeVar("T")
S = TypeVar("S", DatabaseShufflerStore, DatabaseAnalyzerStore)


def race(stores: list[S], act: Callable[[S, int], T]) -> list[T]:
    """What each replica got, all starting at the same moment."""
    start = Barrier(len(stores))

    def run(number: int) -> T:
        start.wait()
        return act(stores[number], number)

    with ThreadPoolExecutor(len(stores)) as pool:
        return list(pool.map(run, range(len(stores))))


@pytest.fixture
def stores(lasting: str) -> Iterator[list[DatabaseShufflerStore]]:
    """Replicas of a shuffler on one new database, opened at once."""
    with ThreadPoolExecutor(REPLICAS) as pool:
        stores = list(pool.map(open_shuffler_store, [lasting] * REPLICAS))
    yield stores
    for store in stores:
        store.close()


def test_replicas_that_open_a_new_database_at_once_all_get_it(stores: list[DatabaseShufflerStore]) -> None:
    assert all(store.ready() for store in stores)


def test_who_makes_tables_waits_for_another_process_that_does(postgres: Postgres) -> None:
    url = postgres.database("store")
    waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with ThreadPoolExecutor(1) as pool, closing(Database(url)) as other:
        with other.engine.begin() as first:
            first.exec_driver_sql(f"SELECT pg_advisory_xact_lock({engine._SCHEMA_LOCK})")
            opened = pool.submit(open_shuffler_store, url)
            until(lambda: first.exec_driver_sql(waits).scalar() == 1, alive=lambda: not opened.done())
            assert inspect(first).get_table_names() == []
        opened.result().close()


@pytest.mark.exhaust
def test_exactly_one_replica_releases_a_round(stores: list[DatabaseShufflerStore]) -> None:
    for number in range(1, 6):
        fill(stores[0], range(3), round=number)

    def release_all(store: DatabaseShufflerStore, replica: int) -> list[int]:
        won = []
        for number in range(1, 6):
            if store.begin_batch(outgoing(number, id=f"{replica}-{number}")):
                store.add_part(f"{replica}-{number}", 0, b"body")
                store.finish_batch(f"{replica}-{number}", b"header")
                won.append(number)
        return won

    results = race(stores, release_all)
    assert sorted(number for won in results for number in won) == [1, 2, 3, 4, 5]
    assert len(stores[0].outgoing()) == 5
    assert [state(stores[0], number) for number in range(1, 6)] == ["released"] * 5


@pytest.mark.exhaust
def test_a_round_is_dropped_merged_or_released_but_never_two_of_these(stores: list[DatabaseShufflerStore]) -> None:
    for number in range(1, 9):
        fill(stores[0], range(3), round=number)
    fill(stores[0], [7], round=100)
    again = [report(device, round=100, id=device + 900) for device in range(3)]
    ways: list[Callable[[DatabaseShufflerStore, int], object]] = [
        lambda store, number: store.drop(BUSES, number),
        lambda store, number: store.begin_batch(outgoing(number, id=f"b{number}")),
        lambda store, number: store.move(BUSES, number, 100, again),
        lambda store, number: store.set_state(BUSES, number, "open", "held"),
    ]

    def act(store: DatabaseShufflerStore, replica: int) -> list[object]:
        return [ways[(replica + number) % 4](store, number) for number in range(1, 9)]

    results = race(stores, act)
    for number in range(1, 9):
        dropped, began, moved, _ = (results[(way - number) % 4][number - 1] for way in range(4))
        found = {round.number: round for round in stores[0].rounds(BUSES)}[number]
        assert bool(dropped) == (found.state == "dropped")
        assert bool(began) == (found.state == "releasing")
        assert bool(moved) <= (found.state == "merged")
        kept = 3 if found.state in ("open", "held", "releasing") else 0
        assert len(stores[0].tags(BUSES, [number])) == kept


def test_a_report_sent_to_every_replica_at_once_is_new_once(stores: list[DatabaseShufflerStore]) -> None:
    stores[0].open_round(BUSES, 1, now=0.0)
    reports = [report(device) for device in range(40)]

    def send(store: DatabaseShufflerStore, replica: int) -> list[str]:
        ordered = reports if replica % 2 else reports[::-1]
        outcomes: list[str] = []
        for start in range(0, 40, 4):
            outcomes += store.accept(ordered[start : start + 4])
        return outcomes

    outcomes = race(stores, send)
    assert Counter(outcome for one in outcomes for outcome in one) == {"new": 40, "duplicate": 40 * (REPLICAS - 1)}
    assert (count(stores[0], 1), len(stores[0].tags(BUSES, [1]))) == (40, 40)


@pytest.mark.exhaust
def test_one_report_sent_for_two_rounds_at_once_is_new_in_one(stores: list[DatabaseShufflerStore]) -> None:
    for number in range(1, REPLICAS + 1):
        stores[0].open_round(BUSES, number, now=0.0)

    def send(store: DatabaseShufflerStore, replica: int) -> list[str]:
        return [store.accept([report(1, round=replica + 1, id=id)])[0] for id in range(20)]

    outcomes = race(stores, send)
    for id in range(20):
        assert [one[id] for one in outcomes].count("new") <= 1
    assert sum(round.count for round in stores[0].rounds(BUSES)) == sum(one.count("new") for one in outcomes)


def test_a_report_is_in_the_batch_or_was_not_acknowledged_as_new(stores: list[DatabaseShufflerStore]) -> None:
    fill(stores[0], range(3))

    def act(store: DatabaseShufflerStore, replica: int) -> list[str]:
        if replica:
            return [store.accept([report(100 * replica + n)])[0] for n in range(20)]
        assert store.begin_batch(outgoing(1))
        return [f"{tag.hex()}" for _, tag in store.tags(BUSES, [1])]

    batch, *others = race(stores, act)
    new = sum(one.count("new") for one in others)
    assert (len(batch), count(stores[0], 1)) == (3 + new, 3 + new)
    assert {outcome for one in others for outcome in one} <= {"new", "closed"}


@pytest.mark.exhaust
def test_a_batch_taken_back_by_another_replica_is_never_finished(stores: list[DatabaseShufflerStore]) -> None:
    numbers = range(1, 16)
    for number in numbers:
        fill(stores[0], range(3), round=number)
        assert stores[0].begin_batch(outgoing(number, id=f"b{number}"))

    def act(store: DatabaseShufflerStore, replica: int) -> list[bool]:
        finished = []
        for number in numbers:
            try:
                (store.abandon_batch(f"b{number}") if replica else store.finish_batch(f"b{number}", b"header"))
                finished.append(True)
            except StorageError:
                finished.append(False)
        return finished

    finished, _ = race(stores[:2], act)
    waiting = [batch.id for batch in stores[0].outgoing()]
    for number, done in zip(numbers, finished, strict=True):
        kept = (state(stores[0], number), len(stores[0].tags(BUSES, [number])), f"b{number}" in waiting)
        assert kept == (("released", 0, True) if done else ("open", 3, False))


def test_exactly_one_analyzer_counts_a_batch(lasting: str) -> None:
    stores = [open_analyzer_store(lasting) for _ in range(REPLICAS)]
    batch = BatchRecord("b1", BUSES, "00", (1,), 3, 3, 0.0, {})
    results = race(
        stores, lambda store, replica: store.count(CountedBatch(batch, (GroupTally("", 3, ((replica, 3),)),)))
    )
    assert sorted(results) == [False] * (REPLICAS - 1) + [True]
    assert stores[0].tallies(BUSES, "b1") == [GroupTally("", 3, ((results.index(True), 3),))]
    for store in stores:
        store.close()


def test_what_is_read_is_of_one_moment(lasting: str) -> None:
    """A batch that is counted between two questions of `batches` is there with all its rounds, or not at all."""
    reader, writer = open_analyzer_store(lasting), open_analyzer_store(lasting)
    batches = [BatchRecord(f"b{n}", BUSES, "00", (n, n + 1), 3, 3, 0.0, {"seal": 1}) for n in (1, 3, 5)]
    left = list(batches)

    def meanwhile(*_: object) -> None:
        if left:
            assert writer.count(CountedBatch(left.pop(), ()))

    event.listen(reader._database.engine, "after_cursor_execute", meanwhile)
    for _ in range(4):
        assert all(batch in batches for batch in reader.batches(BUSES))
    assert reader.batches(BUSES) == batches
    reader.close()
    writer.close()

"""PostgreSQL takes reports from several processes at once: each decision is that of one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from threading import Event, Thread

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, event, select
from tests.collect.servers import Postgres
from tests.collect.store.samples import BUSES, count, fill, outgoing, report, state
from tests.waiting import PATIENCE, until

from dovetail.collect.store import report_transactions as copied_reports
from dovetail.collect.store.interfaces import AcceptOutcome
from dovetail.collect.store.shuffler_store import DatabaseShufflerStore, open_shuffler_store
from dovetail.collect.store.tables import FRESH, SHARD

devices, ids, rounds = st.integers(0, 3), st.integers(0, 5), st.integers(1, 3)


@pytest.fixture
def url(postgres: Postgres) -> str:
    return postgres.database("beside")


@pytest.fixture
def stores(url: str) -> Iterator[list[DatabaseShufflerStore]]:
    """Two processes' stores."""
    opened = [open_shuffler_store(url) for _ in range(2)]
    yield opened
    for store in opened:
        store.close()


@pytest.mark.exhaust
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(groups=st.lists(st.lists(st.tuples(devices, ids, rounds), max_size=8), max_size=4))
def test_outcomes_on_a_server_are_those_of_a_plain_dictionary(
    postgres: Postgres, groups: list[list[tuple[int, int, int]]]
) -> None:
    store, number = opened(postgres), next(NAMES)
    here = f"campaign-{number}"
    known, taken = set[int](), set[tuple[int, int]]()
    store.open_round(here, 1, now=0.0)
    store.open_round(here, 2, now=0.0)
    for group in groups:
        wanted: list[AcceptOutcome] = []
        for device, id, round in group:
            place = (device, round)
            outcome: AcceptOutcome = "second" if place in taken else "new"
            outcome = "duplicate" if id in known else "closed" if round == 3 else outcome
            if outcome == "new":
                known.add(id)
                taken.add(place)
            wanted.append(outcome)
        asked = [report(device, id=10 * number + id, round=round, campaign=here) for device, id, round in group]
        assert store.accept(asked) == wanted
    assert sum(round.count for round in store.rounds(here)) == len(taken) == len(store.tags(here, [1, 2]))


NAMES = iter(range(1 << 30))
_OPENED: list[DatabaseShufflerStore] = []


def opened(postgres: Postgres) -> DatabaseShufflerStore:
    """One database for all examples: a new one for each takes longer than the example."""
    if not _OPENED:
        _OPENED.append(open_shuffler_store(postgres.database("examples")))
    return _OPENED[0]


def paused(
    store: DatabaseShufflerStore, beginning: str, work: Callable[[], object]
) -> tuple[Thread, Event, list[object]]:
    """`work` in a thread that stops before its first statement that begins so, until the event is set."""
    reached, go, found = Event(), Event(), list[object]()

    def stop(_: Connection, __: object, statement: str, *___: object) -> None:
        if statement.startswith(beginning) and not reached.is_set():
            reached.set()
            assert go.wait(PATIENCE)

    event.listen(store._database.engine, "before_cursor_execute", stop)
    thread = Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    assert reached.wait(PATIENCE)
    return thread, go, found


@pytest.mark.exhaust
def test_two_processes_store_in_one_round_at_the_same_time(stores: list[DatabaseShufflerStore]) -> None:
    fill(stores[0], [1])
    thread, go, found = paused(stores[0], "INSERT INTO report", lambda: stores[0].accept([report(2), report(3)]))
    assert stores[1].accept([report(4), report(5)]) == ["new", "new"], "nobody waits for a transaction in flight"
    go.set()
    thread.join(PATIENCE)
    assert found == [["new", "new"]]
    assert count(stores[0], 1) == len(stores[0].tags(BUSES, [1])) == 5


@pytest.mark.exhaust
@pytest.mark.parametrize("end", ["close", "begin"])
def test_a_round_does_not_end_over_a_transaction_in_flight(stores: list[DatabaseShufflerStore], end: str) -> None:
    fill(stores[0], [1, 2])
    thread, go, found = paused(stores[0], "INSERT INTO report", lambda: stores[0].accept([report(3)]))
    seen = list[object]()

    def close() -> None:
        done = stores[1].begin_batch(outgoing(1)) if end == "begin" else stores[1].set_state(BUSES, 1, "open", "held")
        seen.append((done, len(stores[1].tags(BUSES, [1])), count(stores[1], 1)))

    closer = Thread(target=close, daemon=True)
    closer.start()
    until(lambda: seen or waiting(stores[0]))
    assert not seen and state(stores[0], 1) == "open"
    go.set()
    for each in (thread, closer):
        each.join(PATIENCE)
    assert found == [["new"]] and seen == [(True, 3, 3)], "it is in the round that has closed, and in its count"
    assert stores[0].accept([report(4)]) == ["closed"]


def waiting(store: DatabaseShufflerStore) -> int:
    statement = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    return int(store._database.read(lambda connection: connection.exec_driver_sql(statement).scalar()) or 0)


@pytest.mark.parametrize("same", ["digest", "device"])
def test_of_two_at_once_the_second_hears_that_it_is_the_second(
    stores: list[DatabaseShufflerStore], same: str
) -> None:
    fill(stores[0], [9])
    stores[0].open_round(BUSES, 2, now=0.0)
    first = report(1, id=5)
    other = report(1, id=5, round=2) if same == "digest" else report(1, id=6)
    thread, go, found = paused(stores[0], "INSERT INTO shard", lambda: stores[0].accept([first]))
    told = list[object]()
    later = Thread(target=lambda: told.append(stores[1].accept([other])), daemon=True)
    later.start()
    until(lambda: told or blocked(stores[0]))
    go.set()
    for each in (thread, later):
        each.join(PATIENCE)
    assert found == [["new"]] and told == [["duplicate" if same == "digest" else "second"]]
    assert [round.count for round in stores[0].rounds(BUSES)] == [2, 0]
    if same == "device":
        stores[0].set_state(BUSES, 1, "open", "held")
        assert stores[1].accept([report(1, id=6, round=2)]) == ["new"], "what was refused is not known"


def blocked(store: DatabaseShufflerStore) -> int:
    statement = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    return int(store._database.read(lambda connection: connection.exec_driver_sql(statement).scalar()) or 0)


def test_a_digest_that_passes_to_the_spent_ones_meanwhile_is_known(stores: list[DatabaseShufflerStore]) -> None:
    """A round is released between the two looks: before the digest is noted, and after."""
    [first] = fill(stores[0], [1])
    stores[0].open_round(BUSES, 2, now=0.0)
    again = report(1, round=2, id=1)
    again = type(again)(BUSES, 2, again.tag, first.report, again.sealed)
    assert stores[1].begin_batch(outgoing(1, count=1))
    thread, go, found = paused(stores[0], "INSERT INTO fresh", lambda: stores[0].accept([again]))
    stores[1].finish_batch("b1", b"header")
    go.set()
    thread.join(PATIENCE)
    assert found == [["duplicate"]]
    left = stores[0]._database.read(lambda connection: connection.scalars(select(FRESH.c.digest)).all())
    assert left == [] and count(stores[0], 2) == 0


def test_shards_are_summed_when_a_round_ends_and_nothing_stays_of_them(stores: list[DatabaseShufflerStore]) -> None:
    reports = fill(stores[0], range(200))
    shards = stores[0]._database.read(lambda connection: connection.execute(select(SHARD)).all())
    assert Counter({row.shard: row.total for row in shards}) == Counter(each.tag[0] >> 4 for each in reports)
    assert stores[1].set_state(BUSES, 1, "open", "held") and count(stores[0], 1) == 200
    assert stores[0]._database.read(lambda connection: connection.execute(select(SHARD)).all()) == []


def test_a_temporary_table_holds_reports_in_the_order_of_their_tags() -> None:
    reports = [report(device) for device in range(20)]
    sent = copied_reports._binary(reports)
    places = [sent.index(each.tag) for each in sorted(reports, key=lambda each: each.tag)]
    assert places == sorted(places)

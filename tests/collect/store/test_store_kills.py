"""A process that is killed at any statement of any transaction leaves it done or not begun.

Each operation runs in a forked process that dies, by SIGKILL, right before its n-th statement, for every n until it
comes to its end. Failure is any state that is neither the one before nor the one after. What a power cut does to the
disk is not tested here: that is the database's own promise, given synchronous = FULL and fsync.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event, text
from tests.collect.store.samples import BUSES, digest, fill, outgoing, release, report
from tests.tiers import tiered

from dovetail.collect.store.analyzer_store import DatabaseAnalyzerStore, open_analyzer_store
from dovetail.collect.store.engine import Database
from dovetail.collect.store.interfaces import BatchRecord, CountedBatch, GroupTally, SealedReport
from dovetail.collect.store.shuffler_store import DatabaseShufflerStore, open_shuffler_store
from dovetail.collect.store.tables import ANALYZER, SHUFFLER

MOST = 60  # statements that one operation makes at most


def merge(store: DatabaseShufflerStore) -> object:
    return store.move(BUSES, 1, 2, [SealedReport(BUSES, 2, digest(n), b"", b"sealed") for n in range(3)])


def nothing(store: DatabaseShufflerStore) -> None:
    """Two open rounds with reports, as they are."""


def build(store: DatabaseShufflerStore) -> None:
    store.begin_batch(outgoing(1, 2))
    store.add_part("b1", 0, b"body")


def deliver(store: DatabaseShufflerStore) -> None:
    release(store, 1, 2)
    store.mark_delivered("b1")


Act = Callable[[DatabaseShufflerStore], object]

OPERATIONS: dict[str, tuple[Act, Act]] = {  # what comes before, and what is killed
    "open_round": (nothing, lambda store: store.open_round(BUSES, 3, 0.0)),
    "accept": (nothing, lambda store: store.accept([report(n, round=round) for n in (7, 8) for round in (1, 2)])),
    "move": (nothing, merge),
    "drop": (nothing, lambda store: store.drop(BUSES, 1)),
    "begin_batch": (nothing, lambda store: store.begin_batch(outgoing(1, 2))),
    "finish_batch": (build, lambda store: store.finish_batch("b1", b"header")),
    "abandon_batch": (build, lambda store: store.abandon_batch("b1")),
    "delivered": (lambda store: release(store, 1, 2), lambda store: store.mark_delivered("b1")),
    "purge": (deliver, lambda store: store.purge(before=1e9)),
}


def contents(url: str) -> dict[str, list[Any]]:
    """All rows of all tables."""
    database = Database(url)

    def work(connection: Any) -> dict[str, list[Any]]:
        present = set(connection.dialect.get_table_names(connection))
        tables = [table for table in (*SHUFFLER.sorted_tables, *ANALYZER.sorted_tables) if table.name in present]
        return {table.name: sorted(map(tuple, connection.execute(table.select())), key=repr) for table in tables}

    found = database.read(work)
    database.close()
    return found


def killed(database: Database, statement: int, act: Callable[[], object]) -> bool:
    """Whether a forked process that dies before this statement died, rather than finish."""
    child = os.fork()
    if child == 0:
        left = [statement]

        def count_down(*_: Any) -> None:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            for moment in ("before_cursor_execute", "commit"):
                event.listen(database.engine, moment, count_down)
            act()
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


@pytest.mark.exhaust
@pytest.mark.parametrize("name", tiered(OPERATIONS, first=lambda name: name in ("accept", "finish_batch")))
def test_a_killed_shuffler_has_done_all_of_an_operation_or_nothing(lasting: str, name: str) -> None:
    prepare, act = OPERATIONS[name]
    store = open_shuffler_store(lasting)
    fill(store, range(3), round=1)
    fill(store, range(2, 5), round=2)
    prepare(store)
    store.close()
    before, seen = contents(lasting), []
    for statement in range(MOST):
        died = killed(store._database, statement, lambda: act(store))
        seen.append(contents(lasting))
        if not died or seen[-1] != before:
            break
    else:
        pytest.fail(f"{name} takes more than {MOST} statements")
    assert statement > 1, "it was killed in the middle"
    assert seen[:-1] == [before] * (len(seen) - 1)
    assert seen[-1] != before, "the last one came through"
    opened = open_shuffler_store(lasting)
    assert opened.ready()
    opened.close()


@pytest.mark.exhaust
def test_a_killed_analyzer_has_counted_all_of_a_batch_or_nothing(lasting: str) -> None:
    store = open_analyzer_store(lasting)
    store.close()
    batch = BatchRecord("b1", BUSES, "00", (1, 2), 3, 2, 0.0, {"seal": 1})
    counted = CountedBatch(batch, (GroupTally("", 2, ((1, 2),)),), (("seal", b"x"),), ((4, b"y"),))
    before = contents(lasting)
    statement = 0
    while killed(store._database, statement, lambda: store.count(counted)):
        assert contents(lasting) == before
        statement += 1
        assert statement < MOST
    assert statement > 5
    assert store.batches(BUSES) == [batch]
    store.close()


@pytest.mark.exhaust
def test_a_killed_analyzer_has_kept_a_part_whole_or_not_and_counted_with_all_parts_gone(lasting: str) -> None:
    batch = BatchRecord("b1", BUSES, "00", (1,), 3, 3, 0.0, {})
    steps: tuple[Callable[[DatabaseAnalyzerStore], object], ...] = (
        lambda store: store.expect("b1", b"manifest", 0.0),
        lambda store: store.keep_part("b1", 0, b"body"),
        lambda store: store.keep_part("b1", 1, b"more"),
        lambda store: store.count(CountedBatch(batch, (GroupTally("", 3, ((1, 3),)),))),
    )
    store = open_analyzer_store(lasting)
    store.close()
    for step in steps:
        before, statement = contents(lasting), 0
        while killed(store._database, statement, lambda: step(store)):  # noqa: B023
            if (found := contents(lasting)) != before:  # killed after its commit
                break
            statement += 1
            assert statement < MOST
        assert (found := contents(lasting)) != before and statement > 0
    assert (found["incoming"], found["incoming_part"], len(found["counted"])) == ([], [], 1)
    store.close()


@pytest.mark.exhaust
def test_a_transaction_left_open_would_be_noticed(lasting: str) -> None:
    """The test's own eyes: what two transactions do instead of one is seen half done."""
    store = open_shuffler_store(lasting)
    fill(store, [1])
    store.close()
    before = contents(lasting)

    def halves() -> None:
        for table in ("report", "fresh"):
            store._database.write(lambda connection: connection.execute(text(f"DELETE FROM {table}")))  # noqa: B023

    states = []
    for statement in range(MOST):
        if not killed(store._database, statement, halves):
            break
        states.append(contents(lasting))
    assert any(found not in (before, contents(lasting)) for found in states)

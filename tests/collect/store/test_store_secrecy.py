"""What databases keep: no order of arrival, and after release nothing of a report but the digest of its id."""

from __future__ import annotations

import stat
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from tests.collect.servers import Postgres
from tests.collect.shuffler.world import DEVICES, World, campaign, message
from tests.collect.store.samples import BUSES, fill, outgoing, release, report

from dovetail.collect.clock import minute
from dovetail.collect.store.analyzer_store import open_analyzer_store
from dovetail.collect.store.interfaces import BatchRecord, CountedBatch, GroupTally, SealedReport
from dovetail.collect.store.shuffler_store import DatabaseShufflerStore, open_shuffler_store
from dovetail.collect.store.tables import ANALYZER, SHUFFLER

Query = Callable[[str, str], list[tuple[object, ...]]]
CANARY = b"canary-" * 8


def arrivals(store: DatabaseShufflerStore, n: int = 300) -> list[SealedReport]:
    """Reports that come one by one, in an order that is known."""
    store.open_round(BUSES, 1, now=0.0)
    reports = [report(device) for device in Random(1).sample(range(1000), n)]
    for item in reports:
        assert store.accept([item]) == ["new"]
    return reports


def test_rows_of_a_file_lie_in_the_order_of_their_keys(tmp_path: Path, query: Query) -> None:
    url = f"sqlite:///{tmp_path / 'store.sqlite'}"
    store = open_shuffler_store(url)
    reports = arrivals(store)
    tags, digests = [item.tag for item in reports], [item.report for item in reports]
    assert tags != sorted(tags)
    assert [tag for (tag,) in query(url, "SELECT tag FROM report")] == sorted(tags)
    assert [digest for (digest,) in query(url, "SELECT digest FROM fresh")] == sorted(digests)
    store.close()


def test_no_table_has_a_hidden_row_number(tmp_path: Path, query: Query) -> None:
    for opened, schema in ((open_shuffler_store, SHUFFLER), (open_analyzer_store, ANALYZER)):
        url = f"sqlite:///{tmp_path / opened.__name__}"
        opened(url).close()
        made = query(url, "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name <> 'schema_version'")
        assert len(made) == len(schema.tables)
        assert [name for name, sql in made if "WITHOUT ROWID" not in str(sql)] == []


def test_a_group_lies_in_the_order_of_its_tags_on_a_server_too(postgres: Postgres, query: Query) -> None:
    url = postgres.database("store")
    store = open_shuffler_store(url)
    tags = [item.tag for item in fill(store, range(50))]
    assert [tag for (tag,) in query(url, "SELECT tag FROM report ORDER BY ctid")] == sorted(tags)
    store.close()


@pytest.mark.exhaust
def test_what_stays_after_release_has_one_transaction_and_its_own_order(postgres: Postgres, query: Query) -> None:
    url = postgres.database("store")
    store = open_shuffler_store(url)
    digests = [item.report for item in arrivals(store)]
    raw = query(url, "SELECT digest FROM fresh ORDER BY ctid")
    assert [digest for (digest,) in raw] == digests, "PostgreSQL does keep the order of arrival until release"
    release(store, 1)
    assert [digest for (digest,) in query(url, "SELECT digest FROM spent ORDER BY ctid")] == sorted(digests)
    assert query(url, "SELECT count(DISTINCT xmin::text) FROM spent") == [(1,)]
    assert query(url, "SELECT count(*) FROM fresh") == [(0,)]
    store.close()


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


@pytest.mark.parametrize("end", ["release", "drop", "move"])
def test_no_file_holds_a_sealed_report_or_tag_after_its_round(tmp_path: Path, end: str) -> None:
    store = open_shuffler_store(f"sqlite:///{tmp_path / 'store.sqlite'}")
    reports = fill(store, range(200))
    store.open_round(BUSES, 2, now=0.0)
    assert all(item.tag in bytes_of(tmp_path) for item in reports)
    if end == "release":
        release(store, 1)
    elif end == "drop":
        store.drop(BUSES, 1)
    else:
        store.move(BUSES, 1, 2, [report(device, round=2) for device in range(200)])
    left = bytes_of(tmp_path)
    assert [item for item in reports if item.tag in left or item.sealed in left] == []
    assert all(item.report in left for item in reports), "retries are still recognised"
    assert (tmp_path / "store.sqlite-wal").stat().st_size == 0
    store.close()


def test_no_file_holds_a_body_after_delivery_or_what_was_set_aside_after_purge(tmp_path: Path) -> None:
    store = open_shuffler_store(f"sqlite:///{tmp_path / 'store.sqlite'}")
    fill(store, [1])
    store.begin_batch(outgoing(1))
    store.add_part("b1", 0, CANARY)
    store.finish_batch("b1", b"header")
    assert CANARY in bytes_of(tmp_path)
    store.mark_delivered("b1")
    assert CANARY not in bytes_of(tmp_path)
    store.close()
    analyzer = open_analyzer_store(f"sqlite:///{tmp_path / 'analyzer.sqlite'}")
    batch = BatchRecord("b1", BUSES, "00", (1,), 2, 1, 0.0, {"seal": 1})
    analyzer.count(CountedBatch(batch, (GroupTally("", 1, ((0, 1),)),), (("seal", CANARY),)))
    assert CANARY in bytes_of(tmp_path)
    analyzer.purge(before=60.0)
    assert CANARY not in bytes_of(tmp_path)
    analyzer.close()


def test_only_its_owner_reads_a_database_file(tmp_path: Path) -> None:
    store = open_shuffler_store(f"sqlite:///{tmp_path / 'store.sqlite'}")
    fill(store, [1])
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    store.close()


def test_no_time_that_is_kept_is_finer_than_a_minute() -> None:
    assert [minute(now) for now in (0.0, 59.999, 60.0, 119.9, 1_700_000_017.5)] == [
        0.0,
        0.0,
        60.0,
        60.0,
        1.7e9 - 20.0,
    ]
    world = World(campaign())
    world.clock.advance(17.5)
    world.shuffler.accept([message(world.campaign, DEVICES[0])], world.clock.now())
    (kept,) = world.store.rounds("commute")
    assert world.clock.now() % 60.0 > 0.0 and kept.opened == minute(world.clock.now())


def test_what_is_secret_has_a_mute_repr() -> None:
    shown = repr(
        [report(1), CountedBatch(BatchRecord("b", BUSES, "", (), 0, 0, 0.0, {}), (GroupTally("", 1, ((77, 1),)),))]
    )
    assert "77" not in shown
    assert "=b'" not in shown and '=b"' not in shown


def peak(work: Callable[[], object]) -> int:
    """Python's memory at its highest, bytes above the beginning."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.exhaust
def test_parts_are_read_one_at_a_time(lasting: str) -> None:
    store = open_shuffler_store(lasting)
    fill(store, [1])
    part = 1 << 18
    store.begin_batch(outgoing(1))
    for number in range(40):
        store.add_part("b1", number, bytes(part))
    store.finish_batch("b1", b"header")
    assert sum(len(body) for body in store.parts("b1")) == 40 * part
    assert peak(lambda: [None for _ in store.parts("b1")]) < 8 * part, "a few copies of one part, not 40"
    store.close()


@pytest.mark.exhaust
def test_tags_are_read_without_the_reports(lasting: str) -> None:
    store = open_shuffler_store(lasting)
    store.open_round(BUSES, 1, now=0.0)
    n, size = 2000, 5000
    for start in range(0, n, 500):
        store.accept([report(device, size=size) for device in range(start, start + 500)])
    store.tags(BUSES, [1])
    assert peak(lambda: store.tags(BUSES, [1])) < 1000 * n < n * size / 4
    store.close()


def test_asking_whether_a_store_is_ready_writes_nothing(tmp_path: Path) -> None:
    store = open_shuffler_store(f"sqlite:///{tmp_path / 'store.sqlite'}")
    store._database.forget()
    assert store.ready()
    assert (tmp_path / "store.sqlite-wal").read_bytes() == b""
    store.close()

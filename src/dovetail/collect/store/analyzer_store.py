"""The analyzer's store on SQLite or PostgreSQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Select, Table, delete, insert, select

from dovetail.collect.store.engine import Database, open_database
from dovetail.collect.store.interfaces import BatchRecord, CampaignId, CountedBatch, GroupTally
from dovetail.collect.store.tables import (
    ANALYZER_PROBE,
    ASIDE,
    CELL,
    CLASS_SIZE,
    COUNTED,
    COUNTED_ROUND,
    INCOMING,
    INCOMING_PART,
    PLACED,
    REJECTED,
    TALLY,
)
from dovetail.core.errors import DataError, StorageError

_PAGE = 1000  # rows read at a time


def open_analyzer_store(url: str) -> DatabaseAnalyzerStore:
    """The analyzer's store at `url`, made there if it is empty.

    Parameters
    ----------
    url : str
        `sqlite:///analyzer.sqlite`, `postgresql://user:password@host/name`, or `sqlite://` for one in memory.

    Raises
    ------
    ConfigError
        When `url` names no database that we know.
    StorageError
        When it cannot be reached or written, belongs to the shuffler, or is of another version.

    Examples
    --------
    >>> store = open_analyzer_store("sqlite://")
    >>> batch = BatchRecord("b1", "buses", "00", rounds=(1,), count=3, n=3, counted_at=60.0, rejected={})
    >>> store.count(CountedBatch(batch, (GroupTally("", 3, ((0, 1), (4, 2))),)))
    True
    >>> store.count(CountedBatch(batch, ()))
    False
    >>> store.tallies("buses", "b1")[0].counts
    ((0, 1), (4, 2))
    """
    return DatabaseAnalyzerStore(open_database(url, "analyzer"))


class DatabaseAnalyzerStore:
    """`AnalyzerStore` on a database; `open_analyzer_store` makes one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ready(self) -> bool:
        return self._database.ready(ANALYZER_PROBE)

    def has_counted(self, batch: str) -> bool:
        statement = select(COUNTED.c.id).where(COUNTED.c.id == batch)
        return self._database.read(lambda connection: connection.scalar(statement)) is not None

    def count(self, counted: CountedBatch) -> bool:
        def work(connection: Connection) -> bool:
            first = self._database.insert(COUNTED).values(_row(counted.batch)).on_conflict_do_nothing()
            _delete_parts(connection, [counted.batch.id])
            if connection.scalar(first.returning(COUNTED.c.id)) is None:
                return False
            self._claim_rounds(connection, counted.batch)
            for table, rows in _rows(counted):
                if rows:
                    connection.execute(insert(table), rows)
            return True

        in_parts = self.manifest(counted.batch.id) is not None
        new = self._database.write(work)
        if in_parts:
            self._database.forget(INCOMING_PART)
        return new

    def expect(self, batch: str, manifest: bytes, now: float) -> bool:
        row = {"batch": batch, "manifest": manifest, "since": int(now // 60) * 60}
        first = self._database.insert(INCOMING).values(row).on_conflict_do_nothing()

        def work(connection: Connection) -> bool:
            connection.execute(first)
            if connection.scalar(select(COUNTED.c.id).where(COUNTED.c.id == batch)) is not None:
                _delete_parts(connection, [batch])
            return connection.scalar(select(INCOMING.c.manifest).where(INCOMING.c.batch == batch)) == manifest

        return self._database.write(work)

    def manifest(self, batch: str) -> bytes | None:
        statement = select(INCOMING.c.manifest).where(INCOMING.c.batch == batch)
        return self._database.read(lambda connection: connection.scalar(statement))

    def arrived(self, batch: str) -> list[int]:
        statement = select(INCOMING_PART.c.number).where(INCOMING_PART.c.batch == batch)
        return self._database.read(lambda connection: sorted(connection.scalars(statement)))

    def keep_part(self, batch: str, number: int, body: bytes) -> bool:
        awaited = select(INCOMING.c.batch).where(INCOMING.c.batch == batch).with_for_update(read=True)
        row = {"batch": batch, "number": number, "body": body}
        store = self._database.insert(INCOMING_PART).values(row).on_conflict_do_nothing()

        def work(connection: Connection) -> bool:
            if connection.scalar(awaited) is None:
                return False
            connection.execute(store)
            return True

        return self._database.write(work)

    def arrived_part(self, batch: str, number: int) -> bytes:
        here = (INCOMING_PART.c.batch == batch, INCOMING_PART.c.number == number)
        body = self._database.read(lambda connection: connection.scalar(select(INCOMING_PART.c.body).where(*here)))
        if body is None:
            raise StorageError(f"part {number} of the batch {batch} is not here.")
        return bytes(body)

    def forget_parts(self, batch: str) -> None:
        self._database.write(lambda connection: _delete_parts(connection, [batch]))
        self._database.forget(INCOMING_PART)

    def purge_parts(self, before: float) -> int:
        old = select(INCOMING.c.batch).where(INCOMING.c.since < before)

        def work(connection: Connection) -> int:
            return _delete_parts(connection, connection.scalars(old).all())

        gone = self._database.write(work)
        self._database.forget(INCOMING_PART)
        return gone

    def _claim_rounds(self, connection: Connection, batch: BatchRecord) -> None:
        rows = [{"campaign": batch.campaign, "number": number, "batch": batch.id} for number in batch.rounds]
        first = self._database.insert(COUNTED_ROUND).values(rows).on_conflict_do_nothing()
        claimed = connection.scalars(first.returning(COUNTED_ROUND.c.number)).all()
        if taken := set(batch.rounds).difference(claimed):
            raise DataError(f"round {min(taken)} of {batch.campaign} has been counted already.")

    def batches(self, campaign: CampaignId) -> list[BatchRecord]:
        def work(connection: Connection) -> list[BatchRecord]:
            rounds = defaultdict[str, list[int]](list)
            rejected = defaultdict[str, dict[str, int]](dict)
            mine = COUNTED.c.campaign == campaign
            of_rounds = select(COUNTED_ROUND).where(COUNTED_ROUND.c.campaign == campaign)
            for row in connection.execute(of_rounds.order_by(COUNTED_ROUND.c.number)):
                rounds[row.batch].append(row.number)
            of_kinds = select(REJECTED).join(COUNTED).where(mine).order_by(REJECTED.c.kind)
            for batch, kind, count in connection.execute(of_kinds):
                rejected[batch][kind] = count
            classes = defaultdict[str, list[int]](list)
            of_classes = select(CLASS_SIZE).join(COUNTED).where(mine).order_by(CLASS_SIZE.c.place)
            for batch, _, count in connection.execute(of_classes):
                classes[batch].append(count)
            return [
                BatchRecord(
                    id=row.id,
                    campaign=campaign,
                    digest=row.digest,
                    rounds=tuple(rounds[row.id]),
                    count=row.total,
                    n=row.n,
                    counted_at=float(row.counted_at),
                    rejected=rejected[row.id],
                    smallest=row.smallest,
                    classes=tuple(classes[row.id]),
                )
                for row in connection.execute(select(COUNTED).where(mine))
            ]

        return sorted(self._database.read(work), key=lambda batch: (batch.rounds, batch.id))

    def tallies(self, campaign: CampaignId, batch: str) -> list[GroupTally]:
        here = (COUNTED.c.id == batch, COUNTED.c.campaign == campaign)
        groups = select(TALLY.c.group, TALLY.c.n).join(COUNTED).where(*here).order_by(TALLY.c.group)
        cells = select(CELL.c.group, CELL.c.cell, CELL.c.total).where(CELL.c.batch == batch)

        def work(connection: Connection) -> list[GroupTally]:
            counts = defaultdict[str, list[tuple[int, int]]](list)
            for group, cell, count in connection.execute(cells.order_by(CELL.c.group, CELL.c.cell)):
                counts[group].append((cell, count))
            return [GroupTally(group, n, tuple(counts[group])) for group, n in connection.execute(groups)]

        return self._database.read(work)

    def reports_by_slot(self, batch: str) -> Iterator[tuple[int, bytes]]:
        columns = select(PLACED.c.slot, PLACED.c.report).where(PLACED.c.batch == batch)
        return ((slot, report) for slot, report in self._pages(columns, PLACED.c.slot))

    def aside(self, batch: str) -> Iterator[tuple[str, bytes]]:
        columns = select(ASIDE.c.place, ASIDE.c.kind, ASIDE.c.sealed).where(ASIDE.c.batch == batch)
        return ((kind, sealed) for _, kind, sealed in self._pages(columns, ASIDE.c.place))

    def purge(self, before: float) -> int:
        old = select(COUNTED.c.id).where(COUNTED.c.counted_at < before)
        statement = delete(ASIDE).where(ASIDE.c.batch.in_(old))
        gone = self._database.write(lambda connection: connection.execute(statement).rowcount)
        self._database.forget(ASIDE)
        return gone

    def close(self) -> None:
        self._database.close()

    def _pages(self, statement: Select[Any], key: Any) -> Iterator[Any]:
        """Rows by their first column, a page at a time, so that neither memory nor a transaction grows with them."""
        last = -1
        while True:
            page = statement.where(key > last).order_by(key).limit(_PAGE)
            rows = self._database.read(lambda connection: connection.execute(page).all())  # noqa: B023
            if not rows:
                return
            yield from rows
            last = rows[-1][0]


def _delete_parts(connection: Connection, batches: Sequence[str]) -> int:
    """Delete what has come of these batches; how many of them there were. Anybody who adds a part has to wait."""
    connection.execute(select(INCOMING.c.batch).where(INCOMING.c.batch.in_(batches)).with_for_update())
    connection.execute(delete(INCOMING_PART).where(INCOMING_PART.c.batch.in_(batches)))
    return connection.execute(delete(INCOMING).where(INCOMING.c.batch.in_(batches))).rowcount


def _row(batch: BatchRecord) -> dict[str, Any]:
    return {
        "id": batch.id,
        "campaign": batch.campaign,
        "digest": batch.digest,
        "total": batch.count,
        "n": batch.n,
        "smallest": batch.smallest,
        "counted_at": int(batch.counted_at // 60) * 60,
    }


def _rows(counted: CountedBatch) -> Iterator[tuple[Table, list[dict[str, Any]]]]:
    """Rows that belong to a batch, table by table; parents first."""
    batch, tallies = {"batch": counted.batch.id}, counted.tallies
    yield REJECTED, [batch | {"kind": kind, "total": count} for kind, count in counted.batch.rejected.items()]
    yield CLASS_SIZE, [batch | {"place": place, "total": n} for place, n in enumerate(counted.batch.classes)]
    yield TALLY, [batch | {"group": tally.group, "n": tally.n} for tally in tallies]
    yield (
        CELL,
        [batch | {"group": t.group, "cell": cell, "total": count} for t in tallies for cell, count in t.counts],
    )
    aside = sorted(counted.aside)
    yield ASIDE, [batch | {"place": n, "kind": kind, "sealed": sealed} for n, (kind, sealed) in enumerate(aside)]
    yield PLACED, [batch | {"slot": slot, "report": report} for slot, report in counted.placed]

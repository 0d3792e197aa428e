"""The shuffler's store on SQLite or PostgreSQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial

from sqlalchemy import BigInteger, Connection, and_, cast, delete, func, select, update

from dovetail.collect.store import batch_transactions, report_transactions, task_locks
from dovetail.collect.store.engine import Database
from dovetail.collect.store.interfaces import (
    AcceptOutcome,
    CampaignId,
    Moment,
    OutgoingBatch,
    RoundRecord,
    RoundState,
    SealedReport,
)
from dovetail.collect.store.migrations import open_database
from dovetail.collect.store.tables import (
    BATCH,
    CHALLENGE,
    FAULT,
    FRESH,
    MOMENT,
    PART,
    REPORT,
    ROUND,
    SHARD,
    SHUFFLER_PROBE,
    SPENT,
)
from dovetail.collect.store.task_locks import Task
from dovetail.collect.store.vault_claim import VaultClaim
from dovetail.core.errors import StorageError

_CLOCKS_DIFFER = 3_600  # seconds, at most, between the clocks of processes on one database


def open_shuffler_store(url: str) -> DatabaseShufflerStore:
    """The shuffler's store at `url`, its schema brought up to date.

    Parameters
    ----------
    url : str
        `sqlite:///shuffler.sqlite`, `postgresql://user:password@host/name`, or `sqlite://` for one in memory.

    Raises
    ------
    ConfigError
        When `url` names no database that we know.
    StorageError
        When it cannot be reached or written, belongs to the analyzer, or is newer than this version.

    Examples
    --------
    >>> store = open_shuffler_store("sqlite://")
    >>> round = store.open_round("buses", 1, now=90.0)
    >>> round.state, round.count, round.opened
    ('open', 0, 60.0)
    >>> report = SealedReport("buses", 1, tag=bytes(32), report=bytes(32), sealed=b"sealed")
    >>> store.accept([report, report])
    ['new', 'duplicate']
    """
    return DatabaseShufflerStore(open_database(url, "shuffler"))


class DatabaseShufflerStore:
    """`ShufflerStore` on a database; `open_shuffler_store` makes one."""

    def __init__(self, database: Database) -> None:
        self._database, self._vault = database, VaultClaim(database)

    def ready(self) -> bool:
        return self._database.ready(SHUFFLER_PROBE)

    def claim_vault(self, identity: str, foreign: Callable[[], None] = lambda: None) -> bool:
        return self._vault.claim(identity, foreign)

    def moment(self) -> Moment | None:
        row = self._database.read(lambda connection: connection.execute(select(MOMENT)).one_or_none())
        if row is None:
            return None
        return Moment(float(row.time), row.boot, float(row.booted), bool(row.halted), row.confirmed)

    def record_moment(self, moment: Moment) -> None:
        times = {"time": int(moment.time // 60) * 60, "booted": int(moment.booted // 60) * 60}
        row = {"one": 1, "boot": moment.boot, "halted": int(moment.halted), **times}
        row |= {"confirmed": moment.confirmed}
        statement = self._database.insert(MOMENT).values(row).on_conflict_do_update(index_elements=["one"], set_=row)
        self._database.write(lambda connection: connection.execute(statement))
        self._database.forget(MOMENT)  # it is written every minute, and would keep the log from being empty

    def open_round(
        self, campaign: CampaignId, number: int, now: float, key: str | None = None, *, state: RoundState = "open"
    ) -> RoundRecord:
        def work(connection: Connection) -> None:
            row = {"campaign": campaign, "number": number, "state": state, "total": 0, "superseded": 0, "key": key}
            opened = {"opened": int(now // 60) * 60}
            connection.execute(self._database.insert(ROUND).on_conflict_do_nothing(), [row | opened])

        found = self._round(campaign, number)
        if not found:
            self._database.write(work)
            found = self._round(campaign, number)
        return found[0]

    def record_key(self, campaign: CampaignId, number: int, key: str) -> None:
        here = and_(ROUND.c.campaign == campaign, ROUND.c.number == number, ROUND.c.key.is_(None))
        statement = update(ROUND).where(here).values(key=key)
        self._database.write(lambda connection: connection.execute(statement))

    def rounds(self, campaign: CampaignId) -> list[RoundRecord]:
        return self._round(campaign, None)

    def alone(self, task: Task, patience: float = 0.0) -> AbstractContextManager[bool]:
        return task_locks.alone(self._database, task, patience)

    def use_challenge(self, digest: bytes, until: float, now: float) -> bool:
        row = {"digest": digest, "until": int(until) + _CLOCKS_DIFFER}
        first = self._database.insert(CHALLENGE).values(row).on_conflict_do_nothing().returning(CHALLENGE.c.digest)

        def work(connection: Connection) -> bool:
            connection.execute(delete(CHALLENGE).where(CHALLENGE.c.until < now))
            return connection.scalar(first) is not None

        return self._database.write(work)

    def accept(self, reports: Sequence[SealedReport]) -> list[AcceptOutcome]:
        return (
            self._database.write(lambda connection: report_transactions.accept(connection, reports))
            if reports
            else []
        )

    def tags(self, campaign: CampaignId, rounds: Sequence[int]) -> list[tuple[int, bytes]]:
        wanted = and_(REPORT.c.campaign == campaign, REPORT.c.number.in_(rounds))
        statement = select(REPORT.c.number, REPORT.c.tag).where(wanted).order_by(REPORT.c.tag, REPORT.c.number)
        return self._database.read(lambda connection: [(n, tag) for n, tag in connection.execute(statement)])

    def scan_tags(self, campaign: CampaignId, number: int, after: bytes, most: int) -> list[bytes]:
        here = and_(REPORT.c.campaign == campaign, REPORT.c.number == number, REPORT.c.tag > after)
        statement = select(REPORT.c.tag).where(here).order_by(REPORT.c.tag).limit(most)
        return self._database.read(lambda connection: list(connection.scalars(statement)))

    def fetch(self, campaign: CampaignId, keys: Sequence[tuple[int, bytes]]) -> list[bytes]:
        tags = defaultdict(list)
        for number, tag in keys:
            tags[number].append(tag)

        def work(connection: Connection) -> dict[tuple[int, bytes], bytes]:
            return {
                (number, tag): sealed
                for number, all_tags in tags.items()
                for tag, sealed in report_transactions.fetch_sealed(connection, (campaign, number), all_tags).items()
            }

        found = self._database.read(work)
        missing = sum(key not in found for key in keys)
        if missing:
            raise StorageError(f"{missing} reports of {campaign} are gone: their round was released or dropped.")
        return [found[key] for key in keys]

    def set_state(self, campaign: CampaignId, number: int, before: RoundState, after: RoundState) -> bool:
        place = (campaign, number)
        return self._database.write(
            lambda connection: report_transactions.set_state(connection, place, before, after)
        )

    def move(self, campaign: CampaignId, number: int, into: int, reports: Sequence[SealedReport]) -> int:
        place = (campaign, number)
        superseded = self._database.write(
            lambda connection: report_transactions.move(connection, place, into, reports)
        )
        self._database.forget(REPORT, FRESH, SHARD)
        return superseded

    def drop(self, campaign: CampaignId, number: int) -> int:
        dropped = self._database.write(lambda connection: report_transactions.drop(connection, (campaign, number)))
        self._database.forget(REPORT, FRESH, SHARD)
        return dropped

    def begin_batch(self, batch: OutgoingBatch) -> bool:
        return self._database.write(lambda connection: batch_transactions.begin(connection, batch))

    def add_part(self, batch: str, number: int, body: bytes, mac: bytes = b"") -> None:
        self._database.write(lambda connection: batch_transactions.add_part(connection, batch, number, body, mac))

    def finish_batch(self, batch: str, header: bytes) -> None:
        self._database.write(lambda connection: batch_transactions.finish(connection, batch, header))
        self._database.forget(REPORT, FRESH, SHARD)

    def abandon_batch(self, batch: str) -> None:
        self._database.write(lambda connection: batch_transactions.abandon(connection, batch))
        self._database.forget(PART)

    def outgoing(self) -> list[OutgoingBatch]:
        return self._database.read(batch_transactions.outgoing)

    def parts(self, batch: str) -> Iterator[bytes]:
        for number in range(self._database.read(partial(batch_transactions.finished_parts, batch=batch))):
            yield self.part(batch, number)

    def part_macs(self, batch: str) -> dict[int, bytes]:
        return self._database.read(partial(batch_transactions.part_macs, batch=batch))

    def part(self, batch: str, number: int) -> bytes:
        return self._database.read(partial(batch_transactions.part, batch=batch, number=number))

    def mark_delivered(self, batch: str) -> None:
        self._database.write(lambda connection: batch_transactions.deliver(connection, batch))
        self._database.forget(PART)

    def discard_batch(self, batch: str) -> None:
        self._database.write(lambda connection: batch_transactions.discard(connection, batch))
        self._database.forget(PART)

    def add_faults(self, faults: dict[tuple[CampaignId, str], int]) -> None:
        rows = [{"campaign": c, "kind": kind, "total": more} for (c, kind), more in sorted(faults.items())]
        add = self._database.insert(FAULT)
        add = add.on_conflict_do_update(
            index_elements=[FAULT.c.campaign, FAULT.c.kind], set_={"total": FAULT.c.total + add.excluded.total}
        )
        if rows:
            self._database.write(lambda connection: connection.execute(add, rows))

    def faults(self, campaign: CampaignId) -> dict[str, int]:
        statement = select(FAULT.c.kind, FAULT.c.total).where(FAULT.c.campaign == campaign).order_by(FAULT.c.kind)
        return self._database.read(lambda connection: dict(connection.execute(statement).all()))

    def purge(self, before: float) -> int:
        gone = self._database.write(lambda connection: batch_transactions.purge(connection, before))
        self._database.forget(SPENT, BATCH)
        return gone

    def close(self) -> None:
        self._vault.release()
        self._database.close()

    def _round(self, campaign: CampaignId, number: int | None) -> list[RoundRecord]:
        """One round, or all of a campaign; a merged one names the batch of the round that has its reports."""
        final = ROUND.alias()
        joined = and_(final.c.campaign == ROUND.c.campaign, final.c.number == ROUND.c.into)
        batch = func.coalesce(ROUND.c.batch, final.c.batch)
        here = and_(SHARD.c.campaign == ROUND.c.campaign, SHARD.c.number == ROUND.c.number)
        more = select(func.coalesce(cast(func.sum(SHARD.c.total), BigInteger), 0)).where(here).scalar_subquery()
        facts = (ROUND.c.number, ROUND.c.state, ROUND.c.total + more, ROUND.c.opened)
        columns = (*facts, batch, ROUND.c.superseded, ROUND.c.into, ROUND.c.key)
        statement = select(*columns).outerjoin(final, joined).where(ROUND.c.campaign == campaign)
        if number is not None:
            statement = statement.where(ROUND.c.number == number)
        rows = self._database.read(lambda connection: connection.execute(statement.order_by(ROUND.c.number)).all())
        return [
            RoundRecord(campaign, n, state, count, float(opened), *rest) for n, state, count, opened, *rest in rows
        ]

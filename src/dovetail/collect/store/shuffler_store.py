"""The shuffler's store on SQLite or PostgreSQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial

from sqlalchemy import BigInteger, Connection, and_, cast, delete, func, insert, select, update

from dovetail.collect.store import engine as task_locks
from dovetail.collect.store import report_transactions
from dovetail.collect.store.engine import Database, Task, VaultClaim, open_database
from dovetail.collect.store.interfaces import (
    AcceptOutcome,
    CampaignId,
    Moment,
    OutgoingBatch,
    RoundRecord,
    RoundState,
    SealedReport,
)
from dovetail.collect.store.report_transactions import RoundId, change, clear, lock
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
from dovetail.core.errors import StorageError

# Batches on their way out: built, finished or abandoned, delivered; each function inside one transaction.


_FINISHED = ("delivered", "dropped", "merged")


def begin(connection: Connection, batch: OutgoingBatch) -> bool:
    """Claim the rounds of a batch; False if one of them is taken."""
    found = lock(connection, [batch.campaign], "open", "held")
    places = [(batch.campaign, number) for number in batch.rounds]
    if not all(place in found for place in places):
        return False
    row = {"id": batch.id, "campaign": batch.campaign, "total": batch.count, "header": b"", "state": "building"}
    row["secret"] = batch.secret or None
    connection.execute(insert(BATCH), [row])
    for place in places:
        change(connection, place, state="releasing", resume=found[place].state, batch=batch.id)
    return True


def add_part(connection: Connection, batch: str, number: int, body: bytes, mac: bytes) -> None:
    """Keep a part of a batch that is still ours to build."""
    _building(connection, batch)
    connection.execute(insert(PART), [{"batch": batch, "number": number, "body": body, "mac": mac or None}])


def finish(connection: Connection, batch: str, header: bytes) -> None:
    """From "building" to "waiting", and from "releasing" to "released"."""
    campaign = _building(connection, batch)
    for place in _places(connection, campaign, batch):
        clear(connection, place)
        change(connection, place, state="released", resume=None)
    connection.execute(update(BATCH).where(BATCH.c.id == batch).values(header=header, state="waiting", secret=None))


def abandon(connection: Connection, batch: str) -> None:
    """Take back a batch that was not finished."""
    campaign = _lock_batch(connection, batch, "building")
    if campaign is None:
        return
    mine = and_(ROUND.c.campaign == campaign, ROUND.c.batch == batch)
    connection.execute(update(ROUND).where(mine).values(state=ROUND.c.resume, resume=None, batch=None))
    connection.execute(delete(PART).where(PART.c.batch == batch))
    connection.execute(delete(BATCH).where(BATCH.c.id == batch))


def deliver(connection: Connection, batch: str) -> None:
    """From "waiting" to "delivered"; nothing if another replica has said so already."""
    campaign = _lock_batch(connection, batch, "waiting", "delivered")
    if campaign is None:
        raise StorageError(f"the batch {batch} does not wait for delivery.")
    mine = and_(ROUND.c.campaign == campaign, ROUND.c.batch == batch)
    connection.execute(update(ROUND).where(mine).values(state="delivered"))
    connection.execute(update(BATCH).where(BATCH.c.id == batch).values(state="delivered", header=b""))
    connection.execute(delete(PART).where(PART.c.batch == batch))


def discard(connection: Connection, batch: str) -> None:
    """From "waiting" to nothing, and from "released" to "dropped"."""
    campaign = _lock_batch(connection, batch, "waiting")
    if campaign is None:
        return
    mine = and_(ROUND.c.campaign == campaign, ROUND.c.batch == batch)
    connection.execute(update(ROUND).where(mine).values(state="dropped"))
    connection.execute(delete(PART).where(PART.c.batch == batch))
    connection.execute(delete(BATCH).where(BATCH.c.id == batch))


def outgoing(connection: Connection) -> list[OutgoingBatch]:
    """Batches that are not delivered, by id."""
    rows = connection.execute(select(BATCH).where(BATCH.c.state != "delivered").order_by(BATCH.c.id)).all()
    return [
        OutgoingBatch(
            id=row.id,
            campaign=row.campaign,
            rounds=tuple(number for _, number in _places(connection, row.campaign, row.id)),
            count=row.total,
            header=row.header,
            state=row.state,
            secret=row.secret or b"",
        )
        for row in rows
    ]


def finished_parts(connection: Connection, batch: str) -> int:
    """How many parts the body of a finished batch has."""
    if _lock_batch(connection, batch, "waiting") is None:
        raise StorageError(f"the batch {batch} does not wait for delivery.")
    return connection.scalar(select(func.count()).where(PART.c.batch == batch)) or 0


def part_macs(connection: Connection, batch: str) -> dict[int, bytes]:
    """Authentication codes of the parts of the body, by number."""
    rows = connection.execute(select(PART.c.number, PART.c.mac).where(PART.c.batch == batch))
    return {number: bytes(mac or b"") for number, mac in rows}


def part(connection: Connection, batch: str, number: int) -> bytes:
    """One part of the body."""
    body = connection.scalar(select(PART.c.body).where(PART.c.batch == batch, PART.c.number == number))
    if body is None:
        raise StorageError(f"the batch {batch} was delivered by another replica.")
    return bytes(body)


def purge(connection: Connection, before: float) -> int:
    """Forget digests and batches of rounds that ended and were opened before this time; how many rows."""
    final = ROUND.alias("final")  # of a merged round: the one that has its reports
    ended = (
        select(ROUND.c.campaign, ROUND.c.number, ROUND.c.batch)
        .join(
            final,
            and_(final.c.campaign == ROUND.c.campaign, final.c.number == func.coalesce(ROUND.c.into, ROUND.c.number)),
        )
        .where(ROUND.c.opened < before, ROUND.c.state.in_(_FINISHED), final.c.state.in_(_FINISHED))
    )
    gone = 0
    for campaign, number, _ in (rows := connection.execute(ended).all()):
        mine = and_(SPENT.c.campaign == campaign, SPENT.c.number == number)
        gone += connection.execute(delete(SPENT).where(mine)).rowcount
    return gone + _purge_batches(connection, [row.batch for row in rows if row.batch], before)


def _purge_batches(connection: Connection, batches: Sequence[str], before: float) -> int:
    gone = 0
    for batch in sorted(set(batches)):
        younger = select(ROUND.c.number).where(ROUND.c.batch == batch, ROUND.c.opened >= before).exists()
        gone += connection.execute(delete(BATCH).where(BATCH.c.id == batch, ~younger)).rowcount
    return gone


def _lock_batch(connection: Connection, batch: str, *states: str) -> CampaignId | None:
    """The campaign of a batch in one of these states, and nobody else's until the transaction ends."""
    wanted = and_(BATCH.c.id == batch, BATCH.c.state.in_(states))
    return connection.scalar(select(BATCH.c.campaign).where(wanted).with_for_update())


def _building(connection: Connection, batch: str) -> CampaignId:
    campaign = _lock_batch(connection, batch, "building")
    if campaign is None:
        raise StorageError(
            f"the batch {batch} is not under construction: another replica took it back or finished it."
        )
    return campaign


def _places(connection: Connection, campaign: CampaignId, batch: str) -> list[RoundId]:
    mine = and_(ROUND.c.campaign == campaign, ROUND.c.batch == batch)
    return [
        (campaign, number)
        for number in connection.scalars(select(ROUND.c.number).where(mine).order_by(ROUND.c.number))
    ]


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
        return self._database.write(lambda connection: begin(connection, batch))

    def add_part(self, batch: str, number: int, body: bytes, mac: bytes = b"") -> None:
        self._database.write(lambda connection: add_part(connection, batch, number, body, mac))

    def finish_batch(self, batch: str, header: bytes) -> None:
        self._database.write(lambda connection: finish(connection, batch, header))
        self._database.forget(REPORT, FRESH, SHARD)

    def abandon_batch(self, batch: str) -> None:
        self._database.write(lambda connection: abandon(connection, batch))
        self._database.forget(PART)

    def outgoing(self) -> list[OutgoingBatch]:
        return self._database.read(outgoing)

    def parts(self, batch: str) -> Iterator[bytes]:
        for number in range(self._database.read(partial(finished_parts, batch=batch))):
            yield self.part(batch, number)

    def part_macs(self, batch: str) -> dict[int, bytes]:
        return self._database.read(partial(part_macs, batch=batch))

    def part(self, batch: str, number: int) -> bytes:
        return self._database.read(partial(part, batch=batch, number=number))

    def mark_delivered(self, batch: str) -> None:
        self._database.write(lambda connection: deliver(connection, batch))
        self._database.forget(PART)

    def discard_batch(self, batch: str) -> None:
        self._database.write(lambda connection: discard(connection, batch))
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
        gone = self._database.write(lambda connection: purge(connection, before))
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

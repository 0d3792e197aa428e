"""Batches on their way out: built, finished or abandoned, delivered; each function inside one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, and_, delete, func, insert, select, update

from dovetail.collect.store.interfaces import CampaignId, OutgoingBatch
from dovetail.collect.store.report_transactions import RoundId, change, clear, lock
from dovetail.collect.store.tables import BATCH, PART, ROUND, SPENT
from dovetail.core.errors import StorageError

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
    """What the builder left beside each part of the body, by its number."""
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

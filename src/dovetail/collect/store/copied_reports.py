"""`accept` on PostgreSQL, by many processes at once: COPY into a temporary table, then what nobody has stored.

Processes that accept reports of a campaign share a lock on it, which whoever ends a round takes alone: a round that
takes reports does so until all transactions in flight have ended, and the count of a round that has ended is exact.
Beside one another they decide by the keys of the tables: the first to store a digest, or a tag in a round, has it.
What they add to counts goes into shards by the first bits of tags, summed up by whoever has the campaign alone.
Everybody takes locks in one order: campaigns, digests, tags, shards.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, bindparam, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError

from dovetail.collect.store.interfaces import AcceptOutcome, CampaignId, SealedReport
from dovetail.collect.store.tables import ROUND, SHARD

Place = tuple[CampaignId, int, bytes]  # a device in a round, by tag

_CLASS = 0x0D_07_E7_A1  # of the locks on campaigns
_BITS = 4  # of a tag: its shard

# A temporary table is in no log, and what lies in it is sealed and in the order of its tags.
_TABLE = (
    "CREATE TEMPORARY TABLE IF NOT EXISTS arriving "
    "(campaign text, number bigint, tag bytea, digest bytea, sealed bytea) ON COMMIT DELETE ROWS"
)
_COPY = "COPY pg_temp.arriving (campaign, number, tag, digest, sealed) FROM STDIN (FORMAT BINARY)"
_NOTE = text(
    "INSERT INTO fresh (digest, campaign, number) SELECT digest, campaign, number FROM pg_temp.arriving "
    "ORDER BY digest ON CONFLICT DO NOTHING RETURNING digest"
)
# A subquery for each row leaves the planner no choice but the key, whatever it believes of a table just filled.
_SPENT = text(
    "SELECT digest FROM (SELECT digest, (SELECT true FROM spent WHERE spent.digest = arriving.digest) AS known "
    "FROM pg_temp.arriving) AS asked WHERE known"
)
_LEAVE = text("DELETE FROM pg_temp.arriving WHERE digest = ANY(:digests)")
_FORGET = text("DELETE FROM fresh WHERE digest = ANY(:digests)")
_STORE = text(
    "INSERT INTO report (campaign, number, tag, sealed) SELECT campaign, number, tag, sealed FROM pg_temp.arriving "
    "ORDER BY campaign, number, tag ON CONFLICT DO NOTHING RETURNING campaign, number, tag"
)
_ADD = insert(SHARD)
_ADD = _ADD.on_conflict_do_update(
    index_elements=[SHARD.c.campaign, SHARD.c.number, SHARD.c.shard],
    set_={"total": SHARD.c.total + _ADD.excluded.total},
)
_HOME = text(
    "WITH gone AS (DELETE FROM shard WHERE campaign = ANY(:campaigns) RETURNING campaign, number, total), "
    "sums AS (SELECT campaign, number, sum(total)::bigint AS more FROM gone GROUP BY campaign, number) "
    "UPDATE round SET total = round.total + sums.more FROM sums "
    "WHERE round.campaign = sums.campaign AND round.number = sums.number"
)
_OPEN = select(ROUND.c.campaign, ROUND.c.number).where(
    ROUND.c.campaign.in_(bindparam("campaigns", expanding=True)), ROUND.c.state == "open"
)


def share(connection: Connection, campaigns: Iterable[CampaignId]) -> set[tuple[CampaignId, int]]:
    """The open rounds of these campaigns, which stay open until this transaction ends."""
    named = sorted(set(campaigns))
    _lock(connection, "pg_advisory_xact_lock_shared", named)
    return {(row.campaign, row.number) for row in connection.execute(_OPEN, {"campaigns": named})}


def take_alone(connection: Connection, campaigns: Iterable[CampaignId]) -> None:
    """Wait until nobody accepts reports of these campaigns, keep others from it, sum the shards of their rounds."""
    named = sorted(set(campaigns))
    _lock(connection, "pg_advisory_xact_lock", named)
    connection.execute(_HOME, {"campaigns": named})


def store_first(connection: Connection, reports: Sequence[SealedReport]) -> list[AcceptOutcome]:
    """What becomes of reports of open rounds, no two of one device and round, and no two with one digest."""
    connection.exec_driver_sql(_TABLE)
    _copy(connection, reports)
    noted = set(connection.scalars(_NOTE))
    spent = set(connection.scalars(_SPENT))  # after noting: what another process has just moved there is seen
    _run(connection, _FORGET, noted & spent)
    known = {report.report for report in reports if report.report not in noted or report.report in spent}
    _run(connection, _LEAVE, known)
    stored: set[Place] = {(row.campaign, row.number, row.tag) for row in connection.execute(_STORE)}
    outcomes: list[AcceptOutcome] = [
        "duplicate" if report.report in known else "new" if _place(report) in stored else "second"
        for report in reports
    ]
    seconds = {report.report for report, told in zip(reports, outcomes, strict=True) if told == "second"}
    _run(connection, _FORGET, seconds)
    add_to_shards(connection, stored)
    return outcomes


def add_to_shards(connection: Connection, stored: Iterable[Place]) -> None:
    """Count what was stored."""
    more = Counter((campaign, number, tag[0] >> (8 - _BITS)) for campaign, number, tag in stored)
    rows = [{"campaign": c, "number": n, "shard": shard, "total": count} for (c, n, shard), count in more.items()]
    if rows:
        connection.execute(_ADD.values(sorted(rows, key=lambda row: (row["campaign"], row["number"], row["shard"]))))


def _place(report: SealedReport) -> Place:
    return report.campaign, report.round, report.tag


def _lock(connection: Connection, function: str, campaigns: Sequence[CampaignId]) -> None:
    for campaign in campaigns:
        key = int.from_bytes(sha256(campaign.encode()).digest()[:4], "big", signed=True)
        connection.exec_driver_sql(f"SELECT {function}({_CLASS}, {key})")


def _run(connection: Connection, statement: Any, digests: set[bytes]) -> None:
    if digests:
        connection.execute(statement, {"digests": sorted(digests)})


def _copy(connection: Connection, reports: Sequence[SealedReport]) -> None:
    import psycopg  # there where there is PostgreSQL

    driver: Any = connection.connection.driver_connection
    try:
        with driver.cursor() as cursor, cursor.copy(_COPY) as copy:
            copy.write(_binary(reports))
    except psycopg.Error as error:  # as SQLAlchemy would have said it
        raise DBAPIError(_COPY, None, error, connection_invalidated=bool(driver.broken)) from None


def _binary(reports: Sequence[SealedReport]) -> bytes:
    """PostgreSQL's binary form of rows, by tag."""
    out = [b"PGCOPY\n\xff\r\n\0", bytes(8)]
    for report in sorted(reports, key=_place):
        out.append(b"\0\5")
        for value in (
            report.campaign.encode(),
            report.round.to_bytes(8, "big", signed=True),
            report.tag,
            report.report,
            report.sealed,
        ):
            out += (struct.pack("!i", len(value)), value)
    return b"".join([*out, b"\xff\xff"])

"""Reports on their way in and out of rounds: the work of `accept`, `move` and `drop` inside one transaction."""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, TypeVar

from sqlalchemy import (
    ARRAY,
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    LargeBinary,
    Row,
    and_,
    bindparam,
    delete,
    func,
    insert,
    select,
    text,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.exc import DBAPIError

from dovetail.collect.store.interfaces import AcceptOutcome, CampaignId, RoundState, SealedReport
from dovetail.collect.store.tables import FRESH, REPORT, ROUND, SHARD, SPENT
from dovetail.core.errors import StorageError

# `accept` on PostgreSQL, by many processes at once: COPY into a temporary table, then what nobody has stored.
#
# Processes that accept reports of a campaign share a lock on it, which whoever ends a round takes alone: a round that
# takes reports does so until all transactions in flight have ended, and the count of a round that has ended is exact.
# Beside one another they decide by the keys of the tables: the first to store a digest, or a tag in a round, has it.
# What they add to counts goes into shards by the first bits of tags, summed up by whoever has the campaign alone.
# Everybody takes locks in one order: campaigns, digests, tags, shards.


Place = tuple[CampaignId, int, bytes]  # a device in a round, by tag

_CLASS = 0x0D_07_E7_A1  # of the locks on campaigns
_BITS = 4  # of a tag: its shard

# A temporary table is in no log, and what lies in it is sealed and in the order of its tags.
_TABLE = (
    "CREATE TEMPORARY TABLE IF NOT EXISTS arriving "
    "(campaign text, number bigint, tag bytea, digest bytea, sealed bytea) ON COMMIT DELETE ROWS"
)
_COPY = "COPY pg_temp.arriving (campaign, number, tag, digest, sealed) FROM STDIN (FORMAT BINARY)"
_COPIED_REPORTS_NOTE = text(
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
_COPIED_REPORTS_STORE = text(
    "INSERT INTO report (campaign, number, tag, sealed) SELECT campaign, number, tag, sealed FROM pg_temp.arriving "
    "ORDER BY campaign, number, tag ON CONFLICT DO NOTHING RETURNING campaign, number, tag"
)
_ADD = postgresql_insert(SHARD)
_ADD = _ADD.on_conflict_do_update(
    index_elements=[SHARD.c.campaign, SHARD.c.number, SHARD.c.shard],
    set_={"total": SHARD.c.total + _ADD.excluded.total},
)
_COPIED_REPORTS_HOME = text(
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
    connection.execute(_COPIED_REPORTS_HOME, {"campaigns": named})


def store_first(connection: Connection, reports: Sequence[SealedReport]) -> list[AcceptOutcome]:
    """Store reports of open rounds, no two of one device and round or with one digest; tell each fate."""
    connection.exec_driver_sql(_TABLE)
    _copy(connection, reports)
    noted = set(connection.scalars(_COPIED_REPORTS_NOTE))
    spent = set(connection.scalars(_SPENT))  # after noting: what another process has just moved there is seen
    _run(connection, _FORGET, noted & spent)
    known = {report.report for report in reports if report.report not in noted or report.report in spent}
    _run(connection, _LEAVE, known)
    stored: set[Place] = {(row.campaign, row.number, row.tag) for row in connection.execute(_COPIED_REPORTS_STORE)}
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


_CHUNK = 1000  # keys in one question to the database

T = TypeVar("T")
RoundId = tuple[CampaignId, int]  # a round
DeviceInRound = tuple[CampaignId, int, bytes]  # in a round, by tag


def _among(name: str) -> BindParameter[Any]:
    return bindparam(name, expanding=True)


# Statements of every `accept`, built once: building them costs more than running them.
_LOCK = (
    select(ROUND)
    .where(ROUND.c.campaign.in_(_among("campaigns")), ROUND.c.state.in_(_among("states")))
    .order_by(ROUND.c.campaign, ROUND.c.number)
    .with_for_update()
)
_KNOWN = union_all(*(select(table.c.digest).where(table.c.digest.in_(_among("digests"))) for table in (FRESH, SPENT)))
_HOME = union_all(
    *(
        select(table.c.digest, table.c.campaign).where(table.c.digest.in_(_among("digests")))
        for table in (FRESH, SPENT)
    )
)
_MORE = (
    update(ROUND)
    .where(ROUND.c.campaign == bindparam("of"), ROUND.c.number == bindparam("at"))
    .values(total=ROUND.c.total + bindparam("more"))
)
_STORE, _NOTE = insert(REPORT), insert(FRESH)


def _by_tag(wanted: Column[Any]) -> dict[str, Any]:
    """Questions for a column of the reports with some tags of one round, by dialect.

    PostgreSQL knows nothing about a table that has just been filled, and would read the whole round for every
    question; a subquery for each tag leaves it no choice but the key.
    """
    here = and_(REPORT.c.campaign == bindparam("campaign"), REPORT.c.number == bindparam("number"))
    tags = func.unnest(bindparam("tags", type_=ARRAY(LargeBinary))).table_valued("tag").render_derived()
    one = select(wanted).where(here, REPORT.c.tag == tags.c.tag).correlate(tags).scalar_subquery()
    return {
        "sqlite": select(REPORT.c.tag, wanted).where(here, REPORT.c.tag.in_(_among("tags"))),
        "postgresql": select(tags.c.tag, one),
    }


_SEALED, _TAKEN = _by_tag(REPORT.c.sealed), _by_tag(REPORT.c.number)


def lock(connection: Connection, campaigns: Iterable[CampaignId], *states: str) -> dict[RoundId, Row[Any]]:
    """The rounds of these campaigns that are in one of these states, and nobody else's until the transaction ends.

    Everything that inserts or deletes reports comes through here first. Two transactions of one campaign therefore
    never decide at the same time: anybody who stores in a round has locked it, and all others wait for that lock. On
    PostgreSQL those that accept reports share a lock instead (`copied_reports`), and all others wait for that.
    """
    if connection.dialect.name == "postgresql":
        take_alone(connection, campaigns)
    rows = connection.execute(_LOCK, {"campaigns": sorted(set(campaigns)), "states": states})
    return {(row.campaign, row.number): row for row in rows}


def accept(connection: Connection, reports: Sequence[SealedReport]) -> list[AcceptOutcome]:
    """Store reports as if they came one after the other; tell the fate of each."""
    if connection.dialect.name == "postgresql":
        found = _accept_beside_others(connection, reports)
    else:
        found = _accept_alone(connection, reports, lock(connection, (report.campaign for report in reports), "open"))
    return _tell_elsewhere(connection, reports, found)


def _tell_elsewhere(
    connection: Connection, reports: Sequence[SealedReport], outcomes: list[AcceptOutcome]
) -> list[AcceptOutcome]:
    """Of reports that are known, those that are known of another campaign: they count for this one nowhere."""
    asked = [report.report for report, told in zip(reports, outcomes, strict=True) if told == "duplicate"]
    home: dict[bytes, CampaignId] = {}
    for part in _chunks(asked):
        home.update((row.digest, row.campaign) for row in connection.execute(_HOME, {"digests": part}))
    return [
        "elsewhere" if told == "duplicate" and home.get(report.report, report.campaign) != report.campaign else told
        for report, told in zip(reports, outcomes, strict=True)
    ]


def set_state(connection: Connection, place: RoundId, before: RoundState, after: RoundState) -> bool:
    """Change a round's state, if it is `before`; one that takes reports no more has its final count then."""
    if place not in lock(connection, [place[0]], before):
        return False
    change(connection, place, state=after)
    return True


def _accept_beside_others(connection: Connection, reports: Sequence[SealedReport]) -> list[AcceptOutcome]:
    """Those that depend on no other one of the group at once; the rest, which is rare, one after the other."""
    open_rounds = share(connection, (report.campaign for report in reports))
    first, rest = _split(reports, open_rounds)
    outcomes = dict[int, AcceptOutcome]()
    if first:
        outcomes.update(zip(first, store_first(connection, [reports[n] for n in first]), strict=True))
    if rest:
        outcomes.update(zip(rest, _accept_alone(connection, [reports[n] for n in rest], open_rounds), strict=True))
    return [outcomes[n] for n in range(len(reports))]


def _split(reports: Sequence[SealedReport], open_rounds: Container[RoundId]) -> tuple[list[int], list[int]]:
    """Numbers of the reports of open rounds whose digest and device no report before them has, and of all others."""
    digests, devices = set[bytes](), set[DeviceInRound]()
    first, rest = list[int](), list[int]()
    for number, report in enumerate(reports):
        device = (report.campaign, report.round, report.tag)
        free = device[:2] in open_rounds and report.report not in digests and device not in devices
        (first if free else rest).append(number)
        digests.add(report.report)
        devices.add(device)
    return first, rest


def _accept_alone(
    connection: Connection, reports: Sequence[SealedReport], open_rounds: Container[RoundId]
) -> list[AcceptOutcome]:
    """By what is known before; a key that a concurrent transaction took meanwhile runs this one again."""
    known, taken = _known_digests(connection, reports), _taken_devices(connection, reports)
    outcomes: list[AcceptOutcome] = []
    new = []
    for report in reports:
        device = (report.campaign, report.round, report.tag)
        if report.report in known:
            outcomes.append("duplicate")
        elif device[:2] not in open_rounds:
            outcomes.append("closed")
        elif device in taken:
            outcomes.append("second")
        else:
            outcomes.append("new")
            new.append(report)
            known.add(report.report)
            taken.add(device)
    by_digest = sorted(new, key=lambda report: report.report)
    if new:
        rows = [
            {"digest": report.report, "campaign": report.campaign, "number": report.round} for report in by_digest
        ]
        connection.execute(_NOTE, rows)
    _store(connection, new)
    if connection.dialect.name == "postgresql":
        add_to_shards(connection, [(report.campaign, report.round, report.tag) for report in new])
    else:
        _count(connection, new)
    return outcomes


def move(connection: Connection, place: RoundId, into: int, reports: Sequence[SealedReport]) -> int:
    """Merge round `place` into round `into`; how many reports of it gave way."""
    campaign, number = place
    found = lock(connection, [campaign], "open", "held")
    if place not in found:
        return 0  # another replica has merged, dropped or released it
    if into == number or (campaign, into) not in found:
        raise StorageError(f"round {into} of {campaign} takes no reports any more; round {number} stays as it is.")
    if len(reports) != found[place].total:
        raise StorageError(f"round {number} of {campaign} has changed while it was merged; try again.")
    reports = [replace(report, round=into) for report in reports]
    taken = _taken_devices(connection, reports)
    kept = [report for report in reports if (campaign, into, report.tag) not in taken]
    _store(connection, kept)
    _count(connection, kept)
    superseded = len(reports) - len(kept)
    change(connection, (campaign, into), superseded=ROUND.c.superseded + found[place].superseded + superseded)
    clear(connection, place)
    change(connection, place, state="merged", into=into)
    earlier = and_(ROUND.c.campaign == campaign, ROUND.c.into == number)
    connection.execute(update(ROUND).where(earlier).values(into=into))
    return superseded


def drop(connection: Connection, place: RoundId) -> int:
    """Delete the reports of a round; how many."""
    if place not in lock(connection, [place[0]], "open", "held", "lost"):
        return 0
    change(connection, place, state="dropped")
    return clear(connection, place)


def clear(connection: Connection, place: RoundId) -> int:
    """Delete the reports of a round and turn their digests into spent ones, in an order of their own; how many."""

    def inside(table: Any) -> ColumnElement[bool]:
        return and_(table.c.campaign == place[0], table.c.number == place[1])

    digests = select(FRESH).where(inside(FRESH)).order_by(FRESH.c.digest)
    connection.execute(insert(SPENT).from_select(["digest", "campaign", "number"], digests))
    connection.execute(delete(FRESH).where(inside(FRESH)))
    return connection.execute(delete(REPORT).where(inside(REPORT))).rowcount


def change(connection: Connection, place: RoundId, **values: Any) -> None:
    """New values for columns of a round."""
    here = and_(ROUND.c.campaign == place[0], ROUND.c.number == place[1])
    connection.execute(update(ROUND).where(here).values(**values))


def fetch_sealed(connection: Connection, place: RoundId, tags: Sequence[bytes]) -> dict[bytes, bytes]:
    """Sealed reports of a round by tag, of those tags that have one."""
    found: dict[bytes, bytes] = {}
    for part in _chunks(tags):
        found.update(_look_up(connection, _SEALED, place, part))
    return found


def _look_up(
    connection: Connection, statements: dict[str, Any], place: RoundId, tags: Sequence[bytes]
) -> Iterator[Any]:
    asked = {"campaign": place[0], "number": place[1], "tags": list(tags)}
    rows = connection.execute(statements[connection.dialect.name], asked)
    return ((tag, value) for tag, value in rows if value is not None)


def _chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), _CHUNK):
        yield items[start : start + _CHUNK]


def _store(connection: Connection, reports: Sequence[SealedReport]) -> None:
    """Rows by tag, so that not even the order within a group shows."""
    ordered = sorted(reports, key=lambda report: report.tag)
    rows = [{"campaign": r.campaign, "number": r.round, "tag": r.tag, "sealed": r.sealed} for r in ordered]
    if rows:
        connection.execute(_STORE, rows)


def _count(connection: Connection, reports: Sequence[SealedReport]) -> None:
    """Add reports to the counts of their rounds."""
    for (campaign, number), more in Counter((report.campaign, report.round) for report in reports).items():
        connection.execute(_MORE, {"of": campaign, "at": number, "more": more})


def _known_digests(connection: Connection, reports: Sequence[SealedReport]) -> set[bytes]:
    """Digests among these that are in the store."""
    known: set[bytes] = set()
    for part in _chunks([report.report for report in reports]):
        known.update(connection.scalars(_KNOWN, {"digests": part}))
    return known


def _taken_devices(connection: Connection, reports: Sequence[SealedReport]) -> set[DeviceInRound]:
    """Devices among these that have a report in the round."""
    tags = defaultdict(list)
    for report in reports:
        tags[report.campaign, report.round].append(report.tag)
    taken: set[DeviceInRound] = set()
    for place, all_tags in tags.items():
        for part in _chunks(all_tags):
            taken.update((*place, tag) for tag, _ in _look_up(connection, _TAKEN, place, part))
    return taken

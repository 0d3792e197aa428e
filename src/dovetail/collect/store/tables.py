"""The tables of the roles, in schemas that share nothing: a role's database holds no table of the other.

Every table is clustered by its key (WITHOUT ROWID in SQLite), so that the order of rows says nothing about arrival.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    LargeBinary,
    MetaData,
    Table,
    Text,
)

SHUFFLER = MetaData()
ANALYZER = MetaData()
ISSUER = MetaData()


def _number(name: str, *, key: bool = False, null: bool = False) -> Column[int]:
    return Column(name, BigInteger, primary_key=key, nullable=null, autoincrement=False)


def _text(name: str, *, key: bool = False, null: bool = False) -> Column[str]:
    return Column(name, Text, primary_key=key, nullable=null)


def _bytes(name: str, *, key: bool = False) -> Column[bytes]:
    return Column(name, LargeBinary, primary_key=key, nullable=False)


# The shuffler

ROUND = Table(
    "round",
    SHUFFLER,
    _text("campaign", key=True),
    _number("number", key=True),
    _text("state"),
    _text("resume", null=True),  # what an abandoned batch turns "releasing" back into
    _number("total"),  # valid reports of distinct devices; stays after release
    _number("superseded"),  # reports merged into this round whose device had one here
    _number("opened"),  # seconds since 1970, whole minutes
    _text("batch", null=True),
    _number("into", null=True),  # where the reports of a merged round are
    _text("key", null=True),  # fingerprint of its key; none before a key was seen
    CheckConstraint(
        "state IN ('open', 'held', 'releasing', 'released', 'delivered', 'dropped', 'merged', 'lost')",
        name="round_state",
    ),
    sqlite_with_rowid=False,
)

SHARD = Table(  # reports of an open round that its `total` does not count yet, by the first bits of their tags
    "shard",
    SHUFFLER,
    _text("campaign", key=True),
    _number("number", key=True),
    _number("shard", key=True),
    _number("total"),
    ForeignKeyConstraint(["campaign", "number"], ["round.campaign", "round.number"]),
    sqlite_with_rowid=False,
)

REPORT = Table(  # until release
    "report",
    SHUFFLER,
    _text("campaign", key=True),
    _number("number", key=True),
    _bytes("tag", key=True),
    _bytes("sealed"),
    ForeignKeyConstraint(["campaign", "number"], ["round.campaign", "round.number"]),
    sqlite_with_rowid=False,
)


def _digests(name: str) -> Table:
    return Table(
        name, SHUFFLER, _bytes("digest", key=True), _text("campaign"), _number("number"), sqlite_with_rowid=False
    )


# Digests of report ids. At release they pass from one table to the other, all at once and in their own order: what a
# database keeps of arrival, such as PostgreSQL's transaction numbers, is gone with the rows of the first.
FRESH = _digests("fresh")
SPENT = _digests("spent")

BATCH = Table(
    "batch",
    SHUFFLER,
    _text("id", key=True),
    _text("campaign"),
    _number("total"),
    _bytes("header"),
    _text("state"),
    Column("secret", LargeBinary, nullable=True),  # of its order, sealed under the round's key, while it is built
    CheckConstraint("state IN ('building', 'waiting', 'delivered')", name="batch_state"),
    sqlite_with_rowid=False,
)

PART = Table(  # until delivery
    "part",
    SHUFFLER,
    Column("batch", Text, ForeignKey("batch.id"), primary_key=True),
    _number("number", key=True),
    _bytes("body"),
    Column("mac", LargeBinary, nullable=True),  # of a part that can be built on, under a key of the order's secret
    sqlite_with_rowid=False,
)

FAULT = Table(
    "fault",
    SHUFFLER,
    _text("campaign", key=True),
    _text("kind", key=True),
    _number("total"),
    sqlite_with_rowid=False,
)


CHALLENGE = Table(  # with which an owner has closed a round, while they could be sent again
    "challenge",
    SHUFFLER,
    _bytes("digest", key=True),
    _number("until"),  # seconds since 1970
    sqlite_with_rowid=False,
)


def _only_row(name: str, metadata: MetaData, *columns: Column[Any]) -> Table:
    return Table(name, metadata, _number("one", key=True), *columns, sqlite_with_rowid=False)


VAULT = _only_row("vault", SHUFFLER, _text("identity"))

MOMENT = _only_row(
    "moment",
    SHUFFLER,
    _number("time"),  # seconds since 1970, whole minutes, like `booted`
    _text("boot"),
    _number("booted"),
    _number("halted"),
    _number("confirmed"),
)

SHUFFLER_PROBE = _only_row("shuffler_probe", SHUFFLER, _bytes("body"))


# The analyzer


def _of_batch() -> Column[str]:
    return Column("batch", Text, ForeignKey("counted.id"), primary_key=True)


COUNTED = Table(
    "counted",
    ANALYZER,
    _text("id", key=True),
    _text("campaign"),
    _text("digest"),
    _number("total"),
    _number("n"),
    _number("smallest"),
    _number("counted_at"),  # seconds since 1970, whole minutes
    sqlite_with_rowid=False,
)

COUNTED_ROUND = Table(  # its key says that a round is counted in one batch only
    "counted_round",
    ANALYZER,
    _text("campaign", key=True),
    _number("number", key=True),
    Column("batch", Text, ForeignKey("counted.id"), nullable=False),
    sqlite_with_rowid=False,
)

REJECTED = Table(
    "rejected", ANALYZER, _of_batch(), _text("kind", key=True), _number("total"), sqlite_with_rowid=False
)

CLASS_SIZE = Table(  # where people have different epsilons: as the shuffler has signed it
    "class_size", ANALYZER, _of_batch(), _number("place", key=True), _number("total"), sqlite_with_rowid=False
)

TALLY = Table("tally", ANALYZER, _of_batch(), _text("group", key=True), _number("n"), sqlite_with_rowid=False)

CELL = Table(
    "cell",
    ANALYZER,
    _text("batch", key=True),
    _text("group", key=True),
    _number("cell", key=True),
    _number("total"),
    ForeignKeyConstraint(["batch", "group"], ["tally.batch", "tally.group"]),
    sqlite_with_rowid=False,
)

ASIDE = Table(
    "aside",
    ANALYZER,
    _of_batch(),
    _number("place", key=True),
    _text("kind"),
    _bytes("sealed"),
    sqlite_with_rowid=False,
)

PLACED = Table("placed", ANALYZER, _of_batch(), _number("slot", key=True), _bytes("report"), sqlite_with_rowid=False)

INCOMING = Table(  # batches in parts, until they are counted
    "incoming",
    ANALYZER,
    _text("batch", key=True),
    _bytes("manifest"),
    _number("since"),  # seconds since 1970, whole minutes
    sqlite_with_rowid=False,
)

INCOMING_PART = Table(
    "incoming_part",
    ANALYZER,
    Column("batch", Text, ForeignKey("incoming.batch"), primary_key=True),
    _number("number", key=True),
    _bytes("body"),
    sqlite_with_rowid=False,
)

ANALYZER_PROBE = _only_row("analyzer_probe", ANALYZER, _bytes("body"))


# The issuer


ISSUED = Table(  # who has the token of which round, under a name that is another one in each round
    "issued",
    ISSUER,
    _text("campaign", key=True),
    _number("number", key=True),
    _bytes("who", key=True),
    _bytes("request"),
    sqlite_with_rowid=False,
)

SOLD = Table(  # which key is for which round
    "sold", ISSUER, _bytes("key", key=True), _text("campaign"), _number("number"), sqlite_with_rowid=False
)

NAMING = _only_row("naming", ISSUER, _bytes("fingerprint"))  # of what the names of people are made with

ISSUER_PROBE = _only_row("issuer_probe", ISSUER, _bytes("body"))

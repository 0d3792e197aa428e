"""The first schema of the analyzer."""

import sqlalchemy as sa
from alembic import op

revision = "analyzer_1"
down_revision = None


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False, autoincrement=False)


def _bytes(name: str) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary, nullable=False)


def upgrade() -> None:
    op.create_table(
        "counted",
        _text("id"),
        _text("campaign"),
        _text("digest"),
        _number("total"),
        _number("n"),
        _number("smallest"),
        _number("counted_at"),
        sa.PrimaryKeyConstraint("id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "counted_round",
        _text("campaign"),
        _number("number"),
        _text("batch"),
        sa.PrimaryKeyConstraint("campaign", "number"),
        sa.ForeignKeyConstraint(["batch"], ["counted.id"]),
        sqlite_with_rowid=False,
    )
    _of_batch("rejected", "kind", _text("kind"), _number("total"))
    _of_batch("tally", "group", _text("group"), _number("n"))
    op.create_table(
        "cell",
        _text("batch"),
        _text("group"),
        _number("cell"),
        _number("total"),
        sa.PrimaryKeyConstraint("batch", "group", "cell"),
        sa.ForeignKeyConstraint(["batch", "group"], ["tally.batch", "tally.group"]),
        sqlite_with_rowid=False,
    )
    _of_batch("aside", "place", _number("place"), _text("kind"), _bytes("sealed"))
    _of_batch("placed", "slot", _number("slot"), _bytes("report"))


def _of_batch(name: str, key: str, *columns: sa.Column[int] | sa.Column[str] | sa.Column[bytes]) -> None:
    op.create_table(
        name,
        _text("batch"),
        *columns,
        sa.PrimaryKeyConstraint("batch", key),
        sa.ForeignKeyConstraint(["batch"], ["counted.id"]),
        sqlite_with_rowid=False,
    )

"""The first schema of the shuffler."""

import sqlalchemy as sa
from alembic import op

revision = "shuffler_1"
down_revision = None


def _text(name: str, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=null)


def _number(name: str, null: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=null, autoincrement=False)


def _bytes(name: str) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary, nullable=False)


def upgrade() -> None:
    op.create_table(
        "round",
        _text("campaign"),
        _number("number"),
        _text("state"),
        _text("resume", null=True),
        _number("total"),
        _number("superseded"),
        _number("opened"),
        _text("batch", null=True),
        _number("into", null=True),
        sa.PrimaryKeyConstraint("campaign", "number"),
        sa.CheckConstraint(
            "state IN ('open', 'held', 'releasing', 'released', 'delivered', 'dropped', 'merged')", name="round_state"
        ),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "report",
        _text("campaign"),
        _number("number"),
        _bytes("tag"),
        _bytes("sealed"),
        sa.PrimaryKeyConstraint("campaign", "number", "tag"),
        sa.ForeignKeyConstraint(["campaign", "number"], ["round.campaign", "round.number"]),
        sqlite_with_rowid=False,
    )
    for name in ("fresh", "spent"):
        op.create_table(
            name,
            _bytes("digest"),
            _text("campaign"),
            _number("number"),
            sa.PrimaryKeyConstraint("digest"),
            sqlite_with_rowid=False,
        )
    op.create_table(
        "batch",
        _text("id"),
        _text("campaign"),
        _number("total"),
        _bytes("header"),
        _text("state"),
        sa.PrimaryKeyConstraint("id"),
        sa.CheckConstraint("state IN ('building', 'waiting', 'delivered')", name="batch_state"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "part",
        _text("batch"),
        _number("number"),
        _bytes("body"),
        sa.PrimaryKeyConstraint("batch", "number"),
        sa.ForeignKeyConstraint(["batch"], ["batch.id"]),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "fault",
        _text("campaign"),
        _text("kind"),
        _number("total"),
        sa.PrimaryKeyConstraint("campaign", "kind"),
        sqlite_with_rowid=False,
    )

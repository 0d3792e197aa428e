"""Batches that arrive in parts."""

import sqlalchemy as sa
from alembic import op

revision = "analyzer_3"
down_revision = "analyzer_2"


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False, autoincrement=False)


def _bytes(name: str) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary, nullable=False)


def upgrade() -> None:
    op.create_table(
        "incoming",
        _text("batch"),
        _bytes("manifest"),
        _number("since"),
        sa.PrimaryKeyConstraint("batch"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "incoming_part",
        _text("batch"),
        _number("number"),
        _bytes("body"),
        sa.PrimaryKeyConstraint("batch", "number"),
        sa.ForeignKeyConstraint(["batch"], ["incoming.batch"]),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """What has arrived is not counted yet: the shuffler still has it."""
    op.drop_table("incoming_part")
    op.drop_table("incoming")

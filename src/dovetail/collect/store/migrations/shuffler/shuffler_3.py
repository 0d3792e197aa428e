"""Counts of open rounds in shards, to which processes add side by side, and challenges that owners have used."""

import sqlalchemy as sa
from alembic import op

revision = "shuffler_3"
down_revision = "shuffler_2"


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False, autoincrement=False)


def upgrade() -> None:
    op.create_table(
        "shard",
        sa.Column("campaign", sa.Text, nullable=False),
        *(_number(name) for name in ("number", "shard", "total")),
        sa.PrimaryKeyConstraint("campaign", "number", "shard"),
        sa.ForeignKeyConstraint(["campaign", "number"], ["round.campaign", "round.number"]),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "challenge",
        sa.Column("digest", sa.LargeBinary, nullable=False),
        _number("until"),
        sa.PrimaryKeyConstraint("digest"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """What stands in the shards is added to the counts of their rounds."""
    here = "shard.campaign = round.campaign AND shard.number = round.number"
    op.execute(f"UPDATE round SET total = total + (SELECT COALESCE(SUM(shard.total), 0) FROM shard WHERE {here})")
    op.drop_table("challenge")
    op.drop_table("shard")

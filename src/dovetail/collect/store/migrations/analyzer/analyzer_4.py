"""How many people of each class a batch holds, where people have different epsilons."""

import sqlalchemy as sa
from alembic import op

revision = "analyzer_4"
down_revision = "analyzer_3"


def upgrade() -> None:
    op.create_table(
        "class_size",
        sa.Column("batch", sa.Text, nullable=False),
        sa.Column("place", sa.BigInteger, nullable=False, autoincrement=False),
        sa.Column("total", sa.BigInteger, nullable=False, autoincrement=False),
        sa.PrimaryKeyConstraint("batch", "place"),
        sa.ForeignKeyConstraint(["batch"], ["counted.id"]),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """An older version serves no campaign with classes, and asks for nothing of their batches.

    A newer one then takes everybody in them for somebody of any class: estimates get wider, promises weaker.
    """
    op.drop_table("class_size")

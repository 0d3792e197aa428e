"""A place where the analyzer tries whether its disk takes more."""

import sqlalchemy as sa
from alembic import op

revision = "analyzer_2"
down_revision = "analyzer_1"


def upgrade() -> None:
    op.create_table(
        "analyzer_probe",
        sa.Column("one", sa.BigInteger, nullable=False, autoincrement=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("one"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("analyzer_probe")

"""A half-built batch keeps the key of its order, sealed, and its parts codes: building goes on where it stopped."""

import sqlalchemy as sa
from alembic import op

revision = "shuffler_4"
down_revision = "shuffler_3"


def upgrade() -> None:
    op.add_column("batch", sa.Column("secret", sa.LargeBinary, nullable=True))
    op.add_column("part", sa.Column("mac", sa.LargeBinary, nullable=True))


def downgrade() -> None:
    """What is half built is taken back by whoever starts next, as before."""
    op.drop_column("part", "mac")
    op.drop_column("batch", "secret")

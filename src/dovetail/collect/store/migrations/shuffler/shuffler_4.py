"""A half-built batch keeps the key of its order, sealed, so that building goes on where it was stopped."""

import sqlalchemy as sa
from alembic import op

revision = "shuffler_4"
down_revision = "shuffler_3"


def upgrade() -> None:
    op.add_column("batch", sa.Column("secret", sa.LargeBinary, nullable=True))


def downgrade() -> None:
    """What is half built is taken back by whoever starts next, as before."""
    op.drop_column("batch", "secret")

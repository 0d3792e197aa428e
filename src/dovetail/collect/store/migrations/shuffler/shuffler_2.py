"""Rounds know the fingerprint of their key and can be lost; one vault, a record of time, and a probe for the disk."""

import sqlalchemy as sa
from alembic import op

revision = "shuffler_2"
down_revision = "shuffler_1"

_STATES = ("open", "held", "releasing", "released", "delivered", "dropped", "merged")
_ROUND = ("campaign", "number", "state", "resume", "total", "superseded", "opened", "batch", "into")
_REPORT = ("campaign", "number", "tag", "sealed")


def _text(name: str, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=null)


def _number(name: str, null: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=null, autoincrement=False)


def _bytes(name: str) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary, nullable=False)


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.add_column("round", _text("key", null=True))
        _allow(*_STATES, "lost")
    else:
        _rebuild([_text("key", null=True)], *_STATES, "lost")
    _only_row("vault", _text("identity"))
    _only_row("moment", _number("time"), _text("boot"), _number("booted"), _number("halted"), _number("confirmed"))
    _only_row("shuffler_probe", _bytes("body"))


def downgrade() -> None:
    """A lost round takes reports again as far as this schema can say it; nothing of it is deleted."""
    for name in ("shuffler_probe", "moment", "vault"):
        op.drop_table(name)
    op.execute("UPDATE round SET state = 'open' WHERE state = 'lost'")
    if op.get_bind().dialect.name == "postgresql":
        op.drop_column("round", "key")
        _allow(*_STATES)
    else:
        _rebuild([], *_STATES)


def _allow(*states: str) -> None:
    op.drop_constraint("round_state", "round", type_="check")
    op.create_check_constraint("round_state", "round", _among(states))


def _among(states: tuple[str, ...]) -> str:
    return f"state IN ({', '.join(repr(state) for state in states)})"


def _rebuild(more: list[sa.Column[str]], *states: str) -> None:
    """SQLite changes no constraint: both tables anew, the child with them, so that no foreign key is ever broken."""
    op.create_table(
        "new_round",
        _text("campaign"),
        _number("number"),
        _text("state"),
        _text("resume", null=True),
        _number("total"),
        _number("superseded"),
        _number("opened"),
        _text("batch", null=True),
        _number("into", null=True),
        *more,
        sa.PrimaryKeyConstraint("campaign", "number"),
        sa.CheckConstraint(_among(states), name="round_state"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "new_report",
        _text("campaign"),
        _number("number"),
        _bytes("tag"),
        _bytes("sealed"),
        sa.PrimaryKeyConstraint("campaign", "number", "tag"),
        sa.ForeignKeyConstraint(["campaign", "number"], ["new_round.campaign", "new_round.number"]),
        sqlite_with_rowid=False,
    )
    for name, columns in (("round", _ROUND), ("report", _REPORT)):
        named = ", ".join(f'"{column}"' for column in columns)
        op.execute(f"INSERT INTO new_{name} ({named}) SELECT {named} FROM {name}")
    op.drop_table("report")
    op.drop_table("round")
    op.rename_table("new_round", "round")
    op.rename_table("new_report", "report")


def _only_row(name: str, *columns: sa.Column[int] | sa.Column[str] | sa.Column[bytes]) -> None:
    op.create_table(name, _number("one"), *columns, sa.PrimaryKeyConstraint("one"), sqlite_with_rowid=False)

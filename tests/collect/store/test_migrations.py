"""Up to a newer schema and back again with data in every state: nothing is lost, and the older schema is itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import IntegrityError

from dovetail.cli.main import invoke
from dovetail.collect.store import migrations
from dovetail.collect.store.analyzer_store import open_analyzer_store
from dovetail.collect.store.engine import Database
from dovetail.collect.store.interfaces import SealedReport
from dovetail.collect.store.migrations import VERSION_TABLE, Role, roll_back, schema_of
from dovetail.collect.store.shuffler_store import open_shuffler_store
from dovetail.core.errors import ConfigError, StorageError

Rows = dict[str, list[dict[str, Any]]]
STATES = ("open", "held", "releasing", "released", "delivered", "dropped", "merged")
ROUNDS = [
    {
        "campaign": "buses", "number": number, "state": state, "resume": "held" if state == "releasing" else None,
        "total": 2, "superseded": number, "opened": 60 * number, "into": 2 if state == "merged" else None,
        "batch": {"releasing": "b3", "released": "b4", "delivered": "b5"}.get(state),
    }
    for number, state in enumerate(STATES, 1)
]  # fmt: skip
DIGEST = {"campaign": "buses"}
SHUFFLER_1: Rows = {
    "round": ROUNDS,
    "report": [{"campaign": "buses", "number": n, "tag": bytes([n, k]) * 16, "sealed": bytes([k]) * 99}
               for n in (1, 2, 3) for k in (1, 2)],
    "fresh": [DIGEST | {"digest": bytes([n]) * 32, "number": n} for n in (1, 2, 3)],
    "spent": [DIGEST | {"digest": bytes([n]) * 32, "number": n} for n in (4, 5, 6, 7)],
    "batch": [{"id": f"b{n}", "campaign": "buses", "total": 2, "header": bytes([n]), "state": state}
              for n, state in ((3, "building"), (4, "waiting"), (5, "delivered"))],
    "part": [{"batch": batch, "number": n, "body": bytes([n])} for batch in ("b3", "b4") for n in (0, 1)],
    "fault": [{"campaign": "buses", "kind": "late", "total": 7}],
}  # fmt: skip
ANALYZER_1: Rows = {
    "counted": [
        {"id": "b1", "campaign": "buses", "digest": "00", "total": 3, "n": 2, "smallest": 2, "counted_at": 60}
    ],
    "counted_round": [{"campaign": "buses", "number": 1, "batch": "b1"}],
    "rejected": [{"batch": "b1", "kind": "seal", "total": 1}],
    "tally": [{"batch": "b1", "group": "", "n": 2}],
    "cell": [{"batch": "b1", "group": "", "cell": 0, "total": 2}],
    "aside": [{"batch": "b1", "place": 0, "kind": "seal", "sealed": b"bad"}],
    "placed": [{"batch": "b1", "slot": 4, "report": b"report"}],
}
OLD: dict[Role, Rows] = {"shuffler": SHUFFLER_1, "analyzer": ANALYZER_1}
OPEN: dict[Role, Any] = {"shuffler": open_shuffler_store, "analyzer": open_analyzer_store}
ROLES: list[Role] = ["shuffler", "analyzer"]


def make(url: str, role: Role) -> None:
    """A database of the first schema, with rows in every state, as an older version left it."""
    database = Database(url)
    folder = Path(migrations.__file__).parent
    script = ScriptDirectory(str(folder), version_locations=[str(folder / role)])

    def work(connection: Connection) -> None:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        context.get_current_revision()
        with Operations.context(context):
            script.get_revision(f"{role}_1").module.upgrade()
            context.stamp(script, f"{role}_1")
        for table, rows in OLD[role].items():
            for row in rows:
                named = ", ".join(f'"{name}"' for name in row)
                connection.execute(
                    text(f'INSERT INTO "{table}" ({named}) VALUES ({", ".join(f":{name}" for name in row)})'), row
                )

    database.write(work)
    database.close()


def content(url: str, role: Role) -> Rows:
    """Every row of the first schema's tables and columns."""
    database = Database(url)

    def work(connection: Connection) -> Rows:
        found: Rows = {}
        for table, rows in OLD[role].items():
            named = ", ".join(f'"{name}"' for name in rows[0])
            read = connection.execute(text(f'SELECT {named} FROM "{table}"')).mappings()
            found[table] = sorted(({**row} for row in read), key=repr)
        return found

    try:
        return database.read(work)
    finally:
        database.close()


def shape(url: str) -> Any:
    """Tables, columns, keys and constraints as the database tells them."""
    database = Database(url)

    def work(connection: Connection) -> Any:
        seen = inspect(connection)
        return {
            table: (
                [(each["name"], str(each["type"]), each["nullable"]) for each in seen.get_columns(table)],
                seen.get_pk_constraint(table)["constrained_columns"],
                [(each["constrained_columns"], each["referred_table"]) for each in seen.get_foreign_keys(table)],
                [(each["name"], each["sqltext"]) for each in seen.get_check_constraints(table)],
            )
            for table in sorted(seen.get_table_names())
        }

    try:
        return database.read(work)
    finally:
        database.close()


def ordered(rows: Rows) -> Rows:
    return {table: sorted(found, key=repr) for table, found in rows.items()}


@pytest.mark.exhaust
@pytest.mark.parametrize("role", ROLES)
def test_an_upgrade_and_the_way_back_keep_every_row_in_every_state(lasting: str, role: Role) -> None:
    make(lasting, role)
    before, rows = shape(lasting), ordered(OLD[role])
    assert content(lasting, role) == rows
    for _ in range(2):
        OPEN[role](lasting).close()
        assert content(lasting, role) == rows
        current, newest = schema_of(lasting, role)
        assert current == newest != f"{role}_1" and shape(lasting) != before
        assert roll_back(lasting, role, f"{role}_1")[0] == newest
        assert content(lasting, role) == rows and shape(lasting) == before


def test_after_an_upgrade_every_round_goes_on_from_its_state(lasting: str) -> None:
    make(lasting, "shuffler")
    store = open_shuffler_store(lasting)
    assert [round.state for round in store.rounds("buses")] == list(STATES)
    assert {round.key for round in store.rounds("buses")} == {None} and store.moment() is None
    store.abandon_batch("b3")
    assert list(store.parts("b4")) == [b"\0", b"\1"]
    store.mark_delivered("b4")
    assert store.accept([SealedReport("buses", 1, bytes(32), bytes([5]) * 32, b"")]) == ["duplicate"]
    assert store.accept([SealedReport("buses", 1, bytes(32), bytes([99]) * 32, b"new")]) == ["new"]
    assert store.set_state("buses", 2, "held", "lost") and store.drop("buses", 2) == 2
    after = [round.state for round in store.rounds("buses")]
    assert after == ["open", "dropped", "held", "delivered", "delivered", "dropped", "merged"]
    store.close()


def test_a_lost_round_takes_reports_again_after_the_way_back_and_is_lost_again_after_the_next_upgrade(
    lasting: str,
) -> None:
    make(lasting, "shuffler")
    store = open_shuffler_store(lasting)
    assert store.set_state("buses", 2, "held", "lost")
    store.close()
    roll_back(lasting, "shuffler", "shuffler_1")
    assert {row["number"]: row["state"] for row in content(lasting, "shuffler")["round"]}[2] == "open"
    store = open_shuffler_store(lasting)
    assert len(store.tags("buses", [2])) == 2, "its reports are still there, should the key come back"
    store.close()


def test_states_that_nobody_knows_are_refused_by_both_schemas(lasting: str) -> None:
    make(lasting, "shuffler")
    for state, opened in (("lost", False), ("stuck", True)):
        if opened:
            open_shuffler_store(lasting).close()
        database = Database(lasting)
        statement = f"UPDATE round SET state = '{state}' WHERE number = 1"
        with pytest.raises((StorageError, IntegrityError)):
            database.write(lambda connection: connection.exec_driver_sql(statement))  # noqa: B023
        database.close()


def test_nobody_rolls_back_under_a_shuffler_that_works(lasting: str) -> None:
    store = open_shuffler_store(lasting)
    assert store.claim_vault("mine")
    with pytest.raises(StorageError, match=r"a shuffler works on .*; stop it first"):
        roll_back(lasting, "shuffler", "shuffler_1")
    store.close()
    assert roll_back(lasting, "shuffler", "shuffler_1")


@pytest.mark.parametrize("to", ["shuffler_99", "analyzer_1", "base", ""])
def test_only_an_older_schema_of_the_role_is_gone_back_to(lasting: str, to: str) -> None:
    open_shuffler_store(lasting).close()
    newest = schema_of(lasting, "shuffler")[1]
    for wrong in (to, newest):
        with pytest.raises(ConfigError, match="`to` must be an older schema of"):
            roll_back(lasting, "shuffler", wrong)
    assert schema_of(lasting, "shuffler") == (newest, newest)


def test_the_verb_shows_a_schema_and_goes_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for role, more in (("shuffler", 'analyzer = "http://127.0.0.1:9"\n'), ("analyzer", "")):
        config = tmp_path / f"{role}.toml"
        config.write_text(f'schema_version = 1\ncampaigns = ["c"]\nkeys = "k"\n{more}')
        OPEN[role](f"sqlite:///{tmp_path / role}.sqlite").close()  # type: ignore[index]
        capsys.readouterr()
        assert invoke(["collect", "schema", str(config), "--to", f"{role}_1", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["role"], told["schema"]) == (role, f"{role}_1") and told["left"][0] == told["newest"]
        assert invoke(["collect", "schema", str(config), "--to", f"{role}_1"]) == 2
        assert "must be an older schema" in capsys.readouterr().err

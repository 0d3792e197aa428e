"""Schemas by role and revision: a database is brought to the newest one when it is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from dovetail.collect.store.engine import Database
from dovetail.core.errors import StorageError

Role = Literal["shuffler", "analyzer"]

VERSION_TABLE = "schema_version"
_FOLDER = Path(__file__).parent
_LOCK = 0x_D0_7E_7A_11  # any fixed number: who migrates holds this advisory lock


def open_database(url: str, role: Role) -> Database:
    """The database at `url`, brought to the newest schema of `role` in one transaction.

    Raises
    ------
    ConfigError
        When `url` names no database that we know.
    StorageError
        When it cannot be reached or written, belongs to the other role, or was written by a newer version.
    """
    database = Database(url)
    try:
        database.write(lambda connection: _upgrade(connection, role, database.name))
    except StorageError:
        database.close()
        raise
    return database


def _upgrade(connection: Connection, role: Role, name: str) -> None:
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
    script = ScriptDirectory(str(_FOLDER), version_locations=[str(_FOLDER / role)])
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    current = context.get_current_revision()
    _refuse_unknown(current, script, role=role, name=name)
    steps = [step for step in script.iterate_revisions("head", current or "base") if step.revision != current]
    with Operations.context(context):
        for step in reversed(steps):
            step.module.upgrade()
            context.stamp(script, step.revision)
    connection.exec_driver_sql(f"DELETE FROM {VERSION_TABLE} WHERE 1 = 0")  # a database that only reads says so now


def _refuse_unknown(current: str | None, script: ScriptDirectory, *, role: Role, name: str) -> None:
    if current is None or current in {step.revision for step in script.walk_revisions()}:
        return
    owner = current.partition("_")[0]
    if owner != role:
        raise StorageError(f"{name} belongs to the {owner}; the {role} needs one of its own.")
    newest = script.get_current_head()
    raise StorageError(f"{name} has the newer schema {current}, this version knows {newest}: upgrade Dovetail.")

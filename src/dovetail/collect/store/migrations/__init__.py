"""Schemas by role and revision: a database is brought to the newest one when it is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from dovetail.collect.store.engine import Database, lock_of
from dovetail.core.errors import ConfigError, StorageError

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


def schema_of(url: str, role: Role) -> tuple[str | None, str]:
    """The schema that the database at `url` has, None for an empty one, and the newest of `role`."""
    database = Database(url)
    try:
        current = database.read(lambda connection: _context(connection).get_current_revision())
    finally:
        database.close()
    _refuse_unknown(current, _script(role), role=role, name=database.name)
    return current, str(_script(role).get_current_head())


def roll_back(url: str, role: Role, to: str) -> list[str]:
    """Bring the database at `url` back to the older schema `to`, in one transaction; the schemas left, newest first.

    Raises
    ------
    ConfigError
        When the schema is not an older one of this role.
    StorageError
        When the database cannot be written, or a shuffler works on it.
    """
    database = Database(url)
    lock = lock_of(database)
    try:
        if role == "shuffler" and not (lock.share() and lock.alone()):
            raise StorageError(f"a shuffler works on {database.name}; stop it first.")
        return database.write(lambda connection: _downgrade(connection, role, to, database.name))
    finally:
        lock.release()
        database.close()


def _script(role: Role) -> ScriptDirectory:
    return ScriptDirectory(str(_FOLDER), version_locations=[str(_FOLDER / role)])


def _context(connection: Connection) -> MigrationContext:
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
    return MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})


def _upgrade(connection: Connection, role: Role, name: str) -> None:
    script, context = _script(role), _context(connection)
    current = context.get_current_revision()
    _refuse_unknown(current, script, role=role, name=name)
    steps = [step for step in script.iterate_revisions("head", current or "base") if step.revision != current]
    with Operations.context(context):
        for step in reversed(steps):
            step.module.upgrade()
            context.stamp(script, step.revision)
    connection.exec_driver_sql(f"DELETE FROM {VERSION_TABLE} WHERE 1 = 0")  # a database that only reads says so now


def _downgrade(connection: Connection, role: Role, to: str, name: str) -> list[str]:
    script, context = _script(role), _context(connection)
    current = context.get_current_revision()
    _refuse_unknown(current, script, role=role, name=name)
    path = [] if current is None else [step.revision for step in script.iterate_revisions(current, "base")]
    if to not in path[1:]:
        older = ", ".join(path[1:]) or "none"
        raise ConfigError(f"`to` must be an older schema of {name} (has {current}; older: {older}), got {to}.")
    left = path[: path.index(to)]
    with Operations.context(context):
        for revision in left:
            step = script.get_revision(revision)
            step.module.downgrade()
            context.stamp(script, str(step.down_revision))
    return left


def _refuse_unknown(current: str | None, script: ScriptDirectory, *, role: Role, name: str) -> None:
    if current is None or current in {step.revision for step in script.walk_revisions()}:
        return
    owner = current.partition("_")[0]
    if owner != role:
        raise StorageError(f"{name} belongs to the {owner}; the {role} needs one of its own.")
    newest = script.get_current_head()
    raise StorageError(f"{name} has the newer schema {current}, this version knows {newest}: upgrade Dovetail.")

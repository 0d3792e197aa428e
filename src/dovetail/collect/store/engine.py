"""One database, SQLite or PostgreSQL: durable transactions, and errors of one line.

SQLite: write-ahead log, every commit synced, deleted bytes overwritten, one writer at a time (BEGIN IMMEDIATE).
PostgreSQL: what must not run twice locks the rows of its rounds first, in the order of their numbers (read
committed); what only reads sees one moment (repeatable read).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from sqlite3 import OperationalError
from threading import RLock
from time import sleep
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Delete, Engine, Table, create_engine, delete, event, insert, make_url
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from dovetail.collect.logs import Log
from dovetail.core.errors import ConfigError, StorageError

T = TypeVar("T")

_LOG = Log("store")

_PATIENCE = 10  # seconds that a transaction waits for another
_TRIES = 5
_AGAIN = ("40001", "40P01", "23505")  # serialization, deadlock, a key that a concurrent transaction took
_SWITCH_TRIES, _SWITCH_WAIT = 50, 0.01  # seconds
_CACHE_KIB = 32_768
_PROBE = 1 << 20  # bytes: about as much as one transaction of reports
_LOG_PAGES = 8_192  # of 4 KiB, between checkpoints: 32 MiB

_SAID = {
    "SQLITE_BUSY": "is locked by another process; stop it or try again.",
    "SQLITE_LOCKED": "is locked by another process; stop it or try again.",
    "SQLITE_FULL": "cannot take more, the disk is full; make room and try again.",
    "SQLITE_IOERR": "cannot be read or written, the disk reports an error; is it full or broken?",
    "SQLITE_READONLY": "cannot be written; change its rights.",
    "SQLITE_CANTOPEN": "cannot be opened; is there such a folder, and may this process write to it?",
    "SQLITE_NOTADB": "is not a database; choose another file.",
    "SQLITE_CORRUPT": "is damaged; restore it from a backup.",
    "55P03": "is locked by another process; stop it or try again.",
    "53100": "cannot take more, the disk is full; make room and try again.",
    "25006": "cannot be written; is it a replica that only reads?",
    "28": "refuses this user; change user or password.",
    "3D000": "does not exist on its server; create it.",
    "42501": "refuses this user's tables; grant the right to create them.",
    "": "cannot be reached; is its server running, and the address right?",
}


class Database:
    """A database by its URL: `sqlite:///file`, `sqlite://` (in memory, for tests) or `postgresql://user@host/name`."""

    def __init__(self, url: str) -> None:
        parsed = _parse(url)
        self._memory = parsed.get_backend_name() == "sqlite" and parsed.database in (None, "", ":memory:")
        self.name = _name(parsed)
        self.file = None if self._memory or parsed.get_backend_name() != "sqlite" else parsed.database
        self._sqlite = parsed.get_backend_name() == "sqlite"
        self.engine = _sqlite_engine(parsed, self._memory) if self._sqlite else _postgresql_engine(parsed)
        self._alone: AbstractContextManager[Any] = RLock() if self._memory else nullcontext()
        self._failing = False  # a write has failed, and no probe has gone through since

    def read(self, work: Callable[[Connection], T]) -> T:
        """The result of `work` on one consistent state."""
        return self._again(work, {"begin": "BEGIN"} if self._sqlite else {"isolation_level": "REPEATABLE READ"})

    def write(self, work: Callable[[Connection], T]) -> T:
        """The result of `work`, durable; or an error and nothing done. `work` may run again after a conflict."""
        try:
            return self._again(work, {"begin": "BEGIN IMMEDIATE"} if self._sqlite else {})
        except StorageError as error:
            if not self._failing:
                _LOG.fault("the store takes nothing", error)
            self._failing = True
            raise

    def ready(self, probe: Table) -> bool:
        """Whether a transaction can be made now: one that empties `probe`, which holds nothing.

        After a write that failed, as on a full disk, as much as a large group of reports must find room there first:
        a small write may still find some where they do not, and a write that is not tried again tells nothing.
        """
        try:
            if self._failing:
                self._find_room(probe)
            self.write(lambda connection: connection.execute(_empty(probe)))
        except StorageError:
            return False
        return True

    def _find_room(self, probe: Table) -> None:
        def work(connection: Connection) -> None:
            connection.execute(_empty(probe))
            connection.execute(insert(probe), [{"one": 1, "body": os.urandom(_PROBE)}])

        self.write(work)
        self._failing = False
        _LOG.info("the store works again")

    def insert(self, table: Table) -> Any:
        """The INSERT that knows ON CONFLICT in this database's dialect."""
        return sqlite.insert(table) if self._sqlite else postgresql.insert(table)

    def forget(self, *tables: Table) -> None:
        """After deletions: give back what still holds the deleted rows. Best effort: the rows are sealed anyway."""
        vacuum = f"VACUUM {', '.join(table.name for table in tables)}"
        options = {} if self._sqlite else {"isolation_level": "AUTOCOMMIT"}
        with suppress(SQLAlchemyError), self._alone, self.engine.connect() as connection:
            connection = connection.execution_options(**options)
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)" if self._sqlite else vacuum)

    def close(self) -> None:
        self.engine.dispose()

    def _again(self, work: Callable[[Connection], T], options: dict[str, Any]) -> T:
        for left in reversed(range(_TRIES)):
            try:
                return self._once(work, options)
            except DBAPIError as error:
                if not left or _code(error) not in _AGAIN:
                    raise StorageError(f"{self.name} {_say(error)}") from None
        raise AssertionError("unreachable")

    def _once(self, work: Callable[[Connection], T], options: dict[str, Any]) -> T:
        with self._alone, self.engine.connect() as connection:
            connection = connection.execution_options(**options)
            with connection.begin():
                return work(connection)


def _empty(probe: Table) -> Delete:
    """Writes nothing where nothing is; without its condition SQLite would clear an empty table anew each time."""
    return delete(probe).where(probe.c.one == 1)


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
    except ArgumentError:
        backend = ""
    if backend not in ("sqlite", "postgresql"):
        raise ConfigError("`store` must be a URL such as sqlite:///store.sqlite or postgresql://user@host/name.")
    return parsed.set(drivername="sqlite" if backend == "sqlite" else "postgresql+psycopg")


def _name(url: URL) -> str:
    return f"the database {url.database or 'in memory'}"


def _sqlite_engine(url: URL, memory: bool) -> Engine:
    if memory:
        engine = create_engine(url, poolclass=StaticPool, connect_args={"check_same_thread": False})
    else:
        _create_private(url)
        engine = create_engine(url, connect_args={"timeout": float(url.query.get("timeout", _PATIENCE))})  # type: ignore[arg-type]
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _create_private(url: URL) -> None:
    """The file, readable by its owner only; its log takes over these rights."""
    if url.database and not url.database.startswith("file:"):
        with suppress(OSError):  # the error comes, in words, when the database is opened
            os.close(os.open(Path(url.database), os.O_CREAT | os.O_RDWR, 0o600))


def _prepare_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions begin where `_begin_sqlite` says, not where the driver guesses
    _use_log(connection)
    for pragma in (
        "synchronous=FULL",
        "secure_delete=ON",
        "foreign_keys=ON",
        "temp_store=MEMORY",
        f"cache_size=-{_CACHE_KIB}",
        f"wal_autocheckpoint={_LOG_PAGES}",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _use_log(connection: Any) -> None:
    """Switch to the write-ahead log; while another process switches, SQLite refuses at once instead of waiting."""
    for _ in range(_SWITCH_TRIES):
        with suppress(OperationalError):
            connection.execute("PRAGMA journal_mode=WAL")
            return
        sleep(_SWITCH_WAIT)
    connection.execute("PRAGMA journal_mode=WAL")


def _begin_sqlite(connection: Connection) -> None:
    begin = connection.get_execution_options().get("begin")
    if begin:
        connection.exec_driver_sql(begin)


def _postgresql_engine(url: URL) -> Engine:
    return create_engine(
        url,
        isolation_level="READ COMMITTED",
        pool_pre_ping=True,
        connect_args={
            "connect_timeout": _PATIENCE,
            "options": f"-c synchronous_commit=on -c lock_timeout={_PATIENCE}s",
        },
    )


def _code(error: DBAPIError) -> str:
    """SQLite's name or PostgreSQL's SQLSTATE of an error; empty if the server could not be asked."""
    return getattr(error.orig, "sqlite_errorname", None) or getattr(error.orig, "sqlstate", None) or ""


def _say(error: DBAPIError) -> str:
    code = _code(error)
    if not code or error.connection_invalidated:
        return _SAID[""]
    for beginning, said in _SAID.items():
        if beginning and code.startswith(beginning):
            return said
    return f"refuses a transaction ({code}); nothing was stored."

"""One database, SQLite or PostgreSQL: durable transactions, and errors of one line.

SQLite: write-ahead log, every commit synced, deleted bytes overwritten, one writer at a time (BEGIN IMMEDIATE).
PostgreSQL: what must not run twice locks the rows of its rounds first, in the order of their numbers (read
committed); what only reads sees one moment (repeatable read).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from sqlite3 import OperationalError
from threading import RLock
from time import monotonic, sleep
from typing import Any, Literal, Protocol, TypeVar, get_args
from weakref import finalize

from sqlalchemy import (
    URL,
    Column,
    Connection,
    Delete,
    Engine,
    MetaData,
    Table,
    Text,
    create_engine,
    delete,
    event,
    insert,
    inspect,
    make_url,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from dovetail.collect.logs import Log
from dovetail.collect.store.tables import ANALYZER, ISSUER, SHUFFLER, VAULT
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
        self._memory = _is_memory(parsed)
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
        """True if a transaction can be made now: one that empties `probe`, which holds nothing.

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
    """Writes nothing to an empty table; without its condition SQLite would clear an empty table anew each time."""
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


def in_memory(url: str) -> bool:
    """True for a database that forgets when its process ends."""
    return _is_memory(_parse(url))


def _is_memory(url: URL) -> bool:
    place = url.database or ":memory:"
    return url.get_backend_name() == "sqlite" and (":memory:" in place or url.query.get("mode") == "memory")


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


# The tables of a role, made when its database is first opened, and a row that says which they are.


Role = Literal["shuffler", "analyzer", "issuer"]

_TABLES: dict[Role, MetaData] = {"shuffler": SHUFFLER, "analyzer": ANALYZER, "issuer": ISSUER}
_VERSIONS: dict[Role, str] = {"shuffler": "shuffler/1", "analyzer": "analyzer/1", "issuer": "issuer/1"}
SCHEMA_VERSION = Table("schema_version", MetaData(), Column("version", Text, primary_key=True))
_SCHEMA_LOCK = 0x_D0_7E_7A_11  # any fixed number: who makes tables holds this advisory lock


def open_database(url: str, role: Role) -> Database:
    """The database at `url` with the tables of `role`, which an empty one gets in one transaction.

    Raises
    ------
    ConfigError
        When `url` names no database that we know.
    StorageError
        When it cannot be reached or written, belongs to the other role, or has other tables than this version's.
    """
    database = Database(url)
    try:
        database.write(lambda connection: _make_tables(connection, role, database.name))
    except StorageError:
        database.close()
        raise
    return database


def _make_tables(connection: Connection, role: Role, name: str) -> None:
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})")
    there = {*inspect(connection).get_table_names()} & {*_TABLES[role].tables, SCHEMA_VERSION.name}
    if there:
        _refuse_other(connection, there, role, name)
    else:
        _TABLES[role].create_all(connection, checkfirst=False)
        SCHEMA_VERSION.create(connection)
        connection.execute(insert(SCHEMA_VERSION), {"version": _VERSIONS[role]})
    connection.execute(delete(SCHEMA_VERSION).where(SCHEMA_VERSION.c.version == ""))  # a read-only one says so now


def _refuse_other(connection: Connection, there: set[str], role: Role, name: str) -> None:
    found = "of something else"
    if SCHEMA_VERSION.name in there:  # "*": before the first release its column had another name
        found = str(connection.exec_driver_sql(f"SELECT * FROM {SCHEMA_VERSION.name}").scalar() or found)
    owner = next((each for each in get_args(Role) if found.startswith(each)), role)
    if owner != role:
        raise StorageError(f"{name} belongs to the {owner}; the {role} needs one of its own.")
    if found != _VERSIONS[role]:
        raise StorageError(
            f"{name} has tables {found}, this version of Dovetail knows {_VERSIONS[role]}: "
            "use the version that made them, or an empty database."
        )


# Work that one process at a time does for all processes on a database: turning rounds, delivering batches.
#
# The lock ends with its process, or with its session on a server. It saves work and orders it; what must not be done
# twice is decided by transactions, so that nothing breaks where a session was lost and two of them work.


Task = Literal["rounds", "delivery"]

_KEYS: dict[Task, int] = {"rounds": 0x_D0_7E_7A_13, "delivery": 0x_D0_7E_7A_14}  # any fixed numbers but those in use
_PAUSE = 0.05  # seconds between tries


@contextmanager
def alone(database: Database, task: Task, patience: float = 0.0) -> Iterator[bool]:
    """Give True inside if this process alone has the task, after waiting so many seconds for another."""
    with ExitStack() as held:
        if database.engine.dialect.name == "postgresql":
            taken = _tried(lambda: _lock_session(database, _KEYS[task], held), patience)
        elif database.file is not None:
            lock = FileLock(f"{database.file.partition('?')[0]}-{task}", database.name)
            held.callback(lock.release)
            taken = _tried(lock.alone, patience)
        else:
            taken = True  # in memory: nobody else can reach it
        yield taken


def _tried(take: Callable[[], bool], patience: float) -> bool:
    end = monotonic() + patience
    while not take():
        if monotonic() >= end:
            return False
        sleep(_PAUSE)
    return True


def _lock_session(database: Database, key: int, held: ExitStack) -> bool:
    try:
        session = database.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        taken = bool(session.exec_driver_sql(f"SELECT pg_try_advisory_lock({key})").scalar())
    except SQLAlchemyError:
        raise StorageError(f"{database.name} cannot be reached; is its server running?") from None
    if taken:
        held.callback(_unlock, session, key)
    else:
        session.close()
    return taken


def _unlock(session: Connection, key: int) -> None:
    with suppress(SQLAlchemyError):
        try:
            session.exec_driver_sql(f"SELECT pg_advisory_unlock({key})")
        except SQLAlchemyError:  # the lock has ended with the session
            session.invalidate()
        session.close()


# One vault for one database: any number of processes share both, nobody comes with another vault meanwhile.
#
# Whoever works on the database holds a shared lock, which ends with its process; only who can have it alone may note
# another vault. SQLite: a lock on a file beside the database. PostgreSQL: an advisory lock of a session of its own.


_CLAIM_TRIES, _CLAIM_PAUSE = 3, 0.01  # seconds
_KEY = 0x_D0_7E_7A_12  # any fixed number but those in use


class Lock(Protocol):
    def share(self) -> bool:
        """Hold it beside others, or go on doing so; False while somebody has it alone."""

    def alone(self) -> bool:
        """Hold it alone; False, and nothing held, while somebody else holds it too."""

    def release(self) -> None: ...


class VaultClaim:
    """The claim of one process on its database, kept until `release`."""

    def __init__(self, database: Database) -> None:
        self._database, self._lock = database, lock_of(database)

    def claim(self, identity: str, foreign: Callable[[], None] = lambda: None) -> bool:
        """See `ShufflerStore.claim_vault`."""
        for left in reversed(range(_CLAIM_TRIES)):
            if self._lock.share() and (self._noted() == identity or self._note(identity, foreign)):
                return True
            self._lock.release()
            if left:  # perhaps for others that start now with the same new vault: each waits a time of its own
                sleep(_CLAIM_PAUSE * (1 + os.getpid() % 16))
        return False

    def _note(self, identity: str, foreign: Callable[[], None]) -> bool:
        """Another vault than the one before, if nobody works with that; the first one of all in any case."""
        row = {"one": 1, "identity": identity}
        note = self._database.insert(VAULT).values(row)
        if self._noted() is None:
            self._database.write(lambda connection: connection.execute(note.on_conflict_do_nothing()))
        elif self._lock.alone():
            foreign()  # durable first: once the database names this vault, nobody can tell any more
            note = note.on_conflict_do_update(index_elements=["one"], set_=row)
            self._database.write(lambda connection: connection.execute(note))
        return self._lock.share() and self._noted() == identity  # somebody may have been quicker in between

    def release(self) -> None:
        self._lock.release()

    def _noted(self) -> str | None:
        return self._database.read(lambda connection: connection.scalar(select(VAULT.c.identity)))


def lock_of(database: Database) -> Lock:
    """The lock on who works on a database."""
    if database.engine.dialect.name == "postgresql":
        return _AdvisoryLock(database)
    return _NoLock() if database.file is None else FileLock(f"{database.file.partition('?')[0]}-lock", database.name)


class _NoLock:
    """Of a database in memory, which nobody else can reach."""

    def share(self) -> bool:
        return True

    def alone(self) -> bool:
        return True

    def release(self) -> None: ...


class FileLock:
    """A lock on a file of its own, made if there is none; it ends with its process."""

    def __init__(self, path: str, name: str) -> None:
        self._path, self._name = path.removeprefix("file:"), name
        self._descriptor: int | None = None

    def share(self) -> bool:
        return self._hold(fcntl.LOCK_SH)

    def alone(self) -> bool:
        return self._hold(fcntl.LOCK_EX)

    def release(self) -> None:
        if self._descriptor is not None:
            self._close()
            self._descriptor = None

    def _hold(self, how: int) -> bool:
        try:
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
                self._close = finalize(self, os.close, self._descriptor)
            fcntl.flock(self._descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise StorageError(
                f"{self._name} cannot be locked ({error.strerror}); may its folder be written?"
            ) from None
        return True


class _AdvisoryLock:
    """A session that holds it shared, and at times alone besides; one that broke has lost both, and is made again."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._session: Connection | None = None
        self._alone = False

    def share(self) -> bool:
        try:
            return self._share()
        except SQLAlchemyError:
            self.release()
        try:
            return self._share()
        except SQLAlchemyError:
            self.release()
            raise StorageError(f"{self._database.name} cannot be reached; is its server running?") from None

    def alone(self) -> bool:
        try:
            self._alone = self._ask("pg_try_advisory_lock")
        except SQLAlchemyError:
            self.release()
        return self._alone

    def release(self) -> None:
        session, self._session, self._alone = self._session, None, False
        if session is not None:
            session.invalidate()  # the locks end with it
            session.close()

    def _share(self) -> bool:
        if self._session is None:
            self._session = self._database.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            return self._ask("pg_try_advisory_lock_shared")
        self._ask("pg_advisory_unlock" if self._alone else "abs")  # "abs": any question that says it still answers
        self._alone = False
        return True

    def _ask(self, function: str) -> bool:
        assert self._session is not None
        return bool(self._session.exec_driver_sql(f"SELECT {function}({_KEY})").scalar())

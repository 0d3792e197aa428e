"""One vault for one database: any number of processes share both, nobody comes with another vault meanwhile.

Whoever works on the database holds a shared lock, which ends with its process; only who can have it alone may note
another vault. SQLite: a lock on a file beside the database. PostgreSQL: an advisory lock of a session of its own.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from time import sleep
from typing import Protocol
from weakref import finalize

from sqlalchemy import Connection, select
from sqlalchemy.exc import SQLAlchemyError

from dovetail.collect.store.engine import Database
from dovetail.collect.store.tables import VAULT
from dovetail.core.errors import StorageError

_TRIES, _PAUSE = 3, 0.01  # seconds
_KEY = 0x_D0_7E_7A_12  # any fixed number but the one of the migrations


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
        for left in reversed(range(_TRIES)):
            if self._lock.share() and (self._noted() == identity or self._note(identity, foreign)):
                return True
            self._lock.release()
            if left:  # perhaps for others that start now with the same new vault: each waits a time of its own
                sleep(_PAUSE * (1 + os.getpid() % 16))
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
    return _NoLock() if database.file is None else _FileLock(f"{database.file.partition('?')[0]}-lock", database.name)


class _NoLock:
    """Of a database in memory, which nobody else can reach."""

    def share(self) -> bool:
        return True

    def alone(self) -> bool:
        return True

    def release(self) -> None: ...


class _FileLock:
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

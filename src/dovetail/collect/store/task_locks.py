"""Work that one process at a time does for all processes on a database: turning rounds, delivering batches.

The lock ends with its process, or with its session on a server. It saves work and orders it; what must not be done
twice is decided by transactions, so that nothing breaks where a session was lost and two of them work.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from time import monotonic, sleep
from typing import Literal

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from dovetail.collect.store.engine import Database
from dovetail.core.errors import StorageError

Task = Literal["rounds", "delivery"]

_KEYS: dict[Task, int] = {"rounds": 0x_D0_7E_7A_13, "delivery": 0x_D0_7E_7A_14}  # any fixed numbers but those in use
_PAUSE = 0.05  # seconds between tries


@contextmanager
def alone(database: Database, task: Task, patience: float = 0.0) -> Iterator[bool]:
    """Whether this process has the task to itself inside; somebody else's end is waited for so many seconds."""
    with ExitStack() as held:
        if database.engine.dialect.name == "postgresql":
            taken = _tried(lambda: _lock_session(database, _KEYS[task], held), patience)
        elif database.file is not None:
            place = database.file.partition("?")[0].removeprefix("file:")
            taken = _tried(lambda: _lock_file(f"{place}-{task}", database.name, held), patience)
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


def _lock_file(path: str, name: str, held: ExitStack) -> bool:
    try:
        with ExitStack() as opened:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            opened.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held.push(opened.pop_all())
    except BlockingIOError:
        return False
    except OSError as error:
        raise StorageError(f"{name} cannot be locked ({error.strerror}); may its folder be written?") from None
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

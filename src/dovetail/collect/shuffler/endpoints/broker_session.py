"""What a shuffler must remember of its session at a broker: under which client id, and for which topics.

The client id is random and secret: whoever connects under it takes the session over and can empty its queue. So it
cannot be made from keys, which are public, and it does not change with them. The topics are those that the broker may
still hold for this session: one that is served no more has to be unsubscribed by name.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from dovetail.core.errors import ConfigError, StorageError

_VERSION = 1


@dataclass(frozen=True)
class BrokerSession:
    """The file at `path`, which only its owner can read; see `open` and `remember`."""

    path: Path
    client_id: str = field(repr=False)
    topics: frozenset[str] = frozenset()

    @classmethod
    def open(cls, path: Path) -> Self:
        """The session of the file, or a new one where there is none, durable before it is used."""
        try:
            text, mode = path.read_text(encoding="utf-8"), path.stat().st_mode
        except FileNotFoundError:
            new = cls(path, f"dovetail-{secrets.token_hex(16)}")
            new._save()
            return new
        except (OSError, UnicodeDecodeError):
            raise _unreadable(path) from None
        if mode & 0o077:
            raise ConfigError(f"{path} is open to others than its owner; make it private with chmod 600.")
        return cls(path, *_parse(text, path))

    def remember(self, topics: Iterable[str]) -> Self:
        """The session with these topics, and no others; durable when it returns."""
        session = replace(self, topics=frozenset(topics))
        if session != self:
            session._save()
        return session

    def _save(self) -> None:
        document = {"schema_version": _VERSION, "client_id": self.client_id, "topics": sorted(self.topics)}
        draft = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}")
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(document, file)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self.path)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise _unwritable(self.path, error) from None


class SessionLock:
    """One process of a shuffler has the session; two under one client id would throw each other out for ever."""

    def __init__(self, session: Path) -> None:
        self._path = session.with_name(f"{session.name}-lock")
        self._held: int | None = None

    def take(self) -> bool:
        """Whether this process has the session now; it ends with the process."""
        if self._held is None:
            try:
                with ExitStack() as opened:
                    descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
                    opened.callback(os.close, descriptor)
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    opened.pop_all()
                    self._held = descriptor
            except BlockingIOError:
                return False
            except OSError as error:
                raise _unwritable(self._path, error) from None
        return True

    def release(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            os.close(held)


def _parse(text: str, path: Path) -> tuple[str, frozenset[str]]:
    try:
        found = json.loads(text)
        version, client_id, topics = found["schema_version"], found["client_id"], found["topics"]
    except (ValueError, KeyError, TypeError):
        raise _unreadable(path) from None
    whole = isinstance(topics, list) and all(isinstance(each, str) for each in topics)
    if version != _VERSION or not whole or not re.fullmatch("dovetail-[0-9a-f]{32}", str(client_id)):
        raise _unreadable(path)
    return client_id, frozenset(topics)


def _unwritable(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"{path} cannot be written ({error.strerror}); name a file in a folder of the shuffler's own as "
        "`mqtt.session`."
    )


def _unreadable(path: Path) -> ConfigError:
    return ConfigError(
        f"{path} is not a session that can be read; move it away, and the shuffler begins a new one: devices send "
        "again what it has not answered."
    )

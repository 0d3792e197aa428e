"""Logs that cannot tell on anybody: those of the servers, and the signed log of what operators did."""

from __future__ import annotations

import hmac
import json
import logging
import os
import re
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TextIO, get_args

from dovetail.collect.clock import Clock, SystemClock, minute
from dovetail.core.errors import DataError, ParameterError, StorageError
from dovetail_protocol.keys import RoleKeys, SigningKey, VerifyingKey, raw, text

# Logs that cannot tell on anybody: JSON lines with known fields, numbers and names only, times in whole minutes.
#
# A fault is logged by its type and place, never by its message, which could carry data; so are the lines of
# libraries. A field that is not on the list, or a text that is no name, is a mistake in our own code: tests fail on
# it, a running server leaves it out.


FIELDS = frozenset(
    (
        *("role", "campaign", "version", "suite", "round", "rounds", "batch", "state", "before", "after", "kind"),
        *("count", "minimum", "accepted", "duplicates", "rejected", "dropped", "superseded", "waiting", "revoked"),
        *("attempt", "seconds", "status", "port", "purged", "tokens"),
    )
)
BASE = "dovetail.collect"
logging.getLogger(BASE).addHandler(logging.NullHandler())  # silent until a server calls `server_log.setup`
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # no dot and no colon: neither an address nor a key is a name
_EVENT = re.compile(r"[a-z][a-z ,]{1,60}")

Field = int | float | str | tuple[int, ...] | None


class Log:
    """Log of one module; events are fixed words, fields are numbers and names."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(f"{BASE}.{name}")

    def info(self, event: str, **fields: Field) -> None:
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, **fields: Field) -> None:
        self._write(logging.WARNING, event, fields)

    def fault(self, event: str, error: BaseException, **fields: Field) -> None:
        """Something broke: the type of the error and the line that raised it, without its message."""
        self._write(logging.ERROR, event, fields, error)

    def _write(self, level: int, event: str, fields: dict[str, Field], error: BaseException | None = None) -> None:
        wrong = [name for name, value in fields.items() if name not in FIELDS or not _harmless(value)]
        wrong += [] if _EVENT.fullmatch(event) else ["event"]
        if wrong and not _in_production():
            raise ParameterError(f"`{wrong[0]}` must be a field that logs may hold, with a number or a name.")
        kept = {name: value for name, value in fields.items() if name not in wrong}
        self._logger.log(level, event if "event" not in wrong else "unnamed", extra={"fields": kept, "error": error})


class ServerHandler(logging.StreamHandler[TextIO]):
    """Where a running server writes its lines; `server_log.setup` installs it."""


def _in_production() -> bool:
    return any(isinstance(handler, ServerHandler) for handler in logging.getLogger().handlers)


def _harmless(value: object) -> bool:
    if isinstance(value, str):
        return _NAME.fullmatch(value) is not None
    parts = value if isinstance(value, tuple) else (value,)
    return all(part is None or isinstance(part, (int, float)) for part in parts)


# The log of a running server: one JSON document per line, of the fields that `logs` allows and nothing else.


class AllowedFields(logging.Formatter):
    """Writes what `Log` has checked; of a library's line, only that there was one and where it failed."""

    def format(self, record: logging.LogRecord) -> str:
        """One line of JSON."""
        ours = hasattr(record, "fields")
        error = getattr(record, "error", None) or (record.exc_info[1] if record.exc_info else None)
        told: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(minute(record.created))),
            "level": record.levelname.lower(),
            "from": record.name.removeprefix(f"{BASE}."),
            "event": record.getMessage() if ours else "library",
            **getattr(record, "fields", {}),
        }
        if error is not None:
            told |= {"error": type(error).__name__, "place": _place(error)}
        return json.dumps(told)


def setup(stream: TextIO) -> None:
    """Send this process's logs to `stream`, those of libraries from warnings on; called when a server starts."""
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, ServerHandler)]:
        root.removeHandler(handler)
    handler = ServerHandler(stream)
    handler.setFormatter(AllowedFields())
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger(BASE).setLevel(logging.INFO)
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # it warns once for each bad request of a stranger


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "unknown"
    return f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}"


# What operators did: one signed line for each action, chained by digests, so that no line is changed or taken out.
#
# ::
#
#     line   = JSON of number, time, action, facts, before, by, signature
#     before = SHA-256 of the whole line before, 64 zeros in the first
#
# The key that signs is derived from the secrets of the role: a log belongs to one key file and lies beside it. A line
# is written before its action takes effect: what is not in the log was not done with these commands. Whoever holds
# the role's secrets can write another log, and lines can be cut off the end: who must be able to tell keeps the
# digest of the last line, the head, elsewhere.


Action = Literal[
    "keys made",
    "campaign signed",
    "round closed",
    "round dropped",
    "keys rotated",
    "versions changed",
    "keys destroyed",
    "campaign handed over",
    "token added",
    "token withdrawn",
    "server started",
]
FACTS = frozenset(("role", "campaign", "version", "digest", "round", "key", "count"))
NOTHING = "0" * 64  # before the first line
_DOMAIN = b"dovetail audit v1\0"
_ACTION = re.compile(r"[A-Za-z0-9_,-]{1,64}")  # a name, a number or a digest; never a value, an address or a path

Fact = int | str


@dataclass(frozen=True)
class AuditEntry:
    """One action; `digest` names the line, and the last one is the head of the log."""

    number: int
    time: str
    action: str
    facts: dict[str, Fact]
    digest: str


@dataclass(frozen=True)
class AuditLog:
    """The log of one key file; several processes may write to it."""

    path: Path
    key: SigningKey = field(repr=False)
    clock: Clock = field(default_factory=SystemClock)

    @classmethod
    def of(cls, keys: RoleKeys, place: Path) -> AuditLog:
        """The log of these keys, beside their file `place`."""
        return cls(place.with_name(place.name + ".audit"), audit_key(keys))

    def append(self, action: Action, **facts: Fact) -> AuditEntry:
        """Write that this is done now; durable when it returns. A log that somebody else has touched is refused."""
        _check(action, facts)
        try:
            with _locked(self.path) as file:
                return self._append(file, action, facts)
        except OSError as error:
            if isinstance(error, StorageError):
                raise
            raise StorageError(
                f"the audit log {self.path} cannot be written ({error.strerror}); nothing was done."
            ) from None

    def _append(self, file: Any, action: Action, facts: dict[str, Fact]) -> AuditEntry:
        *lines, torn = file.read().split(b"\n")
        by, number, before = self.key.verifying_key(), 1, NOTHING
        if lines:
            last = _read(lines[-1], by, self.path, len(lines))
            number, before = last.number + 1, last.digest
        if torn:  # a line that was cut short was never acted upon
            file.truncate(file.seek(0, os.SEEK_END) - len(torn))
        time = datetime.fromtimestamp(self.clock.now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        body = {"number": number, "time": time, "action": action, "facts": facts, "before": before, "by": str(by)}
        line = _json(body | {"signature": text(self.key.sign(_DOMAIN + _json(body)))})
        file.seek(0, os.SEEK_END)
        file.write(line + b"\n")
        file.flush()
        os.fsync(file.fileno())
        return AuditEntry(number, time, action, facts, _digest(line))


def audit_key(keys: RoleKeys) -> SigningKey:
    """The key that signs what is done with these keys; from it nobody finds theirs."""
    secrets = b"".join(part.secret for part in (keys.signing, keys.opening) if part is not None)
    return SigningKey(hmac.digest(secrets, _DOMAIN + keys.role.encode(), "sha256"))


def verify_log(path: Path, key: VerifyingKey) -> list[AuditEntry]:
    """All entries of a log; DataError names the first line that is not signed by `key`, or does not follow."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        raise DataError(f"{path}: no audit log that can be read.") from None
    if lines.pop():
        raise DataError(f"{path}, line {len(lines) + 1}: is cut short; the next action takes it away.")
    entries, before = list[AuditEntry](), NOTHING
    for number, line in enumerate(lines, 1):
        entry = _read(line, key, path, number)
        if entry.number != number or json.loads(line)["before"] != before:
            raise DataError(f"{path}, line {number}: does not follow the line before; lines were taken out or moved.")
        before = entry.digest
        entries.append(entry)
    return entries


def _read(line: bytes, key: VerifyingKey, path: Path, number: int) -> AuditEntry:
    """The entry of a line that this key has signed, byte for byte."""
    try:
        found = json.loads(line)
        proof = raw(found.pop("signature"))
        good = _json(found | {"signature": text(proof)}) == line and key.verifies(proof, _DOMAIN + _json(found))
        entry = AuditEntry(found["number"], found["time"], found["action"], found["facts"], _digest(line))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        good = False
    if not good:
        raise DataError(f"{path}, line {number}: is not signed by {key}, or has been changed since.")
    return entry


def _check(action: str, facts: dict[str, Fact]) -> None:
    if action not in get_args(Action):
        raise ParameterError(f"`action` must be one of {', '.join(get_args(Action))}, got {action!r}.")
    for name, fact in facts.items():
        if name not in FACTS or not _ACTION.fullmatch(str(fact)):
            raise ParameterError(f"`{name}` must be a fact that an audit log may hold, with a number or a name.")


def _json(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def _digest(line: bytes) -> str:
    return sha256(line).hexdigest()


@contextmanager
def _locked(path: Path) -> Iterator[Any]:
    """The file, made if it is absent, held against other processes where the system can."""
    made = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    with os.fdopen(made, "r+b") as file:
        with suppress(ImportError):  # there is none on Windows
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def coarse(count: int) -> int:
    """`count` rounded down to a multiple of 10: a published count that one person almost never moves.

    >>> coarse(19), coarse(20)
    (10, 20)
    """
    return count // 10 * 10

"""Logs that cannot tell on anybody: JSON lines with known fields, numbers and names only, times in whole minutes.

A fault is logged by its type and place, never by its message, which could carry data; so are the lines of libraries.
A field that is not on the list, or a text that is no name, is a mistake in our own code: tests fail on it, a running
server leaves it out.
"""

from __future__ import annotations

import json
import logging
import re
import time
import traceback
from typing import TextIO

from dovetail.collect.clock import minute
from dovetail.core.errors import ParameterError

FIELDS = frozenset(
    (
        *("role", "campaign", "version", "suite", "round", "rounds", "batch", "state", "before", "after", "kind"),
        *("count", "minimum", "accepted", "duplicates", "rejected", "dropped", "superseded", "waiting", "revoked"),
        *("attempt", "seconds", "status", "port", "purged", "tokens"),
    )
)
_BASE = "dovetail.collect"
logging.getLogger(_BASE).addHandler(logging.NullHandler())  # silent until a server calls `setup`
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # no dot and no colon: neither an address nor a key is a name
_EVENT = re.compile(r"[a-z][a-z ,]{1,60}")

Field = int | float | str | tuple[int, ...] | None


class Log:
    """What one module says; events are fixed words, fields are numbers and names."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(f"{_BASE}.{name}")

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


class _Lines(logging.Formatter):
    """One JSON document per line."""

    def format(self, record: logging.LogRecord) -> str:
        ours = hasattr(record, "fields")
        error = getattr(record, "error", None) or (record.exc_info[1] if record.exc_info else None)
        line: dict[str, Field] = {
            "time": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(minute(record.created))),
            "level": record.levelname.lower(),
            "from": record.name.removeprefix(f"{_BASE}."),
            "event": record.getMessage() if ours else "library",
        }
        line |= getattr(record, "fields", {})
        if error is not None:
            line |= {"error": type(error).__name__, "place": _place(error)}
        return json.dumps(line)


class _Production(logging.StreamHandler[TextIO]):
    """Where a running server writes its lines."""


def setup(stream: TextIO) -> None:
    """Send this process's logs to `stream`, those of libraries from warnings on; called when a server starts."""
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, _Production)]:
        root.removeHandler(handler)
    handler = _Production(stream)
    handler.setFormatter(_Lines())
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger(_BASE).setLevel(logging.INFO)
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # it warns once for each bad request of a stranger


def logger(name: str) -> Log:
    """The log of a module, such as `logger("shuffler.delivery")`."""
    return Log(name)


def _in_production() -> bool:
    return any(isinstance(handler, _Production) for handler in logging.getLogger().handlers)


def _harmless(value: object) -> bool:
    if isinstance(value, str):
        return _NAME.fullmatch(value) is not None
    parts = value if isinstance(value, tuple) else (value,)
    return all(part is None or isinstance(part, (int, float)) for part in parts)


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "unknown"
    return f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}"

"""Logs that cannot tell on anybody: JSON lines with known fields, numbers and names only, times in whole minutes.

A fault is logged by its type and place, never by its message, which could carry data; so are the lines of libraries.
A field that is not on the list, or a text that is no name, is a mistake in our own code: tests fail on it, a running
server leaves it out.
"""

from __future__ import annotations

import logging
import re
from typing import TextIO

from dovetail.core.errors import ParameterError

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
    """What one module says; events are fixed words, fields are numbers and names."""

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

"""The log of a running server: one JSON document per line, of the fields that `logs` allows and nothing else."""

from __future__ import annotations

import logging
import time
import traceback
from typing import Any, TextIO

from pythonjsonlogger.json import JsonFormatter

from dovetail.collect.clock import minute
from dovetail.collect.logs import BASE, ServerHandler


class AllowedFields(JsonFormatter):
    """Writes what `Log` has checked; of a library's line, only that there was one and where it failed."""

    def add_fields(self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]) -> None:
        ours = hasattr(record, "fields")
        error = getattr(record, "error", None) or (record.exc_info[1] if record.exc_info else None)
        log_data["time"] = time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(minute(record.created)))
        log_data["level"] = record.levelname.lower()
        log_data["from"] = record.name.removeprefix(f"{BASE}.")
        log_data["event"] = record.getMessage() if ours else "library"
        log_data.update(getattr(record, "fields", {}))
        if error is not None:
            log_data |= {"error": type(error).__name__, "place": _place(error)}


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

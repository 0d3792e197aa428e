"""Writing TOML: tables of simple values, each with a comment above it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

Tables = Mapping[str, Mapping[str, Any]]  # "" holds the keys above all tables


def toml(tables: Tables, comments: Mapping[str, str] | None = None) -> str:
    """Tables with their comments; empty ones are left out.

    Examples
    --------
    >>> print(toml({"": {"id": "commute"}, "batch": {"minimum": 5}}, {"batch": "What leaves."}), end="")
    id = "commute"
    <BLANKLINE>
    # What leaves.
    [batch]
    minimum = 5
    """
    said = comments or {}
    parts = []
    for name, table in tables.items():
        if table:
            head = [f"# {said[name]}"] if name in said else []
            head += [f"[{name}]"] if name else []
            parts.append("\n".join([*head, *(f"{key} = {_value(value)}" for key, value in table.items())]))
    return "\n\n".join(parts) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, str):  # a JSON text is one of TOML, but for the character 127
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)

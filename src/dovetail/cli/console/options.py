"""Options that several verbs take."""

from __future__ import annotations

from typing import Any


def given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def as_whole(value: float | None) -> Any:
    """1e6 as the whole number that it is; whoever is asked refuses what is none."""
    return int(value) if value is not None and float(value).is_integer() else value

"""The reason that stands where a number would, when it does not apply."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Missing:
    """A metric that does not apply, with the reason."""

    reason: str

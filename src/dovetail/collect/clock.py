"""What time it is: asked of the system in production, told by the test otherwise."""

from __future__ import annotations

import time
from typing import Protocol

from dovetail.core.checks import real, refuse


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since 1970."""


class SystemClock:
    """The system's clock."""

    def now(self) -> float:
        return time.time()


class FrozenClock:
    """A clock that moves only when it is told to, for simulations and tests.

    Examples
    --------
    >>> clock = FrozenClock(60.0)
    >>> clock.advance(1.5)
    >>> clock.now()
    61.5
    """

    def __init__(self, now: float) -> None:
        self._now = real("now", now)

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass, at least 0."""
        if real("seconds", seconds) < 0.0:
            raise refuse("seconds", "a finite number, at least 0", seconds)
        self._now += seconds


def minute(now: float) -> float:
    """`now` in whole minutes, rounded down: the finest time that stores and logs keep.

    >>> minute(119.9)
    60.0
    """
    return now // 60.0 * 60.0

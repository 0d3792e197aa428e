"""Clocks: the system's in production, and one that tests set."""

from __future__ import annotations

import time
from functools import cached_property
from pathlib import Path
from typing import Protocol

from dovetail.core.checks import real, refuse

_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since 1970."""

    def steady(self) -> float:
        """Seconds since the machine booted, asleep or not: nobody can set them."""

    def boot(self) -> str:
        """Names this boot of this machine; empty where nothing does."""


class SystemClock:
    """The system's clock; no process outlives the boot whose name it has read."""

    def now(self) -> float:
        return time.time()

    def steady(self) -> float:
        return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))

    def boot(self) -> str:
        return self._boot

    @cached_property
    def _boot(self) -> str:
        try:
            return _BOOT.read_text(encoding="ascii").strip()
        except OSError:
            return ""


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
        self._steady = 0.0

    def now(self) -> float:
        return self._now

    def steady(self) -> float:
        return self._steady

    def boot(self) -> str:
        return "frozen"

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass, at least 0."""
        if real("seconds", seconds) < 0.0:
            raise refuse("seconds", "a finite number, at least 0", seconds)
        self._now += seconds
        self._steady += seconds

    def set(self, now: float) -> None:
        """Somebody sets the clock; no time passes."""
        self._now = real("now", now)


def minute(now: float) -> float:
    """`now` in whole minutes, rounded down: the finest time that stores and logs keep.

    >>> minute(119.9)
    60.0
    """
    return now // 60.0 * 60.0

"""Waiting for events. No test depends on how fast the machine is: the limit matters on failure alone.

`test_architecture.py` refuses clocks and short limits everywhere else in the tests.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any

import pytest

PATIENCE = 600.0  # seconds; what has not happened by then never will


def until(
    true: Callable[[], Any],
    *passing: type[Exception],
    alive: Callable[[], bool] = lambda: True,
    pause: float = 0.02,
) -> Any:
    """What `true` answers as soon as that counts as true; errors of the kinds `passing` mean not yet."""
    end = time.monotonic() + PATIENCE
    while True:
        with suppress(*passing):
            if found := true():
                return found
        assert alive(), "what was waited for ended before it happened"
        assert time.monotonic() < end, f"it did not happen within {PATIENCE:.0f} s"
        time.sleep(pause)


def ends(work: Callable[[], Any]) -> Any:
    """What `work` returns; fails where it hangs."""
    found: list[Any] = []
    thread = Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert found, "it hangs, or has failed"
    return found[0]


class LoopClock:
    """The clock of every asyncio loop of this process: it runs, and can be put forward."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._ahead = 0.0
        patch.setattr(asyncio.BaseEventLoop, "time", lambda _: time.monotonic() + self._ahead)

    def pass_time(self, seconds: float) -> None:
        """Timers that fall due run as soon as their loop wakes up: ask its server something."""
        self._ahead += seconds

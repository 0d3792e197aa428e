"""Stores that die: every operation may end the process before it happens, or after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dovetail.collect.simulate.faults import Crash

_SAFE = frozenset({"ready", "close"})


class CrashInjector:
    """A store, vault, outbox or transport whose operations raise `Crash` when `dies` says so, before or afterwards.

    What a real operation does is atomic and durable, so that before and after are all there is.
    """

    def __init__(self, inside: Any, dies: Callable[[], bool]) -> None:
        self._inside, self._dies = inside, dies

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inside, name)
        if name.startswith("_") or name in _SAFE or not callable(found):
            return found

        def dying(*arguments: Any, **named: Any) -> Any:
            self._die()
            result = found(*arguments, **named)
            self._die()
            return result

        return dying

    def _die(self) -> None:
        if self._dies():
            raise Crash

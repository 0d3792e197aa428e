"""The function that a long job calls to tell how far it is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]  # step, done, total
Tick = Callable[[int, int], None]  # done, total: of a single step


def silent(step: str, done: int, total: int) -> None:
    """Nobody watches."""


def no_tick(done: int, total: int) -> None:
    """Nobody watches a single step."""

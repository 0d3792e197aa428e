"""How many messages of each kind came: for the store, and rounded down for everybody who watches."""

from __future__ import annotations

from collections import Counter
from threading import Lock

from dovetail.collect.store.interfaces import ShufflerStore

_STEP = 10


class MessageCounters:
    """Counts by campaign and kind; a message of no known campaign counts under ""."""

    def __init__(self) -> None:
        self._total = Counter[tuple[str, str]]()
        self._unsaved = Counter[tuple[str, str]]()  # refusals that the store has not been told yet
        self._lock = Lock()

    def count(self, campaign: str, kind: str) -> None:
        """A message came, and was accepted, known already (duplicate), or refused as `kind`."""
        with self._lock:
            self._total[campaign, kind] += 1
            if campaign and kind not in ("accepted", "duplicate"):
                self._unsaved[campaign, kind] += 1

    def save(self, store: ShufflerStore) -> None:
        """Add to the store's counters what is new; after a fault the numbers wait for the next time."""
        with self._lock:
            unsaved, self._unsaved = self._unsaved, Counter()
        try:
            if unsaved:
                store.add_faults(dict(unsaved))
        except Exception:
            with self._lock:
                self._unsaved.update(unsaved)
            raise

    def total(self) -> dict[tuple[str, str], int]:
        """Exact counts since the start; whatever leaves the process is rounded by `coarse` first."""
        with self._lock:
            return dict(self._total)


def coarse(count: int) -> int:
    """`count` rounded down to a multiple of 10: a published count that one report almost never moves.

    >>> coarse(19), coarse(20)
    (10, 20)
    """
    return count // _STEP * _STEP

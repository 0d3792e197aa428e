"""How many messages of each kind came: for the store, and for everybody who watches in steps that tell on nobody.

What is published of reports that count moves only when a round of the campaign takes no more of them, and then in
tens: whoever knows of nine reports does not see the tenth arrive.
"""

from __future__ import annotations

from collections import Counter
from threading import Lock

from dovetail.collect.store.interfaces import ShufflerStore

_STEP = 10
_OF_PEOPLE = ("accepted", "duplicate")  # what somebody's arrival in an open round moves


class MessageCounters:
    """Counts by campaign and kind; a message of no known campaign counts under ""."""

    def __init__(self) -> None:
        self._total = Counter[tuple[str, str]]()
        self._unsaved = Counter[tuple[str, str]]()  # refusals that the store has not been told yet
        self._settled = Counter[tuple[str, str]]()  # of reports that count, as of the last round's end
        self._lock = Lock()

    def count(self, campaign: str, kind: str) -> None:
        """A message came, and was accepted, known already (duplicate), or refused as `kind`."""
        with self._lock:
            self._total[campaign, kind] += 1
            if campaign and kind not in _OF_PEOPLE:
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

    def settle(self, campaign: str) -> None:
        """A round of the campaign is closed: what came until now may be told."""
        with self._lock:
            self._settled.update({key: self._total[key] - self._settled[key] for key in _keys(campaign)})

    def published(self) -> dict[tuple[str, str], int]:
        """Counts for everybody, in tens: refusals as of now, reports that count as of the last round's end."""
        with self._lock:
            shown = {key: count for key, count in self._total.items() if key[1] not in _OF_PEOPLE} | self._settled
        return {key: coarse(count) for key, count in sorted(shown.items()) if coarse(count)}

    def total(self) -> dict[tuple[str, str], int]:
        """Exact counts since the start, which never leave the process."""
        with self._lock:
            return dict(self._total)


def _keys(campaign: str) -> list[tuple[str, str]]:
    return [(campaign, kind) for kind in _OF_PEOPLE]


def coarse(count: int) -> int:
    """`count` rounded down to a multiple of 10: a published count that one report almost never moves.

    >>> coarse(19), coarse(20)
    (10, 20)
    """
    return count // _STEP * _STEP

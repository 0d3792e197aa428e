"""How generated points are searched: exactly, or from a million training rows on approximately with measured recall.

Fresh points are always searched exactly. A neighbour that is missed makes a generated point look farther than it is,
so approximate search can hide copying and cannot feign it: every p-value for copying stays an upper bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy
from dovetail.core.errors import ParameterError
from dovetail.memorize.copying.copied_fraction import clopper_pearson
from dovetail.memorize.copying.duplicates import row_keys
from dovetail.memorize.copying.search.inverted_lists import InvertedLists
from dovetail.memorize.copying.search.training_index import TREE_DIMENSIONS, TrainingIndex

Points = NDArray[np.float64]  # (n, d)
Rows = NDArray[np.int64]  # (n,)
Tick = Callable[[int, int], None]  # done, total

LARGE = 1_000_000  # training rows from which "auto" is approximate
ENOUGH = 0.99  # recall that "auto" asks for, on fresh points
SHARES = (1 / 64, 1 / 32, 1 / 16, 1 / 8)  # of the lists that may be searched
CHECKED = 1_000  # queries whose neighbours are searched exactly too, to measure recall
_SAME = 1e-9  # relative; an equally near neighbour is no miss
DIRECTION = (
    "missed neighbours make generated points look farther than they are: copying may be understated, never overstated"
)


@dataclass(frozen=True)
class Recall:
    """Of `queries` generated points drawn at random, `found` got as near a neighbour as exact search finds."""

    queries: int
    found: int

    @property
    def interval(self) -> tuple[float, float]:
        """95 %, Clopper-Pearson."""
        return clopper_pearson(self.found, self.queries)

    @property
    def missed(self) -> float:
        """At most this share of generated points misses its neighbour, with confidence 97.5 %."""
        return 1.0 - self.interval[0]


@dataclass(frozen=True)
class SearchNote:
    """What is said of a search; `recall` is None where it was exact."""

    why: str
    recall: Recall | None = None
    searched: float = 1.0  # share of the lists

    @property
    def missed(self) -> float:
        """At most this share of generated points misses its neighbour."""
        return 0.0 if self.recall is None else self.recall.missed

    @property
    def sentence(self) -> str:
        """What a reader of the verdict has to know; empty for exact search of a small sample."""
        if self.recall is None:
            return self.why
        low, high = self.recall.interval
        return (
            f"Generated points were searched approximately ({self.searched:.1%} of the lists): "
            f"{self.recall.found:,} of {self.recall.queries:,} got their true nearest training row, recall "
            f"{self.recall.found / self.recall.queries:.3f} (95 % interval {low:.4f} to {high:.4f}); {DIRECTION}."
        )

    def document(self) -> dict[str, Any]:
        """JSON-ready; fresh points, held-out controls and exact copies are exact in both."""
        if self.recall is None:
            return {"method": "exact", "reason": self.why or "fewer rows than approximate search is for"}
        return {
            "method": "approximate",
            "exact": ["fresh", "holdout controls", "membership", "exact copies"],
            "lists_searched": self.searched,
            "recall": {
                "value": self.recall.found / self.recall.queries,
                "interval": list(self.recall.interval),
                "queries": self.recall.queries,
                "found": self.recall.found,
            },
            "direction": DIRECTION,
        }


@dataclass(frozen=True, eq=False)
class GeneratedSearch:
    """The index of T as generated samples ask it.

    Parameters
    ----------
    index : TrainingIndex
    lists : InvertedLists or None
        None for exact search.
    probes : int
        Lists searched for each query.
    why : str
        Of exact search where somebody could expect another.
    """

    index: TrainingIndex
    lists: InvertedLists | None = None
    probes: int = 0
    why: str = ""

    def nearest(self, queries: Points, rng: Entropy, *, tick: Tick) -> tuple[NDArray[np.float64], Rows, SearchNote]:
        """Distances (m,), training rows (m,), and how well they were found."""
        if self.lists is None:
            return (*self.index.nearest(queries, tick=tick), SearchNote(self.why))
        rows = self.lists.nearest(queries, probes=self.probes, tick=tick)
        rows = self._copied(queries, rows)
        distances = self.index.distances_to(queries, rows)
        some = rng.permutation(len(queries))[:CHECKED]
        exact, nearer = self.index.nearest(queries[some])
        found = int(_as_near(distances[some], exact).sum())
        better = exact < distances[some]  # what was found on the way is not thrown away
        distances[some[better]], rows[some[better]] = exact[better], nearer[better]
        return distances, rows, SearchNote("", Recall(len(some), found), self.probes / len(self.lists.centres))

    def _copied(self, queries: Points, rows: Rows) -> Rows:
        """The rows that were found, or the equal row where there is one: centres tie among rounded values."""
        keys, asked = row_keys(self.index.points), row_keys(queries)
        order = np.argsort(keys, kind="stable")
        place = order[np.minimum(np.searchsorted(keys, asked, sorter=order), len(keys) - 1)]
        return np.where(keys[place] == asked, place, rows)


def choose_search(
    index: TrainingIndex, fresh: tuple[Points, NDArray[np.float64]], *, search: str, seed: int, tick: Tick
) -> GeneratedSearch:
    """Exact search, or as few lists as find the neighbours of 99 % of the fresh points (n, d), distances (n,).

    Parameters
    ----------
    search : "auto", "exact" or "approximate"
        "auto" is approximate from a million training rows on, where an eighth of the lists or less is enough.
    """
    if search not in ("auto", "exact", "approximate"):
        raise ParameterError(f"`search` must be auto, exact or approximate, got {search!r}.")
    if search == "exact" or (search == "auto" and len(index.points) < LARGE):
        return GeneratedSearch(index)
    if index.points.shape[1] <= TREE_DIMENSIONS:
        return GeneratedSearch(
            index, why=f"Searched exactly, by a tree: up to {TREE_DIMENSIONS} numbers nothing is faster."
        )
    tick(0, 1)
    lists = InvertedLists.build(index.points, seed=seed)
    points, distances = (part[:CHECKED] for part in fresh)
    probes, recall = 1, 0.0
    for share in SHARES:
        probes = max(1, round(share * len(lists.centres)))
        found = index.distances_to(points, lists.nearest(points, probes=probes))
        recall = float(_as_near(found, distances).mean())
        if recall >= ENOUGH:
            break
    tick(1, 1)
    if recall < ENOUGH and search == "auto":
        why = (
            f"Searched exactly: an eighth of the lists finds the neighbours of {recall:.1%} of the fresh points only."
        )
        return GeneratedSearch(index, why=why)
    return GeneratedSearch(index, lists, probes)


def _as_near(found: NDArray[np.float64], exact: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray(found <= exact * (1.0 + _SAME))

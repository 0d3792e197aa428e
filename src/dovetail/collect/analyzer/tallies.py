"""Reports as counts: small, without order, and enough for every estimate; and back."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from dovetail.collect.store.interfaces import GroupTally
from dovetail.core import estimate
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer, Reports
from dovetail.estimate.mean import ClampedGrid, whole_steps
from dovetail.randomize.vectors.shared.vector_randomizer import VectorRandomizer

Cells = NDArray[np.int64]  # (c,), ascending
CampaignRandomizer = FrequencyRandomizer | NumericRandomizer | VectorRandomizer


def tally_reports(randomizer: CampaignRandomizer, reports: Reports, *, group: str) -> GroupTally:
    """Counts of the reports of one public group.

    A cell is what the randomizer's own tally counts: a report, a symbol, or the sum of a coordinate. For numbers it
    is the grid step of the report, where the noise is geometric clamped to the range: all that estimators look at,
    and a bound on what one report can do.
    """
    if isinstance(randomizer, NumericRandomizer):
        steps = whole_steps(randomizer, reports)
        if randomizer.memoryless:
            steps = ClampedGrid.of(randomizer).clamp(steps)
        cells, counts = np.unique(steps, return_counts=True)
    else:
        dense = randomizer.tally(reports)
        cells = np.flatnonzero(dense)
        counts = dense[cells]
    return _tally(group, len(reports), cells, counts)


def add_tallies(tallies: Iterable[GroupTally], *, group: str = "") -> GroupTally:
    """Tallies of disjoint sets of reports as the tally of all of them.

    Examples
    --------
    >>> add_tallies([GroupTally("a", 3, ((0, 2), (5, 1))), GroupTally("b", 2, ((5, 2),))])
    GroupTally(group='', n=5)
    """
    parts = list(tallies)
    pairs = _pairs(parts)
    cells, where = np.unique(pairs[:, 0], return_inverse=True)
    counts = np.zeros(cells.size, dtype=np.int64)
    np.add.at(counts, where, pairs[:, 1])
    return _tally(group, sum(part.n for part in parts), cells, counts)


def tallies_by_group(tallies: Iterable[GroupTally]) -> dict[str, GroupTally]:
    """One tally for each public group, by its name."""
    found: dict[str, list[GroupTally]] = {}
    for part in tallies:
        found.setdefault(part.group, []).append(part)
    return {name: add_tallies(found[name], group=name) for name in sorted(found)}


def estimator_tally(randomizer: FrequencyRandomizer | VectorRandomizer, counted: GroupTally) -> estimate.Tally:
    """The tally as the estimator of frequencies or of vectors takes it."""
    nobody = np.empty((0, randomizer.device.report_bytes), dtype=np.uint8)
    counts = randomizer.tally(randomizer.decode_bytes(nobody)[0])  # zeros, as many as there are cells
    cells, filled = _pairs([counted]).T
    counts[cells] = filled
    return estimate.Tally(counts, counted.n)


def expand_tally(counted: GroupTally) -> Reports:
    """Reports (n,) that have this tally: those of numbers, clamped, in ascending order."""
    cells, counts = _pairs([counted]).T
    return np.repeat(cells, counts)


def _pairs(parts: list[GroupTally]) -> NDArray[np.int64]:
    """Cells and counts (c, 2) of all parts, one after the other."""
    return np.array([pair for part in parts for pair in part.counts], dtype=np.int64).reshape(-1, 2)


def _tally(group: str, n: int, cells: Cells, counts: Cells) -> GroupTally:
    return GroupTally(group, n, tuple(zip(cells.tolist(), counts.tolist(), strict=True)))

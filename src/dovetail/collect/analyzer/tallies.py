"""Reports as counts: small, without order, and enough for every estimate; and back.

Where a report answers several questions, the cells of question q are its own and q times `APART`: a tally then holds
one tally for each question, and nothing of how answers go together. Where each answers one, which people draw, the
last of them holds how many have drawn it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.collect.store.interfaces import GroupTally
from dovetail.core import estimate
from dovetail.core.stages import Encoded, FrequencyRandomizer, NumericRandomizer, Reports, Valid
from dovetail.estimate.mean import ClampedGrid, whole_steps
from dovetail.job.messages import CHOSEN
from dovetail.randomize.sampling.open_reports import decode_reports
from dovetail.randomize.sampling.vector_randomizer import VectorRandomizer
from dovetail_protocol.joint import Drawn, Several
from dovetail_protocol.mechanism import Mechanism

Cells = NDArray[np.int64]  # (c,), ascending
APART = 1 << 40  # more cells than a question has
DREW = APART - 1  # the cell of a drawn question that counts its reports
CampaignRandomizer = FrequencyRandomizer | NumericRandomizer | VectorRandomizer


def decode_all(mechanism: Mechanism, encoded: Encoded) -> tuple[Reports, Valid]:
    """`decode_reports`, where a report may have a part for each question: a field for each, and all of them valid."""
    if not isinstance(mechanism, Several):
        return decode_reports(mechanism, encoded)
    if isinstance(mechanism, Drawn):
        return _decode_drawn(mechanism, encoded)
    ends = np.cumsum([part.report_bytes for part in mechanism.parts])[:-1]
    found = [decode_reports(*pair) for pair in zip(mechanism.parts, np.split(encoded, ends, axis=1), strict=True)]
    valid = np.logical_and.reduce([fine for _, fine in found])
    kept = [reports[valid[fine]] for reports, fine in found]
    whole = np.empty(int(valid.sum()), dtype=[(str(q), own.dtype, own.shape[1:]) for q, own in enumerate(kept)])
    for q, own in enumerate(kept):
        whole[str(q)] = own
    return whole, valid


def _decode_drawn(mechanism: Drawn, encoded: Encoded) -> tuple[Reports, Valid]:
    """Reports of which each has the field of one question, and its number under `CHOSEN`."""
    valid = np.zeros(len(encoded), dtype=np.bool_)
    found = list[tuple[NDArray[np.int64], Reports]]()
    for place, part in enumerate(mechanism.parts):
        end = 1 + part.report_bytes
        rows = np.flatnonzero((encoded[:, 0] == place) & ~encoded[:, end:].any(axis=1))
        own, fine = decode_reports(part, encoded[rows, 1:end])
        valid[rows[fine]] = True
        found.append((rows[fine], own))
    fields: list[Any] = [(str(q), own.dtype, own.shape[1:]) for q, (_, own) in enumerate(found)]
    whole = np.zeros(len(encoded), dtype=[(CHOSEN, np.uint8), *fields])
    for q, (rows, own) in enumerate(found):
        whole[CHOSEN][rows], whole[str(q)][rows] = q, own
    return whole[valid], valid


def tally_all(forms: Sequence[CampaignRandomizer], reports: Reports, *, group: str) -> GroupTally:
    """Counts of the reports of one public group, question by question."""
    if len(forms) == 1:
        return tally_reports(forms[0], reports, group=group)
    counts = list[tuple[int, int]]()
    for q, form in enumerate(forms):
        own = reports[reports[CHOSEN] == q] if CHOSEN in (reports.dtype.names or ()) else reports
        counts += [(q * APART + cell, count) for cell, count in tally_reports(form, own[str(q)], group=group).counts]
        if own is not reports and own.size:
            counts.append((q * APART + DREW, own.size))
    return GroupTally(group, len(reports), tuple(counts))


def tally_of_question(counted: GroupTally, place: int, *, drawn: bool = False) -> GroupTally:
    """The tally of one of several questions, of the people who have drawn it where they draw one.

    >>> tally_of_question(GroupTally("", 2, ((0, 1), (1, 1), (APART + 7, 2))), 1).counts
    ((7, 2),)
    >>> tally_of_question(GroupTally("", 3, ((0, 2), (DREW, 2), (APART + 7, 1), (APART + DREW, 1))), 1, drawn=True)
    GroupTally(group='', n=1)
    """
    first = place * APART
    own = {cell - first: count for cell, count in counted.counts if first <= cell < first + APART}
    n = own.pop(DREW, 0) if drawn else counted.n
    return GroupTally(counted.group, n, tuple(own.items()))


def marginal_tally(counted: GroupTally, sizes: Sequence[int], place: int) -> GroupTally:
    """The tally of one of several questions whose answers were counted by their combinations; blanks stay blanks.

    >>> marginal_tally(GroupTally("", 6, ((0, 1), (2, 2), (5, 1), (6, 2))), (2, 3), 1).counts
    ((0, 1), (2, 3), (3, 2))
    """
    after = prod(sizes[place + 1 :])
    own = tuple(
        (cell // after % sizes[place] if cell < prod(sizes) else sizes[place], count)
        for cell, count in counted.counts
    )
    return add_tallies([GroupTally(counted.group, counted.n, own)], group=counted.group)


def united_tally(counted: GroupTally, first: int, size: int) -> GroupTally:
    """The tally of one of several questions whose symbols are numbered one after the other: `size` from `first` on.

    >>> united_tally(GroupTally("", 6, ((0, 1), (2, 2), (5, 1))), 2, 3).counts
    ((0, 2),)
    """
    own = tuple((cell - first, count) for cell, count in counted.counts if first <= cell < first + size)
    return GroupTally(counted.group, counted.n, own)


def tally_reports(randomizer: CampaignRandomizer, reports: Reports, *, group: str) -> GroupTally:
    """Counts of the reports of one public group to one question.

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

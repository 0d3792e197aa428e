r"""Atoms: people whom no group tells apart, so that their order among themselves is free.

.. math:: i \sim j \iff \{G : i \in G\} = \{G : j \in G\} \ne \emptyset
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from dovetail.core.entropy import Permutation
from dovetail.core.errors import DataError
from dovetail.shuffle.groups.connected_components import twins
from dovetail.shuffle.groups.ranges import People, Places
from dovetail.shuffle.sampling.permutations import checked, inverse

if TYPE_CHECKING:
    from dovetail.shuffle.groups.groups import Groups

Codes = Places  # (n,), 0.. without gaps


def atoms(groups: Groups) -> Codes:
    """Atom of each person (n,), numbered 0.. in the order of their first member.

    People in no group are atoms of their own: nothing is promised to them, so nothing may move them. For windows of
    labels the list is never made longer than n; where windows lie inside each other (own radius for each person)
    atoms are runs of the label order, possibly finer than the definition, which is always safe.

    Notes
    -----
    O(members of all groups), or O(n log n) for windows. Fingerprints find the candidates, comparison confirms them.

    Examples
    --------
    >>> from dovetail.shuffle.groups.groups import Groups
    >>> atoms(Groups.from_lists([[0, 1, 2], [2, 3]], 5))
    array([0, 0, 1, 2, 3])
    """
    same = _of_windows(groups) if groups.lined else twins(groups.rows.transposed(groups.n))
    alone = np.flatnonzero(~groups.grouped)
    same[alone] = alone
    leads = np.asarray(same == np.arange(groups.n))
    return np.asarray((np.cumsum(leads) - 1)[same])


def checked_atoms(given: ArrayLike, groups: Groups) -> Codes:
    """Codes of atoms that are not coarser than `atoms(groups)`; coarser ones would break the promise."""
    codes = np.asarray(given)
    if codes.shape != (groups.n,) or codes.dtype.kind not in "iu" or (codes.size and codes.min() < 0):
        raise DataError(f"`atoms` must be {groups.n:,} codes 0.., got shape {codes.shape} of {codes.dtype}.")
    codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    true = atoms(groups)
    first = np.empty(int(codes.max(initial=-1)) + 1, dtype=np.int64)
    first[codes[::-1]] = true[::-1]
    torn = np.flatnonzero(first[codes] != true)
    if torn.size:
        raise DataError(
            f"`atoms` must join people with the same groups only, got {torn.size:,} who differ; first {torn[0]}."
        )
    return codes


def pairs_within(groups: Groups, codes: Codes) -> Places:
    r"""Pairs of members of a common atom in each group (groups,): :math:`\sum_{a \subseteq G} \binom{m_a}{2}`.

    Reordering inside an atom costs nothing, so these pairs are taken off the sensitivity.
    """
    others = np.bincount(codes, minlength=1)[codes] - 1
    if not others.any():
        return np.zeros(len(groups), dtype=np.int64)
    rows = groups.rows
    if groups.lined:
        sums = np.concatenate(([0], np.cumsum(others[rows.people])))
        return np.asarray((sums[rows.stops] - sums[rows.starts]) // 2)
    return np.asarray(_sum_rows(rows.people, rows.starts, rows.stops, others)) // 2


def contiguous(order: ArrayLike, codes: ArrayLike) -> Permutation:
    """The order in which people with equal codes stand together, each block at the mean of their places.

    Of blocks with equal means the one that begins earlier is first, whatever its code; inside a block people keep
    their order.

    >>> contiguous([0, 1, 2, 3, 4], [7, 8, 8, 7, 9])
    array([0, 3, 1, 2, 4])
    """
    blocks = np.asarray(codes, dtype=np.int64)
    if blocks.min(initial=0) < 0:
        raise DataError(f"`codes` must be at least 0, got {int(blocks.min())}.")
    line = checked(order, blocks.size, name="order")
    counts = np.bincount(blocks)
    if counts.max(initial=0) <= 1:
        return line
    places = inverse(line)
    means, firsts = block_places(places, blocks)
    return np.lexsort((places, firsts[blocks], means[blocks]))


def block_places(places: Permutation, blocks: Codes) -> tuple[NDArray[np.float64], Places]:
    """Mean and first place of the people of each block (blocks,)."""
    counts = np.bincount(blocks)
    firsts = np.full(counts.size, places.size, dtype=np.int64)
    np.minimum.at(firsts, blocks, places)
    return np.bincount(blocks, weights=places) / np.maximum(counts, 1), firsts


def _of_windows(groups: Groups) -> Places:
    """First member of the run of each person; a run ends where a window begins or ends."""
    rows, n = groups.rows, groups.n
    cut = np.zeros(n + 1, dtype=np.bool_)
    cut[rows.starts] = cut[rows.stops] = cut[0] = True
    run = np.cumsum(cut[:n]) - 1
    first = np.full(int(run[-1]) + 1, n, dtype=np.int64)
    np.minimum.at(first, run, rows.people)
    same = np.empty(n, dtype=np.int64)
    same[rows.people] = first[run]
    return same


@njit(cache=True, nogil=True)
def _sum_rows(people: People, starts: Places, stops: Places, values: Places) -> Places:
    result = np.zeros(starts.size, dtype=np.int64)
    for g in range(starts.size):
        for member in people[starts[g] : stops[g]]:
            result[g] += values[member]
    return result

"""Atoms in a reference order: they stand together, and pairs inside one atom cost no sensitivity."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.entropy import Permutation
from dovetail.core.errors import DataError
from dovetail.core.numeric.compiled import njit
from dovetail.shuffle.groups.atoms import Codes
from dovetail.shuffle.groups.groups import Groups
from dovetail.shuffle.groups.ranges import People, Places
from dovetail.shuffle.sampling.permutations import check_permutation, inverse


def check_atoms(given: ArrayLike, groups: Groups) -> Codes:
    """Codes of atoms that are not coarser than `groups.atoms()`; coarser ones would break the promise."""
    codes = np.asarray(given)
    if codes.shape != (groups.n,) or codes.dtype.kind not in "iu" or (codes.size and codes.min() < 0):
        raise DataError(f"`atoms` must be {groups.n:,} codes 0.., got shape {codes.shape} of {codes.dtype}.")
    codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    true = groups.atoms()
    first = np.empty(int(codes.max(initial=-1)) + 1, dtype=np.int64)
    first[codes[::-1]] = true[::-1]
    torn = np.flatnonzero(first[codes] != true)
    if torn.size:
        raise DataError(
            f"`atoms` must join people with the same groups only, got {torn.size:,} who differ; first {torn[0]}."
        )
    return codes


def pairs_within_atoms(groups: Groups, codes: Codes) -> Places:
    r"""Pairs of members of a common atom in each group (groups,): :math:`\sum_{a \subseteq G} \binom{m_a}{2}`.

    Reordering inside an atom costs nothing, so these pairs are taken off the sensitivity.
    """
    others = np.bincount(codes, minlength=1)[codes] - 1
    if not others.any():
        return np.zeros(len(groups), dtype=np.int64)
    rows = groups.rows
    if groups.contiguous:
        sums = np.concatenate(([0], np.cumsum(others[rows.people])))
        return np.asarray((sums[rows.stops] - sums[rows.starts]) // 2)
    return np.asarray(_sum_rows(rows.people, rows.starts, rows.stops, others)) // 2


def make_contiguous(order: ArrayLike, codes: ArrayLike) -> Permutation:
    """The order in which people with equal codes stand together, each block at the mean of their places.

    Of blocks with equal means the one that begins earlier is first, whatever its code; inside a block people keep
    their order.

    >>> make_contiguous([0, 1, 2, 3, 4], [7, 8, 8, 7, 9])
    array([0, 3, 1, 2, 4])
    """
    blocks = np.asarray(codes, dtype=np.int64)
    if blocks.min(initial=0) < 0:
        raise DataError(f"`codes` must be at least 0, got {int(blocks.min())}.")
    line = check_permutation(order, blocks.size, name="order")
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


@njit(cache=True, nogil=True)
def _sum_rows(people: People, starts: Places, stops: Places, values: Places) -> Places:
    result = np.zeros(starts.size, dtype=np.int64)
    for g in range(starts.size):
        for member in people[starts[g] : stops[g]]:
            result[g] += values[member]
    return result

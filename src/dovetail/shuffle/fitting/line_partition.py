r"""Partitions of a line into k groups: equal blocks, which are optimal, and the paper's agglomerative clustering.

The width of a group depends on places in the reference order alone, so once the order is fixed the least
sensitivity of k groups is reached by k contiguous blocks of nearly equal size:

.. math:: w = \lceil n / k \rceil - 1, \qquad \Delta = w (w + 1) / 2

because some group has at least ceil(n / k) members. The paper states that this problem is NP-hard (Theorem 2).
"""

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import whole
from dovetail.core.entropy import Permutation
from dovetail.shuffle.groups.groups import Groups

Sizes = NDArray[np.int64]  # (k,)


def equal_blocks(n: int, k: int) -> Sizes:
    """Sizes of k contiguous blocks of n places, the larger ones first; no k groups have a smaller width. O(k).

    >>> equal_blocks(8, 3)
    array([3, 3, 2])
    """
    n = whole("n", n, least=1)
    k = whole("k", k, least=1, most=n)
    return n // k + (np.arange(k) < n % k).astype(np.int64)


def agglomerate(n: int, k: int) -> Sizes:
    """Sizes of the k blocks that agglomerative clustering ends with: the paper's heuristic, for comparison.

    Everybody begins alone; again and again the two groups are merged whose union has the smallest width, the first
    such pair where several are equal (the paper does not say).

    Notes
    -----
    The best pair always stands side by side: the union of two groups with others between them is wider than the
    union of one of them and its neighbour. So only neighbours are searched, O(n (n - k)) in all: .01 s, .1 s and 5 s
    at n = 1e3, 1e4 and 1e5 with groups of 20. The merges are those of the paper's O(n^3) search of all pairs, which
    takes 1.6 s at n = 200. The result is up to about twice as wide as equal blocks.

    >>> agglomerate(8, 3)
    array([4, 2, 2])

    Source
    ------
    Wang, Tao, Zou, RASE, section IV-B and Algorithm 2.
    """
    n = whole("n", n, least=1)
    k = whole("k", k, least=1, most=n)
    sizes = np.ones(n, dtype=np.int64)
    for left in range(n, k, -1):
        first = int(np.argmin(sizes[1:left] + sizes[: left - 1]))
        sizes[first] += sizes[first + 1]
        sizes[first + 1 : left - 1] = sizes[first + 2 : left]
    return sizes[:k].copy()


def cut_into_groups(order: Permutation, sizes: Sizes) -> Groups:
    """The groups of people that stand in contiguous blocks of these sizes along `order` (n,)."""
    block = np.empty(order.size, dtype=np.int64)
    block[order] = np.repeat(np.arange(sizes.size), sizes)
    return Groups.from_labels(block)

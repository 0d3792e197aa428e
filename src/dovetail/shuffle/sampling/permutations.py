"""Permutations of 0..n-1 as arrays, and how groups of labels mix under them."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import ceil, floor, isqrt

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import ArrayLike, NDArray

from dovetail.core.compiled import njit
from dovetail.core.discrete_noise import discrete_laplace
from dovetail.core.entropy import Entropy, Permutation, Words
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.shuffle.sampling.lehmer_code import BlockStarts
from dovetail_protocol.exact_thresholds import WORD, exp_bracket

Labels = NDArray[np.int64]  # (n,), 0..g-1
Mixing = NDArray[np.float64]  # (g, g), rows sum to 1

_MOST_CELLS = 10_000_000


def check_permutation(permutation: ArrayLike, n: int, name: str = "permutation") -> Permutation:
    """`permutation` as an array, each of 0..n-1 once; DataError otherwise."""
    given = np.asarray(permutation)
    if given.shape != (n,) or given.dtype.kind not in "iu":
        raise DataError(f"`{name}` must be {n:,} whole numbers, got shape {given.shape} of {given.dtype}.")
    if given.min() < 0 or given.max() >= n or not (np.bincount(given, minlength=n) == 1).all():
        raise DataError(f"`{name}` must hold each of 0..{n - 1} once, got {given[:8].tolist()}{' ..' * (n > 8)}.")
    return given.astype(np.int64)


def inverse(permutation: Permutation) -> Permutation:
    """The permutation that undoes this one.

    >>> inverse(np.array([2, 0, 1]))
    array([1, 2, 0])
    """
    result = np.empty_like(permutation)
    result[permutation] = np.arange(permutation.size)
    return result


def check_labels(labels: ArrayLike, n: int) -> Labels:
    """`labels` as an array (n,) of codes 0..g-1 for a table of g x g cells."""
    given = np.asarray(labels)
    if given.shape != (n,) or given.dtype.kind not in "iu" or given.min() < 0:
        raise DataError(f"`labels` must be {n:,} codes 0..g-1, got shape {given.shape} of {given.dtype}.")
    size = int(given.max()) + 1
    if size * size > _MOST_CELLS:
        raise UnsupportedError(
            f"A mixing table of {size:,} x {size:,} labels exceeds {_MOST_CELLS:,} cells; join labels."
        )
    return given.astype(np.int64)


def normalize_rows(flow: NDArray[np.float64]) -> Mixing:
    """Rows of expected flows (g, g) as shares; a label that nobody has keeps to itself."""
    total = flow.sum(axis=1, keepdims=True)
    return np.where(total > 0, flow / np.where(total > 0, total, 1.0), np.eye(len(flow)))


def number_rows(table: NDArray[np.int64]) -> Labels:
    """Numbers 0..g-1 of the rows (n, d): equal rows have the same.

    >>> number_rows(np.array([[5, 1], [5, 0], [5, 1]]))
    array([1, 0, 1])
    """
    return np.unique(table, axis=0, return_inverse=True)[1].reshape(len(table))


# Uniform permutations inside the blocks of a line, all at once.


_CHUNK = 1 << 14


def permute_within_blocks(starts: BlockStarts, rng: Entropy) -> Permutation:
    """A uniform permutation of 0..n-1 among those that map each block starts[b]..starts[b + 1] - 1 to itself."""
    result = np.arange(int(starts[-1]), dtype=np.int64)
    sizes = np.diff(starts)
    several = np.flatnonzero(sizes > 1)
    block, todo = 0, int(sizes[several[0]]) if several.size else 0
    left = int(sizes[several].sum())
    while block < several.size:
        block, todo = _deal(result, starts, several, block, todo, rng.words(min(_CHUNK, left + 8)))
    return result


@njit(cache=True, nogil=True)
def _deal(
    items: Permutation, starts: BlockStarts, blocks: BlockStarts, block: int, todo: int, words: Words
) -> tuple[int, int]:
    """Fisher-Yates with rejection, from the top of each block, until the words run out."""
    ones, used = np.uint64(0xFFFFFFFFFFFFFFFF), 0
    while block < blocks.size:
        start = starts[blocks[block]]
        while todo > 1:
            if used == words.size:
                return block, todo
            bound, word = np.uint64(todo), words[used]
            used += 1
            other = np.int64(word % bound)
            if word - np.uint64(other) > ones - (bound - np.uint64(1)):
                continue  # beyond the largest multiple of the bound
            todo -= 1
            items[start + todo], items[start + other] = items[start + other], items[start + todo]
        block += 1
        if block < blocks.size:
            todo = starts[blocks[block] + 1] - starts[blocks[block]]
    return block, todo


# Probability that independent Laplace numbers come in a given order, by quadrature.
#
# .. math:: \Pr[X_1 < .. < X_k], \quad X_i \sim c_i + \mathrm{Lap}(1): \qquad
#           F_1 = 1, \quad F_{i+1}(x) = \int_{-\infty}^x f_i(t) F_i(t)\, dt


Numbers = NDArray[np.float64]

_NODES = 16
_REACH = 45  # beyond it a density is below 3e-20
_FARTHEST = 1e5  # panels that are integrated


def log_order_probability(centres: Numbers) -> float:
    """log Pr[X_1 < .. < X_k]; its absolute error is below 1e-9 for up to 6 numbers, however unlikely their order.

    >>> round(float(np.exp(log_order_probability(np.array([0.0, 0.0, 0.0])))), 12)
    0.166666666667
    >>> round(log_order_probability(np.array([1000.0, 0.0])), 6)  # log((2 + 1000) / 4) - 1000
    -994.476541

    Raises
    ------
    UnsupportedError
        For centres that lie more than 1e5 apart.
    """
    low, high = float(centres.min()), float(centres.max())
    if high - low > _FARTHEST:
        raise UnsupportedError(
            f"keys that lie {high - low:.3g} units of noise apart: the law of their order is not integrated."
        )
    grid = np.arange(floor(low) - _REACH, ceil(high) + _REACH + 1, dtype=np.float64)
    ends = np.unique(np.concatenate((grid, centres)))  # densities are smooth between centres
    ends = ends[np.append(True, np.diff(ends) > 1e-12)]
    nodes, weights, within = _rule()
    width = np.diff(ends)
    x = ends[:-1, None] + width[:, None] * nodes  # (panels, nodes)
    below, total = np.zeros_like(x), 0.0  # logs
    with np.errstate(divide="ignore"):
        for centre in centres:
            density = below - np.abs(x - centre) + np.log(0.5 * width)[:, None]
            top = density.max(axis=1, keepdims=True)  # each panel in units of its own
            scaled = np.exp(density - top)
            panel = top[:, 0] + np.log(scaled @ weights)
            reached = np.logaddexp.accumulate(panel)
            before = np.concatenate(([-np.inf], reached[:-1]))
            below = np.logaddexp(before[:, None], top + np.log(np.maximum(scaled @ within.T, 0.0)))
            total = float(reached[-1])
    return min(0.0, total)


@cache
def _rule() -> tuple[Numbers, Numbers, Numbers]:
    """Gauss-Legendre nodes and weights on [0, 1], and the matrix of integrals from 0 to each node."""
    nodes, weights = legendre.leggauss(_NODES)
    table = legendre.legvander(nodes, _NODES - 1)
    integrals = np.stack([legendre.legval(nodes, legendre.legint(row, lbnd=-1)) for row in np.eye(_NODES)], axis=1)
    return (nodes + 1) / 2, weights / 2, integrals @ np.linalg.inv(table) / 2


# Exact planar Laplace noise on whole coordinates.
#
# .. math:: \Pr[z] \propto e^{-\rho \lVert z \rVert_2}, \qquad z \in \mathbb{Z}^2
#
# Two discrete Laplace numbers with rate rho A, A just below 1 / sqrt 2, are kept with probability
# e^(-rho (|z|_2 - A |z|_1)), which is at most 1 because |z|_1 <= sqrt 2 |z|_2; about 79 % are. Double precision
# decides where it surely can, exact rational arithmetic elsewhere, so the law is the ideal one: by the triangle
# inequality it is pure for whole moves of the plane.


Plane = NDArray[np.int64]  # (n, 2)

_A = Fraction(7_071_067_811, 10_000_000_000)  # below 1 / sqrt 2 = 0.70710678118..
_MARGIN = 1e-12  # above the rounding of exponents up to 90 and of the exponential, relative to the probability


def planar_laplace(rate: Fraction, count: int, rng: Entropy) -> Plane:
    """`count` independent draws (count, 2)."""
    result = np.empty((count, 2), dtype=np.int64)
    todo = np.arange(count)
    while todo.size:
        own = rng.at(todo)
        drawn = discrete_laplace(rate * _A, 2 * todo.size, own).reshape(-1, 2)
        kept = _accepted(rate, drawn, own)
        result[todo[kept]] = drawn[kept]
        todo = todo[~kept]
    return result


def _accepted(rate: Fraction, drawn: Plane, rng: Entropy) -> NDArray[np.bool_]:
    words = rng.words(len(drawn))
    size = np.abs(drawn).astype(np.float64)
    exponent = float(rate) * (np.hypot(size[:, 0], size[:, 1]) - float(_A) * size.sum(axis=1))
    chance = np.exp(-exponent) * float(WORD)
    gap = words.astype(np.float64) - chance
    kept = np.asarray(gap < 0.0)
    for row in np.flatnonzero(np.abs(gap) <= _MARGIN * chance + 4096.0):
        own = rng.at(np.array([row]))
        kept[row] = _decide_exactly(rate, int(drawn[row, 0]), int(drawn[row, 1]), int(words[row]), own)
    return kept


def _decide_exactly(rate: Fraction, x: int, y: int, uniform: int, rng: Entropy) -> bool:
    """True if the uniform number that begins with these 64 bits is below e^(-rho (|z|_2 - A |z|_1))."""
    bits = 64
    while True:
        scale = 1 << bits
        root = isqrt((x * x + y * y) * scale * scale)
        near, far = (rate * (Fraction(end, scale) - _A * (abs(x) + abs(y))) for end in (root, root + 1))
        if x == y == 0:
            return True
        low, high = exp_bracket(-far, bits // 3 + 40)[0], exp_bracket(-near, bits // 3 + 40)[1]
        if uniform + 1 <= low * scale:
            return True
        if uniform >= high * scale:
            return False
        uniform, bits = uniform * WORD + int(rng.words(1)[0]), bits + 64

r"""Exact planar Laplace noise on whole coordinates.

.. math:: \Pr[z] \propto e^{-\rho \lVert z \rVert_2}, \qquad z \in \mathbb{Z}^2

Two discrete Laplace numbers with rate rho A, A just below 1 / sqrt 2, are kept with probability
e^(-rho (|z|_2 - A |z|_1)), which is at most 1 because |z|_1 <= sqrt 2 |z|_2; about 79 % are. Double precision
decides where it surely can, exact rational arithmetic elsewhere, so the law is the ideal one: by the triangle
inequality it is pure for whole moves of the plane.
"""

from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy
from dovetail.core.numeric.geometric import discrete_laplace
from dovetail_protocol.exact_thresholds import WORD, exp_bracket

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
    """Whether the uniform number that begins with these 64 bits is below e^(-rho (|z|_2 - A |z|_1))."""
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

r"""The Mann-Whitney test of distances to the training sample: are generated points nearer than fresh ones.

.. math:: \hat\Delta = \frac{1}{mn} \#\{B_j > A_i\} + \frac{1}{2mn} \#\{B_j = A_i\}, \quad
          Z_U = \frac{mn (\hat\Delta - 1/2)}{\sigma}

with fresh distances A (n), generated distances B (m) and the variance of midranks under exchangeability.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import erfc, isnan, sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from dovetail.core.entropy import Entropy, entropy_or_system

Distances = NDArray[np.float64]  # (n,)
Method = Literal["exact", "normal", "permutation", "all distances are equal"]

EXACT_STEPS = 40_000_000  # cells of the table of the exact law, times observations: about a tenth of a second
INFORMATIVE = 10.0  # expected observations of the smaller sample outside the largest tie; below, no normal law
PERMUTATIONS = 500_000  # p-values down to 2e-6, for Holm over a few cells
ENOUGH = 200  # permutations as extreme as what was seen, after which no more are drawn
RESCALED = 256  # observations after which the table of the exact law is scaled to 1
_BATCH = 2_000


@dataclass(frozen=True)
class RankTest:
    """The outcome of the test; `p_copying` is one-sided for "nearer", `p_underfitting` for "farther"."""

    n: int
    m: int
    delta: float
    z: float
    p_copying: float
    p_underfitting: float
    method: Method

    def p_underfitting_below(self, missed: float) -> float:
        """p for under-fitting where this share of the generated distances may be too large, and Delta by as much."""
        if missed == 0.0:
            return self.p_underfitting
        spread = sqrt((self.n + self.m + 1) / (12.0 * self.n * self.m))
        return max(self.p_underfitting, _normal_below(-(self.delta - 0.5 - missed) / spread))


def rank_test(fresh: Distances, generated: Distances, *, rng: Entropy | None = None) -> RankTest:
    """Compare the distances (n,) of fresh points and (m,) of generated points; both at least one.

    The p-values are exact given the ties for small samples, from permutations where ties leave few observations to
    tell the samples apart, and normal with the variance of midranks otherwise. There is no continuity correction.

    Source
    ------
    Meehan, Chaudhuri, Dasgupta (2020), A non-parametric test to detect data-copying in generative models, AISTATS;
    Lehmann (1975), Nonparametrics, section 1.4 (ties).
    """
    n, m = len(fresh), len(generated)
    ranks = rankdata(np.concatenate([fresh, generated]))
    total = float(ranks[n:].sum())
    delta = (total - m * (m + 1) / 2) / (m * n)
    ties = np.unique(ranks, return_counts=True)[1].astype(np.float64)
    spread = sqrt(midrank_variance(ties, m))
    if spread == 0.0:
        return RankTest(n, m, delta, 0.0, 1.0, 1.0, "all distances are equal")
    z = m * n * (delta - 0.5) / spread
    low, high, method = _p_values(ranks, n, m, z, rng)
    return RankTest(n, m, delta, z, low, high, method)


def midrank_variance(ties: NDArray[np.float64], m: int) -> float:
    r"""Variance of the rank sum of m of N observations whose tie groups have these sizes.

    .. math:: \frac{mn}{12} \Bigl( (N + 1) - \sum_g \frac{t_g^3 - t_g}{N (N - 1)} \Bigr)

    Sizes are floats: t^3 leaves 64-bit integers above two million.
    """
    total = float(ties.sum())
    n = total - m
    if total < 2:
        return 0.0
    tied = float(((ties**3 - ties) / (total * (total - 1.0))).sum())
    return max(0.0, m * n / 12.0 * ((total + 1.0) - tied))


def _p_values(
    ranks: NDArray[np.float64], n: int, m: int, z: float, rng: Entropy | None
) -> tuple[float, float, Method]:
    doubled = np.rint(2 * ranks).astype(np.int64)  # midranks are halves
    doubled -= doubled.min()
    doubled //= np.gcd.reduce(doubled)
    scores, counts = np.unique(doubled, return_counts=True)
    seen, low_side = int(doubled[n:].sum()), min(n, m)
    if (low_side + 1) * _range(scores, counts, low_side) * (n + m) <= EXACT_STEPS:
        law, least = exact_law(scores, counts, m)
        place = seen - least
        return _closed(law[: place + 1].sum()), _closed(law[place:].sum()), "exact"
    if (n + m - counts.max()) * low_side / (n + m) >= INFORMATIVE:
        return _normal_below(z), _normal_below(-z), "normal"
    low, high = _permutation(scores, counts, seen, m, rng)
    return low, high, "permutation"


def _closed(probability: float) -> float:
    if isnan(probability):
        raise ArithmeticError("the exact law of the rank sum left the doubles")
    return float(min(1.0, probability))


def _normal_below(z: float) -> float:
    return 0.5 * erfc(-z / sqrt(2.0))


def _range(scores: NDArray[np.int64], counts: NDArray[np.int64], m: int) -> int:
    each = np.repeat(scores, counts)
    return int(each[-m:].sum() - each[:m].sum()) + 1


def exact_law(scores: NDArray[np.int64], counts: NDArray[np.int64], m: int) -> tuple[NDArray[np.float64], int]:
    """Law of the sum of the scores of m observations drawn from these tie groups, and the sum it begins with.

    The smaller of the two samples is counted; the other has what is left.
    """
    each = np.repeat(scores, counts)
    total = int(each.sum())
    k = min(m, len(each) - m)
    least = int(each[:k].sum())
    shift = scores - scores[0]
    width = int(each[len(each) - k :].sum()) - k * int(scores[0]) + 1
    table = np.zeros((k + 1, width))
    table[0, 0] = 1.0
    for score, count in zip(shift.tolist(), counts.tolist(), strict=True):
        for taken in range(count):  # one observation after another: Pascal's rule keeps the counts exact
            if score:
                table[1:, score:] += table[:-1, : width - score].copy()
            else:
                table[1:] += table[:-1].copy()
            if taken % RESCALED == 0:  # counts double at most with each observation, and would leave the doubles
                table /= table.max()
    law = table[k] / table[k].sum()
    begin = least - k * int(scores[0])
    law = law[begin:]
    if k == m:
        return law, least
    return law[::-1], total - (least + len(law) - 1)


def _permutation(
    scores: NDArray[np.int64], counts: NDArray[np.int64], seen: int, m: int, rng: Entropy | None
) -> tuple[float, float]:
    """(1 + number as extreme) / (B + 1), lower and upper; the largest tie is drawn as one number."""
    source = np.random.Generator(np.random.PCG64DXSM(int(entropy_or_system(rng).words(1)[0])))
    largest = int(counts.argmax())
    others = np.repeat(np.delete(scores, largest), np.delete(counts, largest)) - scores[largest]
    tied, target = int(counts[largest]), seen - m * int(scores[largest])
    below = above = drawn = 0
    while drawn < PERMUTATIONS and min(below, above) < ENOUGH:
        taken = source.hypergeometric(len(others), tied, m, size=_BATCH)
        order = source.permuted(np.broadcast_to(others, (_BATCH, len(others))), axis=1)
        sums = np.concatenate([np.zeros((_BATCH, 1), np.int64), order.cumsum(axis=1)], axis=1)
        values = sums[np.arange(_BATCH), taken]
        below += int((values <= target).sum())
        above += int((values >= target).sum())
        drawn += _BATCH
    return (1 + below) / (drawn + 1), (1 + above) / (drawn + 1)

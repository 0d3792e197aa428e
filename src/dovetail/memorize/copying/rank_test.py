r"""The Mann-Whitney test of distances to the training sample: are generated points nearer than fresh ones.

.. math:: \hat\Delta = \frac{1}{mn} \#\{B_j > A_i\} + \frac{1}{2mn} \#\{B_j = A_i\}, \quad
          Z_U = \frac{mn (\hat\Delta - 1/2)}{\sigma}

with fresh distances A (n), generated distances B (m) and the variance of midranks under exchangeability.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import erfc, exp, isnan, sqrt
from typing import Literal

import numpy as np
import scipy  # scipy.stats loads when it is first used: half a second
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import betaincinv, ndtri

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
    ranks = scipy.stats.rankdata(np.concatenate([fresh, generated]))
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


# An interval for Delta, the chance that a generated point is farther from the training sample than a fresh one.


def delta_interval(fresh: Distances, generated: Distances, *, level: float = 0.95) -> tuple[float, float]:
    r"""The interval of DeLong; Newcombe's where DeLong's has no width or a sample has one point.

    DeLong: Delta plus or minus z sqrt(S_B / m + S_A / n), the variances of the placements of each sample in the
    other. At Delta = 0 or 1, the case of plain copies, these are 0; Newcombe's interval inverts a score test with the
    variance of Hanley and McNeil at the hypothesised value.

    Source
    ------
    DeLong, DeLong, Clarke-Pearson (1988), Biometrics 44; Newcombe (2006), Statistics in Medicine 25, method 5.
    """
    n, m = len(fresh), len(generated)
    ranks = scipy.stats.rankdata(np.concatenate([fresh, generated]))
    of_generated = (ranks[n:] - scipy.stats.rankdata(generated)) / n
    of_fresh = 1.0 - (ranks[:n] - scipy.stats.rankdata(fresh)) / m
    delta = float(of_generated.mean())
    z = float(-ndtri((1.0 - level) / 2))
    if min(n, m) > 1:
        error = sqrt(of_generated.var(ddof=1) / m + of_fresh.var(ddof=1) / n)
        if error > 0.0 and 0.0 < delta < 1.0:
            return max(0.0, delta - z * error), min(1.0, delta + z * error)
    return newcombe_interval(delta, n, m, z=z)


def deviation_bound(t: float, *, n: int, m: int) -> float:
    r"""Bound the chance that the estimate is t or more away from Delta, whatever the two distributions are.

    .. math:: \Pr[|\hat\Delta - \Delta| \ge t] \le 2 \exp\Bigl(-\frac{2 t^2 m n}{m + n}\Bigr)

    One of the n fresh distances moves the estimate by at most 1/n, one of the m generated by 1/m; ties count half.
    `delta_interval` is narrower and asymptotic.

    >>> round(deviation_bound(0.1, n=500, m=500), 4)
    0.0135

    Source
    ------
    Meehan, Chaudhuri, Dasgupta (2020), Theorem 1, whose printed bound lacks the factor 2; McDiarmid (1989).
    """
    return min(1.0, 2.0 * exp(-2.0 * t * t * m * n / (m + n)))


def newcombe_interval(delta: float, n: int, m: int, *, z: float) -> tuple[float, float]:
    """The values of Delta that a score test does not reject; N = (n + m) / 2 as in Newcombe's method 5."""
    size = (n + m) / 2 - 1

    def excess(value: float) -> float:
        variance = value * (1 - value) * (1 + size * (1 - value) / (2 - value) + size * value / (1 + value)) / (n * m)
        return abs(delta - value) - z * sqrt(max(variance, 0.0))

    tiny = 1e-12
    low = 0.0 if delta <= tiny else _root(excess, tiny, delta)
    high = 1.0 if delta >= 1 - tiny else _root(excess, delta, 1 - tiny)
    return low, high


def _root(excess: Callable[[float], float], low: float, high: float) -> float:
    low, high = max(low, 1e-12), min(high, 1 - 1e-12)
    if excess(low) * excess(high) > 0:
        return low if abs(excess(low)) < abs(excess(high)) else high
    return float(brentq(excess, low, high, xtol=1e-12))


# What a test that found nothing would have found: the smallest shares of exact copies seen with a power of 0.8.


POWER = 0.8


def detectable_by_ranks(n: int, m: int, *, level: float = 0.05) -> float:
    r"""Share rho of exact copies that the rank test finds: E Z = -rho sqrt(3mn / (m + n)).

    At level 0.05 this is 2.49 sqrt((m + n) / (3mn)). Above 1 nothing can be found, and 1 is returned.

    >>> round(detectable_by_ranks(1650, 1650), 3)
    0.05
    """
    need = float(ndtri(POWER) - ndtri(level))
    return min(1.0, need * sqrt((m + n) / (3.0 * m * n)))


def detectable_by_tail(n: int, m: int, k: int, *, level: float = 0.05) -> float:
    """Share of exact copies that the tail test of k points finds; to a hundredth of itself, or 1.

    >>> 0.009 < detectable_by_tail(1000, 1000, 10) < 0.011
    True
    """
    counts = np.arange(k + 1)
    fires = scipy.stats.hypergeom.sf(counts - 1, n + m, m, k) <= level
    if not fires.any():
        return 1.0
    least = int(counts[fires][0])
    low, high = 0.0, 1.0
    while high - low > 0.005 * high:
        share = (low + high) / 2
        low, high = (low, share) if _tail_power(share, n, m, k, least) >= POWER else (share, high)
    return high


def _tail_power(share: float, n: int, m: int, k: int, least: int) -> float:
    """Copies come first; the places they leave among the k are shared out evenly."""
    copies = np.arange(k + 1)
    chance = scipy.stats.binom.pmf(copies, m, share)
    chance[k] = scipy.stats.binom.sf(k - 1, m, share)
    tails = scipy.stats.hypergeom.sf
    return float(sum(c * tails(least - j - 1, n + m - j, m - j, k - j) for j, c in zip(copies, chance, strict=True)))


# Several tests at once: adjusted p-values after Holm, and after Benjamini and Hochberg.


def holm(p_values: Sequence[float]) -> list[float]:
    """The smallest family-wise levels at which each hypothesis falls; valid under any dependence.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    steps = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return _in_place(steps, order)


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """The smallest false discovery rates at which each hypothesis falls; for independent or positive dependence.

    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    [0.03, 0.04, 0.04]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    steps = p[order] * len(p) / np.arange(1, len(p) + 1)
    return _in_place(np.minimum(1.0, np.minimum.accumulate(steps[::-1])[::-1]), order)


def _in_place(steps: NDArray[np.float64], order: NDArray[np.int64]) -> list[float]:
    adjusted = np.empty_like(steps)
    adjusted[order] = steps
    return [float(value) for value in adjusted]


# A lower bound of the share of generated points that are copies, by a threshold fixed beforehand.


def clopper_pearson(hits: int, trials: int, *, level: float = 0.95) -> tuple[float, float]:
    """The exact interval of a binomial share.

    >>> tuple(round(end, 4) for end in clopper_pearson(0, 100))
    (0.0, 0.0362)
    """
    tail = (1.0 - level) / 2
    low = 0.0 if hits == 0 else float(betaincinv(hits, trials - hits + 1, tail))
    high = 1.0 if hits == trials else float(betaincinv(hits + 1, trials - hits, 1.0 - tail))
    return low, high


def copied_fraction(
    fresh: Distances, generated: Distances, threshold: float, *, level: float = 0.95
) -> tuple[float, int, int]:
    r"""At least this share of Q is copied, with confidence `level`; and how many of Q and P are within `threshold`.

    .. math:: \rho \ge \frac{L - U}{1 - U}

    L is the lower end of Pr(d(Q) <= threshold) and U the upper end of Pr(d(P) <= threshold), each of one-sided level
    1 - (1 - level)/2. It counts as copied what is nearer than the law of P explains, so it takes for granted that the
    part that is not copied follows P's law, and that the threshold was not chosen by looking at Q.
    """
    near, usual = int((generated <= threshold).sum()), int((fresh <= threshold).sum())
    low = clopper_pearson(near, len(generated), level=level)[0]
    high = clopper_pearson(usual, len(fresh), level=level)[1]
    return (max(0.0, (low - high) / (1.0 - high)) if high < 1.0 else 0.0), near, usual

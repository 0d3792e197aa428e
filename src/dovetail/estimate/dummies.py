"""Shares of the symbols behind a batch with dummies, which the shuffler has added or people have sent."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import MOST_PEOPLE, instance, not_negative, whole
from dovetail.core.display import mute
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ParameterError
from dovetail.core.estimate import Estimate, KnownNoise
from dovetail.core.stages import FrequencyRandomizer
from dovetail.estimate.frequency import project_shares
from dovetail.randomize.sampling.open_reports import MOST_POINTS, OpenNumbers
from dovetail.shuffle.sampling.dummies import (
    Dummies,
    GaussianDummies,
    MarginalDummies,
    SeveralDummies,
    SparseDummies,
    UserDummies,
)


def estimate_with_dummies(
    dummies: Dummies | GaussianDummies, batch: ArrayLike, *, n: int, randomizer: FrequencyRandomizer | None = None
) -> Estimate:
    r"""Shares (k,) of the symbols among n people, with standard errors.

    .. math:: \hat f = \mathrm{invert}\Bigl(\frac{h - s}{n}\Bigr), \qquad
              \mathrm{se}^2 = \frac{V(\hat f)}{n} + \frac{\mathrm{Var}\, Z}{(p - q)^2 n^2}

    V and p - q belong to the local noise; without it V = 0, p - q = 1, and every count has the standard deviation of
    Z. n is public, the number of reports in the batch is larger. Intervals are quantiles of the law of Z, with a
    normal error where there is local noise.

    Parameters
    ----------
    batch : int array
        Reports and dummies in any order.
    n : int
        People behind the batch.
    randomizer : KRR, optional
        The local noise, where there is some.

    Raises
    ------
    ParameterError
        For a randomizer whose reports are no symbols, or of other symbols.
    DataError
        For a batch that n people with these dummies cannot have made.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> dummies = Dummies(k=3, epsilon=1.0, delta=1e-6)
    >>> batch = dummies.add([0] * 700 + [2] * 300, rng=simulation(1))
    >>> estimate_with_dummies(dummies, batch, n=1000).value.round(3).tolist()
    [0.699, -0.001, 0.3]
    """
    if not isinstance(dummies, GaussianDummies):
        dummies = instance("dummies", dummies, Dummies)
    people, counts = whole("n", n, least=1, most=MOST_PEOPLE), dummies.counts(batch)
    dummies.people(int(np.size(batch)), people)
    return shares_of_counts(dummies, counts, n=people, randomizer=randomizer)


def shares_of_counts(
    dummies: Dummies | GaussianDummies | SeveralDummies | MarginalDummies,
    counts: NDArray[np.float64],
    *,
    n: int,
    randomizer: FrequencyRandomizer | None = None,
) -> Estimate:
    """The same from numbers (k,) of the symbols of which the dummies' mean is subtracted already."""
    value, local, stretch = counts / n, np.zeros(dummies.k), 1.0
    if randomizer is not None:
        fits = isinstance(randomizer, FrequencyRandomizer) and randomizer.names_values
        if not fits or randomizer.k != dummies.k:
            raise ParameterError(f"`randomizer` must report one of these {dummies.k:,} symbols, got {randomizer!r}.")
        value = randomizer.invert(counts, n)
        local = randomizer.variance(project_shares(value))
        one = randomizer.invert(np.eye(1, dummies.k)[0], 1)
        stretch = float(one[0] - one[-1])  # 1 / (p - q)
    shares = project_shares(value)
    noise = local / n + dummies.variances * (stretch / n) ** 2
    return Estimate(
        value=value,
        standard_error=np.sqrt(noise),
        n=n,
        population_error=np.sqrt(noise + shares * (1.0 - shares) / n),
        spread=None
        if isinstance(dummies, SeveralDummies)
        else KnownNoise(*dummies.noise.error_law(stretch / n), variance=local / n, sampling=shares * (1.0 - shares)),
    )


def estimate_with_user_dummies(
    dummies: UserDummies, batch: ArrayLike, *, n: int, honest: int | None = None
) -> Estimate:
    r"""Shares (k,) of the symbols among n people who send dummies themselves, with standard errors.

    .. math:: \hat f = \frac{h}{n} - \frac{\mathrm{rate}}{k}, \qquad
              \mathrm{se}^2 = \frac{1}{n}\, \frac{\mathrm{rate}}{k} \Bigl(1 - \frac{\mathrm{rate}}{k}\Bigr)

    The same for frequent and rare symbols. A malicious person shifts a count by at most the cap, two.

    Parameters
    ----------
    batch : int array
        Messages in any order.
    n : int
        People behind the batch, one symbol each.
    honest : int, optional
        Of them, who send dummies; default all.

    Raises
    ------
    DataError
        For a batch that n people with these dummies cannot have sent.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> dummies = UserDummies(k=3, rate=0.3)
    >>> batch = dummies.add([0] * 700 + [2] * 300, rng=simulation(1))
    >>> estimate_with_user_dummies(dummies, batch, n=1000).value.round(2).tolist()
    [0.7, 0.0, 0.3]
    """
    dummies, people = instance("dummies", dummies, UserDummies), whole("n", n, least=1, most=MOST_PEOPLE)
    counts = dummies.counts(batch, people)
    dummies.people(int(np.size(batch)), people, honest=people if honest is None else honest)
    return shares_of_people(dummies, counts, n=people, senders=people)


def shares_of_people(dummies: UserDummies, counts: NDArray[np.float64], *, n: int, senders: int) -> Estimate:
    """The same from numbers (k,) of the symbols of n people, less the mean of the dummies of so many `senders`."""
    people, value = n, counts / n
    shares = project_shares(value)
    noise = np.full(dummies.k, dummies.variance(senders) / people**2)
    return Estimate(
        value=value,
        standard_error=np.sqrt(noise),
        n=people,
        population_error=np.sqrt(noise + shares * (1.0 - shares) / people),
    )


# A mean behind a batch with dummies: numbers are rounded at random to a public grid, whose points are counted.


def mean_grid(n: int, *, variance: float) -> int:
    r"""Points of the grid with the least error of a mean of n people, for dummies whose counts have this variance.

    .. math:: \min_d \; \frac{1}{4 (d - 1)^2 n} + \frac{\mathrm{Var}\, Z}{n^2} \sum_{j<d} \Bigl(\frac{j}{d-1} -
              \frac12\Bigr)^2, \qquad \sum_{j<d} (\cdot)^2 = \frac{d (d + 1)}{12 (d - 1)}

    More points round less and add more dummies; in units of the range.

    Raises
    ------
    ParameterError
        For fewer than one person.

    Examples
    --------
    >>> mean_grid(100_000, variance=Dummies(2, 1.0, 1e-6).variance)
    43
    """
    people, variance = whole("n", n, least=1, most=MOST_PEOPLE), not_negative("variance", variance)
    d = np.arange(2, MOST_POINTS + 1, dtype=np.float64)
    with np.errstate(over="ignore"):
        error = 1.0 / (4.0 * (d - 1.0) ** 2 * people) + variance / people**2 * d * (d + 1.0) / (12.0 * (d - 1.0))
    return int(d[error.argmin()])


def digits_squared_error(variances: Sequence[float], *, n: int) -> float:
    r"""Squared error of a mean of n numbers on [0, 1] by J ternary digits, each a report; rounding at its worst.

    .. math:: \frac{1}{(3^J - 1)^2} \Bigl(\frac{2}{n^2} \sum_k 9^k \mathrm{Var}\, Z_k + \frac{1}{4 n}\Bigr)

    Parameters
    ----------
    variances : floats (J,)
        Of the counts of each digit, from the last one on.
    """
    noise = sum(9.0**k * one for k, one in enumerate(variances))
    return (2.0 * noise / n**2 + 0.25 / n) / (3.0 ** len(variances) - 1.0) ** 2


def round_to_grid(
    values: ArrayLike, *, lower: float, upper: float, points: int, rng: Entropy | None = None
) -> NDArray[np.int64]:
    """Numbers of grid points (n,), 0..points-1: each value goes to one of its two neighbours, right on average.

    A device does this by itself, once for a question; what it sends is one of `points` symbols. The promise of the
    dummies holds for every pair of symbols, so also for their mixtures, whatever the rounding.

    Raises
    ------
    ParameterError
        For an empty range, and for fewer than two points.
    DataError
        For values outside the range.

    Examples
    --------
    >>> round_to_grid([0.0, 5.0, 10.0], lower=0.0, upper=10.0, points=3)
    array([0, 1, 2])
    """
    return OpenNumbers(lower, upper, points).randomize(values, rng)


def mean_with_dummies(dummies: Dummies, batch: ArrayLike, *, lower: float, upper: float, n: int) -> Estimate:
    r"""The mean of n people's numbers, from reports and dummies of the points of an even grid on [lower, upper].

    .. math:: \hat\mu = c + \frac1n \sum_j (v_j - c)(h_j - s), \qquad
              \mathrm{se}^2 = \frac{\mathrm{Var}\, Z}{n^2} \sum_j (v_j - c)^2 + \frac{(v_1 - v_0)^2}{4 n}

    c is the middle of the range; n is public, so nothing is lost by measuring from there. The last term bounds what
    `round_to_grid` adds. Unbiased. The promise is that of the counts, `dummies_guarantee`.

    Parameters
    ----------
    dummies : Dummies
        Of the grid points; `mean_grid` says how many.
    batch : int array
        Reports and dummies in any order.
    lower, upper : float
        The declared range.
    n : int
        People behind the batch.

    Raises
    ------
    ParameterError
        For an empty range.
    DataError
        For a batch that n people with these dummies cannot have made.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> dummies, rng = Dummies(21, 1.0, 1e-6), simulation(1)
    >>> sent = round_to_grid([30.0] * 5000 + [40.0] * 5000, lower=0.0, upper=100.0, points=21, rng=rng)
    >>> found = mean_with_dummies(dummies, dummies.add(sent, rng), lower=0.0, upper=100.0, n=10_000)
    >>> abs(float(found.value) - 35.0) < 0.2 and float(found.standard_error) < 0.05
    True

    Source
    ------
    docs/theory/accuracy.md, section B, Theorem B1: counts of symbols; the mean is post-processing of them.
    """
    dummies, people = instance("dummies", dummies, Dummies), whole("n", n, least=1, most=MOST_PEOPLE)
    grid, counts = OpenNumbers(lower, upper, dummies.k), dummies.counts(batch)
    dummies.people(int(np.size(batch)), people)
    return mean_of_counts(grid, counts, people, noise=dummies.variance / people**2)


def mean_with_user_dummies(
    dummies: UserDummies, batch: ArrayLike, *, lower: float, upper: float, n: int, honest: int | None = None
) -> Estimate:
    r"""The mean of n people's numbers, from messages of people who send dummies themselves.

    .. math:: \hat\mu = c + \frac1n \sum_j (v_j - c)\, h_j, \qquad
              \mathrm{se}^2 = \frac{\mathrm{rate}}{n\, d} \sum_j (v_j - c)^2 + \frac{(v_1 - v_0)^2}{4 n}

    d points v_j of an even grid on the range, c its middle, around which uniform dummies have mean 0. Unbiased. The
    promise is that of the counts, `user_dummies_guarantee`. A malicious person shifts the sum by at most the cap, two
    ranges.

    Parameters
    ----------
    dummies : UserDummies
        Of the grid points.
    batch : int array
        Messages in any order.
    lower, upper : float
        The declared range.
    n : int
        People behind the batch, one number each.
    honest : int, optional
        Of them, who send dummies; default all.

    Raises
    ------
    ParameterError
        For an empty range.
    DataError
        For a batch that n people with these dummies cannot have sent.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> dummies, rng = UserDummies(21, 0.05), simulation(1)
    >>> sent = round_to_grid([30.0] * 5000 + [40.0] * 5000, lower=0.0, upper=100.0, points=21, rng=rng)
    >>> found = mean_with_user_dummies(dummies, dummies.add(sent, rng), lower=0.0, upper=100.0, n=10_000)
    >>> abs(float(found.value) - 35.0) < 0.3 and float(found.standard_error) < 0.08
    True

    Source
    ------
    docs/theory/accuracy.md, section C: sums by user dummies on a grid.
    """
    dummies, people = instance("dummies", dummies, UserDummies), whole("n", n, least=1, most=MOST_PEOPLE)
    grid, counts = OpenNumbers(lower, upper, dummies.k), dummies.counts(batch, people)
    dummies.people(int(np.size(batch)), people, honest=people if honest is None else honest)
    return mean_of_counts(grid, counts, people, noise=dummies.rate / dummies.k / people)


def mean_of_counts(grid: OpenNumbers, counts: NDArray[np.float64], n: int, *, noise: float) -> Estimate:
    """From unbiased counts of grid points; `noise` is their variance over n^2, uncorrelated but for the total."""
    away = np.arange(grid.points) - 0.5 * (grid.points - 1)  # in grid steps from the middle, which have no overflow
    value = float(away @ counts) / n
    total = noise * float(away @ away) + 0.25 / n
    spread = max(0.0, float(away**2 @ counts) / n - value**2)
    error: Any = grid.step * np.sqrt([total, total + spread / n])
    return Estimate(np.asarray(0.5 * grid.lower + 0.5 * grid.upper + grid.step * value), error[0], n, error[1])


# Sparse dummies: reports are kept by chance, and a count is a sum of two numbers of known laws.


@mute
@dataclass(frozen=True, eq=False)
class KeptCounts:
    r"""A count of kept reports and geometric dummies, whose truth is a number of people c.

    .. math:: h = K + Z, \qquad K \sim \mathrm{Bin}(c, \beta), \qquad
              \Pr[Z = a] = \binom{a + m - 1}{a} (1 - q)^m q^a

    It grows with c in likelihood ratio, so that both tails at h give an interval that covers at least with its level
    (Clopper and Pearson 1934): it holds every c that leaves h or less, and h or more, probable enough.

    Parameters
    ----------
    counts : int array
        h.
    kept, more : float
        beta and q.
    n : int
        People; the interval is of shares.
    population : bool
        Whether the truth is a share f of a population they are drawn from: K is then Bin(n, beta f).
    times : int
        m: the combinations of answers that are counted, each with dummies of its own.
    """

    counts: NDArray[np.int64]
    kept: float
    more: float
    n: int
    population: bool = False
    times: int = 1

    def drawn(self, share: Any) -> KeptCounts:
        """With sampling added."""
        return replace(self, population=True)

    def each(self, pick: Callable[[Any], Any]) -> KeptCounts:
        """With `pick` of every count."""
        return replace(self, counts=pick(self.counts))

    def interval(self, value: NDArray[np.float64], z: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The truths under which the count is not in either tail of half of what a normal law has beyond z."""
        seen, where = np.unique(self.counts, return_inverse=True)  # most of many are alike
        low, high = replace(self, counts=seen)._ends(0.5 * math.erfc(z / math.sqrt(2.0)))
        return low[where].reshape(np.shape(value)), high[where].reshape(np.shape(value))

    def _ends(self, tail: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        low = self._last(lambda c: 1.0 - self._at_most(self.counts - 1, c) < tail)  # too few people for so many
        high = self._last(lambda c: self._at_most(self.counts, c) >= tail)
        step = 0.0 if self.population else 1.0  # the first number of people that is not too small
        return np.minimum(low + step, self.n) / self.n * (low >= 0.0), np.maximum(high, 0.0) / self.n

    def _last(self, holds: Callable[[NDArray[np.float64]], NDArray[np.bool_]]) -> NDArray[np.float64]:
        """The largest truth at which it holds, where it holds up to there; -1 where it never does."""
        low, high = np.full(np.shape(self.counts), -1.0), np.full(np.shape(self.counts), float(self.n) + 1.0)
        for _ in range(60 if self.population else self.n.bit_length() + 2):
            middle = 0.5 * (low + high) if self.population else np.floor(0.5 * (low + high))
            inside = np.clip(middle, 0.0, self.n)
            yes = (middle < 0.0) | ((middle <= self.n) & holds(inside))
            low, high = np.where(yes, middle, low), np.where(yes, high, middle)
        return low

    def _at_most(self, h: NDArray[np.int64], c: NDArray[np.float64]) -> NDArray[np.float64]:
        """Pr[K + Z <= h], the few Z beyond 2^-64 left out."""
        m, p = (self.n, self.kept * c / self.n) if self.population else (c, self.kept)
        found = np.zeros(np.shape(h))
        for z, mass in zip(*self._dummies, strict=True):
            found += mass * _binomial_at_most(h - z, m, p)
        return found

    @cached_property
    def _dummies(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        return geometric_sums(self.more, self.times)


def geometric_sums(more: float, times: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Numbers of sparse dummies of so many combinations together, and how likely each is: without those below 2^-64.

    >>> numbers, masses = geometric_sums(0.5, 1)
    >>> numbers[:3].tolist(), masses[:3].round(6).tolist()
    ([0, 1, 2], [0.5, 0.25, 0.125])
    """
    from scipy.special import gammaln

    mean = times * more / (1.0 - more)
    wide = 64.0 * math.log(2.0) / -math.log(more) + 14.0 * math.sqrt(mean / (1.0 - more))
    z = np.arange(max(0, math.floor(mean - wide)) if times > 1 else 0, math.ceil(mean + wide) + 1)
    logs = gammaln(z + times) - gammaln(times) - gammaln(z + 1.0)
    masses = np.exp(logs + times * math.log1p(-more) + z * math.log(more))
    return z, masses / math.fsum(masses)  # logs of large numbers have an error that all of them share


def _binomial_at_most(h: Any, m: Any, p: Any) -> NDArray[np.float64]:
    from scipy.special import betainc

    h, m, p = np.broadcast_arrays(np.asarray(h, float), np.asarray(m, float), np.asarray(p, float))
    inside = (h >= 0.0) & (h < m)
    found = betainc(np.where(inside, m - h, 1.0), np.where(inside, h + 1.0, 1.0), 1.0 - np.where(inside, p, 0.5))
    return np.asarray(np.where(inside, found, (h >= m) * 1.0))


def shares_of_kept(dummies: SparseDummies, tally: NDArray[np.int64], *, n: int) -> Estimate:
    r"""Shares (k,) of the symbols among n people whose reports were kept by chance, beside sparse dummies.

    .. math:: \hat c = \frac{h - m q / (1 - q)}{\beta}, \qquad
              \mathrm{Var}\, \hat c = \frac{m q}{(1 - q)^2 \beta^2} + c\, \frac{1 - \beta}{\beta}

    m is 1 but for counts of an answer that stands in m combinations.

    Frequent symbols are less sure than behind other dummies. Intervals are of the exact law.

    Source
    ------
    docs/theory/several-symbols.md, Theorem P6.
    """
    value = dummies.counts_of(tally) / n
    shares = project_shares(value)
    noise, sampled = dummies.variance(np.maximum(value, 0.0) * n) / n**2, shares * (1.0 - shares) / n
    return Estimate(
        value=value,
        standard_error=np.sqrt(noise),
        n=n,
        population_error=np.sqrt(noise + sampled),
        spread=KeptCounts(np.asarray(tally), float(dummies.kept), float(dummies.more), n, times=dummies.times),
    )

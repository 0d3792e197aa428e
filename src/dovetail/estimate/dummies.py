"""Shares of the symbols behind a batch with dummies, which the shuffler has added or people have sent."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import MOST_PEOPLE, instance, not_negative, whole
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ParameterError
from dovetail.core.estimate import Estimate, KnownNoise
from dovetail.core.stages import FrequencyRandomizer
from dovetail.estimate.frequency import project_shares
from dovetail.randomize.sampling.open_reports import MOST_POINTS, OpenNumbers
from dovetail.shuffle.sampling.dummies import Dummies, UserDummies


def estimate_with_dummies(
    dummies: Dummies, batch: ArrayLike, *, n: int, randomizer: FrequencyRandomizer | None = None
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
    dummies, people = instance("dummies", dummies, Dummies), whole("n", n, least=1, most=MOST_PEOPLE)
    counts = dummies.counts(batch)
    dummies.people(int(np.size(batch)), people)
    return shares_of_counts(dummies, counts, n=people, randomizer=randomizer)


def shares_of_counts(
    dummies: Dummies, counts: NDArray[np.float64], *, n: int, randomizer: FrequencyRandomizer | None = None
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
    noise = local / n + dummies.variance * (stretch / n) ** 2
    return Estimate(
        value=value,
        standard_error=np.sqrt(noise),
        n=n,
        population_error=np.sqrt(noise + shares * (1.0 - shares) / n),
        spread=KnownNoise(
            *dummies.noise.error_law(stretch / n), variance=local / n, sampling=shares * (1.0 - shares)
        ),
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
    return shares_of_people(dummies, counts, n=people)


def shares_of_people(dummies: UserDummies, counts: NDArray[np.float64], *, n: int) -> Estimate:
    """The same from numbers (k,) of the symbols of which the dummies' mean is subtracted already."""
    people, value = n, counts / n
    shares = project_shares(value)
    noise = np.full(dummies.k, dummies.variance(people) / people**2)
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
    return _mean(grid, counts, people, noise=dummies.variance / people**2)


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
    return _mean(grid, counts, people, noise=dummies.rate / dummies.k / people)


def _mean(grid: OpenNumbers, counts: NDArray[np.float64], n: int, *, noise: float) -> Estimate:
    """From unbiased counts of grid points; `noise` is their variance over n^2, uncorrelated but for the total."""
    away = np.arange(grid.points) - 0.5 * (grid.points - 1)  # in grid steps from the middle, which have no overflow
    value = float(away @ counts) / n
    total = noise * float(away @ away) + 0.25 / n
    spread = max(0.0, float(away**2 @ counts) / n - value**2)
    error: Any = grid.step * np.sqrt([total, total + spread / n])
    return Estimate(np.asarray(0.5 * grid.lower + 0.5 * grid.upper + grid.step * value), error[0], n, error[1])

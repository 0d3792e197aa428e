"""Shares of the symbols behind a batch with dummies, which the shuffler has added or people have sent."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import MOST_PEOPLE, instance, whole
from dovetail.core.errors import ParameterError
from dovetail.core.estimate import Estimate, KnownNoise
from dovetail.core.stages import FrequencyRandomizer
from dovetail.estimate.simplex import project_shares
from dovetail.shuffle.dummies.dummies import Dummies
from dovetail.shuffle.dummies.user_dummies import UserDummies


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

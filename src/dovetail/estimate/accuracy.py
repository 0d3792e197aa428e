"""Predicted errors of estimates, before anybody is asked."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np

from dovetail.core.estimate import Z95
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer

PopulationShape = Literal["any", "flat"]


@dataclass(frozen=True)
class Accuracy:
    """Predicted error of one estimated share, or of the mean.

    Parameters
    ----------
    standard_error : float
        About exactly these n people: the randomization is the only source of error.
    error95 : float
        The estimate lies this close to the truth about exactly these people with probability 95 %.
    population_error95 : float
        The same for the population that they are drawn from at random: sampling and randomization, at most.
    """

    standard_error: float
    error95: float
    population_error95: float


def predict_accuracy(
    randomizer: FrequencyRandomizer | NumericRandomizer, *, n: int, shares: PopulationShape = "any"
) -> Accuracy:
    r"""The error of an estimate from n reports.

    .. math:: \mathrm{se} = \sqrt{V / n}, \qquad \mathrm{error}_{95} = z_{0.975}\, \mathrm{se} + \mathrm{rounding}

    For shares V is the exact variance of one report with the realized integer thresholds, a linear function of the
    true shares, so that its maximum over all populations is reached where everybody holds one value. For a mean V is
    the variance of the noise, an upper bound: reports count as clamped to the range, which lowers the variance of
    `estimate_mean` down to half of V, where the noise is wide, by an amount that depends on the values.

    Parameters
    ----------
    randomizer : FrequencyRandomizer or NumericRandomizer
    n : int, at least 1
    shares : "any" or "flat"
        "any": whatever people hold, the worst share of the worst population; "flat": every value is equally frequent,
        which is typical of the rare values of a large domain. A mean needs no such choice.

    Notes
    -----
    For one share: the largest of k errors is larger. The 95 % are those of the normal law, close once some tens of
    reports carry each share. Sampling adds at most 1/4 (shares) or (upper - lower)^2 / 4 (mean, Popoviciu 1935) to V.

    Examples
    --------
    >>> from dovetail.randomize.krr import KRR
    >>> round(predict_accuracy(KRR(k=2, epsilon=1.0), n=10_000).error95, 4)
    0.0188
    """
    if isinstance(randomizer, NumericRandomizer):
        variance, rounding = randomizer.noise_variance, randomizer.rounding
        sampling = (randomizer.upper - randomizer.lower) ** 2 / 4.0
    else:
        k, rounding = randomizer.k, 0.0
        period = 1 if randomizer.variance_by_symbol else getattr(randomizer, randomizer.variance_period)
        if shares == "flat":
            population = np.full(min(k, 2) if randomizer.variance_by_symbol else k, 1.0 / k)
        else:
            population = np.eye(1, min(k, period + 1))[0]  # a few shares stand for millions, which hold nothing
        variance = float(randomizer.variance(population).max())
        sampling = (1.0 - 1.0 / k) / k if shares == "flat" else 0.25
    error = sqrt(variance / n)
    return Accuracy(error, Z95 * error + rounding, Z95 * sqrt((variance + sampling) / n) + rounding)

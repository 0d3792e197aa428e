"""Which estimate of the mean: unbiased with more noise, or a median with less noise and a bias."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot
from typing import Literal, final

from dovetail.core.estimate import Estimate
from dovetail.core.stages import NumericRandomizer, Reports
from dovetail.estimate.mean import estimate_mean
from dovetail.estimate.median import estimate_median


@final
@dataclass(frozen=True)
class BestMean:
    """An estimate of the mean, the estimator behind it and why it was chosen.

    Parameters
    ----------
    estimate : Estimate
    name : "rao-blackwell", "median" or "mean"
    reason : str
    """

    estimate: Estimate
    name: Literal["rao-blackwell", "median", "mean"]
    reason: str


def best_mean(randomizer: NumericRandomizer, reports: Reports, *, spread: float | None = None) -> BestMean:
    r"""The estimate of the mean with the smaller squared error, by their errors and bias bounds.

    .. math:: \text{median if} \quad
              \mathrm{se}_{\mathrm{median}}^2 + (b_{\mathrm{median}} - \mathrm{se}_{\mathrm{median}})^2
              < \mathrm{se}_{\mathrm{RB}}^2 + b_{\mathrm{RB}}^2, \qquad b = \text{bias bound}

    b - se is the bias of the median of many reports: that of few is part of its noise (see `estimate_median`) and
    counts once. The median of clamped reports lies in the range, so it wins where the unbiased mean has a standard
    error of about the range. Otherwise it saves at most half of the variance, and only where the noise dominates:
    lambda far above the standard deviation `spread` of the values. That must be public knowledge: it cannot be read
    off reports under so much noise. As n grows, the bias stays and the unbiased mean wins.

    Parameters
    ----------
    spread : float above 0, optional
        Public bound on the standard deviation of the people's values. Without it half the range.

    Raises
    ------
    ParameterError
        For a randomizer of symbols, and for a `spread` that is not above 0.
    DataError
        For reports that are no whole grid steps, and for none at all.

    Examples
    --------
    Everybody within a fiftieth of the range: the median wins until its bias is more than the noise.

    >>> from dovetail.core.entropy import simulation
    >>> from dovetail.randomize.laplace import Laplace
    >>> laplace = Laplace(lower=0.0, upper=100.0, epsilon=4.0, grid=0.01)
    >>> reports = laplace.randomize([50.0] * 100_000, rng=simulation(1))
    >>> [best_mean(laplace, reports[:n], spread=2.0).name for n in (100, 10_000, 100_000)]
    ['median', 'median', 'rao-blackwell']
    """
    mean = estimate_mean(randomizer, reports)
    if not randomizer.memoryless:
        return BestMean(mean, "mean", f"unbiased; reports of {randomizer.label} have no median of use")
    median = estimate_median(randomizer, reports, spread=spread)
    noise, bias = float(median.standard_error), float(median.bias_bound - median.standard_error)
    biased, unbiased = hypot(noise, bias), hypot(float(mean.standard_error), float(mean.bias_bound))
    figures = (
        f"root mean squared error about {biased:.3g} (bias at most {bias:.3g}) for the median, {unbiased:.3g} for "
        f"the unbiased mean, n = {mean.n:,}"
    )
    if biased < unbiased:
        return BestMean(median, "median", f"the noise dominates: {figures}")
    return BestMean(mean, "rao-blackwell", f"the bias of the median may outweigh what it saves: {figures}")

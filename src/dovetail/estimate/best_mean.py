"""Which estimate of the mean: unbiased with more noise, or a median or a shrunken mean with less noise and a bias."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, sqrt
from typing import Literal, cast, final

import numpy as np

from dovetail.core.estimate import Estimate
from dovetail.core.stages import NumericRandomizer, Reports
from dovetail.estimate.mean import estimate_mean
from dovetail.estimate.median import estimate_median

WORTH_A_BIAS = 0.05  # of the squared error: what shrinking has to save before a bias is taken into the bargain


@final
@dataclass(frozen=True)
class BestMean:
    """An estimate of the mean, the estimator behind it and why it was chosen.

    Parameters
    ----------
    estimate : Estimate
    name : "rao-blackwell", "shrunken", "median" or "mean"
    reason : str
    """

    estimate: Estimate
    name: Literal["rao-blackwell", "shrunken", "median", "mean"]
    reason: str


def shrunken_mean(randomizer: NumericRandomizer, mean: Estimate) -> Estimate:
    r"""The unbiased mean drawn towards the middle c of the public range, as linear minimax estimation has it.

    .. math:: \hat m = c + w (\bar m - c), \qquad w = \frac{h^2}{h^2 + \mathrm{se}^2}, \qquad
              \max_{m \in [c - h, c + h]} E (\hat m - m)^2 = \frac{h^2\, \mathrm{se}^2}{h^2 + \mathrm{se}^2}

    h is half the range. The bias is at most (1 - w) h, and the squared error is below both se^2 and h^2, whatever the
    values are. `mean` is an unbiased estimate with its standard error, or one whose bias bound comes on top.

    Source
    ------
    Donoho, Liu, MacGibbon (1990), Minimax risk over hyperrectangles, Annals of Statistics 18(3), for a bounded mean.
    """
    half, centre = (randomizer.upper - randomizer.lower) / 2.0, (randomizer.upper + randomizer.lower) / 2.0
    error = float(mean.standard_error)
    weight = half * half / (half * half + error * error)
    return Estimate(
        value=np.asarray(centre + weight * (float(mean.value) - centre)),
        standard_error=np.asarray(weight * error),
        n=mean.n,
        population_error=np.asarray(weight * float(mean.population_error)),
        bias_bound=(1.0 - weight) * half + weight * float(mean.bias_bound),
    )


def best_mean(randomizer: NumericRandomizer, reports: Reports, *, spread: float | None = None) -> BestMean:
    r"""The estimate of the mean with the smallest squared error that any values in the range can cause.

    .. math:: R_{\mathrm{RB}} = \mathrm{se}^2 + b^2, \qquad
              R_{\mathrm{shrunken}} = (w\, \mathrm{se})^2 + b_{\mathrm{shrunken}}^2, \qquad
              R_{\mathrm{median}} = \mathrm{se}_{\mathrm{median}}^2
                  + (b_{\mathrm{median}} - \mathrm{se}_{\mathrm{median}})^2

    with the bias bounds b. The unbiased mean is left where another one promises at least a twentieth less.

    b - se is the bias of the median of many reports: that of few is part of its noise (see `estimate_median`) and
    counts once. The median of clamped reports lies in the range, so it wins where the unbiased mean has a standard
    error of about the range. Otherwise it saves at most half of the variance, and only where the noise dominates:
    lambda far above the standard deviation `spread` of the values. That must be public knowledge: it cannot be read
    off reports under so much noise. As n grows, the bias stays and the unbiased mean wins. `shrunken_mean` needs no
    knowledge but the range, and wins where the standard error is above about a fifth of half the range.

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
    name: Literal["rao-blackwell", "mean"] = "rao-blackwell" if randomizer.memoryless else "mean"
    shrunken = shrunken_mean(randomizer, mean)
    risks = {name: _risk(mean), "shrunken": _risk(shrunken)}
    found: dict[str, Estimate] = {name: mean, "shrunken": shrunken}
    if randomizer.memoryless:
        median = estimate_median(randomizer, reports, spread=spread)
        found["median"], risks["median"] = median, _median_risk(median)
    figures = ", ".join(f"{sqrt(risk):.3g} {_SAID[kind]}" for kind, risk in risks.items())
    told = f"root mean squared error at most about {figures}, n = {mean.n:,}"
    least = min(risks, key=risks.__getitem__)
    if least == name or risks[least] > (1.0 - WORTH_A_BIAS) * risks[name]:
        return BestMean(mean, name, f"what a biased estimate saves is less than its bias may cost: {told}")
    return BestMean(found[least], cast(Literal["shrunken", "median"], least), f"the noise dominates: {told}")


_SAID = {
    "rao-blackwell": "for the unbiased mean", "mean": "for the unbiased mean",
    "shrunken": "drawn to the middle of the range", "median": "for the median",
}  # fmt: skip


def _risk(estimate: Estimate) -> float:
    return hypot(float(estimate.standard_error), float(estimate.bias_bound)) ** 2


def _median_risk(median: Estimate) -> float:
    """The bias of few reports is part of the noise, see `estimate_median`."""
    noise = float(median.standard_error)
    return hypot(noise, float(median.bias_bound) - noise) ** 2

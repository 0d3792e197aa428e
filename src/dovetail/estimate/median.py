"""The median of the reports: the most likely common value under Laplace noise, and close to the mean of a crowd."""

from __future__ import annotations

from math import exp, inf, log, log1p

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad
from scipy.special import betaln

from dovetail.core.checks import positive, refuse
from dovetail.core.errors import DataError
from dovetail.core.estimate import Estimate
from dovetail.core.stages import NumericRandomizer, Reports
from dovetail.estimate.rao_blackwell import ClampedGrid, whole_steps


def weighted_median(reports: ArrayLike, scales: ArrayLike = 1.0) -> float:
    r"""The most likely common value behind Laplace reports of known scales (MLE of the paper on RASE).

    .. math:: \hat\mu = \arg\min_\mu \sum_i \frac{|z_i - \mu|}{\lambda_i}

    Where a whole interval is optimal, its middle. People with different values have no common value: what is
    estimated then is the median of a mixture, not the mean.

    Parameters
    ----------
    reports : float array (n,)
    scales : float array (n,) or a number, above 0

    Examples
    --------
    >>> weighted_median([9.5, 1.1, 8.4, 2.8, 3.2])
    3.2
    >>> weighted_median([0.0, 1.0, 5.0], scales=[1.0, 1.0, 0.1])
    5.0

    Source
    ------
    Wang, Tao, Zou, RASE, equations (12) to (14) and Example 4.
    """
    z, lam = np.asarray(reports, dtype=np.float64), np.asarray(scales, dtype=np.float64)
    if z.ndim != 1 or z.size < 1 or not np.isfinite(z).all():
        raise DataError(f"`reports` must be finite numbers, one-dimensional, at least one, got shape {z.shape}.")
    if lam.shape not in ((), z.shape) or not (np.isfinite(lam) & (lam > 0.0)).all():
        raise refuse("scales", f"{z.size:,} finite numbers above 0, or one", scales)
    order = np.argsort(z)
    upto = np.cumsum((1.0 / np.broadcast_to(lam, z.shape))[order])
    first = int(np.searchsorted(upto, upto[-1] / 2.0))
    last = first + int(upto[first] == upto[-1] / 2.0)
    return float(0.5 * z[order[first]] + 0.5 * z[order[last]])


def estimate_median(randomizer: NumericRandomizer, reports: Reports, *, spread: float | None = None) -> Estimate:
    r"""The median of the reports as an estimate of the mean of the values, with a bound on its bias.

    .. math:: |\mathrm{median} - \mathrm{mean}| \le -\lambda \log\Bigl(1 - \frac{s^2}{2 \lambda^2} e^{s/\lambda}\Bigr)
              \approx \frac{s^2}{2 \lambda}, \qquad
              \mathrm{se} \le \frac{\lambda}{\sqrt n}\, e^{(s + b) / \lambda}

    s bounds the standard deviation of the people's values, b the bias. Useful when the noise dominates: lambda far
    above s. Bounds are for the median of the mixture, with one grid step added because it is discrete.

    Proof: at distance u from the mean mu of the values x_i the mixture's distribution function H has
    2 H(mu) - 1 = mean g(mu - x_i), g(u) = sign(u) (1 - e^(-|u| / lambda)), and |g(u) - u / lambda| <= u^2 / (2
    lambda^2), so |2 H(mu) - 1| <= s^2 / (2 lambda^2). Its slope at mu + u is mean e^(-|mu + u - x_i| / lambda) /
    lambda >= e^(-(s + |u|) / lambda) / lambda (Jensen); integrate to the median. On a grid the mean of the
    distribution function at y and just below y is H(y) exactly, which puts the discrete median within one step.

    Parameters
    ----------
    spread : float above 0, optional
        Public bound s on the standard deviation of the people's values. Half the range always holds (Popoviciu).

    Notes
    -----
    The standard error is the large-sample one for n people, times the exact factor of n reports of one value.
    """
    width = randomizer.upper - randomizer.lower
    s = min(width / 2.0, width / 2.0 if spread is None else positive("spread", spread))
    grid, steps = ClampedGrid.of(randomizer), whole_steps(randomizer, reports)
    if steps.size < 1:
        raise DataError("there are no reports to estimate from: n must be at least 1.")
    scale = grid.step / log1p(1.0 / grid.overshoot)  # lambda: e^(-step / lambda) = t
    bias = min(width, median_bias(s, scale))
    error = np.asarray(scale * exp(min((s + bias) / scale, 700.0)) * np.sqrt(median_variance(steps.size)))
    return Estimate(
        value=np.asarray(randomizer.lower + grid.step * np.median(grid.clamp(steps))),
        standard_error=error,
        n=steps.size,
        population_error=np.sqrt(error**2 + s**2 / steps.size),
        bias_bound=bias + grid.step + randomizer.rounding,
    )


def median_bias(spread: float, scale: float) -> float:
    """Largest distance between median and mean: values of standard deviation `spread`, noise of `scale` lambda.

    >>> round(median_bias(1.0, 10.0), 4)
    0.0554
    """
    ratio = spread / scale
    lost = ratio**2 / 2.0 * exp(min(ratio, 700.0))
    return inf if lost >= 1.0 else -scale * log1p(-lost)


def median_variance(n: int) -> float:
    r"""Variance of the median of n reports of one value, in units of lambda^2; for even n an upper bound.

    .. math:: \int_0^1 Q(u)^2 \, \mathrm{Beta}_{k,\, n + 1 - k}(du), \qquad k = \lfloor (n + 1) / 2 \rfloor, \qquad
              Q(u) = \pm \log(2 \min(u, 1 - u))

    Tends to 1 / n, from above: 2 for n = 1, 1.76 / n for n = 5. For even n it is that of one of the two middle
    reports; their mean varies less, by convexity.

    >>> [round(median_variance(n), 4) for n in (1, 3, 10_001)]
    [2.0, 0.6389, 0.0001]
    """
    k = (n + 1) // 2
    whole = float(betaln(k, n + 1 - k))

    def half(w: float, a: int, b: int) -> float:  # w = |Q|: u = e^-w / 2 counted from the nearer end
        return w**2 * exp((b - 1) * log1p(-exp(-w) / 2.0) - a * (w + log(2.0)) - whole)

    reach = 40.0 / n**0.5  # beyond: below e^-40
    return float(sum(quad(half, 0.0, reach, args=sides, epsabs=0.0)[0] for sides in ((k, n + 1 - k), (n + 1 - k, k))))

"""The median of the reports: the most likely common value under Laplace noise, and close to the mean of a crowd."""

from __future__ import annotations

from math import exp, hypot, inf, log, log1p, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad
from scipy.special import betaln

from dovetail.core.checks import floats, positive, refuse
from dovetail.core.errors import DataError
from dovetail.core.estimate import Estimate
from dovetail.core.stages import NumericRandomizer, Reports
from dovetail.estimate.pairing import need_numbers
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
    z, lam = floats("reports", reports), floats("scales", scales)
    if z.ndim != 1 or z.size < 1:
        raise DataError(f"`reports` must be finite numbers, one-dimensional, at least one, got shape {z.shape}.")
    if lam.shape not in ((), z.shape) or not (lam > 0.0).all():
        raise refuse("scales", f"{z.size:,} finite numbers above 0, or one", scales)
    order = np.argsort(z)
    upto = np.cumsum((lam.min() / np.broadcast_to(lam, z.shape))[order])
    half, slack = upto[-1] / 2.0, 2.0**-52 * z.size  # the sums round by less than slack
    first = int(np.searchsorted(upto, half * (1.0 - slack)))
    last = first + int(upto[first] <= half * (1.0 + slack))
    return float(0.5 * z[order[first]] + 0.5 * z[order[last]])


def estimate_median(randomizer: NumericRandomizer, reports: Reports, *, spread: float | None = None) -> Estimate:
    r"""The median of the reports as an estimate of the mean of the values, with a bound on its bias.

    .. math:: |\mathrm{med} - \mathrm{mean}| \le b
              = -\lambda \log\Bigl(1 - \frac{s^2}{2 \lambda^2} e^{s/\lambda}\Bigr)
              \approx \frac{s^2}{2 \lambda}, \qquad
              \mathrm{se} \le \frac{\lambda}{\sqrt n}\, e^{(s + b) / \lambda}, \qquad
              |\mathbb E[M] - \mathrm{mean}| \le b + \mathrm{se}

    M is the median of the clamped reports, med that of the mixture behind them, s bounds the standard deviation of
    the people's values. Useful when the noise dominates: lambda far above s. One grid step is added to b because the
    mixture is discrete.

    The second part of the bias is that of few reports: clamped at an end near which the values are, M falls on one
    side of med only, and averages of such medians keep that. The bias bound hence also bounds the root mean squared
    error, and an interval of a single median is wider than it has to be.

    Proof: at distance u from the mean mu of the values x_i the mixture's distribution function H has
    2 H(mu) - 1 = mean g(mu - x_i), g(u) = sign(u) (1 - e^(-|u| / lambda)), and |g(u) - u / lambda| <= u^2 / (2
    lambda^2), so |2 H(mu) - 1| <= s^2 / (2 lambda^2). Its slope at mu + u is mean e^(-|mu + u - x_i| / lambda) /
    lambda >= e^(-(s + |u|) / lambda) / lambda (Jensen); integrate to the median. On a grid the mean of the
    distribution function at y and just below y is H(y) exactly, which puts the discrete median within one step. And
    |E[M] - med| is at most the root of E[(M - med)^2].

    Parameters
    ----------
    spread : float above 0, optional
        Public bound s on the standard deviation of the people's values. Half the range always holds (Popoviciu).

    Raises
    ------
    ParameterError
        For a randomizer of symbols, and for a `spread` that is not above 0.
    DataError
        For reports that are no whole grid steps, and for none at all.

    Notes
    -----
    The standard error is the large-sample one for n people, times the exact factor of n reports of one value, and
    half a grid step beside it.

    Examples
    --------
    >>> from dovetail.randomize.laplace import Laplace
    >>> laplace = Laplace(lower=0.0, upper=10.0, epsilon=5.0, grid=1.0)
    >>> float(estimate_median(laplace, [1, 3, 8]).value)
    3.0
    """
    need_numbers(randomizer, instead="estimate_frequencies")
    width = randomizer.upper - randomizer.lower
    s = min(width / 2.0, width / 2.0 if spread is None else positive("spread", spread))
    grid, steps = ClampedGrid.of(randomizer), whole_steps(randomizer, reports)
    if steps.size < 1:
        raise DataError("there are no reports to estimate from: n must be at least 1.")
    scale = grid.step / log1p(1.0 / grid.overshoot)  # lambda: e^(-step / lambda) = t
    bias = min(width, median_bias(s, scale))
    noise = scale * exp(min((s + bias) / scale, 700.0)) * sqrt(median_variance(steps.size))
    noise = hypot(noise, grid.step / 2.0)  # a median of grid points may fall on either side
    error = min(noise, width / 2.0)  # clamped reports have their median inside the range, as the values their mean
    return Estimate(
        value=np.asarray(randomizer.lower + grid.step * np.median(grid.clamp(steps))),
        standard_error=np.asarray(error),
        n=steps.size,
        population_error=np.asarray(hypot(error, s / sqrt(steps.size))),
        bias_bound=min(width, bias + noise + grid.step + randomizer.rounding),
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

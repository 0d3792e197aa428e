"""Estimates of the mean with less noise and a bias, a median and a shrunken mean, beside the unbiased one."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, hypot, inf, log, log1p, sqrt
from typing import Literal, cast, final

import numpy as np
from scipy.integrate import quad
from scipy.special import betaln

from dovetail.core.checks import positive, probability, whole
from dovetail.core.display import mute
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError
from dovetail.core.estimate import Estimate, Values
from dovetail.core.stages import NumericRandomizer, Reports
from dovetail.estimate.frequency import need_numbers
from dovetail.estimate.mean import ClampedGrid, Steps, estimate_mean, whole_steps

# The median of the reports: the most likely common value under Laplace noise, and close to the mean of a crowd.


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
        Public bound on the standard deviation of the people's values. Half the range always holds (Popoviciu). s is
        its root sum of squares with the half step that rounding to the grid at random may spread them by.

    Raises
    ------
    ParameterError
        For a randomizer of symbols, and for a `spread` that is not above 0.
    DataError
        For reports that are no whole grid steps, and for none at all.

    Notes
    -----
    The standard error is the large-sample one for n people, times the exact factor of n reports of one value, and
    half a grid step beside it. A fine grid keeps the bound on the bias close; it costs epsilon after a shuffle.

    Examples
    --------
    >>> from dovetail.randomize.laplace import Laplace
    >>> laplace = Laplace(lower=0.0, upper=10.0, epsilon=5.0, grid=1.0)
    >>> float(estimate_median(laplace, [1, 3, 8]).value)
    3.0
    """
    need_numbers(randomizer, instead="estimate_frequencies")
    width = randomizer.upper - randomizer.lower
    grid, steps = ClampedGrid.of(randomizer), whole_steps(randomizer, reports)
    if steps.size < 1:
        raise DataError("there are no reports to estimate from: n must be at least 1.")
    known = width / 2.0 if spread is None else hypot(positive("spread", spread), grid.step * sqrt(grid.rounded))
    s = min(width / 2.0, known)
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


# The bootstrap: how far the mean of the reports would move, had other people like these reported.


MOST_RESAMPLES = 10**6
_CELLS = 1 << 22  # weights held at a time, 32 MiB


@mute
@final
@dataclass(frozen=True, eq=False)
class BootstrapMean:
    """Means of the resamples, and the average they are taken for.

    Parameters
    ----------
    estimate : Estimate
        The average of the resample means, with the standard errors of the mean and the noise of resampling.
    means : float array (resamples,)
    """

    estimate: Estimate
    means: Values

    def population_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Percentile interval at `level` for the population the people are drawn from, widened by the bias bound.

        For exactly these people it is too wide: use `estimate.interval`.
        """
        tail = (1.0 - probability("level", level)) / 2.0
        low, high = np.quantile(self.means, [tail, 1.0 - tail])
        return float(low - self.estimate.bias_bound), float(high + self.estimate.bias_bound)


def bootstrap_mean(
    randomizer: NumericRandomizer, reports: Reports, *, resamples: int = 1000, rng: Entropy | None = None
) -> BootstrapMean:
    r"""Average of B resample means, each of n reports drawn with replacement (BS of the paper on RASE).

    .. math:: \hat\mu = \frac1B \sum_b \frac1n \sum_i \tilde z^b_i, \qquad
              \mathrm{se}^2 = \mathrm{se}^2(\bar z) + \frac{s^2}{n B}

    The expectation is that of the mean: the average adds noise and no accuracy. Its use is the interval, which
    assumes no law. Reports are first clamped and replaced by what they stand for, as in `estimate_mean`.

    Parameters
    ----------
    resamples : int, 2 .. 1e6
        B; about 1000 for an interval.

    Raises
    ------
    ParameterError
        For a randomizer of symbols, and for fewer than 2 resamples.
    DataError
        For reports that are no whole grid steps, and for none at all.

    Notes
    -----
    Resampling draws how often each distinct report occurs (multinomial): O(B min(n, m)) and free of the order.
    Resampling protects nobody, so NumPy draws it, seeded by one word of `rng`.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> from dovetail.randomize.laplace import Laplace
    >>> laplace = Laplace(lower=0.0, upper=10.0, epsilon=5.0)
    >>> reports = laplace.randomize([2.0] * 500 + [4.0] * 500, rng=simulation(1))
    >>> result = bootstrap_mean(laplace, reports, rng=simulation(2))
    >>> low, high = result.population_interval()
    >>> low < 3.0 < high, round(high - low, 1)
    (True, 0.3)
    """
    rng = entropy_or_system(rng)
    many = whole("resamples", resamples, least=2, most=MOST_RESAMPLES)
    steps = whole_steps(randomizer, reports)
    mean = estimate_mean(randomizer, steps)
    stands, counts = _what_they_stand_for(randomizer, steps)
    generator = np.random.Generator(np.random.PCG64(int(rng.words(1)[0])))
    rows = max(1, _CELLS // stands.size)
    sizes = [min(rows, many - start) for start in range(0, many, rows)]
    sums = [generator.multinomial(steps.size, counts / steps.size, size=size) @ stands for size in sizes]
    means = np.concatenate(sums) / steps.size
    extra = means.var(ddof=1) / many
    estimate = Estimate(
        value=np.asarray(means.mean()),
        standard_error=np.sqrt(mean.standard_error**2 + extra),
        n=steps.size,
        population_error=np.sqrt(mean.population_error**2 + extra),
        bias_bound=mean.bias_bound,
    )
    return BootstrapMean(estimate, means)


def _what_they_stand_for(randomizer: NumericRandomizer, steps: Steps) -> tuple[Values, Steps]:
    """The values that distinct reports stand for, as in `estimate_mean`, and how many there are of each."""
    if not randomizer.memoryless:
        sent, counts = np.unique(steps, return_counts=True)
        return randomizer.decode(sent), counts
    grid = ClampedGrid.of(randomizer)
    values, counts = np.unique(grid.clamp(steps), return_counts=True)
    stands = values + grid.overshoot * ((values == grid.steps) * 1.0 - (values == 0))
    return np.asarray(randomizer.lower + grid.step * stands), counts

"""Shares of the symbols among the people who reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.display import displayed_by, draw_estimate, show_estimate, to_frame
from dovetail.core.errors import DataError, ParameterError
from dovetail.core.estimate import Estimate, Estimator, Spread, Tally, Values
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer, Reports

if TYPE_CHECKING:
    import polars as pl


# Shares that are shares: the nearest point of the probability simplex.


@final
@displayed_by(show_estimate)
@dataclass(frozen=True)
class ProjectedEstimate:
    """Shares at least 0 that sum to 1, with the unbiased estimate they come from.

    Parameters
    ----------
    value : float array (.., k)
        Biased, but never further from the truth than the unbiased value (Euclidean distance).
    unbiased : Estimate
        Its standard errors are the honest ones; the projection has no simple ones of its own.
    """

    value: Values
    unbiased: Estimate

    @property
    def standard_error(self) -> Values:
        """Of the unbiased estimate."""
        return self.unbiased.standard_error

    @property
    def n(self) -> Any:
        """Reports behind it."""
        return self.unbiased.n

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Names of the symbols."""
        return self.unbiased.labels

    @property
    def groups(self) -> tuple[str, ...] | None:
        """Names of the groups."""
        return self.unbiased.groups

    def to_polars(self, level: float = 0.95) -> pl.DataFrame:
        """One row for each share: names, value, standard error, interval `low` to `high` at `level`, and n."""
        return to_frame(self, level)

    def plot(self, level: float = 0.95) -> Any:
        """A matplotlib figure (extra `studies`) with intervals at `level`; save it with `.savefig(path)`."""
        return draw_estimate(self, level)

    def interval(self, level: float = 0.95) -> tuple[Values, Values]:
        """The unbiased estimate's interval cut to [0, 1]: it covers just as often, because the truth lies inside."""
        low, high = self.unbiased.interval(level)
        return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def project_to_simplex(estimate: Estimate) -> ProjectedEstimate:
    """The nearest shares (.., k), at least 0 with sum 1, to an estimate of shares.

    The projection onto a convex set that holds the truth brings every point closer to the truth. It is biased (up for
    rare symbols): use the unbiased value for sums over many collections, this one for tables and plots.

    Raises
    ------
    ParameterError
        For what is no estimate of shares.

    Examples
    --------
    >>> error = np.array([0.2, 0.2])
    >>> project_to_simplex(Estimate(np.array([-0.25, 1.25]), error, 20, error)).value.tolist()
    [0.0, 1.0]
    """
    if not isinstance(estimate, Estimate) or np.ndim(estimate.value) == np.ndim(estimate.n):
        raise ParameterError("`estimate` must be an Estimate of shares, such as one of estimate_frequencies.")
    return ProjectedEstimate(project_shares(estimate.value), estimate)


def project_shares(values: ArrayLike) -> NDArray[np.float64]:
    r"""Euclidean projection onto the simplex over the last axis: max(v - t, 0) with t such that the sum is 1.

    >>> project_shares([0.75, 0.5, -0.25]).tolist()
    [0.625, 0.375, 0.0]

    Source
    ------
    Held, Wolfe, Crowder (1974), Validation of Subgradient Optimization, Mathematical Programming 6.
    """
    v = np.asarray(values, dtype=np.float64)
    falling = -np.sort(-v, axis=-1)
    excess = np.cumsum(falling, axis=-1) - 1.0
    size = np.arange(1, v.shape[-1] + 1)
    support = np.count_nonzero(falling * size > excess, axis=-1)[..., None]
    threshold = np.take_along_axis(excess, support - 1, axis=-1) / support
    return np.asarray(np.maximum(v - threshold, 0.0))


# Which estimate goes with which randomizer: a wrong pair is refused with the name of the right function.


def need_symbols(randomizer: Any, *, instead: str) -> None:
    """Refuse what is no randomizer of symbols; numbers go to the function `instead`."""
    _need(randomizer, FrequencyRandomizer, NumericRandomizer, "symbols", "dt.KRR(k=2, epsilon=1.0)", instead)


def need_numbers(randomizer: Any, *, instead: str) -> None:
    """Refuse what is no randomizer of numbers; symbols go to the function `instead`."""
    example = "dt.Laplace(lower=0.0, upper=1.0, epsilon=1.0)"
    _need(randomizer, NumericRandomizer, FrequencyRandomizer, "numbers", example, instead)


def _need(randomizer: Any, wanted: type, other: type, what: str, example: str, instead: str) -> None:
    if isinstance(randomizer, wanted):
        return
    made = randomizer if isinstance(randomizer, type) else type(randomizer)
    if issubclass(made, other):
        end = f"got one of {'numbers' if what == 'symbols' else 'symbols'}, {made.__name__}: use {instead}"
    elif issubclass(made, wanted):
        end = f"got the class {made.__name__} itself: give it its parameters"
    else:
        end = f"such as {example}, got a value of type {made.__name__}"
    raise ParameterError(f"`randomizer` must be a randomizer of {what}, {end}.")


@final
@dataclass(frozen=True)
class FrequencyEstimator(Estimator):
    r"""Unbiased shares by inverting the randomizer.

    .. math:: \hat f = \mathrm{invert}(\mathrm{tally} / n), \qquad
              \mathrm{se}^2 = V(\hat f) / n, \qquad
              \mathrm{pe}^2 = (V(\hat f) + \hat f (1 - \hat f)) / n

    V is the theoretical variance of one report for people with fixed values, taken at the nearest shares that sum to
    1: it does not vanish for symbols that nobody has. Intervals are score intervals, because V depends on the truth.
    Unbiased values may lie outside [0, 1]; where shares are needed, see `project_to_simplex`.

    Parameters
    ----------
    randomizer : FrequencyRandomizer

    Notes
    -----
    `solve` takes tallies with leading axes: counts (.., width) of n (..) reports.
    """

    randomizer: FrequencyRandomizer

    def tally(self, reports: Reports) -> Tally:
        return Tally(self.randomizer.tally(reports), len(reports))

    def solve(self, tally: Tally) -> Estimate:
        n = np.asarray(tally.n)
        if np.any(n < 1):
            raise DataError("there are no reports to estimate from: n must be at least 1.")
        value = self.randomizer.invert(tally.counts, n)
        shares = project_shares(value)
        variance = self.randomizer.variance(shares)
        each = n[..., None]
        return Estimate(
            value=value,
            standard_error=np.sqrt(variance / each),
            n=tally.n,
            population_error=np.sqrt((variance + shares * (1.0 - shares)) / each),
            spread=self._spread(shares, variance, each, tally.counts.shape[-1]),
        )

    def _spread(self, shares: Values, variance: Values, n: Any, width: int) -> Spread:
        """V is linear in a symbol's own share, with one slope for all symbols; so is the estimate in one count."""
        k = self.randomizer.k
        unit, other = np.eye(1, width)[0], np.eye(1, width, 1)[0]
        slope = float((self.randomizer.variance(np.eye(1, k)[0]) - self.randomizer.variance(np.zeros(k)))[0])
        step = float((self.randomizer.invert(unit, 1) - self.randomizer.invert(other, 1))[0])
        return Spread((variance - slope * shares) / n, slope / n, 0.0, abs(step) / (2.0 * n))


def estimate_frequencies(randomizer: FrequencyRandomizer, reports: Reports) -> Estimate:
    """Shares (k,) of the symbols among the people behind `reports`, with standard errors.

    Raises
    ------
    ParameterError
        For a randomizer of numbers, and for other objects.
    DataError
        For reports that this randomizer never makes, and for none at all.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> from dovetail.randomize.krr import KRR
    >>> krr = KRR(k=2, epsilon=3.0)
    >>> estimate = estimate_frequencies(krr, krr.randomize([0] * 300 + [1] * 100, rng=simulation(1)))
    >>> estimate.value.round(2), estimate.standard_error.round(3)
    (array([0.74, 0.26]), array([0.012, 0.012]))
    """
    need_symbols(randomizer, instead="estimate_mean")
    estimator = FrequencyEstimator(randomizer)
    return estimator.solve(estimator.tally(reports))

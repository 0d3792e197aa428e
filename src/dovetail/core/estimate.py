"""What an analyst gets: a tally that adds, and an estimate that carries its error."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import probability
from dovetail.core.display import displayed_by, draw_estimate, show_estimate, to_frame
from dovetail.core.errors import ParameterError
from dovetail.core.noise_reach import noise_reach

if TYPE_CHECKING:
    import polars as pl

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Tally:
    """Order-free summary of reports; tallies of disjoint batches add.

    Parameters
    ----------
    counts : array
        What the estimator needs, such as reports per symbol.
    n : int or int array
        Number of reports behind it (per group for grouped tallies).
    """

    counts: NDArray[Any]
    n: Any

    def __add__(self, other: Tally) -> Tally:
        if np.shape(self.counts) != np.shape(other.counts):
            raise ParameterError(
                f"tallies of one estimator add; got shapes {np.shape(self.counts)} and {np.shape(other.counts)}."
            )
        return Tally(self.counts + other.counts, self.n + other.n)


@dataclass(frozen=True)
class Spread:
    r"""Variance of an unbiased estimate as a function of the truth f, and the step of its lattice.

    .. math:: V(f) = \mathrm{at\_zero} + \mathrm{slope}\, f - \mathrm{curvature}\, f^2

    Shares that come from counts have it in closed form. Intervals solve \|value - f\| - half_step = z sqrt(V(f)) for
    f (the score interval of Wilson 1927 with continuity correction): they cover where a symbol is rare, and where a
    normal interval around the value collapses.

    Parameters
    ----------
    at_zero, slope, curvature, half_step : float arrays that broadcast against the value
    """

    at_zero: Any
    slope: Any
    curvature: Any
    half_step: Any

    def drawn(self, share: Any) -> Spread:
        """With sampling added: V(f) + share f (1 - f); share is 1/n for n people drawn from a population."""
        return replace(self, slope=self.slope + share, curvature=self.curvature + share)

    def each(self, pick: Callable[[Any], Any]) -> Spread:
        """With `pick` of every parameter, such as one row."""
        return Spread(pick(self.at_zero), pick(self.slope), pick(self.curvature), pick(self.half_step))

    def interval(self, value: Values, z: float) -> tuple[Values, Values]:
        """The truths that a value at most z standard deviations off could come from."""
        low, high = value - self.half_step, value + self.half_step
        # beyond the range in which V is positive the branch excludes nothing: the end itself
        return np.minimum(self._root(low, z, -1.0), low), np.maximum(self._root(high, z, 1.0), high)

    def _root(self, value: Values, z: float, side: float) -> Values:
        """Root of (1 + z^2 curvature) f^2 - (2 value + z^2 slope) f + value^2 - z^2 at_zero = 0."""
        lead, middle = 1.0 + z**2 * self.curvature, 2.0 * value + z**2 * self.slope
        inside = middle**2 - 4.0 * lead * (value**2 - z**2 * self.at_zero)
        return np.asarray((middle + side * np.sqrt(np.maximum(inside, 0.0))) / (2.0 * lead))


@dataclass(frozen=True, eq=False)
class KnownNoise:
    r"""An error of a known law, symmetric and free of the truth, and a normal one: f_hat - f = Z + N(0, variance).

    Intervals are quantiles of the sum: behind dummies the normal ones cover too seldom, because the noise is
    geometric.

    Parameters
    ----------
    places, masses : float arrays (points,)
        The law of Z.
    variance, sampling : float arrays, as the value
        Of the normal error, and f (1 - f).
    """

    places: Values
    masses: Values
    variance: Any
    sampling: Any

    def drawn(self, share: Any) -> KnownNoise:
        """With sampling added, as in `Spread`."""
        return replace(self, variance=self.variance + share * self.sampling)

    def each(self, pick: Callable[[Any], Any]) -> KnownNoise:
        """As in `Spread`."""
        return replace(self, variance=pick(self.variance), sampling=pick(self.sampling))

    def interval(self, value: Values, z: float) -> tuple[Values, Values]:
        """The truths that an error of this law leaves, as probably as a normal one at most z standard deviations."""
        reach = noise_reach(self.places, self.masses, np.sqrt(self.variance), math.erf(z / math.sqrt(2.0)))
        reach = reach + 4.0 * np.spacing(np.abs(value) + reach)  # a truth at the very end is inside
        return value - reach, value + reach


@displayed_by(show_estimate)
@dataclass(frozen=True)
class Estimate:
    r"""A number, or an array of numbers, with its standard error and the number of reports behind it.

    Parameters
    ----------
    value : float array
        Unbiased unless `bias_bound` says otherwise.
    standard_error : float array, same shape
        For the value among exactly these people: randomization is the only source of error.
    n : int or int array
        Reports behind it.
    population_error : float array, same shape
        Standard error for the population these people are drawn from: sampling and randomization.
    bias_bound : float or float array
        Largest absolute bias that cannot be excluded; 0 for unbiased estimates. Intervals are widened by it.
    spread : Spread, KnownNoise or None
        For shares: how the variance depends on the truth; intervals are then score intervals. For shares behind
        dummies: the law of their noise. Otherwise intervals are normal.
    labels, groups : tuple of str or None
        What the last axis and the groups are called; see `label`.

    Raises
    ------
    ParameterError
        From `interval`, for a `level` outside (0, 1), and from `label`, for another number of names.

    Examples
    --------
    >>> estimate = Estimate(np.array([0.25, 0.75]), np.array([0.01, 0.01]), 1000, np.array([0.02, 0.02]))
    >>> estimate.label(["no", "yes"])
    Estimate from 1,000 reports (± standard error)
    no: 0.250 ± 0.010, yes: 0.750 ± 0.010
    """

    value: Values
    standard_error: Values
    n: Any
    population_error: Values
    bias_bound: Any = 0.0
    spread: Spread | KnownNoise | None = None
    labels: tuple[str, ...] | None = None
    groups: tuple[str, ...] | None = None

    def label(self, labels: Iterable[str] | None = None, *, groups: Iterable[str] | None = None) -> Self:
        """The same with names, for tables and figures.

        Parameters
        ----------
        labels : texts, one for each number of the last axis, such as a `Domain`
        groups : texts, one for each group
        """
        shape, grouped = np.shape(self.value), np.ndim(self.n)
        sizes = {"labels": shape[-1] if len(shape) > grouped else 0, "groups": shape[0] if grouped else 0}
        return replace(
            self,
            labels=self.labels if labels is None else _names("labels", labels, sizes["labels"]),
            groups=self.groups if groups is None else _names("groups", groups, sizes["groups"]),
        )

    def group(self, row: int) -> Estimate:
        """One row of an estimate whose first axis is groups."""

        def pick(part: Any) -> Any:
            return part[row] if np.ndim(part) else part

        return Estimate(
            pick(self.value),
            pick(self.standard_error),
            int(self.n[row]),
            pick(self.population_error),
            bias_bound=pick(self.bias_bound),
            spread=None if self.spread is None else self.spread.each(pick),
            labels=self.labels,
        )

    def interval(self, level: float = 0.95) -> tuple[Values, Values]:
        """Interval at `level` for the value among exactly these people, widened by `bias_bound`."""
        return self._interval(self.standard_error, self.spread, level)

    def population_interval(self, level: float = 0.95) -> tuple[Values, Values]:
        """Interval at `level` for the population these people are drawn from, widened by `bias_bound`."""
        spread = None if self.spread is None else self.spread.drawn(1.0 / np.asarray(self.n)[..., None])
        return self._interval(self.population_error, spread, level)

    def to_polars(self, level: float = 0.95) -> pl.DataFrame:
        """One row for each number: names, value, standard error, interval `low` to `high` at `level`, and n."""
        return to_frame(self, level)

    def plot(self, level: float = 0.95) -> Any:
        """A matplotlib figure (extra `studies`) with intervals at `level`; save it with `.savefig(path)`."""
        return draw_estimate(self, level)

    def _interval(self, error: Values, spread: Spread | KnownNoise | None, level: float) -> tuple[Values, Values]:
        from scipy.special import ndtri

        z = float(ndtri(0.5 + probability("level", level) / 2))
        low, high = (
            (self.value - z * error, self.value + z * error) if spread is None else spread.interval(self.value, z)
        )
        return low - self.bias_bound, high + self.bias_bound


class Estimator(ABC):
    """Turns a batch into an estimate without looking at its order.

    Laws: `tally` is invariant under permutations and tally(a + b) = tally(a) + tally(b).

    Raises
    ------
    DataError
        From `tally` for reports that are none, and from `solve` where there are no reports.

    Examples
    --------
    >>> from dovetail.estimate.frequency import FrequencyEstimator
    >>> from dovetail.randomize.krr import KRR
    >>> estimator = FrequencyEstimator(KRR(k=2, epsilon=1.0))
    >>> (estimator.tally([0, 1, 1]) + estimator.tally([0])).n
    4
    """

    @abstractmethod
    def tally(self, reports: NDArray[Any]) -> Tally:
        """Order-free summary."""

    @abstractmethod
    def solve(self, tally: Tally) -> Estimate:
        """The estimate with its standard error and n."""


def _names(name: str, given: Iterable[str], size: int) -> tuple[str, ...]:
    names = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    if len(names) != size or not all(isinstance(one, str) for one in names):
        raise ParameterError(f"`{name}` must be {size:,} texts, one for each, got {len(names):,}.")
    return names

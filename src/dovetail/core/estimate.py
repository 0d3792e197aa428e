"""Results of an analyst: a tally that adds, and an estimate that carries its error."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import probability
from dovetail.core.display import displayed_by, draw_estimate, show_estimate, to_frame
from dovetail.core.errors import ParameterError
from dovetail.core.special import Reals

if TYPE_CHECKING:
    import polars as pl

Values = NDArray[np.float64]
Z95 = 1.959963984540054  # the 97.5 % quantile of a standard normal


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


UNIT = 1126  # of an exact sum: 2^-1126, below the last bit of every double


def exact_sum(values: Values) -> int:
    """The sum of finite doubles, exactly, in units of 2^-1126: the same in any order and split.

    >>> exact_sum(np.array([1e300, 1.0, -1e300])) == exact_sum(np.array([1.0]))
    True
    """
    parts, exponents = np.frexp(values)
    digits, total = (parts * 2.0**53).astype(np.int64), 0
    for exponent in np.unique(exponents).tolist():
        here = digits[exponents == exponent]  # in halves, whose sums fit into 64 bits
        total += ((int((here >> 26).sum()) << 26) + int((here & ((1 << 26) - 1)).sum())) << (exponent + UNIT - 53)
    return total


def tally_groups(
    tally: Callable[[Any], Tally], reports: NDArray[Any], labels: NDArray[np.int64], groups: int
) -> Tally:
    """The tally of each of so many groups (groups, ..); `labels` (n,) name the group of each report, 0..groups-1."""
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels, minlength=groups))
    parts = [tally(reports[part]) for part in np.split(order, ends[:-1])]
    return Tally(np.stack([one.counts for one in parts]), np.array([one.n for one in parts], dtype=np.int64))


class Intervals(Protocol):
    """Confidence intervals of an estimate, where they are not value +- z standard errors."""

    def drawn(self, share: Any) -> Intervals:
        """With the sampling of a population added; share is 1/n."""

    def each(self, pick: Callable[[Any], Any]) -> Intervals:
        """With `pick` of every parameter, such as one row."""

    def interval(self, value: Values, z: float) -> tuple[Values, Values]:
        """The truths that an error leaves which is as probable as a normal one of z standard deviations."""


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


@dataclass(frozen=True)
class OfGroups:
    """Intervals of each group, as an estimate whose first axis is groups holds them."""

    groups: tuple[Intervals, ...]

    def drawn(self, share: Any) -> OfGroups:
        """As in `Intervals`."""
        return OfGroups(tuple(one.drawn(part) for one, part in zip(self.groups, share, strict=True)))

    def each(self, pick: Callable[[Any], Any]) -> Intervals:
        """Those of the group that is picked."""
        return self.groups[int(pick(np.arange(len(self.groups))))]

    def interval(self, value: Values, z: float) -> tuple[Values, Values]:
        """As in `Intervals`, one row for each group."""
        ends = [one.interval(row, z) for one, row in zip(self.groups, value, strict=True)]
        return np.array([low for low, _ in ends]), np.array([high for _, high in ends])


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
    spread : Intervals or None
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
    spread: Intervals | None = None
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

    def _interval(self, error: Values, spread: Intervals | None, level: float) -> tuple[Values, Values]:
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


# How far a known error goes: quantiles of a discrete and a normal one, and of a sum of many by its law.

CELL = 0.02  # in the log: standard deviations are rounded up to multiples of so much
TURNS = 50


def noise_reach(places: Reals, masses: Reals, sigma: ArrayLike, level: float) -> Reals:
    r"""The least t with Pr[|Z + N(0, sigma^2)| <= t] >= level, rounded up; for each sigma, at least 0.

    Without normal noise it is one of the |places|: the interval covers at least with this probability.

    Parameters
    ----------
    places, masses : float arrays (points,)
        The law of Z.

    Examples
    --------
    >>> noise_reach(np.array([-1.0, 0.0, 1.0]), np.array([0.25, 0.5, 0.25]), [0.0, 1.0], 0.5).round(1).tolist()
    [0.0, 0.8]
    """
    deviations = np.asarray(sigma, dtype=np.float64)
    with np.errstate(divide="ignore"):
        cells = np.ceil(np.log(deviations) / CELL)
    kinds, where = np.unique(cells, return_inverse=True)
    reaches = np.array([_reach(places, masses, float(np.exp(CELL * cell)), level) for cell in kinds])
    return np.asarray(reaches[where.reshape(deviations.shape)])


def _reach(places: Reals, masses: Reals, sigma: float, level: float) -> float:
    from scipy.special import ndtr

    if sigma == 0.0:
        order = np.argsort(np.abs(places), kind="stable")
        enough = np.flatnonzero(np.cumsum(masses[order]) >= level)
        return float(np.abs(places)[order[enough[0] if enough.size else -1]])
    low, high = 0.0, float(np.abs(places).max()) + 9.0 * sigma
    for _ in range(TURNS):
        t = 0.5 * (low + high)
        inside = float(masses @ (ndtr((t - places) / sigma) - ndtr((-t - places) / sigma)))
        low, high = (t, high) if inside < level else (low, t)
    return high


# The same of a sum of many independent errors, whose law is too long to be listed.


def two_binomials(steps: Reals, outside: Reals, inside: Reals, held: ArrayLike, n: int) -> NDArray[np.complex128]:
    r"""Characteristic functions (held, rows, times) of steps (rows, times) times a count less its mean.

    .. math:: H \sim \mathrm{Bin}(n - m, a) + \mathrm{Bin}(m, b), \quad m \text{ people held inside}
    """
    turn = np.expm1(1j * steps)
    far, near = (np.log(1.0 + p[:, None] * turn) - 1j * steps * p[:, None] for p in (outside, inside))
    return np.stack([np.exp((n - one) * far + one * near) for one in np.atleast_1d(held)])


SMOOTH = 1.0 / 97.0  # standard deviations of the normal error that is added, so that the series ends
WITHIN = 4.5  # of its own standard deviations it stays, but with probability 3.4e-6
FADED = 5.5  # of them in the exponent: what the series leaves out is below 3e-7
SLACK = 0.999  # of the tail that is used: more than all that is left out

Characteristic = Callable[[Reals], NDArray[np.complex128]]  # (rows, times) to (.., rows, times)


def sum_reach(characteristic: Characteristic, sigma: Reals, tail: float) -> tuple[Reals, Reals]:
    r"""How far (.., rows) errors X go below and above 0, each side but with probability `tail` at most.

    .. math:: \Pr[X > x + 4.5\tau] \le \frac{\Pr[X + N > x]}{\Pr[N > -4.5\tau]}, \qquad N \sim N(0, \tau^2),
              \qquad F_{X+N}(x) = \frac{x}{P} + \frac12 +
              \sum_{j \ge 1} \frac{2}{P} \mathrm{Re} \frac{\phi(\omega_j) e^{-\tau^2\omega_j^2/2}
              (e^{-i\omega_j x} - e^{i\omega_j P/2})}{-i\omega_j}, \qquad \omega_j = \frac{2\pi j}{P}

    The inequality holds for any law of X, so that steps in it do no harm; the series is that of a law on a circle of
    length P, far longer than X reaches. Rounded up; no normal approximation.

    Parameters
    ----------
    characteristic : function
        Of times (rows, times), the characteristic function of the error of each row.
    sigma : float array (rows,)
        Standard deviations, or above them.
    tail : float, 1e-6 to 0.5

    Examples
    --------
    >>> below, above = sum_reach(lambda t: np.exp(-t**2 / 2) + 0j, np.ones(1), 0.025)
    >>> bool(1.96 < above[0] < 2.02), bool(below[0] == above[0])
    (True, True)
    """
    length = 24.0 * max(1.0, math.log(tail) / math.log(1e-4))  # in standard deviations
    terms = math.ceil(FADED * length / (2.0 * math.pi * SMOOTH))
    omega = 2.0 * np.pi * np.arange(1, terms + 1) / length
    wide = np.asarray(sigma, dtype=np.float64)
    law = characteristic(omega / wide[:, None]) * np.exp(-0.5 * (SMOOTH * omega) ** 2)
    size = 1 << (2 * terms).bit_length()
    # i phi / omega is the integral of a term; places of the grid are -P/2 + P m / size
    shifted = np.zeros((*law.shape[:-1], size // 2 + 1), dtype=np.complex128)
    shifted[..., 1 : terms + 1] = np.conj(law * 1j / omega * np.exp(1j * omega * length / 2.0))
    wave = np.fft.irfft(shifted, n=size, axis=-1) * size / length
    below = np.arange(size) / size + wave - wave[..., :1]  # Pr[X + N <= x]
    places = length * (np.arange(size) / size - 0.5)
    wanted = tail * SLACK
    least = np.maximum(places[np.argmax(below > wanted, axis=-1) - 1], -length / 2.0)  # last place of the lower tail
    most = places[size - 1 - np.argmax(below[..., ::-1] < 1.0 - wanted, axis=-1)] + length / size
    reach = [np.maximum(0.0, end) + WITHIN * SMOOTH for end in (-least, most)]
    return wide * reach[0], wide * reach[1]

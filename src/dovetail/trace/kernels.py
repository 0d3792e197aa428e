"""Kernels: the correlation of two locations of a trace, by the seconds between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from itertools import pairwise
from math import pi, prod, sqrt
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import nearest, positive
from dovetail.core.errors import DataError, ParameterError

Floats = NDArray[np.float64]


class Kernel(ABC):
    """A stationary correlation function with k(0) = 1; law: the matrix over any times is positive semidefinite.

    Its parameters are positive numbers, fitted on their logarithms.
    """

    @abstractmethod
    def correlation(self, gaps: Floats) -> Floats:
        """Correlation of two locations that lie `gaps` seconds apart; any shape, at least 0."""

    @property
    @abstractmethod
    def parameters(self) -> tuple[float, ...]:
        """The positive numbers that a fit may change."""

    @abstractmethod
    def with_parameters(self, parameters: tuple[float, ...]) -> Self:
        """The same kernel with other parameters."""

    @abstractmethod
    def gradients(self, gaps: Floats) -> list[Floats]:
        """Derivatives of `correlation(gaps)` by the logarithm of each parameter."""

    @abstractmethod
    def beyond(self, gap: float) -> float:
        """Upper bound on the absolute correlation of locations at least `gap` seconds apart, above 0."""

    @abstractmethod
    def stretched(self, factor: float) -> Self:
        """The same kernel with every length-scale multiplied by `factor`."""

    @abstractmethod
    def as_dict(self) -> dict[str, Any]:
        """Its form in files."""

    @final
    def matrix(self, times: ArrayLike) -> Floats:
        """Correlations (n, n) of the locations at `times` (n,), seconds."""
        stamps = np.asarray(times, dtype=np.float64)
        return self.correlation(np.abs(stamps[:, None] - stamps[None, :]))


def sorted_times(times: ArrayLike) -> Floats:
    """Time stamps (n,) in seconds, finite and strictly increasing; at least two.

    >>> sorted_times([0, 15, 30]).tolist()
    [0.0, 15.0, 30.0]
    """
    stamps = np.asarray(times, dtype=np.float64)
    if stamps.ndim != 1 or stamps.size < 2:
        raise DataError(f"`times` must be at least 2 time stamps, got {stamps.size}; one point has no trace.")
    bad = np.flatnonzero(~np.isfinite(stamps))
    if bad.size:
        raise DataError(f"`times` must be finite seconds; {bad.size:,} are not (first at point {bad[0] + 1}).")
    steps = np.flatnonzero(np.diff(stamps) <= 0)
    if steps.size:
        place = int(steps[0]) + 2
        what = (
            "repeats the stamp before it"
            if stamps[place - 1] == stamps[place - 2]
            else "is earlier than the one before it"
        )
        raise DataError(
            f"`times` must increase; point {place} {what} ({steps.size:,} such points): "
            "sort the trace and keep one point for each stamp."
        )
    return stamps


# The kernels: squared exponential, Matern 3/2 and 5/2, periodic, and white for what no neighbour tells.


LEAST_LENGTH = 1e-9  # squares of gaps over it stay finite


@dataclass(frozen=True)
class _OfLength(Kernel):
    """A kernel whose first parameter is its length-scale in seconds."""

    length: float
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        if positive("length", self.length) < LEAST_LENGTH:
            raise ParameterError(f"`length` must be at least {LEAST_LENGTH:g}, got {self.length!r}.")

    @property
    def parameters(self) -> tuple[float, ...]:
        return (self.length,)

    def with_parameters(self, parameters: tuple[float, ...]) -> Self:
        return replace(self, length=parameters[0])

    def beyond(self, gap: float) -> float:
        return float(self.correlation(np.array(gap)))

    def stretched(self, factor: float) -> Self:
        return replace(self, length=self.length * factor)

    def as_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "length": self.length}


class RBF(_OfLength):
    r"""Squared exponential, :math:`k(t) = e^{-t^2 / (2 l^2)}`: very smooth movement.

    Parameters
    ----------
    length : float, above 0, seconds

    Raises
    ------
    ParameterError
        For a length that is not a finite number of at least 1e-9.

    Examples
    --------
    >>> round(float(RBF(length=2.0).correlation(np.array(2.0))), 12)  # exp(-1 / 2)
    0.606530659713
    """

    kind: ClassVar[str] = "rbf"

    def correlation(self, gaps: Floats) -> Floats:
        return np.exp(-0.5 * (gaps / self.length) ** 2)

    def gradients(self, gaps: Floats) -> list[Floats]:
        return [self.correlation(gaps) * (gaps / self.length) ** 2]


class Matern32(_OfLength):
    r"""Matern 3/2, :math:`k(t) = (1 + u) e^{-u}`, :math:`u = \sqrt 3 t / l`: a velocity without acceleration.

    Parameters
    ----------
    length : float, above 0, seconds

    Raises
    ------
    ParameterError
        For a length that is not a finite number of at least 1e-9.

    Examples
    --------
    >>> round(float(Matern32(length=2.0).correlation(np.array(2.0))), 4)
    0.4834
    """

    kind: ClassVar[str] = "matern32"

    def correlation(self, gaps: Floats) -> Floats:
        u = sqrt(3.0) * gaps / self.length
        return (1.0 + u) * np.exp(-u)

    def gradients(self, gaps: Floats) -> list[Floats]:
        u = sqrt(3.0) * gaps / self.length
        return [u * u * np.exp(-u)]


class Matern52(_OfLength):
    r"""Matern 5/2, :math:`k(t) = (1 + u + u^2/3) e^{-u}`, :math:`u = \sqrt 5 t / l`.

    Parameters
    ----------
    length : float, above 0, seconds

    Raises
    ------
    ParameterError
        For a length that is not a finite number of at least 1e-9.

    Examples
    --------
    >>> round(float(Matern52(length=2.0).correlation(np.array(2.0))), 4)
    0.524
    """

    kind: ClassVar[str] = "matern52"

    def correlation(self, gaps: Floats) -> Floats:
        u = sqrt(5.0) * gaps / self.length
        return (1.0 + u + u * u / 3.0) * np.exp(-u)

    def gradients(self, gaps: Floats) -> list[Floats]:
        u = sqrt(5.0) * gaps / self.length
        return [u * u * (1.0 + u) / 3.0 * np.exp(-u)]


@dataclass(frozen=True)
class Periodic(_OfLength):
    r"""Periodic, :math:`k(t) = e^{-2 \sin^2(\pi t / p) / l^2}`: what repeats every `period` seconds.

    Parameters
    ----------
    length : float, above 0, without a unit
        Small: the phase matters much.
    period : float, above 0, seconds
        Not changed by a fit.

    Raises
    ------
    ParameterError
        For a length or a period that is not above 0.

    Examples
    --------
    >>> Periodic(length=1.0, period=60.0).correlation(np.array([0.0, 60.0])).round(6).tolist()
    [1.0, 1.0]
    """

    period: float = 86_400.0
    kind: ClassVar[str] = "periodic"

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("period", self.period)

    def correlation(self, gaps: Floats) -> Floats:
        return np.asarray(np.exp(-2.0 * (np.sin(pi * gaps / self.period) / self.length) ** 2))

    def gradients(self, gaps: Floats) -> list[Floats]:
        return [self.correlation(gaps) * 4.0 * (np.sin(pi * gaps / self.period) / self.length) ** 2]

    def beyond(self, gap: float) -> float:
        return 1.0

    def as_dict(self) -> dict[str, Any]:
        return {**super().as_dict(), "period": self.period}


@dataclass(frozen=True)
class White(Kernel):
    """Correlation 0 between different times: the nugget, what no neighbour tells."""

    kind: ClassVar[str] = "white"

    def correlation(self, gaps: Floats) -> Floats:
        return np.asarray(gaps == 0.0, dtype=np.float64)

    @property
    def parameters(self) -> tuple[float, ...]:
        return ()

    def with_parameters(self, parameters: tuple[float, ...]) -> Self:
        return self

    def gradients(self, gaps: Floats) -> list[Floats]:
        return []

    def beyond(self, gap: float) -> float:
        return 0.0

    def stretched(self, factor: float) -> Self:
        return self

    def as_dict(self) -> dict[str, Any]:
        return {"kind": self.kind}


# Sums and products of kernels: several movements at once, and a nugget.


def _given_out(parts: tuple[Kernel, ...], parameters: tuple[float, ...]) -> tuple[Kernel, ...]:
    """Each part with its share of a long list of parameters."""
    ends = np.cumsum([0, *(len(part.parameters) for part in parts)]).tolist()
    return tuple(part.with_parameters(parameters[a:b]) for part, (a, b) in zip(parts, pairwise(ends), strict=True))


@dataclass(frozen=True)
class Sum(Kernel):
    r"""Weighted sum, :math:`\sum_i w_i k_i / \sum_i w_i`: independent movements on top of each other.

    Parameters
    ----------
    parts : tuple of Kernel
    weights : tuple of float, above 0
        Variances relative to each other.
    """

    parts: tuple[Kernel, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.parts) != len(self.weights) or not self.parts:
            raise ParameterError(f"`weights` must be one number for each part, got {self.weights!r}.")
        for weight in self.weights:
            positive("weights", weight)

    def correlation(self, gaps: Floats) -> Floats:
        total = sum(self.weights)
        return np.asarray(
            sum(w / total * part.correlation(gaps) for w, part in zip(self.weights, self.parts, strict=True))
        )

    @property
    def parameters(self) -> tuple[float, ...]:
        return (*self.weights, *(number for part in self.parts for number in part.parameters))

    def with_parameters(self, parameters: tuple[float, ...]) -> Self:
        count = len(self.parts)
        return replace(self, weights=parameters[:count], parts=_given_out(self.parts, parameters[count:]))

    def gradients(self, gaps: Floats) -> list[Floats]:
        total, mean = sum(self.weights), self.correlation(gaps)
        shares = [weight / total for weight in self.weights]
        own = [share * (part.correlation(gaps) - mean) for share, part in zip(shares, self.parts, strict=True)]
        return own + [
            share * slope for share, part in zip(shares, self.parts, strict=True) for slope in part.gradients(gaps)
        ]

    def beyond(self, gap: float) -> float:
        total = sum(self.weights)
        return float(sum(w / total * part.beyond(gap) for w, part in zip(self.weights, self.parts, strict=True)))

    def stretched(self, factor: float) -> Self:
        return replace(self, parts=tuple(part.stretched(factor) for part in self.parts))

    def as_dict(self) -> dict[str, Any]:
        return {"kind": "sum", "weights": list(self.weights), "parts": [part.as_dict() for part in self.parts]}


@dataclass(frozen=True)
class Product(Kernel):
    r"""Product, :math:`\prod_i k_i`: a rhythm that fades, for example.

    Parameters
    ----------
    parts : tuple of Kernel
    """

    parts: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise ParameterError("`parts` must be at least one kernel, got none.")

    def correlation(self, gaps: Floats) -> Floats:
        return np.asarray(prod(part.correlation(gaps) for part in self.parts))

    @property
    def parameters(self) -> tuple[float, ...]:
        return tuple(number for part in self.parts for number in part.parameters)

    def with_parameters(self, parameters: tuple[float, ...]) -> Self:
        return replace(self, parts=_given_out(self.parts, parameters))

    def gradients(self, gaps: Floats) -> list[Floats]:
        values = [part.correlation(gaps) for part in self.parts]
        others = [prod(values[:i] + values[i + 1 :], start=np.ones_like(gaps)) for i in range(len(values))]
        return [
            other * slope for other, part in zip(others, self.parts, strict=True) for slope in part.gradients(gaps)
        ]

    def beyond(self, gap: float) -> float:
        return prod(part.beyond(gap) for part in self.parts)

    def stretched(self, factor: float) -> Self:
        return replace(self, parts=tuple(part.stretched(factor) for part in self.parts))

    def as_dict(self) -> dict[str, Any]:
        return {"kind": "product", "parts": [part.as_dict() for part in self.parts]}


def scale_nugget(kernel: Kernel, factor: float) -> Kernel:
    """`kernel` with its nugget times `factor`, of variance 1 again; itself where there is no nugget, or nothing else.

    >>> from dovetail.trace.kernels import RBF
    >>> scale_nugget(with_nugget(RBF(length=60.0), 0.1), 0.0).correlation(np.array([0.0, 1e-9])).round(3).tolist()
    [1.0, 1.0]
    """
    if isinstance(kernel, Product):
        return replace(kernel, parts=tuple(scale_nugget(part, factor) for part in kernel.parts))
    if not isinstance(kernel, Sum) or all(isinstance(part, White) for part in kernel.parts):
        return kernel
    weighed = [
        (scale_nugget(part, factor), weight * (factor if isinstance(part, White) else 1.0))
        for part, weight in zip(kernel.parts, kernel.weights, strict=True)
    ]
    parts, weights = zip(*(each for each in weighed if each[1] > 0.0), strict=True)
    return Sum(parts, weights)


def with_nugget(kernel: Kernel, share: float) -> Kernel:
    """`kernel` with a share of its variance, in [0, 1), that no neighbour tells.

    >>> from dovetail.trace.kernels import RBF
    >>> with_nugget(RBF(length=60.0), 0.1).correlation(np.array([0.0, 1e-9])).round(3).tolist()
    [1.0, 0.9]
    """
    if not 0.0 <= share < 1.0:
        raise ParameterError(f"`nugget` must lie in [0, 1), got {share!r}.")
    return kernel if share == 0.0 else Sum((kernel, White()), (1.0 - share, share))


# Kernels by name: `matern32`, `rbf*periodic`, `matern32+white`; and their form in files, both ways.


SMOOTH = {kind.kind: kind for kind in (RBF, Matern32, Matern52)}
NAMES = [*SMOOTH, Periodic.kind, White.kind]


def kernel_of(name: str, *, length: float, period: float | None = None) -> Kernel:
    """The kernel of a name, every part with the same length-scale to begin with.

    Parameters
    ----------
    name : str
        Names joined by * (product) and + (sum of equal weights; * binds first).
    length : float, above 0, seconds
        For `periodic` in a product or sum: without a unit, and then 1.
    period : float, above 0, seconds
        Wanted by `periodic`.

    Raises
    ------
    ParameterError
        For a name that no kernel has, and `periodic` without a period.

    Examples
    --------
    >>> kernel_of("matern32", length=60.0)
    Matern32(length=60.0)
    """
    terms = [[part.strip() for part in term.split("*")] for term in name.split("+")]
    if len(terms) == len(terms[0]) == 1:
        return _single(terms[0][0], length, period)
    lengths = {Periodic.kind: 1.0}
    factors = [tuple(_single(part, lengths.get(part, length), period) for part in term) for term in terms]
    parts = tuple(term[0] if len(term) == 1 else Product(term) for term in factors)
    return parts[0] if len(parts) == 1 else Sum(parts, (1.0,) * len(parts))


def _single(name: str, length: float, period: float | None) -> Kernel:
    if name == White.kind:
        return White()
    if name == Periodic.kind:
        if period is None:
            raise ParameterError("`period` must be the seconds after which a periodic kernel repeats, got none.")
        return Periodic(length=length, period=period)
    if name not in SMOOTH:
        raise ParameterError(
            f"`kernel` must be made of {', '.join(NAMES)} joined by + and *, got {name!r}{nearest(name, NAMES)}"
        )
    return SMOOTH[name](length=length)


def kernel_from_dict(form: Any) -> Kernel:
    """The kernel that `Kernel.as_dict` described."""
    try:
        kind = form["kind"]
        if kind == "sum":
            return Sum(tuple(kernel_from_dict(part) for part in form["parts"]), tuple(map(float, form["weights"])))
        if kind == "product":
            return Product(tuple(kernel_from_dict(part) for part in form["parts"]))
        if kind == Periodic.kind:
            return Periodic(length=float(form["length"]), period=float(form["period"]))
        return White() if kind == White.kind else SMOOTH[kind](length=float(form["length"]))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"`kernel` must be as `dovetail trace fit` writes it; {type(error).__name__} at {error}."
        ) from None

"""The kernels: squared exponential, Matern 3/2 and 5/2, periodic, and white for what no neighbour tells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import pi, sqrt
from typing import Any, ClassVar, Self

import numpy as np

from dovetail.core.checks import positive
from dovetail.core.errors import ParameterError
from dovetail.trace.kernels.kernel import Floats, Kernel

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

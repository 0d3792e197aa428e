"""Sums and products of kernels: several movements at once, and a nugget."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Any, Self

import numpy as np

from dovetail.core.checks import positive
from dovetail.core.errors import ParameterError
from dovetail.trace.kernels.kernel import Floats, Kernel
from dovetail.trace.kernels.stationary import White


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

    >>> from dovetail.trace.kernels.stationary import RBF
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

    >>> from dovetail.trace.kernels.stationary import RBF
    >>> with_nugget(RBF(length=60.0), 0.1).correlation(np.array([0.0, 1e-9])).round(3).tolist()
    [1.0, 0.9]
    """
    if not 0.0 <= share < 1.0:
        raise ParameterError(f"`nugget` must lie in [0, 1), got {share!r}.")
    return kernel if share == 0.0 else Sum((kernel, White()), (1.0 - share, share))

"""What a kernel is: the correlation of two locations of a trace, by the seconds between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.errors import DataError

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


def sorted_times(times: ArrayLike, *, least: int = 2) -> Floats:
    """Time stamps (n,) in seconds, finite and strictly increasing; at least `least` of them.

    >>> sorted_times([0, 15, 30]).tolist()
    [0.0, 15.0, 30.0]
    """
    stamps = np.asarray(times, dtype=np.float64)
    if stamps.ndim != 1 or stamps.size < least:
        raise DataError(f"`times` must be at least {least} time stamps, got {stamps.size}; one point has no trace.")
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

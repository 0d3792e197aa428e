"""What a mechanism gives: the noise covariance that is sampled, and between what the best of its kind lies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.core.bracket import Bracket
from dovetail.core.checks import positive, real
from dovetail.core.errors import ParameterError
from dovetail.trace.kernels.kernel import Floats

FLOOR = 0.01  # white part of the noise, as a share of the budget per point
LEAST_MSE = 1e-14  # below it doubles no longer tell the noise from the prior
LEAST_FLOOR = 1e-6  # of a release: below it rounding to doubles is no longer small beside the noise


@dataclass(frozen=True)
class Budget:
    """Total mean squared error that the noise may cost, tr G, and the white part of it.

    Parameters
    ----------
    n : int
        Points of the trace.
    mse : float, above 0
        Mean squared error per point, in units of the prior's variance.
    floor : float, at least 0 and below 1
        White noise on every point, as a share of `mse`.
    """

    n: int
    mse: float
    floor: float = FLOOR

    def __post_init__(self) -> None:
        positive("mse", self.mse)
        if not LEAST_MSE <= self.mse <= 1e12:
            raise ParameterError(
                f"`mse` must lie between {LEAST_MSE:g} and 1e12 prior variances, got {self.mse:g}: more hides all, "
                "less hides nothing."
            )
        if not 0.0 <= real("floor", self.floor) < 1.0:
            raise ParameterError(
                f"`floor` must be at least 0 and below 1 (a share of the budget), got {self.floor!r}."
            )

    @property
    def total(self) -> float:
        """T, the whole budget."""
        return self.n * self.mse

    @property
    def white(self) -> float:
        """f, variance of the white part."""
        return self.floor * self.mse

    @property
    def free(self) -> float:
        """What is left above the floor, T - n f."""
        return self.total - self.n * self.white


@dataclass(frozen=True, eq=False)
class Design:
    """A noise covariance and its provenance.

    Parameters
    ----------
    name : str
    noise : float array (n, n)
        G, exactly what is sampled.
    optimum : Bracket or None
        Between what the least value of the objective lies; its lower end trusts no solver.
    objective : str
        What was made small.
    """

    name: str
    noise: Floats
    optimum: Bracket | None
    objective: str


def repaired(noise: Floats, budget: Budget) -> Floats:
    """Symmetric, at least the floor in every direction, and of exactly the budget's trace."""
    values, vectors = np.linalg.eigh(0.5 * (noise + noise.T))
    above = np.maximum(values - budget.white, 0.0)
    scale = budget.free / above.sum() if above.sum() > 0.0 else 0.0
    found = (vectors * (above * scale)) @ vectors.T
    return np.asarray(0.5 * (found + found.T) + budget.white * np.eye(budget.n))

"""What an analyst gets: a tally that adds, and an estimate that carries its error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dovetail.core.checks import probability
from dovetail.core.errors import ParameterError

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
    """

    value: Values
    standard_error: Values
    n: Any
    population_error: Values
    bias_bound: Any = 0.0

    def interval(self, level: float = 0.95) -> tuple[Values, Values]:
        """Normal interval at `level` for the value among exactly these people, widened by `bias_bound`."""
        return self._interval(self.standard_error, level)

    def population_interval(self, level: float = 0.95) -> tuple[Values, Values]:
        """Normal interval at `level` for the population these people are drawn from."""
        return self._interval(self.population_error, level)

    def _interval(self, error: Values, level: float) -> tuple[Values, Values]:
        reach = float(ndtri(0.5 + probability("level", level) / 2)) * error + self.bias_bound
        return self.value - reach, self.value + reach

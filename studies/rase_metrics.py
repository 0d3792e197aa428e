"""Error measures of the paper on RASE, under names that say what they are."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import floats
from dovetail.core.errors import DataError


def average_aggregation_error(values: ArrayLike, reports: ArrayLike) -> float:
    r"""Estimated minus true mean, positive when the mean is overestimated.

    .. math:: \mathrm{AAE} = \hat\Theta - \Theta = \frac1n \sum_i (z_i - x_i)

    Parameters
    ----------
    values, reports : float arrays (n,), on the same scale

    Examples
    --------
    >>> round(average_aggregation_error([4, 2, 1, 3, 5], [9.5, 1.1, 8.4, 2.8, 3.2]), 12)
    2.0

    Source
    ------
    Wang, Tao, Zou, RASE, equation (19), whose right-hand side has the opposite sign of its left-hand side.
    """
    return float(_errors(values, reports).mean())


def maximum_squared_error(values: ArrayLike, reports: ArrayLike) -> float:
    r"""Largest squared error of one report; the paper abbreviates it MSE, it is no mean.

    .. math:: \max_i (x_i - z_i)^2

    Parameters
    ----------
    values, reports : float arrays (n,), on the same scale

    Examples
    --------
    >>> maximum_squared_error([1.0, 2.0], [0.0, 5.0])
    9.0

    Source
    ------
    Wang, Tao, Zou, RASE, equation (20).
    """
    return float((_errors(values, reports) ** 2).max())


def _errors(values: ArrayLike, reports: ArrayLike) -> NDArray[np.float64]:
    x, z = floats("values", values), floats("reports", reports)
    if x.ndim != 1 or x.shape != z.shape or x.size < 1:
        raise DataError(
            f"`values` and `reports` must be finite numbers, one each per person, got shapes {x.shape} and {z.shape}."
        )
    return z - x

"""What may be randomized: one check of the data for all randomizers, with one form of refusal."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import rectangular
from dovetail.core.errors import DataError

Symbols = NDArray[np.int64]  # (n,), 0..k-1

_SHOWN = 3


def whole_numbers(values: ArrayLike, k: int, *, name: str = "values") -> NDArray[Any]:
    """`values` as a one-dimensional array of an integer type; integer arrays pass as they are, unchecked for range.

    Whole floats become integers, and booleans stand for 0 and 1 when k = 2. Everything else raises DataError.
    """
    array = _one_dimensional(values, name)
    wanted = _wanted(k)
    if array.dtype.kind in "iu":
        return array
    if array.dtype.kind == "b" and k == 2:
        return array.astype(np.int64)
    if array.dtype.kind in "UOTS":
        hint = "labels become numbers with dt.Domain([..]).encode(..)"
        raise DataError(f"`{name}` must be {wanted}, got values of type {array.dtype}; {hint}.")
    if array.dtype.kind != "f":
        raise DataError(f"`{name}` must be {wanted}, got values of type {array.dtype}.")
    good = (array >= 0) & (array < k) & (np.floor(array) == array)
    if not good.all():
        raise offenders(name, wanted, array, ~good)
    return array.astype(np.int64)


def symbols(values: ArrayLike, k: int, *, name: str = "values") -> Symbols:
    """`values` as int64 in 0..k-1.

    >>> symbols([0, 2, 1], 3)
    array([0, 2, 1])
    """
    array = whole_numbers(values, k, name=name)
    if array.size and not (array.min() >= 0 and array.max() < k):
        raise outside(array, k, name=name)
    return array.astype(np.int64, copy=False)


def outside(values: NDArray[Any], k: int, *, name: str = "values") -> DataError:
    """The refusal of integers that are not in 0..k-1."""
    return offenders(name, _wanted(k), values, (values < 0) | (values >= k))


def numbers(values: ArrayLike, lower: float, upper: float, *, name: str = "values") -> NDArray[np.float64]:
    """`values` (n,) as finite floats in [lower, upper]."""
    array = _one_dimensional(values, name)
    wanted = f"numbers in [{lower!r}, {upper!r}]"
    if array.dtype.kind not in "iuf":
        raise DataError(f"`{name}` must be {wanted}, got values of type {array.dtype}.")
    doubles = array.astype(np.float64, copy=False)  # first: numpy would round the bounds to a narrower type
    good = (doubles >= lower) & (doubles <= upper)  # false for NaN
    if not good.all():
        raise offenders(name, wanted, array, ~good)
    return doubles


def offenders(name: str, wanted: str, values: NDArray[Any], bad: NDArray[np.bool_]) -> DataError:
    """The refusal of data: how many offend, and the first ones as `index: value`."""
    places = np.flatnonzero(bad)
    first = ", ".join(f"{place}: {values[place].tolist()!r}" for place in places[:_SHOWN])
    more = ", .." if places.size > _SHOWN else ""
    return DataError(f"`{name}` must be {wanted}; {places.size:,} of {len(values):,} are not, {first}{more}.")


def _wanted(k: int) -> str:
    return f"whole numbers in 0..{k - 1}"


def _one_dimensional(values: ArrayLike, name: str) -> NDArray[Any]:
    array = rectangular(name, values)
    if array.ndim != 1:
        raise DataError(f"`{name}` must be one-dimensional, got shape {array.shape}.")
    return array

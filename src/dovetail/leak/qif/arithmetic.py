"""Numbers that stay exact: arrays of fractions beside arrays of floats, through the same functions.

One rule everywhere in `leak`: when an argument holds Fractions and none holds floats, the answer is a Fraction or an
array of them; otherwise it is a float. Whole numbers go with either. Fractions are for small channels: an operation
costs about a microsecond and grows with the digits.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor, lcm, log10
from numbers import Rational, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.errors import DataError, ParameterError

Numbers = NDArray[Any]  # float64, int64 or Fraction objects
Number = Any  # float, or Fraction


def numbers(name: str, values: ArrayLike) -> Numbers:
    """`values` as an array of finite floats, whole numbers or Fractions; anything else is refused."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise ParameterError(f"`{name}` must be an array of numbers with rows of one length.") from None
    if array.dtype == np.uint64:
        array = array.astype(object)  # may not fit int64
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    if array.dtype.kind == "O":
        cells = array.ravel().tolist()
        if all(isinstance(cell, Rational) and not isinstance(cell, bool) for cell in cells):
            return _map(lambda cell: Fraction(int(cell.numerator), int(cell.denominator)), array)
        if all(isinstance(cell, Real) and not isinstance(cell, bool) for cell in cells):
            array = array.astype(np.float64)
    if array.dtype.kind != "f":
        raise ParameterError(f"`{name}` must be an array of numbers, got entries of type {array.dtype}.")
    if not np.all(np.isfinite(array)):
        where = tuple(np.argwhere(~np.isfinite(array))[0].tolist())
        raise DataError(f"`{name}` must hold finite numbers; entry {where} is {array[where]}.")
    return array.astype(np.float64)


def common_arithmetic(*arrays: Numbers) -> tuple[Numbers, ...]:
    """The arrays in one arithmetic: Fractions where some are and no floats, else floats."""
    kinds = {array.dtype.kind for array in arrays}
    if "f" in kinds or "O" not in kinds:
        return tuple(array.astype(np.float64) for array in arrays)
    return tuple(_map(Fraction, array) if array.dtype.kind == "i" else array for array in arrays)


def normalize(weights: ArrayLike) -> Numbers:
    """Exact distributions: whole-number or Fraction weights over their sum along the last axis.

    A vector becomes a prior, a matrix a channel.

    >>> print(normalize([1, 1, 2]))
    [Fraction(1, 4) Fraction(1, 4) Fraction(1, 2)]

    Raises
    ------
    ParameterError
        For floats: 0.1 is not one tenth. Write Fraction(1, 10), or weights.
    """
    array = numbers("weights", weights)
    if array.dtype.kind == "f" or array.ndim == 0 or array.size == 0:
        raise ParameterError("`weights` must be an array of whole numbers or Fractions; floats are not exact.")
    array = _map(Fraction, array)
    totals = array.sum(axis=-1, keepdims=True)
    if (array < 0).any() or (totals == 0).any():
        raise ParameterError("`weights` must be at least 0, with one above 0 in each row.")
    return np.asarray(array / totals)


def matmul(left: Numbers, right: Numbers) -> Numbers:
    """The matrix product; Fractions are multiplied as whole numbers over one denominator per row and column."""
    if left.dtype.kind != "O":
        return np.asarray(left @ right)
    tops, bottoms = _clear_denominators(left)
    more_tops, more_bottoms = _clear_denominators(right.T)
    return np.asarray(np.frompyfunc(Fraction, 2, 1)(tops @ more_tops.T, np.outer(bottoms, more_bottoms)))


def scientific(count: int) -> str:
    """A whole number too long to read, also where it is too long for a float.

    >>> scientific(123_456_789), scientific(7**9_999)
    ('1.2e+08', '1e+8450')
    """
    return f"{count:.1e}" if count < 10**300 else f"1e+{floor(log10(count))}"


def total(array: Numbers) -> Number:
    """The sum, as a float or a Fraction."""
    value = array.sum()
    return value if isinstance(value, Fraction) else float(value)


def _clear_denominators(array: Numbers) -> tuple[Numbers, Numbers]:
    """Whole numbers (rows, cells) and the common denominator of each row."""
    bottoms = np.array([lcm(*(cell.denominator for cell in row)) for row in array], dtype=object)
    return _map(int, array * bottoms[:, None]), bottoms


def _map(change: Any, array: Numbers) -> Numbers:
    return np.asarray(np.frompyfunc(change, 1, 1)(array), dtype=object).reshape(array.shape)

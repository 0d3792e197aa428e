"""The range checks of `dovetail_protocol.checks` by this package's own name: both ends refuse in the same words."""

from collections.abc import Container, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.errors import DataError
from dovetail_protocol.checks import (
    nearest,
    not_negative,
    positive,
    privacy_budget,
    probability,
    range_between,
    real,
    refuse,
    share,
    whole,
)

__all__ = [
    "MOST_PEOPLE",
    "flag",
    "floats",
    "instance",
    "nearest",
    "not_negative",
    "not_negative_or_infinite",
    "positive",
    "privacy_budget",
    "probability",
    "range_between",
    "real",
    "rectangular",
    "refuse",
    "share",
    "whole",
    "word",
]


MOST_PEOPLE = 10**12  # that this package counts with


def not_negative_or_infinite(name: str, value: Any) -> float:
    """`value` as a float, at least 0; unlike the other checks it accepts infinity.

    >>> not_negative_or_infinite("alpha", 2), not_negative_or_infinite("alpha", float("inf"))
    (2.0, inf)
    """
    wanted = "a number, at least 0"
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating) or not value >= 0:
        raise refuse(name, wanted, value)
    try:
        return float(value)
    except OverflowError:  # a whole number beyond the doubles
        raise refuse(name, wanted, value) from None


def flag(name: str, value: Any) -> bool:
    """`value` as True or False: a word such as "no" is refused, not taken for True.

    >>> flag("adaptive", np.bool_(True))
    True
    """
    if not isinstance(value, bool | np.bool_):
        raise refuse(name, "True or False", value)
    return bool(value)


def word(name: str, value: Any, known: Container[str], admissible: str) -> str:
    """`value`, where it is a known word: an array, which is compared place by place, is none.

    >>> word("shares", "flat", ("any", "flat"), '"any" or "flat"')
    'flat'
    """
    if not (isinstance(value, str) and value in known):
        raise refuse(name, admissible, value)
    return value


Kind = TypeVar("Kind")


def instance(name: str, value: Any, kind: type[Kind]) -> Kind:
    """`value`, where it is of this class of the package.

    >>> instance("count", 3, int)
    3
    """
    if not isinstance(value, kind):
        raise refuse(name, f"a {kind.__name__}", value)
    return value


def rectangular(name: str, values: ArrayLike) -> NDArray[Any]:
    """`values` as an array of any type; ragged rows are refused.

    >>> rectangular("reports", [[1, 2], [3, 4]]).shape
    (2, 2)
    """
    try:
        return np.asarray(values)
    except ValueError:
        raise DataError(f"`{name}` must be finite numbers, got rows of different lengths.") from None


def floats(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """`values` of any shape as finite floats; text, booleans, ragged rows, NaN and infinities are refused.

    >>> floats("reports", [[1, 2], [3, 4]]).shape
    (2, 2)
    """
    array = rectangular(name, values)
    if array.dtype.kind not in "iuf":
        raise DataError(f"`{name}` must be finite numbers, got values of type {array.dtype}.")
    bad = array.size - np.count_nonzero(np.isfinite(array))
    if bad:
        raise DataError(f"`{name}` must be finite numbers; {bad:,} of {array.size:,} are not.")
    return array.astype(np.float64, copy=False)


def wholes(name: str, values: object, *, least: int, most: int) -> tuple[int, ...]:
    """A sequence of whole numbers in a range, at least one."""
    if not isinstance(values, Sequence) or isinstance(values, str | bytes) or not values:
        raise refuse(name, "whole numbers, at least one", values)
    return tuple(whole(name, one, least=least, most=most) for one in values)

"""Values that may be randomized: one check of the data for all randomizers, with one form of refusal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import rectangular
from dovetail.core.errors import DataError, ParameterError

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


# Labels as symbols: a domain that was declared before anybody looked at the data.


_NAMED = 8  # labels


@final
@dataclass(frozen=True)
class Domain:
    """The labels that a person's value can have, in the order of their symbols 0..k-1.

    Declare it from public knowledge, such as the questionnaire: a list that is read off the data would tell who is
    in it, and would differ from device to device.

    Parameters
    ----------
    labels : texts, at least 2, all different

    Raises
    ------
    ParameterError
        For fewer than two labels, for repeated ones, and for labels that are no text.

    Examples
    --------
    >>> from dovetail.randomize.krr import KRR
    >>> answers = Domain(["never", "once", "often"])
    >>> krr = KRR(k=answers.k, epsilon=2.0)
    >>> reports = krr.randomize(answers.encode(["once", "never", "never"]))
    >>> answers.encode(["once", "never", "never"]), answers.decode([1, 0])
    (array([1, 0, 0]), ['once', 'never'])
    """

    labels: tuple[str, ...]

    def __init__(self, labels: Iterable[str]) -> None:
        given = tuple(labels) if isinstance(labels, Iterable) and not isinstance(labels, str) else ()
        if len(given) < 2 or not all(isinstance(one, str) for one in given):
            raise ParameterError("`labels` must be at least 2 texts, such as ['no', 'yes'].")
        if len(set(given)) < len(given):
            repeated = next(one for place, one in enumerate(given) if one in given[:place])
            raise ParameterError(f"`labels` must all be different, got {repeated!r} twice.")
        object.__setattr__(self, "labels", tuple(map(str, given)))

    @property
    def k(self) -> int:
        """Number of labels."""
        return len(self.labels)

    def __len__(self) -> int:
        return self.k

    def __iter__(self) -> Iterator[str]:
        return iter(self.labels)

    def encode(self, values: Any) -> NDArray[np.int64]:
        """Symbols (n,) of labels (n,): a list, a numpy, pandas or polars column, categorical or not.

        Raises
        ------
        DataError
            For missing values and for labels that were not declared; it says where they are, not what they are.
        """
        given = np.asarray(values, dtype=object)
        if given.ndim != 1:
            raise DataError(f"`values` must be a column of labels, got shape {given.shape}.")
        code = {label: symbol for symbol, label in enumerate(self.labels)}
        listed = given.tolist()
        coded = (code.get(one, -1) if isinstance(one, str) else -1 for one in listed)
        found = np.fromiter(coded, np.int64, len(listed))
        if (found < 0).any():
            raise self._refusal(listed, np.flatnonzero(found < 0))
        return found

    def decode(self, values: ArrayLike) -> list[str]:
        """Labels of symbols (n,), such as reports of a randomizer that names values."""
        return [self.labels[symbol] for symbol in symbols(values, self.k)]

    def _refusal(self, values: list[Any], places: NDArray[np.int64]) -> DataError:
        alike, wrong = {_loose(label) for label in self.labels}, [values[place] for place in places]
        spelled = sum(isinstance(one, str) and _loose(one) in alike for one in wrong)
        missing = sum(map(_is_missing, wrong))
        counts = {"missing": missing, "with other case or blanks": spelled}
        why = [f"{what}: {count:,}" for what, count in counts.items() if count]
        where = ", ".join(map(str, places[:_SHOWN].tolist())) + (", .." if len(places) > _SHOWN else "")
        named = ", ".join(map(repr, self.labels[:_NAMED])) + (", .." if self.k > _NAMED else "")
        kinds = f" ({'; '.join(why)})" if why else ""
        return DataError(
            f"`values` must be labels of the domain, {named}; "
            f"{len(places):,} of {len(values):,} are not, at {where}{kinds}."
        )


def _loose(label: str) -> str:
    return "".join(label.split()).casefold()


def _is_missing(value: Any) -> bool:
    """None, NaN, and what pandas has for them."""
    return (
        value is None
        or (isinstance(value, float) and value != value)
        or type(value).__name__ in ("NAType", "NaTType")
    )

"""Prior, channel and gain of an adversary, read and checked in one place."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from functools import reduce
from itertools import combinations
from math import comb, floor, lcm, log10, prod
from numbers import Rational, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.channel import MOST_CELLS, Channel
from dovetail.core.checks import refuse, whole
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.core.stages import FrequencyRandomizer

# Numbers that stay exact: arrays of fractions beside arrays of floats, through the same functions.
#
# One rule everywhere in `leak`: when an argument holds Fractions and none holds floats, the answer is a Fraction or
# an array of them; otherwise it is a float. Whole numbers go with either. Fractions are for small channels: an
# operation costs about a microsecond and grows with the digits.


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


ChannelLike = Any  # a Channel, a randomizer that publishes one, or a row-stochastic array (secrets, outputs)

MOST_GAIN = 1e100  # so that no product of gains, counts and chances overflows
SUM_TO_ONE = 1e-9  # of floats; Fractions sum to exactly 1
TOLERANCE = 1e-9  # difference between floats at which channels count as equal; Fractions by nothing


def distribution(name: str, values: ArrayLike) -> Numbers:
    """A checked probability vector."""
    array = numbers(name, values)
    if array.ndim != 1 or array.size == 0:
        raise ParameterError(f"`{name}` must be a vector of probabilities, got shape {array.shape}.")
    return _check_stochastic(name, array)


def channel_matrix(name: str, channel: ChannelLike) -> Numbers:
    """A checked channel matrix (secrets, outputs)."""
    if isinstance(channel, FrequencyRandomizer):
        channel = channel.channel()
    if isinstance(channel, Channel):
        return channel.matrix()
    array = numbers(name, channel)
    if array.ndim != 2 or array.size == 0:
        raise ParameterError(f"`{name}` must be a matrix (secrets, outputs), got shape {array.shape}.")
    return _check_stochastic(name, array)


def joint(prior: ArrayLike, channel: ChannelLike) -> Numbers:
    """pi_x C[x, y]: the distribution of secret and output."""
    return _joint(*common_arithmetic(distribution("prior", prior), channel_matrix("channel", channel)))


def weighted_gains(name: str, gain: ArrayLike | None, prior: ArrayLike, channel: ChannelLike) -> Numbers:
    """sum_x g[w, x] pi_x C[x, y]: (actions, outputs); without a gain, actions are secrets and a hit earns 1."""
    if gain is None:
        return joint(prior, channel)
    # brought into one arithmetic before the first product: whole numbers go with either
    pi, cells, table = common_arithmetic(
        distribution("prior", prior), channel_matrix("channel", channel), numbers(name, gain)
    )
    weights = _joint(pi, cells)
    if table.ndim != 2 or table.shape[0] == 0 or table.shape[1] != weights.shape[0]:
        raise ParameterError(f"`{name}` must be a matrix (actions, {weights.shape[0]} secrets), got {table.shape}.")
    if np.abs(table).max() > MOST_GAIN:
        raise DataError(f"`{name}` must hold numbers from {-MOST_GAIN:g} to {MOST_GAIN:g}; divide it.")
    return matmul(table, weights)


def _joint(pi: Numbers, cells: Numbers) -> Numbers:
    if pi.size != cells.shape[0]:
        raise ParameterError(f"`prior` must have the {cells.shape[0]} secrets of the channel, got {pi.size}.")
    return np.asarray(pi[:, None] * cells)


def same_secrets(one: ChannelLike, other: ChannelLike, *more: Numbers) -> tuple[Numbers, ...]:
    """The matrices of two channels with the same secrets, and `more`, in one arithmetic."""
    first, second, *rest = common_arithmetic(channel_matrix("channel", one), channel_matrix("other", other), *more)
    if first.shape[0] != second.shape[0]:
        raise ParameterError(
            f"`other` must have the {first.shape[0]} secrets of the first channel, got {second.shape[0]}."
        )
    return first, second, *rest


def check_size(cells: int, what: str, instead: str, *, most: int = MOST_CELLS) -> None:
    """Refuse what would not fit, and say what to do instead."""
    if cells > most:
        raise UnsupportedError(f"{what} has {scientific(cells)} cells, the limit is {most:,}; {instead}")


def _check_stochastic(name: str, array: Numbers) -> Numbers:
    if (array < 0).any():
        where = tuple(np.argwhere(array < 0)[0].tolist())
        raise DataError(f"`{name}` must hold probabilities; entry {where} is {array[where]}.")
    sums = np.atleast_1d(array.sum(axis=-1))
    off = np.abs(sums - 1) > (SUM_TO_ONE if array.dtype.kind == "f" else 0)
    if off.any():
        place = int(np.argmax(off))
        which = f"row {place} sums" if array.ndim == 2 else "it sums"
        raise DataError(f"`{name}` must sum to 1; {which} to {sums[place]}. Divide by the sum if that is meant.")
    return array


# What the adversary believes before she looks: distributions of one secret or of the values of n people.


def uniform(k: int) -> Numbers:
    """Every secret equally likely; the exact form is `arithmetic.normalize([1] * k)`.

    >>> print(uniform(4))
    [0.25 0.25 0.25 0.25]
    """
    size = whole("k", k, least=1)
    return np.full(size, 1.0 / size)


def point(k: int, *, secret: int) -> Numbers:
    """The secret is known.

    >>> print(point(3, secret=1))
    [0 1 0]
    """
    size = whole("k", k, least=1)
    place = whole("secret", secret, least=0, most=size - 1)
    return np.asarray(np.arange(size) == place).astype(np.int64)


def iid(values: ArrayLike, *, n: int) -> Numbers:
    """n people whose values are drawn independently from one distribution: a distribution on the k^n datasets.

    >>> print(iid([0.75, 0.25], n=2))
    [0.5625 0.1875 0.1875 0.0625]
    """
    return product([values] * whole("n", n, least=1))


def product(people: Sequence[ArrayLike]) -> Numbers:
    r"""Independent people, each with her own distribution; datasets in the order aaa, aab, aba, abb, ..

    .. math:: \pi_{x_0 \dots x_{n-1}} = \prod_i \pi^{(i)}_{x_i}

    Known values are `point` distributions: the strong adversary knows all but the target, a partial one some of them.

    Parameters
    ----------
    people : distributions (k_i,), at least one

    Raises
    ------
    UnsupportedError
        Above ten million datasets; `dovetail.vulnerability` needs no list of datasets.

    Examples
    --------
    >>> print(product([uniform(2), point(2, secret=1)]))
    [0.  0.5 0.  0.5]
    """
    if not isinstance(people, Sequence | np.ndarray) or isinstance(people, str) or len(people) == 0:
        raise refuse("people", "a list of distributions, at least one", people)
    checked = common_arithmetic(*(distribution("people", each) for each in people))
    check_size(prod(each.size for each in checked), "The distribution of all datasets", "use dovetail.vulnerability.")
    return reduce(lambda left, right: np.asarray(np.multiply.outer(left, right).ravel()), checked)


# What the adversary wants: gain matrices g[w, x], what action w earns when the secret is x.
#
# Any array (actions, secrets) of finite numbers is a gain; these are the common ones. Whole numbers serve floats and
# Fractions alike.


def identity(k: int) -> Numbers:
    """Name the secret in one try; what every function uses when no gain is given."""
    return np.eye(whole("k", k, least=1), dtype=np.int64)


def tries(k: int, *, t: int) -> Numbers:
    r"""Name the secret in t tries: actions are the sets of t secrets.

    >>> print(tries(3, t=2))
    [[1 1 0]
     [1 0 1]
     [0 1 1]]
    """
    size = whole("k", k, least=1)
    chosen = whole("t", t, least=1, most=size)
    check_size(comb(size, chosen) * size, "This gain", "sum the t largest entries of each joint column.")
    return np.array([[x in set(w) for x in range(size)] for w in combinations(range(size), chosen)], dtype=np.int64)


def distance(metric: ArrayLike) -> Numbers:
    r"""Come close: everything for the secret itself, nothing at the largest distance.

    .. math:: g[w, x] = 1 - d(w, x) / \max d

    Parameters
    ----------
    metric : array (k,) of positions on a line, or (actions, secrets) of distances
        Whole numbers give Fractions.

    Examples
    --------
    >>> print(distance([0.0, 1.0, 2.0]))
    [[1.  0.5 0. ]
     [0.5 1.  0.5]
     [0.  0.5 1. ]]
    """
    apart = numbers("metric", metric)
    if apart.ndim == 1:
        apart = np.abs(apart[:, None] - apart[None, :])
    if apart.ndim != 2 or apart.size == 0 or (apart < 0).any() or not (apart > 0).any():
        raise ParameterError("`metric` must be positions (k,) or distances (actions, secrets) at least 0, not all 0.")
    if apart.dtype.kind == "i":
        apart = apart * Fraction(1)
    return np.asarray(1 - apart / apart.max())


def attribute(labels: Sequence[Hashable]) -> Numbers:
    """Name a property of the secret: actions are the distinct labels, in order of first appearance.

    The target's value in a dataset is one: `attribute([x[0] for x in datasets])`, Definition 13 of Jurado et al.
    (2023).

    >>> print(attribute(["old", "young", "old"]))
    [[1 0 1]
     [0 1 0]]
    """
    try:
        kinds = list(dict.fromkeys(labels))
    except TypeError:
        raise refuse("labels", "a list of hashable labels, one per secret", labels) from None
    if not kinds:
        raise refuse("labels", "a list of labels, one per secret", labels)
    return np.array([[int(label == kind) for label in labels] for kind in kinds], dtype=np.int64)

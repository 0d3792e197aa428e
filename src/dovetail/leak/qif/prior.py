"""What the adversary believes before she looks: distributions of one secret or of the values of n people."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core.checks import refuse, whole
from dovetail.leak.qif.arithmetic import Numbers, common_arithmetic
from dovetail.leak.qif.inputs import check_size, distribution


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

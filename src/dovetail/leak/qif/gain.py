"""What the adversary wants: gain matrices g[w, x], what action w earns when the secret is x.

Any array (actions, secrets) of finite numbers is a gain; these are the common ones. Whole numbers serve floats and
Fractions alike.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core.checks import refuse, whole
from dovetail.core.errors import ParameterError
from dovetail.leak.qif.arithmetic import Number, Numbers, numbers
from dovetail.leak.qif.inputs import check_size


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


def predicate(secrets: Iterable[int], *, k: int) -> Numbers:
    """Is the secret among these? Action 0 says no, action 1 says yes.

    >>> print(predicate({0, 2}, k=3))
    [[0 1 0]
     [1 0 1]]
    """
    size = whole("k", k, least=1)
    inside = {whole("secrets", x, least=0, most=size - 1) for x in secrets}
    yes = np.array([int(x in inside) for x in range(size)], dtype=np.int64)
    return np.array([1 - yes, yes])


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


def tabulate(gain: Callable[[Any, Any], Number], *, actions: Sequence[Any], secrets: Sequence[Any]) -> Numbers:
    """The matrix of a gain written as a function of action and secret.

    >>> print(tabulate(lambda w, x: w * x, actions=[1, 2], secrets=[3, 4]))
    [[3 4]
     [6 8]]
    """
    return numbers("gain", [[gain(w, x) for x in secrets] for w in actions])

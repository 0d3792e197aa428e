"""Channels up to what they tell: posteriors, hyper-distributions, reduced channels, equivalence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.errors import UnsupportedError
from dovetail.leak.qif.arithmetic import Numbers
from dovetail.leak.qif.inputs import TOLERANCE, ChannelLike, channel_matrix, joint, same_secrets


@dataclass(frozen=True, eq=False)
class Hyper:
    """What the adversary may come to believe, and how likely each belief is.

    Parameters
    ----------
    outer : array (beliefs,), sums to 1
    inners : array (beliefs, secrets)
        Posterior distributions of the secret, no two the same.
    """

    outer: Numbers
    inners: Numbers


def hyper(prior: ArrayLike, channel: ChannelLike) -> Hyper:
    """The hyper-distribution [prior > channel]: impossible outputs dropped, outputs with one posterior merged.

    >>> found = hyper([0.5, 0.5], [[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]])
    >>> print(found.outer)
    [0.25 0.75]
    """
    merged = _merge_columns(joint(prior, channel))
    outer = merged.sum(axis=0)
    return Hyper(outer, np.asarray((merged / outer).T))


def posteriors(prior: ArrayLike, channel: ChannelLike) -> Numbers:
    """Distribution of the secret given each output; (outputs, secrets).

    >>> print(posteriors([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]]))
    [[0.75 0.25]
     [0.25 0.75]]

    Raises
    ------
    UnsupportedError
        When an output has probability 0, so that nothing follows from it; `hyper` leaves it out.
    """
    weights = joint(prior, channel)
    pmf = weights.sum(axis=0)
    if (pmf == 0).any():
        raise UnsupportedError(f"Output {int(np.argmin(pmf))} never occurs and has no posterior; use hyper.")
    return np.asarray((weights / pmf).T)


def reduced_channel(channel: ChannelLike) -> Numbers:
    """Zero columns dropped, proportional columns added: an equivalent channel with the fewest outputs.

    Columns of floats count as proportional when they agree to nine digits, which moves no V_g by more than 1e-9 times
    the span of its gains and the number of secrets.

    >>> print(reduced_channel([[0.5, 0.25, 0.25, 0.0], [0.0, 0.5, 0.5, 0.0]]))
    [[0.5 0.5]
     [0.  1. ]]
    """
    return _merge_columns(channel_matrix("channel", channel))


def equivalent(channel: ChannelLike, other: ChannelLike) -> bool:
    """Do the two channels have the same posterior V_g for every prior and gain?

    True if and only if they refine each other, and if and only if their reduced channels are equal up to the order of
    columns. Floats are compared to nine digits, Fractions exactly.

    >>> equivalent([[0.5, 0.5], [0.25, 0.75]], [[0.75, 0.25], [0.5, 0.5]])
    False
    """
    first, second = same_secrets(channel, other)
    both = np.hstack([first, second])
    signs = np.repeat([1, -1], [first.shape[1], second.shape[1]])
    groups, count = _groups(both)
    gap = np.zeros(count, dtype=both.dtype)
    used = groups >= 0
    np.add.at(gap, groups[used], (both.sum(axis=0) * signs)[used])
    return bool((np.abs(gap) <= _slack(both) * len(both)).all())


def _merge_columns(columns: Numbers) -> Numbers:
    groups, count = _groups(columns)
    result = np.zeros((columns.shape[0], count), dtype=columns.dtype)
    for column, group in enumerate(groups.tolist()):
        if group >= 0:
            result[:, group] = result[:, group] + columns[:, column]
    return result


def _groups(columns: Numbers) -> tuple[NDArray[np.int64], int]:
    """For each column its group, by first appearance, and the number of groups; -1 for zero columns.

    Columns are sorted by one weighted sum of their shapes, so that only neighbours are compared.
    """
    masses = columns.sum(axis=0)
    used = np.flatnonzero(masses > 0)
    shapes = (columns[:, used] / masses[used]).T
    weights = np.sqrt(np.arange(1.0, columns.shape[0] + 1.0))
    key = shapes.astype(np.float64) @ weights
    order = np.argsort(key, kind="stable")
    ends = np.searchsorted(key[order], key[order] + 2.0 * TOLERANCE * weights.sum(), side="right")
    leader = np.full(used.size, -1)
    for place, (column, end) in enumerate(zip(order.tolist(), ends.tolist(), strict=True)):
        if leader[column] >= 0:
            continue
        near = order[place:end]
        alike = near[(np.abs(shapes[near] - shapes[column]).max(axis=1) <= _slack(columns)) & (leader[near] < 0)]
        leader[alike] = alike.min()
    _, names = np.unique(leader, return_inverse=True)
    groups = np.full(columns.shape[1], -1)
    groups[used] = names
    return groups, int(names.max()) + 1


def _slack(columns: Numbers) -> float:
    return 0.0 if columns.dtype.kind == "O" else TOLERANCE

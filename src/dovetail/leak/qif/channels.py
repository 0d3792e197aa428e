"""Channel algebra: one after the other, side by side, by choice; channels without noise.

Arguments are `Channel` values or arrays (secrets, outputs); results are arrays, of Fractions where the arguments are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array, eye_array, hstack, kron, vstack

from dovetail.core.checks import refuse, whole
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.leak.qif.inputs import (
    TOLERANCE,
    ChannelLike,
    Number,
    Numbers,
    attribute,
    channel_matrix,
    check_size,
    common_arithmetic,
    joint,
    matmul,
    numbers,
    same_secrets,
)


def cascade(channel: ChannelLike, then: ChannelLike) -> Numbers:
    """The outputs of the first channel go into the second; only the last output is seen.

    >>> print(cascade([[0.5, 0.5], [0.0, 1.0]], [[1.0, 0.0], [0.5, 0.5]]))
    [[0.75 0.25]
     [0.5  0.5 ]]
    """
    first, second = common_arithmetic(channel_matrix("channel", channel), channel_matrix("then", then))
    if first.shape[1] != second.shape[0]:
        raise ParameterError(
            f"`then` must take the {first.shape[1]} outputs of the first channel, got {second.shape[0]} inputs."
        )
    return matmul(first, second)


def parallel(channel: ChannelLike, other: ChannelLike) -> Numbers:
    """Both channels run independently on the same secret and both outputs are seen; columns (y, z), z fastest."""
    first, second = same_secrets(channel, other)
    check_size(first.size * second.shape[1], "The parallel channel", "reduce the channels first.")
    return np.asarray((first[:, :, None] * second[:, None, :]).reshape(first.shape[0], -1))


def repeat(channel: ChannelLike, *, times: int) -> Numbers:
    """The same secret goes through the channel several times, independently, and every output is seen.

    >>> repeat([[0.5, 0.5], [0.0, 1.0]], times=3).shape
    (2, 8)
    """
    count = whole("times", times, least=1)
    result = first = channel_matrix("channel", channel)
    for _ in range(count - 1):
        result = parallel(result, first)
    return result


def visible_choice(channel: ChannelLike, other: ChannelLike, *, weight: Number) -> Numbers:
    """The first channel with probability `weight`, else the other, and it is seen which; columns of both."""
    first, second, share = _read_choice(channel, other, weight)
    return np.hstack([share * first, (1 - share) * second])


def hidden_choice(channel: ChannelLike, other: ChannelLike, *, weight: Number) -> Numbers:
    """The first channel with probability `weight`, else the other, and only the output is seen.

    >>> print(hidden_choice(identity(2), [[0.5, 0.5], [0.5, 0.5]], weight=0.5))
    [[0.75 0.25]
     [0.25 0.75]]
    """
    first, second, share = _read_choice(channel, other, weight)
    if first.shape != second.shape:
        raise ParameterError(f"`other` must have the outputs of the first channel {first.shape}, got {second.shape}.")
    return np.asarray(share * first + (1 - share) * second)


def identity(k: int) -> Numbers:
    """Tells everything."""
    return np.eye(whole("k", k, least=1), dtype=np.int64)


def constant(k: int) -> Numbers:
    """Tells nothing: one output."""
    return np.ones((whole("k", k, least=1), 1), dtype=np.int64)


def deterministic(function: Callable[[Any], Hashable], secrets: Sequence[Any]) -> Numbers:
    """The channel of a function; outputs in the order in which they first appear.

    >>> print(deterministic(lambda x: x % 2, range(3)))
    [[1 0]
     [0 1]
     [1 0]]
    """
    whole("number of secrets", len(secrets), least=1)
    return attribute([function(x) for x in secrets]).T


def _read_choice(channel: ChannelLike, other: ChannelLike, weight: ArrayLike) -> tuple[Numbers, Numbers, Number]:
    """Both matrices and the weight, in one arithmetic."""
    share = numbers("weight", weight)
    if share.ndim or not 0 <= share[()] <= 1:
        raise refuse("weight", "a number from 0 to 1", weight)
    first, second, share = same_secrets(channel, other, share.reshape(1))
    return first, second, share[0]


# Channels up to what they tell: posteriors, hyper-distributions, reduced channels, equivalence.


@dataclass(frozen=True, eq=False)
class Hyper:
    """Hyper-distribution: posteriors of the adversary, and the probability of each.

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


# Refinement: does one channel leak at most what another does, against every adversary?


MOST_UNKNOWNS = 300_000


@dataclass(frozen=True, eq=False)
class Refinement:
    """The answer, with its evidence.

    Parameters
    ----------
    holds : bool
    witness : float array (outputs, outputs of the other), row-stochastic, or None
        R with other = channel R: how to turn the one into the other. Only if it holds.
    residual : float
        Sum of the absolute entries of other - channel R for the best R found; computed from R itself.
    gain : float array (outputs of the other, secrets), entries from 0 to 2, or None
        An adversary to whom the other channel is worth more, at the uniform prior. Only if it does not hold.
    gap : float
        Her advantage, V_gain[other] - V_gain[channel] at the uniform prior, computed from `gain`; 0 if it holds.
    """

    holds: bool
    witness: Numbers | None
    residual: float
    gain: Numbers | None
    gap: float


def refined_by(channel: ChannelLike, other: ChannelLike) -> Refinement:
    r"""Is V_g[pi > channel] >= V_g[pi > other] for every prior and gain?

    .. math:: C \sqsubseteq D \iff D = CR \text{ for some row-stochastic } R

    .. math:: \min_R \lVert CR - D \rVert_1 = \max_{|G| \le 1} \Big( \sum_{x, z} G[z, x] D[x, z]
              - \sum_y \max_z \sum_x G[z, x] C[x, y] \Big)

    One linear program answers both ways: R is its solution, G its dual. Both are checked here and not taken on trust.
    `witness` is also the factorization of `other` through `channel`.

    Parameters
    ----------
    channel, other : Channel or array, with the same secrets
        Fractions are read as floats.

    Raises
    ------
    UnsupportedError
        Above 300,000 unknowns, and where the program cannot tell: the residual is above 1e-9, the gap not.

    Examples
    --------
    >>> bool(refined_by([[0.75, 0.25], [0.25, 0.75]], [[0.625, 0.375], [0.375, 0.625]]).holds)
    True
    >>> found = refined_by([[0.75, 0.25], [0.25, 0.75]], [[1.0, 0.0], [0.0, 1.0]])
    >>> found.holds, round(found.gap, 9)
    (False, 0.5)

    Source
    ------
    Jurado, Gonze, Alvim, Palamidessi (2023), Analyzing the Shuffle Model Through the Lens of Quantitative
    Information Flow, CSF, Theorem 4. The norm and its dual: linear programming duality.
    """
    first, second = (each.astype(np.float64) for each in same_secrets(channel, other))
    witness, gain = _solve(first, second)
    residual = float(np.abs(first @ witness - second).sum())
    advantage = float((np.einsum("zx,xz->", gain, second) - (gain @ first).max(axis=0).sum()) / len(first))
    if residual <= TOLERANCE:
        return Refinement(True, witness, residual, None, 0.0)
    if advantage > TOLERANCE / len(first):
        return Refinement(False, None, residual, gain, advantage)
    raise UnsupportedError(
        f"The linear program cannot tell: residual {residual:.1e}, gap {advantage:.1e}. Round the channels to fewer "
        "digits, or compare their vulnerabilities."
    )


def _solve(first: Numbers, second: Numbers) -> tuple[Numbers, Numbers]:
    """The best R, and the dual G shifted to entries from 0 to 2."""
    (secrets, outputs), wanted = first.shape, second.shape[1]
    check_size(
        outputs * wanted + 2 * secrets * wanted,
        "The linear program",
        "reduce the channels first.",
        most=MOST_UNKNOWNS,
    )
    product = kron(coo_array(first), eye_array(wanted))  # R by rows -> C R by rows
    slack = eye_array(secrets * wanted)
    sums = kron(eye_array(outputs), coo_array(np.ones((1, wanted))))
    blank = coo_array((outputs, 2 * secrets * wanted))
    found = linprog(
        np.repeat([0.0, 1.0], [outputs * wanted, 2 * secrets * wanted]),
        A_eq=vstack([hstack([product, slack, -slack]), hstack([sums, blank])]).tocsr(),
        b_eq=np.concatenate([second.ravel(), np.ones(outputs)]),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if found.x is None:
        raise UnsupportedError(f"The linear program was not solved: {found.message}")
    weights = np.maximum(found.x[: outputs * wanted].reshape(outputs, wanted), 0.0)  # checked by the residual
    dual = found.eqlin.marginals[: secrets * wanted].reshape(secrets, wanted).T
    return np.asarray(weights / weights.sum(axis=1, keepdims=True)), np.asarray(np.clip(dual, -1.0, 1.0) + 1.0)

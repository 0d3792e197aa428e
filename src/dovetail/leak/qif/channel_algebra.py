"""Channel algebra: one after the other, side by side, by choice; channels without noise.

Arguments are `Channel` values or arrays (secrets, outputs); results are arrays, of Fractions where the arguments are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core.checks import refuse, whole
from dovetail.core.errors import ParameterError
from dovetail.leak.qif.arithmetic import Number, Numbers, common_arithmetic, matmul, numbers
from dovetail.leak.qif.gain import attribute
from dovetail.leak.qif.inputs import ChannelLike, channel_matrix, check_size, same_secrets


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

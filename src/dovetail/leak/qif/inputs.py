"""What the adversary knows and can earn: prior, channel and gain, read and checked in one place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core.channel import MOST_CELLS, Channel
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.core.stages import FrequencyRandomizer
from dovetail.leak.qif.arithmetic import Numbers, common_arithmetic, matmul, numbers, scientific

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

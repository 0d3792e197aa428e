"""Over how many reports can be summed in no time: what fewer people's reports tell is an upper bound."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail.core.channel import Channel, KRRChannel
from dovetail.core.errors import UnsupportedError
from dovetail.core.stages import FrequencyRandomizer
from dovetail.leak.exact.histograms import histogram_count

MOST_CELLS = 300_000  # of a channel; its reports are compared with each other
MOST_PEOPLE = 1_000_000  # whom a sum over three kinds of report serves within a second
MOST_WORK = 5_000_000  # histograms times kinds of report


def listed_channel(randomizer: FrequencyRandomizer) -> Channel | None:
    """The channel, unless its reports are too many to be listed."""
    try:
        channel: Any = randomizer.channel()
    except UnsupportedError:
        return None
    small = isinstance(channel, KRRChannel) or channel.shape[0] * channel.shape[1] <= MOST_CELLS
    return channel if small else None


def people_in_reach(channel: Channel, n: int, *, work: int = MOST_WORK) -> int:
    """People, at most n, over whose reports can be summed in no time."""
    kinds = _kinds(channel)
    if kinds <= 3:
        return min(n, MOST_PEOPLE)
    m = 1
    while m < n and histogram_count(m + 1, kinds) * kinds <= work:
        m += 1
    return m


def _kinds(channel: Channel) -> int:
    """Reports that say different things."""
    if isinstance(channel, KRRChannel):
        return channel.k
    law = channel.matrix()
    return int(np.unique(np.round(law / law.sum(axis=0), 12), axis=1).shape[1])

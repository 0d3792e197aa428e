"""Devices in real time: each answers at a moment of its own in every round, over HTTP."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.collect.simulate.faults import SeededChance
from dovetail.collect.simulate.simulated_devices import SimulatedDevices
from dovetail.collect.simulate.throwaway_campaign import ThrowawayCampaign
from dovetail_device.client import SystemClock
from dovetail_device.http import HttpTransport

THREADS = 8
_SHARE = 0.8  # of a round, within which devices answer
_PAUSE = 0.1  # seconds between tries of what waits


@dataclass(frozen=True)
class RealTimeResult:
    """Whose reports were acknowledged, by round, and what they would have said.

    Parameters
    ----------
    drawn : int
        Reports that devices have drawn.
    heard : int array (rounds,)
        Reports that were acknowledged.
    truth : float array (rounds, k)
        Of the devices that were heard: shares of the symbols, or (rounds, 1) their mean.
    """

    drawn: int
    heard: NDArray[np.int64]
    truth: NDArray[np.float64] = field(repr=False)


def report_in_real_time(world: ThrowawayCampaign, url: str, *, seed: int = 1) -> RealTimeResult:
    """Every device answers in every round of a campaign whose rounds go by the clock of this system.

    Returns when nothing waits any more, or when the last round and its grace are over. Every thread has devices of
    its own, with outboxes in memory.
    """
    count = min(THREADS, len(world.devices))
    parts = [replace(world, devices=world.devices[first::count]) for first in range(count)]
    stopping = Event()
    with ThreadPoolExecutor(count) as pool:
        try:
            found = list(
                pool.map(
                    lambda n: _report_part(parts[n], HttpTransport(url), SeededChance(seed + n), stopping),
                    range(count),
                )
            )
        finally:
            stopping.set()  # after Ctrl-C nobody answers any more
    heard = np.array([part.heard for part in found])  # (threads, rounds)
    truth = np.einsum("tr,trk->rk", heard, [part.truth for part in found]) / np.maximum(1, heard.sum(axis=0))[:, None]
    return RealTimeResult(sum(part.drawn for part in found), heard.sum(axis=0), truth)


def _report_part(
    world: ThrowawayCampaign, http: HttpTransport, chance: SeededChance, stopping: Event
) -> RealTimeResult:
    campaign, clock = world.campaign, SystemClock()
    with closing(SimulatedDevices.of(world, _immortal, chance)) as fleet:
        for moment, round, number in _plan(world, chance):
            if stopping.wait(max(0.0, moment - time.time())):
                break
            fleet.report(round, [number], http, clock)
        end = campaign.schedule.ends(campaign.schedule.count) + campaign.schedule.grace
        while any(outbox.waiting(campaign.id) for outbox in fleet.outboxes) and time.time() < end:
            fleet.flush(http, clock)
            if stopping.wait(_PAUSE):
                break
        return _result(fleet)


def _plan(world: ThrowawayCampaign, chance: SeededChance) -> Iterator[tuple[float, int, int]]:
    """(moment, round, device) of every answer, in the order of time."""
    schedule = world.campaign.schedule
    assert schedule.period is not None
    for round in range(1, schedule.count + 1):
        begin = schedule.ends(round) - schedule.period
        moments = [begin + _SHARE * schedule.period * chance.number() for _ in world.devices]
        yield from sorted((moment, round, number) for number, moment in enumerate(moments))


def _result(fleet: SimulatedDevices) -> RealTimeResult:
    id, count = fleet.world.campaign.id, fleet.world.campaign.schedule.count
    entries = [[outbox.find(id, round) for outbox in fleet.outboxes] for round in range(1, count + 1)]
    drawn = sum(entry is not None for row in entries for entry in row)
    heard = [[n for n, entry in enumerate(row) if entry and entry.state == "accepted"] for row in entries]
    truth = [fleet.truth(round, devices) for round, devices in enumerate(heard, 1)]
    return RealTimeResult(drawn, np.array([len(devices) for devices in heard]), np.array(truth))


def _immortal(inside: Any, _: object) -> Any:
    return inside

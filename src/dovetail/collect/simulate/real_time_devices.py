"""Devices in real time: each answers at a moment of its own in every round, over HTTP, until it is heard."""

from __future__ import annotations

import time
from collections.abc import Callable
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
from dovetail.core.errors import OutputError
from dovetail_device.client import SystemClock
from dovetail_device.http import HttpTransport

THREADS = 8
_SHARE = 0.8  # of the period, within which devices answer
_PAUSE = 0.1  # seconds between two looks


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


def report_in_real_time(
    world: ThrowawayCampaign, url: str, *, period: float, check: Callable[[], None], seed: int = 1
) -> RealTimeResult:
    """Every device answers in every round, as soon as the shuffler says that the round runs.

    Rounds end when everybody has been heard (`close_at`), however long that takes; the answers of one are spread over
    `period` seconds, or more. Every thread has devices of its own, with outboxes in memory.

    check : raises where there is nobody left to wait for.

    Raises
    ------
    OutputError
        When a report is refused for good.
    """
    count = min(THREADS, len(world.devices))
    parts = [replace(world, devices=world.devices[first::count]) for first in range(count)]
    stopping = Event()

    def report(n: int) -> RealTimeResult:
        try:
            return _report_part(parts[n], HttpTransport(url), SeededChance(seed + n), period, check, stopping)
        except BaseException:
            stopping.set()  # the others wait for reports that will not come
            raise

    with ThreadPoolExecutor(count) as pool:
        try:
            found = list(pool.map(report, range(count)))
        finally:
            stopping.set()  # after Ctrl-C nobody answers any more
    heard = np.array([part.heard for part in found])  # (threads, rounds)
    truth = np.einsum("tr,trk->rk", heard, [part.truth for part in found]) / np.maximum(1, heard.sum(axis=0))[:, None]
    return RealTimeResult(sum(part.drawn for part in found), heard.sum(axis=0), truth)


def _report_part(
    world: ThrowawayCampaign,
    http: HttpTransport,
    chance: SeededChance,
    period: float,
    check: Callable[[], None],
    stopping: Event,
) -> RealTimeResult:
    campaign, clock = world.campaign, SystemClock()

    def waits(until: Callable[[], bool]) -> bool:
        """Whether it has come to that; not if everybody stops."""
        while not until():
            check()
            if stopping.wait(_PAUSE):
                return False
        return True

    with closing(SimulatedDevices.of(world, _immortal, chance)) as fleet:
        for round in range(1, campaign.schedule.count + 1):
            if not waits(lambda round=round: http.round(campaign.id) == round):  # type: ignore[misc]
                break
            for moment, number in _plan(world, chance, time.monotonic(), period):
                stopping.wait(max(0.0, moment - time.monotonic()))
                if not stopping.is_set():
                    fleet.report(round, [number], http, clock)

            def everybody_is_heard() -> bool:
                fleet.flush(http, clock)
                return not any(outbox.waiting(campaign.id) for outbox in fleet.outboxes)

            if not waits(everybody_is_heard):
                break
            _refuse_refusals(fleet, round)
        return _result(fleet)


def _plan(world: ThrowawayCampaign, chance: SeededChance, begin: float, period: float) -> list[tuple[float, int]]:
    """(moment, device) of every answer of a round, in the order of time."""
    return sorted((begin + _SHARE * period * chance.number(), number) for number in range(len(world.devices)))


def _refuse_refusals(fleet: SimulatedDevices, round: int) -> None:
    """A round that misses a report for good never ends: say so instead of waiting for it."""
    for outbox in fleet.outboxes:
        entry = outbox.find(fleet.world.campaign.id, round)
        if entry is None or entry.state != "accepted":
            reason = entry.reason if entry else "no report was drawn"
            raise OutputError(f"a report of round {round} was not taken ({reason}).")


def _result(fleet: SimulatedDevices) -> RealTimeResult:
    id, count = fleet.world.campaign.id, fleet.world.campaign.schedule.count
    entries = [[outbox.find(id, round) for outbox in fleet.outboxes] for round in range(1, count + 1)]
    drawn = sum(entry is not None for row in entries for entry in row)
    heard = [[n for n, entry in enumerate(row) if entry and entry.state == "accepted"] for row in entries]
    truth = [fleet.truth(round, devices) for round, devices in enumerate(heard, 1)]
    return RealTimeResult(drawn, np.array([len(devices) for devices in heard]), np.array(truth))


def _immortal(inside: Any, _: object) -> Any:
    return inside

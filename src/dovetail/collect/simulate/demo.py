"""The demo: three real processes, devices over real HTTP, and the analyzer's answers beside the truth."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray

from dovetail.collect.simulate.deployment import COMMUTE, Deployment, ThrowawayCampaign, among_people
from dovetail.collect.simulate.faults import SeededChance
from dovetail.collect.simulate.simulation import RoundResult, SimulatedDevices
from dovetail.core.errors import OutputError
from dovetail.report.number_format import upward
from dovetail_device.client import SystemClock
from dovetail_device.http import HttpIssuer, HttpTransport, ObliviousTransport
from dovetail_protocol.campaign import Campaign

# Devices in real time: each answers at a moment of its own in every round, over HTTP, until it is heard.


THREADS = 8
_SHARE = 0.8  # of the period, within which devices answer
_DEVICE_PAUSE = 0.1  # seconds between two looks


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
    world: ThrowawayCampaign, url: str, *, period: float, check: Callable[[], None]
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
            return _report_part(parts[n], _way(world.campaign, url), SeededChance(1 + n), period, check, stopping)
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


def _way(campaign: Campaign, url: str) -> HttpTransport:
    """Straight to the shuffler, or where the campaign names one by its relay alone."""
    way = HttpTransport(url) if campaign.ohttp is None else ObliviousTransport(campaign.ohttp.relay)
    way.trust(campaign)
    return way


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
        """True if it has come to that; not if everybody stops."""
        while not until():
            check()
            if stopping.wait(_DEVICE_PAUSE):
                return False
        return True

    issuer = None if campaign.tokens is None else HttpIssuer()
    with closing(SimulatedDevices.of(world, _immortal, chance, issuer)) as fleet:
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


_PAUSE = 0.2  # seconds between two questions
_PATIENCE = 60.0  # seconds for one answer


@dataclass(frozen=True)
class DemoResult:
    """Result of a demo."""

    drawn: int  # reports
    heard: int  # of them acknowledged
    results: tuple[RoundResult, ...]
    level: float
    guarantee: str  # in one line

    @property
    def counted(self) -> int:
        """Reports in batches."""
        return sum(result.n for result in self.results)


def prepare_demo(
    folder: Path, *, devices: int, rounds: int, trust: str = "local", tokens: bool = False
) -> Deployment:
    """The files of a demo. A round ends when every device has been heard, so that no clock decides what counts."""
    asked = among_people(people=devices, rounds=rounds) if trust == "users" else COMMUTE
    document = asked | {
        "rounds": {"schedule": "manual", "count": rounds},
        "batch": {"minimum": devices, "close_at": devices},
    }
    found = Deployment.of(document, folder, devices=devices, tokens=tokens)
    found.write()
    return found


def run_demo(site: Deployment, *, period: float, check: Callable[[], None]) -> DemoResult:
    """Send everything, wait until it is counted, and ask the analyzer as a subscriber would.

    check : raises where a server has ended, for which nobody should wait.
    """
    campaign = site.world.campaign
    attended = report_in_real_time(site.world, site.shuffler, period=period, check=check)
    with httpx.Client(
        base_url=f"{site.analyzer}/v1/campaigns/{campaign.id}",
        headers={"Authorization": f"Bearer {site.token}"},
        timeout=_PATIENCE,
        trust_env=False,
    ) as client:
        while len(_ask(client, "status", check)["batches"]) < campaign.schedule.count:
            check()
            time.sleep(_PAUSE)
        found, promised = _ask(client, "estimates", check)["estimates"], _ask(client, "guarantee", check)
    results = tuple(_round_result(attended, document) for document in found)
    return DemoResult(attended.drawn, int(attended.heard.sum()), results, found[0]["level"], _guarantee(promised))


def _ask(client: httpx.Client, what: str, check: Callable[[], None]) -> Any:
    """The analyzer's answer, however long it takes while the analyzer runs."""
    while True:
        try:
            answer = client.get(f"/{what}")
            answer.raise_for_status()
            return answer.json()
        except httpx.TransportError:
            check()
            time.sleep(_PAUSE)
        except httpx.HTTPError:
            raise OutputError(f"the analyzer does not answer for {what}.") from None


def _round_result(attended: RealTimeResult, document: Any) -> RoundResult:
    """The estimates of a round, for everybody, beside the truth of those who were heard."""
    everybody = document["groups"][0]
    return RoundResult(
        rounds=tuple(document["rounds"]),
        n=document["n"],
        truth=attended.truth[document["round"] - 1],
        value=np.array(everybody["value"]),
        interval=np.array(everybody["interval"]),
    )


def _guarantee(document: Any) -> str:
    one, rounds, together = document["colluding"], document["rounds"], document["all_rounds"]
    if "epsilon" not in together:
        return (
            f"ε = {upward(one)} for one report, ε = {upward(document['local_of_all_rounds'])} for all {rounds} rounds"
        )
    both = f"(ε, δ) = ({upward(together['epsilon'])}, {upward(together['delta'])})"
    if document["trust"] == "users":
        return f"{both} for all {rounds} rounds, among the dummies of other people; ε = ∞ if the servers collude"
    return f"{both} for all {rounds} rounds after shuffling; ε = {upward(one)} for one report, no matter who colludes"

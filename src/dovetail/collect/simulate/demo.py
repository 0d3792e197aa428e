"""The demo: three real processes, devices over real HTTP, and the analyzer's answers beside the truth."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from dovetail.collect.simulate.deployment import Deployment
from dovetail.collect.simulate.real_time_devices import RealTimeResult, report_in_real_time
from dovetail.collect.simulate.simulation import RoundResult
from dovetail.collect.simulate.throwaway_campaign import COMMUTE, among_people
from dovetail.core.errors import OutputError
from dovetail.report.number_format import upward

_PAUSE = 0.2  # seconds between two questions
_PATIENCE = 60.0  # seconds for one answer


@dataclass(frozen=True)
class DemoResult:
    """What a demo has to show."""

    drawn: int  # reports
    heard: int  # of them acknowledged
    results: tuple[RoundResult, ...]
    level: float
    guarantee: str  # in one line

    @property
    def counted(self) -> int:
        """Reports in batches."""
        return sum(result.n for result in self.results)


def prepare_demo(folder: Path, *, devices: int, rounds: int, trust: str = "local") -> Deployment:
    """The files of a demo. A round ends when every device has been heard, so that no clock decides what counts."""
    asked = among_people(people=devices, rounds=rounds) if trust == "users" else COMMUTE
    document = asked | {
        "rounds": {"schedule": "manual", "count": rounds},
        "batch": {"minimum": devices, "close_at": devices},
    }
    found = Deployment.of(document, folder, devices=devices)
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
    return f"{both} for all {rounds} rounds after shuffling; ε = {upward(one)} for one report, whoever colludes"

"""The demo: three real processes, devices over real HTTP, and the analyzer's answers beside the truth."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from dovetail.collect.simulate.deployment import Deployment
from dovetail.collect.simulate.real_time_devices import RealTimeResult, report_in_real_time
from dovetail.collect.simulate.simulation import RoundResult
from dovetail.collect.simulate.throwaway_campaign import COMMUTE, schedule
from dovetail.core.errors import OutputError
from dovetail.report.number_format import upward

LEAD = 8.0  # seconds that the servers have to start before the first round
_GRACE = 5.0  # seconds, for machines that are slow with so many devices
_SECONDS = 30.0  # that the shuffler has, after the last round, to hand everything over
_PAUSE = 0.2


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


def prepare_demo(folder: Path, *, devices: int, rounds: int, period: float) -> Deployment:
    """The files of a demo whose first round begins in `LEAD` seconds."""
    start = datetime.fromtimestamp(math.ceil(time.time() + LEAD), UTC)
    document = COMMUTE | {
        "rounds": schedule(rounds, period=period, grace=max(period, _GRACE), start=start),
        "batch": {"minimum": max(1, devices // 2)},
    }
    found = Deployment.of(document, folder, devices=devices)
    found.write()
    return found


def run_demo(site: Deployment) -> DemoResult:
    """Send everything, wait until it is counted, and ask the analyzer as a subscriber would."""
    campaign = site.world.campaign
    attended = report_in_real_time(site.world, site.shuffler)
    with httpx.Client(
        base_url=f"{site.analyzer}/v1/campaigns/{campaign.id}", headers={"Authorization": f"Bearer {site.token}"}
    ) as client:
        end = campaign.schedule.ends(campaign.schedule.count) + campaign.schedule.grace + _SECONDS
        while len(_ask(client, "status")["batches"]) < campaign.schedule.count:
            if time.time() > end:
                raise OutputError(f"not every round was counted; the logs are in {site.folder}.")
            time.sleep(_PAUSE)
        found, promised = _ask(client, "estimates")["estimates"], _ask(client, "guarantee")
    results = tuple(_round_result(attended, document) for document in found)
    return DemoResult(attended.drawn, int(attended.heard.sum()), results, found[0]["level"], _guarantee(promised))


def _ask(client: httpx.Client, what: str) -> Any:
    try:
        answer = client.get(f"/{what}")
        answer.raise_for_status()
        return answer.json()
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
    return f"{both} for all {rounds} rounds after shuffling; ε = {upward(one)} for one report, whoever colludes"

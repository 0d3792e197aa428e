"""Devices in TypeScript before the real shuffler and analyzer: what they answer is counted."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.node import CLIENT, Node, needs_client
from tests.waiting import PATIENCE, until

from dovetail.collect.campaign.roster import Roster, RosterEntry
from dovetail.collect.simulate.deployment import COMMUTE, Deployment, among_people, run_servers
from dovetail_protocol.keys import VerifyingKey

FLEET = CLIENT / "test" / "fleet.mjs"
CATEGORIES = COMMUTE["randomizer"]["categories"]
SHARES = (0.4, 0.3, 0.2, 0.1)  # of the categories, in truth


def counted(folder: Path, document: dict[str, Any], devices: int, *options: str) -> tuple[dict[str, Any], list[str]]:
    """The estimate of one round that so many devices have answered, and what each was told to answer."""
    rounds = {"schedule": "manual", "count": 1}
    batch = {"minimum": devices, "close_at": devices}
    site = Deployment.of({**document, "rounds": rounds, "batch": batch}, folder, devices=1)
    site.write()
    truth = [name for name, share in zip(CATEGORIES, SHARES, strict=True) for _ in range(round(share * devices))]
    with Node(FLEET, str(folder / "campaign.toml"), str(devices), *options) as fleet:
        keys = [VerifyingKey.parse("key", key) for key in fleet.told()]
        assert len({key.public for key in keys}) == devices == len(truth)
        Roster(RosterEntry(key, slot) for slot, key in enumerate(keys)).save(folder / "roster.csv")
        headers = {"Authorization": f"Bearer {site.token}"}
        with (
            run_servers(site) as check,
            httpx.Client(base_url=site.analyzer, headers=headers, timeout=PATIENCE) as analyst,
        ):
            assert fleet.ask({"values": truth}) == {"accepted": devices}

            def arrived() -> list[Any]:
                check()
                found: list[Any] = (
                    analyst.get("/v1/campaigns/commute/estimates").raise_for_status().json()["estimates"]
                )
                return found

            until(arrived)
            found: dict[str, Any] = analyst.get("/v1/campaigns/commute/estimates/latest").raise_for_status().json()
    return found, truth


def agree(found: dict[str, Any], truth: list[str], variance: float) -> None:
    """Within 6.5 standard errors for each share: a false alarm below 1e-10."""
    n = len(truth)
    assert found["n"] == n
    wanted = Counter(truth)
    for name, share in zip(CATEGORIES, found["groups"][0]["value"], strict=True):
        assert abs(share - wanted[name] / n) <= 6.5 * math.sqrt(variance / n), (name, share)


def krr_variance(k: int, epsilon: float) -> float:
    """At most the variance of a share's estimate from one report: that of a bit, over (p - q)^2."""
    odds = math.exp(epsilon)
    return 0.25 / ((odds - 1) / (odds + k - 1)) ** 2


@pytest.mark.exhaust
@needs_client
def test_a_thousand_answers_of_typescript_are_counted_as_often_as_they_were_given(tmp_path: Path) -> None:
    found, truth = counted(tmp_path / "site", COMMUTE, 1000)
    agree(found, truth, krr_variance(4, COMMUTE["randomizer"]["epsilon"]))


@pytest.mark.exhaust
@needs_client
def test_answers_among_dummies_of_people_in_typescript_are_counted(tmp_path: Path) -> None:
    document = among_people(people=200, rounds=1)
    document["promise"]["device_budget"] = 2.0
    found, truth = counted(tmp_path / "site", document, 200, "users")
    agree(found, truth, 0.25)  # of a dummy a person at most, and answers are counted as they are

"""Devices in TypeScript before the real shuffler and analyzer: what they answer is counted."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.collect.test_asked import HEIGHT, WEIGHT, document
from tests.node import CLIENT, Node, needs_client
from tests.waiting import PATIENCE, until

from dovetail.collect.campaign.roster import Roster, RosterEntry
from dovetail.collect.campaign.terms import question_about
from dovetail.collect.simulate.deployment import COMMUTE, Deployment, among_people, run_servers
from dovetail.core.question import QUESTIONS
from dovetail_protocol.keys import VerifyingKey

FLEET = CLIENT / "test" / "fleet.mjs"
CATEGORIES = COMMUTE["randomizer"]["categories"]
SHARES = (0.4, 0.3, 0.2, 0.1)  # of the categories, in truth


def counted(folder: Path, document: dict[str, Any], held: list[Any], *options: str) -> dict[str, Any]:
    """The estimate of one round that a device has answered for each of these people."""
    devices, at = len(held), f"/v1/campaigns/{document['id']}/estimates"
    rounds = {"schedule": "manual", "count": 1}
    batch = {"minimum": devices, "close_at": devices}
    site = Deployment.of({**document, "rounds": rounds, "batch": batch}, folder, devices=1)
    site.write()
    with Node(FLEET, str(folder / "campaign.toml"), str(devices), *options) as fleet:
        keys = [VerifyingKey.parse("key", key) for key in fleet.told()]
        assert len({key.public for key in keys}) == devices
        Roster(RosterEntry(key, slot) for slot, key in enumerate(keys)).save(folder / "roster.csv")
        headers = {"Authorization": f"Bearer {site.token}"}
        with (
            run_servers(site) as check,
            httpx.Client(base_url=site.analyzer, headers=headers, timeout=PATIENCE) as analyst,
        ):
            assert fleet.ask({"values": held}) == {"accepted": devices}

            def arrived() -> list[Any]:
                check()
                found: list[Any] = analyst.get(at).raise_for_status().json()["estimates"]
                return found

            until(arrived)
            found: dict[str, Any] = analyst.get(f"{at}/latest").raise_for_status().json()
    return found


def answers(people: int) -> list[str]:
    """Categories in these shares."""
    return [name for name, share in zip(CATEGORIES, SHARES, strict=True) for _ in range(round(share * people))]


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
    truth = answers(1000)
    found = counted(tmp_path / "site", COMMUTE, truth)
    agree(found, truth, krr_variance(4, COMMUTE["randomizer"]["epsilon"]))


@pytest.mark.exhaust
@needs_client
def test_answers_among_dummies_of_people_in_typescript_are_counted(tmp_path: Path) -> None:
    asked, truth = among_people(people=200, rounds=1), answers(200)
    asked["promise"]["device_budget"] = 2.0
    found = counted(tmp_path / "site", asked, truth, "users")
    agree(found, truth, 0.25)  # of a dummy a person at most, and answers are counted as they are


@pytest.mark.exhaust
@needs_client
@pytest.mark.parametrize(
    ("ask", "settings", "trust", "people"),
    [("covariance", WEIGHT, "local", 300), ("regression", {"others": "weight = 50..100", "points": 2}, "users", 120)],
)
def test_what_typescript_makes_of_two_numbers_is_learned(
    ask: str, settings: dict[str, Any], trust: str, people: int, tmp_path: Path
) -> None:
    """Within 6.5 standard errors, as the analyzer states them: a false alarm below 1e-10 for each number."""
    held = [
        {"height": 150.0 + 40.0 * (slot % 2) + slot % 3, "weight": 50.0 + 50.0 * (slot % 2)} for slot in range(people)
    ]
    found = counted(tmp_path / "site", document(ask, settings, trust, people=people), held, trust)
    (group,) = found["groups"]
    truth = question_about(ask, HEIGHT, settings, name="a test").truth(np.array([list(one.values()) for one in held]))
    assert found["n"] == people and found["measure"] == QUESTIONS[ask].measure
    assert (np.abs(np.subtract(group["value"], truth)) < 6.5 * np.array(group["standard_error"])).all()
    assert (np.abs(truth) > 6.5 * np.array(group["standard_error"])).any()  # of strangers' numbers it would be 0

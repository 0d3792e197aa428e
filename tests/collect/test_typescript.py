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
from tests.collect.test_joint_campaigns import WAYS
from tests.collect.test_joint_campaigns import document as together
from tests.collect.test_vectors import document as vectors
from tests.node import CLIENT, Node, needs_client
from tests.waiting import PATIENCE, until

from dovetail.account.gaussian_dummies import message_for
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
    [
        ("covariance", WEIGHT, "local", 300),
        ("regression", {"others": "weight = 50..100", "points": 2}, "users", 120),
        ("regression", {"others": "weight = 50..100", "points": 2}, "shuffler", 60),
        ("number", {}, "shuffler", 60),
    ],
)
def test_what_typescript_makes_of_numbers_is_learned(
    ask: str, settings: dict[str, Any], trust: str, people: int, tmp_path: Path
) -> None:
    """Within 6.5 standard errors, as the analyzer states them: a false alarm below 1e-10 for each number."""
    held = [
        {"height": 150.0 + 40.0 * (slot % 2) + slot % 3, "weight": 50.0 + 50.0 * (slot % 2)} for slot in range(people)
    ]
    answers = [one["height"] for one in held] if ask == "number" else held
    found = counted(tmp_path / "site", document(ask, settings, trust, people=people), answers, trust)
    (group,) = found["groups"]
    values = np.array([list(one.values()) for one in held])
    asked = question_about(ask, HEIGHT, settings, name="a test")
    truth = asked.truth(values[:, 0] if ask == "number" else values)
    assert found["n"] == people and found["measure"] == QUESTIONS[ask].measure
    assert (np.abs(np.subtract(group["value"], truth)) < 6.5 * np.array(group["standard_error"])).all()
    assert (np.abs(truth) > 6.5 * np.array(group["standard_error"])).any()  # of strangers' numbers it would be 0


def combined(people: int) -> dict[str, Any]:
    """The same questions, answered by their combination among Gaussian dummies."""
    made = together(people)
    (law,) = message_for(weights=(1,), epsilon=2.0, delta=1e-3).laws
    made["asks"]["each"][1]["symbols"] = [[{"of": ["minutes"], "rounding": "even", "points": 2}]]
    return made | {
        "randomizer": {"name": "none", "k": 6},
        "promise": {"delta": 1e-3, "trust": "shuffler", "device_budget": 10.0},
        "dummies": {"epsilon": 2.0, "delta": 1e-3, "reach": law.reach, "variance": str(law.scale)},
    }


@pytest.mark.exhaust
@needs_client
@pytest.mark.parametrize("ask", ["joint", "one", "combined"])
def test_several_questions_of_typescript_are_learned_from_one_report(ask: str, tmp_path: Path) -> None:
    """Within 6.5 standard errors, as the analyzer states them: a false alarm below 1e-10 for each number."""
    people = {"joint": 150, "one": 400, "combined": 300}[ask]
    held = [{"way": WAYS[slot % 2], "minutes": float(slot % 60)} for slot in range(people)]
    document = combined(people) if ask == "combined" else together(people, ask)
    found = counted(tmp_path / "site", document, held, *(["shuffler"] if ask == "combined" else []))
    assert found["n"] == people
    minutes = float(np.mean([one["minutes"] for one in held]))
    for one, truth in zip(found["questions"], ([0.5, 0.5, 0.0], [minutes]), strict=True):
        (group,) = one["groups"]
        assert (np.abs(np.subtract(group["value"], truth)) < 6.5 * np.array(group["standard_error"])).all()
        assert max(truth) > 6.5 * max(group["standard_error"])  # of nobody's answers it would be about 0


@pytest.mark.exhaust
@needs_client
def test_vectors_of_typescript_are_learned(tmp_path: Path) -> None:
    """As above; the mean of the opposite vectors is as far away as can be told."""
    people = 200
    held = [[1.0 + 0.5 * (slot % 2), -1.2, 0.4] for slot in range(people)]
    found = counted(tmp_path / "site", vectors(people), held)
    (group,) = found["groups"]
    truth, error = np.mean(held, axis=0), np.array(group["standard_error"])
    assert found["n"] == people and (np.abs(group["value"] - truth) < 6.5 * error).all()
    assert (np.abs(2 * truth) > 6.5 * error).any()


@pytest.mark.exhaust
@needs_client
def test_answers_of_typescript_among_gaussian_dummies_are_counted(tmp_path: Path) -> None:
    """Answers by krr, of which the shuffler's dummies hide the counts: the file states their variance."""
    (law,) = message_for(weights=(1,), epsilon=2.0, delta=1e-3).laws
    asked = COMMUTE | {
        "promise": {"delta": 1e-3, "trust": "shuffler", "device_budget": 10.0},
        "dummies": {"epsilon": 2.0, "delta": 1e-3, "reach": law.reach, "variance": str(law.scale)},
    }
    truth = answers(200)
    found = counted(tmp_path / "site", asked, truth)
    assert found["n"] == 200
    wanted = Counter(truth)
    (group,) = found["groups"]
    for name, share, error in zip(CATEGORIES, group["value"], group["standard_error"], strict=True):
        assert abs(share - wanted[name] / 200) < 6.5 * error, name

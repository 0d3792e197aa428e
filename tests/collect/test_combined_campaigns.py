"""Campaigns whose devices send the combination of all answers among dummies: written, answered, and told."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.collect.analyzer.test_asked import reports_of
from tests.collect.analyzer.world import World, batch, campaign
from tests.collect.test_joint_campaigns import NEW
from tests.device.words import SimulatedBits
from tests.statistics import rng_of
from tests.waiting import PATIENCE, until

from dovetail.cli.main import invoke
from dovetail.collect.campaign.explain import explain
from dovetail.collect.campaign.terms import (
    added_dummies,
    draft_campaign,
    law_of,
    noise_of_campaign,
    people_dummies,
    question_of,
    require_question,
)
from dovetail.collect.simulate.deployment import Deployment, ThrowawayCampaign, run_servers, schedule
from dovetail.collect.simulate.faults import FaultRates
from dovetail.collect.simulate.simulation import simulate
from dovetail.core.errors import ConfigError
from dovetail.core.guarantee import CentralDP
from dovetail.core.noise import People
from dovetail.shuffle.sampling.dummies import Dummies, GaussianDummies, SparseDummies, UserDummies
from dovetail.shuffle.uniform import Uniform
from dovetail_device.client import _answer
from dovetail_device.session import limit, open_device, submit
from dovetail_protocol import messages as message
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.keys import SigningKey

QUESTIONS = """[[questions]]
column = "way"
categories = ["walk", "bike", "car"]
[[questions]]
column = "height"
ask = "covariance"
lower = 140.0
upper = 200.0
other = "weight"
other_lower = 50.0
other_upper = 100.0
[[questions]]
column = "minutes"
lower = 0.0
upper = 60.0
grid = 20.0
"""
WAYS: dict[str, tuple[list[str], type]] = {
    "users": (["--trust", "users", "--epsilon", "4"], UserDummies),
    "geometric": (["--dummies", "4"], Dummies),
    "gaussian": (["--dummies", "4", "--count", "30"], GaussianDummies),
    "sparse": (["--dummies", "4", "--sparse"], SparseDummies),
}
N = 600


def written(place: Path, way: str, monkeypatch: pytest.MonkeyPatch, questions: str = QUESTIONS) -> Campaign:
    monkeypatch.chdir(place)
    for role in ("owner", "shuffler", "analyzer"):
        assert invoke(["collect", "keys", role, "--out", f"{role}.key"]) == 0
    (place / "questions.toml").write_text(questions)
    named = ["--id", "day", "--question", "What is your day like?", "--questions", "questions.toml"]
    rounds = [] if "--count" in WAYS[way][0] else ["--count", "1"]
    assert invoke(["collect", *NEW, *named, "--minimum", f"{N}", "--delta", "1e-3", *rounds, *WAYS[way][0]]) == 0
    return draft_campaign((place / "campaign.toml").read_bytes())


def values(n: int = N) -> list[dict[str, Any]]:
    ways = ["walk", "bike", "bike", "car"]
    return [
        {"way": ways[i % 4], "height": 150.0 + i % 40, "weight": 60.0 + i % 30, "minutes": i % 61.0} for i in range(n)
    ]


@pytest.mark.parametrize("way", WAYS)
def test_a_device_sends_one_combination_and_the_analyzer_tells_each_question_as_a_job_does(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Combinations of three, four and four answers; what is promised is that of all of them."""
    keys = campaign('name = "krr"\nk = 3\nepsilon = 1.0')
    roles = {name: getattr(keys, name) for name in ("id", "owner", "analyzer", "shuffler", "shuffler_signing")}
    one = replace(written(tmp_path, way, monkeypatch), **roles)
    words, device = SimulatedBits(rng_of(way)), SigningKey.generate()
    require_question(one)
    stated = added_dummies(one) or people_dummies(one)
    assert stated is not None and isinstance(stated, WAYS[way][1])
    assert stated.k == one.mechanism.k == 48  # type: ignore[attr-defined]
    drawn = [message.draw(one, _answer(held, one), words) for held in values()]
    assert {len(message.seal(one, 1, each, device)) for each in drawn[:20]} == {message.wire_bytes(one)}
    plains = [each for own in drawn for each in message.split(own, one.entries)]
    header: dict[str, Any] = {"people": N}
    if isinstance(stated, Dummies | GaussianDummies | SparseDummies):
        plains = [plains[place] for place in stated.places(len(plains), rng_of(f"{way} kept"))]
        more = stated.drawn(rng_of(f"{way} dummies")).tolist()
        plains += [message.plain(one, one.mechanism.encode(symbol)) for symbol in more]
        header["dummies"] = law_of(stated)
    world = World((one,))
    world.analyzer.receive(batch(one, [message.seal_inner(one, 1, each) for each in plains], **header))
    reports = reports_of(one, plains)
    answers = np.unravel_index(reports[reports < 48], (3, 4, 4))
    found = world.answers.document(world.answers.latest(), detail=True)
    assert [each["name"] for each in found["questions"]] == ["way", "height", "minutes"]
    for each, own, told in zip(one.questions, answers, found["questions"], strict=True):
        question = question_of(each)
        noise = noise_of_campaign(each, question)
        wanted = question.learned(noise, noise.tally(own), People(N))
        (group,) = told["groups"]
        assert group["n"] == N and told["measure"] == question.measure and group["labels"] == question.labels
        assert group["value"] == np.atleast_1d(wanted.value).tolist()
        assert group["standard_error"] == np.atleast_1d(wanted.standard_error).tolist()
        promised = noise.central(Uniform(N), People(N), delta=one.promise.delta)
        assert isinstance(promised, CentralDP)
        assert world.answers.guarantee(1)["central"]["all"] == pytest.approx(promised.all, rel=1e-9)


def test_the_combination_is_told_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {fact.name: fact.words for fact in explain(written(tmp_path, "geometric", monkeypatch)).lines}
    assert "in one report, as one of 48 combinations, each with dummies of its own" in facts["answer"]
    assert "height (140 to 200) and weight (50 to 100), as one symbol of 4, not randomized" in facts["answer"]


@pytest.mark.parametrize("way", WAYS)
def test_the_noise_of_a_count_is_told_of_a_combination(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A count of an answer sums those of several combinations, and is further off."""
    (trust,) = (fact.words for fact in explain(written(tmp_path, way, monkeypatch)).lines if fact.name == "trust")
    assert "put the count of a combination off by" in trust and "of each answer" not in trust


NONE = {"name": "none", "k": 2}
CERTAIN = {
    "question": "shares",
    "values": [{"name": "is", "categories": ["yes"]}],
    "symbols": [[{"of": ["is"], "rounding": "list", "points": 1}]],
}


def document(way: str, people: int) -> dict[str, Any]:
    each = [
        {
            "question": "shares",
            "values": [{"name": name, "categories": ["no", "yes"]}],
            "symbols": [[{"of": [name], "rounding": "list", "points": 2}]],
        }
        for name in ("smokes", "drinks")
    ]
    dummies: dict[str, Any] = {"epsilon": 8.0, "delta": 1e-2, "rate": 0.875}
    if way == "shuffler":
        dummies = {"epsilon": 8.0, "delta": 1e-2, "reach": Dummies(4, 8.0, 1e-2).reach}
    return {
        "schema_version": 1,
        "id": "day",
        "question": "What is your day like?",
        "asks": {"question": "joint", "each": each},
        "randomizer": {"name": "none", "k": 4},
        "batch": {"minimum": people},
        "dummies": dummies,
        "promise": {"delta": 1e-2, "trust": way, "device_budget": 400.0}
        | ({"assumed_honest": people} if way == "users" else {}),
    }


@pytest.mark.parametrize("way", ["shuffler", "users"])
def test_every_combination_is_counted_once_for_every_question_whatever_crashes(way: str) -> None:
    world = ThrowawayCampaign.of(document(way, 60) | {"rounds": schedule(2)}, 80)
    found = simulate(world, faults=FaultRates(loss=0.1, duplicate=0.1, delay=0.1, crash=0.002), seed=1)
    assert found.sound and found.results
    for result in found.results:
        assert result.truth.shape == result.value.shape == (4,)
        assert np.allclose(result.truth.reshape(2, 2).sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"randomizer": {"name": "none", "k": 5}}, "makes 4 different symbols, and `randomizer` is of 5"),
        (
            {"dummies": {"epsilon": 8.0, "delta": 1e-2, "variance": "9", "reaches": [9, 9]}},
            "of several stay together",
        ),
        (
            {"asks": {"question": "joint", "each": document("shuffler", 60)["asks"]["each"][:1]}, "randomizer": NONE},
            "at least 2 questions",
        ),
        (
            {"asks": {"question": "joint", "each": [document("shuffler", 60)["asks"]["each"][0], CERTAIN]}},
            "which says one of two things or more",
        ),
        (
            {"asks": {**document("shuffler", 60)["asks"], "question": "one"}},
            "`asks.weights` must be whole numbers",
        ),
    ],
)
def test_what_is_not_their_combination_is_refused_in_one_line(change: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told) as refused:
        ThrowawayCampaign.of(document("shuffler", 60) | change, 80)
    assert "\n" not in str(refused.value)


@pytest.mark.exhaust
@pytest.mark.parametrize("way", ["shuffler", "users"])
def test_combinations_are_answered_over_the_network(way: str, tmp_path: Path) -> None:
    """What is learned lies within six standard errors: a right implementation fails with a chance below 1e-7."""
    people = 60
    asked = document(way, people) | {"rounds": {"schedule": "manual", "count": 1}}
    asked |= {"batch": {"minimum": people, "close_at": people}}
    site = Deployment.of(asked, tmp_path / "site", devices=people)
    site.write()
    with (
        run_servers(site),
        closing(httpx.Client(base_url=site.analyzer, trust_env=False, timeout=PATIENCE)) as client,
    ):
        for slot in range(people):
            limit(site.device(slot), total=400.0, per_question=400.0)
            with open_device(site.folder / "campaign.toml", site.device(slot), trust=way) as device:
                held = {"smokes": ["no", "yes"][slot % 2], "drinks": ["no", "yes"][slot % 3 == 0]}
                assert submit(device, held, 1, patience=PATIENCE).state == "accepted"

        def told() -> Any:
            headers = {"Authorization": f"Bearer {site.token}"}
            return client.get("/v1/campaigns/day/estimates", headers=headers).json()["estimates"]

        (found,) = until(told)
    assert found["n"] == people
    for one, truth in zip(found["questions"], ([0.5, 0.5], [2 / 3, 1 / 3]), strict=True):
        (group,) = one["groups"]
        assert (np.abs(np.subtract(group["value"], truth)) < 6.0 * np.array(group["standard_error"])).all()

"""Campaigns whose devices draw a question that dummies hide: written, answered, told, and attacked."""

import math
from collections import Counter
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.collect.analyzer.test_asked import reports_of
from tests.collect.analyzer.world import World, batch, campaign
from tests.collect.test_joint_campaigns import NEW
from tests.device.words import SimulatedBits
from tests.job.test_drawn_behind_dummies import of_dummies, of_sparse, worst
from tests.statistics import rng_of
from tests.waiting import PATIENCE, until

from dovetail.account.dummies import dummies_epsilon, user_dummies_for
from dovetail.cli.main import invoke
from dovetail.collect.analyzer.answers import CampaignAnswers
from dovetail.collect.analyzer.live_page import render
from dovetail.collect.campaign.explain import explain
from dovetail.collect.campaign.guarantees import ReleasedBatch, batch_guarantee
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
from dovetail.job.evaluate import of_everybody
from dovetail.noise.sparse import SparseNoise
from dovetail.randomize.sampling.open_reports import OpenAnswers
from dovetail.shuffle.sampling.dummies import (
    Dummies,
    GaussianDummies,
    SeveralDummies,
    SparseDummies,
    TruncatedGaussian,
    UserDummies,
)
from dovetail_device.client import _answer
from dovetail_device.session import limit, open_device, submit
from dovetail_protocol import messages as message
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.keys import SigningKey
from dovetail_protocol.messages import Rejected

QUESTIONS = """ask = "one"
[[questions]]
column = "way"
categories = ["walk", "bike", "car"]
weight = 2
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
NUMBERS = """ask = "one"
[[questions]]
column = "height"
lower = 140.0
upper = 200.0
weight = 2
[[questions]]
column = "minutes"
lower = 0.0
upper = 60.0
"""
WAYS: dict[str, tuple[list[str], type, str]] = {
    "users": (["--trust", "users", "--epsilon", "4"], UserDummies, QUESTIONS),
    "geometric": (["--dummies", "4"], Dummies, QUESTIONS),
    "gaussian": (["--dummies", "4", "--count", "30"], GaussianDummies, QUESTIONS),
    "sparse": (["--dummies", "4", "--sparse"], SparseDummies, QUESTIONS),
    "digits": (["--dummies", "4", "--digits"], SeveralDummies, NUMBERS),
}
N = 600


def written(place: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> Campaign:
    monkeypatch.chdir(place)
    for role in ("owner", "shuffler", "analyzer"):
        assert invoke(["collect", "keys", role, "--out", f"{role}.key"]) == 0
    options, _, questions = WAYS[way]
    (place / "questions.toml").write_text(questions)
    named = ["--id", "day", "--question", "What is your day like?", "--questions", "questions.toml"]
    rounds = [] if "--count" in options else ["--count", "1"]
    assert invoke(["collect", *NEW, *named, "--minimum", f"{N}", "--delta", "1e-3", *rounds, *options]) == 0
    return draft_campaign((place / "campaign.toml").read_bytes())


def among(place: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> Campaign:
    """The same with keys of a test."""
    keys = campaign('name = "krr"\nk = 3\nepsilon = 1.0')
    roles = {name: getattr(keys, name) for name in ("id", "owner", "analyzer", "shuffler", "shuffler_signing")}
    return replace(written(place, way, monkeypatch), **roles)


def values(one: Campaign, n: int = N) -> list[dict[str, Any]]:
    ways, asked = ["walk", "bike", "bike", "car"], one.asked
    assert asked is not None
    held = [
        {"way": ways[i % 4], "height": 150.0 + i % 40, "weight": 60.0 + i % 30, "minutes": i % 61.0} for i in range(n)
    ]
    return [{value.name: each[value.name] for value in asked.values} for each in held]


def plains_of(one: Campaign, way: str) -> tuple[list[bytes], dict[str, Any], list[int]]:
    """The entries of a batch, what its header says, and which question each person drew."""
    words = SimulatedBits(rng_of(way))
    drawn = [message.draw(one, _answer(held, one), words) for held in values(one)]
    drew = [each[0] for each in drawn]
    plains = [each for own in drawn for each in message.split(own[1:], one.entries)]
    header: dict[str, Any] = {"people": N, "classes": tuple(np.bincount(drew, minlength=one.kinds).tolist())}
    stated = added_dummies(one)
    if stated is not None:
        plains = [plains[place] for place in stated.places(len(plains), rng_of(f"{way} kept"))]
        more = stated.drawn(rng_of(f"{way} dummies")).tolist()
        plains += [message.plain(one, one.mechanism.encode(symbol)) for symbol in more]
        header["dummies"] = law_of(stated)
    return plains, header, drew


def counted(one: Campaign, plains: list[bytes], header: dict[str, Any]) -> CampaignAnswers:
    world = World((one,))
    world.analyzer.receive(batch(one, [message.seal_inner(one, 1, each) for each in plains], **header))
    answers: CampaignAnswers = world.answers
    return answers


@pytest.mark.parametrize("way", WAYS)
def test_a_device_answers_the_question_it_drew_and_the_analyzer_tells_each_as_a_job_does(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of those who drew it, whom the shuffler has counted, and with the drawing's share of the error."""
    one, device = among(tmp_path, way, monkeypatch), SigningKey.generate()
    require_question(one)
    stated: Any = added_dummies(one) or people_dummies(one)
    assert isinstance(stated, WAYS[way][1]) and stated.k == one.mechanism.k  # type: ignore[attr-defined]
    words = SimulatedBits(rng_of(f"{way} length"))
    some = [message.draw(one, _answer(held, one), words) for held in values(one, 20)]
    assert {len(message.seal(one, 1, each, device)) for each in some} == {message.wire_bytes(one)}
    plains, header, drew = plains_of(one, way)
    answers = counted(one, plains, header)
    reports, first = reports_of(one, plains), 0
    found = answers.document(answers.latest(), detail=True)
    assert found["n"] == N
    for place, (each, told) in enumerate(zip(one.questions, found["questions"], strict=True)):
        m, size = drew.count(place), each.mechanism.k  # type: ignore[attr-defined]
        question = question_of(each)
        noise = noise_of_campaign(each, question, senders=N)
        own = reports[(reports >= first) & (reports < first + size)] - first
        first += size
        wanted = of_everybody(question.learned(noise, noise.tally(own), People(m, drawn=True)), N)
        (group,) = told["groups"]
        assert group["n"] == told["n"] == m and told["measure"] == question.measure
        assert group["value"] == np.atleast_1d(wanted.value).tolist()
        assert group["standard_error"] == np.atleast_1d(wanted.standard_error).tolist()
    assert answers.status()["batches"][0]["drew"] == dict(
        zip([each["name"] for each in found["questions"]], header["classes"], strict=True)
    )


@pytest.mark.parametrize("way", WAYS)
def test_intervals_cover_what_everybody_holds(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 60 batches intervals of 95 % miss one of the first question's answers in 15 with a chance below 1e-6."""
    one = among(tmp_path, way, monkeypatch)
    held = values(one)
    first = [each[next(iter(each))] for each in held]
    truth = np.mean(first) if isinstance(first[0], float) else first.count("walk") / N
    missed = 0
    for place in range(60):
        plains, header, _ = plains_of(one, f"{way} {place}")
        answers = counted(one, plains, header)
        (group,) = answers.document(answers.latest())["questions"][0]["groups"]
        low, high = group["interval"][0]
        missed += not low <= truth <= high
    assert missed < 15


def test_a_question_is_drawn_as_often_as_its_weight_says() -> None:
    """Whatever is held, and its symbol is an answer to it; fails by chance once in a billion."""
    one, words = ThrowawayCampaign.of(document("shuffler", 60), 60).campaign, SimulatedBits(rng_of("weights"))
    for held in product(("no", "yes"), repeat=2):
        drawn = [message.draw(one, _answer(list(held), one), words) for _ in range(2000)]
        symbols = [one.mechanism.decode(each[4:]) for each in drawn]
        assert [each[0] for each in drawn] == [symbol // 2 for symbol in symbols]
        assert {symbol % 2 == (held[symbol // 2] == "yes") for symbol in symbols} == {True}
        assert abs(sum(symbol < 2 for symbol in symbols) - 500) < 6.2 * math.sqrt(2000 * 0.25 * 0.75)


NONE = {"name": "none", "k": 4}
EPSILON = 2.0


def document(way: str, people: int, **changes: Any) -> dict[str, Any]:
    delta = 0.3 if way == "users" else 0.08
    each = [
        {
            "question": "shares",
            "values": [{"name": name, "categories": ["no", "yes"]}],
            "symbols": [[{"of": [name], "rounding": "list", "points": 2}]],
        }
        for name in ("smokes", "drinks")
    ]
    few = SparseDummies(4, EPSILON)
    law = TruncatedGaussian(Fraction(2), 4)
    epsilon = dummies_epsilon(law, delta) * (1.0 + 1e-9)
    rate = user_dummies_for(k=4, epsilon=EPSILON, delta=delta, honest=people).rate if way == "users" else 0.0
    each_way: dict[str, dict[str, Any]] = {
        "users": {"epsilon": EPSILON, "delta": delta, "rate": rate},
        "shuffler": {"epsilon": EPSILON, "delta": delta, "reach": Dummies(4, EPSILON, delta).reach},
        "gaussian": {"epsilon": epsilon, "delta": delta, "variance": "2", "reach": 4},
        "sparse": {"epsilon": EPSILON, "kept": float(few.kept), "more": float(few.more)},
    }
    trust = "users" if way == "users" else "shuffler"
    honest = {"assumed_honest": people} if way == "users" else {}
    return {
        "schema_version": 1,
        "id": "day",
        "question": "What is your day like?",
        "asks": {"question": "one", "weights": [1, 3], "each": each},
        "randomizer": NONE,
        "batch": {"minimum": people},
        "dummies": each_way[way],
        "promise": {"delta": delta, "trust": trust, "device_budget": 400.0, **honest},
    } | changes


def promised(way: str, n: int) -> tuple[Campaign, CentralDP]:
    """A campaign, and what it promises of a batch of n people."""
    one = ThrowawayCampaign.of(document(way, n), n).campaign
    found = batch_guarantee(one, ReleasedBatch(t=1, sent=n, n=n, smallest=n)).central
    assert isinstance(found, CentralDP)
    return one, found


@pytest.mark.parametrize("way", ["shuffler", "gaussian", "sparse"])
def test_nobody_learns_more_of_a_drawn_question_than_is_promised(way: str) -> None:
    """All draws and all answers of three people, exactly, for somebody who knows who drew what or how many did."""
    one, promise = promised(way, 3)
    stated: Any = added_dummies(one)
    assert promise.epsilon <= EPSILON or way == "gaussian"
    if way == "sparse":
        batches = of_sparse([SparseNoise(replace(stated, k=2), OpenAnswers(2))] * 2)
    else:
        batches = of_dummies([stated.noise.error_law(1.0)[1]] * 2)
    delta = max(promise.delta, 1e-5 if way == "sparse" else 0.0)  # what is left out of a law without an end
    known, unknown = (worst(batches, 3, promise.epsilon, known=told) for told in (True, False))
    assert unknown <= known * (1 + 1e-12) and known <= delta
    assert worst(batches, 2, promise.epsilon * 0.8, known=True) > delta  # and a smaller one would not hold


@pytest.mark.parametrize("own", [0, 2])
def test_dummies_of_all_people_hide_an_answer_whichever_question_each_has_drawn(own: int) -> None:
    """All histograms of the messages of six people, exactly, of whom the others are subtracted.

    She drew either question and answers the other way; a rate that hides answers to one question alone is caught.
    """
    one, promise = promised("users", 6)
    sent = people_dummies(one)
    assert sent is not None and sent.k == 4 and promise.epsilon <= EPSILON * (1.0 + 1e-9)
    alone = user_dummies_for(k=2, epsilon=EPSILON, delta=0.3, honest=6).rate

    def told(rate: float) -> float:
        here, there = Counter[tuple[int, ...]](), Counter[tuple[int, ...]]()
        for drawn in product(range(5), repeat=6):  # 4: none
            chance = math.prod(1.0 - rate if each == 4 else rate / 4.0 for each in drawn)
            for world, held in ((here, own), (there, own + 1)):
                world[tuple(drawn.count(each) + (each == held) for each in range(4))] += chance  # type: ignore[assignment]
        return sum(max(0.0, mass - math.exp(promise.epsilon) * there[seen]) for seen, mass in here.items())

    assert 0.2 < told(sent.rate) <= 0.3 < told(alone)


@pytest.mark.parametrize("way", ["shuffler", "sparse", "users"])
def test_every_answer_is_counted_once_for_the_question_that_was_drawn_whatever_crashes(way: str) -> None:
    world = ThrowawayCampaign.of(document(way, 60, rounds=schedule(2)), 80)
    found = simulate(world, faults=FaultRates(loss=0.1, duplicate=0.1, delay=0.1, crash=0.002), seed=1)
    assert found.sound and found.results
    for result in found.results:
        assert result.truth.shape == result.value.shape == (4,)
        assert np.allclose(result.truth.reshape(2, 2).sum(axis=1), 1.0)


def test_the_shuffler_is_told_the_question_and_counts_who_drew_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the analyzer takes no batch that does not say it."""
    one = among(tmp_path, "geometric", monkeypatch)
    facts = {fact.name: fact.words for fact in explain(one).lines}
    assert "draws one of them in each round, as often as 2 to 1 to 1, whatever is held" in facts["answer"]
    assert "the question that it drew" in facts["shuffler"] and "how many people drew each" in facts["analyzer"]
    assert "each answer" in facts["trust"] and "of whom about 300 answer" in facts["error"]
    plains, header, drew = plains_of(one, "told")
    for sizes in (None, (N,), (N, 0), (1, 1, 1)):
        with pytest.raises(Rejected):
            counted(one, plains, header | {"classes": sizes})
    page = render([counted(one, plains, header)])
    assert ("way: " in page and "height and weight" in page.lower()) or "minutes: " in page
    assert sum(header["classes"]) == N and min(Counter(drew).values()) > 100


def test_a_question_is_not_told_that_nobody_drew_or_not_as_many_as_the_shuffler_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = among(tmp_path, "geometric", monkeypatch)
    plains, header, _ = plains_of(one, "nobody")
    answers = counted(one, plains, header | {"classes": (N, 0, 0)})
    told = answers.document(answers.latest())["questions"]
    assert [each["groups"] for each in told] == [[], [], []]
    assert told[0]["warnings"][0].startswith(f"a batch of {N} people has") and "adds others" in told[0]["warnings"][0]
    assert told[1]["warnings"] == [f"0 of {N} people drew this question: too few to estimate anything"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"randomizer": {"name": "none", "k": 5}}, "makes 4 different symbols, and `randomizer` is of 5"),
        ({"dummies": {"epsilon": 8.0, "delta": 1e-2, "variance": "9", "reaches": [9, 9]}}, "sends 0 digits"),
        ({"asks": document("shuffler", 60)["asks"] | {"weights": [1]}}, "`asks.weights` must be whole numbers"),
        ({"asks": document("shuffler", 60)["asks"] | {"weights": [1, 1001]}}, "from 1 to 1000"),
        ({"asks": document("shuffler", 60)["asks"] | {"question": "joint"}}, "weights"),
        ({"groups": {"names": ["a", "b"]}}, "without public"),
    ],
)
def test_what_does_not_go_together_is_refused_in_one_line(change: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told) as refused:
        ThrowawayCampaign.of(document("shuffler", 60) | change, 80)
    assert "\n" not in str(refused.value)


@pytest.mark.exhaust
@pytest.mark.parametrize("way", ["shuffler", "users"])
def test_drawn_questions_are_answered_over_the_network(way: str, tmp_path: Path) -> None:
    """What is learned lies within six standard errors: a right implementation fails with a chance below 1e-7."""
    people = 60
    asked = document(way, people, rounds={"schedule": "manual", "count": 1})
    asked |= {"batch": {"minimum": people, "close_at": people}}
    site = Deployment.of(asked, tmp_path / "site", devices=people)
    site.write()
    with (
        run_servers(site),
        closing(httpx.Client(base_url=site.analyzer, trust_env=False, timeout=PATIENCE)) as client,
    ):
        for slot in range(people):
            limit(site.device(slot), total=400.0, per_question=400.0)
            with open_device(
                site.folder / "campaign.toml", site.device(slot), trust=asked["promise"]["trust"]
            ) as one:
                held = {"smokes": ["no", "yes"][slot % 2], "drinks": ["no", "yes"][slot % 3 == 0]}
                assert submit(one, held, 1, patience=PATIENCE).state == "accepted"

        def told() -> Any:
            headers = {"Authorization": f"Bearer {site.token}"}
            return client.get("/v1/campaigns/day/estimates", headers=headers).json()["estimates"]

        (found,) = until(told)
    assert found["n"] == people
    for one, truth in zip(found["questions"], ([0.5, 0.5], [2 / 3, 1 / 3]), strict=True):
        (group,) = one["groups"]
        assert (np.abs(np.subtract(group["value"], truth)) < 6.0 * np.array(group["standard_error"])).all()

"""Campaigns that ask for more than shares: through crashes, and over HTTP and MQTT with real servers."""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import polars as pl
import pytest
from tests.collect.servers import Mosquitto
from tests.waiting import PATIENCE, until

import dovetail as dt
from dovetail.account.dummies import dummies_for_rounds, sparse_for_rounds, user_dummies_for
from dovetail.account.gaussian_dummies import message_for
from dovetail.cli.collect.query import _rows
from dovetail.collect.analyzer.campaigns import AnalyzerCampaigns
from dovetail.collect.campaign.explain import explain
from dovetail.collect.campaign.guarantees import ReleasedBatch, batch_guarantee
from dovetail.collect.campaign.terms import asked_of, draft_campaign, question_about, require_same_terms
from dovetail.collect.simulate.deployment import Deployment, ThrowawayCampaign, run_servers, schedule
from dovetail.collect.simulate.faults import FaultRates
from dovetail.collect.simulate.simulation import simulate
from dovetail.core.errors import ConfigError
from dovetail.core.guarantee import CentralDP
from dovetail.core.noise import People
from dovetail.core.question import QUESTIONS
from dovetail.noise.users import UserNoise
from dovetail.randomize.sampling.open_reports import OpenAnswers
from dovetail_device.ledger import terms_of
from dovetail_device.session import limit, open_device, read_value, submit
from dovetail_protocol.dummies import delta_of_each

HEIGHT = {"private": "height", "lower": 140.0, "upper": 200.0}
WEIGHT = {"other": "weight", "other_lower": 50.0, "other_upper": 100.0}


# Two numbers that are as one, of 48 people at the ends of both ranges.
ENDS = ({"height": 140.0, "weight": 50.0}, {"height": 200.0, "weight": 100.0})
FINE = {**WEIGHT, "points": 5}
LEAST = 0.35  # a right correlation of them is 1.01, with a standard deviation of .10 before it is cut at 1


def document(
    ask: str,
    settings: Mapping[str, Any],
    trust: str,
    *,
    people: int,
    rounds: int = 1,
    sparse: bool = False,
    delta: float = 1e-2,
) -> dict[str, Any]:
    question = question_about(ask, HEIGHT, settings, name="a test")
    k: Any = question.domain.get("k")
    symbols = question.symbols
    digits = 3 if ask == "number" else 0
    asked = asked_of(question, private="height", settings=settings, k=k, digits=digits)
    found: dict[str, Any] = {
        "schema_version": 1,
        "id": "body",
        "question": "How tall are you?",
        "asks": asked.stated(),
        "randomizer": {"name": "krr", "k": k, "epsilon": 4.0},
        "batch": {"minimum": people},
        "promise": {"delta": 1e-2, "device_budget": 4.0 * rounds},
    }
    if trust == "local":
        return found
    found["randomizer"] = {"name": "none", "k": k}
    found["promise"] |= {"trust": trust, "device_budget": 400.0}
    if ask == "number":
        law = message_for(weights=(1, 3, 9), epsilon=8.0, delta=delta)
        found["randomizer"]["k"] = asked.size
        found["dummies"] = {"epsilon": 8.0, "delta": delta, "variance": str(law.scale), "reaches": law.reaches}
        return found
    if trust == "users":
        rate = user_dummies_for(k=k, epsilon=8.0, delta=delta, honest=people, symbols=symbols).rate
        found["dummies"] = {"epsilon": 8.0, "delta": delta, "rate": rate}
        found["promise"]["delta"] = delta
        found["promise"]["assumed_honest"] = people
    elif sparse:
        few = sparse_for_rounds(k=k, epsilon=8.0, delta=delta, rounds=symbols)
        found["dummies"] = {"epsilon": few.epsilon, "kept": float(few.kept), "more": float(few.more)}
    else:
        delta = delta_of_each(1e-2, symbols)
        reach = dummies_for_rounds(k=k, epsilon=8.0, delta=delta, rounds=1, law="geometric").reach
        found["dummies"] = {"epsilon": 8.0, "delta": delta, "reach": reach}
    return found


@pytest.mark.parametrize(
    ("ask", "settings", "trust"),
    [
        pytest.param("covariance", WEIGHT, "local", marks=pytest.mark.exhaust),
        pytest.param("distribution", {"bins": 8, "levels": 2}, "shuffler", marks=pytest.mark.exhaust),
        pytest.param("distribution", {"bins": 4, "levels": 2}, "users", marks=pytest.mark.exhaust),
    ],
)
def test_every_symbol_of_every_person_is_counted_once_whatever_crashes(
    ask: str, settings: dict[str, Any], trust: str
) -> None:
    people = 90 if trust == "users" else 30
    asked = document(ask, settings, trust, people=people * 5 // 6, rounds=2) | {"rounds": schedule(2)}
    world = ThrowawayCampaign.of(asked, people)
    found = simulate(world, faults=FaultRates(loss=0.1, duplicate=0.1, delay=0.1, crash=0.002), seed=1)
    assert found.sound and found.results
    assert sum(result.n for result in found.results) == found.verdict.batched > people
    for result in found.results:
        assert result.truth.shape == result.value.shape


@pytest.mark.exhaust
def test_several_symbols_that_are_kept_by_chance_are_each_counted_or_left_out_whatever_crashes() -> None:
    settings = {"others": "age: a | b; sex: F | M"}
    question = question_about("tables", {"private": "answer", "categories": ["no", "yes"]}, settings, name="a test")
    k = question.domain["k"]
    few = sparse_for_rounds(k=k, epsilon=8.0, delta=1e-2, rounds=question.symbols)
    asked = document("covariance", WEIGHT, "shuffler", people=20, rounds=2, sparse=True) | {
        "asks": asked_of(question, private="answer", settings=settings, k=k).stated(),
        "randomizer": {"name": "none", "k": k}, "rounds": schedule(2),
        "dummies": {"epsilon": few.epsilon, "kept": float(few.kept), "more": float(few.more)},
    }  # fmt: skip
    faults = FaultRates(loss=0.1, duplicate=0.1, delay=0.1, crash=0.002)
    found = simulate(ThrowawayCampaign.of(asked, 30), faults=faults, seed=1)
    assert found.sound and len(found.results) == 2
    for result in found.results:
        assert result.truth.shape == result.value.shape == (12,)
        assert ((result.interval[:, 0] <= result.truth) & (result.truth <= result.interval[:, 1])).mean() > 0.75


@pytest.mark.parametrize("trust", ["local", "shuffler", "users"])
def test_what_is_asked_is_told_in_words_before_anybody_takes_part(trust: str) -> None:
    world = ThrowawayCampaign.of(document("covariance", WEIGHT, trust, people=60), 1)
    facts = {fact.name: fact.words for fact in explain(world.campaign).lines}
    assert "for covariance: height (140 to 200) and weight (50 to 100), as one symbol of 4" in facts["answer"]
    assert ("--trust " + trust in facts["one report"]) == (trust != "local")


EARLIER = (  # rates by an earlier bound of several symbols, and whether they keep what they promise by today's
    ("distribution", {"bins": 4, "levels": 2}, 8.0, 40, 0.9940663576126099, True),
    ("distribution", {"bins": 4, "levels": 2}, 2.0, 148, 0.5043829679489136, True),
    ("distribution", {"bins": 8, "levels": 3}, 10.0, 276, 0.5051372051239014, True),
    ("tables", {"others": "sex: F | M; pay: low | high"}, 10.0, 1180, 0.1024729311466217, False),
)


@pytest.mark.parametrize(("ask", "settings", "epsilon", "honest", "rate", "kept"), EARLIER)
def test_a_signed_file_of_an_earlier_bound_keeps_its_promise_or_is_refused_in_one_line(
    ask: str, settings: dict[str, Any], epsilon: float, honest: int, rate: float, kept: bool
) -> None:
    """The last rate is 4e-5 below what is asked today; the others keep epsilon, by a bound that never rises."""
    data = {"private": "job", "categories": ["office", "field"]} if ask == "tables" else HEIGHT
    question = question_about(ask, data, settings, name="a test")
    asked = asked_of(question, private=str(data["private"]), settings=settings, k=question.domain.get("k"), digits=0)
    signed = ThrowawayCampaign.of(
        {
            "schema_version": 1, "id": "body", "question": "What is it?", "asks": asked.stated(),
            "randomizer": {"name": "none", "k": question.domain["k"]}, "batch": {"minimum": honest},
            "promise": {"delta": 0.03, "device_budget": 400.0, "trust": "users", "assumed_honest": honest},
            "dummies": {"epsilon": epsilon, "delta": 0.01, "rate": rate},
        },
        1,
    )  # fmt: skip
    checks: tuple[Callable[[], object], ...] = (
        lambda: AnalyzerCampaigns.of([signed.campaign], [signed.analyzer]),
        lambda: draft_campaign(signed.campaign.signed),
        lambda: explain(signed.campaign),
    )
    for check in checks:
        if kept:
            check()
        else:
            with pytest.raises(ConfigError, match=r"^.{0,40}in \[dummies\]: `rate` must be at least 0\.10247[^\n]*$"):
                check()
    if kept:
        found = batch_guarantee(signed.campaign, ReleasedBatch(t=1, sent=honest, n=honest, smallest=honest)).central
        assert isinstance(found, CentralDP) and found.delta <= 0.03 and found.honest <= epsilon


def test_several_values_are_read_from_one_line() -> None:
    campaign = ThrowawayCampaign.of(document("covariance", WEIGHT, "local", people=2), 1).campaign
    assert read_value("172, 68.5", campaign) == [172, 68.5]


@pytest.mark.exhaust
@pytest.mark.parametrize(
    ("via", "ask", "settings", "trust", "people", "sparse"),
    [
        ("http", "covariance", WEIGHT, "shuffler", 40, False),
        ("mqtt", "covariance", WEIGHT, "shuffler", 40, False),
        ("http", "covariance", WEIGHT, "shuffler", 40, True),
        ("mqtt", "covariance", WEIGHT, "shuffler", 40, True),
        ("http", "regression", {"others": "weight = 50..100", "points": 2}, "shuffler", 120, True),
        ("http", "number", {}, "shuffler", 40, False),
        ("mqtt", "number", {}, "shuffler", 40, False),
        ("http", "correlation", FINE, "users", 48, False),
        ("http", "regression", {"others": "weight = 50..100", "points": 2}, "users", 120, False),
    ],
)
def test_how_two_numbers_go_together_is_asked_over_the_network(
    via: Any, ask: str, settings: dict[str, Any], trust: Any, people: int, sparse: bool, tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    """What is learned lies within six standard errors: a right implementation fails with a chance below 1e-8.

    A right correlation is below `LEAST` as rarely; one of which nothing is known is 0, and caught.
    """
    broker: Mosquitto | None = request.getfixturevalue("mosquitto") if via == "mqtt" else None
    asked = document(ask, settings, trust, people=people, sparse=sparse, delta=0.5 if ask == "correlation" else 1e-2)
    asked |= {"rounds": {"schedule": "manual", "count": 1}, "batch": {"minimum": people, "close_at": people}}
    site = Deployment.of(asked, tmp_path / "site", devices=people, broker=None if broker is None else broker.url)
    site.write()
    campaign = site.folder / "campaign.toml"
    held = [
        {"height": 150.0 + 40.0 * (slot % 2) + slot % 3, "weight": 50.0 + 50.0 * (slot % 2)} for slot in range(people)
    ]
    if ask == "correlation":
        held = [ENDS[slot % 2] for slot in range(people)]
    with (
        run_servers(site),
        closing(httpx.Client(base_url=site.analyzer, trust_env=False, timeout=PATIENCE)) as client,
    ):
        for slot in range(people):
            limit(site.device(slot), total=400.0, per_question=400.0)
            with open_device(campaign, site.device(slot), via=via, trust=trust) as device:
                answer = held[slot]["height"] if ask == "number" else held[slot]
                assert submit(device, answer, 1, patience=PATIENCE).state == "accepted"

        def told() -> Any:
            headers = {"Authorization": f"Bearer {site.token}"}
            return client.get("/v1/campaigns/body/estimates", headers=headers).json()["estimates"]

        (found,) = until(told)
    assert found["measure"] == QUESTIONS[ask].measure and found["n"] == people
    (group,) = found["groups"]
    values = np.array([list(one.values()) for one in held])
    truth = question_about(ask, HEIGHT, settings, name="a test").truth(values[:, 0] if ask == "number" else values)
    assert (np.abs(np.subtract(group["value"], truth)) < 6.0 * np.array(group["standard_error"])).all()
    assert ask != "correlation" or group["value"][0] > LEAST


@pytest.mark.exhaust
def test_what_the_network_test_of_a_correlation_lets_pass_is_no_broken_one() -> None:
    """Of strangers' numbers 4 in 10,000 pass: five of 100 by a chance below 1e-6. A right one fails below 1e-7."""
    asked, people, rng = question_about("correlation", HEIGHT, FINE, name="a test"), 48, dt.simulation(1)
    drawn = user_dummies_for(k=25, epsilon=8.0, delta=0.5, honest=people, symbols=1)
    noise, those = UserNoise(drawn, OpenAnswers(25)), People(people, pl.DataFrame())
    right = np.array([list(ENDS[slot % 2].values()) for slot in range(people)])

    def passed(values: np.ndarray) -> int:
        found = 0
        for _ in range(100):
            batch = noise.complete(noise.randomize(asked.answer(values, rng), those, rng), rng)
            found += float(asked.learned(noise, noise.tally(batch), those).value) > LEAST
        return found

    strangers = np.column_stack([right[:, 0], np.repeat(right[:2, 1], people // 2)])
    opposite = np.column_stack([right[:, 0], 150.0 - right[:, 1]])
    assert passed(right) == 100 and passed(strangers) < 5 and passed(opposite) == 0


def test_a_device_answers_as_it_is_among_the_dummies_of_the_shuffler_only_where_its_user_says_so(
    tmp_path: Path,
) -> None:
    site = Deployment.of(document("covariance", WEIGHT, "shuffler", people=2), tmp_path / "site", devices=1)
    site.write()
    campaign = site.folder / "campaign.toml"
    for trust in (None, "users"):
        with (
            pytest.raises(ConfigError, match=r"among dummies of the shuffler.*--trust shuffler"),
            open_device(campaign, site.device(0), trust=trust),
        ):
            pass
    with open_device(campaign, site.device(0), trust="shuffler") as device:
        assert device.campaign.charged == 8.0


def test_a_covariance_is_no_percentage() -> None:
    group = {"labels": ["covariance"], "value": [0.25], "standard_error": [0.1], "interval": [[0.0, 0.5]], "n": 9}
    assert not any("%" in cell for row in _rows(group, "covariance") for cell in row)
    assert any("%" in cell for row in _rows(group, "share") for cell in row)


def test_no_version_asks_something_else() -> None:
    made = [
        ThrowawayCampaign.of(document(ask, WEIGHT | {"points": 3}, "local", people=2) | {"version": version}, 1)
        for version, ask in enumerate(("covariance", "covariance", "correlation"), start=1)
    ]
    first, second, other = (replace(each.campaign, owner=made[0].campaign.owner) for each in made)
    assert terms_of(first) == terms_of(second) != terms_of(other)
    require_same_terms(first, second)
    with pytest.raises(ConfigError, match="`asked` differs between the versions 1 and 3"):
        require_same_terms(first, other)

"""Campaigns of several questions: written by the command line, through crashes, and with real servers."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.collect.servers import Mosquitto
from tests.waiting import PATIENCE, until

from dovetail.cli.main import invoke
from dovetail.collect.campaign.terms import draft_campaign
from dovetail.collect.simulate.deployment import Deployment, ThrowawayCampaign, run_servers, schedule
from dovetail.collect.simulate.faults import FaultRates
from dovetail.collect.simulate.simulation import simulate
from dovetail_device.session import limit, open_device, submit
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.joint import Drawn, Joint

WAYS = ["walk", "bike", "car"]
QUESTIONS = """schema_version = 1
mode = "release"
ask = "joint"
[[questions]]
column = "way"
categories = ["walk", "bike", "car"]
epsilon = 2.0
[[questions]]
column = "minutes"
lower = 0.0
upper = 60.0
randomizer = "laplace"
epsilon = 1.5
[[questions]]
column = "height"
ask = "covariance"
lower = 140.0
upper = 200.0
other = "weight"
other_lower = 50.0
other_upper = 100.0
epsilon = 0.5
"""
ONE_OF_THEM = QUESTIONS.replace('"joint"', '"one"').replace('column = "way"', 'column = "way"\nweight = 5')
NEW = ["new", "--owner", "owner.key.pub", "--shuffler", "shuffler.key.pub", "--analyzer", "analyzer.key.pub"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the keys of all roles, and the questions."""
    monkeypatch.chdir(tmp_path)
    for role in ("owner", "shuffler", "analyzer"):
        assert invoke(["collect", "keys", role, "--out", f"{role}.key"]) == 0
    (tmp_path / "questions.toml").write_text(QUESTIONS)
    return tmp_path


def written(place: Path, *options: str) -> Campaign:
    named = ["--id", "day", "--question", "What is your day like?", "--questions", "questions.toml"]
    assert invoke(["collect", *NEW, *named, "--minimum", "4000", "--count", "3", *options]) == 0
    return draft_campaign((place / "campaign.toml").read_bytes())


def test_the_command_line_writes_the_questions_of_a_run_into_a_campaign(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = written(place)
    assert isinstance(found.mechanism, Joint) and [part.epsilon for part in found.mechanism.parts] == [2.0, 1.5, 0.5]
    assert found.asked is not None
    assert [value.name for value in found.asked.values] == ["way", "minutes", "height", "weight"]
    assert found.charged == 4.0 and found.promise.device_budget == 12.0
    capsys.readouterr()
    assert invoke(["collect", "check", "campaign.toml", "--json"]) == 0
    assert "epsilons add" in json.dumps(json.loads(capsys.readouterr().out))


def test_the_command_line_writes_questions_of_which_each_device_draws_one(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "questions.toml").write_text(ONE_OF_THEM)
    found = written(place)
    assert isinstance(found.mechanism, Drawn) and found.mechanism.weights == (5, 1, 1)
    assert found.charged == 2.0 and found.promise.device_budget == 6.0
    capsys.readouterr()
    assert invoke(["collect", "check", "campaign.toml", "--json"]) == 0
    assert "as often as 5 to 1 to 1" in json.dumps(json.loads(capsys.readouterr().out))


@pytest.mark.parametrize(
    ("change", "options", "told"),
    [
        (("", ""), ["--ask", "shares"], "--questions says what is asked"),
        (("", ""), ["--epsilon", "3"], "--questions says what is asked"),
        (('ask = "joint"\n', 'ask = "all"\n'), [], "write one for each question with `dovetail collect new`"),
        (('ask = "joint"\n', 'ask = "some"\n'), [], "ask"),
        (("[[questions]]", "[promise]\ndelta = 1e-7\n[[questions]]"), [], "`promise` is not read for a campaign"),
        (('categories = ["walk", "bike", "car"]\n', ""), [], "must declare `categories`"),
        (('randomizer = "laplace"', 'randomizer = "window"'), [], "use laplace"),
        ((QUESTIONS[QUESTIONS.index("[[") :], ""), [], "[[questions]] are missing"),
    ],
)
def test_what_a_campaign_of_several_questions_cannot_do_is_said_in_one_line(
    change: tuple[str, str], options: list[str], told: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "questions.toml").write_text(QUESTIONS.replace(*change, 1) if change[0] else QUESTIONS)
    capsys.readouterr()
    named = ["--id", "day", "--question", "?", "--questions", "questions.toml"]
    assert invoke(["collect", *NEW, *named, *options]) == 2
    said = capsys.readouterr().err
    assert told in said and said.count("\n") == 1 and not (place / "campaign.toml").exists()


def document(people: int, ask: str = "joint") -> dict[str, Any]:
    """Shares and a mean."""
    asks = {
        "question": ask,
        "each": [
            {
                "question": "shares",
                "values": [{"name": "way", "categories": WAYS}],
                "symbols": [[{"of": ["way"], "rounding": "list", "points": 3}]],
            },
            {"question": "number", "values": [{"name": "minutes", "lower": 0.0, "upper": 60.0}]},
        ],
    }
    parts = [
        {"name": "krr", "k": 3, "epsilon": 4.0},
        {"name": "laplace", "lower": 0.0, "upper": 60.0, "epsilon": 2.0, "grid": 2.0},
    ]
    return {
        "schema_version": 1,
        "id": "day",
        "question": "What is your day like?",
        "asks": asks,
        "randomizer": {"name": ask, **({"weights": [2, 1]} if ask == "one" else {}), "parts": parts},
        "batch": {"minimum": people},
        "promise": {"delta": 1e-2},
    }


@pytest.mark.parametrize(("ask", "paid"), [("joint", 12.0), ("one", 8.0)])
def test_every_report_is_counted_once_for_every_question_that_it_answers_whatever_crashes(
    ask: str, paid: float
) -> None:
    world = ThrowawayCampaign.of(document(100, ask) | {"rounds": schedule(2)}, 120)
    assert world.campaign.promise.device_budget == paid
    found = simulate(world, faults=FaultRates(loss=0.1, duplicate=0.1, delay=0.1, crash=0.002), seed=1)
    assert found.sound and found.results
    for result in found.results:
        assert result.truth.shape == result.value.shape == (4,) and result.interval.shape == (4, 2)
        assert np.isclose(result.truth[:3].sum(), 1.0) and 0.0 < result.truth[3] < 60.0


@pytest.mark.exhaust
@pytest.mark.parametrize(("via", "ask"), [("http", "joint"), ("mqtt", "joint"), ("http", "one"), ("mqtt", "one")])
def test_several_questions_are_answered_over_the_network(
    via: Any, ask: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    """What is learned lies within six standard errors: a right implementation fails with a chance below 1e-7."""
    people = 40
    broker: Mosquitto | None = request.getfixturevalue("mosquitto") if via == "mqtt" else None
    asked = document(people, ask) | {"rounds": {"schedule": "manual", "count": 1}}
    asked |= {"batch": {"minimum": people, "close_at": people}}
    site = Deployment.of(asked, tmp_path / "site", devices=people, broker=None if broker is None else broker.url)
    site.write()
    campaign = site.folder / "campaign.toml"
    held = [{"way": WAYS[slot % 2], "minutes": float(slot)} for slot in range(people)]
    with (
        run_servers(site),
        closing(httpx.Client(base_url=site.analyzer, trust_env=False, timeout=PATIENCE)) as client,
    ):
        for slot in range(people):
            limit(site.device(slot), total=10.0, per_question=10.0)
            with open_device(campaign, site.device(slot), via=via) as device:
                assert submit(device, held[slot], 1, patience=PATIENCE).state == "accepted"

        def told() -> Any:
            headers = {"Authorization": f"Bearer {site.token}"}
            return client.get("/v1/campaigns/day/estimates", headers=headers).json()["estimates"]

        (found,) = until(told)
        monkeypatch.setenv("DOVETAIL_TOKEN", site.token)
        capsys.readouterr()
        assert invoke(["collect", "query", site.analyzer]) == 0
        shown = capsys.readouterr().out
    assert "day, way: round 1" in shown and "day, minutes: round 1" in shown and "bike" in shown
    assert found["n"] == people and sum(one["n"] for one in found["questions"]) == people * (
        2 if ask == "joint" else 1
    )
    for one, truth in zip(found["questions"], ([0.5, 0.5, 0.0], [19.5]), strict=True):
        (group,) = one["groups"]
        assert (np.abs(np.subtract(group["value"], truth)) < 6.0 * np.array(group["standard_error"])).all()

"""Means of vectors in campaigns: written, explained, simulated with crashes, and over HTTP and MQTT."""

import math
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.collect.analyzer.world import World, batch, campaign, reports_of, seal
from tests.collect.servers import Mosquitto
from tests.device.words import SimulatedBits
from tests.statistics import rng_of
from tests.waiting import PATIENCE, until

from dovetail.cli.main import invoke
from dovetail.collect.analyzer import live_page
from dovetail.collect.campaign.explain import explain
from dovetail.collect.campaign.terms import asked_of, draft_campaign, too_few
from dovetail.collect.http import Refusal
from dovetail.collect.simulate.deployment import Deployment, ThrowawayCampaign, run_servers, schedule
from dovetail.collect.simulate.faults import FaultRates
from dovetail.collect.simulate.simulation import simulate
from dovetail.core.errors import ConfigError
from dovetail.core.question import WEAK
from dovetail.question.vector import Vector
from dovetail.randomize.vectors.closest_direction import ClosestDirection
from dovetail_device.session import limit, open_device, read_value, submit

ASKED, NOISE = Vector(3, 2.0), ClosestDirection(3, 2.0, 4.0)
SETTINGS = {"dimension": 3, "clip": 2.0}


def document(people: int) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "id": "profiles",
        "question": "What is your profile?",
        "asks": asked_of(ASKED, private="profile", settings=SETTINGS, k=None).stated(),
        "randomizer": {"name": NOISE.name, **NOISE.device.stated()},
        "batch": {"minimum": people},
        "promise": {"delta": 1e-2, "device_budget": 40.0},
    }


def signed(changes: dict[str, Any] | None = None, *, minimum: int = 2, more: str = "") -> Any:
    """The campaign of a file with these changes to [randomizer]."""
    stated = {"name": NOISE.name, **NOISE.device.stated()} | (changes or {})
    body = "\n".join(f"{key} = {one!r}" for key, one in stated.items())
    asks = 'question = "vector"\nsettings = {clip = 2.0, dimension = 3}\nvalues = [{name = "profile", length = 3}]'
    return campaign(body, minimum=minimum, more=more or f"[asks]\n{asks}\nsymbols = []")


def test_every_vector_is_counted_once_whatever_crashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "dovetail.collect.simulate.simulation.entropy_system_entropy",
        lambda: SimulatedBits(rng_of("crashing vectors")),
    )
    world = ThrowawayCampaign.of(document(20) | {"rounds": schedule(1)}, 24)
    found = simulate(world, faults=FaultRates(loss=0.1, duplicate=0.1, delay=0.1, crash=0.002), seed=1)
    (result,) = found.results
    assert found.sound and result.n == found.verdict.batched
    assert result.truth.shape == result.value.shape == (3,) and np.all(result.truth > 0.2)
    assert math.dist(result.truth, result.value) < 3.0 * NOISE.error(result.n)  # the noise has a seed


def test_a_campaign_of_vectors_is_told_in_words_before_anybody_takes_part() -> None:
    facts = {fact.name: fact.words for fact in explain(signed(minimum=5000)).lines}
    assert facts["answer"] == (
        "for vector: profile (3 numbers), shortened to Euclidean length 2 at most, randomized on the device by the "
        "closest of random directions"
    )
    assert "with probability 95 % an estimate lies within 0.058 in Euclidean length" in facts["error"]
    assert 0.057 < NOISE.error95(5000) <= 0.058


def test_noise_that_hides_most_of_a_mean_of_few_vectors_is_told() -> None:
    """From half of `clip` on: 1.29 of 2 for 10 people, .91 for 20."""
    told = [too_few(signed(minimum=n), WEAK) for n in (10, 20)]
    assert told[0] is not None and "hides most of the mean of vectors of 10 people" in told[0] and told[1] is None
    assert NOISE.error95(10) > 1.0 > NOISE.error95(20)


def test_the_mean_as_a_whole_is_told_on_the_live_page_and_in_answers() -> None:
    asked = signed(minimum=100)
    world = World((asked,))
    world.analyzer.receive(batch(asked, seal(asked, reports_of(asked, [[0.5, -0.5, 3.0]] * 400, "told"), round=1)))
    found = world.answers.document(world.answers.latest())
    assert found["measure"] == "mean" and found["vector"]["error95"] == NOISE.error95(400)
    assert found["vector"]["off"]["value"] is None
    (group,) = found["groups"]
    assert found["vector"]["length"] == pytest.approx(math.hypot(*group["value"]))
    html = live_page.render(world.analyzer.all_answers())
    for wanted in (
        "closest direction, ε",
        "Estimates in round 1",
        "in Euclidean length with probability 95%",
        "What is estimated is the mean of shortened vectors",
        "How many vectors were shortened is not told",
    ):
        assert wanted in html, wanted
    with pytest.raises(Refusal, match="asks for the mean of vectors"):
        world.answers.frequencies()


@pytest.mark.parametrize(
    ("changes", "more", "message"),
    [
        ({"radius": 1.0}, "", r"`randomizer.radius` is 1.0, and the mean of vectors asks for 2.0"),
        ({"d": 4}, "", r"`length` of the value 'profile' must then be `d` of \[randomizer\]"),
        ({}, "[precision]\nbeta = 0.1\nrho = 0.9", r"closest_direction takes an array: \[asks\] must say of what"),
    ],
    ids=["radius", "length", "no asks"],
)
def test_a_file_whose_arrays_are_not_those_of_the_randomizer_is_refused(
    changes: dict[str, Any], more: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        draft_campaign(signed(changes, more=more).signed)


def test_an_array_is_read_from_one_line() -> None:
    assert read_value("0.5, -1,2e-3", signed()) == [0.5, -1, 2e-3]
    assert signed().asked.check(read_value("0.5, -1,2e-3", signed())) == ((0.5, -1.0, 2e-3),)


def test_a_campaign_of_vectors_is_written_or_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for role in ("owner", "shuffler", "analyzer"):
        place = tmp_path / f"{role}.key"
        assert invoke(["collect", "keys", role, "--out", str(place)]) == 0
        files += [f"--{role}", f"{place}.pub"]
    out = tmp_path / "campaign.toml"
    call = ["collect", "new", *files, "--id", "a", "--question", "b", "--out", str(out), "--ask", "vector"]
    call += ["--private", "profile", "--dimension", "3", "--clip", "2", "--epsilon", "4"]
    assert invoke(call) == 0
    made: Any = draft_campaign(out.read_bytes())
    assert made.mechanism == NOISE.device and made.asked.values[0].length == 3
    for more, message in (
        (["--trust", "users"], "--trust users does not go with the mean of vectors: it hides answers of a list"),
        (["--dummies", "1"], "--trust shuffler does not go with the mean of vectors"),
        (["--randomizer", "krr"], "--randomizer krr does not go with the mean of vectors"),
        (["--randomizer", "gaussian"], "has no form for devices, so no campaign can use it; take one of closest_dir"),
        (["--lower", "0", "--upper", "1"], "takes arrays, which have no categories and no range"),
        (["--classes", "a=1,b=2"], "[classes] go with the randomizer krr"),
        (["--ask", "covariance"], "--ask covariance needs --other and --other-lower and --other-upper."),
    ):
        capsys.readouterr()
        assert invoke([*call, "--force", *more]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and message in said


@pytest.mark.exhaust
@pytest.mark.parametrize("via", ["http", "mqtt"])
def test_a_mean_of_vectors_is_asked_over_the_network(
    via: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    people = 40
    broker: Mosquitto | None = request.getfixturevalue("mosquitto") if via == "mqtt" else None
    asked = document(people)
    asked |= {"rounds": {"schedule": "manual", "count": 1}, "batch": {"minimum": people, "close_at": people}}
    site = Deployment.of(asked, tmp_path / "site", devices=people, broker=None if broker is None else broker.url)
    site.write()
    with (
        run_servers(site),
        closing(httpx.Client(base_url=site.analyzer, trust_env=False, timeout=PATIENCE)) as client,
    ):
        for slot in range(people):
            limit(site.device(slot), total=10.0, per_question=10.0)
            with open_device(site.folder / "campaign.toml", site.device(slot), via=via) as device:
                assert submit(device, [1.0, -0.5, 40.0], 1, patience=PATIENCE).state == "accepted"

        def told() -> Any:
            headers = {"Authorization": f"Bearer {site.token}"}
            return client.get("/v1/campaigns/profiles/estimates", headers=headers).json()["estimates"]

        (found,) = until(told)
    assert found["measure"] == "mean" and found["n"] == people
    held = ASKED.truth(np.array([[1.0, -0.5, 40.0]]))[:3]
    assert math.dist(found["groups"][0]["value"], held) < 6.0 * NOISE.error(people)

"""Digits of a number in the service: sent each by itself, among dummies with a law for each digit."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.collect.shuffler.test_batch_dummies import expect_refused, keys_of, tables
from tests.device.words import SimulatedBits
from tests.statistics import expect_at_least, expect_caught, expect_mean, rng_of
from typer.testing import CliRunner

from dovetail.account.gaussian_dummies import Message, message_for
from dovetail.cli.collect import app
from dovetail.collect.analyzer.answers import CampaignAnswers
from dovetail.collect.campaign.explain import explain
from dovetail.collect.campaign.guarantees import ReleasedBatch, batch_guarantee, guarantee_of_rounds
from dovetail.collect.campaign.terms import added_dummies, asked_of, draft_campaign, law_of, noise_of_campaign
from dovetail.collect.campaign.terms import question_of as asked_question
from dovetail.collect.shuffler.batches import BatchDummies
from dovetail.collect.simulate.deployment import PERIOD, ThrowawayCampaign
from dovetail.collect.simulate.faults import FaultRates, SeededChance
from dovetail.collect.simulate.simulation import SimulatedDevices, Simulation, simulate
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import ConfigError, ParameterError
from dovetail.core.guarantee import CentralDP
from dovetail.core.missing import Missing
from dovetail.core.noise import People
from dovetail.question.number import Number
from dovetail_device.ledger import terms_of
from dovetail_protocol.asked import Asked, Value
from dovetail_protocol.dummies import DigitsRule
from dovetail_protocol.messages import Rejected

DEVICES, EPSILON, DELTA = 12, 2.0, 1e-3
HEIGHT = Number(140.0, 220.0)
THREE = message_for(weights=(1, 3, 9), epsilon=EPSILON, delta=DELTA)


def rule_of(message: Message, epsilon: float = EPSILON, delta: float = DELTA) -> dict[str, Any]:
    return {"epsilon": epsilon, "delta": delta, "variance": str(message.scale), "reaches": list(message.reaches)}


def digits(message: Message = THREE, **changes: Any) -> dict[str, Any]:
    """The campaign that asks for a height by its digits."""
    many = len(message.weights)
    own: dict[str, Any] = {
        "rounds": 1,
        "asks": asked_of(HEIGHT, private="height", settings={}, k=None, digits=many).stated(),
        "randomizer": {"name": "none", "k": 3 * many},
        "dummies": rule_of(message),
        "promise": {"delta": 1e-2, "trust": "shuffler", "device_budget": 12.0},
    }
    return tables(**own | changes)


@cache
def world() -> ThrowawayCampaign:
    return ThrowawayCampaign.of(digits(), DEVICES)


def asked_for(many: int) -> Asked:
    return asked_of(HEIGHT, private="height", settings={}, k=None, digits=many)


def drawn(asked: Asked, height: float, count: int, name: str) -> np.ndarray:
    """What a device sends, again and again (count, digits)."""
    words = SimulatedBits(rng_of(name))
    return np.array([asked.answers(asked.check(height), words) for _ in range(count)])


# What a device sends


@pytest.mark.parametrize("many", [1, 2, 5])
def test_a_device_rounds_once_and_sends_every_digit_of_the_place(many: int) -> None:
    """Both neighbours on the grid, right on average: by chance this fails once in a billion."""
    asked, points = asked_for(many), 3**many
    step = 80.0 / (points - 1)
    place = points // 3 + 0.3  # between two that differ in every digit
    height = 140.0 + step * (place - 1.0)
    sent = drawn(asked, height, 4000, f"digits {many}") - 3 * np.arange(many)
    assert asked.sent == many and asked.size == 3 * many
    assert sent.min() >= 0 and sent.max() <= 2
    places = sent @ 3 ** np.arange(many)
    assert set(places.tolist()) == {points // 3 - 1, points // 3}
    expect_mean(places[:, None], [place - 1.0], against=[0.1])


def test_numbers_on_the_grid_are_sent_as_they_are() -> None:
    asked = asked_for(3)
    for place in (0, 7, 25, 26):
        height = 140.0 + 80.0 * place / 26.0
        (sent,) = drawn(asked, height, 1, "grid")
        assert sum(3**k * (one - 3 * k) for k, one in enumerate(sent.tolist())) == place


# What leaves the shuffler, against the account


def law(asked: Asked, height: float) -> dict[int, float]:
    """Of the place that a device sends: exactly, as the device's rounding is linear between two of the grid."""
    points = asked.symbols[0].parts[0].points
    scaled = (height - 140.0) / 80.0 * (points - 1)
    below = min(int(scaled), points - 2)
    return {below: 1.0 - (scaled - below), below + 1: scaled - below}


def released(message: Message, held: dict[int, float]) -> np.ndarray:
    """The law of all counts of a batch, less what everybody else has sent: (counts of every symbol)."""
    total: Any = 0.0
    for place, chance in held.items():
        found = np.ones(())
        for k, one in enumerate(message.laws):
            for symbol in range(3):
                masses = np.append(one.masses, 0.0)
                if place // 3**k % 3 == symbol:
                    masses = np.roll(masses, 1)
                found = np.multiply.outer(found, masses)
        total = total + chance * found
    return np.asarray(total)


@pytest.mark.parametrize(("epsilon", "delta"), [(3.0, 0.05), (4.0, 0.02), (5.0, 0.05)])
def test_no_batch_tells_more_of_a_person_than_the_campaign_promises(epsilon: float, delta: float) -> None:
    """Every batch of two digits, and every pair of heights of a grid: exact, and reached where all digits differ."""
    message = message_for(weights=(1, 3), epsilon=epsilon, delta=delta)
    asked = ThrowawayCampaign.of(
        digits(message, dummies=rule_of(message, epsilon, delta), promise={
            "delta": delta, "trust": "shuffler", "device_budget": 12.0}), 1
    ).campaign  # fmt: skip
    promise = batch_guarantee(asked, ReleasedBatch(1, 3, 3, 3)).central
    assert isinstance(promise, CentralDP) and promise.epsilon <= epsilon * (1.0 + 1e-9)
    assert (asked.charged, asked.charged_delta, asked.symbols) == (epsilon, delta, 2)
    laws = [released(message, law(asked.asked, 140.0 + 80.0 * at / 16.0)) for at in range(17)]  # type: ignore[arg-type]
    worst = max(
        float(np.maximum(one - np.exp(promise.epsilon) * other, 0.0).sum()) for one, other in product(laws, repeat=2)
    )
    assert 0.999 * delta <= worst <= delta * (1.0 + 1e-9)
    less = Message(message.scale, message.weights, (message.reaches[0], message.reaches[1] - 1))
    seen = released(less, {0: 1.0}), released(less, {8: 1.0})
    assert (
        float(np.maximum(seen[0] - np.exp(promise.epsilon) * seen[1], 0.0).sum()) > delta
    )  # what a smaller one tells


def test_rounds_of_digits_are_accounted_as_one_message_each() -> None:
    campaign = world().campaign
    one, twelve = (guarantee_of_rounds(campaign, n=100, rounds=many) for many in (1, 12))
    assert isinstance(one, CentralDP) and isinstance(twelve, CentralDP)
    assert one.epsilon < EPSILON < twelve.epsilon < 12.0 * EPSILON
    wanted = noise_of_campaign(campaign, HEIGHT)
    assert wanted.name == "digits"


def test_dummies_of_a_batch_have_the_law_of_each_digit(rng: Entropy) -> None:
    campaign = world().campaign
    made = [BatchDummies.draw(campaign, 1, 36, rng)._symbols for _ in range(1500)]
    counts = np.array([np.bincount(one, minlength=9) for one in made]).reshape(-1, 3, 3)
    for k, one in enumerate(THREE.laws):
        assert counts[:, k].max() <= 2 * one.reach
        expect_mean(counts[:, k], one.reach, against=[0.5 * one.variance**0.5])
        squared = (counts[:, k] - one.reach) ** 2 / one.variance
        expect_mean(squared, 1.0, against=[0.3])
        with pytest.raises(AssertionError):  # of another digit
            expect_mean(3.0 * squared, 1.0, against=[0.9])


# What the analyzer learns


@pytest.mark.exhaust
def test_the_mean_of_a_campaign_is_right_on_average_and_covered() -> None:
    """From what devices send: within what is said in 95 of 100, and caught where every digit had the last one's law.

    Fails by chance once in a billion.
    """
    campaign, n = world().campaign, 40
    noise, people, rng = (
        noise_of_campaign(campaign, asked_question(campaign)),
        People(40, pl.DataFrame()),
        rng_of("mean"),
    )
    heights = np.linspace(141.3, 219.1, n)
    words, asked = SimulatedBits(rng), campaign.asked
    assert asked is not None
    dummies = added_dummies(campaign)
    assert dummies is not None
    off, covered, blind = [], [], []
    for _ in range(1500):
        own = [one for height in heights for one in asked.answers((height,), words)]
        found = noise.mean(noise.tally(np.concatenate([own, dummies.drawn(rng)])), people)
        error = float(found.value) - heights.mean()
        off.append(error)
        covered.append(abs(error) <= 1.96 * float(found.standard_error))
        blind.append(abs(error) <= 1.96 * 0.8 * float(found.standard_error))
    expect_mean(np.array(off)[:, None], [0.0], against=[0.5 * np.std(off)])
    expect_at_least(covered, 0.95)
    expect_caught(expect_at_least, blind, 0.95)


def played(seed: int = 7) -> Simulation:
    made = Simulation(
        world(), dies=lambda role: False, fate=lambda role: "arrives", stores=("sqlite://", "sqlite://"),
        rng=simulation(seed),
    )  # fmt: skip
    SimulatedDevices.of(world(), made.dying, SeededChance(1)).report(1, range(DEVICES), made.network, made.clock)
    for _ in range(8):
        made.pass_time(PERIOD)
    return made


def test_the_analyzer_tells_the_mean_and_whose_noise_it_is() -> None:
    made, campaign = played(), world().campaign
    [(header, _)] = made.audit._batches.values()
    dummies = added_dummies(campaign)
    assert dummies is not None and header.dummies == law_of(dummies) and header.people == DEVICES
    first = THREE.laws[0]
    assert header.dummies == (first.scale.numerator, first.scale.denominator, first.reach, 2, *THREE.reaches[1:])
    answers = CampaignAnswers(campaign, made.counted)
    [each] = answers.rounds()
    assert each.n == DEVICES and np.isfinite(float(np.asarray(each.by_group[""].value).reshape(-1)[0]))
    told = {fact.name: fact.words for fact in explain(campaign).lines}
    assert "height (140 to 220), as 3 symbols that nobody can link" in told["answer"]
    assert f"about {dummies.total:,} dummies of all digits to every batch" in told["trust"]


def test_a_shuffler_that_adds_others_to_a_digit_is_noticed() -> None:
    made = played()
    [(header, body)] = made.audit._batches.values()
    signing = world().shuffler.signing
    assert signing is not None and header.dummies is not None
    *others, last = header.dummies
    for place, wrong in enumerate([None, (*others, last - 1), tuple(others), header.dummies[:3], (*others, last, 1)]):
        changed: dict[str, Any] = {"people": None} if wrong is None else {}
        other = replace(header, batch=f"{place:032x}", dummies=wrong, **changed)
        with pytest.raises(Rejected, match=r"adds no dummies, or others|something else than it should"):
            made.analyzer.receive(other.sign(signing) + body)
    crowd = replace(header, batch="9" * 32, people=10**4)
    with pytest.raises(Rejected, match=r"its shuffler adds others, or none|something else than it should"):
        made.analyzer.receive(crowd.sign(signing) + body)


@pytest.mark.exhaust
@pytest.mark.parametrize(("small", "late"), [("wait", "refuse"), ("merge", "next")])
def test_every_digit_of_every_person_is_counted_once_whatever_crashes(small: str, late: str) -> None:
    rule = {"minimum": 24, "small": small, "late": late}
    found = simulate(
        ThrowawayCampaign.of(digits(batch=rule, rounds=2), 30),
        faults=FaultRates(loss=0.1, duplicate=0.15, delay=0.1, crash=0.005), seed=3,
    )  # fmt: skip
    assert found.sound and found.results


# What a campaign file may say


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dummies": rule_of(THREE) | {"reaches": [3, 2, 1]}}, "`variance` .* `reaches` 3, 2, 1 do not keep"),
        ({"dummies": rule_of(THREE) | {"reaches": [40, 30]}}, r"\[asks\] sends 3 digits, and they are 2"),
        ({"dummies": rule_of(THREE) | {"reaches": [40, 30, 0]}}, r"`dummies.reaches` must be a whole number"),
        ({"dummies": rule_of(THREE) | {"reaches": 40}}, r"`dummies.reaches` must be a list of whole numbers"),
        ({"dummies": {**rule_of(THREE), "variance": "0.5"}}, "`dummies.variance` must be a fraction"),
        ({"dummies": {**rule_of(THREE), "reach": 40}}, "`dummies.reach` is not a key"),
        ({"dummies": {"epsilon": 1.0, "delta": 1e-3, "reach": 13}}, r"\[asks\] sends 3 digits, and they are 0"),
        ({"randomizer": {"name": "krr", "k": 9, "epsilon": 2.0}}, 'goes with dummies and `randomizer.name` = "none"'),
        ({"randomizer": {"name": "none", "k": 27}}, r"\[asks\] makes 9 different symbols, and `randomizer` is of 27"),
        ({"promise": {"delta": 1e-4, "trust": "shuffler", "device_budget": 12.0}}, "must be at most `promise.delta`"),
        ({"asks": asked_of(HEIGHT, private="height", settings={}, k=9).stated()}, "sends 0 digits, and they are 3"),
    ],
)  # fmt: skip
def test_campaigns_with_other_digits_are_refused_in_one_line(change: dict[str, Any], message: str) -> None:
    expect_refused(digits(**change), message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"points": 10}, "does not go with rounding 'digits'"),
        ({"points": 1}, "does not go with rounding 'digits'"),
        ({"of": ["height", "height"]}, "does not go with rounding 'digits'"),
    ],
)
def test_digits_are_of_one_number_and_a_power_of_three(change: dict[str, Any], message: str) -> None:
    stated = asked_for(3).stated()
    stated["symbols"][0][0] |= change
    expect_refused(digits(asks=stated), message)


def test_digits_stand_alone() -> None:
    stated = asked_for(2).stated()
    part = stated["symbols"][0][0]
    even = part | {"rounding": "even"}
    for symbols in ([[part], [even]], [[even, part]], [[part, part]], [[part], [part]]):
        expect_refused(digits(asks=stated | {"symbols": symbols}), 'rounding "digits" stands alone')


def test_versions_of_a_campaign_with_other_dummies_are_other_terms() -> None:
    campaign = world().campaign
    assert isinstance(campaign.dummies, DigitsRule) and campaign.asked is not None
    assert campaign.asked.values == (Value("height", 140.0, 220.0),)
    more = replace(campaign.dummies, reaches=tuple(reach + 1 for reach in THREE.reaches))
    assert terms_of(replace(campaign, dummies=more)) != terms_of(campaign)


def test_the_owner_drafts_a_campaign_whose_rounds_keep_what_she_asks_for_together(tmp_path: Path) -> None:
    words = ["new", "--id", "height", "--question", "How tall?", "--count", "4", "--manual", "--minimum", "20000"]
    words += [
        word for role in ("owner", "shuffler", "analyzer") for word in (f"--{role}", str(keys_of(tmp_path, role)))
    ]
    words += ["--http", "http://127.0.0.1:8401", "--out", str(tmp_path / "campaign.toml")]
    words += ["--lower", "140", "--upper", "220"]
    mean = ["--ask", "number", "--private", "height", "--dummies", "1", "--digits"]
    done = CliRunner().invoke(app, [*words, *mean])
    assert done.exit_code == 0, done.output
    made = draft_campaign((tmp_path / "campaign.toml").read_bytes())
    assert isinstance(made.dummies, DigitsRule) and made.affordable == 4 and made.asked is not None
    assert made.charged_delta == made.promise.delta and made.symbols == made.asked.digits > 2
    together = explain(made).together
    assert not isinstance(together, Missing) and together.epsilon is not None and 0.99 < together.epsilon <= 1.0
    for more, message in (
        ([*mean[:4], "--digits"], "--digits goes with --dummies"),
        ([*mean, "--sparse"], "--sparse and --digits do not go together"),
        ([*mean, "--grid", "1"], "--grid does not go with --digits"),
        (mean[4:], "--digits goes with --ask"),
        (["--ask", "distribution", *mean[2:]], "digits carry the mean of a number"),
    ):
        with pytest.raises((ParameterError, ConfigError), match=message):
            CliRunner().invoke(app, [*words, *more, "--force"], catch_exceptions=False)

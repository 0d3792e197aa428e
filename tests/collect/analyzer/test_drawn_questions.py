"""A campaign of which each device draws one question: one length, and the promise and estimates of a run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.collect.analyzer.test_asked import ALLOWED, MEMOIZED, order_rule, section, toml
from tests.collect.analyzer.test_several_questions import (
    BODY,
    KRR3,
    KRR4,
    LAPLACE,
    MINUTES,
    TABLE,
    WAY,
    WAYS,
    WINDOW,
    counted,
    plains_of,
    values_of,
)
from tests.collect.analyzer.world import ANALYZER, NOON, batch, campaign, store
from tests.device.words import SimulatedBits
from tests.statistics import rng_of

from dovetail.account.compose import NEIGHBOURS, questions_guarantee
from dovetail.collect.analyzer.analyzer import Analyzer
from dovetail.collect.analyzer.answers import RosterSlotEstimator, table
from dovetail.collect.analyzer.campaigns import AnalyzerCampaigns
from dovetail.collect.analyzer.live_page import render
from dovetail.collect.analyzer.tallies import decode_all
from dovetail.collect.campaign.explain import explain
from dovetail.collect.campaign.guarantees import ReleasedBatch, campaign_guarantees
from dovetail.collect.campaign.terms import (
    forms_of,
    noise_of_campaign,
    question_of,
    require_question,
    require_same_terms,
)
from dovetail.collect.clock import FrozenClock
from dovetail.core.entropy import simulation
from dovetail.core.errors import ConfigError
from dovetail.core.guarantee import CentralDP
from dovetail.core.noise import People
from dovetail.job.evaluate import of_everybody
from dovetail.job.messages import CHOSEN
from dovetail.job.questions import questions_of
from dovetail.job.questions_plan import plan_questions
from dovetail.job.together import Choices
from dovetail_device.client import _answer
from dovetail_device.ledger import terms_of
from dovetail_protocol import messages as message
from dovetail_protocol.asked import ONE, Asked, AskedTogether
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.keys import SigningKey

N = 300
THREE = ([WAY, MINUTES, BODY], [KRR3, LAPLACE, KRR4])
WEIGHTS = (3, 2, 1)


def made(
    each: Sequence[Asked], parts: Sequence[Mapping[str, Any]], weights: Sequence[int] = (), **changes: Any
) -> Campaign:
    more = section("asks", AskedTogether(tuple(each), ONE).stated()) + changes.pop("more", "")
    stated = f'name = "one"\nweights = {toml(list(weights or (1,) * len(parts)))}\nparts = {toml(list(parts))}'
    return campaign(stated, more=more, **changes)


def test_every_question_is_told_what_the_job_tells_of_those_who_drew_it() -> None:
    one = made(*THREE, WEIGHTS)
    require_question(one)
    plains = plains_of(one, "drawn job")
    encoded = np.frombuffer(b"".join(plains), dtype=np.uint8).reshape(N, -1)[:, 3:]
    reports, valid = decode_all(one.mechanism, encoded)
    assert valid.all()
    answers = counted(one, plains).answers
    found = answers.document(answers.latest(), detail=True)
    assert found["n"] == N and [each["name"] for each in found["questions"]] == ["way", "minutes", "height"]
    drew = np.bincount(reports[CHOSEN])
    assert drew.sum() == N and (drew > 20).all()
    for place, (each, told) in enumerate(zip(one.questions, found["questions"], strict=True)):
        own, question = reports[str(place)][reports[CHOSEN] == place], question_of(each)
        noise = noise_of_campaign(each, question)
        wanted = question.learned(noise, noise.tally(own), People(len(own), pl.DataFrame()))
        everybody = of_everybody(wanted, N)
        (group,) = told["groups"]
        assert group["n"] == told["n"] == drew[place] and told["measure"] == question.measure
        assert group["value"] == pytest.approx(np.atleast_1d(everybody.value).tolist(), rel=1e-12)
        assert group["standard_error"] == pytest.approx(np.atleast_1d(everybody.standard_error).tolist(), rel=1e-12)
        assert (np.array(group["standard_error"]) > np.atleast_1d(wanted.standard_error)).any()
        assert "median_of_reports" not in told  # of those alone who drew it


def test_intervals_cover_what_everybody_holds_not_those_alone_who_drew_the_question() -> None:
    """Of 200 campaigns of people who hold one thing or the other, at epsilon 12: nearly all of the error is drawing.

    Intervals of 95 % miss in 26 of 200 with a chance below 1e-5; without the drawing's share most of them would.
    """
    yes = [{"name": "krr", "k": 3, "epsilon": 12.0}, LAPLACE]
    one, missed, alone = made([WAY, MINUTES], yes, minimum=100), 0, 0
    held = [{"way": WAYS[place % 2], "minutes": 1.0} for place in range(100)]
    words = SimulatedBits(rng_of("drawn coverage"))
    for _ in range(200):
        plains = [message.draw(one, _answer(each, one), words) for each in held]
        answers = counted(one, plains).answers
        way, _ = answers.document(answers.latest())["questions"]
        (group,) = way["groups"]
        low, high = group["interval"][0]
        missed += not low <= 0.5 <= high
        m = group["n"]
        alone += abs(group["value"][0] - 0.5) > 1.96 * 2.0 * np.exp(-6.0) / np.sqrt(m)
    assert missed < 26 and alone > 100


def test_one_person_has_one_report_of_one_length_whichever_question_she_draws() -> None:
    one, device = made(*THREE), SigningKey.generate()
    words = SimulatedBits(rng_of("drawn length"))
    drawn = [message.draw(one, _answer(held, one), words) for held in values_of(one, 40)]
    assert {each[3] for each in drawn} == {0, 1, 2}
    assert {len(message.seal(one, 1, each, device)) for each in drawn} == {message.wire_bytes(one)}
    assert one.entries == 1


@pytest.mark.parametrize("weights", [(1, 1), (3, 1)])
def test_the_promise_is_that_of_a_run_and_of_its_plan(weights: tuple[int, int]) -> None:
    one = made([WAY, MINUTES], [KRR3, LAPLACE], weights)
    released = ReleasedBatch(t=1, sent=N, n=N, smallest=N)
    found = campaign_guarantees(one, [released])
    wanted = questions_guarantee(forms_of(one.mechanism), ask="one", n=N, delta=1e-6, weights=weights)
    assert found.latest is not None and isinstance(found.latest.central, CentralDP)
    assert found.latest.central == wanted and wanted.neighbours == NEIGHBOURS
    assert found.local.epsilon == found.latest.central.colluding == one.charged == 2.0
    run = questions_of(
        {
            "schema_version": 1,
            "mode": "release",
            "ask": "one",
            "promise": {"delta": 1e-6},
            "questions": [
                {"column": "way", "categories": WAYS, "epsilon": 2.0, "weight": weights[0]},
                {"column": "minutes", "lower": 0.0, "upper": 60.0, "weight": weights[1]}
                | {"randomizer": "laplace", "epsilon": 1.5, "grid": 2.0},
            ],
        }
    )
    assert run is not None
    (planned,) = [way for way in plan_questions(run, N) if way.ask == "one"]
    assert planned.central.all == found.latest.central.all
    joint = questions_guarantee(forms_of(one.mechanism), ask="joint", n=N, delta=1e-6)
    assert wanted.all < joint.all
    twice = campaign_guarantees(one, [released, ReleasedBatch(t=2, sent=N, n=N, smallest=N)])
    assert twice.all_local == 4.0 and wanted.all < twice.composed.epsilon <= 4.0  # type: ignore[union-attr,operator]


def test_a_device_pays_for_the_largest_epsilon_and_is_told_so() -> None:
    one = made(*THREE, WEIGHTS, budget=5.0, minimum=600)
    assert one.affordable == 2 and [each.batch.minimum for each in one.questions] == [300, 200, 100]
    facts = {fact.name: fact.words for fact in explain(one).lines}
    assert "epsilon 2" in facts["one report"]
    assert "draws one of them in each round, as often as 3 to 2 to 1, whatever is held" in facts["answer"]
    assert "epsilons add" not in facts["answer"]
    assert "of a batch of 600, of whom about 200 answer" in facts["error"]
    evenly = {fact.name: fact.words for fact in explain(made(*THREE)).lines}
    assert "all as often" in evenly["answer"]


def test_the_error_that_is_planned_for_everybody_is_that_of_the_plan_of_a_run() -> None:
    """And above that of as many people who were all asked, by the drawing."""
    one = made([WAY, MINUTES], [KRR3, LAPLACE], minimum=1000)
    said = next(fact.words for fact in explain(one).lines if fact.name == "error")
    alone = campaign('name = "krr"\nk = 3\nepsilon = 2.0', minimum=500)
    fewer = next(fact.words for fact in explain(alone).lines if fact.name == "error")

    def points(text: str) -> float:
        return float(text.partition("lies within ")[2].partition("%")[0])

    assert points(fewer) < points(said) < 2.0 * points(fewer)


def test_a_report_that_no_device_sends_counts_for_no_question() -> None:
    one = made([WAY, MINUTES], [KRR3, LAPLACE])
    plains = plains_of(one, "drawn wrong")
    plains[0] = plains[0][:3] + b"\x02" + plains[0][4:]  # no third question
    plains[1] = plains[1][:3] + b"\x00\x00" + b"\x01" * 7  # more than an answer
    plains[2] = plains[2][:3] + b"\x00\x03" + b"\x00" * 7  # no way of three
    answers = counted(one, plains).answers
    found = answers.document(answers.latest())
    assert found["n"] == N - 3 == sum(each["groups"][0]["n"] for each in found["questions"])
    assert answers.status()["batches"][0]["rejected"] == {"content": 3}


def test_a_question_that_next_to_nobody_drew_is_not_told_and_the_others_are() -> None:
    one = made([WAY, MINUTES], [KRR3, LAPLACE], (1000, 1), minimum=30)
    plains = [each for each in plains_of(one, "drawn few") if each[3] == 0][:40]
    answers = counted(one, plains).answers
    way, minutes = answers.document(answers.latest())["questions"]
    assert way["groups"][0]["n"] == 40 and minutes["groups"] == []
    assert minutes["warnings"] == ["0 of 40 people drew this question: too few to estimate anything"]
    assert "Too few" not in render([answers]) and "people drew this question" in render([answers])


def test_a_batch_below_the_minimum_shows_no_question_and_one_above_it_shows_all() -> None:
    """The minimum is of all reports of a batch: fewer have drawn each question."""
    one = made([WAY, MINUTES], [KRR3, LAPLACE], minimum=N)
    plains = plains_of(one, "drawn minimum")
    shown = counted(one, plains).answers
    assert all(each["groups"] for each in shown.document(shown.latest())["questions"])
    plains[0] = plains[0][:3] + b"\x02" + plains[0][4:]
    hidden = counted(one, plains).answers
    (each,) = hidden.rounds()
    told = hidden.document(each)
    assert told["withheld"] and all(question["groups"] == [] for question in told["questions"])


def test_every_question_is_shown_in_every_view() -> None:
    one = made([WAY, MINUTES], [KRR3, LAPLACE])
    answers = counted(one, plains_of(one, "drawn views")).answers
    page = render([answers])
    assert "way: Shares in round 1" in page and "minutes: Estimates in round 1" in page
    assert "2 questions, of which each report answers one, ε = 2" in page
    assert table(answers)["label"].to_list() == [*(f"way: {way}" for way in WAYS), "minutes: mean"]
    window = answers.window(1, width=1)
    assert [each["name"] for each in window["questions"]] == ["way", "minutes"] and window["warnings"] == []


def test_public_groups_are_told_apart_question_by_question() -> None:
    """By how many people a group has, whichever question they drew."""
    one = made([WAY, MINUTES], [KRR3, LAPLACE], more='[groups]\nnames = ["east", "west"]\n', minimum=100)
    words = SimulatedBits(rng_of("drawn groups"))
    plains = [
        message.draw(one, _answer(held, one), words, "east" if place < 100 else "west")
        for place, held in enumerate(values_of(one))
    ]
    found = counted(one, plains).answers
    each = [{part["group"]: part["n"] for part in told["groups"]} for told in _told(found)]
    assert {name: sum(sizes[name] for sizes in each) for name in each[0]} == {None: N, "east": 100, "west": 200}


def _told(answers: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = answers.document(answers.latest())["questions"]
    return found


def test_versions_that_draw_otherwise_share_nothing() -> None:
    both = ([WAY, MINUTES], [KRR3, LAPLACE])
    one, same, other = made(*both), made(*both, version=2), made(*both, (2, 1), version=2)
    require_same_terms(one, same)
    assert terms_of(one) == terms_of(same) != terms_of(other)
    with pytest.raises(ConfigError, match="differs between the versions"):
        require_same_terms(one, other)


@pytest.mark.parametrize(
    ("each", "parts", "changes", "told"),
    [
        ([WAY, MINUTES], [KRR3, LAPLACE], {"weights": (1,)}, "weights"),
        ([WAY, MINUTES], [KRR3, LAPLACE], {"weights": (0, 1)}, "weights"),
        ([WAY, MINUTES, BODY], [KRR3, LAPLACE], {}, "one of `randomizer.parts` for each"),
        ([WAY, WAY], [KRR3, KRR3], {}, "different names"),
        ([WAY, MINUTES], [KRR3, WINDOW], {}, "goes with one question; use laplace"),
        ([WAY, TABLE], [KRR3, KRR3], {}, "several symbols"),
        ([WAY, MINUTES], [KRR3, LAPLACE], {"more": "[classes]\na = 1.0\nb = 2.0\n"}, "krr"),
        (
            [WAY, MINUTES],
            [KRR3, LAPLACE],
            {"more": "[dummies]\nepsilon = 1.0\ndelta = 1e-7\nreach = 99\n", "promise": 'trust = "shuffler"'},
            "krr",
        ),
    ],
)
def test_what_does_not_go_together_is_refused_in_one_line(each: Any, parts: Any, changes: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as refused:
        require_question(made(each, parts, **changes))
    assert "\n" not in str(refused.value)


def test_questions_that_are_drawn_and_answers_that_stay_together_are_no_other_word_for_each_other() -> None:
    drawn, joint = (section("asks", AskedTogether((WAY, MINUTES), *ask).stated()) for ask in ((ONE,), ()))
    parts = f"parts = {toml([KRR3, LAPLACE])}"
    with pytest.raises(ConfigError, match='"joint" goes with'):
        campaign(f'name = "joint"\n{parts}', more=drawn)
    with pytest.raises(ConfigError, match='"one" goes with'):
        campaign(f'name = "one"\nweights = [1, 1]\n{parts}', more=joint)
    with pytest.raises(ConfigError, match='"one" goes with'):
        campaign('name = "krr"\nk = 3\nepsilon = 2.0', more=drawn)


@pytest.mark.parametrize(
    "cell", [one for one in ALLOWED if one.question == "one" and one.order != "uniform"], ids=str
)
def test_in_an_order_that_is_private_every_question_is_told_of_those_who_drew_it(
    cell: Choices, tmp_path: Path
) -> None:
    """Of everybody and of every public group; the guarantee is that of reports that hide in one group."""
    n, order = 80, order_rule(cell, tmp_path)
    again = MEMOIZED if cell.noise == "memoized" else ""
    one = made([WAY, MINUTES], [KRR3, LAPLACE], shuffle=order, minimum=10, more=again)
    require_question(one)
    kept = [plain[3:] for plain in plains_of(one, "drawn order", n)]
    slots = RosterSlotEstimator.load(one, tmp_path)
    assert slots is not None
    arranged = slots.shuffler.permutation(simulation(1))
    entries = [
        slot.to_bytes(4) + message.seal_inner(one, 1, message.plain(one, kept[at]))
        for slot, at in enumerate(arranged)
    ]
    analyzer = Analyzer(
        AnalyzerCampaigns.of((one,), (ANALYZER,)), store=store(), clock=FrozenClock(NOON), slots={one.id: slots}
    )
    analyzer.receive(batch(one, entries))
    answers = analyzer.answers(one.id)
    drew = np.bincount([report[0] for report in kept])
    for told, m in zip(_told(answers), drew, strict=True):
        everybody, *groups = told["groups"]
        assert everybody["n"] == m and len(groups) == (4 if cell.order in ("within_groups", "rase") else 0)
        assert sum(group["n"] for group in groups) in (0, m)
        assert all(np.isfinite(group["standard_error"]).all() for group in told["groups"])
    central = answers.guarantee(1)["central"]
    if cell.order == "within_groups":
        forms = forms_of(one.mechanism)
        assert central["all"] == questions_guarantee(forms, ask="one", n=n // 4, delta=1e-6).all

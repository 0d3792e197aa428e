"""A campaign of several questions: one report a person, an estimate for each question, and one promise for all."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.collect.analyzer.test_asked import ALLOWED, MEMOIZED, order_rule, section, toml
from tests.collect.analyzer.world import ANALYZER, NOON, World, batch, campaign, store
from tests.device.words import SimulatedBits
from tests.statistics import rng_of

from dovetail.account.compose import NEIGHBOURS, questions_guarantee
from dovetail.collect.analyzer.analyzer import Analyzer
from dovetail.collect.analyzer.answers import CampaignAnswers, RosterSlotEstimator, table
from dovetail.collect.analyzer.campaigns import AnalyzerCampaigns
from dovetail.collect.analyzer.live_page import render
from dovetail.collect.analyzer.tallies import decode_all
from dovetail.collect.campaign.explain import explain
from dovetail.collect.campaign.guarantees import ReleasedBatch, campaign_guarantees
from dovetail.collect.campaign.terms import (
    asked_of,
    forms_of,
    noise_of_campaign,
    question_about,
    question_of,
    require_question,
    require_same_terms,
)
from dovetail.collect.clock import FrozenClock
from dovetail.collect.http import Refusal
from dovetail.core.entropy import simulation
from dovetail.core.errors import ConfigError, DataError
from dovetail.core.guarantee import CentralDP
from dovetail.core.noise import People
from dovetail.core.question import QUESTIONS
from dovetail.job.together import Choices
from dovetail_device.client import _answer
from dovetail_device.ledger import terms_of
from dovetail_device.session import read_value
from dovetail_protocol import messages as message
from dovetail_protocol.asked import Asked, AskedTogether
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.keys import SigningKey
from dovetail_protocol.messages import Rejected

WAYS = ["walk", "bike", "car"]
N = 300
Column = dict[str, Any]


def asked(ask: str, column: Column, settings: Mapping[str, Any] | None = None, k: int | None = None) -> Asked:
    question = question_about(ask, column, settings or {}, name="a test")
    return asked_of(question, private=column["private"], settings=settings or {}, k=k or question.domain.get("k"))


WAY = asked("shares", {"private": "way", "categories": WAYS})
MINUTES = asked("number", {"private": "minutes", "lower": 0.0, "upper": 60.0})
BODY = asked(
    "covariance",
    {"private": "height", "lower": 140.0, "upper": 200.0},
    {"other": "weight", "other_lower": 50.0, "other_upper": 100.0},
)
KRR3 = {"name": "krr", "k": 3, "epsilon": 2.0}
LAPLACE = {"name": "laplace", "lower": 0.0, "upper": 60.0, "epsilon": 1.5, "grid": 2.0}
KRR4 = {"name": "krr", "k": 4, "epsilon": 1.0}
WINDOW = {"name": "window", "lower": 0.0, "upper": 60.0, "epsilon": 1.5, "grid": 2.0, "window": 20}
TWO = ([WAY, MINUTES], [KRR3, LAPLACE])
THREE = ([WAY, MINUTES, BODY], [KRR3, LAPLACE, KRR4])


def made(each: Sequence[Asked], parts: Sequence[Mapping[str, Any]], **changes: Any) -> Campaign:
    more = section("asks", AskedTogether(tuple(each)).stated()) + changes.pop("more", "")
    return campaign(f'name = "joint"\nparts = {toml(list(parts))}', more=more, **changes)


def people(n: int = N) -> list[dict[str, Any]]:
    return [
        {
            "way": WAYS[(place // 2) % 3 % 2],
            "minutes": float(place % 61),
            "height": 150.0 + place % 40,
            "weight": 60.0,
        }
        for place in range(n)
    ]


def values_of(one: Campaign, n: int = N) -> list[dict[str, Any]]:
    assert one.asked is not None
    return [{value.name: held[value.name] for value in one.asked.values} for held in people(n)]


def plains_of(one: Campaign, name: str, n: int = N) -> list[bytes]:
    words = SimulatedBits(rng_of(name))
    return [message.draw(one, _answer(held, one), words) for held in values_of(one, n)]


def counted(one: Campaign, plains: Sequence[bytes]) -> World:
    world = World((one,))
    world.analyzer.receive(batch(one, [message.seal_inner(one, 1, each) for each in plains]))
    return world


@pytest.mark.parametrize("both", [TWO, THREE], ids=["two", "three"])
def test_every_question_is_told_what_the_job_tells_of_the_same_reports(both: Any) -> None:
    one = made(*both)
    require_question(one)
    plains = plains_of(one, "joint job")
    world = counted(one, plains)
    encoded = np.frombuffer(b"".join(plains), dtype=np.uint8).reshape(N, -1)[:, 3:]
    found = world.answers.document(world.answers.latest(), detail=True)
    assert found["n"] == N and [each["name"] for each in found["questions"]] == [q.values[0].name for q in both[0]]
    first = 0
    for each, told in zip(one.questions, found["questions"], strict=True):
        last = first + each.mechanism.report_bytes
        reports, valid = decode_all(each.mechanism, encoded[:, first:last])
        first = last
        assert valid.all()
        question = question_of(each)
        noise = noise_of_campaign(each, question)
        wanted = question.learned(noise, noise.tally(reports), People(N, pl.DataFrame()))
        (group,) = told["groups"]
        assert group["n"] == N and group["labels"] == question.labels and told["measure"] == question.measure
        assert group["value"] == pytest.approx(np.atleast_1d(wanted.value).tolist(), rel=1e-12)
        assert group["standard_error"] == pytest.approx(np.atleast_1d(wanted.standard_error).tolist(), rel=1e-12)


def test_one_person_has_one_report_of_one_length_whatever_she_answers() -> None:
    one, device = made(*THREE), SigningKey.generate()
    words = SimulatedBits(rng_of("joint length"))
    lengths = {
        len(message.seal(one, 1, message.draw(one, _answer(held, one), words), device)) for held in values_of(one, 20)
    }
    assert lengths == {message.wire_bytes(one)} and one.entries == 1
    assert one.mechanism.report_bytes == sum(each.mechanism.report_bytes for each in one.questions)


def test_the_promise_is_that_of_reports_whose_answers_stay_together() -> None:
    one = made(*TWO)
    released = ReleasedBatch(t=1, sent=N, n=N, smallest=N)
    found = campaign_guarantees(one, [released])
    wanted = questions_guarantee(forms_of(one.mechanism), ask="joint", n=N, delta=1e-6)
    assert found.latest is not None and isinstance(found.latest.central, CentralDP)
    assert found.latest.central.all == wanted.all and found.latest.central.neighbours == NEIGHBOURS
    assert found.local.epsilon == found.latest.central.colluding == one.charged == 3.5
    apart = [campaign_guarantees(each, [released]).latest for each in one.questions]
    alone = [each.central.epsilon for each in apart if each is not None and isinstance(each.central, CentralDP)]
    assert wanted.all > sum(alone) > max(alone) and len(alone) == 2  # what splitting would promise, and does not hold
    twice = campaign_guarantees(one, [released, ReleasedBatch(t=2, sent=N, n=N, smallest=N)])
    assert twice.all_local == 7.0 and isinstance(twice.composed.epsilon, float)  # type: ignore[union-attr]
    assert wanted.all < twice.composed.epsilon <= 7.0  # type: ignore[union-attr]


def test_a_device_pays_for_all_answers_and_is_told_so() -> None:
    one = made(*TWO, budget=7.0)
    assert one.affordable == 2
    facts = {fact.name: fact.words for fact in explain(one).lines}
    assert "epsilon 3.5" in facts["one report"] and "stay together in one report" in facts["answer"]
    assert "way (walk, bike, car)" in facts["answer"] and "minutes (0 to 60)" in facts["answer"]
    assert facts["error"].startswith("way: ") and "; minutes: " in facts["error"]
    with pytest.raises(ConfigError, match=r"does not pay for one report \(3\.5\)"):
        made(*TWO, budget=3.0)


def test_a_report_with_one_wrong_answer_counts_for_no_question() -> None:
    one = made(*TWO)
    plains = plains_of(one, "joint wrong")
    plains[0] = plains[0][:3] + b"\x03" + plains[0][4:]  # no way of three
    plains[1] = plains[1][:4] + b"\x7f" + plains[1][5:]  # no number that Laplace noise is cut off to
    plains[2] = plains[2][:-1]
    world = World((one,))
    sealed = [one.analyzer.seal(each, message.inner_info(one, 1)) for each in plains]
    with pytest.raises(Rejected, match="ends before its end"):
        world.analyzer.receive(batch(one, sealed[2:4]))  # one of another length
    world.analyzer.receive(batch(one, [*sealed[:2], *sealed[3:]]))
    found = world.answers.document(world.answers.latest())
    assert found["n"] == N - 3 and {each["groups"][0]["n"] for each in found["questions"]} == {N - 3}
    assert world.answers.status()["batches"][0]["rejected"] == {"content": 2}
    with pytest.raises(Rejected, match="bytes"):
        message.seal(one, 1, plains[2], SigningKey.generate())


def test_every_question_is_shown_in_every_view(monkeypatch: pytest.MonkeyPatch) -> None:
    one = made(*TWO)
    world = counted(one, plains_of(one, "joint views"))
    monkeypatch.setattr(QUESTIONS["number"], "notes", lambda *_, **__: ("It is a mean.",))
    page = render([world.answers])
    assert "way: Shares in round 1" in page and "minutes: Estimates in round 1" in page
    assert "2 answers in one report, ε = 3.5" in page and "<p>minutes: It is a mean.</p>" in page
    rows = table(world.answers)
    assert rows["label"].to_list() == [*(f"way: {way}" for way in WAYS), "minutes: mean"]
    window = world.answers.window(1, width=1)
    assert [each["name"] for each in window["questions"]] == ["way", "minutes"] and window["warnings"] == []
    with pytest.raises(Refusal, match="several questions"):
        world.answers.frequencies()
    assert world.answers.heading()["epsilon"] == 3.5


def test_public_groups_are_told_apart_question_by_question() -> None:
    one = made(*TWO, more='[groups]\nnames = ["east", "west"]\n')
    words = SimulatedBits(rng_of("joint groups"))
    plains = [
        message.draw(one, _answer(held, one), words, "east" if place < 100 else "west")
        for place, held in enumerate(values_of(one))
    ]
    found = counted(one, plains).answers
    for told in found.document(found.latest())["questions"]:
        sizes = {each["group"]: each["n"] for each in told["groups"]}
        assert sizes == {None: N, "east": 100, "west": 200}


def test_a_batch_below_the_minimum_shows_no_question() -> None:
    one = made(*TWO, minimum=N)
    plains = plains_of(one, "joint minimum")
    plains[0] = plains[0][:3] + b"\x03" + plains[0][4:]
    world = counted(one, plains)
    (each,) = world.answers.rounds()
    told = world.answers.document(each)
    assert told["withheld"] and all(question["groups"] == [] for question in told["questions"])


def test_versions_that_ask_another_question_share_nothing() -> None:
    one, same, other = made(*TWO), made(*TWO, version=2), made(*THREE, version=2)
    require_same_terms(one, same)
    assert terms_of(one) == terms_of(same) != terms_of(other)
    with pytest.raises(ConfigError, match="differs between the versions"):
        require_same_terms(one, other)


def test_several_values_are_read_from_one_line_and_a_wrong_one_is_not_repeated() -> None:
    one = made(*TWO)
    assert one.asked is not None and one.asked.check(read_value("bike, 12", one)) == (1, 12.0)
    for held in ({"way": "bike"}, ["bike"], "bike", {"way": "jetpack", "minutes": 3.0}, ["bike", 61.0]):
        with pytest.raises(DataError) as refused:
            _answer(held, one)
        assert "jetpack" not in str(refused.value) and "61" not in str(refused.value)


TABLE = asked("distribution", {"private": "minutes", "lower": 0.0, "upper": 60.0}, {"bins": 8, "levels": 2}, k=2)


@pytest.mark.parametrize(
    ("each", "parts", "changes", "told"),
    [
        ([WAY, MINUTES], [KRR3], {}, "2 to 16"),
        ([WAY, MINUTES, BODY], [KRR3, LAPLACE], {}, "one of `randomizer.parts` for each"),
        ([WAY, MINUTES], [LAPLACE, KRR3], {}, "different symbols"),
        ([WAY, WAY], [KRR3, KRR3], {}, "different names"),
        ([WAY, MINUTES], [KRR3, LAPLACE | {"upper": 50.0}], {}, "must then be those of"),
        ([WAY, MINUTES], [KRR3, WINDOW], {}, "goes with one question; use laplace"),
        ([WAY, MINUTES], [KRR3, {"name": "none", "k": 3}], {}, "must be one of"),
        ([WAY, MINUTES], [KRR3, LAPLACE | {"colour": 1}], {}, "no parameter `colour`"),
        ([WAY, TABLE], [KRR3, KRR3], {}, "several symbols"),
        (*TWO, {"more": "[classes]\na = 1.0\nb = 3.5\n"}, "krr"),
        (
            *TWO,
            {"more": "[dummies]\nepsilon = 1.0\ndelta = 1e-7\nreach = 99\n", "promise": 'trust = "shuffler"'},
            "krr",
        ),
    ],
)
def test_what_does_not_go_together_is_refused_in_one_line(each: Any, parts: Any, changes: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as refused:
        require_question(made(each, parts, **changes))
    assert "\n" not in str(refused.value)


def test_several_questions_and_a_randomizer_of_one_are_refused_either_way() -> None:
    both = section("asks", AskedTogether((WAY, MINUTES)).stated())
    with pytest.raises(ConfigError, match=r"go(es)? with"):
        campaign('name = "krr"\nk = 3\nepsilon = 2.0', more=both)
    with pytest.raises(ConfigError, match="goes with"):
        campaign(f'name = "joint"\nparts = {toml([KRR3, LAPLACE])}')


@pytest.mark.parametrize(
    "cell", [one for one in ALLOWED if one.question == "joint" and one.order != "uniform"], ids=str
)
def test_in_an_order_that_is_private_every_question_is_told_as_if_it_were_alone(
    cell: Choices, tmp_path: Path
) -> None:
    """Of everybody and of every public group; the guarantee is that of tuples that hide in one group."""
    n, order = 80, order_rule(cell, tmp_path)
    again = MEMOIZED if cell.noise == "memoized" else ""
    one = made(*THREE, shuffle=order, minimum=10, more=again)
    require_question(one)
    kept = [plain[3:] for plain in plains_of(one, "joint order", n)]
    slots = RosterSlotEstimator.load(one, tmp_path)
    assert slots is not None
    arranged = slots.shuffler.permutation(simulation(1))

    def told(asked: Campaign, own: slice) -> CampaignAnswers:
        placed = RosterSlotEstimator.load(asked, tmp_path)
        assert placed is not None
        entries = [
            slot.to_bytes(4) + message.seal_inner(asked, 1, message.plain(asked, kept[at][own]))
            for slot, at in enumerate(arranged)
        ]
        analyzer = Analyzer(
            AnalyzerCampaigns.of((asked,), (ANALYZER,)), store=store(), clock=FrozenClock(NOON),
            slots={asked.id: placed},
        )  # fmt: skip
        analyzer.receive(batch(asked, entries))
        return analyzer.answers(asked.id)

    answers, first = told(one, slice(None)), 0
    found = answers.document(answers.latest())["questions"]
    for each, part, question in zip(found, THREE[1], THREE[0], strict=True):
        alone = campaign(
            "\n".join(f"{key} = {toml(value)}" for key, value in part.items()),
            shuffle=order, minimum=10, more=section("asks", question.stated()) + again,
        )  # fmt: skip
        last = first + alone.mechanism.report_bytes
        single = told(alone, slice(first, last))
        assert each == {"name": question.values[0].name} | single.document(single.latest())
        assert len(each["groups"]) == (5 if cell.order in ("within_groups", "rase") else 1)
        first = last
    central = answers.guarantee(1)["central"]
    if cell.order == "within_groups":
        forms = forms_of(one.mechanism)
        assert central["all"] == questions_guarantee(forms, ask="joint", n=n // 4, delta=1e-6).all

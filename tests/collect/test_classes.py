"""Classes of people in the service: stated to the shuffler, counted in the header, estimated, and promised."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.collect.analyzer import world as counted
from tests.device.words import SimulatedBits
from tests.statistics import rng_of
from typer.testing import CliRunner

from dovetail.account.mixture import amplify_mixture
from dovetail.cli.collect import app
from dovetail.collect.analyzer.analyzer import Analyzer
from dovetail.collect.analyzer.answers import CampaignAnswers
from dovetail.collect.analyzer.campaigns import AnalyzerCampaigns
from dovetail.collect.analyzer.live_page import render
from dovetail.collect.analyzer.sentences import guarantee_sentences
from dovetail.collect.batch import Header
from dovetail.collect.campaign.explain import explain
from dovetail.collect.campaign.guarantees import (
    MixedBatch,
    ReleasedBatch,
    batch_guarantee,
    campaign_guarantees,
    compose_promises,
)
from dovetail.collect.clock import FrozenClock
from dovetail.collect.simulate.deployment import COMMUTE, ThrowawayCampaign, among_classes, schedule
from dovetail.collect.simulate.faults import FaultRates, SeededChance
from dovetail.collect.simulate.simulation import SimulatedDevices, Simulation, simulate
from dovetail.collect.store.interfaces import BatchRecord
from dovetail.core.entropy import simulation
from dovetail.core.errors import ConfigError
from dovetail.core.guarantee import CentralDP
from dovetail.core.missing import Missing
from dovetail.estimate.classes import estimate_mixture_counts
from dovetail.randomize.krr import KRR
from dovetail_device.entropy import system_entropy
from dovetail_protocol import messages as message
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.messages import Rejected

CLASSES = {"careful": 0.5, "open": 3.0}
DEVICES = 12


def tables(*, rounds: int = 1, **changes: Any) -> dict[str, Any]:
    own = {"rounds": schedule(rounds, grace=60.0), "batch": {"minimum": 3}, "promise": {"delta": 1e-3}}
    return among_classes(CLASSES) | own | changes


@cache
def world() -> ThrowawayCampaign:
    return ThrowawayCampaign.of(tables(), DEVICES)


class Story:
    """One round in which some devices take part: even numbers are careful, odd ones open."""

    def __init__(self, devices: list[int], *, part_reports: int | None = None, asked: Any = None) -> None:
        self.world = asked or world()
        self.simulation = Simulation(
            self.world, dies=lambda _: False, fate=lambda _: "arrives", rng=simulation(7), part_reports=part_reports
        )
        self.fleet = SimulatedDevices.of(self.world, self.simulation.dying, SeededChance(1))
        self.fleet.report(1, devices, self.simulation.network, self.simulation.clock)

    def play(self) -> CampaignAnswers:
        self.simulation.pass_time(10_000.0)
        self.simulation.pass_time(10_000.0)
        return self.answers()

    def answers(self) -> CampaignAnswers:
        return CampaignAnswers(self.world.campaign, self.simulation.counted)


@pytest.mark.exhaust
@pytest.mark.parametrize("part_reports", [None, 2])
def test_the_signed_header_counts_the_people_of_each_class_and_sealed_reports_look_alike(
    part_reports: int | None,
) -> None:
    story = Story([0, 1, 2, 4, 6, 7, 8], part_reports=part_reports)
    answers = story.play()
    [(header, envelopes)] = story.simulation.audit.members()
    assert header.classes == (5, 2) and header.count == 7
    assert sorted(each.place for each in envelopes) == [0, 0, 0, 0, 0, 1, 1]
    assert len({len(each.inner) for each in envelopes}) == 1
    [batch] = answers.batches()
    assert batch.classes == (5, 2) and batch.n == 7 and not batch.rejected
    assert answers.status()["batches"][0]["classes"] == {"careful": 5, "open": 2}
    assert story.simulation.verdict().sound


def test_the_audit_adds_what_one_device_pays_in_several_classes() -> None:
    promise = {"delta": 1e-3, "device_budget": 3.0}  # one report of the open class, or six of the careful one
    asked = ThrowawayCampaign.of(tables(rounds=2, promise=promise), DEVICES)
    story, key = Story([0, 1], asked=asked), asked.devices[1].signing
    assert story.simulation.verdict().overspent == 0 and key is not None
    drawn = message.draw(asked.campaign.of_class(0), 0, system_entropy())
    story.simulation.audit.record_sent(message.seal(asked.campaign, 2, drawn, key, place=0))
    assert story.simulation.verdict().overspent == 1


@pytest.mark.exhaust
def test_classes_are_counted_after_a_merge_and_with_late_reports() -> None:
    asked = ThrowawayCampaign.of(tables(rounds=2, batch={"minimum": 3, "small": "merge", "late": "next"}), DEVICES)
    story = Story([0, 1], asked=asked)
    story.simulation.pass_time(4_000.0)
    story.fleet.report(2, [3, 1, 5], story.simulation.network, story.simulation.clock)
    story.play()
    [(header, _)] = story.simulation.audit.members()
    assert header.rounds == (1, 2) and header.classes == (1, 3) and header.dropped == {"superseded": 1}
    assert story.simulation.verdict().sound


def test_a_batch_that_does_not_count_its_classes_is_refused() -> None:
    found = counted_campaign()
    analyzer = analyzer_of(found)
    sealed = counted.seal(found, [0, 1, 2, 3], round=1)
    for wrong, kind in (
        (None, "content"), ((4,), "content"), ((1, 1, 2), "content"), ((1, 2), "malformed"), ((-1, 5), "malformed")
    ):  # fmt: skip
        with pytest.raises(Rejected) as refused:
            analyzer.receive(counted.batch(found, sealed, classes=wrong))
        assert refused.value.kind == kind
    assert analyzer.receive(counted.batch(found, sealed, classes=(1, 3))) == "counted"
    plain = counted.campaign()
    with pytest.raises(Rejected, match="of each class"):
        analyzer_of(plain).receive(counted.batch(plain, counted.seal(plain, [0, 1], round=1), classes=(1, 1)))


def test_headers_without_classes_are_what_they_were() -> None:
    bare = Header("a", "0" * 64, "1" * 32, (1,), 2, "2" * 64, {})
    assert counted.SHUFFLER.signing
    assert b"classes" not in bare.sign(counted.SHUFFLER.signing)


def counted_campaign(**changes: Any) -> Campaign:
    krr = f'name = "krr"\nk = 4\nepsilon = 3.0\ncategories = {json.dumps(COMMUTE["randomizer"]["categories"])}'
    return counted.campaign(
        **{"randomizer": krr, "delta": "1e-3", "more": "[classes]\ncareful = 0.5\nopen = 3.0", **changes}
    )


def analyzer_of(found: Campaign) -> Analyzer:
    return Analyzer(AnalyzerCampaigns.of([found], [counted.ANALYZER]), store=counted.store(), clock=FrozenClock(0.0))


def test_estimates_are_weighted_and_widened_where_nobody_knows_whose_reports_are_bad() -> None:
    found = counted_campaign()
    analyzer = analyzer_of(found)
    good = counted.seal(found, [0] * 5 + [1] * 3 + [2] * 2, round=1)
    analyzer.receive(counted.batch(found, good, classes=(4, 6)))
    bad = counted.seal(found, [0] * 5 + [1] * 3 + [2] * 2, round=2)
    analyzer.receive(counted.batch(found, [*bad, good[0], good[1]], rounds=[2], classes=(5, 7)))
    answers = analyzer.answers(found.id)
    first, second = answers.rounds()
    wanted = estimate_mixture_counts([(4, KRR(4, 0.5)), (6, KRR(4, 3.0))], np.array([5, 3, 2, 0]))
    assert first.by_group[""].value.tolist() == wanted.value.tolist() and wanted.bias_bound == 0.0
    assert second.n == 10 and float(second.by_group[""].bias_bound) > 0.0
    document = answers.document(first)
    assert "class and answer are unrelated" in document["weighted"]
    assert answers.window(2, width=2)["weighted"] == answers.frequencies()["weighted"] == document["weighted"]


@pytest.mark.exhaust
def test_estimates_of_batches_whose_classes_are_forgotten_hold_for_any_of_them() -> None:
    found = counted_campaign()
    store = counted.store()
    analyzer = Analyzer(AnalyzerCampaigns.of([found], [counted.ANALYZER]), store=store, clock=FrozenClock(0.0))
    analyzer.receive(counted.batch(found, counted.seal(found, [0] * 6 + [1] * 4, round=1), classes=(3, 7)))

    class Forgetful:
        def batches(self, campaign: str) -> list[BatchRecord]:
            return [replace(batch, classes=()) for batch in store.batches(campaign)]

        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

    forgotten: Any = Forgetful()
    told = CampaignAnswers(found, forgotten).latest().by_group[""]
    for sizes in ((10, 0), (3, 7), (0, 10)):
        each = estimate_mixture_counts(
            list(zip(sizes, (KRR(4, 0.5), KRR(4, 3.0)), strict=True)), np.array([6, 4, 0, 0])
        )
        assert np.abs(each.value - told.value).max() <= float(told.bias_bound) * (1.0 + 1e-12)
    known, promised = analyzer.answers(found.id).guarantees(), CampaignAnswers(found, forgotten).guarantees()
    for one, other in zip(known.classes, promised.classes, strict=True):
        assert isinstance(one.latest, CentralDP) and isinstance(other.latest, CentralDP)
        assert one.latest.epsilon <= other.latest.epsilon


def test_each_class_is_promised_its_own_and_everybody_the_largest() -> None:
    found = counted_campaign(promise="assumed_dishonest = 3")
    released = ReleasedBatch(t=1, sent=20, n=18, smallest=18, classes=(8, 12))
    promised = batch_guarantee(found, released)
    alone = amplify_mixture(4, [(8, 0.5), (12, 3.0)], delta=1e-3, honest=15)
    assert [each.epsilon for each in promised.by_class if isinstance(each, CentralDP)] == [
        each.honest for each in alone
    ]  # three are dishonest and two cannot be read: whoever they are
    assert isinstance(promised.central, CentralDP) and promised.central.epsilon == max(e.honest for e in alone)
    none = batch_guarantee(found, ReleasedBatch(t=1, sent=20, n=18, smallest=18, classes=(0, 20)))
    assert isinstance(none.by_class[0], Missing) and isinstance(none.central, CentralDP)
    few = batch_guarantee(found, ReleasedBatch(t=1, sent=4, n=4, smallest=4, classes=(2, 2)))
    assert isinstance(few.central, Missing) and "nobody who is assumed honest" in few.central.reason


def test_before_anybody_takes_part_everybody_else_is_of_the_largest_epsilon() -> None:
    unknown, worst = (MixedBatch(sizes, 10, 8) for sizes in ((), (1, 10)))
    found = counted_campaign()
    one, other = (compose_promises(found, 0, [each], most=1) for each in (unknown, worst))
    assert isinstance(one, CentralDP) and isinstance(other, CentralDP) and one.epsilon == other.epsilon
    better = compose_promises(found, 0, [MixedBatch((5, 6), 10, 8)], most=1)
    assert isinstance(better, CentralDP) and better.epsilon < one.epsilon


@pytest.mark.exhaust
def test_rounds_compose_per_class_over_the_batches_that_hold_it() -> None:
    found = counted_campaign(budget=6.0, delta="0.01")
    batches = [
        ReleasedBatch(t=t, sent=sum(sizes), n=sum(sizes), smallest=sum(sizes), classes=sizes)
        for t, sizes in enumerate(((6, 6), (3, 9), (0, 20)), 1)
    ]
    careful, open_ = campaign_guarantees(found, batches).classes
    assert (careful.most_reports, open_.most_reports) == (3, 2)
    assert (careful.all_local, open_.all_local) == (1.5, 6.0)
    weakest = compose_promises(found, 0, [MixedBatch((3, 9), 12, 12)] * 2, most=9)
    both = campaign_guarantees(found, batches[:2]).classes[0]
    assert isinstance(weakest, CentralDP) and isinstance(both.composed, CentralDP)
    assert isinstance(careful.composed, CentralDP) and careful.composed.epsilon == both.composed.epsilon
    assert both.composed.epsilon >= weakest.epsilon  # of each class the fewest
    assert isinstance(careful.latest, Missing) and "nobody of this class" in careful.latest.reason


@pytest.mark.exhaust
def test_no_batch_is_called_the_weakest_of_all_and_what_is_said_of_each_holds_for_every_class_in_it() -> None:
    found = counted_campaign()
    batches = [
        ReleasedBatch(t=t, sent=sum(sizes), n=sum(sizes), smallest=sum(sizes), classes=sizes)
        for t, sizes in enumerate(((30, 0), (0, 40), (20, 20), (0, 1)), 1)
    ]
    for some in (batches[:3], batches):
        told = campaign_guarantees(found, some)
        assert told.weakest is None  # the fewest honest people are 30 careful ones, who promise the most
        for place, each in enumerate(told.classes):
            present = [batch_guarantee(found, one).by_class[place] for one in some if one.classes[place]]
            if any(isinstance(one, Missing) for one in present):
                assert isinstance(each.every, Missing) and each.name == "open"
            else:
                assert isinstance(each.every, CentralDP)
                assert each.every.epsilon >= max(one.epsilon for one in present if isinstance(one, CentralDP))


@pytest.mark.exhaust
def test_each_batch_so_far_is_told_only_where_it_is_another_number() -> None:
    found = counted_campaign()
    one, two = (ReleasedBatch(t, sum(s), sum(s), sum(s), classes=s) for t, s in ((1, (5, 6)), (2, (9, 9))))
    names = [[line.name for line in guarantee_sentences(found, campaign_guarantees(found, some))]
             for some in ([one], [one, one], [one, two])]  # fmt: skip
    assert ["Each batch so far, open" in each for each in names] == [False, False, True]


def test_before_anybody_takes_part_the_crowd_is_as_large_as_a_batch() -> None:
    unknown = compose_promises(counted_campaign(), 0, [MixedBatch((), 10, 8)], most=1)
    assert isinstance(unknown, CentralDP) and (unknown.n, unknown.honest_n) == (10, 8)


@pytest.mark.exhaust
def test_rounds_that_are_too_many_to_be_composed_are_told_by_the_budgets_of_each_class() -> None:
    many = ThrowawayCampaign.of(
        tables(rounds=30_000, promise={"delta": 1e-3, "device_budget": 50_000.0}), DEVICES
    ).campaign
    explained = explain(many)
    assert [each.most_reports for each in explained.classes] == [30_000, 16_666]
    assert [each.all_local for each in explained.classes] == [15_000.0, 49_998.0]
    assert all(isinstance(each.composed, Missing) for each in explained.classes)
    words = {line.name: line.words for line in explained.lines}
    assert "30,000 of 30,000 rounds" in words["careful: all reports"]
    few = ThrowawayCampaign.of(tables(rounds=30_000, promise={"delta": 1e-3, "device_budget": 30.0}), DEVICES)
    assert [each.most_reports for each in explain(few.campaign).classes] == [60, 10]


@pytest.mark.exhaust
def test_what_is_promised_and_estimated_is_said_on_the_page_and_in_the_answers() -> None:
    story = Story(list(range(12)))
    answers = story.play()
    page = render([answers])
    said = ["careful", "One report, open", "Latest batch (round 1), careful", "All batches together, open"]
    said += ["class and answer are unrelated", "6 careful, 6 open", "for the class that is most exposed"]
    assert [words for words in said if words not in page] == []
    found = answers.guarantee()
    assert [each["class"] for each in found["by_class"]] == ["careful", "open"]
    assert [each["local"] for each in found["by_class"]] == [0.5, 3.0]
    assert found["latest"]["classes"] == {"careful": 6, "open": 6}
    assert found["local"]["epsilon"] == 3.0
    assert set(answers.guarantee(1)["by_class"]) == {"careful", "open"}
    assert answers.heading()["classes"] == CLASSES


def test_a_campaign_is_explained_class_by_class() -> None:
    found = explain(world().campaign)
    words = {line.name: line.words for line in found.lines}
    assert "a device that is told nothing takes careful" in words["classes"]
    assert "epsilon 0.5" in words["careful: one report"] and "epsilon 3" in words["open: one report"]
    assert "whatever classes the others choose" in words["open: one batch"]
    assert "its class" in words["shuffler"] and "class and answer" in words["shares"]
    assert [each.local for each in found.classes] == [0.5, 3.0]


@pytest.mark.exhaust
def test_a_fleet_of_classes_loses_and_doubles_nothing_and_covers_the_weighted_truth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of eight intervals at 95 % six or more cover but for one fleet in two hundred: this one's noise has a seed."""
    monkeypatch.setattr(
        "dovetail.collect.simulate.simulation.entropy_system_entropy",
        lambda: SimulatedBits(rng_of("fleet of classes")),
    )
    asked = ThrowawayCampaign.of(tables(rounds=2, batch={"minimum": 20}), 40)
    found = simulate(asked, faults=FaultRates(loss=0.1, duplicate=0.1, delay=0.1, crash=0.002), seed=3)
    assert found.sound and len(found.results) == 2
    assert sum(each.covered for each in found.results) >= 6


@pytest.mark.exhaust
def test_new_writes_classes_and_what_is_wrong_with_them_is_one_line(tmp_path: Path) -> None:
    for role in ("owner", "shuffler", "analyzer"):
        assert CliRunner().invoke(app, ["keys", role, f"--out={tmp_path / role}.key"]).exit_code == 0
    public = [f"--{role}={tmp_path / f'{role}.key.pub'}" for role in ("owner", "shuffler", "analyzer")]
    out = tmp_path / "campaign.toml"
    common = ["new", "--id=c", "--question=What?", "--k=4", "--http=http://127.0.0.1:1", f"--out={out}", *public]
    made = CliRunner().invoke(app, [*common, "--classes=careful=1,standard=4", "--count=3"])
    assert made.exit_code == 0, made.output
    text = out.read_text()
    assert "[classes]" in text and "epsilon = 4.0" in text and "device_budget = 12.0" in text
    told = CliRunner().invoke(app, ["check", str(out), "--json"])
    assert [each["class"] for each in json.loads(told.stdout)["by_class"]] == ["careful", "standard"]
    for classes in ("careful", "careful=x", "a=1,a=2", "", "a=inf,b=2", "a=-1,b=2"):
        refused = CliRunner().invoke(app, [*common, f"--classes={classes}", "--force"])
        assert refused.exit_code != 0 and "`--classes` must be" in str(refused.exception), classes
    refused = CliRunner().invoke(app, [*common, "--classes=a=1,b=2", "--dummies=1", "--force"])
    assert isinstance(refused.exception, ConfigError) and "without groups, dummies" in str(refused.exception)

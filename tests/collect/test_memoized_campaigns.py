"""Memoized campaigns: a device draws one report, pays for it once, and sends it in every round."""

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.collect.analyzer.world import KRR, LAPLACE, World, campaign
from tests.collect.device.made import Bench, FakeTransport, opened
from tests.collect.device.made import campaign as device_campaign
from tests.waiting import PATIENCE, until

from dovetail.account.amplify import amplify
from dovetail.cli.main import invoke
from dovetail.collect.campaign.explain import explain
from dovetail.collect.campaign.guarantees import ReleasedBatch, campaign_guarantees
from dovetail.collect.campaign.terms import draft_campaign, require_question, require_same_terms
from dovetail.collect.http import Refusal
from dovetail.collect.simulate.deployment import COMMUTE, Deployment, ThrowawayCampaign, run_servers, schedule
from dovetail.collect.simulate.faults import FaultRates
from dovetail.collect.simulate.simulation import simulate
from dovetail.core.errors import ConfigError
from dovetail.core.guarantee import CentralDP
from dovetail.core.missing import Missing
from dovetail.randomize.krr import KRR as Response
from dovetail_device.ledger import terms_of
from dovetail_device.outbox import BudgetSpent
from dovetail_device.session import limit, line, open_device, submit
from dovetail_protocol.campaign import draft

MEMOIZED = "[memoize]\nconstant_values = true\n"
MANY = 'name = "krr"\nk = 65536\nepsilon = 1.0'  # two reports of which are equal by a chance below 1e-4
HELD = {"memoize": {"constant_values": True}}


def reports(made: Bench) -> list[bytes]:
    return [opened(made.device.campaign, wire)[1] for wire in made.transport.sent]


def test_a_later_round_repeats_the_report_of_the_first_one_whatever_the_value_is_then(tmp_path: Path) -> None:
    asked = device_campaign(randomizer=MANY, budget=1.0, extra=MEMOIZED)
    made = Bench(asked, path=tmp_path / "outbox")
    receipts = [made.device.submit(value, number) for number, value in enumerate((7, 7, 65535), start=1)]
    made.restart()
    receipts.append(made.device.submit(0, 9))
    first, *later = reports(made)
    assert later == [first] * 3 and len(set(made.transport.sent)) == 4
    assert [each.drawn for each in receipts] == [True, False, False, False]
    assert "this value was not used" in line(receipts[-1])
    (record,) = made.outbox.ledgers()
    assert record.spent == made.outbox.spending().spent == 1.0 and record.counts == {"accepted": 4}


def test_reports_are_drawn_anew_where_the_campaign_is_not_memoized_or_is_another_one() -> None:
    """Of 10 reports of 65,536 two are equal by a chance below 1e-3; draws are not fixed, so 10 have to be equal."""
    fresh = Bench(device_campaign(randomizer=MANY, budget=10.0))
    for number in range(1, 11):
        fresh.device.submit(7, number)
    assert len(set(reports(fresh))) > 1 and fresh.outbox.spending().spent == 10.0
    made = Bench(device_campaign(randomizer=MANY, budget=1.0, extra=MEMOIZED))
    for number in range(10):
        made.restart(device_campaign(id=f"c{number}", randomizer=MANY, budget=1.0, extra=MEMOIZED)).submit(7, 1)
    assert made.outbox.spending().spent == 10.0


def test_a_report_that_a_budget_does_not_pay_for_is_not_kept() -> None:
    made = Bench(device_campaign(budget=1.0, extra=MEMOIZED), max_epsilon=1.0)
    made.outbox.limit(type(made.limits)(0.5, 0.5))
    for number in (1, 2):
        with pytest.raises(BudgetSpent):
            made.device.submit("red", number)
    made.outbox.limit(made.limits)
    assert made.device.submit("red", 2).drawn and not made.device.submit("red", 3).drawn


def test_a_version_with_another_memory_is_another_question() -> None:
    again, plain = device_campaign(extra=MEMOIZED), device_campaign(version=2)
    assert terms_of(plain) != terms_of(again)
    with pytest.raises(ConfigError, match="`memoized` differs between the versions 1 and 2"):
        require_same_terms(again, plain)
    made = Bench(again, transport=FakeTransport(file=plain.signed))
    made.device.submit("red", 1)
    assert made.device.campaign.memoized


def batch_of(t: int, n: int = 10_000) -> ReleasedBatch:
    return ReleasedBatch(t=t, sent=n, n=n, smallest=n)


def test_all_rounds_together_cost_one_report_and_promise_nothing_of_batches_that_nobody_can_count() -> None:
    asked = campaign(budget=1.0, more=MEMOIZED, minimum=10_000)
    one = campaign_guarantees(asked, [batch_of(1)])
    amplified = amplify(Response(4, 1.0), n=10_000, delta=1e-6)
    assert isinstance(one.composed, CentralDP) and one.composed.all == amplified.all
    three = campaign_guarantees(asked, [batch_of(t) for t in (1, 2, 3)])
    assert three.most_reports == 3 and three.all_local == 1.0
    assert isinstance(three.composed, Missing) and "nobody knows how many those are" in three.composed.reason
    fresh = campaign_guarantees(campaign(budget=3.0, minimum=10_000), [batch_of(t) for t in (1, 2, 3)])
    assert fresh.all_local == 3.0 and not isinstance(fresh.composed, Missing)


def test_who_takes_part_is_told_that_one_report_is_sent_again() -> None:
    asked = campaign(budget=1.0, more=MEMOIZED, minimum=10_000)
    facts = {fact.name: fact.words for fact in explain(asked).lines}
    assert "sends in at most 1,000 of 1,000 rounds, epsilon 1 together" in facts["all reports"]
    assert "sends it again in others, whatever its value is then" in facts["all reports"]
    assert explain(asked).all_epsilon == 1.0 and "1,000 of 1,000 rounds" not in " ".join(explain(asked).warnings)
    million = explain(draft(asked.signed.replace(b"count = 1000", b"count = 1000000"))).together
    assert isinstance(million, Missing) and "of the same reports" in million.reason
    world = World((campaign(budget=1.0, more=MEMOIZED),))
    for number in (1, 2):
        world.run(number, [0, 1, 2, 3])
    told = world.answers.guarantee()
    assert told["local_of_all_rounds"] == 1.0 and told["memoized"] is True
    words = {each["name"]: each["meaning"] for each in told["words"]}
    assert "Errors do not fall with the number of rounds" in words["One report for all rounds"]
    assert "one is drawn, and paid for" in words["All reports of one device"]
    assert world.answers.window(2, width=1)["groups"]
    with pytest.raises(Refusal, match="one noise in all rounds"):
        world.answers.window(2, width=2)


@pytest.mark.parametrize(
    ("more", "changes", "told"),
    [
        ("[memoize]\n", {}, "takes `constant_values` = true"),
        ("[memoize]\nconstant_values = false\n", {}, "takes `constant_values` = true"),
        ("[memoize]\nconstant_values = 1\n", {}, "takes `constant_values` = true"),
        ('[memoize]\nconstant_values = true\ntime = "day"\n', {}, "takes `constant_values` = true"),
        (MEMOIZED + '[groups]\nnames = ["a", "b"]\n', {}, "without .classes., .groups."),
        (MEMOIZED + "[classes]\na = 0.5\nb = 1.0\n", {}, "without .classes., .groups."),
        (MEMOIZED, {"small": "merge"}, "rounds that mix"),
        (
            MEMOIZED + "[dummies]\nepsilon = 1.0\ndelta = 1e-7\nreach = 99\n",
            {"promise": 'trust = "shuffler"'},
            "noise of people's own",
        ),
    ],
)
def test_what_does_not_go_with_one_report_for_all_rounds_is_refused_in_one_line(
    more: str, changes: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError, match=told) as refused:
        campaign(more=more, **changes)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("randomizer", [KRR, LAPLACE])
def test_an_order_with_alpha_is_refused_also_where_no_question_is_named(randomizer: str) -> None:
    order = "shuffler = 'mallows'\nalpha = 1.0\npublic = 'p.csv'\npublic_sha256 = '" + "0" * 64 + "'\n"
    asked = campaign(randomizer, shuffle=order + "[shuffle.groups]\nlabels = 'age'", more=MEMOIZED)
    with pytest.raises(ConfigError, match="what orders tell of the same people adds"):
        require_question(asked)


def test_the_command_line_writes_a_campaign_that_costs_one_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for role in ("owner", "shuffler", "analyzer"):
        assert invoke(["collect", "keys", role, "--out", f"{role}.key"]) == 0
    keys = [part for role in ("owner", "shuffler", "analyzer") for part in (f"--{role}", f"{role}.key.pub")]
    named = ["--id", "way", "--question", "Which way?", "--categories", "walk,bike", "--epsilon", "1.5"]
    assert invoke(["collect", "new", *keys, *named, "--count", "30", "--memoize"]) == 0
    made = draft_campaign((tmp_path / "campaign.toml").read_bytes())
    assert made.memoized and made.promise.device_budget == 1.5 and made.affordable == 30
    assert draft((tmp_path / "campaign.toml").read_bytes()).memoized
    capsys.readouterr()
    assert invoke(["collect", "new", *keys, *named, "--memoize", "--groups", "a,b", "--force"]) == 2
    assert "[memoize] goes with" in capsys.readouterr().err


def test_reports_are_counted_once_a_round_whatever_crashes() -> None:
    world = ThrowawayCampaign.of(COMMUTE | HELD | {"rounds": schedule(3), "batch": {"minimum": 60}}, 100)
    assert world.campaign.promise.device_budget == 2.0
    found = simulate(world, faults=FaultRates(loss=0.1, duplicate=0.1, delay=0.1, crash=0.002), seed=1)
    assert found.sound and len(found.results) == 3


@pytest.mark.exhaust
def test_two_rounds_of_the_same_people_tell_the_same_over_http(tmp_path: Path) -> None:
    """Fresh reports of 60 people in four answers would have equal counts by a chance below .01."""
    people = 60
    asked = COMMUTE | HELD | {"rounds": {"schedule": "manual", "count": 2}}
    asked |= {"batch": {"minimum": people, "close_at": people}}
    site = Deployment.of(asked, tmp_path / "site", devices=people)
    site.write()
    with (
        run_servers(site),
        closing(httpx.Client(base_url=site.analyzer, trust_env=False, timeout=PATIENCE)) as client,
    ):

        def told(count: int) -> Any:
            headers = {"Authorization": f"Bearer {site.token}"}
            found = client.get("/v1/campaigns/commute/estimates", headers=headers).json()["estimates"]
            return found if len(found) == count else None

        for number in (1, 2):
            for slot in range(people):
                limit(site.device(slot), total=2.0, per_question=2.0)
                with open_device(site.folder / "campaign.toml", site.device(slot)) as device:
                    value = (slot + number) % 4  # other ones in the second round, which nobody uses
                    assert submit(device, value, number, patience=PATIENCE).state == "accepted"
            found = until(partial(told, number))
    first, second = (each["groups"][0] for each in found)
    assert first["value"] == second["value"] and np.isfinite(first["value"]).all()

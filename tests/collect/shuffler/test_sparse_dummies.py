"""Sparse dummies in the service: reports are kept by chance, and nobody learns how many."""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.collect.shuffler.test_batch_dummies import DEVICES, K, expect_refused, keys_of, tables
from tests.statistics import expect_broken, expect_law, expect_mean
from typer.testing import CliRunner

from dovetail.cli.collect import app
from dovetail.collect.analyzer.answers import CampaignAnswers
from dovetail.collect.batch import Header
from dovetail.collect.campaign.explain import explain
from dovetail.collect.campaign.guarantees import ReleasedBatch, batch_guarantee, guarantee_of_rounds
from dovetail.collect.campaign.terms import added_dummies, draft_campaign, law_of, readable_people
from dovetail.collect.shuffler import batches
from dovetail.collect.shuffler.batches import BatchDummies
from dovetail.collect.simulate.deployment import COMMUTE, PERIOD, ThrowawayCampaign
from dovetail.collect.simulate.faults import FaultRates, SeededChance
from dovetail.collect.simulate.simulation import SimulatedDevices, Simulation, simulate
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import ParameterError
from dovetail.core.guarantee import CentralDP
from dovetail.core.missing import Missing
from dovetail.shuffle.sampling.dummies import SparseDummies
from dovetail_device.ledger import terms_of
from dovetail_protocol import messages
from dovetail_protocol.dummies import SCALE, SparseRule
from dovetail_protocol.messages import Rejected

FEW = SparseDummies(K, 1.0)
RULE = {"epsilon": FEW.epsilon, "kept": float(FEW.kept), "more": float(FEW.more)}
OPEN = {"name": "none", "k": K, "categories": COMMUTE["randomizer"]["categories"]}


def sparse(**changes: Any) -> dict[str, Any]:
    """The campaign whose shuffler keeps reports by chance among few dummies."""
    promise = {"delta": 1e-6, "trust": "shuffler", "device_budget": 12.0}
    own: dict[str, Any] = {"rounds": 1, "randomizer": OPEN, "dummies": RULE, "promise": promise}
    return tables(**own | changes)


@cache
def world() -> ThrowawayCampaign:
    return ThrowawayCampaign.of(sparse(), DEVICES)


def played(seed: int = 7, stores: tuple[str, str] = ("sqlite://", "sqlite://")) -> Simulation:
    """One round, from the devices to the analyzer."""
    made = Simulation(
        world(), dies=lambda role: False, fate=lambda role: "arrives", stores=stores, rng=simulation(seed)
    )
    SimulatedDevices.of(world(), made.dying, SeededChance(1)).report(1, range(DEVICES), made.network, made.clock)
    for _ in range(8):
        made.pass_time(PERIOD)
    return made


def batch_of(made: Simulation) -> tuple[Header, list[bytes], int]:
    """The only batch: its header, its entries, and how many of them devices have sent."""
    [(header, body)] = made.audit._batches.values()
    entries = made.audit._entries(body)
    return header, entries, sum(inner in made.audit._by_inner for inner in entries)


# What leaves the shuffler, against the account


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_no_batch_of_a_few_people_is_likelier_than_the_campaign_promises(epsilon: float) -> None:
    """Every histogram of a batch with at most six entries of a symbol, by the stated law, in exact fractions.

    Somebody who knows all others and sees the batch, and how many people are in it, learns no more than the promise.
    """
    few = SparseDummies(2, epsilon)
    rule = {"epsilon": epsilon, "kept": float(few.kept), "more": float(few.more)}
    asked = ThrowawayCampaign.of(sparse(randomizer={"name": "none", "k": 2}, dummies=rule), 1).campaign
    law = added_dummies(asked)
    assert law is not None
    numbers = law_of(law)
    kept, more = Fraction(numbers[0], numbers[2]), Fraction(numbers[1], numbers[2])
    promise = batch_guarantee(asked, ReleasedBatch(1, 3, 3, 3)).central
    assert isinstance(promise, CentralDP) and promise.delta == 0.0 and promise.epsilon <= asked.charged

    def chance(held: int, seen: int) -> Fraction:
        return sum(
            (
                math.comb(held, one) * kept**one * (1 - kept) ** (held - one) * (1 - more) * more ** (seen - one)
                for one in range(min(held, seen) + 1)
            ),
            Fraction(0),
        )

    worst = 0.0
    for others in product(range(4), repeat=2):
        for seen in product(range(7), repeat=2):
            p = chance(others[0] + 1, seen[0]) * chance(others[1], seen[1])
            q = chance(others[0], seen[0]) * chance(others[1] + 1, seen[1])
            worst = max(worst, abs(math.log(p / q)))
    assert worst <= promise.epsilon and worst >= promise.epsilon * (1.0 - 1e-6)


def test_entries_of_a_batch_have_the_law_that_the_account_counts(rng: Entropy) -> None:
    campaign, n = world().campaign, 5
    made = [BatchDummies.draw(campaign, 1, n, rng) for _ in range(4000)]
    kept = np.array([n - one.left_out for one in made])
    chances = np.array(
        [math.comb(n, at) * RULE["kept"] ** at * (1.0 - RULE["kept"]) ** (n - at) for at in range(n + 1)]
    )
    expect_law(np.bincount(kept, minlength=n + 1), chances)
    expect_broken(np.bincount(kept, minlength=n + 1), chances[::-1])
    of_a_symbol = np.bincount([int((one._symbols == 0).sum()) for one in made], minlength=9)
    geometric = (1.0 - RULE["more"]) * RULE["more"] ** np.arange(of_a_symbol.size)
    geometric[-1] = RULE["more"] ** (of_a_symbol.size - 1)
    expect_law(of_a_symbol, geometric)
    assert "_kept" not in repr(made[0]) and "_symbols" not in repr(made[0])


@pytest.mark.exhaust
def test_who_is_left_out_and_where_dummies_are_depends_on_no_place() -> None:
    means, present = [], []
    for seed in range(110):
        made = played(seed)
        _, entries, _ = batch_of(made)
        own = [made.audit._by_inner.get(inner) for inner in entries]
        places = [place for place, one in enumerate(own) if one is not None]
        if places and len(entries) > 1:
            means.append(float(np.mean(places)) / (len(entries) - 1))
        sent = [made.audit._by_inner[inner] for inner in made.audit._by_inner]
        present.append([one in own for one in sent])
    expect_mean(np.array(means)[:, None], [0.5], against=[0.1])
    each = np.array(present, dtype=float)
    halves = np.column_stack([each[:, :6].mean(axis=1), each[:, 6:].mean(axis=1)])
    expect_mean(halves, [RULE["kept"]] * 2, against=[1.0, 1.0])


def test_a_batch_takes_as_much_work_whoever_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many reports are opened as people sent, and as many entries sealed as the batch holds: both are public."""
    work: Counter[str] = Counter()
    seal, read = messages.seal_inner, batches.ClosedRound.read_packed

    def sealed(*given: Any) -> bytes:
        work["sealed"] += 1
        return seal(*given)

    def opened(self: Any, tags: Any) -> list[bytes]:
        work["opened"] += len(tags)
        return read(self, tags)

    monkeypatch.setattr(batches, "seal_inner", sealed)
    monkeypatch.setattr(batches.ClosedRound, "read_packed", opened)
    header, entries, kept = batch_of(played())
    assert work == {"sealed": len(entries), "opened": DEVICES} and header.count == len(entries) and kept < DEVICES


def test_no_table_header_or_log_holds_how_many_were_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    place = tmp_path / "shuffler.sqlite"
    made = played(3, (f"sqlite:///{place}", "sqlite://"))  # five are kept, seven are not
    header, _, kept = batch_of(made)
    made.close()
    assert kept == 5 and len({kept, DEVICES - kept, K, DEVICES}) == 4
    assert header.people == DEVICES and header.dropped == {} and kept not in vars(header).values()
    with sqlite3.connect(place) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = [cell for name in names for row in database.execute(f"SELECT * FROM {name}") for cell in row]
    assert DEVICES in found and kept not in found and DEVICES - kept not in found
    logged = [value for record in caplog.records for value in getattr(record, "fields", {}).values()]
    assert DEVICES in logged and kept not in logged and DEVICES - kept not in logged


@pytest.mark.exhaust
@pytest.mark.parametrize(("small", "late"), [("wait", "refuse"), ("merge", "next"), ("drop", "next")])
def test_every_rule_accounts_for_every_report_that_is_kept_by_chance(small: str, late: str) -> None:
    rule = {"minimum": 24, "small": small, "late": late}
    asked = ThrowawayCampaign.of(sparse(batch=rule, rounds=2), 30)
    found = simulate(asked, faults=FaultRates(loss=0.1, duplicate=0.15, delay=0.1, crash=0.01), seed=3)
    assert found.sound and found.results
    assert found.verdict.dropped > 0  # all of 24 are kept with probability 2e-10


@pytest.mark.parametrize("dies_at", [22, 30, 33])
def test_a_crash_never_draws_coins_for_a_batch_that_has_left(dies_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, draw, asked = list[str](), BatchDummies.draw, iter(range(1, 10**6))
    made = Simulation(
        world(), dies=lambda role: role == "shuffler" and next(asked) == dies_at, fate=lambda role: "arrives",
        stores=("sqlite://", "sqlite://"), rng=simulation(dies_at),
    )  # fmt: skip

    def noted(campaign: Any, round: int, entries: int, rng: Entropy) -> BatchDummies:
        drawn.extend(each.state for each in made.store.rounds(campaign.id) if each.number == round)
        return draw(campaign, round, entries, rng)

    monkeypatch.setattr(BatchDummies, "draw", noted)
    SimulatedDevices.of(world(), made.dying, SeededChance(1)).report(1, range(DEVICES), made.network, made.clock)
    for _ in range(8):
        made.pass_time(PERIOD)
        made.deliver_late()
    assert made.verdict().sound and made.crashes["shuffler"] == 1 and len(made.audit._batches) == 1
    assert drawn and set(drawn) <= {"open", "held"}


# What the analyzer takes, says and takes away


def test_the_analyzer_takes_the_noise_away_and_says_whose_it_is() -> None:
    made = played()
    header, entries, kept = batch_of(made)
    assert header.dummies == law_of(FEW) and added_dummies(world().campaign) == FEW
    assert header.dummies == tuple(map(int, (RULE["kept"] * SCALE, RULE["more"] * SCALE, SCALE, 0)))
    answers = CampaignAnswers(world().campaign, made.counted)
    [each] = answers.rounds()
    [batch] = answers.batches()
    assert (batch.count, batch.n, batch.smallest, each.n) == (DEVICES, DEVICES, DEVICES, DEVICES)
    total = float(np.sum(each.by_group[""].value)) * DEVICES  # not projected: that many are not known to be here
    assert total == pytest.approx((len(entries) - FEW.total) / float(FEW.kept)) and total != pytest.approx(DEVICES)
    said = answers.guarantee()
    assert said["latest"]["central"]["delta"] == 0.0 and 0.99 < said["latest"]["central"]["epsilon"] <= 1.0
    words = " ".join(line["meaning"] for line in said["words"])
    assert f"valid reports of distinct devices with probability {float(FEW.kept):.3g}, and adds few dummies" in words
    told = explain(world().campaign)
    assert any("it keeps each report with probability 0.393" in line.words for line in told.lines)
    assert kept < DEVICES


def test_a_shuffler_that_keeps_or_adds_others_is_noticed() -> None:
    made = played()
    [(header, body)] = made.audit._batches.values()
    signing = world().shuffler.signing
    assert signing is not None and header.dummies is not None
    kept, more, scale, chance = header.dummies
    for place, law in enumerate([None, (kept + 1, more, scale, chance), (kept, more - 1, scale, chance), (1, 2, 13)]):
        changed: dict[str, Any] = {"people": None} if law is None else {}
        wrong = replace(header, batch=f"{place:032x}", dummies=law, **changed)
        with pytest.raises(Rejected, match=r"adds no dummies, or others|something else than it should"):
            made.analyzer.receive(wrong.sign(signing) + body)
    crowd = replace(header, batch="9" * 32, people=10**4)
    with pytest.raises(Rejected, match="its shuffler keeps others, or adds others"):
        made.analyzer.receive(crowd.sign(signing) + body)


def test_reports_that_cannot_be_read_stand_for_those_that_were_left_out() -> None:
    campaign = world().campaign
    assert [readable_people(campaign, 1000, bad) for bad in (0, 1, 393, 10**6)] == [1000, 997, 1, 0]
    others = ThrowawayCampaign.of(tables(rounds=1), 1).campaign
    assert [readable_people(others, 1000, bad) for bad in (0, 1, 393)] == [1000, 999, 607]


def test_what_is_kept_belongs_to_the_terms_that_a_device_answers_by() -> None:
    """Those of other dummies are what they were before there were sparse ones: outboxes know them by this text."""
    others = ThrowawayCampaign.of(tables(rounds=1), 1).campaign
    assert repr(others.dummies) == "DummiesRule(epsilon=1.0, delta=0.001, reach=13, variance=None)"
    made = world().campaign
    assert isinstance(made.dummies, SparseRule)
    assert terms_of(made) != terms_of(replace(made, dummies=replace(made.dummies, more=0.25)))


def test_batches_about_the_same_people_compose_by_their_exact_law() -> None:
    campaign = world().campaign
    one, twelve = (guarantee_of_rounds(campaign, n=100, rounds=many) for many in (1, 12))
    assert isinstance(one, CentralDP) and isinstance(twelve, CentralDP)
    assert one.delta == 0.0 and one.epsilon <= 1.0 and twelve.delta == campaign.promise.delta
    assert 8.0 < twelve.epsilon < 12.0 and twelve.colluding == math.inf


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dummies": {**RULE, "kept": 0.5}}, "asks for `kept` and `more` of .*drafted for another version"),
        ({"dummies": {**RULE, "epsilon": 0.9}}, "asks for `kept` and `more` of .*drafted for another version"),
        ({"dummies": {**RULE, "kept": 0.3}}, "`dummies.kept` must be above 0 and at most 1, and a multiple of 2"),
        ({"dummies": {"epsilon": 1.0, "kept": 0.5}}, r"`more` is missing in \[dummies\]"),
        ({"dummies": {**RULE, "delta": 1e-6}}, "`dummies.delta` is not a key"),
        ({"randomizer": {**OPEN, "name": "krr", "epsilon": 4.0}}, "sparse dummies, with `kept`, go with"),
        ({"groups": {"names": ["north", "south"]}}, "without public"),
        ({"dummies": {**RULE, "epsilon": 1e-9}}, r"in \[dummies\]: `epsilon` must be"),
    ],
)
def test_campaigns_with_other_sparse_dummies_are_refused_in_one_line(change: dict[str, Any], message: str) -> None:
    expect_refused(sparse(**change), message)


def test_the_owner_drafts_a_campaign_whose_rounds_keep_what_she_asks_for_together(tmp_path: Path) -> None:
    words = ["new", "--id", "commute", "--question", "How?", "--count", "12", "--manual", "--minimum", "500"]
    words += [
        word for role in ("owner", "shuffler", "analyzer") for word in (f"--{role}", str(keys_of(tmp_path, role)))
    ]
    words += ["--http", "http://127.0.0.1:8401", "--out", str(tmp_path / "campaign.toml"), "--sparse"]
    done = CliRunner().invoke(app, [*words, "--k", "100000", "--dummies", "1"])
    assert done.exit_code == 0, done.output
    made = draft_campaign((tmp_path / "campaign.toml").read_bytes())
    assert made.dummies is not None and made.dummies.by_chance and made.open and made.charged_delta == 0.0
    assert made.affordable == 12 and "How likely a report is kept" in (tmp_path / "campaign.toml").read_text()
    together = explain(made).together
    assert not isinstance(together, Missing) and together.epsilon is not None and 0.99 < together.epsilon <= 1.0
    for more, message in ((["--k", "9"], "--sparse goes with --dummies"), (["--dummies", "1"], "answers of a list")):
        with pytest.raises(ParameterError, match=message):
            CliRunner().invoke(app, [*words, *more, "--force"], catch_exceptions=False)

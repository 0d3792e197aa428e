"""The simulation: every report is accounted for under every rule, and the estimates are those of its people."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tiers import tiered
from tests.waiting import PATIENCE
from typer.testing import CliRunner

from dovetail.cli.collect import app
from dovetail.collect.shuffler.intake import ACCEPTED, CheckedReport, Reply, ReportIntake
from dovetail.collect.simulate.deployment import (
    APPLIANCE,
    COMMUTE,
    ThrowawayCampaign,
    schedule,
    simulated_document,
    with_tokens,
)
from dovetail.collect.simulate.faults import FaultRates, SeededChance
from dovetail.collect.simulate.simulation import SimulatedDevices, Simulation, SimulationResult, simulate
from dovetail.core.entropy import simulation
from dovetail.core.errors import ConfigError, ParameterError

NO_FAULTS = FaultRates(loss=0.0, duplicate=0.0, delay=0.0, crash=0.0)
ALL_FAULTS = FaultRates(loss=0.15, duplicate=0.15, delay=0.15, crash=0.01)


def world(devices: int = 20, *, rounds: int = 3, base: dict[str, Any] = COMMUTE, **batch: Any) -> ThrowawayCampaign:
    tables = base | {"rounds": schedule(rounds, grace=60.0), "batch": {"minimum": 10} | batch}
    return ThrowawayCampaign.of(tables, devices)


# Laws


@pytest.mark.exhaust
@pytest.mark.parametrize("small", ["wait", "merge", "drop"])
@pytest.mark.parametrize("late", ["refuse", "next"])
@pytest.mark.parametrize("minimum", tiered([5, 18, 50], first=lambda minimum: minimum == 18))
def test_every_rule_accounts_for_every_report(small: str, late: str, minimum: int) -> None:
    found = simulate(world(small=small, late=late, minimum=minimum), faults=ALL_FAULTS, seed=minimum)
    verdict = found.verdict
    assert found.sound and verdict.acknowledged > 40
    assert verdict.stored == verdict.batched + verdict.waiting + verdict.dropped
    assert sum(result.n for result in found.results) == verdict.batched
    assert all(result.n >= minimum for result in found.results)
    if minimum == 50:  # more than there are devices: nothing is ever released
        assert verdict.batched == 0 and (verdict.waiting > 0) == (small == "wait")
    if minimum == 5:
        assert verdict.batched > 40


def test_without_faults_everybody_is_in_every_round() -> None:
    found = simulate(world(), faults=NO_FAULTS, seed=1)
    assert [result.rounds for result in found.results] == [(1,), (2,), (3,)]
    assert {result.n for result in found.results} == {20}
    assert found.crashes == {"device": 0, "shuffler": 0, "analyzer": 0} and found.messages == {"accepted": 60}


@pytest.mark.exhaust
def test_a_budget_stops_devices() -> None:
    tables = COMMUTE | {"rounds": schedule(5), "batch": {"minimum": 5}}
    tables |= {"promise": {"delta": 1e-6, "device_budget": 6.5}}  # three reports of epsilon 2
    found = simulate(ThrowawayCampaign.of(tables, 10), faults=ALL_FAULTS, seed=2)
    assert found.sound and found.verdict.drawn == 30


@pytest.mark.exhaust
def test_numbers_and_public_groups_are_simulated_too() -> None:
    tables = world(base=APPLIANCE).campaign
    assert tables.precision == (0.5, 0.9)
    grouped = APPLIANCE | {"groups": {"names": ["north", "south"]}}
    found = simulate(world(30, base=grouped), faults=ALL_FAULTS, seed=3)
    assert found.sound and all(result.truth.shape == (1,) for result in found.results)


@pytest.mark.exhaust
def test_without_noise_estimates_are_the_truth_of_those_who_are_in_a_batch() -> None:
    """At an epsilon of 40; whose intervals cover with noise: `tests/estimate/test_coverage.py`."""
    loud = COMMUTE | {"randomizer": COMMUTE["randomizer"] | {"epsilon": 40.0}}
    loud |= {"promise": {"delta": 1e-6, "device_budget": 1000.0}}
    loud |= {"rounds": schedule(5), "batch": {"minimum": 20, "small": "merge", "late": "next"}}
    found = simulate(ThrowawayCampaign.of(loud, 50), faults=FaultRates(crash=0.002), seed=1)
    assert found.sound and len(found.results) > 2
    for result in found.results:
        assert result.value == pytest.approx(result.truth) and result.truth.sum() == pytest.approx(1.0)
        assert ((result.interval[:, 0] <= result.truth) & (result.truth <= result.interval[:, 1])).all()


@pytest.mark.exhaust
def test_answers_and_faults_come_from_the_seed() -> None:
    def found(seed: int) -> SimulationResult:
        return simulate(ASKED, faults=replace(ALL_FAULTS, crash=0.0), seed=seed)

    first, again, other = found(5), found(5), found(6)
    assert [r.truth.tolist() for r in first.results] == [r.truth.tolist() for r in again.results]
    assert [r.truth.tolist() for r in first.results] != [r.truth.tolist() for r in other.results]


ASKED = world(rounds=2)


# The watcher must see what is wrong


def collected() -> Simulation:
    """A collection with one batch that is counted, and reports that wait."""
    simulated = Simulation(world(12, rounds=2), dies=lambda _: False, fate=lambda _: "arrives", rng=simulation(1))
    fleet = SimulatedDevices.of(simulated.world, simulated.dying, SeededChance(1))
    fleet.report(1, range(12), simulated.network, simulated.clock)
    simulated.pass_time(3700.0)
    fleet.report(2, range(5), simulated.network, simulated.clock)
    fleet.close()
    return simulated


@pytest.mark.exhaust
def test_the_watcher_finds_nothing_wrong_with_an_honest_collection() -> None:
    simulated = collected()
    verdict = simulated.verdict()
    assert verdict.sound and (verdict.batched, verdict.waiting, verdict.dropped) == (12, 5, 0)
    assert (
        simulated.audit.count_miscounted(simulated.counted) == simulated.audit.count_uncounted(simulated.counted) == 0
    )


@pytest.mark.exhaust
def test_the_watcher_sees_a_batch_that_is_handed_over_differently() -> None:
    simulated = collected()
    ((header, body),) = simulated.audit._batches.values()
    size = len(body) // header.count
    signing = simulated.world.shuffler.signing
    assert signing
    simulated.audit.record_batch(header.sign(signing), body[size:] + body[:size])
    assert simulated.verdict().changed == 1
    renamed = replace(header, batch="0" * 32)
    simulated.audit.record_batch(renamed.sign(signing), body)
    assert simulated.verdict().doubled == 12 and simulated.audit.count_uncounted(simulated.counted) == 1


@pytest.mark.exhaust
def test_the_watcher_sees_a_lost_report() -> None:
    simulated = collected()
    simulated.store.drop("commute", 2)
    assert simulated.verdict().sound and simulated.verdict().dropped == 5  # said, and so not lost
    simulated.audit.record_acknowledged(_sent_by_nobody_else(simulated))
    assert simulated.verdict().lost == 1


@pytest.mark.exhaust
def test_the_watcher_sees_batches_that_are_miscounted() -> None:
    simulated = collected()
    simulated.audit._batches.clear()
    assert simulated.audit.count_miscounted(simulated.counted) == 1  # counted, and never sent


def _sent_by_nobody_else(simulated: Simulation) -> bytes:
    """A message that the network loses, and that somebody calls acknowledged."""
    fleet = SimulatedDevices.of(simulated.world, simulated.dying, SeededChance(1))
    before = set(simulated.audit.messages)
    simulated.network._fate = lambda: "lost"
    fleet.report(2, [11], simulated.network, simulated.clock)
    fleet.close()
    (wire,) = set(simulated.audit.messages) - before
    return wire


@pytest.mark.exhaust
def test_the_watcher_sees_a_person_with_two_reports_of_a_round_under_two_keys() -> None:
    """As where an issuer sells twice: no key in a message says that they are of one person."""
    asked = ThrowawayCampaign.of(with_tokens(COMMUTE) | {"rounds": schedule(1), "batch": {"minimum": 2}}, 2)
    simulated = Simulation(asked, dies=lambda _: False, fate=lambda _: "arrives", rng=simulation(1))
    fleet = SimulatedDevices.of(asked, simulated.dying, SeededChance(1), simulated.issuer)
    fleet.report(1, range(2), simulated.network, simulated.clock)
    assert simulated.verdict().sound and simulated.verdict().acknowledged == 2
    people = simulated.audit._people
    people.update(dict.fromkeys(people, b"one person"))
    assert simulated.verdict().second == 1
    fleet.close()


# Parts


@pytest.mark.parametrize("name", ["loss", "duplicate", "delay", "crash"])
@pytest.mark.parametrize("value", [-0.1, 1.0, float("nan"), "much"])
def test_faults_are_probabilities_below_one(name: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=name):
        FaultRates(**{name: value})


def test_chance_is_uniform() -> None:
    chance = SeededChance(7)
    drawn = np.array([chance.number() for _ in range(20_000)])
    assert drawn.min() >= 0.0 and drawn.max() < 1.0
    assert abs(drawn.mean() - 0.5) < 6.2 * np.sqrt(1 / 12 / drawn.size)  # 6.2 standard errors: 1e-9


def test_a_campaign_file_keeps_its_rules_and_loses_its_keys(tmp_path: Path) -> None:
    asked = world(small="merge", late="next", minimum=7).campaign
    unsigned = asked.signed.rpartition(b"# signed: ")[0]  # a draft does
    (tmp_path / "campaign.toml").write_bytes(unsigned)
    made = ThrowawayCampaign.of(simulated_document(tmp_path / "campaign.toml", rounds=2), 9).campaign
    assert made.batch == asked.batch and made.mechanism == asked.mechanism and made.question == asked.question
    assert made.schedule.count == 2 and made.analyzer != asked.analyzer and made.owner != asked.owner


# The command line


def run(*words: str) -> Any:
    result = CliRunner().invoke(app, ["simulate", *words])
    assert result.exception is None, result.exception
    return result


@pytest.mark.exhaust
def test_the_verb_prints_one_json_document() -> None:
    found = json.loads(run("--devices", "110", "--rounds", "2", "--crash", "0.01", "--json").stdout)
    assert list(found) == [
        *("schema_version", "campaign", "sound", "reports", "miscounted", "messages", "crashes", "level", "rounds")
    ]
    assert found["sound"] is True and found["miscounted"] == 0
    assert list(found["reports"]) == [
        *("drawn", "acknowledged", "stored", "batched", "waiting", "dropped"),
        *("lost", "doubled", "second", "crowded", "changed", "overspent"),
    ]
    assert all(list(each) == ["rounds", "n", "truth", "value", "interval", "covered"] for each in found["rounds"])


@pytest.mark.exhaust
def test_the_verb_prints_tables_and_no_log(tmp_path: Path) -> None:
    (tmp_path / "campaign.toml").write_bytes(
        world(small="drop", minimum=50).campaign.signed
    )  # a round that is dropped
    words = ["--campaign", str(tmp_path / "campaign.toml"), "--devices", "5", "--rounds", "2", "--loss", "0"]
    command = [sys.executable, "-m", "dovetail", "collect", "simulate", *words]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert "commute, simulated" in result.stdout and "counted twice" in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--devices", "0"], "--devices"),
        (["--rounds", "1.5"], "--rounds"),
        (["--loss", "1"], "loss"),
        (["--campaign", "nowhere.toml"], "nowhere.toml: no such campaign file."),
    ],
)
def test_wrong_options_are_one_line(words: list[str], said: str) -> None:
    error = CliRunner().invoke(app, ["simulate", *words]).exception
    assert isinstance(error, (ParameterError, ConfigError)) and said in str(error) and "\n" not in str(error)


@pytest.mark.exhaust
def test_a_loss_ends_with_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = ReportIntake.commit

    def losing(ingest: ReportIntake, reports: Sequence[CheckedReport], now: float) -> list[Reply]:
        honest(ingest, reports[1:], now)
        return [Reply(ACCEPTED) for _ in reports]

    monkeypatch.setattr(ReportIntake, "commit", losing)
    assert CliRunner().invoke(app, ["simulate", "--devices", "5", "--rounds", "1"]).exit_code == 1

"""One cap over all releases of a fleet, kept by the private ledger, in the decimals that devices count in."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.job.fleets import OWN, ROSTER, VALUES, Truth, fleet_run, long
from tests.job.streams import loads, release

import dovetail as dt
from dovetail.core.entropy import simulation
from dovetail.core.errors import ConfigError, DataError, ParameterError, StorageError, UnsupportedError
from dovetail.core.estimate import Estimate
from dovetail.core.stages import Reports
from dovetail.job.fleet import Fleet, FleetBudget, FleetRun
from dovetail.ledger.releases import ReleaseLedger
from dovetail.randomize.laplace import Laplace
from dovetail.report.document import PrivacyReport
from dovetail.report.rounds import budget_table
from dovetail.shuffle.rase import RASE
from dovetail.shuffle.uniform import Uniform
from dovetail_protocol.exact_thresholds import as_written

CAP = {"cap": 8.0}
WATTS = Laplace(lower=0.0, upper=100.0, epsilon=1.0, grid=0.25)


def rounds(first: int, last: int) -> pl.DataFrame:
    """These rounds of the stream."""
    return loads().filter(pl.col("minute").is_between(first, last))


def go(folder: Path, table: pl.DataFrame, new_release: bool = False, **changes: Any) -> PrivacyReport:
    config = release(**{"estimate": {"window": 1}, "promise": CAP, **changes})
    return dt.run(config, table=table, ledger=folder, new_release=new_release)


def spent(report: PrivacyReport) -> tuple[float, float, float, int]:
    """What the report says was spent: by the round table, locally, by the ledger; and how many reports it has."""
    told = report.document()
    rounds = told["rounds"]
    return rounds["largest_spent"], told["local"]["epsilon"], told["release"]["total_epsilon"], rounds["reports"]


# Releases


@pytest.mark.exhaust
def test_a_cap_holds_over_all_releases_of_a_fleet(tmp_path: Path) -> None:
    assert spent(go(tmp_path, rounds(1, 5))) == (5.0, 5.0, 5.0, 30)
    later = go(tmp_path, rounds(6, 12))
    assert spent(later) == (8.0, 8.0, 8.0, 18)
    assert later.document()["rounds"]["spent_before"] == 5.0 and later.document()["rounds"]["held_back"] == 24
    assert any("ε = 5 in earlier releases" in line for line in later.assumptions)
    with pytest.raises(UnsupportedError, match="every device of this stream has spent its cap of 8 nats"):
        go(tmp_path, rounds(1, 12))
    with pytest.raises(UnsupportedError, match="every device of this stream has spent its cap of 8 nats"):
        go(tmp_path, rounds(1, 12), new_release=True)
    assert len(ReleaseLedger(tmp_path).entries()) == 2


@pytest.mark.exhaust
def test_a_round_that_was_released_is_drawn_afresh_only_if_that_is_asked_for(tmp_path: Path) -> None:
    larger = {"promise": {"cap": 20.0}}
    go(tmp_path, rounds(1, 5), **larger)
    changed = rounds(5, 12).with_columns(watts=pl.lit(50.0))
    with pytest.raises(UnsupportedError, match=r"6 of these 48 reports were released before.*--new-release"):
        go(tmp_path, changed, **larger)
    fresh = go(tmp_path, changed, new_release=True, **larger)
    assert spent(fresh) == (13.0, 13.0, 13.0, 48)


@pytest.mark.exhaust
def test_a_release_is_reproduced_with_what_was_spent_when_it_was_made(tmp_path: Path) -> None:
    first = go(tmp_path, rounds(1, 5))
    second = go(tmp_path, rounds(6, 12))
    for made, part in ((first, rounds(1, 5)), (second, rounds(6, 12))):
        again = go(tmp_path, part)
        assert isinstance(made.sanitized, pl.DataFrame) and made.sanitized.equals(again.sanitized)
        assert made.document()["rounds"] == again.document()["rounds"]
        assert again.evaluation.local.epsilon == 8.0  # of everything released since, too


@pytest.mark.exhaust
def test_spending_is_counted_device_by_device(tmp_path: Path) -> None:
    mine = pl.col("house") == "north"
    go(tmp_path, rounds(1, 5).filter(mine))
    go(tmp_path, rounds(1, 3).filter(~mine))
    third = go(tmp_path, rounds(6, 12))
    assert third.document()["rounds"]["reports"] == 2 * 3 + 4 * 5 and spent(third)[:3] == (8.0, 8.0, 8.0)


@pytest.mark.exhaust
def test_another_quantity_of_the_same_rounds_is_released_and_its_budget_counts(tmp_path: Path) -> None:
    go(tmp_path, rounds(1, 5))
    volts = rounds(1, 5).with_columns(volts=pl.lit(60.0)).drop("watts")
    told = go(tmp_path, volts, data={"private": "volts"})
    assert spent(told)[:2] == (8.0, 8.0) and told.document()["rounds"]["reports"] == 18


@pytest.mark.exhaust
def test_releases_recorded_without_counts_charge_everybody_in_full(tmp_path: Path) -> None:
    go(tmp_path, rounds(1, 5))
    home = tmp_path / "000001"
    record = json.loads((home / "record.json").read_text())
    del record["unit"]
    (home / "record.json").write_text(json.dumps({**record, "schema_version": 1}))
    for name in ("sent.npy", "rounds.npy"):
        (home / name).unlink()
    assert spent(go(tmp_path, rounds(6, 12)))[:2] == (8.0, 8.0)


@pytest.mark.exhaust
def test_counts_that_do_not_fit_the_people_are_a_damaged_ledger(tmp_path: Path) -> None:
    go(tmp_path, rounds(1, 5))
    np.save(tmp_path / "000001" / "sent.npy", np.ones(3, np.int64))
    with pytest.raises(OSError, match="damaged"):
        go(tmp_path, rounds(6, 12))


# Participation


@pytest.mark.exhaust
def test_with_a_spread_every_round_has_reports_and_promises_count_those_really_sent(tmp_path: Path) -> None:
    table = loads(rounds=12, devices=60)
    told = go(tmp_path, table, promise={"cap": 4.0, "spread": 12}, shuffle={"shuffler": "uniform", "groups": None})
    document = told.document()
    series = document["rounds"]["series"]
    assert document["rounds"]["reports"] == 60 * 4 == sum(series["n"]) and document["rounds"]["silent"] == 0
    assert document["local"]["epsilon"] == 4.0 and document["rounds"]["resting"] == 60 * 8
    assert series["central_n"] == series["n"] and 0 < min(series["n"]) == document["rounds"]["smallest_batch"] < 60
    assert any("Each device answers in 4 of every 12 rounds" in line for line in told.assumptions)
    assert any("In a round the central promise counts" in note for note in budget_table(document).notes)
    promise = {"cap": 4.0, "spread": 12, "honest": 58}
    told = go(tmp_path / "2", table, promise=promise, shuffle={"shuffler": "uniform", "groups": None})
    fewer = told.document()["rounds"]["series"]
    assert fewer["central_n"] == [max(1, n - 2) for n in fewer["n"]]


@pytest.mark.parametrize(("cap", "spread"), [(1.0, 7), (3.0, 7), (4.0, 12), (6.0, 12), (7.0, 7), (9.0, 7)])
def test_a_device_has_as_many_turns_as_its_cap_pays_for_in_any_rounds_in_a_row(cap: float, spread: int) -> None:
    fleet = Fleet(ROSTER, WATTS, RASE.fit(OWN), cap, spread=spread)
    places, t = np.arange(4)[:, None], np.arange(1, 4 * spread + 1)[None, :]
    turns = fleet.turns(places, t)
    for start in range(3 * spread):
        assert (turns[:, start : start + spread].sum(axis=1) == min(cap, spread)).all()


def test_turns_are_spread_evenly_over_the_fleet_and_read_off_names_alone() -> None:
    """Of 4,096 starts on 16 rounds each round's share is within 7 standard errors, false alarms below 1e-10."""
    n, spread, most = 4096, 16, 5
    fleet = Fleet(tuple(f"meter {i}" for i in range(n)), WATTS, Uniform(n), float(most), spread=spread)
    share = fleet.turns(np.arange(n)[:, None], np.arange(1, spread + 1)[None, :]).mean(axis=0)
    p = most / spread
    assert np.abs(share - p).max() < 7 * math.sqrt(p * (1 - p) / n)
    backwards = Fleet(fleet.roster[::-1], WATTS, Uniform(n), float(most), spread=spread)  # type: ignore[arg-type]
    assert (backwards.turns(np.arange(n)[::-1], 3) == fleet.turns(np.arange(n), 3)).all()


@pytest.mark.parametrize("spread", [None, 5])
def test_what_is_due_is_what_a_run_sends(spread: int | None) -> None:
    draw = np.random.default_rng(2)
    table = long(draw.uniform(0, 100, (20, 4))).filter(pl.Series(draw.random(80) < 0.8)).sort("time", "device")
    before = [Fraction(nats) for nats in (0, 1, 2, 9)]
    fleet = Fleet(ROSTER, WATTS, RASE.fit(OWN), 3.0, spread=spread)
    place = np.array([ROSTER.index(name) for name in table["device"]])
    due = FleetBudget(fleet, before).due(place, table["time"].to_numpy())
    run = FleetRun(fleet, before=before)
    run.submit_table(table, rng=simulation(1))
    assert np.bincount(place[due], minlength=4).tolist() == run.budget.sent.tolist()
    sent = {t: n for t, n in zip(run.estimates()["t"], run.estimates()["n"], strict=True) if n}
    assert sent == dict(table.filter(pl.Series(due)).group_by("time").len().iter_rows())
    assert max(run.spent.values()) == 9.0 and run.spent["kettle"] <= 3.0


def test_what_was_spent_is_quoted_no_smaller_than_it_is() -> None:
    third = Fraction(1, 3)  # below every double that is not below it
    budget = FleetBudget(Fleet(ROSTER, WATTS, RASE.fit(OWN), math.inf), [third] * 4)
    assert third < Fraction(budget.promised) and third < as_written(budget.largest_before)
    bare = FleetBudget(Fleet(ROSTER, Truth(), RASE.fit(OWN), math.inf), [third] * 4)
    assert third < Fraction(bare.promised) < 1
    bare.charge(np.array([2]))
    assert bare.promised == math.inf and bare.totals() == [0.0, 0.0, math.inf, 0.0]


def test_a_spread_needs_a_cap_and_a_whole_number_of_rounds() -> None:
    with pytest.raises(ConfigError, match="`spread` divides what `cap` pays for"):
        dt.run(release(promise={"spread": 5}), table=loads())
    with pytest.raises(ParameterError, match="`spread` must be a whole number, at least 1"):
        Fleet(ROSTER, WATTS, RASE.fit(OWN), 3.0, spread=0)


# The programming interface


def kept(folder: Path, cap: float = 3.0) -> FleetRun:
    """A run of the fleet with a ledger."""
    return FleetRun(Fleet(ROSTER, WATTS, RASE.fit(OWN), cap), ledger=ReleaseLedger(folder), about="watts")


def test_runs_with_one_ledger_keep_one_cap_also_side_by_side(tmp_path: Path) -> None:
    first, second = kept(tmp_path), kept(tmp_path)
    first.submit(1, VALUES)
    second.submit(2, VALUES)
    third = first.submit(3, VALUES)
    assert third.held_back == 0 and set(first.spent.values()) == {3.0}
    assert second.submit(4, VALUES).held_back == 4 and set(second.spent.values()) == {3.0}
    assert kept(tmp_path).submit(5, VALUES).held_back == 4
    assert kept(tmp_path, cap=4.0).submit(6, VALUES).held_back == 0


def test_a_round_in_the_ledger_is_not_drawn_again_by_any_run(tmp_path: Path) -> None:
    kept(tmp_path).submit(1, VALUES)
    again = kept(tmp_path)
    with pytest.raises(UnsupportedError, match="round 1 was released before, with 4 of these devices"):
        again.submit(1, VALUES)
    with pytest.raises(UnsupportedError, match="round 1 was released before, with 1 of these devices"):
        again.submit(1, dict([*VALUES.items()][:1]))
    assert again.rounds == () and len(ReleaseLedger(tmp_path).entries()) == 1
    table = pl.DataFrame({"device": [*ROSTER], "minute": 1, "watts": 5.0, "house": "a"})
    with pytest.raises(UnsupportedError, match="4 of these 4 reports were released before"):
        dt.run(release(promise={"cap": 30.0}, estimate={"window": 1}), table=table, ledger=tmp_path)


def test_no_report_leaves_before_the_ledger_has_its_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, left = kept(tmp_path), []
    table = long(np.ones((1, 4)))
    run.submit_table(table, released=lambda t, batch: left.append(len(ReleaseLedger(tmp_path).entries())))
    assert left == [1]
    monkeypatch.setattr(ReleaseLedger, "_write", lambda *_: (_ for _ in ()).throw(StorageError("full")))
    with pytest.raises(StorageError):
        run.submit_table(table.with_columns(time=pl.lit(2)), released=lambda t, batch: left.append(t))
    assert left == [1] and set(run.spent.values()) == {2.0}  # drawn, so charged, although nobody has seen it


def test_a_release_between_the_look_at_the_ledger_and_the_record_stops_a_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, record = kept(tmp_path), ReleaseLedger.record

    def overtaken(self: ReleaseLedger, *given: Any, **named: Any) -> int:
        monkeypatch.setattr(ReleaseLedger, "record", record)
        kept(tmp_path).submit(7, VALUES)
        return record(self, *given, **named)

    monkeypatch.setattr(ReleaseLedger, "record", overtaken)
    with pytest.raises(StorageError, match="another run has just recorded a release; nothing was released"):
        run.submit(1, VALUES)
    assert [entry.number for entry in ReleaseLedger(tmp_path).entries()] == [1]


def test_a_ledger_takes_no_simulated_round_and_no_replay(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="leave out `rng`"):
        kept(tmp_path).submit(1, VALUES, rng=simulation(1))
    with pytest.raises(DataError, match="replayed in a run without a ledger"):
        kept(tmp_path).replay_table(long(np.ones((1, 4))), {})
    with pytest.raises(DataError, match="`before` is for runs without a ledger"):
        FleetRun(kept(tmp_path).fleet, before=[Fraction(0)] * 4, ledger=ReleaseLedger(tmp_path))
    with pytest.raises(DataError, match="a number for each of the 4 devices, got 3"):
        FleetRun(kept(tmp_path).fleet, before=[Fraction(0)] * 3)
    assert not tmp_path.joinpath("key").exists()


def test_threads_run_their_rounds_one_after_the_other() -> None:
    """The first round does not end before the second one has been asked for: together they would pass the cap."""
    asked, threads = Event(), []

    def slow(randomizer: Laplace, reports: Reports) -> Estimate:
        if not threads:
            threads.append(Thread(target=lambda: (asked.set(), run.submit(2, VALUES))))
            threads[0].start()
            assert asked.wait(60.0)
            threads[0].join(0.3)
            assert threads[0].is_alive(), "the second round began inside the first"
        return Fleet.estimate(randomizer, reports)

    run = FleetRun(Fleet(ROSTER, WATTS, RASE.fit(OWN), 1.0, slow))
    run.submit(1, VALUES)
    threads[0].join(60.0)
    assert set(run.spent.values()) == {1.0} and [each.held_back for each in run.rounds] == [0, 4]


def test_a_round_inside_another_round_is_refused() -> None:
    run = fleet_run()
    with pytest.raises(DataError, match="must not start another"):
        run.submit_table(long(np.ones((1, 4))), rng=simulation(1), released=lambda t, _: run.submit(9, VALUES))
    assert run.last == 1 and run.submit(2, VALUES, rng=simulation(1)).t == 2

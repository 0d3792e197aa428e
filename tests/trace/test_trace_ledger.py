"""The private ledger of traces: what it recognises, what it refuses, and who can read it."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dovetail.core.errors import OutputError
from dovetail.trace.kernels import Matern32
from dovetail.trace.ledger import StoredRelease, TraceLedger
from dovetail.trace.noise import design_trace
from dovetail.trace.plan import TracePlan, TracePrior
from dovetail.trace.trace import SecretTimes, Trace

PRIOR = TracePrior(Matern32(120.0), np.array([[900.0, 200.0], [200.0, 400.0]]))
PLAN = TracePlan(PRIOR, SecretTimes(((60.0, 60.0),)), radius=50.0, error=20.0, noise="mixed")
TIMES = np.arange(10.0) * 15.0


def trace(seed: int = 1, start: float = 0.0) -> Trace:
    """A trace in metres."""
    return Trace.of(f"t{seed}", TIMES + start, np.cumsum(np.random.default_rng(seed).normal(0, 20, (10, 2)), axis=0))


def record(folder: Path, one: Trace, person: str | None = None) -> TraceLedger:
    """A ledger that holds a release of this trace."""
    ledger = TraceLedger(folder)
    ledger.record(one, person, PLAN, design_trace(PLAN, one.times), one.points + 1.0)
    return ledger


def test_the_same_places_at_other_times_are_another_request_about_the_same_person(tmp_path: Path) -> None:
    ledger = record(tmp_path, trace(), "ann")
    terms, later = PLAN.terms(), trace(start=1e4)
    assert ledger.same(ledger.earlier(trace(), None), trace(), terms) is not None
    assert np.array_equal(later.points, trace().points)
    found = ledger.earlier(later, "ann")
    assert len(found) == 1 and ledger.same(found, later, terms) is None
    assert ledger.same(found, trace(), replace(PLAN, radius=60.0).terms()) is None


def test_one_shared_point_is_enough_to_know_a_person(tmp_path: Path) -> None:
    ledger, one = record(tmp_path, trace()), trace()
    part = Trace.of("part", one.times[3:5], one.points[3:5])
    assert len(ledger.earlier(part, None)) == 1
    assert ledger.earlier(trace(2, 1e4), None) == []
    assert ledger.linked([one, part, trace(2, 1e4)], [None] * 3) == [[1], [0], []], (
        "and no trace is another of itself"
    )


def test_half_of_the_shorter_trace_in_the_same_cells_is_one_person_unless_two_are_named(tmp_path: Path) -> None:
    ledger, one = record(tmp_path / "unnamed", trace()), trace()
    near = Trace.of("near", TIMES, one.points + 0.5)
    for shared in range(11):  # the first so many points in one car, the others far away
        beside = Trace.of("beside", TIMES, np.where(np.arange(10)[:, None] < shared, near.points, 1e5))
        assert len(ledger.earlier(beside, None)) == (shared >= 5), shared
        assert len(ledger.earlier(beside, "ann")) == (shared >= 5), "one of them may be her"
    named = record(tmp_path / "named", trace(), "ann")
    assert [len(named.earlier(near, person)) for person in ("ann", "bob", None)] == [1, 0, 1]
    part = Trace.of("part", TIMES[3:5], one.points[3:5])
    assert [len(named.earlier(each, "bob")) for each in (one, part)] == [1, 1], "exactly her points are hers"
    assert len(ledger.earlier(Trace.of("crop", TIMES[4:6], near.points[4:6]), None)) == 1
    assert ledger.earlier(Trace.of("later", TIMES + 3600.0, near.points), None) == []


@pytest.mark.parametrize("fraction", [0.0, 0.2, 0.5, 0.6, 0.999])
def test_a_trace_is_known_again_whether_fractions_of_seconds_are_rounded_or_cut_off(
    fraction: float, tmp_path: Path
) -> None:
    ledger, one = record(tmp_path, trace(start=fraction)), trace(start=fraction)
    for times in (np.floor(one.times), np.floor(one.times + 0.5)):
        again = Trace.of("again", times, one.points + 0.5)
        assert len(ledger.earlier(again, None)) == 1
    assert ledger.earlier(Trace.of("later", np.floor(one.times) + 2.0, one.points + 0.5), None) == []


def test_a_release_of_an_earlier_version_is_known_by_its_exact_points(tmp_path: Path) -> None:
    ledger = record(tmp_path, trace())
    place = tmp_path / "000001" / "release.npz"
    with np.load(place) as stored:
        arrays = {one: stored[one] for one in ("prints", "times", "points", "noise")}
    np.savez(place, **arrays)
    assert len(ledger.earlier(trace(), None)) == 1
    assert ledger.earlier(Trace.of("near", TIMES, trace().points + 0.5), None) == []


def test_fingerprints_of_points_and_people_are_keyed(tmp_path: Path) -> None:
    prints: dict[str, list[np.ndarray]] = {"prints": [], "cells": []}  # type: ignore[type-arg]
    for part in ("one", "two"):
        record(tmp_path / part, trace(), "ann")
        with np.load(tmp_path / part / "000001" / "release.npz") as arrays:
            for name, found in prints.items():
                found.append(arrays[name])
    assert [len(found[0]) for found in prints.values()] == [11, 10]
    assert not any(np.isin(*found).any() for found in prints.values())


def test_only_its_owner_reads_the_ledger_of_traces(tmp_path: Path) -> None:
    before = os.umask(0)  # whatever is open then, the ledger has asked for
    try:
        record(tmp_path / "private", trace())
    finally:
        os.umask(before)
    places = [tmp_path / "private", *(tmp_path / "private").iterdir()]
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in places} == {
        "private": 0o700, "key": 0o600, "000001": 0o700,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["times", "points"])
def test_a_recorded_trace_that_lost_points_is_not_released(name: str, tmp_path: Path) -> None:
    ledger = record(tmp_path, trace())
    place = tmp_path / "000001" / "release.npz"
    with np.load(place) as stored:
        arrays = {one: stored[one] for one in stored}
    np.savez(place, **(arrays | {name: arrays[name][:-1]}))
    with pytest.raises(OutputError, match=r"damaged \((9|10) points instead of 10"):
        ledger.earlier(trace(), None)


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_ledger_of_traces_with_a_damaged_key_is_not_used(size: int, tmp_path: Path) -> None:
    ledger = record(tmp_path, trace())
    (tmp_path / "key").write_bytes(bytes(size))
    with pytest.raises(OutputError, match=f"its key has {size} bytes instead of 32"):
        ledger.earlier(trace(), None)


def test_of_several_releases_of_one_request_the_last_is_replayed(tmp_path: Path) -> None:
    ledger = record(tmp_path, trace())
    ledger.record(trace(), None, PLAN, design_trace(PLAN, TIMES), trace().points + 2.0)
    last: StoredRelease | None = ledger.same(ledger.earlier(trace(), None), trace(), PLAN.terms())
    assert last is not None and last.entry.number == 2 and np.array_equal(last.points, trace().points + 2.0)

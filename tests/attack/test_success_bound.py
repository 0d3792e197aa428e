"""The bound beside an attack: no rule exceeds it where all can be listed, and no attack on real data."""

import os
import subprocess
import sys
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dovetail as dt
from dovetail.attack.experiment.success_bound import (
    CENTRAL,
    LOCAL,
    ONE_REPORT,
    ORDER,
    SHUFFLED,
    largest_groups,
    success_bound,
)
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.missing import Missing
from dovetail.core.stages import Shuffler
from dovetail.randomize.hadamard import Hadamard
from dovetail.shuffle.mallows import Mallows

HELD = np.array([0, 0, 1, 0, 1, 1, 1, 0])
CLASS = np.array([0, 0, 0, 0, 0, 1, 1, 1])


def expected(rule: tuple[int, ...], keep: float) -> float:
    """Share of right guesses of a rule (class, report) -> value on the table, over all reports."""
    chance = [
        sum((keep if report == value else 1 - keep) * (rule[2 * own + report] == value) for report in (0, 1))
        for value, own in zip(HELD, CLASS, strict=True)
    ]
    return float(np.mean(chance))


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_of_all_rules_by_class_and_own_report_the_best_reaches_the_bound(epsilon: float) -> None:
    randomizer = dt.KRR(k=2, epsilon=epsilon)
    best = max(expected(rule, randomizer.channel().p) for rule in product((0, 1), repeat=4))
    found = success_bound(randomizer, dt.Identity(8), HELD, targets=range(8), known=CLASS)
    assert found.value == pytest.approx(best, abs=1e-9) and found.source == ONE_REPORT
    assert found.blind == pytest.approx((3 + 2) / 8)


def bayes(shuffler: Shuffler, prior: list[float], keep: float, *, target: int) -> float:
    """Chance of the best guess of one person's value from the release, by listing values, reports and orders."""
    n = shuffler.n
    weights = {order: np.exp(shuffler.log_weight(order)) for order in permutations(range(n))}
    joint: dict[tuple[int, ...], np.ndarray] = {}
    for values in product((0, 1), repeat=n):
        for reports in product((0, 1), repeat=n):
            chance = np.prod(
                [prior[v] * (keep if v == y else 1 - keep) for v, y in zip(values, reports, strict=True)]
            )
            for order, weight in weights.items():
                seen = tuple(reports[person] for person in order)
                joint.setdefault(seen, np.zeros(2))[values[target]] += chance * weight
    return float(sum(row.max() for row in joint.values()))


FOUR = dt.Groups.from_labels([1, 2, 2, 3], radius=1)


@pytest.mark.parametrize(
    ("shuffler", "source"),
    [
        (dt.Uniform(4), SHUFFLED),
        (dt.WithinGroups(dt.Groups.from_labels(["a", "a", "b", "b"])), SHUFFLED),
        (Mallows.single(FOUR, alpha=0.5), ONE_REPORT),
        (dt.Identity(4), ONE_REPORT),
    ],
    ids=str,
)
def test_nobody_who_knows_the_law_of_the_release_guesses_better_than_the_bound(
    shuffler: Shuffler, source: str
) -> None:
    """Four people of one class; values and shares are those of the prior, a half and a half."""
    randomizer = dt.KRR(k=2, epsilon=1.0)
    found = success_bound(randomizer, shuffler, [0, 1, 0, 1], targets=range(4), known=[0] * 4)
    best = [bayes(shuffler, [0.5, 0.5], randomizer.channel().p, target=person) for person in range(4)]
    assert np.mean(best) <= found.value + 1e-12
    assert found.source == source  # for so few people the central guarantee is the local one
    if source == SHUFFLED:
        assert np.mean(best) == pytest.approx(found.value, abs=1e-9) and found.value < randomizer.channel().p


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_the_order_adds_at_most_a_factor_of_e_to_alpha_to_the_odds_of_the_bag(alpha: float) -> None:
    everybody = Mallows.single(dt.Groups.from_labels([1, 1, 1, 1]), alpha=alpha)
    bag, best = (bayes(one, [0.5, 0.5], 0.75, target=0) for one in (dt.Uniform(4), everybody))
    assert bag < best and best / (1 - best) <= np.exp(alpha) * bag / (1 - bag)


def test_many_people_hide_one_and_the_order_gives_back_what_alpha_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    values, known, randomizer = np.arange(6000) % 3 == 0, np.arange(6000) % 2, dt.KRR(k=2, epsilon=2.0)
    wide = dt.Groups.from_labels([1] * 6000)
    given: dict[str, Any] = {"values": values.astype(int), "targets": range(500), "known": known}
    alone = success_bound(randomizer, dt.Identity(6000), **given)
    mixed = success_bound(randomizer, dt.Uniform(6000), **given)
    ordered = success_bound(randomizer, Mallows.single(wide, alpha=0.5), **given)
    assert mixed.source == SHUFFLED and ordered.source == ORDER and alone.source == ONE_REPORT
    assert mixed.blind <= mixed.value < ordered.value < alone.value
    assert mixed.exact and alone.exact and not ordered.exact
    with monkeypatch.context() as few:
        few.setattr("dovetail.attack.experiment.success_bound.MOST_LAW", 3)  # nothing is summed
        bag = success_bound(randomizer, dt.Uniform(6000), **given)
    assert bag.source == CENTRAL and not bag.exact and mixed.value <= bag.value
    odds = bag.value / (1 - bag.value) * np.exp(0.5)
    assert ordered.value == pytest.approx(odds / (1 + odds), abs=1e-4)


@pytest.mark.parametrize("k", [2, 3])
def test_in_a_block_of_several_classes_the_bound_is_what_bayes_reaches(k: int) -> None:
    """All values and reports of six people of two classes, whose own shares are the prior."""
    randomizer, known = dt.KRR(k=k, epsilon=2.0), np.array([0, 0, 0, 0, 1, 1])
    values = np.array([0, 0, 0, 1, 1, k - 1])
    found = success_bound(randomizer, dt.Uniform(6), values, targets=range(6), known=known)
    shares = np.array([np.bincount(values[known == one], minlength=k) / (known == one).sum() for one in range(2)])
    law, best = randomizer.channel().matrix(), []
    for target in range(6):
        joint: dict[tuple[int, ...], np.ndarray] = {}
        for reports in product(range(k), repeat=6):
            rest = np.prod([shares[known[i]] @ law[:, reports[i]] for i in range(6) if i != target])
            seen = tuple(np.bincount(reports, minlength=k).tolist())
            joint[seen] = joint.get(seen, 0.0) + rest * shares[known[target]] * law[:, reports[target]]
        best.append(sum(float(np.max(row)) for row in joint.values()))
    assert found.exact and found.source.startswith(SHUFFLED)
    assert found.value == pytest.approx(np.mean(best), abs=1e-9) and found.blind < found.value


def test_others_who_are_left_out_of_the_sum_leave_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {"values": np.arange(40) % 4, "targets": range(40), "known": np.arange(40) % 3}
    whole = success_bound(dt.KRR(k=4, epsilon=2.0), dt.Uniform(40), **given)
    monkeypatch.setattr("dovetail.attack.experiment.success_bound.BLOCK_WORK", 500)
    part = success_bound(dt.KRR(k=4, epsilon=2.0), dt.Uniform(40), **given)
    assert whole.exact and not part.exact and whole.value < part.value


def test_reports_of_many_kinds_are_bounded_by_their_epsilon() -> None:
    many = Hadamard(k=3000, epsilon=1.0)
    values = np.arange(600) % 2
    found = success_bound(many, dt.Identity(600), values, targets=range(600), known=[0] * 600)
    assert 0.5 < found.value <= np.e / (np.e + 1) + 1e-9


def test_people_whom_public_data_tell_apart_have_no_bound() -> None:
    five: dict[str, Any] = {"values": [0, 1, 0, 1, 0], "targets": range(5)}
    with pytest.raises(UnsupportedError, match="60% of the targets are the only ones with their public data"):
        success_bound(dt.KRR(k=2, epsilon=1.0), dt.Uniform(5), **five, known=[0, 1, 2, 3, 3])
    with pytest.raises(DataError, match="`known` must be a class for each of 4 people"):
        success_bound(dt.KRR(k=2, epsilon=1.0), dt.Uniform(4), [0, 1, 0, 1], targets=range(4), known=[0, 1])


def test_everybody_counts_in_the_largest_of_her_groups() -> None:
    assert largest_groups(dt.Groups.from_lists([[0, 1], [1, 2, 3]], n=5), 5).tolist() == [2, 3, 3, 3, 1]
    assert largest_groups(None, 3).tolist() == [3, 3, 3]


def real(name: str) -> tuple[pl.DataFrame, str, str, list[str]]:
    """A public table, its private column, the column of the groups, and what the attacker knows besides."""
    if name == "adult":
        return dt.datasets.adult(), "income", "age", ["marital_status"]
    if name == "twitch":
        table = dt.datasets.twitch()
        return table.select("mature", "partner", years=pl.col("days") // 365), "mature", "years", ["partner"]
    table = dt.datasets.california_housing()
    table = table.select("ocean_proximity", age=pl.col("housing_median_age"), west=pl.col("longitude").round())
    return table, "ocean_proximity", "west", ["age"]


@pytest.mark.exhaust
@pytest.mark.skipif("DOVETAIL_DATA" not in os.environ, reason="needs the public data sets")
@pytest.mark.parametrize("shuffler", ["identity", "within_groups", "uniform", "best"])
@pytest.mark.parametrize("name", ["adult", "twitch", "california"])
def test_no_attack_on_real_people_is_below_the_blind_guess_or_above_its_bound(name: str, shuffler: str) -> None:
    """Ten releases each; an interval is at 95 %, so its lower end is above a bound that is reached in one of 40."""
    table, private, near, similar = real(name)
    groups = {"labels": near, **({"radius": 1.0} if shuffler == "best" else {})}
    config = {
        "schema_version": 1, "mode": "rehearsal", "seed": 5,
        "data": {"private": private, "public": [near, *similar]},
        "randomize": {"epsilon": 1.5},
        "shuffle": {"shuffler": shuffler, "groups": groups, **({"alpha": 4.0} if shuffler == "best" else {})},
        "attack": {"similar": similar, "trials": 10, "targets": 2000},
    }  # fmt: skip
    found = dt.run(config, table=table).evaluation.attacks
    assert isinstance(found, dict) and len(found) == 3
    measured = [each for each in found.values() if not isinstance(each, Missing)]
    assert len(measured) >= 2
    for each in measured:
        assert not isinstance(each.bound, Missing)
        assert each.chance <= each.success and each.interval[0] <= each.bound, each
        assert each.chance <= each.bound, "whoever knows the shares does not do worse than who knows one"


BOUNDS = """
import numpy as np
from dovetail.attack.experiment.success_bound import success_bound
from dovetail.randomize.krr import KRR
from dovetail.shuffle.uniform import Uniform
for k in (2, 3):
    for seed in range(12):
        places = np.arange(100) * 7919 + seed * 104729
        known = places % 101 % 7
        values = places % 103 * (known + 1) % k
        print(success_bound(KRR(k, 2.0), Uniform(100), values, targets=range(100), known=known).value.hex())
"""


@pytest.mark.exhaust
def test_a_bound_that_is_published_is_the_same_on_every_processor() -> None:
    cores = ["HASWELL", "NEHALEM"]
    if Path("/proc/cpuinfo").exists() and "avx512f" in Path("/proc/cpuinfo").read_text():
        cores.append("SKYLAKEX")
    told = {
        subprocess.check_output([sys.executable, "-c", BOUNDS], env={**os.environ, "OPENBLAS_CORETYPE": core})
        for core in cores
    }
    assert len(told) == 1 and len(told.pop().split()) == 24


def test_a_bound_by_epsilon_alone_is_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    table: dict[str, Any] = {"values": [0, 0, 0, 1] * 25, "targets": range(100), "known": [0] * 100}
    unary = dt.Unary(k=2, epsilon=2.0)
    assert success_bound(unary, dt.Identity(100), **table).source == ONE_REPORT
    monkeypatch.setattr("dovetail.attack.experiment.success_bound.MOST_JOINT", 1)
    assert success_bound(unary, dt.Identity(100), **table).source == LOCAL

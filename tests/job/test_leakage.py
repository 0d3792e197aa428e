"""Bayes leakage is exact where the sums are short and an upper bound, called one, where they are not."""

from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import attack
from dovetail.core.entropy import simulation
from dovetail.job.evaluate import bayes_leakage
from dovetail.report.document import BayesLeakage, Missing
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.uniform import Uniform

RANDOMIZERS = [dt.KRR, dt.Hadamard, dt.Unary, dt.LocalHashing]


def leakage(randomizer: Any, n: int) -> BayesLeakage:
    found = bayes_leakage(randomizer, Uniform(n))
    assert isinstance(found, BayesLeakage)
    return found


@pytest.mark.exhaust
@pytest.mark.parametrize(("make", "k", "n"), [(dt.KRR, 5, 1000), (dt.Hadamard, 2, 500), (dt.Hadamard, 3, 60),
                                              (dt.Unary, 2, 500), (dt.Unary, 4, 4)])  # fmt: skip
def test_short_sums_give_what_the_library_gives(make: Any, k: int, n: int) -> None:
    randomizer = make(k=k, epsilon=1.5)
    found, exact = leakage(randomizer, n), dt.vulnerability(randomizer, n=n)
    assert (found.shuffled, found.randomized_shuffled) == (exact.shuffled, exact.randomized_shuffled)
    assert found.method == exact.method != "bracket"
    assert not isinstance(found.curve, Missing)
    assert found.curve["randomized_shuffled"][-1] == exact.randomized_shuffled


@pytest.mark.exhaust
@pytest.mark.parametrize("k", [3, 4, pytest.param(8, marks=pytest.mark.exhaust)])
@pytest.mark.parametrize("make", [dt.Hadamard, dt.Unary])
def test_a_bound_lies_above_what_sampling_finds(make: Any, k: int) -> None:
    randomizer, n = make(k=k, epsilon=3.0), 2_000
    found = leakage(randomizer, n)
    sampled = dt.vulnerability(randomizer, n=n, rng=simulation(1))
    assert found.method == "bracket" and "drawn where" in found.curve.reason  # type: ignore[union-attr]
    assert found.shuffled == sampled.shuffled and found.randomized == pytest.approx(sampled.randomized)
    assert found.randomized_shuffled >= sampled.randomized_shuffled_bracket.lower
    assert found.randomized_shuffled - found.error_bound == pytest.approx(1 / k)


@pytest.mark.parametrize("make", [dt.Unary, dt.LocalHashing])
def test_reports_of_too_many_kinds_are_bounded_by_what_any_randomizer_gives(make: Any) -> None:
    found, response = leakage(make(k=30, epsilon=2.0), 1), dt.vulnerability(dt.KRR(k=30, epsilon=2.0), n=1)
    assert found.randomized == pytest.approx(response.randomized) and found.method == "bracket"
    # a guess by the likeliest value of each report must not beat the bound
    rng, values = simulation(3), np.arange(60_000) % 30
    randomizer = make(k=30, epsilon=2.0)
    seen = attack.MajorityVote(randomizer, np.arange(60_000), np.arange(60_000)[:, None])
    right = (seen.guess(randomizer.randomize(values, rng), rng) == values).mean()
    assert right < found.randomized + 6.1 * (0.25 / 60_000) ** 0.5


@pytest.mark.exhaust
@pytest.mark.parametrize("make", RANDOMIZERS)
def test_the_leakage_falls_with_the_crowd(make: Any) -> None:
    numbers = [leakage(make(k=4, epsilon=2.0), n).randomized_shuffled for n in (1, 3, 10, 100, 1000, 100_000)]
    assert all(isinstance(number, float) for number in numbers)
    assert numbers == sorted(numbers, reverse=True) and numbers[-1] < 0.26


def test_without_a_uniform_shuffle_one_report_is_all_that_is_quoted() -> None:
    found = bayes_leakage(dt.Hadamard(k=4, epsilon=2.0), Identity(10))
    assert isinstance(found, BayesLeakage) and isinstance(found.randomized_shuffled, Missing)
    assert found.randomized == dt.vulnerability(dt.Hadamard(k=4, epsilon=2.0), n=1).randomized
    assert isinstance(bayes_leakage(dt.Laplace(0.0, 1.0, epsilon=1.0), Uniform(5)), Missing)

"""Bayes leakage is exact where the sums are short and an upper bound, called one, where they are not."""

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

import dovetail as dt
from dovetail import attack
from dovetail.core.entropy import simulation
from dovetail.core.missing import Missing
from dovetail.job.build import build_collection
from dovetail.job.config import parse_config
from dovetail.job.evaluate import bayes_leakage
from dovetail.job.run import run
from dovetail.report.document import BayesLeakage
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.sampling.dummies import Dummies
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


# What the project itself adds: the bound lies above the exact Bayes vulnerability, summed over all small batches.


def exact_guess(counts: dict[tuple[int, ...], Any], prior: list[float]) -> float:
    """Sum over outcomes of the largest joint probability, from Pr[outcome given her value] for each outcome."""
    return float(sum(max(p * one for p, one in zip(prior, chances, strict=True)) for chances in counts.values()))


def histograms(laws: list[np.ndarray]) -> np.ndarray:
    """Law of the number of reports that are 1, among reports of these probabilities (p0, p1)."""
    found = np.ones(1)
    for law in laws:
        found = np.convolve(found, law)
    return found


@pytest.mark.parametrize("promise", [{"trust": "shuffler", "epsilon": 2.0, "delta": 0.01},
                                     {"trust": "users", "epsilon": 3.0, "delta": 0.2, "honest": 6}])  # fmt: skip
def test_a_guess_beside_dummies_stays_below_what_is_reported(promise: dict[str, Any]) -> None:
    table = pl.DataFrame({"answer": ["no", "yes", "yes"] * 2})
    data = {"private": "answer", "categories": ["no", "yes"]}
    asked = {"schema_version": 1, "mode": "rehearsal", "seed": 1, "data": data, "promise": promise}
    collection = build_collection(parse_config(asked), simulation(1), table=table)
    found = run(asked, table=table).evaluation
    prior, dummies = [1 / 3, 2 / 3], collection.noise.dummies
    if isinstance(dummies, Dummies):
        weights = np.array([float(one) for one in dummies.noise.weights])
        noise = weights / weights.sum()
        added = [[noise[a] * noise[b] for b in range(noise.size)] for a in range(noise.size)]
    else:
        r = dummies.rate / 2  # type: ignore[union-attr]
        ways = [[math.comb(6, a) * math.comb(6 - a, b) if a + b <= 6 else 0 for b in range(7)] for a in range(7)]
        added = [[way * r ** (a + b) * (1 - 2 * r) ** max(0, 6 - a - b) for b, way in enumerate(row)]
                 for a, row in enumerate(ways)]  # fmt: skip
    others = histograms([np.array(prior)] * 5)
    counts: dict[tuple[int, ...], Any] = {}
    for ones, chance in enumerate(others):
        for value in (0, 1):
            zero, one = 5 - ones + (value == 0), ones + (value == 1)
            for a, row in enumerate(added):
                for b, more in enumerate(row):
                    counts.setdefault((zero + a, one + b), np.zeros(2))[value] += chance * more
    exact = exact_guess(counts, prior)
    assert isinstance(found.leakage, BayesLeakage) and not isinstance(found.leakage.at_hand, Missing)
    assert max(prior) <= exact <= found.leakage.at_hand.randomized_shuffled + 1e-12 < 1.0  # type: ignore[operator]
    assert found.leakage.method == "bracket" and found.leakage.randomized == 1.0


def test_a_guess_among_people_of_other_epsilons_stays_below_what_is_reported() -> None:
    table = pl.DataFrame({"answer": ["no", "yes"] * 4, "class": ["a", "a", "b", "b"] * 2})
    asked = {
        "schema_version": 1, "mode": "rehearsal", "seed": 1,
        "data": {"private": "answer", "public": ["class"], "categories": ["no", "yes"]},
        "randomize": {"epsilon": 3.0, "by": "class", "epsilons": {"a": 0.5}},
    }  # fmt: skip
    found = run(asked, table=table).evaluation
    laws = {one: np.asarray(dt.KRR(k=2, epsilon=one).channel().matrix()) for one in (0.5, 3.0)}
    worst = 0.0
    for mine in laws:
        rest = [each for each in (0.5, 3.0) for _ in range(4 - (each == mine))]
        others = histograms([laws[each].mean(axis=0) for each in rest])
        chances = np.array([np.convolve(others, row) for row in laws[mine]])
        worst = max(worst, float((0.5 * chances).max(axis=0).sum()))
    assert isinstance(found.leakage, BayesLeakage)
    assert 0.5 < worst <= found.leakage.randomized_shuffled + 1e-12 < laws[3.0][0, 0]  # type: ignore[operator]
    assert found.leakage.randomized == pytest.approx(laws[3.0][0, 0])
    linked = found.linkage
    assert not isinstance(linked, Missing)
    odds = laws[3.0][0, 0] / laws[3.0][0, 1]  # keep of the open class over the smallest lie of any
    assert linked.values_known == pytest.approx(odds / 8 * (1 - (1 - 1 / odds) ** 8))


@pytest.mark.parametrize(("ask", "epsilon"), [("all", 2.0), ("one", 2.0), ("joint", 3.0)])
def test_a_message_with_several_answers_is_named_by_the_epsilon_of_all_of_them(ask: str, epsilon: float) -> None:
    table = pl.DataFrame({"one": ["no", "yes"] * 50, "two": ["yes", "yes", "no", "no"] * 25})
    asked = {
        "schema_version": 1, "mode": "rehearsal", "seed": 1, "ask": ask, "data": {"path": "unused.csv"},
        "questions": [{"column": "one", "categories": ["no", "yes"], "epsilon": 1.0},
                      {"column": "two", "categories": ["no", "yes"], "epsilon": 2.0}],
    }  # fmt: skip
    linked = run(asked, table=table).evaluation.linkage
    assert not isinstance(linked, Missing)
    assert linked.values_known == pytest.approx(math.exp(epsilon) / 100 * (1 - (1 - math.exp(-epsilon)) ** 100))

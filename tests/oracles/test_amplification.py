"""Amplification by shuffling against exhaustive computation in whole numbers.

The oracle knows nothing about blankets or clones: it lists every histogram of reports of a concrete randomizer on a
concrete dataset and adds up the hockey-stick divergence.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, pairwise
from math import comb, e, exp, lcm, log, sqrt

import numpy as np
import pytest
from tests.statistics import rng_of
from tests.tiers import one_in

from dovetail.account import clones
from dovetail.account.attack_lower_bound import (
    BinaryAttack,
    MixedAttack,
    ThreeWayAttack,
    attack_lower,
    mixed_laws,
    three_way_blocks,
)
from dovetail.account.calibrate import max_epsilon
from dovetail.account.clones import ClonePair
from dovetail.randomize.hadamard import Hadamard

SHARES = (0.0, 0.05, 0.1, 0.25, 0.4, 0.6, 0.8, 0.95)  # epsilon / epsilon0
Rows = tuple[tuple[int, ...], ...]  # whole weights, every row with the same total
Law = Counter[tuple[int, ...]]  # histogram of reports -> whole weight
Bound = Callable[[float, int, float], float]  # epsilon0, n, epsilon -> delta


def krr(k: int, p: int) -> Rows:
    return tuple(tuple(p if x == y else 1 for y in range(k)) for x in range(k))


def hadamard(p: int) -> Rows:
    """Three symbols, four reports, half of them likely for each."""
    return tuple(tuple(p if bin(row & y).count("1") % 2 == 0 else 1 for y in range(4)) for row in (1, 2, 3))


def random_rows(name: str, k: int, outputs: int, entries: Sequence[int]) -> Rows:
    picks = rng_of(name).below(len(entries), k * outputs).reshape(k, outputs)
    rows = [[entries[i] for i in row] for row in picks]
    rows[0], rows[1] = [*rows[0][:-1], entries[-1]], [entries[-1], *rows[1][1:-1], entries[0]]
    rows[0][0] = entries[0]  # never constant
    total = lcm(*(sum(row) for row in rows))
    return tuple(tuple(weight * (total // sum(row)) for weight in row) for row in rows)


def local_epsilon(rows: Rows) -> float:
    """An epsilon0 that is certainly large enough."""
    ratio = max(Fraction(max(column), min(column)) for column in zip(*rows, strict=True))
    return float(np.nextafter(log(ratio), np.inf))


def with_report(law: Law, row: Sequence[int]) -> Law:
    grown: Law = Counter()
    for histogram, weight in law.items():
        for y, mass in enumerate(row):
            grown[(*histogram[:y], histogram[y] + 1, *histogram[y + 1 :])] += weight * mass
    return grown


def batch_laws(rows: Rows, others: Sequence[int]) -> list[Law]:
    """The law of the batch for each value of the victim, as weights out of (row total)^n."""
    law: Law = Counter({(0,) * len(rows[0]): 1})
    for x in others:
        law = with_report(law, rows[x])
    return [with_report(law, row) for row in rows]


def divergence(p: Law, q: Law, factor: Fraction) -> Fraction:
    """D_E(P||Q), exactly, E = factor."""
    top, bottom = factor.as_integer_ratio()
    return Fraction(sum(max(0, bottom * w - top * q[h]) for h, w in p.items()), bottom * sum(p.values()))


def violations(rows: Rows, n: int, bound: Bound) -> list[str]:
    """Where the bound lies below the exact delta: all values of the others, all pairs, both directions."""
    epsilon0, k, found = local_epsilon(rows), len(rows), []
    limits = [(Fraction(exp(share * epsilon0)), bound(epsilon0, n, share * epsilon0)) for share in SHARES]
    for others in combinations_with_replacement(range(k), n - 1):
        laws = batch_laws(rows, others)
        for x, y in [(x, y) for x in range(k) for y in range(k) if x != y]:
            for factor, limit in limits:
                exact = divergence(laws[x], laws[y], factor)
                if exact > limit:
                    found.append(f"n={n} {others=} pair={x, y} E={float(factor)}: {float(exact)} > {limit}")
    return found


def stronger(epsilon0: float, n: int, epsilon: float) -> float:
    return ClonePair(epsilon0, n).delta(epsilon).upper


def plain(epsilon0: float, n: int, epsilon: float) -> float:
    return ClonePair(epsilon0, n, "clones").delta(epsilon).upper


@pytest.mark.parametrize("bound", [stronger, plain])
@pytest.mark.parametrize("p", [2, 3, 30])
@pytest.mark.parametrize(("k", "n"), one_in(4, [(2, 1), (2, 2), (2, 6), (3, 3), (3, 5), (4, 4), (5, 3)]))
def test_no_dataset_of_randomized_response_exceeds_the_clone_bounds(k: int, n: int, p: int, bound: Bound) -> None:
    assert violations(krr(k, p), n, bound) == []


@pytest.mark.parametrize("n", [2, 4])
def test_no_dataset_of_hadamard_response_exceeds_the_bound(n: int) -> None:
    assert violations(hadamard(3), n, stronger) == []


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("k", "outputs", "n"), [(2, 2, 5), (2, 4, 4), (3, 3, 4)])
def test_no_dataset_of_a_random_randomizer_exceeds_the_bound(k: int, outputs: int, n: int, seed: int) -> None:
    entries = (1, 4) if seed % 2 else (2, 3, 4, 6, 7)
    assert violations(random_rows(f"rows {k} {outputs} {seed}", k, outputs, entries), n, stronger) == []


def test_the_search_catches_a_wrong_clone_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = ClonePair.clone_probability.fget  # type: ignore[attr-defined]

    def doubled(pair: ClonePair) -> tuple[float, float]:
        q, _ = honest(pair)
        return min(0.999, 1.1 * q), max(0.001, 1.0 - 1.1 * q)

    monkeypatch.setattr(ClonePair, "clone_probability", property(doubled))
    assert violations(krr(2, 3), 4, stronger)


def test_the_search_catches_one_person_too_many() -> None:
    assert violations(krr(2, 3), 4, lambda epsilon0, n, epsilon: stronger(epsilon0, n + 1, epsilon))


def test_the_search_catches_a_wrong_sign_and_a_wrong_scale_of_the_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    right = clones.weighted_positive_part
    monkeypatch.setattr(
        clones, "weighted_positive_part", lambda c, w, eps, eps0: right(c, w, 0.9 * eps + 0.1 * eps0, eps0)
    )
    assert violations(krr(2, 3), 4, stronger)


def test_the_search_catches_binary_response_that_is_noisier_in_the_books_than_on_the_device() -> None:
    assert violations(krr(2, 3), 4, lambda epsilon0, n, epsilon: stronger(0.9 * epsilon0, n, 0.9 * epsilon))


def pair_delta(p: Fraction, q: Fraction, n: int, factor: Fraction) -> Fraction:
    """D_E of the pair, from its definition: clones, fair coins, one tilted coin."""
    total = Fraction(0)
    truth = p / (p + 1)
    for c in range(n):
        weight = comb(n - 1, c) * q**c * (1 - q) ** (n - 1 - c) / 2**c
        for a in range(c + 2):  # a = A + D
            stay, move = comb(c, a), comb(c, a - 1) if a else 0
            up = stay * (1 - truth) + move * truth
            down = stay * truth + move * (1 - truth)
            total += weight * max(Fraction(0), up - factor * down)
    return total


@pytest.mark.parametrize("n", one_in(4, [1, 2, 3, 10, 41]))
@pytest.mark.parametrize("p", [Fraction(11, 10), Fraction(3), Fraction(50)])
def test_the_formula_is_the_divergence_of_the_pair(p: Fraction, n: int) -> None:
    for kind, q in (("stronger clones", 2 / (p + 1)), ("clones", 1 / p)):
        for share in SHARES[:-1]:
            epsilon = share * log(p)
            exact = pair_delta(p, q, n, Fraction(exp(epsilon)))
            ends = ClonePair(log(p), n, kind).delta(epsilon)  # type: ignore[arg-type]
            assert ends.lower <= exact <= ends.upper
            assert ends.upper <= float(exact) * (1 + 5e-9)


def test_published_check_values_are_met() -> None:
    assert ClonePair(1.0, 10).delta(0.5).upper == pytest.approx(0.0277553292173903, rel=3e-9)
    assert ClonePair(1.0, 10, "clones").delta(0.5).upper == pytest.approx(0.0521891566702117, rel=3e-9)
    assert ClonePair(1.0, 10_000).epsilon(1e-6).upper == pytest.approx(0.043206, abs=5e-7)
    weight = Fraction(e).limit_denominator(10**9)
    rows = tuple(tuple(weight.numerator if x == y else weight.denominator for y in range(5)) for x in range(5))
    laws = batch_laws(rows, [2] * 6)
    exact = float(divergence(laws[0], laws[1], Fraction(exp(0.3))))
    assert exact == pytest.approx(0.0425627819, abs=5e-11)
    assert exact <= ClonePair(1.0, 7).delta(0.3).lower


@pytest.mark.parametrize("n", [1, 2, 5, 9])
@pytest.mark.parametrize("p", [2, 3, 30])
def test_the_binary_attack_is_the_exact_delta_of_everybody_equal(p: int, n: int) -> None:
    for share in SHARES:
        factor = Fraction(exp(share * log(p)))
        laws = batch_laws(krr(2, p), [0] * (n - 1))
        exact = max(divergence(laws[x], laws[1 - x], factor) for x in (0, 1))
        found = BinaryAttack(log(p), n).delta(share * log(p))
        assert found <= exact
        assert found >= float(exact) * (1 - 1e-9)


@pytest.mark.parametrize("n", [1, 2, 5, 9])
@pytest.mark.parametrize("p", [2, 3, 30])
def test_the_mixed_attack_is_the_worst_exact_delta_of_binary_response(p: int, n: int) -> None:
    attack = MixedAttack(log(p), mixed_laws(log(p), n))
    for share in SHARES:
        factor, exact = Fraction(exp(share * log(p))), Fraction(0)
        for ones in range(n):
            laws = batch_laws(krr(2, p), [1] * ones + [0] * (n - 1 - ones))
            exact = max(exact, *(divergence(laws[x], laws[1 - x], factor) for x in (0, 1)))
        found = attack.delta(share * log(p))
        assert found <= exact
        assert found >= float(exact) * (1 - 1e-9)


def test_one_rate_of_error_as_in_theorem_2_3_holds_for_light_data_and_not_for_heavy() -> None:
    """The error of a share, by its exact variance, over sqrt(log k log(1/delta)) / (epsilon n), constant if it held.

    Light: everybody's symbol is held by few. Heavy: half of the people hold one symbol, and those that share its
    block get the noise of its reports, which falls like 1 / sqrt(n) alone.
    """
    k, delta, over = 1 << 16, 1e-6, dict[str, list[float]]()
    light, heavy = np.full(k, 1.0 / k), np.append(np.full(k - 1, 0.5 / (k - 1)), 0.5)
    for n in (10**4, 10**5, 10**6):
        randomizer = Hadamard(k=k, epsilon=max_epsilon(epsilon=1.0, n=n, delta=delta))
        rate = sqrt(log(k) * log(1.0 / delta)) / n
        for name, shares in (("light", light), ("heavy", heavy)):
            error = sqrt(float(randomizer.variance(shares).max()) / n)
            over.setdefault(name, []).append(error / rate)
    assert max(over["light"]) < 1.5 * min(over["light"])
    assert all(after > 2.5 * before for before, after in pairwise(over["heavy"]))


def test_everybody_equal_is_not_always_the_worst_dataset() -> None:
    laws = {ones: batch_laws(krr(2, 3), [1] * ones + [0] * (4 - ones)) for ones in (0, 1)}
    factor = Fraction(5, 4)
    worst = {ones: max(divergence(a, b, factor), divergence(b, a, factor)) for ones, (a, b) in laws.items()}
    assert worst == {0: Fraction(567, 4096), 1: Fraction(81, 512)}


@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("p", [2, 3, 30])
def test_the_three_way_attack_is_the_exact_delta_of_everybody_on_the_third_symbol(p: int, n: int) -> None:
    attack = ThreeWayAttack(log(p), n, three_way_blocks(log(p), n, 1e-30))
    for share in SHARES:
        laws = batch_laws(krr(3, p), [2] * (n - 1))
        exact = divergence(laws[0], laws[1], Fraction(exp(share * log(p))))
        found = attack.delta(share * log(p))
        assert found <= exact
        assert found >= float(exact) * (1 - 1e-8)


@pytest.mark.parametrize("n", [40, 300])
def test_coarse_blocks_keep_the_three_way_attack_below_its_exact_value(n: int) -> None:
    exact = ThreeWayAttack(1.0, n, three_way_blocks(1.0, n, 1e-30))
    counts = exact.blocks.edges
    for groups in (2, 5, 11):
        places = np.linspace(0, counts.size - 1, groups + 1).astype(int)
        masses = np.add.reduceat(exact.blocks.masses, places[:-1])
        coarse = replace(exact, blocks=replace(exact.blocks, edges=counts[places], masses=masses))
        for epsilon in (0.05, 0.2, 0.5):
            assert coarse.delta(epsilon) <= exact.delta(epsilon)


@pytest.mark.parametrize("p", [2, 3, 8])
@pytest.mark.parametrize("n", [2, 3, 6])
def test_a_real_randomizer_reaches_the_reported_attack(p: int, n: int) -> None:
    for delta in (1e-3, 0.05):
        reached = attack_lower(log(p), n, delta)
        if reached == 0.0:
            continue
        collections = [(krr(2, p), [1] * ones + [0] * (n - 1 - ones)) for ones in range(n)]
        collections.append((krr(3, p), [2] * (n - 1)))
        exact = Fraction(0)
        for rows, others in collections:
            for a, b in combinations(batch_laws(rows, others)[:2], 2):
                exact = max(exact, *(divergence(x, y, Fraction(exp(reached))) for x, y in ((a, b), (b, a))))
        assert exact >= delta

"""Leakage against the full k^n channels in fractions, and against exact integers where those channels do not fit."""

from collections import defaultdict
from fractions import Fraction
from itertools import product
from math import comb, factorial, sqrt

import numpy as np
import pytest

from dovetail.core.channel import KRRChannel
from dovetail.leak.load import expected_excess, half_excess
from dovetail.leak.vulnerability import vulnerability

SMALL = [(2, 1), (2, 2), (2, 5), (2, 8), (3, 1), (3, 2), (3, 4), (3, 5), (4, 3), (4, 4), (5, 3)]
MASSES = [(1, 1), (3, 1), (9, 2), (50, 1)]  # keep, lie


def full_vulnerability(k: int, n: int, keep: int, lie: int) -> dict[str, Fraction]:
    """Bayes vulnerability of person 0: over all outputs, the largest joint weight of a value and that output."""
    total = keep + (k - 1) * lie
    joint: dict[str, dict[tuple[int, ...], list[Fraction]]] = {
        name: defaultdict(lambda: [Fraction(0)] * k) for name in ("randomized", "shuffled", "randomized_shuffled")
    }
    for secret in product(range(k), repeat=n):
        prior = Fraction(1, k**n)
        joint["shuffled"][histogram(secret, k)][secret[0]] += prior
        for output in product(range(k), repeat=n):
            weight = prior
            for x, y in zip(secret, output, strict=True):
                weight *= Fraction(keep if x == y else lie, total)
            joint["randomized"][output][secret[0]] += weight
            joint["randomized_shuffled"][histogram(output, k)][secret[0]] += weight
    return {name: sum((max(column) for column in columns.values()), Fraction(0)) for name, columns in joint.items()}


def histogram(values: tuple[int, ...], k: int) -> tuple[int, ...]:
    return tuple(values.count(v) for v in range(k))


def excess_in_integers(n: int, k: int) -> Fraction:
    """E[max load] - n/k: counts of ways with every bin at most m, by doubling the number of bins."""
    choose = [[comb(j, i) for i in range(j + 1)] for j in range(n + 1)]

    def merge(a: list[int], b: list[int]) -> list[int]:  # ways[j]: how many of j labelled balls' placements fit
        return [sum(choose[j][i] * a[i] * b[j - i] for i in range(j + 1) if a[i] and b[j - i]) for j in range(n + 1)]

    total = Fraction(0)
    for m in range(n):
        if m * k < n:
            total += 1
            continue
        one = [1 if i <= m else 0 for i in range(n + 1)]
        ways, power, left = [1] + [0] * n, one, k
        while left:
            if left & 1:
                ways = merge(ways, power)
            left >>= 1
            if left:
                power = merge(power, power)
        total += 1 - Fraction(ways[n], k**n)
    return total - Fraction(n, k)


def excess_by_histograms(n: int, k: int) -> Fraction:
    """The same from every histogram and its multinomial weight."""
    weight = Fraction(0)
    for first in product(range(n + 1), repeat=k - 1):
        rest = n - sum(first)
        if rest >= 0:
            ways = factorial(n)
            for count in (*first, rest):
                ways //= factorial(count)
            weight += ways * max(*first, rest)
    return weight / Fraction(k) ** n - Fraction(n, k)


@pytest.mark.parametrize(("k", "n"), [(k, n) for k, n in SMALL if k**n <= 256])
@pytest.mark.parametrize(("keep", "lie"), MASSES)
def test_every_vulnerability_equals_the_full_channel(k: int, n: int, keep: int, lie: int) -> None:
    exact = full_vulnerability(k, n, keep, lie)
    found = vulnerability(KRRChannel(k, keep, lie), n=n)
    assert found.prior == pytest.approx(1 / k, rel=1e-15)
    for name, truth in exact.items():
        assert abs(Fraction(getattr(found, name)) - truth) <= found.error_bound, name
        leak = truth - Fraction(1, k)
        got = Fraction(getattr(found, f"{name}_leakage"))
        assert abs(got - leak) <= leak * Fraction(1, 10**14) + Fraction(1, 10**40), name
        assert found.error_bound < 1e-14


@pytest.mark.parametrize(("n", "k"), [(1, 3), (2, 3), (7, 3), (30, 3), (12, 4), (9, 5)])
def test_the_two_integer_oracles_agree(n: int, k: int) -> None:
    assert excess_in_integers(n, k) == excess_by_histograms(n, k)


@pytest.mark.parametrize(
    ("n", "k"), [(1, 7), (2, 1_000), (5, 100), (13, 3), (40, 3), (40, 9), (40, 40), (33, 200), (60, 5)]
)
def test_the_excess_lies_within_its_bound_of_exact_fractions(n: int, k: int) -> None:
    exact, found = excess_in_integers(n, k), expected_excess(n, k)
    assert abs(Fraction(found.value) - exact) <= found.error_bound
    assert found.error_bound <= 3e-14 * found.value


@pytest.mark.parametrize(("n", "k", "most"), [(200, 3, 200), (200, 33, 60), (200, 10_000, 20), (120, 32, 60)])
def test_arb_polynomials_confirm_larger_batches(n: int, k: int, most: int) -> None:
    flint = pytest.importorskip("flint")
    factorials = [flint.fmpq(1)]
    for i in range(1, n + 1):
        factorials.append(factorials[-1] / i)
    total = flint.fmpq(0)
    for m in range(min(n, most)):  # beyond `most` the union bound is below 1e-18
        if m * k < n:
            total += 1
            continue
        power, base, left = flint.fmpq_poly([1]), flint.fmpq_poly(factorials[: m + 1]), k
        while left:
            if left & 1:
                power = flint.fmpq_poly((power * base).coeffs()[: n + 1])
            base, left = flint.fmpq_poly((base * base).coeffs()[: n + 1]), left >> 1
        total += 1 - power[n] / factorials[n] / flint.fmpq(k) ** n
    exact = total - flint.fmpq(n, k)
    found = expected_excess(n, k)
    assert abs(Fraction(found.value) - Fraction(int(exact.p), int(exact.q))) <= found.error_bound


@pytest.mark.parametrize("n", [1, 2, 3, 50, 199, 200, 201, 1_001, 5_000])
def test_two_values_follow_the_central_binomial_coefficient(n: int) -> None:
    exact = Fraction(comb(n - 1, (n - 1) // 2), 2**n)  # Theorem 17
    assert abs(Fraction(half_excess(n)) / exact - 1) < Fraction(2, 10**15)
    channel = KRRChannel.of(2, 0.8)
    truth = exact * (2 * Fraction(channel.keep, channel.total) - 1)  # Theorem 19
    found = vulnerability(channel, n=n)
    assert abs(Fraction(found.randomized_shuffled_leakage) / truth - 1) < Fraction(3, 10**15)
    assert abs(Fraction(found.shuffled) - Fraction(1, 2) - exact) <= found.error_bound


def test_published_values_are_met() -> None:
    assert vulnerability(KRRChannel.of(3, 0.9), n=100).shuffled == pytest.approx(0.3826, abs=5e-5)
    assert vulnerability(KRRChannel.of(3, 0.9), n=1_000).shuffled == pytest.approx(0.3488, abs=5e-5)
    assert vulnerability(KRRChannel.of(2, 0.9), n=200).shuffled == pytest.approx(0.5282, abs=5e-5)
    assert vulnerability(KRRChannel.of(2, 0.9), n=200).randomized_shuffled == pytest.approx(0.5225, abs=5e-5)
    assert vulnerability(KRRChannel.of(2, 0.6), n=200).randomized_shuffled == pytest.approx(0.5056, abs=5e-5)


@pytest.mark.parametrize(
    ("k", "mu"), [(2, 0.5641895835), (3, 0.8462843753), (4, 1.0293753730), (5, 1.1629644736), (10, 1.5387527308)]
)
def test_large_batches_leak_like_the_largest_of_k_normals(k: int, mu: float) -> None:
    for n in (10**5, 10**6):
        leak = vulnerability(KRRChannel(k, 2, 1), n=n).shuffled_leakage
        # n -> infinity at rate sqrt(k / n); 0.01 % measured at k = 3, n = 1e6
        assert leak * sqrt(k * n) / mu == pytest.approx(1.0, abs=0.3 * sqrt(k / n))


def test_full_enumeration_catches_a_missing_person() -> None:
    exact = full_vulnerability(3, 4, 3, 1)["shuffled"]
    found = vulnerability(KRRChannel(3, 3, 1), n=5)
    assert abs(Fraction(found.shuffled) - exact) > found.error_bound
    assert np.isfinite(found.error_bound)

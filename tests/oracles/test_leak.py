"""Leakage against the full k^n channels in fractions, and against exact integers where those channels do not fit."""

from collections import defaultdict
from fractions import Fraction
from itertools import combinations, product
from math import comb, factorial, sqrt
from typing import Any

import numpy as np
import pytest
from tests.tiers import one_in, tiered

from dovetail.core.channel import DenseChannel, KRRChannel
from dovetail.leak.exact import exact_vulnerability
from dovetail.leak.max_load import max_load_gap, two_bins_gap
from dovetail.leak.max_load_unequal import Bins, max_load_unequal, top_t_load_gap
from dovetail.leak.vulnerability import vulnerability

SMALL = [(2, 1), (2, 2), (2, 5), (2, 7), (3, 1), (3, 2), (3, 4), (3, 5), (4, 3), (4, 4), (5, 3)]
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


@pytest.mark.parametrize(
    ("k", "n"), tiered([(k, n) for k, n in SMALL if k**n <= 256], first=lambda case: case[0] ** case[1] <= 100)
)
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


Table = list[list[Fraction]]


def enumerated(
    reports: Table, gain: Table, prior: list[Fraction], others: list[list[Fraction]]
) -> tuple[Fraction, Fraction]:
    """V_g before, and after seeing the histogram of all reports: every output of every person, one by one.

    `others` holds the law of the value of each of the others: a point where it is known.
    """
    kinds = len(reports[0])
    laws = [[sum(law[x] * reports[x][y] for x in range(len(law))) for y in range(kinds)] for law in others]
    joint: dict[tuple[int, ...], list[Fraction]] = defaultdict(lambda: [Fraction(0)] * len(prior))
    for output in product(range(kinds), repeat=len(others) + 1):
        chance = Fraction(1)
        for law, y in zip(laws, output[1:], strict=True):
            chance *= law[y]
        for x, weight in enumerate(prior):
            joint[histogram(output, kinds)][x] += weight * reports[x][output[0]] * chance

    def earned(column: list[Fraction]) -> Fraction:
        return max(sum(g * w for g, w in zip(row, column, strict=True)) for row in gain)

    return earned(prior), sum((earned(column) for column in joint.values()), Fraction(0))


def sums_to_one(draw: np.random.Generator, size: int, cells: int = 64) -> list[Fraction]:
    """A random law in 64ths, which floats hold exactly."""
    cuts = np.sort(draw.choice(np.arange(1, cells), size=size - 1, replace=False))
    return [Fraction(int(step), cells) for step in np.diff([0, *cuts, cells])]


def floats(table: Table) -> list[list[float]]:
    return [[float(cell) for cell in row] for row in table]


def tried(k: int, tries: int) -> Table:
    return [[Fraction(x in chosen) for x in range(k)] for chosen in combinations(range(k), tries)]


def near(k: int) -> Table:
    return [[1 - Fraction(abs(a - x), k - 1) for x in range(k)] for a in range(k)]


@pytest.mark.parametrize("seed", one_in(5, range(40)))
def test_any_randomizer_prior_gain_and_knowledge_equals_the_enumeration(seed: int) -> None:
    draw = np.random.default_rng(seed)
    k, kinds, n = int(draw.integers(2, 5)), int(draw.integers(2, 5)), int(draw.integers(1, 5))
    reports = [sums_to_one(draw, kinds) for _ in range(k)]
    prior = sums_to_one(draw, k)
    identity = [[Fraction(x == y) for y in range(k)] for x in range(k)]
    any_gain = [[Fraction(int(cell), 8) for cell in row] for row in draw.integers(0, 17, size=(4, k))]
    tries = int(draw.integers(1, k + 1))
    questions: list[tuple[dict[str, Any], Table]] = [
        ({}, identity),
        ({"tries": tries}, tried(k, tries)),
        ({"gain": "distance"}, near(k)),
        ({"gain": floats(any_gain)}, any_gain),
    ]
    counts = np.bincount(draw.integers(0, k, size=int(draw.integers(0, n))), minlength=k)
    points = [identity[value] for value in range(k) for _ in range(counts[value])]
    unknown = [prior] * (n - 1 - len(points))
    channel, law = DenseChannel(floats(reports)), [float(x) for x in prior]
    for options, gain in questions:
        seen = vulnerability(channel, n=n, prior=law, **options)
        informed = vulnerability(channel, n=n, prior=law, adversary="strong", known=counts, **options)
        before, both = enumerated(reports, gain, prior, [prior] * (n - 1))
        _, strong = enumerated(reports, gain, prior, points + unknown)
        _, shuffled = enumerated(identity, gain, prior, [prior] * (n - 1))
        _, left = enumerated(identity, gain, prior, unknown)
        alone = enumerated(reports, gain, prior, [])[1]
        assert abs(Fraction(seen.prior) - before) <= seen.error_bound
        assert abs(Fraction(seen.randomized) - alone) <= seen.error_bound
        for found, name, truth in (
            (seen, "randomized_shuffled", both),
            (seen, "shuffled", shuffled),
            (informed, "randomized_shuffled", strong),
            (informed, "shuffled", left),
        ):
            ends = getattr(found, f"{name}_bracket")
            assert abs(Fraction(getattr(found, name)) - truth) <= found.error_bound < 1e-12, (options, name)
            assert Fraction(ends.lower) <= truth <= Fraction(ends.upper)


CERTAIN = [
    [(1, 0), (0, 1)],
    [(0.5, 0.5), (0, 1)],
    [(0.5, 0.5, 0), (0, 1, 0), (0.25, 0, 0.75)],
    [(1, 0), (1, 0), (0, 1)],
]


@pytest.mark.exhaust
@pytest.mark.parametrize(
    "channel", [KRRChannel(2, 3, 1), KRRChannel(2, 1, 3), KRRChannel(3, 2, 1), *CERTAIN], ids=repr
)
@pytest.mark.parametrize("flat", tiered([True, False], first=lambda flat: not flat))
def test_every_gain_and_knowledge_is_answered_also_where_reports_are_certain(channel: Any, flat: bool) -> None:
    channel = channel if isinstance(channel, KRRChannel) else DenseChannel(channel)
    k, n = channel.shape[0], 4
    reports = [[Fraction(float(cell)) for cell in row] for row in channel.matrix()]
    identity = [[Fraction(x == y) for y in range(k)] for x in range(k)]
    prior = [Fraction(1, k)] * k if flat else [Fraction(0), *[Fraction(i, 4) for i in (1, 3)]][-k:]
    table = [[Fraction(1), Fraction(1, 2), Fraction(0)][:k], [Fraction(0), Fraction(3), Fraction(1)][:k]]
    questions: list[tuple[dict[str, Any], Table]] = [
        ({}, identity),
        ({"gain": "distance"}, near(k)),
        ({"gain": floats(identity)}, identity),
        ({"gain": floats(table)}, table),
    ]
    for known in [counts for counts in product(range(n), repeat=k) if sum(counts) <= n - 1]:
        others = [identity[x] for x in range(k) for _ in range(known[x])] + [prior] * (n - 1 - sum(known))
        for options, gain in questions:
            law = None if flat else [float(x) for x in prior]
            seen = vulnerability(channel, n=n, prior=law, adversary="strong", known=known, **options)
            truth = enumerated(reports, gain, prior, others)[1]
            assert abs(Fraction(seen.randomized_shuffled) - truth) <= seen.error_bound < 1e-12, (known, options)
            if not any(known):
                blind = vulnerability(channel, n=n, prior=law, **options)
                assert abs(Fraction(blind.randomized_shuffled) - truth) <= blind.error_bound < 1e-12


@pytest.mark.parametrize(("k", "n"), one_in(4, [(2, 1), (2, 4), (3, 3), (3, 4), (4, 3), (5, 2)]))
@pytest.mark.parametrize(("keep", "lie"), [(1, 3), (1, 1), (5, 2)])
def test_uniform_response_equals_the_enumeration_for_tries_distance_and_knowledge(
    k: int, n: int, keep: int, lie: int
) -> None:
    channel = KRRChannel(k, keep, lie)
    identity = [[Fraction(x == y) for y in range(k)] for x in range(k)]
    reports = [[Fraction(keep if x == y else lie, channel.total) for y in range(k)] for x in range(k)]
    even = [Fraction(1, k)] * k
    for options, gain in [({"tries": t}, tried(k, t)) for t in range(1, k + 1)] + [({"gain": "distance"}, near(k))]:
        seen = vulnerability(channel, n=n, **options)  # type: ignore[arg-type]
        for name, table in (("randomized_shuffled", reports), ("shuffled", identity)):
            truth = enumerated(table, gain, even, [even] * (n - 1))[1]
            assert abs(Fraction(getattr(seen, name)) - truth) <= seen.error_bound, (options, name)
        alone = enumerated(reports, gain, even, [])[1]
        assert abs(Fraction(seen.randomized) - alone) <= seen.error_bound, options
    for others in product(range(k), repeat=n - 1):
        counts = histogram(others, k)
        strong = vulnerability(channel, n=n, adversary="strong", known=counts)
        truth = enumerated(reports, identity, even, [identity[x] for x in others])[1]
        assert abs(Fraction(strong.randomized_shuffled) - truth) <= strong.error_bound
        if keep >= lie:
            worst = vulnerability(channel, n=n, adversary="strong")
            assert truth <= Fraction(worst.randomized_shuffled_bracket.upper)


@pytest.mark.parametrize(("k", "n"), [(2, 5), (3, 4), (4, 3)])
@pytest.mark.parametrize(("keep", "lie"), MASSES)
def test_exact_fractions_equal_the_full_channel(k: int, n: int, keep: int, lie: int) -> None:
    full, found = full_vulnerability(k, n, keep, lie), exact_vulnerability(KRRChannel(k, keep, lie), n=n)
    assert {name: getattr(found, name) for name in full} == full


@pytest.mark.parametrize(("n", "k"), [(2, 3), (3, 3), (5, 4), (12, 4), (30, 3), (6, 7), (9, 5)])
def test_the_t_fullest_bins_lie_within_their_bound_of_all_histograms(n: int, k: int) -> None:
    loads = compositions(n, k)
    for t in range(1, k):
        exact = sum(chance(z, [Fraction(1, k)] * k) * sum(sorted(z)[-t:]) for z in loads) - Fraction(t * n, k)
        found = top_t_load_gap(n, k, t)
        assert abs(Fraction(found.value) - exact) <= found.error_bound <= 1e-12


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize(
    ("n", "shares"), [(5, (3, 1, 1)), (20, (7, 2, 1)), (9, (3, 1, 1, 1)), (25, (8, 1, 1)), (7, (4, 3, 2, 1))]
)
def test_the_heaviest_unequal_bin_lies_within_its_bound(n: int, shares: tuple[int, ...], weights: bool) -> None:
    law = [Fraction(share, sum(shares)) for share in shares]
    weigh = [1 / share if weights else Fraction(1) for share in law]
    exact = sum(chance(z, law) * max(a * b for a, b in zip(z, weigh, strict=True)) for z in compositions(n, len(law)))
    bins = tuple(Bins(1, float(share), float(weight)) for share, weight in zip(law, weigh, strict=True))
    found = max_load_unequal(n, bins)
    assert abs(Fraction(found.value) - exact) <= found.error_bound <= 1e-12 * float(exact)


def compositions(n: int, k: int) -> list[tuple[int, ...]]:
    if k == 1:
        return [(n,)]
    return [(first, *rest) for first in range(n + 1) for rest in compositions(n - first, k - 1)]


def chance(z: tuple[int, ...], law: list[Fraction]) -> Fraction:
    total = Fraction(factorial(sum(z)))
    for count, share in zip(z, law, strict=True):
        total *= share**count / factorial(count)
    return total


@pytest.mark.parametrize(("n", "k"), [(1, 3), (2, 3), (7, 3), (30, 3), (12, 4), (9, 5)])
def test_the_two_integer_oracles_agree(n: int, k: int) -> None:
    assert excess_in_integers(n, k) == excess_by_histograms(n, k)


@pytest.mark.parametrize(
    ("n", "k"), [(1, 7), (2, 1_000), (5, 100), (13, 3), (40, 3), (40, 9), (40, 40), (33, 200), (60, 5)]
)
def test_the_excess_lies_within_its_bound_of_exact_fractions(n: int, k: int) -> None:
    exact, found = excess_in_integers(n, k), max_load_gap(n, k)
    assert abs(Fraction(found.value) - exact) <= found.error_bound
    assert found.error_bound <= 3e-14 * found.value


@pytest.mark.exhaust
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
    found = max_load_gap(n, k)
    assert abs(Fraction(found.value) - Fraction(int(exact.p), int(exact.q))) <= found.error_bound


@pytest.mark.parametrize("n", [1, 2, 3, 50, 199, 200, 201, 1_001, 5_000])
def test_two_values_follow_the_central_binomial_coefficient(n: int) -> None:
    exact = Fraction(comb(n - 1, (n - 1) // 2), 2**n)  # Theorem 17
    assert abs(Fraction(two_bins_gap(n)) / exact - 1) < Fraction(2, 10**15)
    channel = KRRChannel.of(2, 0.8)
    truth = exact * (2 * Fraction(channel.keep, channel.total) - 1)  # Theorem 19
    found = vulnerability(channel, n=n)
    assert abs(Fraction(found.randomized_shuffled_leakage) / truth - 1) < Fraction(3, 10**15)
    assert abs(Fraction(found.shuffled) - Fraction(1, 2) - exact) <= found.error_bound


def test_published_values_are_met() -> None:
    assert vulnerability(KRRChannel.of(3, 0.9), n=100).shuffled == pytest.approx(0.3826, abs=5e-5)
    assert vulnerability(KRRChannel.of(3, 0.9), n=1_000).shuffled == pytest.approx(0.3488, abs=5e-5)
    assert vulnerability(KRRChannel.of(2, 0.9), n=200).shuffled == pytest.approx(0.5282, abs=5e-5)
    assert vulnerability(KRRChannel.of(2, 0.9), n=200).shuffled != pytest.approx(0.5286, abs=3e-4)  # also printed
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

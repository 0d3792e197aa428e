"""Hidden among everybody: both theorems against every collection of a few people, and the integral."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal, localcontext
from itertools import combinations_with_replacement, permutations, product

import numpy as np
import pytest
from scipy.stats import binom
from tests.tiers import EXHAUST, one_in

from dovetail.account.binary import BinaryExact
from dovetail.account.finite_channel import channel_exposures
from dovetail.account.hidden_among_everybody import (
    EverybodyLaw,
    FourierBound,
    HidingNodes,
    _turned_sums,
    best_tilt,
    hiding_nodes,
)
from dovetail.account.mechanism_law import declared_laws, everybody_bound, everybody_law, mechanism_attack
from dovetail.account.privacy_blanket import Exposure
from dovetail.core.channel import KRRChannel
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.special import Reals
from dovetail.core.stages import Randomizer
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.laplace import Laplace
from dovetail.randomize.local_hashing import LocalHashing
from dovetail.randomize.subset_selection import SubsetSelection
from dovetail.randomize.unary import Unary
from dovetail.randomize.window import Window


def random_rows(rng: random.Random, inputs: int, outputs: int, spread: float) -> Reals:
    rows = np.array([[math.exp(rng.uniform(0.0, spread)) for _ in range(outputs)] for _ in range(inputs)])
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def exact_delta(rows: Reals, others: tuple[int, ...], a: int, c: int, e: float) -> float:
    """Of the histogram of everybody's reports, by enumeration of all of them."""
    laws: list[dict[tuple[int, ...], float]] = []
    for own in (a, c):
        law: dict[tuple[int, ...], float] = {tuple([0] * rows.shape[1]): 1.0}
        for person in (own, *others):
            following: dict[tuple[int, ...], float] = defaultdict(float)
            for seen, chance in law.items():
                for y, mass in enumerate(rows[person]):
                    following[(*seen[:y], seen[y] + 1, *seen[y + 1 :])] += chance * float(mass)
            law = following
        laws.append(law)
    return sum(max(0.0, laws[0][seen] - e * laws[1][seen]) for seen in laws[0])


def theorem_a(rows: Reals, others: tuple[int, ...], a: int, c: int, e: float, nodes: HidingNodes) -> float:
    """The right-hand side, term by term: every report of the others, and of the empty place."""
    mu, h = rows.min(axis=0), rows[a] - e * rows[c]
    total = nodes.rho
    for s, weight in zip(nodes.s, nodes.weights, strict=True):
        left = [rows[t] - (1.0 - s) * mu for t in others]
        for y in product(range(rows.shape[1]), repeat=len(others) + 1):
            mass = mu[y[0]] * math.prod(law[z] for law, z in zip(left, y[1:], strict=True))
            moved = h[y[0]] / mu[y[0]] + sum(s * h[z] / law[z] for law, z in zip(left, y[1:], strict=True))
            total += weight * mass * max(0.0, moved)
    return float(total)


def few_people(count: int, seed: str) -> Iterator[tuple[Reals, int, float]]:
    rng = random.Random(seed)
    for _ in range(count):
        rows = random_rows(rng, rng.randint(2, 3), rng.randint(2, 3), rng.choice([0.5, 1.5, 3.0]))
        yield rows, rng.randint(2, 4), math.exp(rng.choice([-0.3, 0.0, 0.1, 0.4, 1.0]))


def no_collection_is_more_exposed_than_theorem_a_says(count: int, seed: str) -> None:
    for rows, n, e in few_people(count, seed):
        g = float(rows.min(axis=0).sum())
        for most in (1.0, 1e-8):
            nodes = hiding_nodes(n, g, most=most)
            for a, c in permutations(range(len(rows)), 2):
                for others in combinations_with_replacement(range(len(rows)), n - 1):
                    assert exact_delta(rows, others, a, c, e) <= theorem_a(rows, others, a, c, e, nodes) + 1e-14


def test_no_collection_of_a_few_people_is_more_exposed_than_theorem_a_says() -> None:
    no_collection_is_more_exposed_than_theorem_a_says(6, "theorem a, first tier")


@EXHAUST
def test_no_collection_of_many_random_channels_is_more_exposed_than_theorem_a_says() -> None:
    no_collection_is_more_exposed_than_theorem_a_says(120, "theorem a, second tier")


def binary_delta(rows: Reals, counts: tuple[int, ...], a: int, c: int, e: float) -> float:
    """Exact, for two outputs: the number of ones is all that is seen."""
    ones = np.ones(1)
    for row, count in zip(rows, counts, strict=True):
        ones = np.convolve(ones, binom.pmf(np.arange(count + 1), count, row[1]))
    first, second = (np.convolve(ones, rows[x]) for x in (a, c))
    return float(np.maximum(first - e * second, 0.0).sum())


def compositions(n: int, types: int, step: int) -> Iterator[tuple[int, ...]]:
    for head in product(range(0, n + 1, step), repeat=types - 1):
        if sum(head) <= n:
            yield (*head, n - sum(head))


@pytest.mark.parametrize("case", one_in(2, range(4)))
def test_no_collection_of_fifty_people_is_more_exposed_than_the_integral_says(case: int) -> None:
    rng = random.Random(f"theorem b {case}")
    types, n = 2 + case % 2, 40 + 13 * case
    rows = random_rows(rng, types, 2, 1.5)
    for exposure, (a, c) in zip(channel_exposures(rows), permutations(range(types), 2), strict=True):
        nodes = hiding_nodes(n, exposure.g, most=1e-9)
        for epsilon in (0.05, 0.3, 0.8):
            bound = FourierBound(exposure, n, epsilon, nodes).value() + nodes.rho
            worst = max(binary_delta(rows, k, a, c, math.exp(epsilon)) for k in compositions(n - 1, types, 3))
            assert worst <= bound


@pytest.mark.parametrize("epsilon0", [0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("n", [400, 1000])
def test_the_exact_maximum_of_binary_response_is_just_below(epsilon0: float, n: int) -> None:
    law, exact = (
        everybody_law(KRRChannel.of(2, 1 / (1 + math.exp(-epsilon0))), n=n, delta=1e-8),
        BinaryExact(epsilon0, n),
    )
    for delta in (1e-3, 1e-5, 1e-8):
        epsilon = exact.epsilon(delta).lower
        assert exact.delta(epsilon).upper <= law.upper(epsilon)
    assert law.upper(epsilon) <= 2.0 * exact.delta(epsilon).lower


def dense(bound: FourierBound, theta: float) -> float:
    """Theorem B without its certificate: trapezoid sums over u, at the smallest noise the bound adds."""
    exposure, n, e, total = bound.exposure, bound.n, math.exp(bound.epsilon), 0.0
    mu, h = exposure.mu, exposure.first - e * exposure.second
    m0 = float((mu[0] * np.exp(theta * h[0] / mu[0])).sum())
    for s, weight in zip(bound.nodes.s, bound.nodes.weights, strict=True):
        own = exposure.own - (1.0 - s) * mu
        x = s * h / own
        tilted = own * np.exp(theta * x)
        share = tilted / tilted.sum(axis=1, keepdims=True)
        variance = float(((share * x**2).sum(axis=1) - (share * x).sum(axis=1) ** 2).max())
        scale = theta * math.sqrt((n - 1) * variance)
        u = np.linspace(0.0, 60.0 / scale, 20_001)
        size = np.abs((own[:, None] * np.exp(theta * (1.0 + 1j * u[:, None]) * x[:, None])).sum(axis=2))
        noise = np.exp(0.5 * 3e-4 * scale**2 * (1.0 - u**2))
        integrals = 2.0 * np.trapezoid(size ** (n - 1) * noise / (1.0 + u**2), u, axis=1)
        total += float(weight) * m0 / (2.0 * math.pi * theta) * float(integrals.max())
    return total


@pytest.mark.parametrize(
    ("k", "epsilon0", "n", "epsilon"), [(4, 1.0, 2000, 0.08), (4, 2.0, 5000, 0.1), (2, 1.0, 10**5, 0.01)]
)
def test_the_certified_integral_is_just_above_a_dense_one(k: int, epsilon0: float, n: int, epsilon: float) -> None:
    law = everybody_law(KRR(k, epsilon0), n=n, delta=1e-6)
    [exposure] = law.exposures
    nodes = hiding_nodes(n, exposure.g, most=1e-12)
    bound, theta = FourierBound(exposure, n, epsilon, nodes), best_tilt(exposure, n, epsilon)
    assert theta is not None
    truth = dense(bound, theta)
    assert truth <= bound.value() <= truth * 1.01


@pytest.mark.parametrize("atoms", [3, 700])  # of the second, blocks hold a few rows
def test_atoms_are_turned_by_their_cosines_and_sines(atoms: int) -> None:
    draws = np.random.default_rng(atoms)
    x, mass, u = draws.normal(size=(2, 3, atoms)), draws.random((2, 3, atoms)), np.linspace(0.0, 9.0, 40)
    angles = u[:, None] * x[:, :, None, :]
    wanted = [
        (weight[:, :, None, :] * turned).sum(axis=3)
        for weight in (mass, mass * x)
        for turned in (1.0 - np.cos(angles), np.sin(angles))
    ]
    found = _turned_sums(x, mass, u)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-10)


def test_the_tilt_alone_is_above_the_integral() -> None:
    [exposure] = everybody_law(KRR(3, 1.0), n=2000, delta=1e-6).exposures
    nodes = hiding_nodes(2000, exposure.g, most=1e-12)
    bound = FourierBound(exposure, 2000, 0.08, nodes)
    assert bound.value() < bound.value(enough=1.0) < 20.0 * bound.value()


def test_the_logarithm_of_a_moment_is_rounded_up_for_a_trillion_people() -> None:
    n, rng = 10**12, random.Random("rounding")
    for _ in range(25):
        p, epsilon, theta = math.exp(rng.uniform(0.5, 4.0)), 1e-5 * rng.random(), 1e-6 * (1.0 + rng.random())
        s, r = 1.0 / (p + 1.0), p / (p + 1.0)
        exposure = Exposure.of([(np.full(2, s), np.array([r, s]), np.array([s, r]), np.array([r, s]))])
        nodes = hiding_nodes(n, exposure.g, most=1e-12)
        bound = FourierBound(exposure, n, epsilon, nodes)
        top = bound._top(bound._tilted(theta))[0, 0]
        with localcontext() as context:
            context.prec = 60
            e, kept, lie = Decimal(epsilon).exp(), Decimal(p) / (Decimal(p) + 1), 1 / (Decimal(p) + 1)
            node = 1 - Decimal(float(nodes.missing[0]))
            law, h = [kept - (1 - node) * lie, node * lie], [kept - e * lie, lie - e * kept]
            moment = sum(m * (Decimal(theta) * node * x / m).exp() for m, x in zip(law, h, strict=True))
            truth = float((n - 1) * moment.ln())
        assert truth <= top <= truth + 0.02


# --- nodes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "g", "most"), [(5, 0.4, 1e-3), (5, 0.4, 1e-30), (200, 0.3, 1e-9), (2000, 0.05, 1e-12)])
def test_nobody_is_asked_to_hide_more_than_once(n: int, g: float, most: float) -> None:
    nodes = hiding_nodes(n, g, most=most)
    k = np.arange(n)
    chance = (nodes.weights * nodes.s ** k[:, None]).sum(axis=1)
    assert np.all((k + 1) * chance <= 1.0 + 1e-13)
    given_up = float(binom.pmf(k, n - 1, g) @ (1.0 - (k + 1) * chance))
    assert abs(given_up - nodes.rho) <= 1e-6 * nodes.rho + 1e-13
    assert nodes.rho > 0.0 and (nodes.rho <= most or nodes.s.size == 16)


def test_what_is_given_up_counts() -> None:
    exposures = channel_exposures(KRR(2, 1.0).channel().matrix())
    loose = EverybodyLaw(exposures, 100, 1.0, scale=1.0)
    rho = hiding_nodes(100, exposures[0].g, most=1e-6).rho
    assert 1e-9 < rho <= loose.upper(0.9)


def test_every_pair_is_evaluated_at_the_answer() -> None:
    rng = random.Random("pairs")
    for _ in range(8):
        rows = random_rows(rng, 3, 3, 1.5)
        law = EverybodyLaw(channel_exposures(rows), 2000, 8.0, 1e-6)
        epsilon = law.epsilon_upper(1e-6)
        for exposure in law.exposures:
            assert EverybodyLaw([exposure], 2000, 8.0, 1e-6).upper(epsilon) <= 1e-6
        assert law.upper(epsilon * 0.999) > 1e-6


def test_an_epsilon_that_is_known_ends_a_search_at_once_or_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    law = everybody_law(KRR(3, 8.15), n=80_000, delta=1e-7)
    alone = law.epsilon_upper(1e-7)
    assert law.epsilon_upper(1e-7, most=1.1 * alone) == alone
    asked: list[float] = []
    value = FourierBound.value

    def counted(bound: FourierBound, *, enough: float = 0.0, tilt: float | None = None) -> float:
        asked.append(bound.epsilon)
        return value(bound, enough=enough, tilt=tilt)

    monkeypatch.setattr(FourierBound, "value", counted)
    assert law.epsilon_upper(1e-7, most=0.9 * alone) == 0.9 * alone and len(asked) == 1


# --- which pairs and types -----------------------------------------------------------------------------------------


def signature(first: Reals, second: Reals, own: Reals) -> tuple[float, float]:
    """Two moments of the ratios to the others' law, equal for equal laws only; mu may be smaller than it could."""
    h, used = first - 1.3 * second, own > 0.0
    ratio, other = h[used] / own[used], second[used] / own[used]
    return float(own[used] @ np.exp(0.2 * ratio)), float(own[used] @ np.exp(0.1 * ratio + 0.3 * other))


def signatures(exposures: list[Exposure]) -> set[tuple[float, float]]:
    rows = [zip(x.first, x.second, x.own, strict=True) for x in exposures]
    return {signature(*row) for exposure in rows for row in exposure}


@pytest.mark.parametrize(
    "mechanism",
    [KRR(2, 1.0), KRR(3, 1.0), KRR(6, 0.7), Hadamard(2, 1.0), Hadamard(3, 1.0), Hadamard(7, 0.6), Hadamard(5, 1.2),
     Hadamard(12, 2.0), Unary(2, 1.0), Unary(4, 1.5), Unary(4, 1.5, "symmetric"), SubsetSelection(2, 1.0),
     SubsetSelection(6, 0.8)],
    ids=repr,
)  # fmt: skip
def test_every_pair_and_every_value_of_the_others_is_among_the_declared_ones(mechanism: Randomizer) -> None:
    subject = mechanism.accounted
    exposures = declared_laws()[type(subject)].exposures
    assert exposures is not None
    seen = signatures(list(channel_exposures(mechanism.channel().matrix())))  # type: ignore[attr-defined]
    declared = signatures(exposures(subject))
    missing = {s for s in seen if not any(np.allclose(s, d, rtol=1e-6) for d in declared)}
    assert not missing


def test_laplace_reports_are_those_of_the_grid_with_everything_outside_at_its_ends() -> None:
    laplace = Laplace(0.0, 1.0, epsilon=1.0, grid=0.25)
    exposures = declared_laws()[Laplace].exposures
    assert exposures is not None
    rows, far = exposures(laplace)[0].own, np.arange(-4000, 4001)
    for value in range(5):
        law = math.tanh(0.125) * np.exp(-0.25 * np.abs(far - value))
        clamped = np.bincount(np.clip(far, 0, 4), law)
        np.testing.assert_allclose(rows[value], clamped, rtol=1e-10)


def agreement(g: int, m1: int, m2: int) -> float:
    """The share of both seeds under which three values hash alike, by a sum over one of them."""
    a = (np.arange(200_003) + 0.5) / 200_003
    places = np.sort(np.stack([0.0 * a, (m1 * a) % 1.0, (-m2 * a) % 1.0]), axis=0)
    gaps = np.stack([places[1] - places[0], places[2] - places[1], 1.0 - places[2] + places[0]])
    return float((g * np.maximum(0.0, gaps - (1.0 - 1.0 / g)).sum(axis=0)).mean())


def test_three_hashes_agree_as_often_as_the_declared_types_allow() -> None:
    def bernoulli(x: float) -> float:
        y = x - math.floor(x)
        return y * (y - 0.5) * (y - 1.0)

    for g in (2, 3, 4, 10):
        for m1, m2 in ((1, 1), (1, 2), (2, 3), (6, 7), (1, 9), (13, 7)):
            a, b = m1 / g, m2 / g
            formula = (1 + (bernoulli(a) + bernoulli(b) - bernoulli(a + b)) / (3 * a * b * (a + b))) / g**2
            assert formula == pytest.approx(agreement(g, m1, m2), abs=1e-8)
            assert max(25 / 27 / g**2, 1.5 / g - 0.5) - 1e-12 <= formula <= 0.5 / g + 1e-12


@pytest.mark.parametrize("epsilon", [0.2, 0.5, 1.0, 2.2])
def test_the_types_of_hashing_span_what_three_hashes_do(epsilon: float) -> None:
    hashing = LocalHashing(100, epsilon)
    exposures = declared_laws()[LocalHashing].exposures
    assert exposures is not None
    [exposure] = exposures(hashing)
    p = float((exposure.first[0] / np.maximum(exposure.mu[0], 1e-300)).max())
    alike = np.isclose(np.minimum(np.minimum(exposure.first, exposure.second), exposure.own), p * exposure.mu)
    agree = (exposure.mu * alike).sum(axis=1)[2:] * hashing.g / exposure.g
    seen = [agreement(hashing.g, m1, m2) for m1, m2 in ((1, 1), (1, 2), (2, 3), (3, 3 + hashing.g), (7, 8))]
    assert agree.min() <= min(seen) + 1e-8 and max(seen) - 1e-8 <= agree.max()


def test_the_hashes_that_ship_agree_as_often_as_the_circle_says() -> None:
    """False alarms: five standard errors, below 1e-6; a family of independent hashes is 100 of them off."""
    hashing, people = LocalHashing(5, 2.0), 400_000
    seeds = np.random.default_rng(20261122).integers(0, 2**64, size=(people, 2), dtype=np.uint64)
    hashes = [hashing.hash(np.full(people, x), seeds) for x in range(3)]
    share = float(np.mean((hashes[0] == hashes[1]) & (hashes[1] == hashes[2])))
    expected = 0.5 / hashing.g
    assert abs(share - expected) <= 5.0 * math.sqrt(expected / people)


# --- what is promised ----------------------------------------------------------------------------------------------

MECHANISMS = [
    KRR(2, 4.0), KRR(3, 4.0), KRR(100, 4.0), Hadamard(2, 4.0), Hadamard(100, 4.0), Unary(2, 4.0), Unary(50, 4.0),
    Unary(50, 4.0, "symmetric"), SubsetSelection(20, 4.0), LocalHashing(2, 4.0), LocalHashing(100, 4.0),
    Laplace(0.0, 1.0, epsilon=4.0, grid=0.25),
]  # fmt: skip


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_what_is_promised_is_within_a_thousandth_of_an_attack(mechanism: Randomizer) -> None:
    bound = everybody_bound(mechanism, n=10**5, delta=1e-6)
    attack = mechanism_attack(mechanism, n=10**5, delta=1e-6)
    assert bound.epsilon is not None and attack <= bound.epsilon <= 1.001 * attack


def test_a_few_people_and_too_many_pairs_are_left_to_other_bounds() -> None:
    with pytest.raises(UnsupportedError, match="needs 30 reports"):
        everybody_law(KRR(2, 4.0), n=100, delta=1e-6)
    fine = Laplace(0.0, 1.0, epsilon=1.0, grid=1 / 64)
    assert "32 grid steps" in everybody_bound(fine, n=10**5, delta=1e-6).reason
    assert everybody_bound(KRR(2, 1.0), n=10**5, delta=0.0).epsilon is None


@pytest.mark.parametrize(
    "fields",
    [
        ([[0.5, 0.5]], [[0.5, 0.5]], [[0.5, 0.5]], [[0.4, 0.6]]),
        ([[0.2, 0.2]], [[0.5, 0.4]], [[0.5, 0.5]], [[0.5, 0.5]]),
        ([[0.2, 0.0]], [[0.5, 0.5]], [[0.5, 0.5]], [[0.5, 0.5]]),
        ([[0.2, math.nan]], [[0.5, 0.5]], [[0.5, 0.5]], [[0.5, 0.5]]),
        ([[0.2, 0.2]], [[0.5, math.nan]], [[0.5, 0.5]], [[0.5, 0.5]]),
        ([[0.2]], [[0.5, 0.5]], [[0.5, 0.5]], [[0.5, 0.5]]),
        ([[0.2, 0.2], [0.1, 0.1]], [[0.5, 0.5]] * 2, [[0.5, 0.5]] * 2, [[0.5, 0.5]] * 2),
    ],
)
def test_laws_that_are_none_are_refused(fields: tuple[list[list[float]], ...]) -> None:
    with pytest.raises(DataError):
        Exposure(*(np.array(field) for field in fields))


@pytest.mark.parametrize(("m", "width", "epsilon"), [(6, 2, 2.0), (5, 4, 1.0), (6, 6, 0.7), (4, 3, 1.5)])
def test_disjoint_windows_expose_as_much_as_the_worst_pair_among_all_windows(
    m: int, width: int, epsilon: float
) -> None:
    window = Window(lower=0.0, upper=float(m), epsilon=epsilon, grid=1.0, window=width)
    inside, low = window.device.masses
    rows = np.array([[inside / width if a <= y < a + width else low for y in range(m + width)] for a in range(m + 1)])
    rows /= rows.sum(axis=1, keepdims=True)
    for n, e in ((300, 0.05 * epsilon), (3_000, 0.05 * epsilon), (3_000, 0.15 * epsilon)):
        every = EverybodyLaw(channel_exposures(rows), n, window.epsilon, 1e-6).upper(e)
        assert everybody_law(window, n=n, delta=1e-6).upper(e) == pytest.approx(every, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("epsilon0", [0.5, 2.0])
def test_overlapping_windows_are_known_to_a_thousandth(epsilon0: float) -> None:
    window = Window(lower=0.0, upper=1.0, epsilon=epsilon0)
    promised = everybody_bound(window, n=20_000, delta=1e-6).epsilon
    assert promised is not None
    assert promised <= 1.001 * mechanism_attack(window, n=20_000, delta=1e-6)

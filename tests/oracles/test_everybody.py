"""Hidden among everybody: both theorems against every collection of a few people, and the integral."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal, localcontext
from itertools import combinations, combinations_with_replacement, permutations, product

import numpy as np
import pytest
from scipy.stats import binom
from tests.tiers import EXHAUST, one_in

from dovetail.account.amplify import amplify
from dovetail.account.binary import BinaryExact
from dovetail.account.finite_channel import channel_exposures
from dovetail.account.hidden_among_everybody import (
    EverybodyLaw,
    FourierBound,
    HidingNodes,
    PairMoments,
    _even_cells,
    _turned_sums,
    best_tilt,
    hiding_nodes,
)
from dovetail.account.mechanism_law import (
    declared_laws,
    everybody_bound,
    everybody_law,
    exposures_of,
    mechanism_attack,
    worst_exposures,
)
from dovetail.account.mechanisms.any_randomizer import any_exposures
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


@EXHAUST
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


@pytest.mark.parametrize(("atoms", "first", "count"), [(3, 0.0, 40), (700, 8.0, 7), (5, 0.5, 1)])
def test_atoms_are_turned_by_their_cosines_and_sines(atoms: int, first: float, count: int) -> None:
    draws = np.random.default_rng(atoms)
    x, mass, cells = draws.normal(size=(6, atoms)), draws.random((6, atoms)), _even_cells(first, 0.2, count)
    angles = (0.5 * (cells.edges[1:] + cells.edges[:-1]))[:, None] * x[:, None, :]
    wanted = [
        (weight[:, None, :] * turned).sum(axis=2)
        for weight in (mass, mass * x)
        for turned in (1.0 - np.cos(angles), np.sin(angles))
    ]
    np.testing.assert_allclose(_turned_sums(x, mass, cells), wanted, rtol=1e-9, atol=1e-10)


def test_what_an_atom_near_zero_is_turned_by_keeps_its_digits() -> None:
    cells, tiny = _even_cells(0.0, 0.2, 40), np.array([[1e-9]])
    versed, sine, _, _ = _turned_sums(tiny, np.ones((1, 1)), cells)
    angles = 1e-9 * 0.5 * (cells.edges[1:] + cells.edges[:-1])
    np.testing.assert_allclose([versed[0], sine[0]], [0.5 * angles**2, angles], rtol=1e-14)


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
        top = bound._top(bound._tilted(theta, exposure))[0, 0]
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


def test_epsilon0_itself_is_kept_without_delta_by_whoever_reports_at_epsilon0() -> None:
    rows = random_rows(random.Random("ends"), 3, 3, 1.5)
    law = EverybodyLaw(channel_exposures(rows), 50, 1.25, 1e-6)
    assert law.upper(1.25) == 0.0 and law.reaches(1.25, 0.0)


def test_what_is_given_up_counts() -> None:
    exposures = channel_exposures(KRR(2, 1.0).channel().matrix())
    loose = EverybodyLaw(exposures, 100, 1.0, scale=1.0)
    rho = hiding_nodes(100, exposures[0].g, most=1e-6).rho
    assert 1e-9 < rho <= loose.upper(0.9)


@EXHAUST
def test_every_pair_is_evaluated_at_the_answer() -> None:
    rng = random.Random("pairs")
    for _ in range(8):
        rows = random_rows(rng, 3, 3, 1.5)
        law = EverybodyLaw(channel_exposures(rows), 2000, 8.0, 1e-6)
        epsilon = law.epsilon_upper(1e-6)
        for exposure in law.exposures:
            assert EverybodyLaw([exposure], 2000, 8.0, 1e-6).upper(epsilon) <= 1e-6
        assert law.upper(epsilon * 0.999) > 1e-6


@pytest.mark.parametrize(("epsilon0", "n", "epsilon"), [(1.0, 1_000, 0.0), (4.0, 10**5, 0.05), (8.0, 10**6, 0.2)])
def test_two_moments_of_a_pair_are_above_what_its_tilt_says(epsilon0: float, n: int, epsilon: float) -> None:
    law = everybody_law(Laplace(0.0, 1.0, epsilon0, grid=0.125), n=n, delta=1e-9)
    nodes = hiding_nodes(n, law.exposures[0].g, most=1e-15)
    tilt = best_tilt(law.exposures[0], n, epsilon)
    assert tilt is not None
    several = PairMoments.of(law.exposures, nodes).logs(tilt, epsilon, n, nodes)
    alone = [FourierBound(one, n, epsilon, nodes)._quick(tilt)[2].max(axis=1) for one in law.exposures]
    assert np.all(np.array(alone) <= several.T)


@pytest.mark.parametrize("case", range(4))
def test_mean_and_variance_bound_every_collection_of_a_few_people(case: int) -> None:
    rng = random.Random(f"mean and variance {case}")
    rows, n = random_rows(rng, 3, 2, 2.0), 9
    exposures = channel_exposures(rows)
    mu, g = rows.min(axis=0), float(rows.min(axis=0).sum())
    nodes = hiding_nodes(n, g, most=1e-6)
    moments = PairMoments.of(exposures, nodes)
    for epsilon in (0.0, 0.1, 0.5):
        logs, e = moments.spread_logs(epsilon, n, nodes), math.exp(epsilon)
        for pair, (a, c) in enumerate(permutations(range(3), 2)):
            h = rows[a] - e * rows[c]
            for counts in compositions(n - 1, 3, 1):
                for node, (s, weight) in enumerate(zip(nodes.s, nodes.weights, strict=True)):
                    law, values = np.ones(1), np.zeros(1)  # of each number of ones of each type, and the sum then
                    for t, count in enumerate(counts):
                        left = rows[t] - (1.0 - s) * mu
                        ones = np.arange(count + 1)
                        masses = np.array([math.comb(count, j) * left[1] ** j * left[0] ** (count - j) for j in ones])
                        sums = s * (ones * h[1] / left[1] + (count - ones) * h[0] / left[0])
                        law, values = np.outer(law, masses).ravel(), np.add.outer(values, sums).ravel()
                    exact = sum(mu[y] * float(law @ np.maximum(values + h[y] / mu[y], 0.0)) for y in (0, 1))
                    assert weight * exact <= math.exp(logs[node, pair])


def test_what_is_above_a_known_delta_is_told_no_closer() -> None:
    law = everybody_law(Laplace(0.0, 1.0, 1.0, grid=0.125), n=1_000, delta=1e-12)
    for epsilon in (0.0, 0.05, 0.15, 0.25):
        alone = law.upper(epsilon)
        assert alone <= law.upper(epsilon, most=0.9) <= alone * (1.0 + 1e-5)
        assert alone <= law.upper(epsilon, most=1.5 * alone) <= alone * (1.0 + 1e-5)
        assert 0.5 * alone < law.upper(epsilon, most=0.5 * alone)


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


@pytest.mark.parametrize("mechanism", [Hadamard(k, 1.0) for k in (2, 3, 4, 5)], ids=repr)
def test_hadamard_declares_no_value_of_the_others_that_does_not_exist(mechanism: Hadamard) -> None:
    exposures = declared_laws()[type(mechanism.accounted)].exposures
    assert exposures is not None
    seen = signatures(list(channel_exposures(mechanism.channel().matrix())))
    declared = signatures(exposures(mechanism.accounted))
    assert {s for s in declared if not any(np.allclose(s, d, rtol=1e-6) for d in seen)} == set()


def test_laplace_reports_are_those_of_the_grid_with_everything_outside_at_its_ends() -> None:
    laplace = Laplace(0.0, 1.0, epsilon=1.0, grid=0.25)
    exposures = declared_laws()[Laplace].exposures
    assert exposures is not None
    rows, far = exposures(laplace)[0].own, np.arange(-4000, 4001)
    for value in range(5):
        law = math.tanh(0.125) * np.exp(-0.25 * np.abs(far - value))
        clamped = np.bincount(np.clip(far, 0, 4), law)
        np.testing.assert_allclose(rows[value], clamped, rtol=1e-10)


def stop_losses(x: Reals, law: Reals, levels: Reals) -> Reals:
    return np.asarray((np.maximum(x - levels[:, None], 0.0) * law).sum(axis=1))


def every_person_of_laplace_is_no_more_exposed_than_the_declared_types(count: int, seed: str) -> None:
    rng = random.Random(seed)
    for _ in range(count):
        m, epsilon0 = rng.randint(1, 8), rng.choice([0.3, 1.0, 4.0, 8.0])
        rows = declared_laws()[Laplace].exposures(Laplace(0.0, 1.0, epsilon0, grid=1.0 / m))[0].own  # type: ignore[misc]
        e, mu = math.exp(rng.choice([0.0, 0.1, 0.7]) * epsilon0), rows.min(axis=0)
        lost = rng.choice([0.0, 0.01, 0.5, 0.999]) / e
        for a, c, t in product(range(m + 1), repeat=3):
            if a < c and math.exp(epsilon0 * (c - a) / m) > e:  # otherwise nothing is exposed
                first, second = (0 if t >= a else a), (m if t <= c else c)
                base = rows[t] - lost * mu
                x, most = ((rows[i] - e * rows[j]) / base for i, j in ((a, c), (first, second)))
                levels = np.concatenate([x, most])
                slack = 1e-12 * float(np.abs(levels).max())
                assert np.all(stop_losses(x, base, levels) <= stop_losses(most, base, levels) + slack)


def test_every_person_of_laplace_is_no_more_exposed_than_the_declared_types() -> None:
    every_person_of_laplace_is_no_more_exposed_than_the_declared_types(12, "laplace, first tier")


@EXHAUST
def test_every_person_of_laplace_on_many_grids_is_no_more_exposed_than_the_declared_types() -> None:
    every_person_of_laplace_is_no_more_exposed_than_the_declared_types(300, "laplace, second tier")


@pytest.mark.parametrize("m", [1, 2, 5])
def test_the_declared_types_of_laplace_are_rows_of_its_channel(m: int) -> None:
    laplace = Laplace(0.0, 1.0, 2.0, grid=1.0 / m)
    [worst] = worst_exposures(laplace)
    rows = declared_laws()[Laplace].exposures(laplace)[0].own  # type: ignore[misc]
    triples = [(0, m, t) for t in range(m + 1)]
    triples += [(a, m, t) for a in range(1, m) for t in range(a)] + [
        (0, c, t) for c in range(1, m) for t in range(c + 1, m + 1)
    ]
    found = np.swapaxes([worst.mu, worst.first, worst.second, worst.own], 0, 1)
    wanted = [np.array([rows.min(axis=0), *rows[list(three)]]) for three in triples]
    assert sorted(map(merged, found)) == sorted(map(merged, wanted))


def merged(law: Reals) -> list[tuple[float, ...]]:
    """Masses of mu, R_a, R_c and R_t, places with the same ratios together."""
    places = law[:, law[0] > 0.0]
    _, at = np.unique(np.round(places / places[0], 6), axis=1, return_inverse=True)
    return sorted(tuple(np.bincount(at.ravel(), row).round(8).tolist()) for row in places)  # fmt: skip


@pytest.mark.parametrize(("epsilon0", "n"), [(1.0, 600), (4.0, 10**5)])
def test_laplace_is_promised_the_same_by_its_types_as_by_all_pairs(epsilon0: float, n: int) -> None:
    laplace = Laplace(0.0, 1.0, epsilon0, grid=0.125)
    every = EverybodyLaw(exposures_of(laplace), n, epsilon0, 1e-6).epsilon_upper(1e-6)
    assert everybody_law(laplace, n=n, delta=1e-6).epsilon_upper(1e-6) == pytest.approx(every, rel=1e-5)


@EXHAUST
def test_reports_between_places_cost_next_to_nothing() -> None:
    coarse, fine = (everybody_bound(Laplace(0.0, 1.0, 4.0, grid=1 / m), n=10**5, delta=1e-6) for m in (32, 64))
    attack = mechanism_attack(Laplace(0.0, 1.0, 4.0, grid=1 / 64), n=10**5, delta=1e-6)
    assert coarse.epsilon is not None and fine.epsilon is not None
    assert attack <= fine.epsilon <= 1.002 * attack


def test_among_few_people_all_pairs_of_laplace_are_compared() -> None:
    law = everybody_law(Laplace(0.0, 1.0, 2.0, grid=0.5), n=110, delta=1e-6)
    assert len(law.exposures) > 1 and law.upper(1.0) < 1e-5


def test_types_that_wide_cells_do_not_settle_are_integrated() -> None:
    rng, others = random.Random("wide cells"), 0
    for _ in range(12):
        exposure, n, epsilon = channel_exposures(random_rows(rng, 9, 4, 1.0))[0], 400, 1e-5
        bound = FourierBound(exposure, n, epsilon, hiding_nodes(n, exposure.g, most=1e-9))
        tilt = best_tilt(exposure, n, epsilon)
        assert tilt is not None
        _, tilted, logs = bound._quick(tilt)
        likely, rows = int(logs.max(axis=0).argmax()), tilted.rows(np.ones(logs.shape, dtype=bool))
        first = tilted.rows(np.arange(9) == np.full(logs.shape, likely))
        grid, _ = bound._grid(first, math.sqrt((n - 1) * float(first.variance.max())), 1.0)
        every = logs + np.log(np.sum(bound._shares(rows, grid), axis=0)).reshape(logs.shape)
        np.testing.assert_allclose(bound._worst(tilt, tilted, logs), every.max(axis=1), rtol=0.0, atol=1e-9)
        others += int(every.max(axis=0).argmax()) != likely
    assert others > 0


def test_an_epsilon_that_few_types_keep_is_asked_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, changed = random.Random("few types"), 0
    for _ in range(6):
        rows, n = random_rows(rng, 9, 4, 1.0), 400
        monkeypatch.setattr("dovetail.account.privacy_blanket.FOREMOST", 0)  # the first type alone
        law = EverybodyLaw(channel_exposures(rows)[:1], n, 1.0, 1e-6)
        found = law.epsilon_upper(1e-6)
        assert law.upper(found) <= 1e-6
        changed += EverybodyLaw([law.exposures[0].foremost], n, 1.0, 1e-6).epsilon_upper(1e-6) < 0.99 * found
        monkeypatch.undo()
    assert changed > 0


def test_a_delta_that_is_kept_at_epsilon_zero_is_found_at_once() -> None:
    law = everybody_law(KRR(3, 0.1), n=10**7, delta=1e-3)
    assert law.upper(0.0) <= 1e-3
    assert law.epsilon_upper(1e-3) == 0.0


def test_types_of_laplace_are_asked_only_where_they_stand_for_all() -> None:
    [worst] = worst_exposures(Laplace(0.0, 1.0, 8.0, grid=0.25))
    nodes = hiding_nodes(100, worst.g, most=1e-6)
    far = -math.log(float(nodes.missing.max()))  # E (1 - s) is 1
    assert math.isfinite(FourierBound(worst, 100, 0.999 * far, nodes).value())
    assert FourierBound(worst, 100, 1.001 * far, nodes).value() == math.inf


def agreement(g: int, m1: int, m2: int) -> float:
    """The share of both seeds under which three values hash alike, by a sum over one of them."""
    a = (np.arange(200_003) + 0.5) / 200_003
    places = np.sort(np.stack([0.0 * a, (m1 * a) % 1.0, (-m2 * a) % 1.0]), axis=0)
    gaps = np.stack([places[1] - places[0], places[2] - places[1], 1.0 - places[2] + places[0]])
    return float((g * np.maximum(0.0, gaps - (1.0 - 1.0 / g)).sum(axis=0)).mean())


@pytest.mark.exhaust
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


@pytest.mark.parametrize("case", range(8))
def test_no_channel_exposes_anybody_more_than_any_randomizer_with_its_promise_does(case: int) -> None:
    rng = random.Random(f"any randomizer {case}")
    n, inputs, p = rng.randint(3, 6), rng.randint(2, 3), rng.choice([1.3, 2.0, 4.0])
    rows = random_rows(rng, inputs, 3, math.log(p))
    if case % 2:  # columns of entries 1 and p, and what is left
        few = np.array([[rng.choice([1.0, p]) for _ in range(3)] for _ in range(inputs)]) / (3.5 * p)
        rows = np.column_stack([few, 1.0 - few.sum(axis=1)])
    epsilon0 = float(np.log(rows.max(axis=0) / rows.min(axis=0)).max())
    [exposure] = any_exposures(epsilon0)
    nodes = hiding_nodes(n, exposure.g, most=1e-9)
    for e in (0.0, 0.1 * epsilon0, 0.4 * epsilon0):
        most = FourierBound(exposure, n, e, nodes).value() + nodes.rho
        for others in combinations_with_replacement(range(inputs), n - 1):
            for a, c in permutations(range(inputs), 2):
                assert exact_delta(rows, others, a, c, math.exp(e)) <= most


def test_binary_response_of_people_who_hardly_ever_lie_has_an_attack_beside_it() -> None:
    law = BinaryExact(35.154, 1000)
    for delta in (0.999999, 1e-3):
        ends = law.epsilon(delta)
        assert 0.0 < ends.upper <= ends.lower * (1.0 + 1e-5)
        assert -math.expm1(ends.upper - 35.154) == pytest.approx(delta, abs=1e-6 * 35.2)  # searched to a millionth


@pytest.mark.parametrize(
    ("epsilon0", "n", "delta"), [(1.0, 1_000, 1e-5), (4.0, 10**5, 1e-6), (6.0, 10**6, 1e-8), (2.0, 10**9, 1e-10)]
)
def test_some_randomizer_reaches_what_any_randomizer_is_promised(epsilon0: float, n: int, delta: float) -> None:
    promise = amplify(epsilon0, n=n, delta=delta)
    assert promise.method == "hidden among everybody"
    assert promise.attack_lower <= promise.epsilon <= 1.002 * promise.attack_lower


@pytest.mark.parametrize("epsilon0", [0.3, 2.0, 20.0])
def test_there_are_no_other_vertices_of_any_randomizer(epsilon0: float) -> None:
    rays = np.array([ray for ray in product((math.exp(-epsilon0), 1.0), repeat=3) if len(set(ray)) > 1])
    found = []
    for chosen in (*combinations(range(6), 2), *combinations(range(6), 3)):
        columns = rays[list(chosen)].T
        weights = np.linalg.lstsq(columns, np.ones(3))[0]
        if np.abs(columns @ weights - 1.0).max() < 1e-9 and weights.min() > 1e-9:
            found.append(sorted(map(tuple, (columns * weights).T.round(9).tolist())))
    [one] = any_exposures(epsilon0)
    rows = [np.column_stack([law[t] for law in (one.first, one.second, one.own)]) for t in range(len(one.own))]
    declared = [sorted(map(tuple, row[row.sum(axis=1) > 0.0].round(9).tolist())) for row in rows]
    assert sorted(found) == sorted(declared)


def test_a_few_people_are_left_to_other_bounds_and_too_many_pairs_to_any_randomizer() -> None:
    with pytest.raises(UnsupportedError, match="needs 30 reports"):
        everybody_law(KRR(2, 4.0), n=100, delta=1e-6)
    fine = Laplace(0.0, 1.0, epsilon=1.0, grid=1 / 65)
    assert everybody_bound(fine, n=10**5, delta=1e-6).epsilon == everybody_bound(1.0, n=10**5, delta=1e-6).epsilon
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
        Exposure(np.array(fields[0]), np.array(fields[1]), np.array(fields[2]), np.array(fields[3]))


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


@pytest.mark.parametrize(("epsilon0", "n", "epsilon"), [(0.2, 740, 0.004), (0.4, 30_000, 0.006), (4.7, 1085, 0.5)])
def test_a_sketch_is_above_every_type_and_changes_no_answer(epsilon0: float, n: int, epsilon: float) -> None:
    [exposure] = worst_exposures(Laplace(0.0, 1.0, epsilon0))
    nodes = hiding_nodes(n, exposure.g, most=1e-12)
    sketched, plain = (FourierBound(one, n, epsilon, nodes) for one in (exposure, replace(exposure, sketch=None)))
    tilt = best_tilt(exposure, n, epsilon)
    assert tilt is not None and exposure.sketch is not None
    assert np.all(sketched._quick(tilt)[2] >= plain._quick(tilt)[2] - 1e-9)
    assert sketched.value() == pytest.approx(plain.value(), rel=1e-11)

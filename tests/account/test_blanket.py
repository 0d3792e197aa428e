"""Sums of blanket laws: certified on both sides, and laws are checked as data."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.tiers import one_in

from dovetail.account.clones import ClonePair
from dovetail.account.expected_positive_part import (
    ExponentialTilt,
    GridSteps,
    contour_sum,
    convolve_copies,
    count_sum,
    expected_positive_part,
    gridded_positive_part,
    saddle_point,
)
from dovetail.account.finite_channel import FiniteChannelLaw
from dovetail.account.privacy_blanket import BlanketLaw, ShuffledLaw
from dovetail.core.certified import Bracket
from dovetail.core.errors import DataError, ParameterError
from dovetail.core.special import binomial_pmf

CLONE_ERROR = 2e-9  # the pair's own margin


def stronger(epsilon0: float) -> BlanketLaw:
    p = math.exp(epsilon0)
    return BlanketLaw([p, 1.0], [1.0, p], [1.0 / (p + 1.0)] * 2)


def lopsided() -> BlanketLaw:
    """Binary response with everybody else on the second value: not symmetric, no remainder."""
    return BlanketLaw([3.0, 1.0 / 3.0], [1.0, 1.0], [0.25, 0.75])


def random_law(seed: int) -> BlanketLaw:
    """Five atoms and a remainder."""
    rng = np.random.default_rng(seed)
    z = 1.0 + rng.random((2, 5)) * rng.integers(0, 6, (2, 5))
    mass = rng.dirichlet(np.ones(5))
    first, second = z @ mass
    return BlanketLaw(z[0] / first, z[1] / second, mass)


def brute(law: BlanketLaw, n: int, epsilon: float) -> float:
    """Phi_n of one direction, atom by atom."""
    values = np.append(law.z0 - math.exp(epsilon) * law.z1, 0.0)
    masses = np.append(law.mass, law.remainder)
    atoms = product(range(values.size), repeat=n)
    return math.fsum(float(math.prod(masses[list(a)])) * max(0.0, math.fsum(values[list(a)])) for a in atoms) / n


def losses(law: BlanketLaw, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """Values of Z_0 - e^epsilon Z_1 and their masses."""
    return np.append(law.z0 - math.exp(epsilon) * law.z1, 0.0), np.append(law.mass, law.remainder)


def gridded(law: BlanketLaw, n: int, epsilon: float, points: int = 1 << 15) -> Bracket:
    """Ends by grids alone, one direction."""
    values, masses = losses(law, epsilon)
    return by_grids(values[masses > 0.0], masses[masses > 0.0], n, points=points)


def by_grids(values: np.ndarray, masses: np.ndarray, n: int, points: int = 1 << 15) -> Bracket:
    """Ends by grids alone."""
    alone, theta = float(np.maximum(values, 0.0) @ masses), saddle_point(values, masses, n)
    return gridded_positive_part(
        values, masses, n, true=values, alone=Bracket(alone, alone), theta=theta, points=points
    )


def on_the_line(law: BlanketLaw, n: int, epsilon: float) -> Bracket | None:
    """Ends by the sum over a line in the plane alone, one direction."""
    values, masses = losses(law, epsilon)
    theta = saddle_point(values, masses, n)
    found = contour_sum(values, masses, n, theta, uncertain=np.zeros_like(values))
    return None if found is None else Bracket(found.lower / n, found.upper / n)


@pytest.mark.parametrize(
    "law", one_in(4, [stronger(1.0), stronger(5.0), lopsided(), *(random_law(seed) for seed in range(4))])
)
@pytest.mark.parametrize("n", [1, 2, 4])
def test_the_ends_enclose_the_sum_over_all_atoms_at_every_real_epsilon(law: BlanketLaw, n: int) -> None:
    for share in (-1.5, -0.7, -0.2, 0.0, 0.3, 0.8, 1.2):
        epsilon = share * law.epsilon0
        exact = max(brute(law, n, epsilon), brute(law.mirrored, n, epsilon))
        ends = ShuffledLaw(law, n).delta(epsilon)
        assert ends.lower * (1.0 - 1e-12) <= exact <= ends.upper * (1.0 + 1e-12)
        assert ends.upper - ends.lower <= 1e-4 * ends.upper


@pytest.mark.exhaust
def test_a_line_in_the_plane_encloses_the_sum_over_all_atoms() -> None:
    answered = 0
    for law in (stronger(1.0), stronger(3.0), lopsided(), *(random_law(seed) for seed in range(6))):
        for n, share in product((2, 3, 4), (0.02, 0.2)):
            ends = on_the_line(law, n, share * law.epsilon0)
            if ends is not None:
                answered += 1
                exact = brute(law, n, share * law.epsilon0)
                assert ends.lower * (1.0 - 1e-12) <= exact <= ends.upper * (1.0 + 1e-12)
    assert answered >= 10


@pytest.mark.parametrize(
    "law", one_in(4, [stronger(0.2), stronger(5.0), lopsided(), *(random_law(seed) for seed in range(6))])
)
@pytest.mark.parametrize("n", [100, 5_000, 10**6, 10**9])
def test_a_line_in_the_plane_agrees_with_grids_and_is_sharper_for_many_people(law: BlanketLaw, n: int) -> None:
    shift = math.sqrt(law.spread / n)
    for t in (0.05, 1.0, 3.0, 5.0):
        line, grid = on_the_line(law, n, min(t * shift, 0.8 * law.epsilon0)), gridded(law, n, t * shift, 1 << 13)
        if line is None or t * shift > 0.8 * law.epsilon0:
            continue
        assert line.lower <= grid.upper
        assert grid.lower <= line.upper
        assert line.gap <= 1.1e-5 * (2.0 + 2.0 * t**2 + 4.0)
        assert line.upper <= grid.upper * (1.0 + 1e-4)


def counted(law: BlanketLaw, n: int, epsilon: float) -> Bracket | None:
    """Ends by counts alone, one direction."""
    values, masses = losses(law, epsilon)
    values, masses = values[masses > 0.0], masses[masses > 0.0]
    found = count_sum(values, masses, n, true=values)
    return None if found is None else Bracket(found.lower / n, found.upper / n)


def test_counts_of_two_values_are_not_listed_for_very_many_copies() -> None:
    values, masses = np.array([1.0, -1.1]), np.array([0.5, 0.5])
    assert count_sum(values, masses, 1000, true=values) is not None
    assert count_sum(values, masses, 10**12, true=values) is None


@pytest.mark.exhaust
def test_counts_enclose_the_sum_over_all_atoms_within_their_rounding() -> None:
    answered = 0
    for law in (stronger(1.0), stronger(5.0), lopsided(), lopsided().mirrored, *map(random_law, range(4))):
        for n, share in product((2, 3, 4), (0.0, 0.2, 0.7, 0.999)):
            ends = counted(law, n, share * law.epsilon0)
            if ends is not None:
                answered += 1
                exact = brute(law, n, share * law.epsilon0)
                assert ends.lower * (1.0 - 1e-12) <= exact <= ends.upper * (1.0 + 1e-12)
                assert ends.upper - ends.lower <= 1e-6 * ends.upper
    assert answered >= 60


@pytest.mark.parametrize(("law", "n"), [(stronger(8.0), 3_000), (lopsided(), 60), (random_law(1), 12)], ids=repr)
def test_counts_agree_with_grids(law: BlanketLaw, n: int) -> None:
    for share in (0.05, 0.3, 0.9):
        counts, grid = counted(law, n, share * law.epsilon0), gridded(law, n, share * law.epsilon0, 1 << 13)
        assert counts is not None
        assert counts.lower <= grid.upper
        assert grid.lower <= counts.upper


STEEP = [  # values and masses of three atoms, and how many copies
    ((-0.002453926812280666, 1.027725697057894e-06, -27.45298926916462),
     (0.00010901100443861422, 0.45916579444166367, 0.5407251945538977), 15),
    ((-11.10447761685558, 1.9204350949326992e-06, 2.1220551791126703e-06),
     (0.7555408761619139, 2.2780714155081884e-06, 0.24445684576667057), 11),
    ((0.0013235619018511406, -32.342978435189295, -6.864609126483776e-05),
     (3.5909006911191337e-12, 0.5150767877035354, 0.48492321229287366), 14),
]  # fmt: skip


@pytest.mark.parametrize(("values", "masses", "n"), STEEP)
def test_a_steep_tilt_is_charged_for_where_its_atoms_lie_to_the_last_bit(
    values: tuple[float, ...], masses: tuple[float, ...], n: int
) -> None:
    """Without the charge their upper ends lie up to 4e-10 of the sum below it."""
    (u, v, w), (p, q, r), exact = map(Fraction, values), map(Fraction, masses), Fraction(0)
    for a, b in product(range(n + 1), repeat=2):
        if (c := n - a - b) >= 0:
            ways = math.comb(n, a) * math.comb(n - a, b)
            exact += ways * p**a * q**b * r**c * max(Fraction(0), a * u + b * v + c * w) / n
    ends = by_grids(np.array(values), np.array(masses), n)
    assert ends.lower <= exact <= ends.upper <= exact * (1 + Fraction(1, 10**6))


def test_counts_give_way_where_they_are_many_or_too_little_is_left_of_them() -> None:
    assert counted(stronger(1.0), 10**5, 0.1) is None
    assert counted(random_law(1), 500, 0.1) is None
    assert counted(stronger(1.0), 250, 0.99) is None  # below e^-80


def rare_response(p: float) -> BlanketLaw:
    """Three-way response at which one report in p says anything."""
    return BlanketLaw([p, 1.0, 1.0], [1.0, p, 1.0], [1.0 / (p + 2.0)] * 3)


@pytest.mark.parametrize(("epsilon0", "n"), [(8.0, 20_000), (14.0, 10**7), (18.0, 10**9), (20.0, 3 * 10**9)])
@pytest.mark.parametrize("share", [0.1, 0.3])
def test_what_other_periods_and_noise_add_is_not_claimed_from_below(epsilon0: float, n: int, share: float) -> None:
    p = math.exp(epsilon0)
    ends = on_the_line(rare_response(p), n, share * epsilon0)
    exact = few_contested(p, 1.0 / (p + 2.0), n, share * epsilon0)
    assert ends is None or ends.lower * (1.0 - 1e-11) <= exact <= ends.upper * (1.0 + 1e-11)


@pytest.mark.parametrize("points", [1 << 8, 1 << 10, 1 << 12, 1 << 15])
@pytest.mark.parametrize(("n", "epsilon"), [(7, 0.4), (1000, 0.1), (20_000, 0.02)])
def test_a_coarser_grid_never_lowers_the_upper_end_below_the_sum(points: int, n: int, epsilon: float) -> None:
    pair = ClonePair(1.0, n).delta(epsilon, resolution=1e-6)
    ends = gridded(stronger(1.0), n, epsilon, points)
    assert ends.upper >= pair.lower
    assert ends.lower <= pair.upper


def test_the_gap_shrinks_with_the_square_of_the_grid() -> None:
    gaps = [gridded(stronger(1.0), 10_000, 0.03, points).gap for points in (1 << 11, 1 << 13, 1 << 15)]
    assert gaps[0] > 8.0 * gaps[1] > 64.0 * gaps[2] > 0.0


@pytest.mark.parametrize("epsilon0", [0.01, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("n", [1, 30, 10_000, 10**9])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12, 1e-18])
def test_the_stronger_clone_law_agrees_with_its_closed_sum(epsilon0: float, n: int, delta: float) -> None:
    pair = ClonePair(epsilon0, n)
    epsilon = pair.epsilon(delta).upper
    if epsilon >= epsilon0 * (1.0 - 1e-9) or epsilon == 0.0:
        return
    one, other = ShuffledLaw(stronger(epsilon0), n).delta(epsilon), pair.delta(epsilon, resolution=1e-6)
    assert one.upper >= other.lower * (1.0 - CLONE_ERROR)
    assert one.lower <= other.upper * (1.0 + CLONE_ERROR)
    steepness = 2.0 * math.log(1.0 / delta) + 1.0  # a gap of 1e-4 in epsilon costs this share of delta
    assert one.upper <= other.upper * (1.0 + 1e-4 * steepness)


def few_contested(p: float, b: float, n: int, epsilon: float) -> float:
    """(1/n) E[(A (p - E) + B (1 - E p) + C (1 - E))_+] of three kinds of reports, each with chance b: all counts."""
    counts, e = np.arange(60.0), math.exp(epsilon)
    first, second, third = counts[:, None, None], counts[:, None], counts
    chance = (
        binomial_pmf(first, n, b, 1.0 - b)
        * binomial_pmf(second, n - first, b / (1.0 - b), (1.0 - 2.0 * b) / (1.0 - b))
        * binomial_pmf(third, n - first - second, b / (1.0 - 2.0 * b), (1.0 - 3.0 * b) / (1.0 - 2.0 * b))
    )
    excess = first * (p - e) + second * (1.0 - e * p) + third * (1.0 - e)
    return float(np.sum(chance * np.maximum(excess, 0.0))) / n


@pytest.mark.parametrize(
    ("epsilon0", "n"), one_in(4, [(8.0, 2_000), (14.0, 10**6), (18.0, 10**8), (20.0, 10**9), (36.0, 1000), (44.0, 2)])
)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_reports_that_matter_rarely_are_summed_as_sharply_as_any(epsilon0: float, n: int, share: float) -> None:
    p = math.exp(epsilon0)
    b = 1.0 / (p + 2.0)
    ends = ShuffledLaw(BlanketLaw([p, 1.0, 1.0], [1.0, p, 1.0], [b] * 3), n).delta(share * epsilon0)
    exact = few_contested(p, b, n, share * epsilon0)
    assert ends.lower * (1.0 - 1e-9) <= exact <= ends.upper * (1.0 + 1e-9)
    assert ends.upper <= 1.0001 * ends.lower


@pytest.mark.parametrize(("p", "chance", "n"), [(50.0, 0.004, 1000), (1e4, 1e-5, 3 * 10**6), (1e6, 1e-7, 10**7)])
@pytest.mark.parametrize("points", [64, 128, 256])
def test_splits_make_no_more_mass_than_they_are_charged_for(p: float, chance: float, n: int, points: int) -> None:
    values = np.array([p - 1.3, 1.0 - 1.3 * p, -0.3, 0.0])
    masses = np.array([chance, chance, chance, 1.0 - 3.0 * chance])
    tilt = ExponentialTilt(values, masses, saddle_point(values, masses, n))
    summed = convolve_copies(tilt, values, n, points)
    if summed is None:
        return
    total, splits = summed
    made, charged = math.log(total.masses.sum()), tilt.growth(n, splits)
    assert 0.0 < made <= charged
    unsplit = math.fsum((n / splits.base**level + 1.0) * step**2 for level, step in enumerate(splits.steps))
    assert charged < 0.5 * (0.125 * tilt.theta**2 * unsplit)  # what it would be if no copy lay on the grid


def test_the_spread_of_the_largest_ratio_is_finite() -> None:
    p = math.exp(700.0)
    assert stronger(700.0).spread == pytest.approx(2.0 * p, rel=1e-9)


def test_what_is_returned_was_evaluated_and_found_small_enough() -> None:
    law = ShuffledLaw(random_law(0), 3000)
    ends = law.epsilon(1e-6)
    assert law.delta(ends.upper).upper <= 1e-6 < law.delta(ends.lower).lower
    assert 0.0 < ends.gap < 1e-4


@pytest.mark.exhaust
def test_epsilon_falls_in_n_and_in_delta_and_never_exceeds_the_local_one() -> None:
    law = random_law(1)
    people = [ShuffledLaw(law, n).epsilon(1e-6).upper for n in (1, 3, 10, 100, 10_000)]
    chances = [ShuffledLaw(law, 200).epsilon(delta).upper for delta in (0.0, 1e-15, 1e-9, 1e-4, 0.05, 0.9)]
    for values in (people, chances):
        assert max(values) <= law.epsilon0
        assert values == sorted(values, reverse=True)
    assert chances[0] == law.epsilon0
    assert chances[-1] == 0.0


def test_the_splits_of_copies_that_make_up_no_block_are_counted() -> None:
    tilts, steps = np.array([0.5, 1.0, 2.0]), GridSteps(128, (1.0, 2.0))
    twice = np.log(0.75 + 0.25 * np.exp(2.0 * tilts)) - 0.5 * tilts  # 1/2 to 0 or 1, then 1 to 0 or 2
    assert (steps.growth(1, tilts, np.ones(3)) >= twice).all()


def test_a_large_collection_is_as_exposed_as_a_normal_shift() -> None:
    n = 10**8
    law = stronger(1.0)
    shift = math.sqrt(law.spread / n)
    for t in (0.5, 2.0):
        normal = shift * (math.exp(-t * t / 2) / math.sqrt(2 * math.pi) - t * 0.5 * math.erfc(t / math.sqrt(2)))
        assert ShuffledLaw(law, n).delta(t * shift).upper == pytest.approx(normal, rel=1e-3)


def test_both_directions_of_a_lopsided_law_count() -> None:
    law, n = lopsided(), 6
    ways = [brute(one, n, 0.4) for one in (law, law.mirrored)]
    assert abs(ways[0] - ways[1]) > 1e-3
    assert ShuffledLaw(law, n).delta(0.4).contains(max(ways))
    assert not law.symmetric
    assert stronger(2.0).symmetric


def test_a_value_of_zero_probability_and_a_sure_loss_are_no_trouble() -> None:
    assert expected_positive_part(np.array([-1.0, 0.0]), np.array([0.5, 0.5]), 9).upper == 0.0
    one = expected_positive_part(np.array([1.0, -2.0, 50.0]), np.array([0.5, 0.5, 0.0]), 2)
    assert one.contains(0.25)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (([3.0, 1.0], [1.0, 3.0], [0.25, 0.3]), "mean 1"),
        (([3.0, 1.0], [1.0, 3.0], [-0.25, 0.25]), "probabilities"),
        (([3.0, 1.0], [1.0, 3.0], [0.25, float("nan")]), "probabilities"),
        (([4.0, 0.0], [1.0, 3.0], [0.25, 0.25]), "ratio of 0"),
        (([3.0, 1.0], [1.0, 3.0], [0.25]), "equally long"),
        (([0.5, 0.5], [0.5, 0.5], [1.0, 1.0]), "sum"),
    ],
)
def test_data_that_are_no_law_are_refused(fields: tuple[list[float], ...], message: str) -> None:
    with pytest.raises(DataError, match=message):
        BlanketLaw(*fields)


@pytest.mark.parametrize("bad", [True, float("nan"), "1", np.bool_(True), -1, 1.5])
def test_arguments_outside_their_range_are_refused(bad: object) -> None:
    with pytest.raises(ParameterError, match="`n`"):
        ShuffledLaw(stronger(1.0), bad)  # type: ignore[arg-type]
    law = ShuffledLaw(stronger(1.0), 10)
    with pytest.raises(ParameterError, match="`delta`"):
        law.epsilon(bad)  # type: ignore[arg-type]


def test_one_exponential_is_above_delta_and_leaves_out_no_pair_that_counts() -> None:
    rows = np.random.default_rng(5).dirichlet(np.full(5, 20.0), size=4)
    for n in (3, 40, 10**5):
        law = FiniteChannelLaw.of(rows, n=n)
        for epsilon in (0.0, 0.01, 0.1, 0.5):
            ends = [pair.delta(epsilon) for pair in law.pairs]
            assert all(pair.tilted_bound(epsilon) >= end.upper for pair, end in zip(law.pairs, ends, strict=True))
            assert law.delta(epsilon).upper == max(end.upper for end in ends)
            assert law.delta(epsilon).lower == max(end.lower for end in ends)
        assert law.epsilon(1e-6).upper == pytest.approx(max(p.epsilon(1e-6).upper for p in law.pairs), rel=1e-5)

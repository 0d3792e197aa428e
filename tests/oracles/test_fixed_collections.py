"""Collections that are fixed in every round: never above the enumerated product, and close to it."""

from __future__ import annotations

import math
import random
from collections import Counter
from functools import reduce
from itertools import permutations, product

import numpy as np
import pytest
from tests.tiers import EXHAUST, tiered

from dovetail.account import rounds as fixed_collections
from dovetail.account.compose import compose, composed_delta
from dovetail.account.mechanism_law import attack_dataset, mechanism_attack
from dovetail.account.mechanisms.any_randomizer import worst_dataset_for
from dovetail.account.privacy_loss import ComposedPLD
from dovetail.account.rounds import (
    FixedCollection,
    ShuffledRound,
    attacked_delta,
    attacked_epsilon,
    lower_vertices,
    split_pld,
)
from dovetail.core.channel import DenseChannel
from dovetail.core.special import Reals
from dovetail.randomize.krr import KRR
from dovetail.randomize.laplace import Laplace

Pair = tuple[Reals, Reals]
SKEWED = DenseChannel([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5], [0.3, 0.4, 0.3]])


def histogram_pair(rows: Reals, own: tuple[int, int], other: int, n: int) -> Pair:
    """Both laws of the histogram where everybody else holds `other`."""
    laws: list[Counter[tuple[int, ...]]] = [Counter(), Counter()]
    for law, victim in zip(laws, own, strict=True):
        for y in product(range(rows.shape[1]), repeat=n):
            people = (victim, *[other] * (n - 1))
            law[tuple(sorted(y))] += math.prod(rows[x, z] for x, z in zip(people, y, strict=True))
    seen = sorted(laws[0])
    return np.array([laws[0][z] for z in seen]), np.array([laws[1][z] for z in seen])


def hockey_stick(pairs: list[Pair], epsilon: float) -> float:
    p, q = (reduce(np.multiply.outer, [pair[i] for pair in pairs]).ravel() for i in (0, 1))
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def worst_common(rows: Reals, n: int, rounds: int, epsilon: float) -> float:
    """The largest delta over pairs and common values of the others, the same in every round."""
    inputs = range(len(rows))
    return max(
        hockey_stick([histogram_pair(rows, (a, c), t, n)] * rounds, epsilon)
        for a, c, t in product(inputs, repeat=3)
        if a != c
    )


@pytest.mark.exhaust
@pytest.mark.parametrize(
    ("mechanism", "n", "most"),
    [(KRR(2, 1.5), 4, 2), (SKEWED, 3, 2), *(pytest.param(KRR(3, e), 4, 3, marks=EXHAUST) for e in (1.0, 2.5))],
    ids=str,
)
def test_fixed_collections_reach_almost_what_the_worst_common_values_reveal_and_no_more(
    mechanism: KRR | DenseChannel, n: int, most: int
) -> None:
    rows = mechanism.matrix() if isinstance(mechanism, DenseChannel) else mechanism.channel().matrix()
    for rounds in range(1, most + 1):
        part = ShuffledRound.of(mechanism, n, times=rounds)
        for share in (0.0, 0.1, 0.3, 0.6):
            epsilon = share * part.epsilon0 * rounds
            exact = worst_common(rows, n, rounds, epsilon)
            found = attacked_delta([part], epsilon=epsilon, scale=exact)
            least = 0.25 if mechanism is SKEWED else 0.9  # the worst for many people is not always so for three
            assert least * exact <= found <= exact, (rounds, share)


@EXHAUST
def test_rounds_of_different_mechanisms_are_attacked_together() -> None:
    krr, skewed = KRR(3, 1.0), SKEWED
    parts = [ShuffledRound.of(krr, 3), ShuffledRound.of(skewed, 4)]
    choices = [
        [histogram_pair(rows, (a, c), t, n) for a, c, t in product(range(3), repeat=3) if a != c]
        for rows, n in ((krr.channel().matrix(), 3), (skewed.matrix(), 4))
    ]
    for epsilon in (0.2, 0.8):
        exact = max(hockey_stick([one, other], epsilon) for one in choices[0] for other in choices[1])
        found = attacked_delta(parts, epsilon=epsilon, scale=exact)
        assert 0.8 * exact <= found <= exact


@pytest.mark.exhaust
def test_one_round_is_attacked_as_amplify_does_up_to_a_percent() -> None:
    mechanism = KRR(2, 4.0)  # far losses in one order alone
    alone = mechanism_attack(mechanism, n=3000, delta=1e-6)
    found = attacked_epsilon([ShuffledRound.of(mechanism, 3000)], delta=1e-6, most=mechanism.epsilon)
    assert 0.985 * alone <= found <= alone * (1 + 1e-9)


@EXHAUST
def test_the_truth_of_many_rounds_is_known_to_two_percent() -> None:
    found = compose([ShuffledRound.of(KRR(64, 2.0), 10**5, times=30)], delta=1e-6)
    assert found.epsilon is not None and found.attack_lower <= found.epsilon <= 1.02 * found.attack_lower
    assert found.lower == found.attack_lower


@EXHAUST
def test_rounds_of_any_randomizer_are_attacked_by_the_worst_that_is_known() -> None:
    part = ShuffledRound(1.0, 10_000, times=50)
    found = compose([part], delta=1e-6)
    named = compose([ShuffledRound.of(KRR(3, 1.0), 10_000, times=50)], delta=1e-6)
    assert found.epsilon is not None and named.epsilon is not None
    assert 0.98 * named.attack_lower <= found.attack_lower <= named.epsilon < found.epsilon
    assert found.attack_lower > 5 * compose([ShuffledRound(1.0, 10_000)], delta=1e-6).attack_lower


def test_rounds_that_tell_next_to_nothing_take_nothing_from_the_attack() -> None:
    """Their few losses are told apart until all that is left out of so many rounds is little."""
    large, tiny = ShuffledRound.of(KRR(3, 0.3), 64, times=100), ShuffledRound.of(KRR(1000, 0.04), 10**11, times=1700)
    alone, both = (attacked_epsilon(parts, delta=1e-7, most=10.0) for parts in ([large], [large, tiny]))
    assert 0.99 * alone <= both <= 1.01 * alone


@EXHAUST
def test_the_bracket_of_delta_of_mechanisms_has_a_lower_end() -> None:
    ends = composed_delta([ShuffledRound.of(KRR(3, 1.0), 2000, times=10)], epsilon=0.3)
    assert 0.7 * ends.upper < ends.lower < ends.upper


def test_places_are_so_far_apart_that_their_slopes_are_not_rounding() -> None:
    short = [e for e in np.arange(0.5, 4.0, 0.02).round(2).tolist() if 24 * (e / 24) < e]  # by a rounding
    for epsilon0 in [0.84, *short[:6]]:
        places = FixedCollection(attack_dataset(KRR(2, epsilon0)), 2).ends(1e-9)[0][0]
        assert np.diff(np.log(places[1:])).min() > 1e-7 * epsilon0


@pytest.mark.parametrize("error", [0.5, 3.0])
def test_what_errors_may_exceed_reaches_nothing(error: float) -> None:
    worthless = ComposedPLD(
        theta=0.0, log_moment=0.0, start=-1.0, step=1.0, masses=np.full(3, 1e-9), noise=1.0, infinity=0.0, error=error
    )
    assert worthless.lower(0.0) == 0.0


@pytest.mark.exhaust
@pytest.mark.parametrize("epsilon0", tiered([0.84, *np.arange(0.52, 4.0, 0.04).round(2)], lambda case: case == 0.84))
def test_rounds_of_two_mechanisms_reach_no_more_than_all_their_collections_and_no_less_than_any(
    epsilon0: float,
) -> None:
    rounds = [(KRR(2, epsilon0), 2), (Laplace(0.0, 1.0, epsilon0, grid=1.0), 3)]
    parts = [ShuffledRound.of(mechanism, n) for mechanism, n in rounds]
    rows = KRR(2, epsilon0).channel().matrix()  # of the noise, clamped on two points, as well
    pairs = [
        [count_pair(rows, own, ones, n) for own in permutations(range(2)) for ones in range(n)] for _, n in rounds
    ]
    for delta in (0.003, 0.1):
        found = compose(parts, delta=delta)
        assert found.epsilon is not None and found.lower is not None
        reached = [
            max(hockey_stick([one, two], epsilon) for one, two in product(*pairs))
            for epsilon in (found.lower, found.attack_lower, found.epsilon)
        ]
        assert reached[0] >= delta * (1 - 1e-9) and reached[1] >= delta * (1 - 1e-9) and reached[2] <= delta


def count_pair(rows: Reals, own: tuple[int, ...], ones: int, n: int) -> Pair:
    """Both laws of the number of ones where `ones` of the others hold a one."""
    others = [rows[1]] * ones + [rows[0]] * (n - 1 - ones)
    first, second = (reduce(np.convolve, others, rows[value]) for value in own)
    return first, second


def test_no_value_above_a_convex_function_is_drawn_between_its_places() -> None:
    rng = random.Random("vertices")
    for _ in range(200):
        places = np.exp(np.cumsum([0.05 + 0.3 * rng.random() for _ in range(12)]) - 2.0)
        knots = np.exp([4.0 * rng.random() - 2.0 for _ in range(5)])
        weights = np.array([rng.random() for _ in range(5)])
        weights /= weights.sum() + rng.random()

        def true(e: Reals, knots: Reals = knots, weights: Reals = weights) -> Reals:
            return np.asarray(np.maximum(knots - np.asarray(e)[:, None], 0.0) @ weights)

        noise = 10.0 ** -rng.randint(1, 8)
        low, high = (true(places) * [1.0 + sign * noise * rng.random() for _ in places] for sign in (-1.0, 1.0))
        x, y = lower_vertices(places, low, high)
        dense = np.linspace(places[0], places[-1], 2000)
        assert np.all(np.interp(dense, x, y) <= true(dense) + 1e-12)
        assert np.all(np.diff(np.diff(y) / np.diff(x)) >= -1e-9)


def test_losses_keep_their_mean_on_the_grid_and_none_is_moved_up() -> None:
    x = np.array([0.0, 0.5, 0.8, 1.1, 1.7, 3.0])
    y = np.array([1.0, 0.5, 0.25, 0.1, 0.02, 0.0])
    law = split_pld(x, y, step=0.01)
    masses = x[2:] * np.diff(np.append(np.diff(y) / np.diff(x), 0.0))[1:]
    losses = np.minimum(np.log(x[2:]), math.log(1.7))
    assert float(law.masses.sum()) == pytest.approx(masses.sum(), abs=1e-15)
    assert float(law.masses @ law.losses) == pytest.approx(float(masses @ losses), abs=1e-12)


@EXHAUST
def test_many_kinds_of_rounds_are_attacked_as_a_few_larger_ones() -> None:
    parts = [ShuffledRound(1.0, 1000 + 7 * i) for i in range(20)]
    found = attacked_epsilon(parts, delta=1e-6, most=20.0)
    larger = attacked_epsilon([ShuffledRound(1.0, 1133, times=20)], delta=1e-6, most=20.0)
    smaller = attacked_epsilon([ShuffledRound(1.0, 1000, times=20)], delta=1e-6, most=20.0)
    assert 0.93 * larger <= found <= smaller


def test_nothing_is_said_where_the_law_of_a_report_leaves_the_range_of_numbers() -> None:
    assert attacked_epsilon([ShuffledRound(200.0, 100, times=2)], delta=1e-6, most=400.0) == 0.0
    assert attacked_epsilon([ShuffledRound.of(KRR(3, 1.0), 100)], delta=0.0, most=2.0) == 0.0
    assert attacked_epsilon([ShuffledRound(1.0, 100, times=2)], delta=0.0, most=2.0) == 2.0  # but rarely


def test_both_orders_of_the_two_values_have_ends_that_hold_the_exact_values() -> None:
    pair = histogram_pair(SKEWED.matrix(), (0, 1), 2, 3)
    law = attack_dataset(SKEWED)
    exact = [
        histogram_pair(SKEWED.matrix(), (a, c), t, 3)
        for a, c, t in product(range(3), repeat=3)
        if a != c and math.isclose(np.sum((SKEWED.rows[a] - SKEWED.rows[c]) ** 2 / SKEWED.rows[t]), law.spread)
    ]
    held = 0
    for places, low, high in FixedCollection(law, 3).ends(1e-9):
        for pair in exact:
            values = [float(np.maximum(pair[0] - e * pair[1], 0.0).sum()) for e in places]
            held += bool(np.all((low <= np.array(values) + 1e-9) & (np.array(values) <= high + 1e-6)))
    assert held >= 2  # each order is one of them


def test_the_worst_known_collection_of_a_promise_keeps_the_promise() -> None:
    for epsilon0 in (0.01, 0.7, 3.0, 50.0):
        assert worst_dataset_for(epsilon0).epsilon0 == pytest.approx(epsilon0, rel=1e-12)
    assert fixed_collections.GIVEN_UP < 0.01

"""Composition over rounds: against the exact product of the pairs, its laws, and broken versions that are caught."""

from functools import reduce
from itertools import pairwise, permutations
from math import exp

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom
from tests.tiers import one_in, tiered

from dovetail.account.accountant import Accountant
from dovetail.account.calibrate import max_epsilon
from dovetail.account.clones import ClonePair, Kind
from dovetail.account.compose import Composition, compose, composed_delta, composed_epsilon, composed_log_ratio
from dovetail.account.privacy_loss import (
    ComposedPLD,
    PrivacyLossDistribution,
    _power,
    convolve_near,
    convolve_plds,
    normal_spread,
    optimistic_pld,
    pessimistic_pld,
    shift_quantile,
    smallest_of_sum,
)
from dovetail.account.rounds import ShuffledRound
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.randomize.krr import KRR

Pair = tuple[NDArray[np.float64], NDArray[np.float64]]
SMALL = [
    [ShuffledRound(1.0, 6, times=2)],
    [ShuffledRound(1.0, 6, times=3)],
    [ShuffledRound(3.0, 10, times=2)],
    [ShuffledRound(0.2, 8, times=3)],
    [ShuffledRound(8.0, 5, times=2)],
    [ShuffledRound(1.0, 7, kind="clones", times=2)],
    [ShuffledRound(1.0, 12), ShuffledRound(0.3, 5, kind="clones"), ShuffledRound(2.0, 4)],
]


def enumerated(epsilon0: float, n: int, kind: Kind) -> Pair:
    """Both laws of the pair, term by term from equation (2) of the notes."""
    p = exp(epsilon0)
    q = 2 / (p + 1) if kind == "stronger clones" else 1 / p
    first, second = [], []
    for c in range(n):
        m, a = c + 1, np.arange(c + 2)
        weight = binom.pmf(c, n - 1, q) * binom.pmf(a, m, 0.5) * 2 / ((p + 1) * m)
        first.append(weight * (p * a + m - a))
        second.append(weight * (a + p * (m - a)))
    return np.concatenate(first), np.concatenate(second)


def product(rounds: list[ShuffledRound]) -> Pair:
    """The exact product of all rounds' pairs."""
    pairs = [enumerated(r.epsilon0, r.n, r.pair.kind) for r in rounds for _ in range(r.times)]
    first, second = (reduce(np.multiply.outer, [pair[i] for pair in pairs]).ravel() for i in (0, 1))
    return first, second


def hockey_stick(pair: Pair, epsilon: float) -> float:
    return float(np.maximum(pair[0] - exp(epsilon) * pair[1], 0.0).sum())


@pytest.mark.parametrize("rounds", SMALL, ids=str)
def test_the_exact_delta_of_the_product_lies_in_the_bracket(rounds: list[ShuffledRound]) -> None:
    exact, local = product(rounds), sum(r.times * r.epsilon0 for r in rounds)
    for share in (0.0, 0.1, 0.4, 0.8, 0.95):
        truth, ends = hockey_stick(exact, share * local), composed_delta(rounds, epsilon=share * local)
        assert ends.lower <= truth <= ends.upper
        assert ends.upper <= truth * (1 + 1e-3)  # splitting on the grid costs the square of the step
        assert ends.lower >= truth * 0.9


@pytest.mark.exhaust
@pytest.mark.parametrize("rounds", one_in(2, SMALL), ids=str)
def test_the_exact_epsilon_of_the_product_lies_between_lower_and_upper(rounds: list[ShuffledRound]) -> None:
    exact = product(rounds)
    for delta in (1e-3, 1e-8, 1e-12):
        found = compose(rounds, delta=delta)
        assert found.epsilon is not None and found.lower is not None
        assert hockey_stick(exact, found.epsilon) <= delta * (1 + 1e-9)  # the oracle's own rounding
        assert hockey_stick(exact, found.lower) >= delta * (1 - 1e-9)
        assert found.epsilon - found.lower <= 1e-2 * found.epsilon


@pytest.mark.exhaust
@pytest.mark.parametrize("delta", one_in(3, [1e-16, 1e-20, 1e-24]))
def test_tiny_deltas_are_still_certified(delta: float) -> None:
    rounds = [ShuffledRound(0.2, 60, times=2, kind="clones")]
    exact, found = product(rounds), compose(rounds, delta=delta)
    assert found.epsilon is not None and found.lower is not None
    assert hockey_stick(exact, found.epsilon) <= delta * (1 + 1e-9)
    assert 0.0 < found.lower <= found.epsilon <= found.lower * 1.01
    assert found.epsilon < 0.4


@pytest.mark.exhaust
def test_far_below_the_rounding_of_the_transform_delta_agrees_with_the_single_round() -> None:
    pair, part = ClonePair(1.0, 500, "clones"), ShuffledRound(1.0, 500, kind="clones")
    for delta in (1e-20, 1e-60):
        epsilon = pair.epsilon(delta).upper
        truth, ends = pair.delta(epsilon), composed_delta([part], epsilon=epsilon)
        assert 0.5 * truth.lower <= ends.lower <= truth.upper
        assert truth.lower <= ends.upper <= truth.upper * 1.05  # the step is a larger share of a steeper fall


def test_losses_rounded_down_fall_below_the_exact_value() -> None:
    pair, epsilon = ClonePair(1.0, 6), 0.8
    law = pessimistic_pld(pair, step=0.01, cut=1e-15)
    down = PrivacyLossDistribution(law.step, law.start - law.step, law.masses, law.infinity, law.error)
    truth = hockey_stick(product([ShuffledRound(1.0, 6, times=3)]), epsilon)
    assert convolve_near([(law, 3)], delta=1e-9, epsilon=epsilon).upper(epsilon) >= truth
    assert convolve_near([(down, 3)], delta=1e-9, epsilon=epsilon).upper(epsilon) < truth


def test_cut_mass_that_is_not_charged_falls_below_the_exact_value() -> None:
    pair, epsilon = ClonePair(0.5, 30), 0.9
    law = pessimistic_pld(pair, step=0.001, cut=1e-3)
    free = PrivacyLossDistribution(law.step, law.start, law.masses, 0.0, law.error)
    truth = hockey_stick(product([ShuffledRound(0.5, 30, times=2)]), epsilon)
    assert convolve_near([(law, 2)], delta=1e-9, epsilon=epsilon).upper(epsilon) >= truth
    assert convolve_near([(free, 2)], delta=1e-9, epsilon=epsilon).upper(epsilon) < truth


def test_losses_rounded_up_are_no_lower_bound_without_the_allowance_for_it() -> None:
    pair, epsilon = ClonePair(1.0, 6), 1.6
    law, shifts = optimistic_pld(pair, step=0.05, cut=1e-15)
    up = PrivacyLossDistribution(law.step, law.start + 0.5 * law.step, law.masses, law.infinity, law.error)
    truth = hockey_stick(product([ShuffledRound(1.0, 6, times=3)]), epsilon)
    total = convolve_near([(up, 3)], delta=1e-9, epsilon=epsilon)
    assert total.lower(epsilon) > truth
    allowance = shift_quantile([(up, 3)], [shifts + 0.5 * law.step], 1e-3 * truth)
    assert 0.5 * truth < total.lower(epsilon + allowance) - 1e-3 * truth < truth


@pytest.mark.parametrize("kind", ["stronger clones", "clones"])
@pytest.mark.parametrize(("epsilon0", "n"), [(1.0, 1), (1.0, 9), (0.1, 200), (5.0, 60), (1.0, 3_000), (2.0, 10**6)])
def test_on_the_grid_the_law_of_losses_keeps_delta_and_between_it_is_above(
    epsilon0: float, n: int, kind: Kind
) -> None:
    pair = ClonePair(epsilon0, n, kind)
    step = 0.01 * min(pair.gaussian_scale, epsilon0)
    law = pessimistic_pld(pair, step=step, cut=1e-14)
    for point in (0.0, 7.0, 100.5, 250.0):
        epsilon = point * step
        if epsilon < epsilon0:
            ours = law.infinity + float(law.masses @ np.maximum(-np.expm1(epsilon - law.losses), 0.0))
            ends = pair.delta(epsilon, resolution=1e-6)
            assert ours >= ends.lower
            assert ours <= ends.upper * (1 + (2e-3 if point < 200 else 5e-3)) + 1e-11
    assert law.masses.min() >= 0.0
    assert 1.0 <= float(law.masses.sum()) + law.infinity <= 1 + 1e-8


@pytest.mark.parametrize(
    ("epsilon0", "n", "theta"), [(1.0, 9, 3.0), (5.0, 60, 2.0), (1.0, 3000, 40.0), (2.0, 40, 9.0)]
)
def test_few_places_lose_nothing_at_their_tilt_and_never_fall_below(epsilon0: float, n: int, theta: float) -> None:
    """Against a law that is dense everywhere: the moment decides what Chernoff's bound and the tilted sum see."""
    pair = ClonePair(epsilon0, n)
    scale = min(pair.gaussian_scale, epsilon0)
    near = pessimistic_pld(pair, step=scale / 48, cut=1e-14, theta=theta)
    dense = pessimistic_pld(pair, step=scale / 400, cut=1e-14)
    few, moment = ([float(np.log(law.masses @ np.exp(t * law.losses))) for t in (theta, 0.5 * theta)]
                   for law in (near, dense))  # fmt: skip
    for ours, finer in zip(few, moment, strict=True):
        assert finer * (1 - 1e-4) <= ours <= finer * (1 + 3e-4)
    for point in (0, 8, 24, 48, 96):
        epsilon = point * scale / 48
        ours = near.infinity + float(near.masses @ np.maximum(-np.expm1(epsilon - near.losses), 0.0))
        assert ours >= pair.delta(epsilon, resolution=1e-6).lower
    assert np.count_nonzero(near.masses) < np.count_nonzero(dense.masses)


def test_few_clones_are_asked_about_where_their_own_sum_looks() -> None:
    """Losses far from normal: a tilt five times the right one would cost 7e-3 of epsilon."""
    part = ShuffledRound(10.62, 1_078_617, times=3)
    dense = pessimistic_pld(part.pair, step=5e-4, cut=1e-20)
    truth = smallest_of_sum([(dense, 3)], delta=3e-10, most=30.0)
    found = composed_epsilon([part], delta=3e-10)
    assert truth is not None and found is not None
    assert truth * (1 - 1e-3) <= found <= truth * (1 + 3e-4)


def test_a_power_that_is_left_out_is_below_any_rounding() -> None:
    spectrum = np.exp(-(np.linspace(0.0, 3.0, 500) ** 2)) * np.exp(1j * np.linspace(0.0, 9.0, 500))
    for times in (1, 7, 1000):
        assert np.abs(_power(spectrum, times) - spectrum**times).max() < 1e-38


def test_a_sum_that_is_tilted_for_delta_has_its_epsilon_in_the_middle() -> None:
    """One transform is enough: the second, for the epsilon that the first one finds, says the same."""
    law = pessimistic_pld(ClonePair(1.0, 1000), step=0.001, cut=1e-60)
    for rounds, delta in ((1, 1e-6), (300, 1e-6), (300, 1e-40)):
        found = smallest_of_sum([(law, rounds)], delta=delta, most=rounds * 1.0)
        assert found is not None
        again = convolve_near([(law, rounds)], delta=delta, epsilon=found)
        assert again.upper(found) == pytest.approx(delta, rel=1e-5)
        spread = found / normal_spread(found, delta)
        assert 0.1 * spread < again.theta * normal_spread(found, delta) < 1.1 * spread


@pytest.mark.parametrize("theta", [0.0, 2.0])
def test_the_transform_gives_the_tilted_convolution(theta: float) -> None:
    laws = [pessimistic_pld(ClonePair(e0, n), step=0.02, cut=1e-12) for e0, n in ((1.0, 20), (0.4, 5))]
    tilted = [law.masses * np.exp(theta * law.losses) for law in laws]
    tilted = [t / t.sum() for t in tilted]
    direct = reduce(np.convolve, [tilted[0], tilted[0], tilted[1]])
    total = convolve_plds([(laws[0], 2), (laws[1], 1)], theta=theta)
    start = 2 * laws[0].start + laws[1].start
    where = np.round((total.start + total.step * np.arange(total.masses.size) - start) / total.step).astype(int)
    inside = (where >= 0) & (where < direct.size)
    error = total.masses[inside] - direct[where[inside]]
    assert np.linalg.norm(error) <= total.noise + 1e-12  # and what may wrap round
    assert total.masses[~inside].sum() <= 1e-11


@pytest.mark.exhaust
def test_one_round_is_the_single_round_value_within_the_grid() -> None:
    for epsilon0, n in ((0.1, 10**5), (1.0, 100), (4.0, 10**4)):
        for delta in (1e-3, 1e-9):
            pair, part = ClonePair(epsilon0, n, "clones"), ShuffledRound(epsilon0, n, kind="clones")
            single, ours = pair.epsilon(delta), compose([part], delta=delta)
            assert single.lower * (1 - 1e-9) <= ours.epsilon <= single.upper  # type: ignore[operator]
            numeric = composed_delta([part], epsilon=single.upper)
            truth = pair.delta(single.upper)
            assert truth.lower * 0.98 <= numeric.lower <= truth.upper
            assert truth.lower <= numeric.upper <= truth.upper * (1 + 2e-3)


@pytest.mark.exhaust
@pytest.mark.parametrize(("epsilon0", "n"), [(0.1, 10**4), (1.0, 30), (1.0, 10**5), (6.0, 10**3)])
def test_epsilon_grows_with_rounds_and_stays_below_every_comparison(epsilon0: float, n: int) -> None:
    found = [compose(T, epsilon0=epsilon0, n=n, delta=1e-6) for T in (1, 3, 300)]
    assert all(upper(a) < upper(b) for a, b in pairwise(found))
    for T, one in zip((1, 3, 300), found, strict=True):
        assert upper(one) <= T * epsilon0
        for other in (one.basic, one.advanced, one.renyi):
            assert other.epsilon is not None and upper(one) <= other.epsilon, other.name
    assert upper(found[-1]) < 0.5 * found[-1].basic.epsilon  # type: ignore[operator]


def upper(found: Composition) -> float:
    assert found.epsilon is not None
    return found.epsilon


@pytest.mark.exhaust
def test_epsilon_falls_with_people_and_delta_and_grows_with_local_epsilon() -> None:
    by_n = [upper(compose(20, epsilon0=1.0, n=n, delta=1e-6)) for n in (1, 10, 300, 10**8)]
    by_delta = [upper(compose(20, epsilon0=1.0, n=500, delta=d)) for d in (0.0, 1e-12, 1e-6, 0.1)]
    by_local = [upper(compose(20, epsilon0=e, n=500, delta=1e-6)) for e in (4.0, 1.0, 0.01)]
    for falling in (by_n, by_delta, by_local):
        assert all(a >= b for a, b in pairwise(falling)), falling
    assert by_delta[0] == 20.0
    clones = compose([ShuffledRound(1.0, 500, times=20, kind="clones")], delta=1e-6)
    assert upper(clones) > by_delta[2]


@pytest.mark.exhaust
def test_the_order_and_the_grouping_of_rounds_do_not_matter() -> None:
    rounds = [ShuffledRound(1.0, 100), ShuffledRound(0.5, 2_000, times=3), ShuffledRound(2.0, 50, kind="clones")]
    found = {compose(order, delta=1e-6) for order in permutations(rounds)}
    assert len(found) == 1
    apart = [rounds[0], rounds[1], rounds[2]]
    apart[1:2] = [ShuffledRound(0.5, 2_000, times=2), ShuffledRound(0.5, 2_000)]
    assert upper(compose(apart, delta=1e-6)) == pytest.approx(upper(found.pop()), rel=1e-7)


def test_delta_falls_in_epsilon_and_vanishes_at_the_sum_of_local_epsilons() -> None:
    ends = [composed_delta(5, epsilon=e, epsilon0=1.0, n=50) for e in np.linspace(0.0, 5.0, 11)]
    assert all(a.upper > b.upper for a, b in pairwise(ends))
    assert (ends[-1].lower, ends[-1].upper) == (0.0, 0.0)


def test_above_the_sum_of_local_epsilons_nothing_is_known_to_be_reached() -> None:
    rounds = [ShuffledRound(1.0, 1_000, times=3, delta0=1e-6)]
    ends = composed_delta(rounds, epsilon=3.0)
    assert ends.lower == 0.0
    assert ends.upper == pytest.approx(3e-6, rel=1e-3)


@pytest.mark.exhaust
def test_approximate_rounds_add_their_term_once_each() -> None:
    pure = [ShuffledRound(1.0, 1_000, times=4, kind="clones"), ShuffledRound(0.5, 200, kind="clones")]
    rounds = [ShuffledRound(1.0, 1_000, times=4, delta0=1e-14), ShuffledRound(0.5, 200, delta0=1e-13)]
    for epsilon in (0.1, 0.8):
        term = (exp(epsilon) + 1) * (4 * (1 + exp(-1.0)) * 1_000 * 1e-14 + (1 + exp(-0.5)) * 200 * 1e-13)
        ours, without = composed_delta(rounds, epsilon=epsilon), composed_delta(pure, epsilon=epsilon)
        assert ours.upper - without.upper == pytest.approx(term, rel=1e-4)
    found, less = compose(rounds, delta=1e-6), compose(pure, delta=1e-6)
    assert upper(less) < upper(found) < upper(less) * 1.01
    assert composed_delta(rounds, epsilon=upper(found)).upper <= 1e-6 * (1 + 1e-3)


@pytest.mark.exhaust
def test_rounds_with_too_much_delta0_keep_the_local_promise_or_nothing() -> None:
    rounds = [ShuffledRound(1.0, 10_000, times=3, delta0=1e-8)]
    local, nothing = compose(rounds, delta=1e-6), compose(rounds, delta=1e-9)
    assert (local.epsilon, local.method) == (3.0, "local")
    assert (nothing.epsilon, nothing.lower) == (None, None)
    assert all("n * delta0 too large" in found.reason for found in (local, nothing))


@pytest.mark.exhaust
@pytest.mark.parametrize(
    ("epsilon0", "n", "T"),
    tiered(
        [(20.0, 10**3, 50), (700.0, 10, 2), (1e-3, 10**12, 10**6), (1.0, 1, 40)], first=lambda case: case[1] < 10**9
    ),
)
def test_the_corners_of_the_range_give_an_ordered_answer(epsilon0: float, n: int, T: int) -> None:
    found = compose(T, epsilon0=epsilon0, n=n, delta=1e-6)
    assert found.lower is not None
    assert 0.0 <= found.lower <= upper(found) <= T * epsilon0


@pytest.mark.parametrize(
    "call",
    [
        lambda: compose(0, epsilon0=1.0, n=10, delta=1e-6),
        lambda: compose(True, epsilon0=1.0, n=10, delta=1e-6),
        lambda: compose(3, delta=1e-6),
        lambda: compose([], delta=1e-6),
        lambda: compose([1.0], delta=1e-6),  # type: ignore[list-item]
        lambda: compose([ShuffledRound(1.0, 10)], epsilon0=1.0, delta=1e-6),
        lambda: compose("many", epsilon0=1.0, n=3, delta=1e-6),  # type: ignore[arg-type]
        lambda: compose(3, epsilon0=1.0, n=10, delta=np.nan),
        lambda: compose(3, epsilon0=1.0, n=10, delta=1.0),
        lambda: compose(3, epsilon0=1.0, n=10, delta=1e-250),
        lambda: composed_delta(3, epsilon=-1.0, epsilon0=1.0, n=10),
        lambda: ShuffledRound(1.0, 10, delta0=-1e-9),
        lambda: ShuffledRound(1.0, 10, times=1.5),  # type: ignore[arg-type]
        lambda: ShuffledRound(np.inf, 10),
        lambda: ShuffledRound(1.0, 0),
        lambda: ShuffledRound(1.0, 10, kind="weaker"),  # type: ignore[arg-type]
    ],
)
def test_arguments_outside_their_range_are_refused(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ParameterError):
        call()


def test_stronger_clones_are_refused_for_approximate_rounds() -> None:
    with pytest.raises(UnsupportedError, match="clones"):
        ShuffledRound(1.0, 10, delta0=1e-9, kind="stronger clones")


@pytest.mark.exhaust
def test_one_randomizer_for_all_hides_more_than_clones_and_several_do_not() -> None:
    fixed, differing = (
        compose([ShuffledRound(1.0, 10_000, times=10, kind=kind)], delta=1e-6) for kind in (None, "clones")
    )
    assert fixed.epsilon is not None and differing.epsilon is not None
    assert fixed.attack_lower < fixed.epsilon < 1.02 * fixed.attack_lower
    assert differing.method == "privacy loss of the clone pairs" and differing.epsilon > 1.2 * fixed.epsilon


@pytest.mark.exhaust
def test_lower_ends_and_comparisons_do_not_depend_on_the_grouping_of_rounds() -> None:
    apart, together = (
        compose(rounds, delta=1e-6) for rounds in ([ShuffledRound(1.0, 50)] * 3, [ShuffledRound(1.0, 50, times=3)])
    )
    assert (apart.lower, apart.renyi) == (together.lower, together.renyi)


@pytest.mark.parametrize(("rounds", "epsilon0", "n"), [(1000, 700.0, 1000), (2228, 427.0, 1), (63, 635.8, 18)])
def test_rounds_that_hide_nobody_are_answered_by_local_budgets(rounds: int, epsilon0: float, n: int) -> None:
    found = compose(rounds, epsilon0=epsilon0, n=n, delta=1e-9)
    assert (found.epsilon, found.method) == (pytest.approx(rounds * epsilon0), "local")
    assert found.attack_lower >= 0.99 * epsilon0


@pytest.mark.exhaust
def test_tiny_losses_of_many_rounds_add_up_without_losing_their_digits() -> None:
    tiny = compose(1241, epsilon0=1.4309604122082155e-09, n=44_869_576, delta=2.7e-13)
    assert tiny.attack_lower <= (tiny.epsilon or 0.0) <= 1241 * 1.44e-9


@pytest.mark.parametrize("theta", [0.0, 0.7, 30.0])
def test_what_losses_exceed_epsilon_by_is_summed_as_one_by_one(theta: float) -> None:
    rng = np.random.default_rng(3)
    masses = rng.exponential(size=3000) ** 3
    total = ComposedPLD(theta, 0.3, -0.4, 2e-4, masses / masses.sum(), 0.0, 0.0, 0.0)
    losses = total.start + total.step * np.arange(masses.size)
    for epsilon in (-0.45, -0.4, -0.39999, 0.0, 0.05, 0.1998, 0.3):
        over = np.maximum(-np.expm1(np.minimum(epsilon - losses, 0.0)), 0.0)
        exact = float((over * np.exp(0.3 - theta * losses)) @ total.masses)
        scale = exp(0.3 - theta * epsilon)
        low, high = total.lower(epsilon), total.upper(epsilon)
        assert low <= exact and min(1.0, exact) <= high
        assert high - low <= 1e-10 * exact + 1e-11 * scale


def test_one_evaluation_tells_whether_rounds_keep_an_epsilon() -> None:
    for parts in ([ShuffledRound(1.0, 400, times=5)], [ShuffledRound.of(KRR(3, 2.0), 2000, times=9)], SMALL[-1]):
        found = composed_epsilon(parts, delta=1e-5)
        assert found is not None
        assert composed_log_ratio(parts, epsilon=found * 1.00001, delta=1e-5) <= 0.0
        assert composed_log_ratio(parts, epsilon=found * 0.9999, delta=1e-5) > 0.0


@pytest.mark.exhaust
def test_rounds_at_a_delta_far_below_what_doubles_differ_by_are_kept_as_far_as_they_are() -> None:
    asked = {"n": 9_833_877, "rounds": 45}
    most = max_epsilon(epsilon=0.5, delta=1e-38, randomizer=KRR(2, 1.0), **asked)
    assert most > 5.0
    assert Accountant(KRR(2, most), **asked).epsilon(1e-38) <= 0.5


def test_a_loss_of_next_to_no_mass_is_added_up_without_a_warning() -> None:
    law = PrivacyLossDistribution(1e-3, 0.0, np.array([1.0, 5e-324]), 0.0, 0.0)
    assert convolve_plds([(law, 3)], theta=1.0).upper(0.0) <= 1e-9
    assert shift_quantile([(law, 3)], [np.array([0.0, 5e-4])], 1e-6) < 1e-3

"""Order privacy against exhaustive enumeration, closed forms and the worked example of the paper."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import combinations, combinations_with_replacement, pairwise

import numpy as np
import pytest
from scipy.stats import norm
from studies.mallows_shape.moments import inversion_variance, mean_inversions
from tests.shuffle.symmetric import (
    everybody,
    everything,
    groups_of,
    index,
    largest_change,
    log_law,
    naive_decode,
    naive_inversions,
)
from tests.statistics import FALSE_ALARM, expect_broken, expect_law, rng_of
from tests.tiers import one_in

from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError
from dovetail.shuffle.fitting.components import PartitionedOrder, average_mixing, exact_mixing, mallows_marginals
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.fitting.sensitivity import (
    footrule,
    kendall,
    published_width_bound,
)
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.sampling.lehmer_code import (
    LehmerCode,
    decode_by_tiers,
    decode_by_window,
    decode_lehmer_code,
    draw_lehmer_code,
)
from dovetail.shuffle.sampling.mallows import (
    draw_mallows,
    hamming_distance,
    inversions,
    kendall_distance,
    log_normalizer,
)
from dovetail.shuffle.sampling.permutations import inverse

THETAS = [0.0, 1e-12, 0.05, 0.3, 1.0, 2.5, 1000.0]


def true_alpha(order: np.ndarray, group: tuple[int, ...], alpha: float) -> float:
    """The measured alpha of the shuffler fitted for this group alone, from its own log weights."""
    shuffler = Mallows.single(Groups.from_lists([group], len(order)), alpha=alpha, reference=order)
    return largest_change(log_law(shuffler), group, len(order))


@pytest.mark.parametrize("n", [3, 4, 5])
def test_the_promise_is_kept_exactly_for_all_groups_and_reference_orders(n: int) -> None:
    for order in everything(n):
        shuffler = Mallows.single(everybody(n), alpha=1.0, reference=order)
        law, positions = log_law(shuffler), inverse(order)
        for group in groups_of(n):
            change = largest_change(law, group, n) / shuffler.theta
            assert change == pytest.approx(kendall(positions[list(group)]), rel=1e-12)


def literal_law(order: np.ndarray, theta: float) -> np.ndarray:
    """Line 8 of Algorithm 1 read literally: sigma = s^-1 shat, with the same distance inv(shat s^-1)."""
    line, back = everything(len(order)), inverse(order)
    weights = np.array([-theta * naive_inversions(order[pi][back]) for pi in line])  # inv(s pi s^-1)
    return weights - np.log(np.exp(weights).sum())


def pairs_in_another_order(sigma: np.ndarray, other: np.ndarray) -> int:
    """Formula (5): pairs of indices i < j at which the two sequences go opposite ways."""
    n = len(sigma)
    return sum((sigma[i] - sigma[j]) * (other[i] - other[j]) < 0 for i in range(n) for j in range(i + 1, n))


def law_with(distance: Callable[[np.ndarray, np.ndarray], int], order: np.ndarray) -> np.ndarray:
    """Log law of the flow shat s^-1 where shat is drawn with probability exp(-distance to s), not normalized."""
    line, back = everything(len(order)), inverse(order)
    law = np.empty(len(line))
    law[index(line[:, back])] = [-float(distance(shat, order)) for shat in line]
    return law


def test_pairs_of_indices_as_in_formula_5_break_the_promise_and_pairs_of_items_keep_it() -> None:
    """Indices: the reference order cancels, and the group's own labels decide instead of its places."""

    def items(sigma: np.ndarray, other: np.ndarray) -> int:
        return pairs_in_another_order(inverse(sigma), inverse(other))

    order, group = np.array([0, 2, 1]), (0, 2)  # side by side in the order, and not in the labels
    promised = kendall(inverse(order)[list(group)])
    assert promised == 1
    assert largest_change(law_with(pairs_in_another_order, order), group, 3) == 3.0
    assert largest_change(law_with(items, order), group, 3) == 1.0
    broken = 0
    for n in (3, 4):
        for order in everything(n):
            ours = law_with(items, order)
            shuffler = Mallows.single(everybody(n), alpha=1.0, reference=order)
            np.testing.assert_allclose(log_law(shuffler) - ours * shuffler.theta, -log_normalizer(n, shuffler.theta))
            for group in groups_of(n):
                exact = kendall(inverse(order)[list(group)])
                assert largest_change(ours, group, n) == exact
                broken += largest_change(law_with(pairs_in_another_order, order), group, n) > exact
    assert broken >= 4 + 68


@pytest.mark.parametrize(
    ("order", "group", "promised", "literal"),
    [([1, 2, 0], (1, 2), 1, 3), ([0, 2, 3, 1], (0, 2), 1, 5)],
)
def test_the_literal_reading_breaks_its_promise_and_ours_keeps_it(
    order: list[int], group: tuple[int, ...], promised: int, literal: int
) -> None:
    line, n = np.array(order), len(order)
    assert kendall(inverse(line)[list(group)]) == promised
    assert largest_change(literal_law(line, 1.0), group, n) == pytest.approx(literal)
    assert true_alpha(line, group, float(promised)) == pytest.approx(promised)


def test_the_worked_example_of_appendix_a10() -> None:
    order, kappa = np.array([4, 1, 2, 7, 3, 0, 5, 6]), np.array([2, 1, 0, 4, 3, 5, 7, 6])
    released = np.array([0, 1, 4, 7, 2, 6, 5, 3])
    flow = np.empty(8, dtype=np.int64)
    flow[order] = order[kappa]
    np.testing.assert_array_equal(flow, released)
    np.testing.assert_array_equal(order[kappa] + 1, [3, 2, 5, 4, 8, 1, 7, 6])  # the sample that the paper draws
    assert kappa.tolist() != released.tolist()  # line 8 read literally is kappa itself
    positions = inverse(order)
    exact = [kendall(positions[group]) for group in ([3, 4, 6], [4, 1, 2, 7, 3], [7, 2, 4])]
    assert exact == [13, 10, 5]  # the paper prints 28
    groups = Groups.from_lists([[3, 4, 6], [4, 1, 2, 7, 3], [7, 2, 4]], 8)
    shuffler = Mallows.single(groups, alpha=13.0, reference=order)
    assert (shuffler.sensitivity, shuffler.theta, shuffler.summary()["paper_sensitivity"]) == (13, 1.0, 28)
    assert shuffler.log_weight(released) == pytest.approx(-5.0 - log_normalizer(8, 1.0))


def test_a_theta_one_tenth_too_large_breaks_the_promise() -> None:
    order = np.array([1, 2, 3, 0])
    honest = true_alpha(order, (0, 1, 3), 1.0)
    assert honest <= 1.0 + 1e-12 < 1.1 * honest


def groupings(n: int) -> list[list[tuple[int, ...]]]:
    """Every grouping of n people into at most two groups of at least two."""
    return [[*pair] for pair in combinations_with_replacement(groups_of(n), 2)]


def awkward(n: int, number: int) -> np.ndarray:
    """A reference order that is not its own inverse."""
    orders = [order for order in everything(n) if (order[order] != np.arange(n)).any()]
    return orders[number % len(orders)]


@pytest.mark.parametrize("n", one_in(3, [3, 4, 5]))
def test_components_and_atoms_keep_their_promise_exactly(n: int) -> None:
    for number, lists in enumerate(groupings(n)):
        groups = Groups.from_lists(lists, n)
        shuffler = Mallows.fit(groups, alpha=1.5, reference=awkward(n, number))
        law = log_law(shuffler)
        assert math.fsum(np.exp(law)) == pytest.approx(1.0, abs=1e-13)
        true = max(largest_change(law, tuple(group.tolist()), n) for group in groups)
        promised = 1.5 if shuffler.theta > 0.0 else 0.0  # one atom: uniform, and nothing is told
        assert true == pytest.approx(promised, abs=1e-12), lists


@pytest.mark.exhaust
@pytest.mark.parametrize("n", [4, pytest.param(5, marks=pytest.mark.exhaust)])
def test_other_groups_get_what_theorem_44_says(n: int) -> None:
    for number, lists in enumerate(groupings(n)[:: n - 3]):
        groups = Groups.from_lists(lists, n)
        codes = groups.atoms()
        for shuffler in (
            Mallows.fit(groups, alpha=2.0, reference=awkward(n, number)),
            Mallows.single(groups, alpha=2.0, reference=awkward(n, number)),
        ):
            law = log_law(shuffler)
            for other in groups_of(n)[:: n - 3]:
                true = largest_change(law, other, n)
                stated = shuffler.exact_alpha(Groups.from_lists([other], n))
                assert true <= stated * (1 + 1e-12) + 1e-12, (lists, other)
                whole = not np.isin(codes[list(other)], np.delete(codes, list(other))).any()
                if whole or math.isinf(stated) or shuffler.line.atom_starts.size == n + 1:
                    assert true == pytest.approx(stated, abs=1e-12), (lists, other)


def test_atoms_that_cut_a_group_are_more_sensitive_than_they_look_and_refused() -> None:
    """Blocks {0, 1}, {2} and the group {1, 2}: the true value is 2, the plain Kendall sensitivity is 1."""
    cut, group = PartitionedOrder(np.arange(3), np.array([0, 3]), np.array([0, 2, 3])), Groups.from_lists([[1, 2]], 3)
    honest = Mallows.along(cut, group, alpha=1.0)
    assert honest.sensitivity == 2 and kendall([1, 2]) == 1
    assert largest_change(log_law(honest), (1, 2), 3) == pytest.approx(1.0)
    with pytest.raises(DataError, match="keep alpha"):
        Mallows(group, 1.0, cut, np.ones(1))


def test_a_group_that_crosses_components_is_refused() -> None:
    line = PartitionedOrder(np.arange(3), np.array([0, 2, 3]), np.arange(4))
    with pytest.raises(DataError, match="1 groups cross"):
        Mallows.along(line, Groups.from_lists([[1, 2]], 3), alpha=1.0)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_sensitivities_equal_enumeration(n: int) -> None:
    perms, places = everything(n), np.arange(n)
    distances = {
        kendall: np.array([naive_inversions(pi) for pi in perms]),
        footrule: np.abs(perms - places).sum(axis=1),
    }
    for group in groups_of(n, least=1):
        for formula, distance in distances.items():
            assert formula(group) == largest_change(distance.astype(float), group, n), (formula, group)


def test_the_printed_sensitivity_is_an_upper_bound_with_the_stated_exceptions() -> None:
    exceptions = dict.fromkeys(range(3, 9), 0)
    for n in exceptions:
        for group in groups_of(n):
            width, missing = group[-1] - group[0], set(range(group[0], group[-1] + 1)) - set(group)
            exact, printed = kendall(group), published_width_bound(width)
            centre = missing == {(group[0] + group[-1]) / 2}
            assert exact <= printed and (exact == printed) == (not missing or centre)
            exceptions[n] += centre
    assert list(exceptions.values()) == [1, 2, 4, 6, 9, 12]


@pytest.mark.parametrize("n", [4, 5])
@pytest.mark.parametrize("theta", THETAS[1:])
def test_digits_and_decoders_give_the_mallows_law(n: int, theta: float, rng: Entropy) -> None:
    draws = 200_000
    starts, thetas = np.arange(0, n * draws + 1, n), np.full(draws, theta)
    line = (
        decode_lehmer_code(draw_lehmer_code(starts, thetas, rng), starts, thetas).reshape(draws, n)
        - starts[:-1, None]
    )
    counts = np.bincount(index(line), minlength=math.factorial(n))
    weights = np.exp(-theta * np.array([naive_inversions(pi) for pi in everything(n)]))
    expect_law(counts, weights / weights.sum())
    if 0.05 <= theta <= 2.5:
        wrong = np.exp(-1.1 * theta * np.array([naive_inversions(pi) for pi in everything(n)]))
        if theta >= 0.3:
            expect_broken(counts, wrong / wrong.sum())


@pytest.mark.parametrize("n", [1000, 10_000, 100_000])
@pytest.mark.parametrize("scaled", [1e-6, 0.3, 1.0, 3.0, 30.0, 1000.0, math.inf])
def test_moments_agree_with_closed_forms(n: int, scaled: float) -> None:
    theta = min(scaled / n, 1.5)
    rng = rng_of(f"moments {n} {scaled}")
    mean, error = mean_inversions(n, theta), math.sqrt(inversion_variance(n, theta))
    scores = np.array([(inversions(draw_mallows(n, theta, rng)) - mean) / error for _ in range(4)])
    # a sum of at least 1000 independent digits; normal tails to 1e-9 with a tenth of slack for the third moment
    assert np.abs(scores).max() <= 1.1 * norm.isf(FALSE_ALARM / 8)


@pytest.mark.parametrize("theta", [1e-300, 1e-9, 1e-3, 0.2, 1.0, 7.0, 60.0])
@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_normalizer_and_moments_agree_with_the_exact_polynomial(n: int, theta: float) -> None:
    counts = [1]
    for m in range(2, n + 1):  # inversions: coefficients of prod (1 + x + .. + x^(m-1))
        counts = [sum(counts[max(0, k - m + 1) : k + 1]) for k in range(len(counts) + m - 1)]
    weights = [Fraction(c) * Fraction(math.exp(-theta * k)) for k, c in enumerate(counts)]
    total = sum(weights)
    mean = sum(k * w for k, w in enumerate(weights)) / total
    variance = sum((k - mean) ** 2 * w for k, w in enumerate(weights)) / total
    log_total = math.log1p(float(total - 1))
    assert log_normalizer(n, theta) == pytest.approx(log_total, rel=1e-13, abs=1e-300)
    assert mean_inversions(n, theta) == pytest.approx(float(mean), rel=1e-9, abs=1e-300)
    assert inversion_variance(n, theta) == pytest.approx(float(variance), rel=1e-9, abs=1e-300)


def test_the_normalizer_is_smooth_where_its_formula_changes() -> None:
    below, above = log_normalizer(10**6, math.nextafter(1.0, 0.0)), log_normalizer(10**6, 1.0)
    assert below == pytest.approx(above, rel=1e-12)
    assert log_normalizer(10**7, 0.0) == pytest.approx(log_normalizer(10**7, 1e-300), rel=1e-13)


def by_window(digits: LehmerCode) -> np.ndarray:
    """The permutation of one block, which the samplers leave to the window where digits are small."""
    result = np.empty(digits.size, dtype=np.int64)
    decode_by_window(digits, np.array([0, digits.size]), np.ones(1, dtype=np.bool_), result)
    return result


def by_tiers(digits: LehmerCode) -> np.ndarray:
    """The same by tiers, whatever the digits."""
    result = np.empty(digits.size, dtype=np.int64)
    decode_by_tiers(digits, 0, digits.size, result)
    return result


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 128, 500, 3000])
@pytest.mark.parametrize("theta", [0.0, 1e-5, 1e-3, 0.02, 0.3, 3.0, 1000.0])
def test_all_decoders_agree_with_deletion_and_digits_sum_to_inversions(n: int, theta: float, rng: Entropy) -> None:
    drawn = draw_lehmer_code(np.array([0, n]), np.array([theta]), rng)
    truth = naive_decode(drawn)
    np.testing.assert_array_equal(by_tiers(drawn), truth)
    np.testing.assert_array_equal(by_window(drawn), truth)
    assert drawn.sum() == inversions(truth) == inversions(inverse(truth))


def test_decoders_agree_at_the_extremes() -> None:
    for n in (64, 65, 1000):
        for drawn in (np.zeros(n, np.int64), np.arange(n)[::-1].copy(), np.arange(n)[::-1] * (np.arange(n) % 3 == 0)):
            drawn = drawn.astype(np.int32)
            np.testing.assert_array_equal(by_tiers(drawn), naive_decode(drawn))
            np.testing.assert_array_equal(by_window(drawn), naive_decode(drawn))


def test_decoders_agree_for_a_hundred_thousand(rng: Entropy) -> None:
    for theta in (1e-6, 5e-4, 0.01):
        drawn = draw_lehmer_code(np.array([0, 100_000]), np.array([theta]), rng)
        np.testing.assert_array_equal(by_tiers(drawn), by_window(drawn))


def test_the_top_tier_grows_with_the_line(rng: Entropy) -> None:
    n = 20 * 65_536 + 7  # more rows than one vector of counters holds
    starts, thetas = np.array([0, n]), np.array([1e-6])
    drawn = draw_lehmer_code(starts, thetas, rng)
    kappa = by_tiers(drawn)
    assert (np.bincount(kappa, minlength=n) == 1).all() and inversions(kappa) == drawn.sum(dtype=np.int64)


def test_blocks_are_decoded_one_by_one(rng: Entropy) -> None:
    starts = np.array([0, 1, 4000, 4003, 9000, 9001])
    thetas = np.array([1.0, 1e-4, 0.3, 0.02, 5.0])
    drawn = draw_lehmer_code(starts, thetas, rng)
    kappa = decode_lehmer_code(drawn, starts, thetas)
    for first, stop in pairwise(starts.tolist()):
        np.testing.assert_array_equal(kappa[first:stop], first + naive_decode(drawn[first:stop]))


@pytest.mark.parametrize("theta", [0.0, 0.2, 3.0, math.inf])
def test_marginals_equal_enumeration(theta: float) -> None:
    perms = everything(5)
    distances = np.array([naive_inversions(pi) for pi in perms])
    weights = (distances == 0) * 1.0 if math.isinf(theta) else np.exp(-theta * distances)
    truth = np.array([[weights[perms[:, i] == j].sum() for j in range(5)] for i in range(5)]) / weights.sum()
    np.testing.assert_allclose(mallows_marginals(5, theta), truth, atol=1e-14)


def test_averaged_mixing_agrees_with_the_exact_one_within_its_standard_error() -> None:
    line = np.arange(400) * 5 // 400
    exact, average = (
        exact_mixing(line, mallows_marginals(400, 0.02)),
        average_mixing(line, partial(draw_mallows, 400, 0.02)),
    )
    # 80 people a label: standard error at most .0056 by the stopping rule; 7 of them for 25 entries at 1e-9
    np.testing.assert_allclose(average, exact, atol=7 * 0.0056)
    np.testing.assert_allclose(average.sum(axis=1), 1.0, atol=1e-12)


def test_mean_displacement_in_the_bulk_is_as_the_theory_says(rng: Entropy) -> None:
    n, theta = 200_000, 0.01
    shift = np.abs(draw_mallows(n, theta, rng) - np.arange(n)).mean()
    # 2 ln 2 / theta; a place's shift has standard deviation about its mean and neighbours within 30 / theta depend
    assert shift == pytest.approx(2 * math.log(2) / theta, rel=6 * math.sqrt(60 / theta / n))


def test_rase_s_kendall_distance_needs_the_sign_of_the_product() -> None:
    line, order = np.arange(4), np.array([1, 0, 2, 3])
    products = [(order[i] - order[j]) * (line[i] - line[j]) for i, j in combinations(range(4), 2)]
    assert sum(product != 0 for product in products) == 6  # as printed: every pair, whatever the orders
    assert sum(product < 0 for product in products) == naive_inversions(order) == 1


def test_appendix_a12_needs_theta_times_the_sensitivity() -> None:
    alpha, own, other = 2.0, (0, 1, 2), (0, 3, 4)
    shuffler = Mallows.single(Groups.from_lists([own], 5), alpha=alpha, reference=np.arange(5))
    told, theta = largest_change(log_law(shuffler), other, 5), alpha / kendall(own)
    assert told == pytest.approx(theta * kendall(other), rel=1e-12)  # the ratio of the theorem's last line
    assert told > 5 * theta / kendall(other)  # as printed on the way


@pytest.mark.parametrize("n", [1, 2, 4])
def test_distances_of_orders_are_those_of_the_paper(n: int) -> None:
    orders = everything(n)
    for one in orders:
        for other in orders:
            place, there = inverse(one), inverse(other)
            disagreeing = sum((place[a] < place[b]) != (there[a] < there[b]) for a, b in combinations(range(n), 2))
            assert kendall_distance(one, other) == kendall_distance(other, one) == disagreeing
            assert hamming_distance(one, other) == sum(a != b for a, b in zip(one, other, strict=True)) != 1
    assert n < 4 or (hamming_distance(orders[0], orders[-1]), kendall_distance(orders[0], orders[-1])) == (4, 6)


@pytest.mark.parametrize("alpha", [0.7, 2.0])
def test_the_order_privacy_of_a_shuffler_is_the_largest_change_of_its_law(alpha: float) -> None:
    lists = [(0, 1, 2), (1, 3)]
    shuffler = Mallows.single(Groups.from_lists(lists, 4), alpha=alpha, reference=np.array([2, 0, 3, 1]))
    law = log_law(shuffler)
    changes = [largest_change(law, group, 4) for group in lists]
    assert max(changes) == pytest.approx(shuffler.guarantee.alpha, rel=1e-12) == pytest.approx(alpha, rel=1e-12)
    assert largest_change(law, (0, 1, 2, 3), 4) > alpha  # no group of theirs: more is told

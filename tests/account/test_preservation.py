"""Preservation of sets: every formula against enumeration, every simulation against a formula."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.stats import beta, hypergeom
from studies.fig7.run import expected_block_retention, retention_quantile
from tests.shuffle.symmetric import everything, naive_inversions
from tests.statistics import FALSE_ALARM, expect_broken, expect_law

from dovetail.account.preservation import (
    Preservation,
    arrangements,
    clopper_pearson,
    hamming_counts,
    hamming_preservation,
    max_replacements,
    prefix_failure_probability,
    prefix_replacement_distribution,
    preservation,
    query_preservation,
    sample_replacements,
    smallest_alpha_for_members,
    smallest_alpha_for_prefix,
)
from dovetail.core.certified import Bracket
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.sampling.mallows import draw_mallows
from dovetail.shuffle.uniform import Uniform

THETAS = [0.0, 1e-300, 1e-9, 0.05, 1.0, 4.0, math.inf]


def outsiders(n: int, members: tuple[int, ...]) -> np.ndarray:
    """For every permutation the number of members whose place goes to somebody else."""
    return len(members) - np.isin(everything(n)[:, list(members)], members).sum(axis=1)


def kendall_law(n: int, theta: float) -> np.ndarray:
    distance = np.array([naive_inversions(pi) for pi in everything(n)])
    weights = (distance == 0) * 1.0 if math.isinf(theta) else np.exp(-theta * distance)
    return weights / weights.sum()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7])
def test_corrected_hamming_counts_equal_enumeration(n: int) -> None:
    moved = (everything(n) != np.arange(n)).sum(axis=1)
    for size in range(1, n + 1):
        lost = outsiders(n, tuple(range(size)))
        for k in range(-1, size):
            truth = np.bincount(moved[lost > k], minlength=n + 1)
            assert hamming_counts(n, size, k) == truth.tolist(), (size, k)


def test_the_printed_hamming_counts_are_wrong() -> None:
    def printed(n: int, size: int, k: int, h: int) -> int:
        total = 0
        for j in range(k + 1, min(size, n - size, h // 2) + 1):
            for i in range(min(size - j, h - 2 * j) + 1):
                rest = h - 2 * j - i
                if 0 <= rest <= n - size - j:
                    ways = math.comb(size - j, i) * arrangements(i, j) * math.comb(n - size - j, rest)
                    sets = math.comb(size, j) * math.comb(n - size, j)
                    total += sets * ways * math.comb(i + j, j) * arrangements(rest, j)
        return total

    assert (hamming_counts(3, 2, 0)[3], printed(3, 2, 0, 3)) == (2, 4)
    assert hamming_counts(5, 1, 0)[4] == 36


@pytest.mark.parametrize(("p", "m"), [(p, m) for p in range(5) for m in range(5) if 1 <= p + m <= 6])
def test_arrangements_equal_enumeration(p: int, m: int) -> None:
    away = (everything(p + m)[:, :p] != np.arange(p)).all(axis=1)
    assert arrangements(p, m) == away.sum()


@pytest.mark.parametrize("theta", [0.0, 0.3, 1.0, 5.0])
def test_hamming_preservation_equals_enumeration(theta: float) -> None:
    n = 6
    weights = np.exp(-theta * (everything(n) != np.arange(n)).sum(axis=1))
    for size in range(1, n + 1):
        lost = outsiders(n, tuple(range(size)))
        for eta in (0.0, 0.25, 0.5, 0.75, 0.9, 1.0):
            kept = size - lost
            truth = weights[kept < Fraction(str(eta)) * size].sum() / weights.sum()
            assert hamming_preservation(n, size, eta=eta, theta=theta) == pytest.approx(truth, rel=1e-12)


def test_the_share_that_may_be_lost_is_rounded_down_and_not_up() -> None:
    assert max_replacements(3, 0.9) == 0  # the printed ceiling says 1
    delta = hamming_preservation(7, 3, eta=0.9, theta=1.0)
    overclaimed = hamming_preservation(7, 3, eta=0.6, theta=1.0)  # k = 1
    assert (round(delta, 3), round(overclaimed, 3)) == (0.860, 0.335)
    assert [max_replacements(10, eta) for eta in (0.9, 0.7, 0.1)] == [1, 3, 9]  # decimals, not doubles
    assert hamming_preservation(5, 2, eta=1.0, theta=math.inf) == 0.0


@pytest.mark.parametrize("theta", THETAS)
@pytest.mark.parametrize("n", [1, 2, 5, 7])
def test_the_law_of_a_prefix_equals_enumeration_and_so_does_a_suffix(n: int, theta: float) -> None:
    law = kendall_law(n, theta)
    for size in range(n + 1):
        for members in (tuple(range(size)), tuple(range(n - size, n))):
            truth = np.bincount(outsiders(n, members), weights=law, minlength=min(size, n - size) + 1)
            np.testing.assert_allclose(prefix_replacement_distribution(n, size, theta), truth, rtol=1e-13, atol=3e-15)


def test_the_law_of_a_prefix_is_stable_for_a_million_people() -> None:
    n, size = 10**6, 10**5
    law, j = prefix_replacement_distribution(n, size, 0.0), np.arange(size + 1)
    truth = hypergeom(n, n - size, size)
    assert law.sum() == pytest.approx(1.0, abs=1e-12)
    assert (law * j).sum() == pytest.approx(truth.mean(), rel=1e-10)
    assert (law * (j - truth.mean()) ** 2).sum() == pytest.approx(truth.var(), rel=1e-8)
    np.testing.assert_allclose(prefix_replacement_distribution(n, size, 1e-300), law, rtol=1e-9)
    for theta in (1e-7, 1e-3, 1.0, 1000.0):
        assert np.isfinite(prefix_replacement_distribution(n, size, theta)).all()


@pytest.mark.exhaust
@pytest.mark.parametrize("theta", [1e-9, 1e-4, 0.03, 2.0])
def test_the_law_of_a_prefix_agrees_with_sixty_digits(theta: float) -> None:
    n, size = 10**6, 3000
    with localcontext(prec=60):

        def number(m: int) -> Decimal:
            return 1 - (-m * Decimal(theta)).exp()

        weights, weight = [Decimal(1)], Decimal(1)
        for j in range(1, size + 1):
            step = number(size - j + 1) * number(n - size - j + 1) / number(j) ** 2
            weight *= (-(2 * j - 1) * Decimal(theta)).exp() * step
            weights.append(weight)
        total = sum(weights)
        truth = np.array([float(each / total) for each in weights])
    seen = truth > 1e-30
    np.testing.assert_allclose(prefix_replacement_distribution(n, size, theta)[seen], truth[seen], rtol=1e-10)


@pytest.mark.exhaust
def test_draws_follow_the_law_of_a_prefix(rng: Entropy) -> None:
    order = np.array([2, 0, 4, 1, 3, 6, 5, 7])
    shuffler = Mallows.single(Groups.from_labels(range(8), radius=1), alpha=1.2, reference=order)
    lost = sample_replacements(shuffler, order[:3], draws=20_000, rng=rng)
    expect_law(np.bincount(lost, minlength=4), prefix_replacement_distribution(8, 3, shuffler.theta))
    expect_broken(np.bincount(lost, minlength=4), prefix_replacement_distribution(8, 3, 1.2 * shuffler.theta))


@pytest.mark.exhaust
def test_the_simulated_interval_covers_the_exact_probability(rng: Entropy) -> None:
    shuffler = Mallows.single(Groups.from_labels(range(30), radius=2), alpha=3.0)
    exact = prefix_failure_probability(30, 10, eta=0.8, theta=shuffler.theta)
    seen = preservation(shuffler, shuffler.order[:10], eta=0.8, draws=2000, rng=rng, confidence=1 - FALSE_ALARM)
    assert seen.delta.contains(exact) and seen.delta.gap < 3.0


def test_a_query_is_kept_as_often_as_enumeration_says(rng: Entropy) -> None:
    values, shuffler = np.array([0.0, 1.0, 1.0, 0.0, 1.0]), Uniform(5)

    def query(seen: np.ndarray) -> float:
        return float(seen[:2].mean())

    every = np.array([query(values[list(order)]) for order in permutations(range(5))])
    truth = float((np.abs(every - 0.5) > 0.25).mean())  # by hand: both 0 (1/10) or both 1 (3/10)
    assert truth == pytest.approx(0.4)
    seen = query_preservation(
        shuffler, values, query, tolerance=0.25, draws=2000, rng=rng, confidence=1 - FALSE_ALARM
    )
    assert seen.delta.contains(truth) and seen.draws == 2000
    same = query_preservation(shuffler, np.ones(5), query, tolerance=0.0, draws=50, rng=rng)
    assert same.failures == 0, "members who hold the same may be exchanged"
    assert query_preservation(Identity(5), values, query, tolerance=0.0, draws=20, rng=rng).failures == 0
    lost = query_preservation(shuffler, values, lambda _: math.nan, tolerance=1.0, draws=20, rng=rng)
    assert lost.failures == 20
    with pytest.raises(DataError, match="a number for each of 5 people"):
        query_preservation(shuffler, [1.0], query, tolerance=0.0, draws=1, rng=rng)


def test_intervals_are_those_of_clopper_and_pearson() -> None:
    for x, n in [(0, 10), (3, 10), (10, 10), (1, 100_000)]:
        interval = clopper_pearson(x, n, 0.95)
        lower = beta.ppf(0.025, x, n - x + 1) if x else 0.0
        upper = beta.ppf(0.975, x + 1, n - x) if x < n else 1.0
        assert interval.lower == pytest.approx(lower, rel=1e-8) and interval.upper == pytest.approx(upper, rel=1e-8)


def test_nothing_moves_under_the_identity_and_everything_under_the_uniform_shuffle(rng: Entropy) -> None:
    assert preservation(Identity(9), [1, 4], eta=1.0, draws=50, rng=rng).failures == 0
    lost = sample_replacements(Uniform(40), range(10), draws=4000, rng=rng)
    expect_law(np.bincount(lost, minlength=11), hypergeom(40, 30, 10).pmf(np.arange(11)))


@pytest.mark.parametrize("theta", [0.0, 0.2, 1.0, 3.0])
def test_a_mallows_order_keeps_at_least_the_uniform_share_of_every_interval(theta: float) -> None:
    for n in (2, 4, 6):
        law = kendall_law(n, theta)
        for first, last in combinations(range(n + 1), 2):
            size = last - first
            kept = size - (law * outsiders(n, tuple(range(first, last)))).sum()
            assert kept / size >= size / n - 1e-12


@pytest.mark.exhaust
def test_an_interior_block_loses_log_two_over_theta_at_each_edge(rng: Entropy) -> None:
    n, size, theta, draws = 20_000, 4000, 0.01, 400
    law = prefix_replacement_distribution(n, size, theta)
    edge = float(law @ np.arange(law.size))
    assert edge == pytest.approx(math.log(2) / theta, rel=0.01)  # one edge, exactly; correction of order theta
    spread = math.sqrt(2.0 * float(law @ (np.arange(law.size) - edge) ** 2))  # two edges, far apart
    block = slice(8000, 12_000)
    lost = [
        size - ((k := draw_mallows(n, theta, rng)[block]) >= 8000).sum() + (k >= 12_000).sum() for _ in range(draws)
    ]
    tolerance = 6.2 * spread / math.sqrt(draws) + 0.01 * 2 * edge  # normal, 1e-9; plus the rule's own error
    assert abs(np.mean(lost) - size * (1 - expected_block_retention(n, size, theta))) <= tolerance
    assert expected_block_retention(100, 30, 0.0) == expected_block_retention(100, 30, 1e-6) == 0.3
    assert expected_block_retention(100, 30, math.inf) == 1.0


def test_what_is_retained_is_read_off_the_law() -> None:
    law = prefix_replacement_distribution(50, 20, 0.1)
    eta = retention_quantile(law, 20, delta=0.05)
    assert prefix_failure_probability(50, 20, eta=eta, theta=0.1) <= 0.05
    assert prefix_failure_probability(50, 20, eta=eta + 0.05, theta=0.1) > 0.05


def test_more_theta_never_preserves_less() -> None:
    for size in (1, 10, 40):
        for eta in (0.5, 0.8, 1.0):
            failures = [
                prefix_failure_probability(80, size, eta=eta, theta=theta) for theta in np.linspace(0.0, 3.0, 40)
            ]
            assert (np.diff(failures) <= 1e-12).all()


def test_the_least_alpha_of_a_prefix_is_bracketed() -> None:
    question = {"eta": 0.9, "delta": 0.01}
    bracket = smallest_alpha_for_prefix(5000, 500, **question, sensitivity=435)
    low, high = (
        prefix_failure_probability(5000, 500, eta=0.9, theta=a / 435) for a in (bracket.lower, bracket.upper)
    )
    assert high <= 0.01 < low and bracket.gap < 2e-6
    assert smallest_alpha_for_prefix(100, 100, **question, sensitivity=9) == Bracket(0.0, 0.0)


@pytest.mark.exhaust
def test_the_least_alpha_of_a_set_contains_that_of_the_exact_law(rng: Entropy) -> None:
    groups = Groups.from_labels(range(200), radius=3)
    exact = smallest_alpha_for_prefix(200, 50, eta=0.9, delta=0.2, sensitivity=21)
    found = smallest_alpha_for_members(
        lambda alpha: Mallows.single(groups, alpha=alpha), range(50), eta=0.9, delta=0.2, draws=400, rng=rng
    )
    assert found.lower <= exact.upper and exact.lower <= found.upper and found.gap < 2.0


def test_every_look_of_a_search_takes_its_share_of_what_may_go_wrong(
    rng: Entropy, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def look(*_: object, confidence: float, **__: object) -> Preservation:
        asked.append(1.0 - confidence)
        return Preservation(0.9, 0, 1, Bracket(0.0, 0.0), confidence)

    monkeypatch.setattr("dovetail.account.preservation.preservation", look)
    smallest_alpha_for_members(lambda alpha: Uniform(4), [0], eta=0.9, delta=0.2, draws=1, rng=rng)
    assert asked == pytest.approx([0.01 / 128] * 2, rel=1e-9), "of two searches of at most 64 looks, 0.99 together"


def test_impossible_questions_are_refused(rng: Entropy) -> None:
    with pytest.raises(ParameterError, match=r"`eta` must be a number in \[0, 1\], got 1.1"):
        max_replacements(4, 1.1)
    with pytest.raises(DataError, match=r"`members` must be people 0..3, at least one"):
        sample_replacements(Uniform(4), [4], draws=1, rng=rng)
    with pytest.raises(UnsupportedError, match="at most 200 people"):
        hamming_preservation(201, 5, eta=0.5, theta=1.0)
    with pytest.raises(UnsupportedError, match="No alpha up to"):
        smallest_alpha_for_members(lambda alpha: Uniform(50), range(10), eta=1.0, delta=0.1, draws=20, rng=rng)
    with pytest.raises(ParameterError, match="`theta`"):
        prefix_replacement_distribution(10, 5, -1.0)

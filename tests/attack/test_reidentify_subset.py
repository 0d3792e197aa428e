"""The adversary of Theorem 4.2: its best play by enumeration, a search for many people, and the bound above both."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import hypergeom
from tests.statistics import expect_broken, expect_law

from dovetail.account.order_privacy import reidentification_bound
from dovetail.attack.experiment.run_attack import AttackResult
from dovetail.attack.experiment.subset_search import (
    SubsetSearch,
    best_subset_success,
    reidentify_subset,
    subset_bound,
)
from dovetail.core.channel import KRRChannel
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.core.stages import FrequencyRandomizer, Shuffler
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.unary import Unary
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups


def mallows(n: int, alpha: float) -> Mallows:
    """One order of everybody that is not its own inverse."""
    everybody = Groups.from_lists([list(range(n))], n)
    return Mallows.single(everybody, alpha=alpha, reference=np.roll(np.arange(n), 1))


@pytest.mark.parametrize(("n", "k"), [(3, 1), (4, 1), (5, 2), (6, 2), (6, 3)])
def test_of_equal_values_and_a_uniform_shuffle_the_best_play_is_a_random_choice(n: int, k: int) -> None:
    best = best_subset_success(KRRChannel(2, 3, 1), [0] * n, Uniform(n), subset=np.arange(k))
    assert best == pytest.approx(hypergeom.sf(k // 2, n, k, k))


def test_without_a_shuffle_or_without_noise_the_best_play_always_wins() -> None:
    assert best_subset_success(KRRChannel(2, 1, 1), [0] * 4, Identity(4), subset=[1, 3]) == pytest.approx(1.0)
    exact = KRR(4, 40.0).channel()
    assert best_subset_success(exact, [0, 1, 2, 3], Uniform(4), subset=[1, 3]) == pytest.approx(1.0)
    assert best_subset_success(exact, [0, 1, 1, 3], Uniform(4), subset=[1]) == pytest.approx(0.5)


def test_one_person_with_a_rare_value_has_its_closed_form() -> None:
    r"""Only person 0 holds 1 and the order is uniform: name a place with report 1 if there is one.

    With N ones of the others and the own report one, with probability p, the chance is 1 / (N + 1); without a one
    every place is as good.
    """
    n, channel = 5, KRRChannel(2, 3, 1)
    p = channel.p
    ones = [math.comb(n - 1, j) * (1 - p) ** j * p ** (n - 1 - j) for j in range(n)]
    closed = p * sum(share / (j + 1) for j, share in enumerate(ones)) + (1 - p) * ones[0] / n
    assert best_subset_success(channel, [1, 0, 0, 0, 0], Uniform(n), subset=[0]) == pytest.approx(closed)


@pytest.mark.exhaust
@pytest.mark.parametrize("alpha", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("epsilon", [0.05, 0.5])
def test_no_play_exceeds_the_bound(alpha: float, epsilon: float) -> None:
    randomizer = KRR(2, epsilon)
    for n, k in ((4, 1), (5, 2)):
        shuffler = mallows(n, alpha)
        bounds = [subset_bound(randomizer, shuffler, subset=subset) for subset in combinations(range(n), k)]
        for subset, bound in zip(combinations(range(n), k), bounds, strict=True):
            for values in ([0] * n, [1] * k + [0] * (n - k)):
                assert best_subset_success(randomizer.channel(), values, shuffler, subset=subset) <= bound + 1e-12
        assert max(bounds) < 1.0  # the theorem says something


def test_the_bound_is_that_of_the_group() -> None:
    krr, groups = KRR(2, 0.1), Groups.from_labels(np.arange(40) // 20)
    inside = WithinGroups(groups)
    assert subset_bound(krr, inside, subset=[1, 2], group=np.arange(40)) == 1.0  # everybody: nothing is promised
    assert subset_bound(krr, inside, subset=[1, 30]) == 1.0  # no group holds them
    found = subset_bound(krr, inside, subset=[1, 2], group=np.arange(20))
    assert (
        found
        == subset_bound(krr, inside, subset=[1, 2])
        == reidentification_bound(epsilon=0.1, alpha=0.0, r=20, k=2)
        < 0.2
    )
    with pytest.raises(DataError, match="`subset` must be people of `group`"):
        subset_bound(krr, inside, subset=[1, 30], group=np.arange(20))


def test_of_overlapping_groups_the_largest_with_the_subset_bounds_it() -> None:
    krr, groups = KRR(2, 0.1), Groups.from_labels(np.arange(200) // 5, radius=1)  # of 15 people, of 10 at the edges
    shuffler = Mallows.fit(groups, alpha=0.5)
    for subset, size in (([0], 15), ([7], 15), ([3, 12], 15), ([3, 17], 1)):
        allowed = reidentification_bound(epsilon=0.1, alpha=0.5, r=size, k=len(subset)) if size > 1 else 1.0
        assert subset_bound(krr, shuffler, subset=subset) <= allowed + 1e-12
        assert (subset_bound(krr, shuffler, subset=subset) < 1.0) == (size > 1)


def searched(
    randomizer: FrequencyRandomizer, values: list[int], shuffler: Shuffler, subset: list[int], rng: Entropy
) -> AttackResult:
    search = SubsetSearch.learn(randomizer, values, shuffler, subset=subset, draws=2000, rng=rng)
    return reidentify_subset(search, values, shuffler, trials=4000, rng=rng)


@pytest.mark.exhaust
@pytest.mark.parametrize("alpha", [0.0, 3.0])
def test_the_search_is_optimal_for_one_person_among_equal_values(alpha: float, rng: Entropy) -> None:
    shuffler, randomizer = mallows(5, alpha), KRR(2, 0.5)
    best = best_subset_success(randomizer.channel(), [0] * 5, shuffler, subset=[2])
    found = searched(randomizer, [0] * 5, shuffler, [2], rng)
    wins = round(found.success * 4000)
    expect_law([wins, 4000 - wins], [best, 1 - best])
    expect_broken([wins, 4000 - wins], [best + 0.1, 0.9 - best])
    assert found.chance == pytest.approx(0.2) and found.interval[0] <= found.success <= found.interval[1]


@pytest.mark.exhaust
def test_the_search_never_beats_the_best_play_and_comes_close(rng: Entropy) -> None:
    randomizer, values = KRR(2, 1.5), [1, 1, 0, 0, 0]
    for shuffler in (Uniform(5), mallows(5, 1.0)):
        best = best_subset_success(randomizer.channel(), values, shuffler, subset=[0, 1])
        wins = round(searched(randomizer, values, shuffler, [0, 1], rng).success * 4000)
        slack = 6.2 * math.sqrt(0.25 / 4000)  # false alarm below 1e-9
        assert 0.8 * best < wins / 4000 < best + slack


@pytest.mark.parametrize("randomizer", [KRR(4, 40.0), Unary(4, 80.0, "symmetric"), Hadamard(4, 40.0)], ids=repr)
def test_known_reports_or_places_are_found(randomizer: FrequencyRandomizer, rng: Entropy) -> None:
    values = np.array([3] * 5 + [0, 1, 2] * 65)
    placed = SubsetSearch.learn(randomizer, values, Identity(200), subset=[0, 99, 150], draws=3, rng=rng)
    found = reidentify_subset(placed, values, Identity(200), trials=20, rng=rng)
    assert found.success == 1.0 and (found.by_person == 1.0).all() and found.interval[1] == 1.0 > found.interval[0]
    bag = SubsetSearch.learn(randomizer, values, Uniform(200), subset=[0, 1, 2, 3, 4], draws=500, rng=rng)
    assert reidentify_subset(bag, values, Uniform(200), trials=20, rng=rng).success == 1.0


@pytest.mark.exhaust
def test_a_uniform_shuffle_of_equal_values_leaves_chance(rng: Entropy) -> None:
    values = np.zeros(30, dtype=np.int64)
    search = SubsetSearch.learn(KRR(2, 1.0), values, Uniform(30), subset=[4], rng=rng)
    found = reidentify_subset(search, values, Uniform(30), trials=3000, rng=rng)
    wins = round(found.success * 3000)
    expect_law([wins, 3000 - wins], [1 / 30, 29 / 30])
    assert found.chance == pytest.approx(1 / 30) and found.by_person.shape == (1,)


@pytest.mark.exhaust
def test_the_search_among_many_stays_below_the_bound(rng: Entropy) -> None:
    randomizer, values = KRR(2, 0.1), np.array([1] * 3 + [0] * 57)
    inside, group = WithinGroups(Groups.from_labels(np.arange(60) // 20)), np.arange(20)
    search = SubsetSearch.learn(randomizer, values, inside, subset=[0, 1, 2], rng=rng)
    found = reidentify_subset(search, values, inside, trials=1000, rng=rng)
    bound = subset_bound(randomizer, inside, subset=[0, 1, 2], group=group)
    assert found.interval[0] <= bound < 0.3
    assert found.success > found.chance  # it knows the group


def test_games_that_make_no_sense_are_refused(rng: Entropy) -> None:
    krr = KRR(2, 1.0)
    with pytest.raises(UnsupportedError, match="use SubsetSearch"):
        best_subset_success(krr.channel(), [0] * 9, Uniform(9), subset=[0])
    with pytest.raises(UnsupportedError, match="use SubsetSearch"):
        best_subset_success(krr.channel(), [0] * 5000, Uniform(5000), subset=[0, 1, 2, 3])
    with pytest.raises(DataError, match="`values` must be 4 codes"):
        best_subset_success(krr.channel(), [0] * 3, Uniform(4), subset=[0])
    with pytest.raises(DataError, match="each person once"):
        SubsetSearch.learn(krr, [0] * 4, Uniform(4), subset=[1, 1], rng=rng)
    with pytest.raises(DataError, match="`subset` must be indices"):
        subset_bound(krr, Uniform(4), subset=[4])
    search = SubsetSearch.learn(krr, [0] * 4, Uniform(4), subset=[1], draws=5, rng=rng)
    with pytest.raises(DataError, match="`reports` must be 4"):
        search.guess(np.zeros(3, dtype=np.int64), rng)
    with pytest.raises(ParameterError, match="`trials`"):
        reidentify_subset(search, [0] * 4, Uniform(4), trials=0, rng=rng)

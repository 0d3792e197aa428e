"""The frontier of order privacy lies between a uniform shuffle and none, and says where alpha buys nothing."""

import math
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from dovetail.core.entropy import simulation
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.plan.shuffle_frontier import Frontier, FrontierPoint, shuffle_frontier, told_apart
from dovetail.randomize.krr import KRR
from dovetail.shuffle.fitting.groups import Groups

ALPHAS = [0.25, 16.0, 256.0]


@cache
def ages() -> Frontier:
    return shuffle_frontier(
        Groups.from_labels(np.random.default_rng(1).integers(18, 90, 600), radius=1), ALPHAS, epsilon=2.0
    )


def beside(found: Frontier, name: str) -> FrontierPoint:
    return next(each for each in found.points if each.asked is None and each.shuffler == name)


@pytest.mark.exhaust
def test_a_larger_alpha_keeps_more_and_exposes_more() -> None:
    asked = [each for each in ages().points if each.asked is not None]
    assert [each.asked for each in asked] == ALPHAS and all(each.alpha <= (each.asked or 0.0) for each in asked)
    for low, high in pairwise(asked):
        assert low.lost > high.lost and low.error > high.error and low.attack < high.attack
        assert low.told_apart < high.told_apart


@pytest.mark.exhaust
def test_the_ends_are_those_of_a_uniform_shuffle_and_of_none() -> None:
    even, bare = beside(ages(), "uniform"), beside(ages(), "identity")
    assert (even.alpha, even.told_apart, bare.alpha, bare.told_apart) == (0.0, pytest.approx(0.5), math.inf, 1.0)
    assert even.lost == pytest.approx(1.0) and bare.lost == 0.0
    noise = KRR(k=2, epsilon=2.0).variance(np.array([0.5, 0.5]))[0] * 16 / 600  # about, whatever the share
    assert bare.error == pytest.approx(noise**0.5, rel=0.1)
    # regions are 0.2 or 0.8 up to the luck of the simulation: 38 people each, a standard deviation of 0.065
    assert even.error == pytest.approx((0.3**2 + 0.065**2 + noise) ** 0.5, rel=0.1)


@pytest.mark.exhaust
def test_no_shuffler_does_worse_than_the_blind_guess_or_better_than_none_within_the_noise() -> None:
    best = beside(ages(), "identity").attack
    # 500 targets, 16 releases: a standard error of at most sqrt(0.25 / 500) = 0.022; false alarm below 1e-9 at 6.2
    for each in ages().points:
        assert ages().chance <= each.attack < best + 6.2 * 0.022
        assert each.interval[0] <= each.attack <= each.interval[1]


@pytest.mark.exhaust
def test_an_unshuffled_release_is_attacked_as_well_as_bayes_rule_allows() -> None:
    found = shuffle_frontier(Groups.from_labels(np.arange(4000) // 250), [1.0], epsilon=3.0, agree=0.7)
    keep = math.exp(3.0) / (1.0 + math.exp(3.0))  # above 0.7, so the own report decides
    assert found.regions == 16
    assert abs(beside(found, "identity").attack - keep) < 6.2 * (keep * (1.0 - keep) / 500) ** 0.5


@pytest.mark.exhaust
def test_disjoint_groups_keep_everything_about_regions_at_alpha_nought() -> None:
    found = shuffle_frontier(Groups.from_labels(np.arange(600) % 3), [4.0], epsilon=2.0)
    asked = found.points[-1]
    assert found.regions == 3 and (asked.shuffler, asked.alpha) == ("within_groups", 0.0)
    assert asked.lost < 1e-9 and asked.verdict.startswith("keeps 100%")
    assert beside(found, "within_groups").lost < 1e-9


def test_the_verdict_says_where_alpha_buys_nothing_and_where_it_promises_nothing() -> None:
    vain, dear, bare = (each for each in ages().points if each.asked is not None)
    assert vain.verdict == "buys nothing" and vain.lost > 0.9
    assert dear.verdict.endswith("no promise") and bare.verdict.endswith("no promise")
    assert ages().sentence.startswith("up to alpha = 0.25 alpha buys nothing; from alpha = 16 on the promise")


@pytest.mark.exhaust
def test_a_public_place_in_the_plane_decides_the_regions() -> None:
    points = np.random.default_rng(2).random((400, 2))
    found = shuffle_frontier(Groups.within_radius(points, 0.02), [2.0], epsilon=2.0, points=points)
    assert beside(found, "within_groups").lost < 0.5 < beside(found, "uniform").lost


@pytest.mark.exhaust
def test_the_same_seed_gives_the_same_frontier() -> None:
    groups = Groups.from_labels(np.arange(64), radius=3)
    one, two = (shuffle_frontier(groups, [8.0], epsilon=1.0, rng=simulation(3)) for _ in range(2))
    assert one == two


def test_two_of_a_group_are_told_apart_by_at_most_the_logistic_of_alpha() -> None:
    assert told_apart(0.0) >= 0.5 and told_apart(math.inf) == 1.0
    assert told_apart(2.0) == pytest.approx(math.exp(2.0) / (1.0 + math.exp(2.0)), abs=1e-15)


def test_mistakes_are_refused_in_one_line() -> None:
    groups = Groups.from_labels(np.arange(64), radius=3)
    with pytest.raises(ParameterError, match="`alphas` must be at least one number"):
        shuffle_frontier(groups, [], epsilon=1.0)
    with pytest.raises(ParameterError, match="`alphas` must be a number, at least 0, got -1"):
        shuffle_frontier(groups, [-1.0], epsilon=1.0)
    with pytest.raises(ParameterError, match=r"`agree` must be in \(0.5, 1\], got 0.5"):
        shuffle_frontier(groups, [1.0], epsilon=1.0, agree=0.5)
    with pytest.raises(UnsupportedError, match="32 to 200,000 people, got 4"):
        shuffle_frontier(Groups.from_labels([1, 1, 2, 2]), [1.0], epsilon=1.0)

"""The clone pairs: certified ends, their laws, and the corners of their range."""

from itertools import pairwise
from math import exp, expm1, log, pi, sqrt

import numpy as np
import pytest
from scipy.stats import norm

from dovetail.account.clones import RESOLUTION, ClonePair, Kind
from dovetail.core.errors import ParameterError

KINDS: tuple[Kind, Kind] = ("stronger clones", "clones")
GRID = [(e0, n) for e0 in (0.1, 1.0, 4.0) for n in (3, 100, 5_000, 10**6)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("epsilon0", "n"), [*GRID, (8.0, 10**5), (0.3, 10**9)])
def test_the_bracket_tightens_when_the_blocks_shrink(epsilon0: float, n: int, kind: Kind) -> None:
    pair = ClonePair(epsilon0, n, kind)
    epsilon = pair.epsilon(1e-6).upper
    wide, previous = pair.delta(epsilon, resolution=1e-1), None
    for resolution in (1e-1, 1e-2, 1e-3, 1e-4):
        now = pair.delta(epsilon, resolution=resolution)
        assert now.lower <= now.upper
        if previous is not None:  # each is nested in the one before, up to the error the sums allow for
            assert now.upper <= previous.upper * (1 + 1e-8)
            assert now.lower >= previous.lower * (1 - 1e-8)
        previous = now
    assert previous is not None
    assert wide.lower <= previous.lower * (1 + 1e-8)


def test_doubling_the_blocks_halves_the_gap() -> None:
    pair = ClonePair(1.0, 10**7)
    epsilon = pair.epsilon(1e-6).upper
    gaps = [pair.delta(epsilon, resolution=r).gap for r in (4e-5, 2e-5, 1e-5)]
    for coarse, fine in pairwise(gaps):
        assert coarse / fine == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("epsilon0", "n"), GRID)
def test_the_returned_epsilon_keeps_its_delta_when_evaluated_afresh(epsilon0: float, n: int, kind: Kind) -> None:
    for delta in (1e-2, 1e-6, 1e-12):
        pair = ClonePair(epsilon0, n, kind)
        ends = pair.epsilon(delta)
        assert pair.upper(ends.upper, pair.blocks(1e-8 * delta, RESOLUTION)) <= delta
        assert pair.delta(ends.upper, resolution=1e-6).upper <= delta  # other blocks, closer to the truth
        assert pair.delta(ends.lower, resolution=1e-6).lower >= delta or ends.lower == 0.0
        assert 0.0 <= ends.lower <= ends.upper <= epsilon0
        assert ends.gap <= 1e-4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon0", [1e-3, 0.03, 0.3, 1.0, 4.0, 8.0, 20.0])
def test_the_gap_is_below_one_in_ten_thousand_everywhere_and_one_in_a_million_on_request(
    epsilon0: float, kind: Kind
) -> None:
    for n in (1, 2, 30, 10**3, 10**5, 10**6, 10**9, 10**12):
        pair = ClonePair(epsilon0, n, kind)
        for delta in (1e-18, 1e-9, 1e-6, 1e-4, 1e-2):
            ends = pair.epsilon(delta)
            assert ends.gap <= 1e-4, (n, delta, ends)
            assert n < 10**5 or delta != 1e-9 or pair.epsilon(delta, resolution=1e-6).gap <= 1e-6


@pytest.mark.exhaust
def test_just_below_delta_of_zero_the_gap_is_small_beside_the_gaussian_scale() -> None:
    for n in (50, 10**5, 10**9):
        pair = ClonePair(1.0, n)
        top = pair.delta(0.0, resolution=1e-7)
        for share in (1e-2, 1e-4, 1e-6):
            ends = pair.epsilon(top.lower * (1.0 - share))
            assert ends.upper - ends.lower <= 1e-6 * max(pair.gaussian_scale, 1e2 * ends.upper), (n, share, ends)
        assert pair.epsilon(top.upper).upper <= 1e-6 * pair.gaussian_scale


@pytest.mark.parametrize("kind", KINDS)
def test_epsilon_falls_with_people_and_delta_and_grows_with_local_epsilon(kind: Kind) -> None:
    def epsilon(epsilon0: float, n: int, delta: float) -> float:
        return ClonePair(epsilon0, n, kind).epsilon(delta).upper

    by_n = [epsilon(2.0, n, 1e-6) for n in (1, 2, 10, 300, 5_000, 10**5, 10**7, 10**10)]
    by_delta = [epsilon(2.0, 1_000, d) for d in (1e-18, 1e-12, 1e-6, 1e-3, 0.1, 0.9)]
    by_local = [epsilon(e0, 10_000, 1e-6) for e0 in (1e-3, 0.1, 0.5, 1.0, 3.0, 6.0, 20.0)]
    for falling in (by_n, by_delta, by_local[::-1]):
        assert all(a >= b for a, b in pairwise(falling)), falling


def test_delta_falls_in_epsilon_and_vanishes_at_the_local_epsilon() -> None:
    pair = ClonePair(2.0, 500)
    values = [pair.delta(e) for e in np.linspace(0.0, 2.0, 21)]
    assert all(a.upper > b.upper for a, b in pairwise(values))
    assert values[-1].upper == 0.0
    assert pair.delta(3.0).upper == 0.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon0", [1e-3, 1.0, 20.0])
def test_one_person_alone_gets_the_exact_local_curve(epsilon0: float, kind: Kind) -> None:
    pair, p = ClonePair(epsilon0, 1, kind), exp(epsilon0)
    for share in (0.0, 0.3, 0.99):
        epsilon = share * epsilon0
        exact = exp(epsilon) * expm1(epsilon0 - epsilon) / (p + 1)
        ends = pair.delta(epsilon)
        assert ends.lower <= exact * (1 + 1e-12)
        assert exact * (1 - 1e-12) <= ends.upper <= exact * (1 + 3e-9)
    for delta in (1e-4, 1e-9):
        exact = epsilon0 + log(1 - delta * (1 + 1 / p))
        assert pair.epsilon(delta).upper == pytest.approx(exact, rel=2e-8)


def test_large_batches_approach_the_gaussian_curve() -> None:
    for epsilon0 in (0.5, 2.0):
        for kind in KINDS:
            pair = ClonePair(epsilon0, 10**10, kind)
            mu = pair.gaussian_scale
            for t in (0.5, 2.0, 4.0):
                limit = mu * (norm.pdf(t) - t * norm.sf(t))
                assert pair.delta(t * mu).upper / limit == pytest.approx(1.0, abs=2e-3)


def test_the_gaussian_scale_is_the_second_moment_of_the_law() -> None:
    p, n = exp(1.3), 10_000
    assert ClonePair(1.3, n).gaussian_scale == pytest.approx(sqrt(2 * (p - 1) ** 2 / ((p + 1) * n)))
    assert ClonePair(1.3, n, "clones").gaussian_scale == pytest.approx(
        sqrt(4 * p * (p - 1) ** 2 / ((p + 1) ** 2 * n))
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("delta", [1e-18, 1e-6, 0.5])
@pytest.mark.parametrize("n", [1, 2, 1_000, 10**9, 10**12])
@pytest.mark.parametrize("epsilon0", [1e-12, 1e-3, 1.0, 20.0, 700.0])
def test_the_corners_of_the_range_give_an_ordered_bracket(epsilon0: float, n: int, delta: float, kind: Kind) -> None:
    ends = ClonePair(epsilon0, n, kind).epsilon(delta)
    assert 0.0 <= ends.lower <= ends.upper <= epsilon0
    assert ends.upper - ends.lower <= 1e-4 * max(ends.upper, 1e-2 * ClonePair(epsilon0, n, kind).gaussian_scale)


def test_stronger_clones_promise_no_less_privacy_than_clones() -> None:
    for epsilon0, n in GRID:
        strong, plain = (ClonePair(epsilon0, n, kind).epsilon(1e-6) for kind in KINDS)
        assert strong.lower <= plain.upper


def test_without_delta_nothing_is_gained_and_with_much_delta_everything() -> None:
    assert ClonePair(1.5, 10**6).epsilon(0.0).upper == 1.5
    assert ClonePair(1.5, 10**6).epsilon(0.5).upper == 0.0
    assert ClonePair(1e-6, 5).epsilon(1e-6).upper == 0.0  # delta(0) = tanh(epsilon0 / 2) < delta


def test_whatever_lies_outside_the_range_is_refused_by_name() -> None:
    for wrong in (0.0, -1.0, float("nan"), float("inf"), 701.0, 5e-324):
        with pytest.raises(ParameterError, match="`epsilon0` must be"):
            ClonePair(wrong, 10)
    for people in (0, -3, 2.5, 10**13, float("nan")):
        with pytest.raises(ParameterError, match="`n` must be"):
            ClonePair(1.0, people)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="`kind` must be"):
        ClonePair(1.0, 10, "weaker clones")  # type: ignore[arg-type]
    for delta in (-1e-9, 1.0, 2.0, float("nan")):
        with pytest.raises(ParameterError, match="`delta` must be"):
            ClonePair(1.0, 10).epsilon(delta)
    for epsilon in (-0.1, float("nan"), float("inf")):
        with pytest.raises(ParameterError, match="`epsilon` must be"):
            ClonePair(1.0, 10).delta(epsilon)
    for resolution in (0.0, 1e-9, 2.0):
        with pytest.raises(ParameterError, match="`resolution` must be"):
            ClonePair(1.0, 10).delta(0.5, resolution=resolution)


def test_the_normal_density_at_zero_is_what_large_batches_keep_at_epsilon_zero() -> None:
    pair = ClonePair(1.0, 10**12)
    assert pair.delta(0.0).upper == pytest.approx(pair.gaussian_scale / sqrt(2 * pi), rel=1e-5)

"""Every question in range has a finite, ordered answer, also where a loss of 0 meets an even number of trials."""

import math
import random
from collections.abc import Iterator

import numpy as np
import pytest
from tests.tiers import EXHAUST

from dovetail.account import privacy_loss
from dovetail.account.amplify import amplify
from dovetail.account.bound import Bound
from dovetail.account.clones import ClonePair, symmetric_binomial_tail, without_compiled_loops
from dovetail.account.compose import compose, composed_delta
from dovetail.account.privacy_loss import PrivacyLossDistribution, optimistic_pld, pessimistic_pld
from dovetail.account.renyi import renyi_divergence
from dovetail.core.errors import DataError, ParameterError

ORDERS = [1.5, 4.0, 32.0]
NEAR_A_HALF = [0.54, 0.85, 0.92, 1.71, 3.46]  # where rounding puts 1 - beta above 1/2 at a loss of 0, or may


def questions(count: int, seed: str, *, most_rounds: int) -> Iterator[tuple[float, int, int, float]]:
    """Epsilon0 from .1 to 10 (often with two decimals, as people ask), n to 10 000, rounds, delta."""
    rng = random.Random(seed)
    for _ in range(count):
        epsilon0 = 10.0 ** rng.uniform(-1.0, 1.0)
        people, rounds = round(10.0 ** rng.uniform(0.0, 4.0)), round(most_rounds ** rng.random())
        yield round(epsilon0, 2) if rng.random() < 0.6 else epsilon0, people, rounds, 10.0 ** rng.uniform(-12, -2)


def judge(epsilon0: float, n: int, rounds: int, delta: float) -> None:
    """What every answer keeps."""
    total = compose(rounds, epsilon0=epsilon0, n=n, delta=delta)
    assert total.epsilon is not None and total.lower is not None
    assert 0.0 <= total.lower <= total.epsilon <= rounds * epsilon0 * (1 + 1e-12)
    divergences = renyi_divergence(ClonePair(epsilon0, n), ORDERS)
    assert np.all(np.diff(divergences) >= -1e-9 * epsilon0) and divergences[0] >= 0.0 and divergences[-1] <= epsilon0


@pytest.mark.exhaust
def test_the_questions_that_once_had_no_answer_have_one() -> None:
    answer = compose(2, epsilon0=1.71, n=11, delta=1e-6).epsilon
    assert answer is not None and math.isclose(answer, 3.41999, rel_tol=1e-5)
    found = renyi_divergence(ClonePair(3.46, 2395), [2.0, 8.0, 64.0])
    np.testing.assert_allclose(found, [0.02432, 0.09790, 2.28362], rtol=2e-4)
    np.testing.assert_allclose(found, renyi_divergence(ClonePair(3.46 + 1e-7, 2395), [2.0, 8.0, 64.0]), rtol=1e-5)
    for epsilon0, n in ((0.54, 4), (0.85, 2)):
        judge(epsilon0, n, 3, 1e-6)


@pytest.mark.parametrize(("epsilon0", "n"), [(50.0, 10), (50.0, 10**6), (0.1, 10**6), (700.0, 10**12)])
def test_the_smallest_delta_there_is_has_an_answer(epsilon0: float, n: int) -> None:
    assert 0.0 < amplify(epsilon0, n=n, delta=5e-324).epsilon <= epsilon0


@pytest.mark.parametrize("below", [False, True])  # numpy's exponentials differ in the last bit between processors
@pytest.mark.parametrize("ulps", [-8, -1, 0, 1, 8])
@pytest.mark.parametrize("trials", [1.0, 2.0, 3.0, 4.0, 8.0, 101.0])
def test_a_tie_is_in_no_tail(trials: float, ulps: int, below: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if below:
        exact = np.expm1
        monkeypatch.setattr(np, "expm1", lambda x: np.nextafter(exact(x), -np.inf))
    tie = math.comb(int(trials), int(trials) // 2) / 2.0**trials if trials % 2 == 0 else 0.0
    for epsilon0 in [*NEAR_A_HALF, *np.arange(0.01, 4.0, 0.13)]:
        moved = epsilon0 + ulps * math.ulp(epsilon0)
        q, gap, low, high = privacy_loss._binomial_tails(trials, np.array([0.0, 0.1, 0.2]), moved)
        total = 2.0 * q + gap
        assert total[0] == pytest.approx(1.0 - tie, rel=1e-11)
        assert np.all(np.diff(total) <= 1e-12) and np.all(low <= high)


@pytest.mark.exhaust
def test_laws_of_losses_are_probabilities_for_random_questions() -> None:
    for epsilon0, n, _, _ in questions(60, "laws of losses", most_rounds=1):
        pair = ClonePair(epsilon0, n)
        step = min(pair.gaussian_scale, epsilon0) / 20
        above, (below, shifts) = (
            pessimistic_pld(pair, step=step, cut=1e-15),
            optimistic_pld(pair, step=step, cut=1e-15),
        )
        assert below.masses.sum() <= 1.0 + 1e-9 and np.all(np.abs(shifts) <= 0.5 * step)
        assert 1.0 - 1e-9 <= above.masses.sum() + above.infinity <= 1.0 + 1e-6


@pytest.mark.exhaust
def test_random_questions_about_rounds_have_finite_and_ordered_answers() -> None:
    for question in questions(6, "first tier", most_rounds=4):
        judge(*question)


@EXHAUST
@pytest.mark.parametrize("part", range(10))
def test_a_thousand_random_questions_about_rounds_have_finite_and_ordered_answers(part: int) -> None:
    for question in questions(100, f"second tier {part}", most_rounds=100):
        judge(*question)


@pytest.mark.exhaust
def test_two_people_and_small_grids_agree_between_arrays_and_compiled_loops() -> None:
    for epsilon0 in NEAR_A_HALF:
        compiled = [composed_delta(1, epsilon=0.0, epsilon0=epsilon0, n=n).upper for n in (1, 2, 5)]
        with without_compiled_loops():
            arrays = [composed_delta(1, epsilon=0.0, epsilon0=epsilon0, n=n).upper for n in (1, 2, 5)]
        np.testing.assert_allclose(arrays, compiled, rtol=1e-11)
        exact = [ClonePair(epsilon0, n).delta(0.0).upper for n in (1, 2, 5)]
        assert np.all(np.array(compiled) >= np.array(exact) * (1.0 - 1e-9))


def test_a_tail_from_below_the_middle_is_refused() -> None:
    with pytest.raises(ParameterError, match="`k` must be from"):
        symmetric_binomial_tail(np.array([2.0]), np.array([4.0]))


@pytest.mark.parametrize("ends", [(math.nan, None), (1.0, math.nan), (-1e-9, None)])
def test_a_bound_that_is_no_number_is_refused(ends: tuple[float, float | None]) -> None:
    with pytest.raises(ParameterError, match="must be at least 0"):
        Bound("any", ends[0], "any", lower=ends[1])


@pytest.mark.parametrize(
    ("masses", "infinity"), [([0.5, math.nan], 0.0), ([0.7, 0.7], 0.0), ([1.1, -0.1], 0.0), ([0.5, 0.5], math.nan)]
)
def test_a_law_of_losses_that_is_none_is_refused(masses: list[float], infinity: float) -> None:
    with pytest.raises(DataError):
        PrivacyLossDistribution(0.1, 0.0, np.array(masses), infinity, 0.0)

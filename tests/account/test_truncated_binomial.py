"""Blocks of a binomial law, and the search for a threshold."""

from itertools import pairwise
from math import comb, log

import numpy as np
import pytest

from dovetail.account import clones as windows
from dovetail.account.bound import bracket_root
from dovetail.account.clones import truncated_binomial


@pytest.mark.parametrize("q", [0.5, 0.25, 1 / 64, 63 / 64])
@pytest.mark.parametrize("resolution", [1e-4, 0.05, 1.0])
@pytest.mark.parametrize("trials", [0, 1, 50, 900])
def test_block_masses_are_exact_sums_and_what_is_cut_is_below_the_tail(
    trials: int, q: float, resolution: float
) -> None:
    top, bottom = q.as_integer_ratio()
    law = [comb(trials, x) * top**x * (bottom - top) ** (trials - x) for x in range(trials + 1)]
    blocks = truncated_binomial(trials, q, 1.0 - q, tail=1e-6, resolution=resolution)
    edges = [int(e) for e in blocks.edges]
    exact = [sum(law[a:b]) / bottom**trials for a, b in pairwise(edges)]
    np.testing.assert_allclose(blocks.masses, exact, rtol=1e-12, atol=1e-16)
    assert sum(law[: edges[0]]) / bottom**trials <= blocks.cut_left
    assert sum(law[edges[-1] :]) / bottom**trials <= blocks.cut_right


def test_fine_blocks_are_single_counts() -> None:
    blocks = truncated_binomial(900, 0.5, 0.5, tail=1e-6, resolution=1e-4)
    assert np.all(np.diff(blocks.edges) == 1.0)


@pytest.mark.parametrize(("trials", "q"), [(10**6, 0.5), (10**7, 1e-3), (10**9, 0.25)])
def test_sums_of_counts_and_differences_of_tails_give_the_same_masses(
    trials: int, q: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for dense in (10**9, 0):
        monkeypatch.setattr(windows, "DENSE", dense)
        found.append(truncated_binomial(trials, q, 1.0 - q, tail=1e-15, resolution=1e-3).masses)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-8, atol=1e-14)


def test_the_resolution_of_a_window_is_at_most_what_was_asked_or_what_the_fewest_blocks_leave() -> None:
    assert truncated_binomial(900, 0.5, 0.5, tail=1e-6, resolution=1e-4).resolution == 0.0
    for wanted in (1e-5, 1e-4):
        blocks = truncated_binomial(10**7, 0.5, 0.5, tail=1e-6, resolution=wanted)
        assert 0.5 * wanted <= blocks.resolution <= 1.02 * wanted


@pytest.mark.parametrize("guess", [1e-12, 0.01, 0.3, 0.5, 0.999, 40.0])
@pytest.mark.parametrize("steepness", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("root", [1e-6, 0.3, 0.99])
def test_the_search_ends_at_two_evaluated_points_around_the_threshold(
    root: float, steepness: float, guess: float
) -> None:
    seen: dict[float, float] = {}

    def excess(x: float) -> float:
        seen[x] = -3.0 * log(x / root) - 5.0 * (x > root)
        return seen[x]

    low, high = bracket_root(excess, guess, steepness=steepness, most=1.0, tolerance=1e-8)
    assert seen[low] > 0.0 >= seen[high]
    assert low <= root <= high <= low * (1 + 1.1e-8)
    assert len(seen) < 80


@pytest.mark.parametrize("root", [1e-6, 0.3, 0.99])
def test_the_last_digits_of_a_processor_do_not_move_the_answer(root: float) -> None:
    found = {
        bracket_root(
            lambda x, off=off: 1.0 - (x / root) ** 3 + off, 0.3 * (1.0 + off), steepness=1.0, most=1.0,
            tolerance=1e-6,
        )
        for off in (0.0, 1e-15, -3e-15)
    }  # fmt: skip
    assert len(found) == 1


def test_a_search_that_finds_nothing_feasible_returns_the_end_it_was_given() -> None:
    low, high = bracket_root(lambda x: 1.0, 0.2, steepness=1.0, most=1.0, tolerance=1e-8)
    assert high == 1.0
    assert low < 1.0


@pytest.mark.parametrize("guess", [0.2, 0.29, 0.31, 0.5])
def test_a_smooth_threshold_is_found_in_a_dozen_evaluations(guess: float) -> None:
    seen: list[float] = []

    def excess(x: float) -> float:
        seen.append(x)
        return 40.0 * (0.09 - x * x)

    low, high = bracket_root(excess, guess, steepness=8.0, most=1.0, tolerance=1e-8)
    assert low <= 0.3 <= high <= low * (1 + 1.1e-8)
    assert len(seen) <= 12

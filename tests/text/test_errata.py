"""What the chapter on sentence privacy prints, beside what is right."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from tests.text.small import SENTENCES, SETS, candidates

from dovetail.text.deep_candidate import DeepCandidate
from dovetail.text.evaluation import random_guess
from dovetail.text.plan import fewest_good, good_probability
from dovetail.text.utilities import UTILITIES, counts


def printed_utility(k: int, above: np.ndarray) -> float:
    """-|h - k/2|, the best over projections, as C.0.1 and line 15 have it."""
    return float(-np.abs(above - k / 2).min())


def test_the_printed_maximum_selects_uniformly_where_the_minimum_finds_the_middle() -> None:
    draw = np.random.default_rng(3)
    middle, aside = draw.integers(-30, 30, (4, 64)), 450 + draw.integers(0, 20, (76, 64))
    rows, around = (
        part.astype(np.int16) for part in (np.concatenate([middle, aside]), draw.integers(-400, 400, (20, 64)))
    )
    directions = draw.integers(-500, 500, (60, 64), dtype=np.int16)
    public = replace(
        candidates([(0, 1), (1, 0)]), rows=rows, centres=rows[:2], projections=directions, samples=rows[:0],
        names=tuple(map(str, range(80))),
        clusters=np.zeros(80, dtype=int),
    )  # fmt: skip
    found = {
        name: DeepCandidate.of(public, epsilon=10.0, utility=name).probabilities(around)[:4].sum()
        for name in ("depth", "published")
    }
    assert found["published"] < 0.1 < 0.6 < found["depth"]


def test_the_utilities_greatest_value_is_minus_a_half_for_odd_k() -> None:
    assert max(printed_utility(3, np.array([h])) for h in range(4)) == -0.5
    assert max(printed_utility(4, np.array([h])) for h in range(5)) == 0.0


def test_the_least_distance_from_half_is_the_best_projection_and_not_the_worst() -> None:
    above, k = np.array([0, 2]), 4  # outside all sentences on one projection, in the middle on the other
    assert printed_utility(k, above) == 0.0
    assert min(min(int(h), k - int(h)) for h in above) == 0  # the depth


def test_ties_break_the_printed_sum_of_the_two_halves() -> None:
    above, below = counts(np.array([1, 2, 2, 5]), np.array([2, 3]))
    assert (above + below).tolist() == [6, 4]  # 4 sentences: "P1 + P2 = 1" holds for the second candidate alone


def test_twelve_candidates_are_enough_where_table_3_1_prints_25() -> None:
    exponential = {"epsilon": 6.0, "candidates": 5000, "lead": 3.0, "selection": "exponential"}
    assert good_probability(good=25, **exponential) > 0.97
    assert fewest_good(sure=0.95, law=good_probability, **exponential) == 12
    others = [(3.0, 55, 5.0, 0.9526), (10.0, 5, 2.0, 0.9566), (23.0, 1, 1.0, 0.9518)]
    for epsilon, good, lead, chance in others:
        reached = good_probability(epsilon=epsilon, candidates=5000, good=good, lead=lead, selection="exponential")
        assert round(reached, 4) == chance


def test_the_random_guess_drawn_beside_macro_f1_is_an_accuracy() -> None:
    accuracy, macro_f1 = random_guess(["a"] * 90 + ["b"] * 10)
    assert math.isclose(accuracy, 0.82) and math.isclose(macro_f1, 0.5)


def test_minimum_and_maximum_agree_on_one_projection_up_to_the_order_of_candidates() -> None:
    public = replace(SETS["uneven"], projections=SETS["uneven"].projections[:1])
    rows = SENTENCES[[1, 4, 6, 9, 11]]
    least, best = (UTILITIES[name].of(public).scores(rows) for name in ("depth", "published"))
    assert (np.argsort(least, kind="stable") == np.argsort(best, kind="stable")).all()

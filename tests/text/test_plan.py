"""The planner against the laws of the selection rules."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.core.errors import UnsupportedError
from dovetail.text.plan import drawn_probability, fewest_good, good_probability, least_epsilon
from dovetail.text.rules import SELECTIONS
from dovetail.text.selection.integer_budget import IntegerBudget


@pytest.mark.parametrize("selection", SELECTIONS)
def test_the_plan_is_the_law_of_the_rule(selection: str) -> None:
    budget = IntegerBudget.of(6.0)
    levels = budget.levels(np.array([3] * 4 + [0] * 96), 2)
    law = SELECTIONS[selection]().probabilities(levels, budget)[:4].sum()
    lead = 2 * int(levels[-1]) * np.log1p(1 / budget.base) / 6.0  # on the grid, a little under 3
    planned = good_probability(epsilon=6.0, candidates=100, good=4, lead=lead, selection=selection)
    assert planned == pytest.approx(law, abs=1e-6)


def test_both_directions_agree_and_one_less_is_too_little() -> None:
    given = {"candidates": 2000, "lead": 4.0, "selection": "permute-and-flip"}
    epsilon = least_epsilon(good=20, sure=0.9, **given)
    assert fewest_good(epsilon=epsilon, sure=0.9, **given) == 20
    assert (
        good_probability(epsilon=epsilon, good=19, **given)
        < 0.9
        <= good_probability(epsilon=epsilon, good=20, **given)
    )


def test_without_a_lead_no_epsilon_is_enough() -> None:
    with pytest.raises(UnsupportedError, match="No epsilon up to 700"):
        least_epsilon(candidates=100, good=5, lead=0, sure=0.9)


@pytest.mark.parametrize("selection", SELECTIONS)
def test_what_is_planned_for_whole_numbers_is_the_law_by_which_they_are_drawn(selection: str) -> None:
    budget = IntegerBudget.of(3.0)
    levels = budget.levels(np.array([3] * 2 + [0] * 8), 2)  # a lead of 3 where one sentence moves scores by 2 apart
    law = SELECTIONS[selection]().probabilities(levels, budget)
    planned = drawn_probability(epsilon=3.0, candidates=10, good=2, lead=3.0, selection=selection)
    assert planned == pytest.approx(float(law[:2].sum()), rel=1e-9)

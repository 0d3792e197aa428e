"""The planner against the laws of the selection rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dovetail.core.errors import UnsupportedError
from dovetail.text.plan import Law, drawn_probability, fewest_good, good_probability, least_epsilon
from dovetail.text.sampler import IntegerBudget
from dovetail.text.utilities import SELECTIONS


@pytest.mark.parametrize("selection", SELECTIONS)
def test_the_plan_is_the_law_of_the_rule(selection: str) -> None:
    budget = IntegerBudget.of(6.0)
    levels = budget.levels(np.array([3] * 4 + [0] * 96), 2)
    law = SELECTIONS[selection]().probabilities(levels, budget)[:4].sum()
    lead = 2 * int(levels[-1]) * np.log1p(1 / budget.base) / 6.0  # on the grid, a little under 3
    planned = good_probability(epsilon=6.0, candidates=100, good=4, lead=lead, selection=selection)
    assert planned == pytest.approx(law, abs=1e-6)


@pytest.mark.parametrize("law", [drawn_probability, good_probability])
@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize(("good", "lead", "sure"), [(20, 4.0, 0.9), (1, 40.0, 0.95), (300, 0.7, 0.6), (7, 1.0, 0.99)])
def test_the_plan_reaches_the_wanted_probability_and_one_less_is_too_little(
    good: int, lead: float, sure: float, selection: str, law: Law
) -> None:
    given: dict[str, Any] = {"candidates": 2000, "lead": lead, "selection": selection}
    epsilon = least_epsilon(good=good, sure=sure, law=law, **given)
    assert epsilon == float(f"{epsilon:.6g}"), "what is printed is what was solved"
    assert law(epsilon=epsilon, good=good, **given) >= sure
    assert good_probability(epsilon=epsilon / 1.04, good=good, **given) < sure, "and hardly more than needed"
    b = fewest_good(epsilon=epsilon, sure=sure, law=law, **given)
    assert b <= good and law(epsilon=epsilon, good=b, **given) >= sure
    assert b == 1 or law(epsilon=epsilon, good=b - 1, **given) < sure


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


def test_the_largest_lead_is_planned_too() -> None:
    asked: dict[str, Any] = {"epsilon": 3.0, "candidates": 5000, "good": 1}
    assert drawn_probability(**asked, lead=1e308) == pytest.approx(1.0, rel=1e-12)


def test_the_page_says_how_many_candidates_the_drawn_law_and_the_papers_rule_ask_for() -> None:
    given: dict[str, Any] = {
        "candidates": 5000,
        "lead": 5.0,
        "epsilon": 3.0,
        "sure": 0.95,
        "selection": "exponential",
    }
    paper = fewest_good(law=good_probability, **given)
    ours = fewest_good(law=drawn_probability, **{**given, "selection": "permute-and-flip"})
    page = (Path(__file__).parents[2] / "docs/text.md").read_text().replace("\n", " ")
    assert f"{ours} good ones of 5,000 where the paper's rule in real numbers asks for {paper}" in page

"""Whatever is typed into a public function of planning: a plan, or one clear refusal."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.account.test_strange_input import STRANGE, put
from tests.tiers import EXHAUST

import dovetail as dt
from dovetail.account import dummies_for_rounds
from dovetail.core.errors import DovetailError
from dovetail.plan import compare_mechanisms
from dovetail.plan.dummies import plan_mean_with_dummies, plan_trusting, plan_with_dummies, plan_with_user_dummies

SHARES: dict[str, Any] = {"n": 300, "k": 3, "delta": 1e-3, "epsilon": 1.0, "error": None}
MEAN: dict[str, Any] = {"n": 300, "lower": 0.0, "upper": 1.0, "grid": None, "delta": 1e-3, "epsilon": 1.0}

CALLS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (
        dt.plan_collection,
        {"question": "frequency", "n": 300, "k": 3, "epsilon0": 1.0, "randomizer": "krr", "shares": "any"},
    ),
    (
        dt.plan_collection,
        {"question": "frequency", "n": 300, "k": 3, "epsilon": 1.0, "honest": 200, "randomizer": "krr"},
    ),
    (dt.plan_collection, {"question": "frequency", "n": 300, "k": 3, "error": 0.2, "groups": 2, "randomizer": "krr"}),
    (dt.plan_collection, {"question": "frequency", "k": 3, "epsilon0": 1.0, "error": 0.2, "randomizer": "krr"}),
    (
        dt.plan_collection,
        {"question": "mean", "epsilon0": 1.0, "smallest_group": 100, "randomizer": "laplace"}
        | MEAN
        | {"epsilon": None},
    ),
    (compare_mechanisms, {"n": 20, "k": 3, "error": 0.3, "delta": 1e-4, "honest": 10, "rng": None}),
    (plan_with_dummies, SHARES | {"dummies": "geometric", "rounds": 1}),
    (plan_with_user_dummies, SHARES | {"honest": 200}),
    (plan_mean_with_dummies, MEAN | {"trust": "shuffler", "error": None, "dummies": "geometric", "rounds": 1}),
    (plan_mean_with_dummies, MEAN | {"trust": "users", "error": None, "honest": 200}),
    (plan_trusting, {"trust": "shuffler", "question": "frequency", "n": 300, "k": 3, "epsilon": 1.0}),
    (dummies_for_rounds, {"k": 3, "epsilon": 1.0, "delta": 1e-3, "rounds": 1, "law": "geometric"}),
]


@pytest.mark.exhaust
@pytest.mark.parametrize(("call", "given"), CALLS, ids=lambda one: getattr(one, "__qualname__", ""))
def test_what_is_asked_well_is_planned(call: Callable[..., Any], given: dict[str, Any]) -> None:
    assert not isinstance(put(call, given), Exception)


@pytest.mark.parametrize(
    "strange", ["array", *(pytest.param(one, marks=EXHAUST) for one in STRANGE if one != "array")]
)
def test_what_is_strange_is_planned_or_refused_in_one_line(strange: str) -> None:
    refusals = 0
    for call, given in CALLS:
        for name in given:
            answer = put(call, {**given, name: STRANGE[strange]})
            refusals += isinstance(answer, DovetailError)
            assert not isinstance(answer, DovetailError) or "\n" not in str(answer)
    assert refusals


@pytest.mark.parametrize("error", [1.0, 1.7e308])
def test_dummies_are_not_planned_for_an_error_that_everything_keeps(error: float) -> None:
    for call in (plan_with_dummies, plan_with_user_dummies):
        with pytest.raises(DovetailError, match="below 1, because a share lies in a range of that width anyway"):
            call(**SHARES | {"error": error})
    with pytest.raises(DovetailError, match="below 1, because the mean lies in a range of that width anyway"):
        plan_mean_with_dummies(trust="shuffler", **MEAN, error=error)


def test_a_mean_in_the_widest_range_is_planned() -> None:
    plan = plan_mean_with_dummies(trust="shuffler", **MEAN | {"upper": 1e75}, dummies="geometric")
    assert plan.accuracy.population_error95 > 1e72

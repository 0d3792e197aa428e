"""The planner finds the member of the window mechanism that is best for so many people."""

import pytest
from tests.tiers import tiered

from dovetail.account.amplify import amplify
from dovetail.plan.planner import plan_collection

# docs/theory/accuracy.md, section A: the better of k-ary response and window; n, epsilon, RMSE of the worst case
TABLE = [
    (10**3, 0.1, 4.07e-2), (10**3, 0.5, 1.320e-2), (10**3, 1.0, 8.53e-3), (10**3, 2.0, 6.10e-3),
    (10**4, 0.1, 5.26e-3), (10**4, 0.5, 1.75e-3), (10**4, 1.0, 1.13e-3), (10**4, 2.0, 8.30e-4),
    (10**5, 0.1, 7.07e-4), (10**5, 0.5, 2.37e-4), (10**5, 1.0, 1.58e-4), (10**5, 2.0, 1.17e-4),
    (10**6, 0.1, 9.49e-5), (10**6, 0.5, 3.35e-5), (10**6, 1.0, 2.25e-5), (10**6, 2.0, 1.69e-5),
]  # fmt: skip


@pytest.mark.exhaust
@pytest.mark.parametrize(("n", "epsilon", "rmse"), tiered(TABLE, lambda row: row[:2] == (10**4, 1.0)))
def test_planned_errors_are_those_of_the_theory(n: int, epsilon: float, rmse: float) -> None:
    asked = {"n": n, "lower": 0.0, "upper": 1.0, "epsilon": epsilon, "delta": 1e-6}
    plan = plan_collection(question="mean", **asked, randomizer="window")
    assert rmse * 0.98 <= plan.standard_error <= rmse * 1.005
    assert amplify(plan.randomizer, n=n, delta=1e-6).epsilon == plan.epsilon <= epsilon


@pytest.mark.exhaust
@pytest.mark.parametrize("n", [10**3, 10**5])
def test_it_is_recommended_for_a_mean(n: int) -> None:
    plan = plan_collection(question="mean", n=n, lower=0.0, upper=1.0, epsilon=1.0, delta=1e-6)
    assert plan.randomizer.name == "window"
    assert all(one.error95 is None or one.error95 > 1.3 * plan.error95 for one in plan.alternatives)


@pytest.mark.exhaust
def test_whole_numbers_keep_their_grid() -> None:
    plan = plan_collection(question="mean", n=10**5, lower=0.0, upper=40.0, epsilon=1.0, delta=1e-6, grid=1.0)
    assert (plan.randomizer.name, plan.randomizer.steps, plan.randomizer.width) == ("window", 40, 4)

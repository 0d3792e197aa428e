"""How many people a question needs, and what the shuffle of a plan makes of its guarantee."""

import subprocess
import sys
from typing import Any

import pytest
from tests.tiers import EXHAUST

import dovetail as dt
from dovetail.account.amplify import amplify
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.plan.planner import CollectionPlan, plan_collection
from dovetail.plan.requirements import check_shuffle, name_of_shuffle
from dovetail.plan.search import default_delta, honest_people, smallest_group_of

SHARE: dict[str, Any] = {"question": "frequency", "k": 4, "randomizer": "krr"}


def of(n: int, plan: CollectionPlan, **wishes: Any) -> CollectionPlan:
    """The same question to n people."""
    return plan_collection(**SHARE, n=n, delta=plan.requirements.delta, **wishes)


def test_the_least_n_meets_an_error_and_an_epsilon_and_fewer_people_do_not() -> None:
    plan = plan_collection(**SHARE, error=0.05, epsilon=0.3)
    n = plan.requirements.n
    assert n == plan.smallest_n and plan.error95 <= 0.05 and plan.epsilon <= 0.3
    with pytest.raises(ParameterError, match="cannot both hold"):
        of(int(0.998 * n) - 1, plan, error=0.05, epsilon=0.3)


@pytest.mark.parametrize(("wish", "value"), [("error", 0.05), pytest.param("epsilon", 0.2, marks=EXHAUST)])
def test_the_least_n_for_a_given_epsilon0_meets_the_other_wish(wish: str, value: float) -> None:
    plan = plan_collection(**SHARE, epsilon0=1.0, **{wish: value})
    reached = {"error": "error95", "epsilon": "epsilon"}[wish]
    n = plan.requirements.n
    assert plan.epsilon0 == pytest.approx(1.0, abs=1e-5) and getattr(plan, reached) <= value
    assert getattr(of(int(0.998 * n) - 1, plan, epsilon0=1.0), reached) > value


def test_delta_is_a_power_of_ten_below_a_hundredth_of_one_over_n() -> None:
    assert [default_delta(n) for n in (1, 10_000, 10_001, 10**6, 10**12)] == [1e-6, 1e-6, 1e-7, 1e-8, 1e-14]
    for n in (1, 7, 999, 10_000, 123_456, 10**9):
        assert default_delta(n) * n <= 0.01
    assert plan_collection(**SHARE, n=50_000, epsilon0=1.0).central.delta == 1e-7


def test_an_honest_share_counts_whole_people_and_at_least_one() -> None:
    assert [honest_people(0.25, n) for n in (1, 3, 7, 8, 1001)] == [1, 1, 1, 2, 250]
    assert honest_people(None, 9) == honest_people(9, 9) == 9
    with pytest.raises(ParameterError, match="`honest` must be"):
        honest_people(10, 9)


def test_the_smallest_of_equal_groups_counts_whole_people() -> None:
    assert [smallest_group_of(n, groups=4, smallest_group=None) for n in (8, 11, 103)] == [2, 2, 25]
    assert smallest_group_of(8, groups=None, smallest_group=3) == 3


@EXHAUST
def test_groups_are_promised_what_their_smallest_is() -> None:
    plan = plan_collection(**SHARE, n=6000, smallest_group=500, honest=5900, epsilon0=2.0, delta=1e-6)
    own = amplify(plan.randomizer, n=500, honest=400, delta=1e-6)
    assert plan.shuffler == "within_groups" and (plan.central.epsilon, plan.central.all) == (own.epsilon, own.all)
    assert plan.epsilon > plan_collection(**SHARE, n=6000, honest=5900, epsilon0=2.0, delta=1e-6).epsilon
    assert plan.in_smallest_group is not None and plan.in_smallest_group.error95 > 3.0 * plan.error95
    assert plan.vulnerability is not None and any("nothing leaves its group" in note for note in plan.notes)
    equal = plan_collection(**SHARE, n=6000, groups=12, honest=5900, epsilon0=2.0, delta=1e-6)
    assert equal.epsilon == plan.epsilon


@EXHAUST
def test_the_least_n_in_groups_meets_the_epsilon_in_each() -> None:
    plan = plan_collection(**SHARE, groups=7, honest=0.9, epsilon0=1.0, epsilon=0.5)
    n, asked = plan.requirements.n, plan.requirements
    assert asked.smallest_group == n // 7 and asked.honest == int(0.9 * n)
    trusted = n // 7 - (n - int(0.9 * n))
    assert plan.epsilon == amplify(plan.randomizer, n=n // 7, honest=trusted, delta=asked.delta).epsilon <= 0.5


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"error": 0.1}, "without `n`, give two of"),
        ({"error": 0.1, "epsilon": 1.0, "epsilon0": 1.0}, "without `n`, give two of"),
        ({"error": 0.1, "epsilon": -1.0}, "`epsilon` must be"),
        ({"error": 1.5, "epsilon": 1.0}, "`error` must be below 1"),
        ({"error": 1.5, "epsilon0": 1.0}, "`error` must be below 1"),
        ({"error": 0.1, "epsilon": 1.0, "smallest_group": 5}, "give the number of `groups`"),
        ({"error": 0.1, "epsilon": 1.0, "honest": 50}, "a share above 0 and below 1"),
        ({"error": 1e-9, "epsilon0": 1e-3}, "cannot both hold with any number of people"),
        ({"n": 100, "epsilon": 1.0, "groups": 51}, "`groups` must be"),
        ({"n": 100, "epsilon": 1.0, "smallest_group": 101}, "`smallest_group` must be"),
        ({"n": 100, "epsilon": 1.0, "groups": 3, "smallest_group": 10}, "not both"),
    ],
)
def test_what_cannot_be_planned_is_refused(wishes: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        plan_collection(**SHARE, **wishes)


def test_only_uniform_shuffles_are_planned_with() -> None:
    check_shuffle("uniform", grouped=False)
    check_shuffle("within_groups", grouped=True)
    for name, grouped in (("uniform", True), ("within_groups", False)):
        with pytest.raises(ParameterError):
            check_shuffle(name, grouped=grouped)
    for name in ("mallows", "identity"):
        with pytest.raises(UnsupportedError, match="no central guarantee to plan with"):
            check_shuffle(name, grouped=False)


def test_the_shuffles_that_are_planned_have_their_own_names() -> None:
    assert (name_of_shuffle(grouped=False), name_of_shuffle(grouped=True)) == (dt.Uniform.name, dt.WithinGroups.name)


@pytest.mark.exhaust
def test_planning_imports_no_shuffler() -> None:
    program = "import sys, dovetail.plan.planner; sys.exit('dovetail.shuffle.uniform' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0

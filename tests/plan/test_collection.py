"""Every direction of the planner agrees with every other, and what cannot be had is refused with a way out."""

import re
from typing import Any

import numpy as np
import pytest
from tests.tiers import EXHAUST, one_in

from dovetail.account.amplify import amplify
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.core.stages import RANDOMIZERS
from dovetail.leak.vulnerability import vulnerability
from dovetail.plan.planner import CollectionPlan, plan_collection, recommend_collection
from dovetail.plan.requirements import Requirements
from dovetail.plan.search import (
    calibrate,
    families,
    largest_epsilon0,
    predict_error95,
    recommend,
    select_families,
    smallest_epsilon0,
)
from dovetail.randomize.laplace import Laplace

SHARE: dict[str, Any] = {"question": "frequency", "k": 8, "n": 100_000, "delta": 1e-8}
MEAN: dict[str, Any] = {"question": "mean", "lower": 0.0, "upper": 10.0, "n": 50_000, "delta": 1e-7}
NAMES = [kind.name for kind in RANDOMIZERS if kind.question == "frequency"]


def requirements(**changes: Any) -> Requirements:
    """Checked requirements."""
    fields = {**SHARE, **changes}
    return Requirements(**{"honest": fields["n"], **fields})


# --- directions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", one_in(4, NAMES))
@pytest.mark.parametrize("k", [2, 16, 300])
def test_the_smallest_epsilon0_reaches_the_error_and_no_smaller_one_does(name: str, k: int) -> None:
    asked = requirements(k=k, n=10_000, error=0.05)
    family = next(family for family in families(asked) if family.name == name)
    found = smallest_epsilon0(family, asked, error=0.05, n=asked.n)
    assert found is not None and predict_error95(family, found, asked, n=asked.n) <= 0.05
    below = np.linspace(0.01, found * (1 - 3e-6), 800)  # Hadamard and hashing are not monotone: search everywhere
    assert min(predict_error95(family, epsilon0, asked, n=asked.n) for epsilon0 in below) > 0.05


@pytest.mark.exhaust
@pytest.mark.parametrize(
    "base",
    [SHARE, pytest.param({**SHARE, "k": 500, "shares": "flat"}, marks=EXHAUST), pytest.param(MEAN, marks=EXHAUST)],
    ids=["share", "flat", "mean"],
)
def test_the_directions_are_inverse_to_each_other(base: dict[str, Any]) -> None:
    first = plan_collection(**base, epsilon0=2.0)
    name = first.randomizer.name
    from_error = plan_collection(**base, error=first.error95, randomizer=name)
    assert from_error.epsilon0 == pytest.approx(2.0, rel=0.06)  # the mean's grid is chosen anew: a twentieth
    assert from_error.error95 <= first.error95
    from_epsilon = plan_collection(**base, epsilon=first.epsilon, randomizer=name)
    assert from_epsilon.epsilon <= first.epsilon
    # a kind that changes its shape with epsilon0 may amplify more after a break: then more is admissible
    assert 2.0 * (1 - 2e-3) <= from_epsilon.epsilon0 <= 2.0 * 1.05
    assert from_epsilon.error95 <= first.error95 * (1 + 2e-3)


@pytest.mark.exhaust
@pytest.mark.parametrize("base", [SHARE, pytest.param(MEAN, marks=EXHAUST)], ids=["share", "mean"])
def test_the_plan_says_what_the_stages_say(base: dict[str, Any]) -> None:
    plan = plan_collection(**base, epsilon0=1.5, honest=20_000)
    promised = amplify(plan.randomizer, n=base["n"], delta=base["delta"], honest=20_000)
    assert plan.central == promised and plan.epsilon == promised.honest and plan.epsilon0 == promised.colluding == 1.5
    assert plan.central.all <= plan.central.honest <= plan.central.colluding
    if base is SHARE:
        forced = plan_collection(**base, epsilon0=1.5, honest=20_000, randomizer="krr")
        seen = vulnerability(forced.randomizer, n=20_000)  # type: ignore[arg-type]
        assert forced.vulnerability == seen.randomized_shuffled
        assert forced.risk.gain == seen.randomized_shuffled / seen.prior > 1.0
    else:
        assert plan.vulnerability is None and plan.risk.gain is None and plan.risk.reason


def test_what_leaks_is_never_missing_without_a_reason() -> None:
    for name in NAMES:
        plan = plan_collection(**{**SHARE, "n": 1000, "k": 30, "delta": 0.0}, epsilon0=1.0, randomizer=name)
        assert (plan.vulnerability is None) == bool(plan.risk.reason)


def test_more_people_make_the_same_accuracy_cheaper() -> None:
    plans = [plan_collection(**{**SHARE, "n": n}, error=0.02, randomizer="krr") for n in (10_000, 40_000)]
    assert plans[0].epsilon > plans[1].epsilon


@pytest.mark.exhaust
def test_more_tolerance_and_more_honest_people_never_cost_accuracy() -> None:
    errors = [plan_collection(**SHARE, epsilon=e).error95 for e in (0.01, 0.1, 1.0)]
    assert errors == sorted(errors, reverse=True)
    honest = [plan_collection(**SHARE, epsilon=0.1, honest=h).error95 for h in (100, 1_000, 100_000)]
    assert honest == sorted(honest, reverse=True)


def test_an_epsilon_that_shuffling_cannot_help_is_the_local_one() -> None:
    assert plan_collection(**{**SHARE, "n": 1}, epsilon=1.0).epsilon0 >= 1.0
    assert plan_collection(**{**SHARE, "delta": 0.0}, epsilon=1.0).epsilon0 == 1.0


def test_a_kind_whose_epsilon0_is_bounded_stops_there() -> None:
    asked = requirements(n=10**9, epsilon=5.0)
    hashing = next(family for family in families(asked) if family.name == "local_hashing")
    assert largest_epsilon0(hashing, asked, epsilon=5.0, n=asked.n) == 11.0


# --- recommendation ------------------------------------------------------------------------------------------------


@EXHAUST
@pytest.mark.parametrize("k", [3, 100])
@pytest.mark.parametrize(
    "target",
    [
        *(pytest.param(wish, marks=EXHAUST) for wish in ({"error": 0.02}, {"epsilon": 0.3}, {"epsilon0": 2.0})),
        {"epsilon0": 2.0, "delta": 0.0},  # without a sum over all people: quick
    ],
)
def test_the_recommended_randomizer_is_the_best_to_within_a_twentieth(k: int, target: dict[str, Any]) -> None:
    asked = {**SHARE, "k": k, **target}
    plan = plan_collection(**asked)

    def cost(one: CollectionPlan) -> float:
        return one.epsilon if "error" in target else one.error95

    for name in NAMES:
        try:
            other = plan_collection(**asked, randomizer=name)
        except ParameterError:
            continue  # this kind cannot meet the requirements
        assert cost(plan) <= 1.05 * cost(other) * (1 + 1e-9)
        if cost(other) <= cost(plan) / 1.05:
            assert other.report_bits >= plan.report_bits
    assert {row.randomizer for row in plan.alternatives} == set(NAMES) - {plan.randomizer.name}


@pytest.mark.exhaust
@pytest.mark.parametrize(
    "wish",
    [
        pytest.param({"n": 2_000, "error": 0.05}, marks=EXHAUST),
        pytest.param({"n": 300, "epsilon": 2.0}, marks=EXHAUST),
        pytest.param({"n": 300, "error": 0.2, "epsilon": 1.0}, marks=EXHAUST),
        {"n": 300, "epsilon0": 3.0},
    ],
)
@pytest.mark.parametrize("k", [2, 7])
def test_ruling_out_kinds_early_changes_no_recommendation(k: int, wish: dict[str, Any]) -> None:
    found = recommend_collection(question="frequency", k=k, **wish)
    every = [calibrate(family, found.requirements) for family in select_families(found.requirements)]
    best = recommend([one for one in every if not isinstance(one, str)], found.requirements)
    assert (found.randomizer, found.epsilon) == (best.randomizer, best.epsilon)
    assert len(found.calibrated) < len(every)


@EXHAUST
def test_longer_reports_are_recommended_where_they_are_better() -> None:
    found = recommend_collection(question="frequency", k=4, n=300, epsilon=0.03)
    assert list(found.calibrated) == ["krr", "subset_selection"] and found.randomizer.name == "subset_selection"


def test_the_same_mechanism_with_longer_reports_is_not_searched_again() -> None:
    """Subset selection of one symbol is k-ary response."""
    found = recommend_collection(question="frequency", k=3, n=100_000, epsilon=1.879)
    assert list(found.calibrated) == ["krr"]


@pytest.mark.exhaust
def test_a_randomizer_that_takes_too_long_is_not_recommended_but_may_be_forced() -> None:
    big: dict[str, Any] = {"question": "frequency", "k": 100_000, "n": 10**9, "delta": 1e-11, "epsilon0": 3.0}
    plan = plan_collection(**big)
    burdened = {row.randomizer: row.reason for row in plan.alternatives if row.reason}
    assert {"unary", "local_hashing"} <= set(burdened) and "hashes" in burdened["local_hashing"]
    assert not {"krr", "hadamard"} & set(burdened)
    assert plan_collection(**big, randomizer="local_hashing").randomizer.name == "local_hashing"


def test_the_tradeoff_contains_the_answer_and_falls() -> None:
    plan = plan_collection(**SHARE, error=0.01, randomizer="krr")
    assert len(plan.tradeoff) == 12
    assert (plan.epsilon0, plan.epsilon) in [(step.epsilon0, step.epsilon) for step in plan.tradeoff]
    for column, sign in (("epsilon0", 1), ("epsilon", 1), ("error95", -1), ("vulnerability", 1), ("gain", 1)):
        values = np.array([getattr(step, column) for step in plan.tradeoff])
        assert np.all(np.diff(values) * sign > 0.0), column


@pytest.mark.exhaust
def test_the_grid_of_a_mean_is_fine_enough_and_can_be_chosen() -> None:
    plan = plan_collection(**{**MEAN, "n": 10**9}, epsilon0=3.0)
    assert plan.error95 <= 1.06 * 1.96 * plan.standard_error
    coarse = plan_collection(**MEAN, epsilon0=3.0, grid=2.5, randomizer="laplace")
    for one in (coarse, plan_collection(**MEAN, epsilon0=3.0, grid=2.5)):  # both round at random, without a bias
        assert plan_collection(**MEAN, epsilon0=3.0).error95 * 0.99 < one.error95 < 0.1


# --- people --------------------------------------------------------------------------------------------------------


@pytest.mark.exhaust
@pytest.mark.parametrize(
    ("base", "error", "epsilon"),
    [
        pytest.param(SHARE, 0.02, 0.5, marks=EXHAUST),
        ({**SHARE, "honest": 60_000}, 0.02, 0.5),
        pytest.param(MEAN, 0.2, 0.3, marks=EXHAUST),
    ],
    ids=["share", "some honest", "mean"],
)
def test_the_smallest_n_is_enough_and_a_hundredth_less_is_not(
    base: dict[str, Any], error: float, epsilon: float
) -> None:
    plan = plan_collection(**base, error=error, epsilon=epsilon)
    assert plan.smallest_n is not None and plan.epsilon <= epsilon and plan.error95 <= error
    part = base.get("honest", base["n"]) / base["n"]
    for n, possible in ((plan.smallest_n, True), (int(0.99 * plan.smallest_n), False)):
        there = {**base, "n": n, "honest": max(1, int(n * part + 1e-9)), "randomizer": plan.randomizer.name}
        if possible:
            plan_collection(**there, error=error, epsilon=epsilon)
        else:
            with pytest.raises(ParameterError, match="cannot both hold"):
                plan_collection(**there, error=error, epsilon=epsilon)


def test_one_person_is_enough_for_a_modest_wish() -> None:
    assert plan_collection(**SHARE, error=0.9, epsilon=20.0).smallest_n == 1


def test_a_single_wish_has_no_smallest_n_and_says_why() -> None:
    plan = plan_collection(**SHARE, error=0.02)
    assert plan.smallest_n is None and "both" in plan.smallest_n_reason


# --- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.exhaust
@pytest.mark.parametrize(
    "base",
    [
        pytest.param({**SHARE, "n": 1000}, marks=EXHAUST),
        pytest.param({**SHARE, "n": 1000, "honest": 500}, marks=EXHAUST),
        {**MEAN, "n": 100, "delta": 1e-4},
    ],
    ids=["share", "some honest", "mean"],
)
def test_each_way_out_of_a_contradiction_is_enough(base: dict[str, Any]) -> None:
    wanted: dict[str, Any] = {"error": 0.02 if "k" in base else 0.3, "epsilon": 1.0}
    with pytest.raises(ParameterError, match="cannot both hold") as caught:
        plan_collection(**base, **wanted)
    error, epsilon, people = re.search(
        r"an error of ([\d.]+), allow epsilon ([\d.]+) or collect ([\d,]+) people", str(caught.value)
    ).groups()  # type: ignore[union-attr]
    assert plan_collection(**base, error=float(error), epsilon=1.0).epsilon <= 1.0
    assert plan_collection(**base, error=wanted["error"], epsilon=float(epsilon)).error95 <= wanted["error"]
    n = int(people.replace(",", ""))
    honest = {"honest": n // 2} if "honest" in base else {}
    assert plan_collection(**{**base, "n": n, **honest}, **wanted).epsilon <= 1.0
    with pytest.raises(ParameterError):  # the ways are not needlessly long either
        plan_collection(**base, error=0.98 * float(error), epsilon=1.0)


@pytest.mark.exhaust
def test_an_error_that_no_noise_reaches_is_refused_with_the_least_one() -> None:
    with pytest.raises(ParameterError, match="must be at least") as caught:
        plan_collection(**{**SHARE, "n": 1000}, error=0.001, randomizer="unary")
    floor, people = re.search(r"error of ([\d.]+), or collect ([\d,]+)", str(caught.value)).groups()  # type: ignore[union-attr]
    assert plan_collection(**{**SHARE, "n": 1000}, error=float(floor), randomizer="unary").error95 <= float(floor)
    enough = {**SHARE, "n": int(people.replace(",", ""))}
    assert plan_collection(**enough, error=0.001, randomizer="unary").error95 <= 0.001


def test_more_people_make_up_for_a_coarse_grid() -> None:
    with pytest.raises(ParameterError, match=r"or collect [\d,]+ people"):
        plan_collection(**MEAN, error=0.01, grid=2.5, randomizer="laplace")


@pytest.mark.exhaust
def test_a_plan_names_the_grid_that_admits_the_least_epsilon() -> None:
    for error, steps in ((0.1, 32), (0.0015, 1024)):
        chosen = plan_collection(**MEAN, error=error, randomizer="laplace").randomizer
        assert isinstance(chosen, Laplace) and chosen.grid == 10.0 / steps


@pytest.mark.parametrize("name", ["epsilon0", "epsilon"])
@pytest.mark.parametrize("value", [[1.0, 2.0], (1.0,), np.array([1.0, 2.0]), {"a": 1.0}])
def test_personal_randomizers_are_refused_as_model_h(name: str, value: Any) -> None:
    with pytest.raises(UnsupportedError, match="model H"):
        plan_collection(**SHARE, **{name: value})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"question": "median"}, "`question` must be"),
        ({"k": 1}, "`k` must be"),
        ({"k": None}, "`k` must be"),
        ({"k": 2.5}, "`k` must be"),
        ({"n": 0}, "`n` must be"),
        ({"n": float("nan")}, "`n` must be"),
        ({"honest": 0}, "`honest` must be"),
        ({"honest": 100_001}, "`honest` must be"),
        ({"delta": 1.0}, "`delta` must be"),
        ({"delta": float("nan")}, "`delta` must be"),
        ({"delta": "1e-6"}, "`delta` must be"),
        ({"epsilon0": float("nan")}, "`epsilon0` must be"),
        ({"epsilon0": 0.0}, "`epsilon0` must be"),
        ({"epsilon0": True}, "`epsilon0` must be"),
        ({"epsilon0": 701.0}, "`epsilon0` must be"),
        ({"epsilon0": None, "epsilon": float("inf")}, "`epsilon` must be"),
        ({"epsilon0": None, "error": float("nan")}, "`error` must be"),
        ({"epsilon0": None, "error": 1.0}, "`error` must be below 1"),
        ({"epsilon0": None, "error": -0.1}, "`error` must be"),
        ({"epsilon0": None}, "none of them"),
        ({"error": 0.1}, "give one of"),
        ({"epsilon": 0.1}, "give one of"),
        ({"randomizer": "laplace"}, "`randomizer` must be one of"),
        ({"randomizer": "local_hashing", "epsilon0": 12.0}, "at most 11"),
        ({"shares": "some"}, "`shares` must be"),
        ({"lower": 0.0, "upper": 1.0}, "belong to the question mean"),
        ({"question": "mean"}, "belong to the question frequency"),
        ({"question": "mean", "k": None}, "`lower` must be"),
        ({"question": "mean", "k": None, "lower": 1.0, "upper": 1.0}, "`upper` must be above"),
        ({"question": "mean", "k": None, "lower": 2.0, "upper": float("inf")}, "`upper` must be"),
        ({"question": "mean", "k": None, "lower": 0.0, "upper": 1e300}, "`upper` must be above"),
        ({"question": "mean", "k": None, "lower": 0.0, "upper": 1.0, "grid": 0.3}, "`grid` must be"),
        ({"question": "mean", "k": None, "lower": 0.0, "upper": 5.0, "epsilon0": None, "error": 5.0}, "below 5"),
    ],
)
def test_bad_input_is_refused_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message) as caught:
        plan_collection(**{**SHARE, "epsilon0": 1.0, **changes})
    assert "\n" not in str(caught.value)


@EXHAUST
def test_what_should_be_known_is_noted() -> None:
    assert any("1/n" in note for note in plan_collection(**{**SHARE, "delta": 1e-4}, epsilon0=1.0).notes)
    assert any("lie" in note for note in plan_collection(**SHARE, epsilon0=1.0, honest=50_000).notes)
    tiny = plan_collection(**{**SHARE, "n": 10}, epsilon0=0.1).notes
    assert any("next to nothing" in note for note in tiny) and any("that of one report" in note for note in tiny)
    assert plan_collection(**SHARE, epsilon0=1.0).notes == ()
    assert any("counts on the honesty of all" in note for note in plan_collection(**SHARE, epsilon0=2.0).notes)
    assert plan_collection(**SHARE, epsilon0=2.0, honest=90_000).notes[:-1] == ()

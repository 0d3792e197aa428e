"""A plan's configuration is what `run` uses: equal numbers, from one source."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dovetail as dt
from dovetail.core.missing import Missing
from dovetail.job.plan_file import plan_toml, write_plan
from dovetail.plan.planner import plan_collection


def filled(text: str) -> str:
    """The plan's text with its blanks filled in."""
    text = text.replace('"FILL IN.csv"', '"table.csv"').replace('private = "FILL IN"', 'private = "answer"')
    text = text.replace('public = ["FILL IN"]', 'public = ["town"]').replace('labels = "FILL IN"', 'labels = "town"')
    for place, name in enumerate(("a", "b", "c"), start=1):
        text = text.replace(f'"FILL IN {place}"', f'"{name}"')
    assert '"FILL IN' not in text
    return text


@pytest.mark.exhaust
@pytest.mark.parametrize(
    "shuffled",
    [
        {},
        {"smallest_group": 100},
        pytest.param({"honest": 250}, marks=pytest.mark.exhaust),
        {"smallest_group": 100, "honest": 290},
    ],
)
def test_run_promises_what_the_plan_promised(shuffled: dict[str, Any], tmp_path: Path) -> None:
    plan = plan_collection(question="frequency", k=3, n=300, randomizer="krr", epsilon0=1.5, **shuffled)
    towns = [f"town {place % 3}" for place in range(300)]
    pl.DataFrame({"answer": ["a", "b", "c"] * 100, "town": towns}).write_csv(tmp_path / "table.csv")
    (tmp_path / "plan.toml").write_text(filled(plan_toml(plan)))
    report = dt.run(tmp_path / "plan.toml")
    found = report.evaluation
    assert not isinstance(found.central, Missing) and not isinstance(found.leakage, Missing)
    assert found.central.epsilon == plan.epsilon and found.central.delta == plan.central.delta
    assert found.local.epsilon == plan.epsilon0 and found.shuffler == plan.shuffler
    assert found.leakage.randomized_shuffled == plan.vulnerability


def test_run_estimates_a_mean_with_the_plans_error(tmp_path: Path) -> None:
    plan = plan_collection(question="mean", lower=0.0, upper=10.0, n=200, epsilon0=1.0)
    pl.DataFrame({"answer": [float(place % 11) for place in range(200)]}).write_csv(tmp_path / "table.csv")
    write_plan(plan, tmp_path / "plan.toml")
    place = tmp_path / "plan.toml"
    place.write_text(filled(place.read_text()))
    found = dt.run(place).evaluation
    assert not isinstance(found.central, Missing)
    assert (found.central.epsilon, found.local.epsilon) == (plan.epsilon, plan.epsilon0)


def test_blanks_that_are_left_are_named(tmp_path: Path) -> None:
    write_plan(
        plan_collection(question="frequency", k=3, n=300, randomizer="krr", epsilon0=1.5), tmp_path / "plan.toml"
    )
    with pytest.raises(dt.DovetailError, match=r"FILL IN\.csv"):
        dt.run(tmp_path / "plan.toml")

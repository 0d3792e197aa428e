"""A comparison says where a uniform shuffle is the better choice, and only there."""

from typing import Any

import pytest
from tests.job.surveys import rehearsal as config
from tests.job.surveys import survey

import dovetail as dt
from dovetail.report.sentences import uniform_instead
from dovetail.report.tables import comparison_table


def entry(name: str, *, alpha: float | str, error: float, central: float | None = None) -> dict[str, Any]:
    """One shuffler of a comparison, as far as the sentences go."""
    promised = {"value": None, "reason": "unproven"} if central is None else {"epsilon": central}
    learned = [{"by": "age", "error": error, "uniform": 0.5, "identity": 0.1, "groups": 4, "draws": 10}]
    return {"shuffler": name, "order": {"alpha": alpha}, "central": promised, "local": {"epsilon": 2.0},
            "learnability": learned}  # fmt: skip


UNIFORM = entry("uniform", alpha=0.0, error=0.5, central=0.169)
WITHIN = entry("within_groups", alpha=0.0, error=0.1, central=0.371)
CASES: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "an order near uniform": ([UNIFORM, entry("mallows", alpha=4.0, error=0.46)],
                              ["a uniform shuffle", "ε of 0.169"]),
    "a full order": ([UNIFORM, entry("mallows", alpha=4.0, error=0.3)], []),
    "an order no better than groups": ([UNIFORM, WITHIN, entry("mallows", alpha=4.0, error=0.1)],
                                       ["the shuffle within groups", "ε of 0.371"]),
    "an order that is free": ([UNIFORM, entry("mallows", alpha=0.0, error=0.5)], []),
    "an order that promises nothing": ([UNIFORM, entry("identity", alpha="inf", error=0.5)], []),
    "groups of one person": ([UNIFORM, {**WITHIN, "central": {"epsilon": 2.0}}, entry("rase", alpha=9.0, error=0.1)],
                             ["it promises α = 0."]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_better_choice_is_said_where_there_is_one(case: str) -> None:
    entries, parts = CASES[case]
    said = list(uniform_instead({"comparison": entries}))
    assert len(said) == bool(parts)
    assert all(part in line for line in said for part in parts), said


def test_without_a_comparison_the_chosen_shuffle_is_held_against_its_own_ends() -> None:
    (said,) = uniform_instead({**entry("noisy_sort", alpha=4.0, error=0.49), "comparison": []})
    assert said.startswith("Better than noisy sort: a uniform shuffle.") and "0.49 against 0.50" in said
    assert "and a central ε" in said


def compared(shuffle: dict[str, Any]) -> dict[str, Any]:
    """The document of a rehearsal."""
    return dt.run(
        config(shuffle=shuffle, estimate={"by": ["age"]}, attack={"trials": 2, "targets": 20}), table=survey()
    ).document()


@pytest.mark.exhaust
def test_a_comparison_of_order_private_shufflers_has_the_uniform_ones_beside_them() -> None:
    overlapping = {"shuffler": "mallows", "alpha": 0.01, "groups": {"labels": "age", "radius": 1.0}}
    document = compared({**overlapping, "compare": ["noisy_sort"]})
    assert comparison_table(document).columns == ("metric", "noisy sort", "uniform", "mallows (chosen)")
    assert any(note.startswith("Better than noisy sort: a uniform") for note in comparison_table(document).notes)
    disjoint = {"shuffler": "mallows", "alpha": 200.0, "groups": {"labels": "age"}, "compare": ["uniform"]}
    document = compared(disjoint)
    assert [one["shuffler"] for one in document["comparison"]] == ["uniform", "within_groups", "mallows"]
    assert any("the shuffle within groups" in note for note in comparison_table(document).notes)


@pytest.mark.exhaust
def test_a_comparison_without_a_promise_about_order_stays_as_it_was_asked_for() -> None:
    document = compared({"shuffler": "within_groups", "groups": {"labels": "age"}, "compare": ["identity"]})
    assert [one["shuffler"] for one in document["comparison"]] == ["identity", "within_groups"]

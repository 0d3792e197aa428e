"""A rehearsal runs the test for data-copying on its own released table, where it has rows to compare."""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import dovetail as dt
from dovetail.core.errors import UnsupportedError
from dovetail.job.collection import Collection
from dovetail.job.rehearse import rehearse
from dovetail.report import document
from dovetail.report.tables import section_notes


def rehearsed(epsilon: float, *, public: list[str], people: int = 600) -> Any:
    draw = np.random.default_rng(1)
    table = pl.DataFrame(
        {
            "answer": draw.choice(["no", "yes"], people),
            "age": draw.integers(20, 24, people),
            "weight": draw.normal(70, 10, people).round(4),
        }
    )
    asked = Collection.of(
        table, private="answer", public=public, categories=["no", "yes"], randomizer=dt.KRR(k=2, epsilon=epsilon),
        shuffler=(lambda rows: dt.WithinGroups(dt.Groups.from_labels(rows["age"].to_numpy()))) if public else None,
        rng=dt.simulation(1),
    )  # fmt: skip
    return rehearse(asked, rng=dt.simulation(2)).document()


@pytest.mark.exhaust
def test_public_columns_that_single_people_out_are_copied_and_the_report_says_so() -> None:
    found = rehearsed(1.0, public=["age", "weight"])
    copying = found["copying"]
    assert copying["released"] == 300 and copying["verdict"] == "copying"
    assert 0.35 < copying["copies"] < 0.65, "half of the answers agree by chance"
    assert copying["coincidences"] < 0.02
    note = section_notes(found)[0]
    assert "of 300 released rows" in note and "Public columns leave as they are" in note


@pytest.mark.exhaust
def test_columns_that_many_share_repeat_by_coincidence() -> None:
    copying = rehearsed(1.0, public=["age"])["copying"]
    assert copying["coincidences"] == copying["copies"] == 1.0 and copying["verdict"] == "nothing found"


@pytest.mark.parametrize(
    ("options", "why"), [({"public": []}, "no public columns"), ({"public": ["age"], "people": 60}, "80")]
)
def test_where_it_does_not_apply_the_reason_is_given(options: Any, why: str) -> None:
    found = rehearsed(1.0, **options)
    assert found["copying"]["value"] is None and why in found["copying"]["reason"]
    assert section_notes(found)[0] == f"Test for copied rows does not apply: {found['copying']['reason']}."


@pytest.mark.exhaust
def test_where_the_test_cannot_run_the_other_numbers_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rehearsed(1.0, public=["age"])
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    found = rehearsed(1.0, public=["age"])
    assert "needs sklearn" in found["copying"]["reason"] and "value" not in found["label_inference"]
    assert found["label_inference"] == whole["label_inference"]


def test_a_section_with_the_name_of_another_part_of_a_report_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "SECTIONS", SimpleNamespace(names=lambda: ("copying", "leakage")))
    with pytest.raises(UnsupportedError, match="section 'leakage' has the name of another part"):
        rehearsed(1.0, public=[], people=20)

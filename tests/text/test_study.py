"""The study of released abstracts: its toy runs, and what is recorded supports its claims."""

import json
from pathlib import Path

import polars as pl
import pytest
from studies.sentence_f1.run import main, verdict

HOME = Path(__file__).parents[2] / "studies" / "sentence_f1"


@pytest.mark.exhaust
def test_the_toy_leaves_a_table_and_its_verdict_holds(tmp_path: Path) -> None:
    assert all(verdict(main(False, tmp_path)).values())
    assert json.loads((tmp_path / "record.json").read_text())["size"] == "toy"


def test_the_recorded_results_are_full_and_support_the_claims() -> None:
    assert json.loads((HOME / "record.json").read_text())["size"] == "full"
    assert all(verdict(pl.read_csv(HOME / "results.csv")).values())

"""The studies of amplification run at toy size and say what their claims say."""

import json
from pathlib import Path
from typing import Any

import pytest
from studies.accuracy import run as accuracy
from studies.accuracy_tables import run as accuracy_tables
from studies.distribution import run as distribution
from studies.fig1a import run as fig1a
from studies.fig1b import run as fig1b
from studies.frequency import run as frequency
from studies.learned_shares import run as learned_shares
from studies.peers import run as peers
from studies.shuffler_noises import run as shuffler_noises
from studies.synthetic_table import run as synthetic_table
from studies.tightness import run as tightness
from studies.transposition import run as transposition


@pytest.mark.exhaust
@pytest.mark.parametrize(
    "study",
    [
        accuracy,
        accuracy_tables,
        distribution,
        fig1a,
        fig1b,
        frequency,
        learned_shares,
        peers,
        shuffler_noises,
        synthetic_table,
        tightness,
        transposition,
    ],
    ids=lambda study: str(study.__name__),
)
def test_a_study_leaves_a_table_and_its_verdict_holds(study: Any, tmp_path: Path) -> None:
    table = study.main(False, tmp_path)
    name = Path(study.__file__).parent.name
    assert (tmp_path / f"{name}.csv").exists()
    assert json.loads((tmp_path / "record.json").read_text())["size"] == "toy"
    assert (Path(study.__file__).parent / "README.md").read_text().startswith("# Claim: ")
    assert {claim: held for claim, held in study.verdict(table).items() if not held} == {}

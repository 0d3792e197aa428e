"""The studies of leakage run at toy size, say what their claims say, and would not say it of other numbers."""

import json
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from studies.decay import run as decay
from studies.leak_peers import run as leak_peers
from studies.leak_scale import run as leak_scale
from studies.qif_fig2 import run as fig2
from studies.qif_fig3 import run as fig3
from studies.qif_fig4 import run as fig4
from studies.qif_fig5 import run as fig5
from studies.qif_fig6 import run as fig6
from studies.qif_fig7 import run as fig7
from studies.qif_tables import run as tables

ALL = [fig2, fig3, fig4, fig5, fig6, fig7, tables, leak_scale, leak_peers, decay]
# a column that the verdict rests on, by the way it would be wrong
WRONG = [
    (fig2, "noise_and_shuffle"),
    (fig3, "vulnerability"),
    (fig4, "noise_and_shuffle"),
    (fig5, "noise_and_shuffle"),
    (fig6, "leakage_over_paper"),
    (fig7, "leakage_over_paper"),
    (tables, "chance"),
    (decay, "leakage"),
]


def folder(study: Any) -> Path:
    return Path(study.__file__).parent


def broken(study: Any, table: pl.DataFrame) -> dict[str, bool]:
    return {claim: held for claim, held in study.verdict(table).items() if not held}


@pytest.mark.exhaust
@pytest.mark.parametrize("study", ALL, ids=lambda study: folder(study).name)
def test_a_study_leaves_a_table_and_its_verdict_holds(study: Any, tmp_path: Path) -> None:
    table = study.main(False, tmp_path)
    written = pl.read_csv(tmp_path / f"{folder(study).name}.csv")
    assert written.columns == table.columns and len(written) == len(table)
    assert json.loads((tmp_path / "record.json").read_text())["size"] == "toy"
    assert (folder(study) / "README.md").read_text().startswith("# Claim: ")
    assert broken(study, table) == {}


@pytest.mark.parametrize("study", ALL, ids=lambda study: folder(study).name)
def test_the_full_table_that_is_kept_bears_the_claim(study: Any) -> None:
    assert json.loads((folder(study) / "record.json").read_text())["size"] == "full"
    assert broken(study, pl.read_csv(folder(study) / "results.csv", infer_schema_length=None)) == {}


@pytest.mark.parametrize(("study", "column"), WRONG, ids=lambda part: part if isinstance(part, str) else "")
def test_a_column_that_is_off_by_two_percent_breaks_a_claim(study: Any, column: str) -> None:
    table = pl.read_csv(folder(study) / "results.csv", infer_schema_length=None)
    assert broken(study, table.with_columns(pl.col(column) * 1.02)) != {}


@pytest.mark.exhaust
def test_without_libqif_the_comparison_says_so_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "qif", None)
    table = leak_peers.main(False, tmp_path)
    assert "libqif is left out. This needs qif" in capsys.readouterr().err
    assert set(table["way"]) == {"ours", "dense, numpy"}
    assert broken(leak_peers, table) == {}

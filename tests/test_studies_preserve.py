"""The studies of preservation run at toy size and say what their claims say."""

import doctest
import json
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from studies import record
from studies.fig7 import run as fig7
from studies.retained import run as retained
from studies.walkthrough import run as walkthrough

from dovetail.core.entropy import simulation
from dovetail.core.errors import MissingExtraError
from dovetail.report import pictures as figure

STUDIES = Path(__file__).parent.parent / "studies"


def expected(study: str) -> dict[str, Any]:
    return tomllib.loads((STUDIES / study / "expected.toml").read_text())


@pytest.mark.exhaust
@pytest.mark.parametrize("study", [walkthrough, fig7, retained], ids=lambda study: str(study.__name__))
def test_a_study_leaves_a_table_and_says_where_it_comes_from(study: Any, tmp_path: Path) -> None:
    table = study.main(False, tmp_path)
    facts = json.loads((tmp_path / "record.json").read_text())
    assert len(table) > 0 and facts["size"] == "toy" and {"seed", "commit", "machine"} <= facts.keys()
    csv = pl.read_csv(next(path for path in sorted(tmp_path.glob("*.csv")) if path.stem != "release"))
    assert csv.columns == table.columns and len(csv) == len(table)
    assert (Path(study.__file__).parent / "README.md").read_text().startswith("# Claim: ")


def test_the_walkthrough_is_a_doctest() -> None:
    result = doctest.testmod(walkthrough)
    assert (result.failed, result.attempted > 8) == (0, True)


def test_the_walkthrough_releases_what_the_paper_prints(tmp_path: Path) -> None:
    table, claim = walkthrough.main(False, tmp_path), expected("walkthrough")
    assert pl.read_csv(tmp_path / "release.csv")["report_released"].to_list() == claim["release"]
    for column in ("width", "sensitivity", "paper_sensitivity"):
        assert table[column].to_list() == claim[column]


@pytest.mark.exhaust
def test_preservation_agrees_with_the_published_claims_at_full_n() -> None:
    claim = expected("fig7")
    for number, row in enumerate(claim["row"]):
        found = fig7.cell(10_000, row["alpha"], row["width"], draws=200, rng=simulation(number))
        for cell, share, eta in zip(found, claim["shares"], row["eta"], strict=True):
            tolerance = claim["deviations"] * cell["deviation"] + claim["rounding"]
            assert cell["share"] == share and cell["eta"] == pytest.approx(eta, abs=tolerance)


@pytest.mark.exhaust
def test_preservation_rises_with_alpha_and_size_and_falls_with_width(tmp_path: Path) -> None:
    table = fig7.main(False, tmp_path)

    def mean(alpha: float, width: int, share: float) -> tuple[float, float]:
        row = table.row(
            by_predicate=(pl.col("alpha") == alpha) & (pl.col("width") == width) & (pl.col("share") == share),
            named=True,
        )
        return row["mean"], 7 * row["deviation"] / np.sqrt(200) + 1e-9  # one-sided 1e-9 each with a tenth of slack

    def rises(*cells: tuple[float, int, float]) -> None:
        for low, high in pairwise(cells):
            (a, da), (b, db) = mean(*low), mean(*high)
            assert a - da <= b + db
        (a, da), (b, db) = mean(*cells[0]), mean(*cells[-1])
        assert a + da < b - db

    for share in fig7.SHARES[:3]:
        rises(*((alpha, 30, share) for alpha in fig7.ALPHAS))
        rises(*((3.0, width, share) for width in reversed(fig7.WIDTHS)))
    for width in fig7.WIDTHS:
        rises(*((3.0, width, share) for share in fig7.SHARES))
    kept = table.filter(pl.col("mean") < pl.col("share") - 7 * pl.col("deviation") / np.sqrt(200) - 1e-9)
    assert kept.is_empty()  # nothing keeps less than a uniform shuffle


def test_wide_groups_keep_no_more_than_a_uniform_shuffle() -> None:
    for cell in fig7.cell(1000, 3.0, 300, draws=200, rng=simulation(3)):
        assert cell["mean"] == pytest.approx(cell["share"], abs=7 * cell["deviation"] / np.sqrt(200) + 0.01)


@pytest.mark.exhaust
def test_exact_sensitivity_and_better_mechanisms_keep_more_reports_at_home(tmp_path: Path) -> None:
    table = retained.main(False, tmp_path)
    for _, rows in table.group_by("n", "radius", "alpha"):
        kept = dict(zip(rows["mechanism"], rows["retained"], strict=True))
        slack = 0.01  # 40 discs of about 30 people, five draws
        assert kept["uniform"] <= kept["paper"] + slack
        assert kept["paper"] <= kept["mallows, breadth first"] + slack
        single = max(kept["mallows, breadth first"], kept["mallows, along x"])
        for name in ("mallows, components", "noisy sort", "planar laplace"):
            assert kept[name] >= single + slack


@pytest.mark.exhaust
@pytest.mark.parametrize("row", [row for row in expected("retained")["row"] if row["n"] == 10_000], ids=str)
def test_retained_shares_agree_with_the_published_table(row: dict[str, Any]) -> None:
    claim = expected("retained")
    cells = retained.case(row["n"], row["radius"], row["alpha"], claim["mechanisms"])
    found = {cell["mechanism"]: cell["retained"] for cell in cells}
    for name, share, spread in zip(claim["mechanisms"], row["retained"], row["spread"], strict=True):
        assert found[name] == pytest.approx(share, abs=claim["deviations"] * spread), name


def test_without_matplotlib_a_study_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(module: str, *, extra: str) -> None:
        raise MissingExtraError(f"pip install 'dovetail-privacy[{extra}]'")

    monkeypatch.setattr(figure, "require", missing)
    assert not record.picture(tmp_path / "figure.png", lambda pyplot: None)
    assert capsys.readouterr().err == "figure.png: no picture. pip install 'dovetail-privacy[studies]'\n"
    assert not (tmp_path / "figure.png").exists()

"""The studies of reference orders run at toy size and say what their claims say."""

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from studies.best_shuffler import run as best_shuffler
from studies.fig7 import run as fig7
from studies.fig9 import run as fig9
from studies.fig10 import run as fig10
from studies.learned_shares import run as learned_shares
from studies.order_gain import run as order_gain
from studies.order_plane import run as order_plane

STUDIES = Path(__file__).parent.parent / "studies"


def expected(study: str) -> dict[str, Any]:
    return tomllib.loads((STUDIES / study / "expected.toml").read_text())


@pytest.mark.exhaust
@pytest.mark.parametrize("study", [order_gain, fig9, fig10], ids=lambda study: str(study.__name__))
def test_a_study_leaves_a_table_and_says_where_it_comes_from(study: Any, tmp_path: Path) -> None:
    table = study.main(False, tmp_path)
    name = Path(study.__file__).parent.name
    assert json.loads((tmp_path / "record.json").read_text())["size"] == "toy"
    assert pl.read_csv(tmp_path / f"{name}.csv").columns == table.columns
    assert (Path(study.__file__).parent / "README.md").read_text().startswith("# Claim: ")


@pytest.mark.exhaust
def test_our_order_is_never_above_breadth_first_and_gains_on_every_family(tmp_path: Path) -> None:
    table = order_gain.main(False, tmp_path)
    assert (table["ratio"] <= 1.0).all() and (table["delta"] >= table["delta_bound"]).all()
    assert (table["width"] >= table["width_bound"]).all() and (table["gain_exact"] >= 1.0).all()
    ages = pl.read_csv(tmp_path / "ages.csv")
    assert ages["delta_atoms"][0] == 0 and (ages["delta_atoms"] < ages["delta_label"]).all()
    assert (ages["delta_label"] <= ages["delta_breadth_first"]).all()
    assert (ages["delta_breadth_first"] <= ages["delta_paper"]).all()


@pytest.mark.exhaust
@pytest.mark.parametrize("row", [row for row in expected("order_gain")["row"] if row["n"] == 1000], ids=str)
def test_sensitivities_at_a_thousand_people_are_near_the_best_that_was_found(row: dict[str, Any]) -> None:
    cases = [order_gain.case(row["family"], row["n"], seed) for seed in order_gain.SEEDS]
    target = row["breadth_first"] * row["ratio"] * (1 + expected("order_gain")["slack"])
    assert np.mean([case["delta"] for case in cases]) <= target
    assert all(case["ratio"] <= 1.0 for case in cases)


@pytest.mark.exhaust
def test_hidden_lines_are_found_by_cuthill_mckee_and_not_by_breadth_first(tmp_path: Path) -> None:
    table, claim = fig9.main(False, tmp_path), expected("fig9")
    for name in claim["exact"]["methods"]:
        assert (table.filter(pl.col("method") == name)["ratio"] == claim["exact"]["ratio"]).all()
    searched = table.filter(pl.col("method").str.starts_with("breadth first"))["ratio"]
    assert claim["breadth_first"]["least_worst"] < searched.max() <= claim["breadth_first"]["most"]
    wide = table.filter((pl.col("method") == "random") & (pl.col("hidden_width") > 0))
    assert (wide["width"] >= 0.9 * wide["n"]).all()
    assert (table.filter(pl.col("hidden_width") == 0)["width"] == 0).all()


@pytest.mark.exhaust
def test_random_geometric_groups_respect_the_bounds_and_the_order_of_methods(tmp_path: Path) -> None:
    table, claim = fig10.main(False, tmp_path), expected("fig10")
    assert (table["width"] >= table["width_bound"]).all()
    assert (table["width_bound"] >= table["largest_less_one"]).all()
    assert (table.filter(pl.col("radius") == 0)["width"] == 0).all()
    gap = fig10.gaps(table)
    assert (gap.filter(pl.col("place") == "line")["gap"] <= claim["line"]).all()
    assert gap.filter(pl.col("place") == "plane")["gap"].max() >= claim["plane"]  # type: ignore[operator]
    table = table.filter(pl.col("place") == "line")  # the paper's
    wide = table.pivot(on="order", index=["n", "radius", "seed"], values=["width", "delta"])
    wide = wide.filter(pl.col("delta_breadth first") > 0)
    assert (wide["delta_portfolio"] <= wide["delta_breadth first"]).all()
    assert (wide["delta_portfolio"] / wide["delta_breadth first"]).mean() <= claim["ratio"]
    narrow = wide.filter(pl.col("radius") <= 0.01)
    assert (narrow["width_random"] / narrow["width_breadth first"]).mean() >= claim["random"]


@pytest.mark.parametrize("study", [fig7, fig9, fig10, order_plane], ids=lambda study: str(study.__name__))
def test_the_results_in_the_checkout_are_full_and_bear_out_the_claims(study: Any) -> None:
    home = Path(study.__file__).parent
    facts, table = json.loads((home / "record.json").read_text()), pl.read_csv(home / "results.csv")
    assert facts["size"] == "full"
    assert all(study.verdict(table).values())
    assert f"]({home.name}.png)" in (home / "README.md").read_text() and (home / f"{home.name}.png").exists()


def test_breadth_first_search_is_more_than_the_printed_two_and_a_half_times_too_wide() -> None:
    worst = pl.read_csv(STUDIES / "fig9" / "results.csv").group_by("method").agg(pl.col("ratio").max())
    found = {name: round(ratio, 2) for name, ratio in worst.iter_rows()}
    assert (found["breadth first"], found["breadth first, meetings"]) == (3.32, 3.88) > (2.5, 2.5)


@pytest.mark.parametrize("study", [best_shuffler, learned_shares], ids=lambda study: str(study.__name__))
def test_recorded_tables_of_shufflers_and_attacks_are_full_and_bear_out_the_claims(study: Any) -> None:
    home = Path(study.__file__).parent
    facts, table = json.loads((home / "record.json").read_text()), pl.read_csv(home / "results.csv")
    assert facts["size"] == "full" and not facts["commit"].endswith("-dirty")
    assert all(study.verdict(table).values())
    assert (home / "README.md").read_text().startswith("# Claim: ")


def test_the_gap_to_the_bound_in_the_readme_is_the_one_that_was_measured() -> None:
    home = STUDIES / "fig10"
    readme, table = (home / "README.md").read_text(), pl.read_csv(home / "results.csv")
    gaps = fig10.gaps(table)
    for radius in fig10.RADII[2]:
        row = gaps.filter((pl.col("place") == "plane") & (pl.col("radius") == radius)).sort("n")["gap"].to_list()
        assert f"| {' | '.join(f'{gap:.2f}' for gap in row)} |" in readme
    line, plane = (gaps.filter(pl.col("place") == place)["largest_gap"].max() for place in ("line", "plane"))
    assert f"{line:.1f} on a line and {plane:.1f} in the plane" in readme.replace("\n", " ")


def test_the_share_kept_on_average_is_at_least_that_of_a_uniform_shuffle() -> None:
    table = pl.read_csv(STUDIES / "fig7" / "results.csv")
    # the mean of 2000 draws: 6.2 standard errors, false alarm below 1e-9 a row
    assert (table["mean"] > table["share"] - 6.2 * table["deviation"] / 2000**0.5).all()
    assert (table["eta"] < table["share"]).any()  # the smallest of 50 draws is below


@pytest.mark.exhaust
def test_orders_in_the_plane_hold_what_is_claimed_also_as_a_toy(tmp_path: Path) -> None:
    table = order_plane.main(False, tmp_path)
    claims = order_plane.verdict(table)
    assert all(held for claim, held in claims.items() if "curves" in claim or "bound" in claim)


def test_curves_through_the_plane_visit_every_cell_once_and_hilbert_s_goes_to_a_neighbour() -> None:
    side = 16
    cells = np.array([[x, y] for x in range(side) for y in range(side)])
    points = (cells + 0.5) / side
    for curve in (order_plane.hilbert, order_plane.morton):
        line = cells[np.argsort(curve(points))]
        steps = np.abs(np.diff(line, axis=0)).sum(axis=1)
        assert (steps == 1).all() if curve is order_plane.hilbert else steps.max() > 1


def test_the_orders_in_the_readme_are_those_that_were_measured() -> None:
    home = STUDIES / "order_plane"
    readme, table = (home / "README.md").read_text().replace("*", ""), pl.read_csv(home / "results.csv")
    for name in table["order"].unique():
        row = table.filter(order=name).sort("n")
        for width, delta in zip(row["width"], row["delta"], strict=True):
            assert f"| {width:,} | {delta:,} |" in readme, name

"""The studies of RASE run at toy size, and their checked-in results say what their READMEs say."""

import doctest
import json
import re
import tomllib
from collections import Counter
from functools import cache
from itertools import permutations
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import polars as pl
import pytest
from studies.mallows_shape import run as mallows_shape
from studies.rase_attack import run as rase_attack
from studies.rase_error import run as rase_error
from studies.rase_traces import run as rase_traces
from studies.table1 import loads
from studies.table1 import run as table1

from dovetail.core.entropy import simulation
from dovetail.core.errors import DataError
from dovetail.randomize.budget_laplace import BudgetLaplace
from dovetail.shuffle.sampling.mallows import inversions

STUDIES = (mallows_shape, rase_attack, rase_error, rase_traces, table1)
EACH = pytest.mark.parametrize("study", STUDIES, ids=lambda study: str(study.__name__))


def folder(study: Any) -> Path:
    return Path(study.__file__).parent


@cache
def toy(study: Any) -> tuple[pl.DataFrame, Path]:
    """The toy of a study, run once, and where it wrote."""
    if study is rase_attack:
        pytest.importorskip("sklearn")
    out = Path(mkdtemp())
    return study.main(False, out), out


def results(study: Any) -> pl.DataFrame:
    return pl.read_csv(folder(study) / "results.csv", infer_schema_length=None)


@pytest.mark.exhaust
@EACH
def test_a_study_leaves_a_table_and_says_where_it_comes_from(study: Any) -> None:
    table, out = toy(study)
    facts = json.loads((out / "record.json").read_text())
    assert len(table) > 0 and facts["size"] == "toy" and {"seed", "commit", "machine"} <= facts.keys()
    assert pl.read_csv(out / f"{folder(study).name}.csv", infer_schema_length=None).columns == table.columns
    assert results(study).columns == table.columns
    assert (folder(study) / "README.md").read_text().startswith("# Claim: ")


@pytest.mark.exhaust
@EACH
def test_a_toy_holds_what_is_claimed(study: Any) -> None:
    assert {claim for claim, held in study.verdict(toy(study)[0]).items() if not held} == set()


@EACH
def test_the_results_in_the_checkout_are_full_and_hold_what_is_claimed(study: Any) -> None:
    facts = json.loads((folder(study) / "record.json").read_text())
    assert facts["size"] == "full" and facts["seed"] == study.SEED
    table = results(study)
    assert {claim for claim, held in study.verdict(table).items() if not held} == set()


@EACH
def test_every_measured_figure_of_a_readme_is_in_its_results(study: Any) -> None:
    rows = re.findall(r"^\|(.*)\|(.*)\|(.*)\|$", (folder(study) / "README.md").read_text(), re.MULTILINE)
    measured = [cell for _, cell, _ in rows[rows.index((" paper says ", " we measure ", " why they differ ")) + 2 :]]
    assert measured
    table = results(study).select(pl.selectors.numeric()).to_numpy().astype(float).ravel()
    for text in re.findall(r"-?[\d,]*\.\d+ ?%?", " ".join(measured)):
        digits = text.rstrip(" %").replace(",", "")
        scale = 100.0 if text.endswith("%") else 1.0
        half = 0.5000001 * 10.0 ** -len(digits.partition(".")[2])
        assert (np.abs(scale * table - float(digits)) <= half).any(), text


def test_the_mallows_law_by_formula_is_the_one_by_enumeration() -> None:
    assert doctest.testmod(mallows_shape).failed == 0
    known = tomllib.loads((folder(mallows_shape) / "expected.toml").read_text())
    assert mallows_shape.mahonian(5) == known["permutations"]
    for n in (3, 5):
        counts = Counter(inversions(order) for order in permutations(range(n)))
        assert mallows_shape.mahonian(n) == [counts[d] for d in sorted(counts)]
        weights = {d: count * np.exp(-0.7 * d) for d, count in counts.items()}
        for row in mallows_shape.by_distance(n, 0.7):
            assert row["of_distance"] == pytest.approx(
                weights[int(row["distance"])] / sum(weights.values()), rel=1e-12
            )


def test_each_scheme_randomizes_and_shuffles_as_its_name_says() -> None:
    ways = rase_attack.schemes(64, loads.PAPER, epsilon=1.0, groups=4, alpha=30.0)
    assert ways["raw"][0] is None and not getattr(ways["Laplace-Fisher"][0], "clamps", False)
    assert all(getattr(ways[name][0], "clamps", False) for name in ("BR", "BR-Mallows", "RASE as published", "RASE"))
    stays = {name: float(np.diag(shuffler.mixing(np.arange(64))).mean()) for name, (_, shuffler) in ways.items()}
    assert stays["raw"] == stays["BR"] == 1.0
    assert stays["Laplace-Fisher"] == pytest.approx(1 / 64) and stays["RASE"] == pytest.approx(1 / 16)
    assert ways["BR-Mallows"][1].guarantee.alpha == ways["RASE as published"][1].guarantee.alpha == 30.0
    outside = rase_attack.schemes(64, loads.PAPER, epsilon=1.0, groups=16, alpha=30.0)["RASE as published"][1]
    assert outside.mixing(np.arange(64)) == pytest.approx(1 / 64)  # sensitivity 6 is below alpha: the uniform branch


@pytest.mark.exhaust
def test_the_bias_of_the_sample_mean_is_the_closed_form() -> None:
    (lower, upper), grid = rase_error.GRIDS["synthetic"]
    values = np.full(500, lower)
    rows = rase_error.cell("synthetic", values, 1.0, trials=200, rng=simulation(3))
    row = next(row for row in rows if row["estimator"] == "sample mean")
    rate = float(BudgetLaplace(lower, upper, 1.0, 0.5, 0.9, precision="published", grid=grid).rate)
    t, m = np.exp(-rate), round((upper - lower) / grid)
    bias = grid * t / (1.0 - t) * (1.0 - t**m) / (1.0 + t)
    assert abs(row["bias"] - bias) <= 6.2 * row["bias_error"]  # 1e-9
    assert abs(row["bias"]) > 6.2 * row["bias_error"]  # no bias at all would be noticed


def test_refit_comes_from_a_folder_or_a_file_and_is_absent_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DOVETAIL_DATA", raising=False)
    assert loads.refit("1h") is None and loads.sensor_months(4, "1h") is None
    rows = [f"2014-0{month}-0{day} {hour:02}:00:00,900,{month},{day}"
            for month in (4, 5) for day in (1, 2) for hour in range(24)]  # fmt: skip
    inside = tmp_path / "appliance_load"
    inside.mkdir()
    for place in (tmp_path / "CLEAN_House7.csv", inside / "REFIT_House7_2014-04.csv"):
        place.write_text("\n".join(["Time,Aggregate,Kettle,Oven", *rows]) + "\n")
    for named in (tmp_path, tmp_path / "CLEAN_House7.csv"):
        monkeypatch.setenv("DOVETAIL_DATA", str(named))
        fleet = loads.sensor_months(64, "1h")
        assert fleet is not None and fleet.watts.shape == (48, 4)  # two sensors in two months
        assert fleet.watts[[0, 47]].tolist() == [[4.0, 5.0, 1.0, 1.0], [4.0, 5.0, 2.0, 2.0]]
        assert fleet.hours[:25].tolist() == [*range(24), 0]
    with pytest.raises(DataError, match="25 days from 2014-10-01"):
        rase_traces.trace(25, real=True)

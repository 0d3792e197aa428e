"""Studies of data-copying: the recorded results carry their claims and are those of the README, and the toys run."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from studies.copying_digits import run as digits
from studies.copying_mmd import run as kernel_distance
from studies.copying_moons import run as moons
from studies.copying_vae import run as vae

from dovetail.core.errors import DataError, MissingExtraError


@pytest.mark.parametrize("study", [moons, digits, vae], ids=lambda study: str(study.__name__))
def test_the_recorded_results_carry_the_claim(study: Any) -> None:
    home = Path(study.__file__).parent
    assert (home / "README.md").read_text().startswith("# Claim: ")
    verdict = study.verdict(pl.read_csv(home / "results.csv"))
    assert len(verdict) >= 5 and all(verdict.values()), verdict


def test_every_cell_of_the_masked_moons_is_found_when_it_is_the_copied_one() -> None:
    table = pl.read_csv(Path(moons.__file__).parent / "results.csv").filter(pl.col("bandwidth") < 0)
    assert table.height == 5 and float(table["masked_p"].max()) < 1e-5  # type: ignore[arg-type]
    assert float(table["c_t"].min()) > 0 < float(table["z"].min())  # type: ignore[arg-type]


def test_the_kernel_distance_sees_no_copying_and_the_likeliest_bandwidth_is_where_c_t_changes_its_sign() -> None:
    table = pl.read_csv(Path(kernel_distance.__file__).parent / "results.csv")
    assert all(kernel_distance.verdict(table).values())
    assert not all(kernel_distance.verdict(table.with_columns(mmd_p=pl.lit(0.0))).values())
    ratio = pl.col("bandwidth") / pl.col("likeliest")
    assert (table.filter(ratio < 0.5)["c_t"] < 0).all() and (table.filter(ratio > 2.0)["c_t"] > 0).all()


@pytest.mark.exhaust
def test_the_toy_of_the_kernel_distance_runs_and_carries_the_claim(tmp_path: Path) -> None:
    assert all(kernel_distance.verdict(kernel_distance.main(False, tmp_path)).values())


@pytest.mark.exhaust
def test_the_toy_of_the_moons_runs_and_carries_the_claim(tmp_path: Path) -> None:
    assert all(moons.verdict(moons.main(False, tmp_path)).values())
    assert (tmp_path / "copying_moons.csv").exists() and (tmp_path / "record.json").exists()


@pytest.mark.exhaust
def test_the_autoencoders_run_as_a_toy_or_say_what_they_need(tmp_path: Path) -> None:
    if not list((Path(os.environ.get("DOVETAIL_DATA", "data")) / "mnist").glob("train-images*.gz")):
        with pytest.raises(DataError, match="--data or DOVETAIL_DATA"):
            vae.images()
    elif find_spec("torch") is None:
        with pytest.raises(MissingExtraError, match="pip install torch"):
            vae.main(False, tmp_path)
    else:
        assert all(vae.verdict(vae.main(False, tmp_path)).values())

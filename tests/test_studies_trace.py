"""Studies of location traces: the recorded results carry their claims, and the toys run."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from studies.trace_figure import run as figure
from studies.trace_taxi import run as taxi

from dovetail.trace.kernels.stationary import Matern32
from dovetail.trace.trace import Trace


@pytest.mark.parametrize("study", [figure, taxi], ids=lambda study: str(study.__name__))
def test_the_recorded_results_carry_the_claim(study: Any) -> None:
    home = Path(study.__file__).parent
    assert (home / "README.md").read_text().startswith("# Claim: ")
    verdict = study.verdict(pl.read_csv(home / "results.csv"))
    assert len(verdict) >= 3 and all(verdict.values()), verdict


def test_figure_5_2_has_the_published_widths_with_a_floor() -> None:
    table = pl.read_csv(Path(figure.__file__).parent / "results.csv").filter(pl.col("adversary") == 1.0)
    found = {
        (row["panel"], row["noise"]): row["width"]
        for row in table.iter_rows(named=True)
        if row["length"] in (figure.RBF_MEDIAN, figure.PERIODIC_MEDIAN)
    }
    # printed without a floor; one percent of it costs less than .4 % of the width
    for key, width in {
        ("a", "uniform"): 0.1227,
        ("a", "published"): 0.4204,
        ("a", "block"): 0.5442,
        ("a", "full"): 0.6771,
        ("e", "uniform"): 0.1169,
        ("e", "published"): 0.3356,
        ("e", "block"): 0.4947,
        ("e", "full"): 0.6064,
    }.items():
        assert found[key] == pytest.approx(width, rel=0.005), key
    assert found["c", "all"] == pytest.approx(2 * np.sqrt(0.02 / 1.02), rel=0.01)


def test_planar_laplace_noise_has_the_stated_error() -> None:
    drawn = taxi.planar_laplace(np.random.default_rng(3), (100, 2, 2000), 50.0)
    # r^2 has mean 6 b^2 and variance 84 b^4: six standard errors of 200,000 draws
    assert np.mean((drawn**2).sum(axis=1)) == pytest.approx(2500.0, abs=6 * np.sqrt(84) * 2500 / 6 / np.sqrt(200_000))


@pytest.mark.exhaust
def test_the_toys_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(figure.verdict(figure.main(False, tmp_path, "a")).values())
    rng, times = np.random.default_rng(4), np.arange(float(taxi.POINTS)) * taxi.STEP
    factor = 2000.0 * np.linalg.cholesky(Matern32(300.0).matrix(times) + 1e-6 * np.eye(len(times)))
    made = [Trace.of(str(i), times, factor @ rng.standard_normal((len(times), 2))) for i in range(50)]
    monkeypatch.setattr(taxi, "taxi_trips", lambda: made)
    assert len(taxi.main(False, tmp_path)) == len(taxi.ERRORS) * len(taxi.NOISES)

"""What times the engines runs every job that it times, on whatever the engines call their parts today."""

from pathlib import Path

import polars as pl
import pytest
from benchmarks.scale_speed import JOBS, measured, write

N = 2000
WRITTEN = {"run": "run/out/sanitized/*.parquet", "draw": "draw/*.parquet", "polars": "sorted.parquet"}


@pytest.mark.exhaust
@pytest.mark.parametrize("job", WRITTEN)
def test_a_timed_job_writes_every_report(job: str, tmp_path: Path) -> None:
    assert job in JOBS
    write(tmp_path / "in", N)
    _, total, start, peak = measured(job, tmp_path, 1)
    assert total >= start and peak > 0.0
    assert pl.scan_parquet(tmp_path / WRITTEN[job]).collect().height == N

"""Claim: `dovetail run` takes a million rows in under 20 s and 2 GB (k = 16, uniform shuffle), release and rehearsal.

The yardstick is reading and writing the same table with polars alone, in the same run.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

CONFIG = """schema_version = 1
mode = "{mode}"
{seed}
[data]
path = "table.csv"
person = "id"
private = "answer"
public = ["age"]
categories = [{categories}]
[randomize]
epsilon = 4.0
"""


def main() -> None:
    """Print seconds, peak memory and the ratio to plain input and output."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1_000_000)
    n = parser.parse_args().n
    names = [f"category-{code}" for code in range(16)]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        draw = np.random.default_rng(1)
        answers = pl.Series(names).gather(draw.integers(0, 16, n))
        table = pl.DataFrame({"id": np.arange(n), "answer": answers, "age": draw.integers(18, 90, n)})
        table.write_csv(place / "table.csv")
        begin = time.perf_counter()
        pl.read_csv(place / "table.csv").write_parquet(place / "copy.parquet")
        yardstick = time.perf_counter() - begin
        print(f"n = {n:,}; reading CSV and writing Parquet alone: {yardstick:.2f} s")
        for mode in ("release", "rehearsal"):
            quoted = ", ".join(json.dumps(name) for name in names)
            seed = "seed = 1" if mode == "rehearsal" else ""
            (place / f"{mode}.toml").write_text(CONFIG.format(mode=mode, seed=seed, categories=quoted))
            seconds, peak = timed(place, mode)
            print(f"{mode:10s} {seconds:6.2f} s  {seconds / yardstick:6.1f} x  peak {peak / 1e9:.2f} GB")


def timed(place: Path, mode: str) -> tuple[float, float]:
    """Seconds and peak resident bytes of one run in a process of its own."""
    command = [sys.executable, "-m", "dovetail", "run", f"{mode}.toml", "--out", mode, "--json"]
    environment = {**os.environ, "DOVETAIL_LEDGER": str(place / "ledger")}
    begin = time.perf_counter()
    process = subprocess.Popen(command, cwd=place, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{mode} failed")
    unit = 1 if sys.platform == "darwin" else 1024
    return time.perf_counter() - begin, resource.struct_rusage(usage).ru_maxrss * unit


if __name__ == "__main__":
    main()

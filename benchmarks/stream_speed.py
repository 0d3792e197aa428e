"""Claim: a fleet of 1,000 devices over 10,000 rounds is randomized, shuffled and estimated in under two minutes.

Every report is drawn from `system_entropy()` on a grid and every round is shuffled by itself. The yardsticks, in the
same run: NumPy's permutation of 1,000 once per round, and NumPy's Laplace noise for as many values, before each
fleet. Prints seconds, processor seconds, reports per processor second, ratios of processor time and peak memory, for
a fleet that is complete and for one with a tenth of its reports missing.

    python benchmarks/stream_speed.py
    python benchmarks/stream_speed.py --rounds 1000
"""

import argparse
import math
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import polars as pl

from dovetail.core.entropy import system_entropy
from dovetail.job.fleet import Fleet, FleetRun
from dovetail.randomize.laplace import Laplace
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.rase import RASE

SEED = 1
LOWER, UPPER, EPSILON = 0.0, 178.0, 1.0


def seconds(action: Callable[[], object]) -> tuple[float, float]:
    """Wall and processor time of one call: on a busy machine only the second compares."""
    wall, processor = perf_counter(), process_time()
    action()
    return perf_counter() - wall, process_time() - processor


def readings(n: int, rounds: int, missing: float) -> pl.DataFrame:
    """One row for each device and round, without a share of the rows."""
    draw = np.random.default_rng(SEED)
    keep = draw.random(n * rounds) >= missing
    return pl.DataFrame(
        {
            "device": np.tile(np.arange(n), rounds)[keep],
            "time": np.repeat(np.arange(1, rounds + 1), n)[keep],
            "value": draw.uniform(LOWER, UPPER, n * rounds)[keep],
        }
    )


def fleets(n: int) -> dict[str, RASE]:
    """Groups of 20, each shuffled by itself, and the published mechanism on the same groups."""
    own = Groups.from_labels(np.arange(n) // 20)
    published = RASE.fit(own, k=n // 20, alpha=30.0, refine="blocks", reference=range(n))
    return {"inside groups": RASE.fit(own), "published": published}


def streamed(shuffler: RASE, table: pl.DataFrame) -> FleetRun:
    """All rounds of the table."""
    laplace = Laplace(lower=LOWER, upper=UPPER, epsilon=EPSILON)
    run = FleetRun(Fleet(tuple(range(shuffler.n)), laplace, shuffler, cap=math.inf))
    run.submit_table(table, rng=system_entropy())
    return run


def provenance() -> str:
    """Commit, machine and seed, so that a figure can be traced."""
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    versions = f"Python {platform.python_version()}, numpy {np.__version__}"
    return f"commit {commit}, seed {SEED}, {platform.machine()} with {os.cpu_count()} cores, {versions}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=1000, help="a multiple of 20")
    parser.add_argument("--rounds", type=int, default=10_000)
    options = parser.parse_args()
    n, rounds = options.devices, options.rounds
    draw = np.random.default_rng(SEED)
    print(f"{provenance()}\n{n:,} devices, {rounds:,} rounds\n")
    print(f"{'':28}{'seconds':>9}{'processor':>11}{'reports/s':>12}{'to permutation':>16}{'to both':>9}")
    for name, shuffler in fleets(n).items():
        streamed(shuffler, readings(n, 2, 0.0))  # compiles kernels
        for missing in (0.0, 0.1):
            table = readings(n, rounds, missing)
            _, permutations = seconds(lambda: [draw.permutation(n) for _ in range(rounds)])
            _, noise = seconds(lambda: [draw.laplace(0.0, UPPER - LOWER, n) for _ in range(rounds)])
            wall, spent = seconds(lambda s=shuffler, t=table: streamed(s, t))  # type: ignore[misc]
            figures = f"{wall:9.1f}{spent:11.1f}{len(table) / spent:12,.0f}"
            ratios = f"{spent / permutations:16.1f}{spent / (permutations + noise):9.1f}"
            print(f"{f'{name}, {missing:.0%} missing':28}{figures}{ratios}", flush=True)
    unit = 1 if sys.platform == "darwin" else 1024
    print(f"\npeak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9:.2f} GB")


if __name__ == "__main__":
    main()

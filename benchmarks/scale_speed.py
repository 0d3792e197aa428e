"""Claim: keyed randomness costs at most 2.5 times the operating system's; a release in files, microseconds a row.

Yardsticks in the same run: the same randomizers with `system_entropy()`; polars' `sort(hash).sink_parquet`, which
protects nobody; with --spark, Spark's own `orderBy(rand())` write of the same rows. `draw` is the exchange alone,
`run` the whole job: census, fingerprint, prints for the ledger, tally and report; `frame` the same from a data frame,
whose rows Spark hands over one by one, where the tasks of `run` read the files themselves. Processor time of the
whole tree of processes; "to start" is what Python, Java and imports took before.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import polars as pl

from dovetail.core.entropy import KeyedEntropy
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.laplace import Laplace
from dovetail.randomize.local_hashing import LocalHashing
from dovetail.randomize.unary import Unary

NAMES = [f"category-{code}" for code in range(16)]
JOBS = ("run", "draw", "polars", "spark run", "spark frame", "spark draw", "spark orderBy(rand())")


def main() -> None:
    """Print every ratio; each job runs in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--spark", action="store_true", help="with Spark, which needs Java and the extra `spark`")
    parser.add_argument("--job", choices=JOBS, help=argparse.SUPPRESS)
    parser.add_argument("--place", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        print(json.dumps(measured(options.job, options.place, options.workers)))
        return
    randomizers(min(options.n, 2_000_000))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write(place / "in", options.n)
        print(f"\n{options.n:,} rows, {options.workers} workers")
        for job in JOBS if options.spark else JOBS[:3]:
            words = [sys.executable, "-W", "ignore", __file__, "--job", job, "--place", folder]
            done = subprocess.run(
                [*words, "--workers", str(options.workers)], capture_output=True, text=True, check=True
            )
            seconds, cpu, start, peak = json.loads(done.stdout.splitlines()[-1])
            rate = options.n / (cpu - start) / 1e6
            print(f"{job:22s} {seconds:7.1f} s wall {cpu:7.1f} s of a core, {start:4.1f} of them to start: "
                  f"{rate:5.2f} M rows/s and core, {peak / 1e9:.2f} GB in the largest process")  # fmt: skip


def randomizers(n: int) -> None:
    """Keyed against system entropy, each randomizer alone."""
    few = max(1000, n // 40)
    cases = [
        (KRR(k=16, epsilon=2.0), n), (KRR(k=100_000, epsilon=4.0), n), (Hadamard(k=1 << 20, epsilon=3.0), n),
        (Unary(k=64, epsilon=2.0), n // 4), (Unary(k=1024, epsilon=2.0), few), (LocalHashing(k=1000, epsilon=2.0), n),
        (Laplace(lower=0.0, upper=1.0, epsilon=2.0, grid=1 / 1024), n),
    ]  # fmt: skip
    for randomizer, rows in cases:
        numeric = isinstance(randomizer, Laplace)
        values = np.linspace(0, 1, rows) if numeric else np.arange(rows) % randomizer.k
        ids, key = np.random.default_rng(1).permutation(rows), os.urandom(32)
        device = best_of(lambda randomizer=randomizer, values=values: randomizer.randomize(values))
        keyed = best_of(
            lambda randomizer=randomizer, values=values, ids=ids, key=key: randomizer.randomize(
                values, KeyedEntropy(key, ids)
            )
        )
        name = f"{randomizer.name} {getattr(randomizer, 'k', '')}"
        print(f"{name:22s} {rows / device / 1e6:7.2f} M/s {rows / keyed / 1e6:7.2f} M/s keyed: {device / keyed:.0%}")


def best_of(work: Callable[[], object], repeats: int = 4) -> float:
    """Processor seconds of the fastest run after one warm-up."""
    times = []
    for _ in range(repeats + 1):
        begin = process_time()
        work()
        times.append(process_time() - begin)
    return min(times[1:])


def write(folder: Path, n: int) -> None:
    """The table in files of at most a million rows."""
    folder.mkdir()
    ids = np.random.default_rng(1).permutation(n)
    for place, own in enumerate(np.array_split(ids, max(1, n // 1_000_000))):
        codes = np.random.default_rng(place).integers(0, 16, own.size)
        pl.DataFrame({"id": own, "answer": pl.Series(NAMES).gather(codes)}).write_parquet(
            folder / f"{place:04d}.parquet"
        )


def measured(job: str, place: Path, workers: int) -> tuple[float, float, float, float]:
    """Seconds, processor seconds, those to start, and the largest process of one job."""
    engine, _, what = job.rpartition(" ") if job != "spark orderBy(rand())" else ("spark", "", "order")
    work = {"run": whole, "frame": whole, "draw": draw, "polars": in_polars, "order": in_spark}[what]
    done = work(place, job, engine == "spark", workers)
    return done


def whole(place: Path, job: str, spark: bool, workers: int) -> tuple[float, float, float, float]:
    """The job as users run it."""
    from dovetail.engine import run

    own = place / job.replace(" ", "-")
    config = {
        "schema_version": 1, "mode": "release",
        "data": {"path": str(place / "in"), "person": "id", "private": "answer", "categories": NAMES},
        "randomize": {"epsilon": 4.0},
    }  # fmt: skip
    session = started(workers) if spark else None
    start, begin = tree()[0], perf_counter()
    using = {"engine": "spark", "master": f"local[{workers}]"} if spark else {"workers": workers}
    if job == "spark frame":
        using = {"table": session.read.parquet(str(place / "in"))}
    run(config, out=own / "out", ledger=own / "ledger", **using)
    return (perf_counter() - begin, *reckoned(start))


def draw(place: Path, job: str, spark: bool, workers: int) -> tuple[float, float, float, float]:
    """The exchange alone, under a fresh secret."""
    from dovetail.core.progress import silent
    from dovetail.engine.job import Job
    from dovetail.engine.orders import Layout
    from dovetail.engine.passes import Batch, PackReports, UnpackReports
    from dovetail.engine.processes import Processes
    from dovetail.engine.release import batch_rows
    from dovetail.engine.rows import Secret
    from dovetail.engine.spark import Spark
    from dovetail.job.config import parse_config

    data = {"path": str(place / "in"), "person": "id", "private": "answer", "categories": NAMES}
    job_of = Job(
        parse_config({"schema_version": 1, "mode": "release", "data": data, "randomize": {"epsilon": 4.0}}), bytes(32)
    )
    engine = Spark(started(workers)) if spark else Processes(workers)
    source, secret = engine.source(job_of.config.data), Secret.fresh()
    (message,) = job_of.messages(source.n)
    layout, staging = Layout(source.n, job_of.partitions(source.n, message.size)), place / job.replace(" ", "-")
    staging.mkdir()
    batches = (Batch(message, layout, secret),)
    pack = PackReports(job_of.reader(numbers=True), secret, batches)
    unpack = UnpackReports(secret, batches, (), str(staging), "{}")
    start, begin = tree()[0], perf_counter()
    engine.exchange(
        source, pack, unpack, parts=layout.parts + 1, rows=batch_rows(message.size), staging=staging, progress=silent
    )
    return (perf_counter() - begin, *reckoned(start))


def in_polars(place: Path, job: str, spark: bool, workers: int) -> tuple[float, float, float, float]:
    """The rows in an order that a hash gives, which anybody can compute again."""
    start, begin = tree()[0], perf_counter()
    rows = pl.scan_parquet(place / "in").sort(pl.col("id").hash(7))
    rows.select("answer").sink_parquet(place / "sorted.parquet")
    return (perf_counter() - begin, *reckoned(start))


def in_spark(place: Path, job: str, spark: bool, workers: int) -> tuple[float, float, float, float]:
    """What people write: a random order of Spark's, which loses rows when a task is tried again."""
    from pyspark.sql.functions import rand

    session = started(workers)
    start, begin = tree()[0], perf_counter()
    session.read.parquet(str(place / "in")).orderBy(rand()).select("answer").write.parquet(str(place / "ordered"))
    return (perf_counter() - begin, *reckoned(start))


def started(workers: int) -> Any:
    """A session with as many cores."""
    from dovetail.engine.spark import start

    return start(f"local[{workers}]").session


def reckoned(start: float) -> tuple[float, float, float]:
    """Processor seconds, those before the work, and the largest process."""
    total, peak = tree()
    return total, start, peak


def tree() -> tuple[float, float]:
    """Processor seconds of this process and all below it, ended ones included, and the peak of the largest."""
    ticks = os.sysconf("SC_CLK_TCK")
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    peaks: dict[int, float] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            status = (folder / "status").read_text()
        except OSError:
            continue
        own = int(folder.name)
        parents[own], used[own] = int(fields[1]), sum(int(one) for one in fields[11:15]) / ticks
        high = [line for line in status.splitlines() if line.startswith("VmHWM")]
        peaks[own] = 1024.0 * int(high[0].split()[1]) if high else 0.0
    mine, wider = {os.getpid()}, True
    while wider:
        wider = {own for own, parent in parents.items() if parent in mine} - mine
        mine |= wider
    return sum(used[own] for own in mine), max(peaks[own] for own in mine)


if __name__ == "__main__":
    main()

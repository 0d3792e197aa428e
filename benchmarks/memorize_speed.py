"""Claim: 50,000 training rows of 64 numbers are tested against 10,000 fresh and 10,000 generated ones in seconds.

Run: python benchmarks/memorize_speed.py [--million]

Processor time of one core, and peak memory. Yardstick: one product of the matrices of all pairs, which any exact
search needs. Naive: the same row by row in numpy. Peer: faiss, exact and approximate with its recall, where
it is installed (`pip install faiss-cpu`). `--million`: a million training rows.
"""

import platform
import resource
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from time import process_time

import numpy as np

from dovetail.memorize.copying.data_copying import CopyingTest
from dovetail.memorize.copying.search import TrainingIndex


def seconds(run: Callable[[], object]) -> float:
    """Processor time of one call."""
    start = process_time()
    run()
    return process_time() - start


def products(train: np.ndarray, queries: np.ndarray) -> None:
    """Every inner product, in pieces that fit the memory, and nothing else."""
    for start in range(0, len(queries), 1000):
        queries[start : start + 1000] @ train.T


def naive(train: np.ndarray, queries: np.ndarray) -> None:
    """One query after another."""
    for query in queries:
        ((train - query) ** 2).sum(axis=1).argmin()


def approximate(train: np.ndarray, queries: np.ndarray, truth: np.ndarray) -> None:
    """faiss: exact and with an inverted file, 1 % of its lists searched."""
    import faiss

    faiss.omp_set_num_threads(1)
    t, q = train.astype(np.float32), queries.astype(np.float32)
    flat = faiss.IndexFlatL2(t.shape[1])
    flat.add(t)
    print(f"faiss, exact in single precision      {seconds(lambda: flat.search(q, 1)):8.2f} s")
    lists = int(4 * len(t) ** 0.5)
    fast = faiss.IndexIVFFlat(flat := faiss.IndexFlatL2(t.shape[1]), t.shape[1], lists)
    built = seconds(lambda: (fast.train(t), fast.add(t)))
    fast.nprobe = max(1, lists // 100)
    found: list[np.ndarray] = []
    took = seconds(lambda: found.append(fast.search(q, 1)[1][:, 0]))
    recall = float((found[0] == truth).mean())
    print(f"faiss, approximate: build {built:.2f} s, search {took:8.2f} s, recall {recall:.3f}")
    assert flat is not None


def main() -> None:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    million = "--million" in sys.argv
    rows, m = (1_000_000 if million else 50_000), 10_000
    print(f"commit {commit.stdout.strip()}, {platform.platform()}, {platform.machine()}, seed 0")
    print(f"{rows:,} x 64 training rows, {m:,} fresh and {m:,} generated ones")
    draw = np.random.default_rng(0).standard_normal
    train, fresh, generated = draw((rows, 64)), draw((m, 64)), draw((m, 64))
    base = seconds(lambda: products(train, generated))
    print(f"products of all pairs (yardstick)     {base:8.2f} s    1.0")
    index = TrainingIndex(train)
    found: list[np.ndarray] = []
    search = seconds(lambda: found.append(index.nearest(generated)[1]))
    print(f"nearest training rows, exact          {search:8.2f} s    {search / base:.1f}")
    slow = seconds(lambda: naive(train, generated[:20])) * m / 20
    print(f"the same row by row (from 20 rows)    {slow:8.2f} s    {slow / base:.1f}")
    if find_spec("faiss"):
        approximate(train, generated, found[0])
    else:
        print("faiss is not installed: skipped")
    prepared: list[CopyingTest] = []
    first = seconds(lambda: prepared.append(CopyingTest.prepare(train, fresh)))
    print(f"prepare: index, fresh rows, 50 cells  {first:8.2f} s    {first / base:.1f}")
    again = seconds(lambda: prepared[0].test(generated, baselines=False))
    print(f"test one generated sample             {again:8.2f} s    {again / base:.1f}")
    whole = seconds(lambda: prepared[0].test(generated))
    print(f"with all baselines                    {whole:8.2f} s    {whole / base:.1f}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory {memory:.2f} GiB; the training rows alone take {train.nbytes / 2**30:.2f}")


if __name__ == "__main__":
    main()

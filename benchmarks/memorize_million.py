"""Claim: from a million training rows on a further generated sample costs a fraction of exact search; recall is told.

Run: python benchmarks/memorize_million.py

Rows have 64 numbers that follow 8 directions with a little noise, as embeddings do, and for comparison 64 independent
Gaussians, where no list helps and the exact search is chosen. Processor time of one core. Yardstick: exact search,
which takes a little more than the bare products of all pairs (memorize_speed.py). Peer: the inverted file of faiss
with as many lists and probes, in single precision, where it is installed (`pip install faiss-cpu`).
"""

import platform
import resource
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from time import process_time

import numpy as np

from dovetail.core.entropy import simulation
from dovetail.memorize.copying.search import GeneratedSearch, TrainingIndex, choose_search

ROWS, QUERIES, WIDTH = 1_000_000, 5_000, 64


def quiet(done: int, total: int) -> None:
    """Show nothing."""


def seconds(run: Callable[[], object]) -> float:
    """Processor time of one call."""
    start = process_time()
    run()
    return process_time() - start


def embeddings(seed: int, count: int) -> np.ndarray:
    """Eight directions, the same for all, in 64 numbers."""
    axes = np.random.default_rng(0).standard_normal((8, WIDTH))
    draw = np.random.default_rng(seed)
    return draw.standard_normal((count, 8)) @ axes + 0.1 * draw.standard_normal((count, WIDTH))


def peer(train: np.ndarray, queries: np.ndarray, truth: np.ndarray, *, lists: int, probes: int) -> None:
    """The inverted file of faiss."""
    import faiss

    faiss.omp_set_num_threads(1)
    t, q = train.astype(np.float32), queries.astype(np.float32)
    fast = faiss.IndexIVFFlat(faiss.IndexFlatL2(WIDTH), WIDTH, lists)
    built = seconds(lambda: (fast.train(t[: 20 * lists]), fast.add(t)))
    fast.nprobe = probes
    found: list[np.ndarray] = []
    took = seconds(lambda: found.append(fast.search(q, 1)[1][:, 0]))
    print(f"  faiss, {probes} of {lists} lists: build {built:.1f} s, search {took:.2f} s, "
          f"recall {(found[0] == truth).mean():.4f}")  # fmt: skip


def measure(name: str, train: np.ndarray, fresh: np.ndarray, generated: np.ndarray) -> None:
    """One kind of data."""
    print(f"{name}: {ROWS:,} training rows, {QUERIES:,} fresh and {QUERIES:,} generated ones")
    index, found = TrainingIndex(train), []
    exact = seconds(lambda: found.append(index.nearest(fresh)))
    print(f"  exact search of one sample             {exact:8.2f} s   1.0")
    chosen: list[GeneratedSearch] = []
    built = seconds(
        lambda: chosen.append(choose_search(index, (fresh, found[0][0]), search="auto", seed=0, tick=quiet))
    )
    print(f"  lists, and how many have to be searched {built:7.2f} s   {built / exact:.2f}")
    if chosen[0].lists is None:
        print(f"  {chosen[0].why}")
        return
    notes = []
    took = seconds(lambda: notes.append(chosen[0].nearest(generated, simulation(1), tick=quiet)))
    alone = seconds(lambda: chosen[0].lists.nearest(generated, probes=chosen[0].probes))
    print(f"  approximate search of one sample       {alone:8.2f} s   {alone / exact:.3f}")
    print(f"  with recall measured on 1,000          {took:8.2f} s   {took / exact:.2f}")
    print(f"  {notes[0][2].sentence}")
    if find_spec("faiss"):
        truth = index.nearest(generated)[1]
        peer(train, generated, truth, lists=len(chosen[0].lists.centres), probes=chosen[0].probes)
    else:
        print("  faiss is not installed: skipped")


def main() -> None:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    print(f"commit {commit.stdout.strip()}, {platform.platform()}, {platform.machine()}, seed 0")
    measure("embeddings", embeddings(1, ROWS), embeddings(2, QUERIES), embeddings(3, QUERIES))
    draw = np.random.default_rng(0).standard_normal
    measure("independent Gaussians", draw((ROWS, WIDTH)), draw((QUERIES, WIDTH)), draw((QUERIES, WIDTH)))
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB, "
          f"of which the training rows {8 * ROWS * WIDTH / 2**30:.2f}")  # fmt: skip


if __name__ == "__main__":
    main()

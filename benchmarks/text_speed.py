"""Claim: scores for 5,000 candidates, ten sentences and 384 dimensions take milliseconds, a release tens of them.

Run: python benchmarks/text_speed.py

In the same run: a depth by comparing every sentence with every candidate on every projection, and shuffling 1e5
numbers as a physical yardstick.
"""

import platform
import subprocess
from collections.abc import Callable
from time import perf_counter

import numpy as np

from dovetail.core.entropy import system_entropy
from dovetail.text.candidates import Candidates
from dovetail.text.deep_candidate import DeepCandidate
from dovetail.text.encoders import Rows, inner_products, integer_row, stack

SEED, M, K, P, D = 1, 5_000, 10, 100, 384


def best(run: Callable[[], object], repeats: int = 5) -> float:
    """Smallest time of one call, milliseconds."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        run()
        times.append(1e3 * (perf_counter() - start))
    return min(times)


def rows(numbers: np.random.Generator, count: int) -> Rows:
    return stack((integer_row(one, unit_norm=True) for one in numbers.standard_normal((count, D))), D)


def naive_depth(candidates: Candidates, sentences: Rows) -> np.ndarray:
    """Every comparison (p, m, k) at once."""
    lines = inner_products(candidates.projections, sentences)[:, None, :]
    above = (lines >= candidates.projected[:, :, None]).sum(axis=2)
    below = (lines <= candidates.projected[:, :, None]).sum(axis=2)
    return np.minimum(above, below).min(axis=0)


def main() -> None:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    print(f"commit {commit.stdout.strip()}, {platform.platform()}, {platform.machine()}, seed {SEED}")
    numbers = np.random.default_rng(SEED)
    public = rows(numbers, M)
    candidates = Candidates(
        rows=public, names=tuple(map(str, range(M))), labels=None, half_range=6_000_000, approved=M // 15,
        centres=public[:20], clusters=np.arange(M) % 20, projections=rows(numbers, P), samples=public[:0],
        owners=np.zeros(0, dtype=np.int64),
    )  # fmt: skip
    sentences = rows(numbers, K)
    yardstick = best(lambda: numbers.permutation(100_000), 20)
    print(f"shuffling 1e5 numbers: {yardstick:.2f} ms")
    print(f"{'utility':>10} {'scores':>10} {'release':>10} {'exponential':>14} {'scores/yard':>12}")
    for name in ("clipped", "approval", "votes", "inner", "depth"):
        made = DeepCandidate.of(candidates, epsilon=3.0, utility=name)
        other = DeepCandidate.of(candidates, epsilon=3.0, utility=name, selection="exponential")
        made.release(sentences)
        scores, release, exponential = (
            best(lambda made=made: made.utility.scores(sentences)),
            best(lambda made=made: made.release(sentences)),
            best(lambda other=other: other.release(sentences)),
        )
        print(f"{name:>10} {scores:7.2f} ms {release:7.2f} ms {exponential:11.2f} ms {scores / yardstick:12.1f}")
    long = np.resize(sentences, (10_000, D))
    tiny = DeepCandidate.of(candidates, epsilon=1e-3, utility="clipped", selection="exponential")
    once = best(lambda: tiny.release(long), 1)
    levels = tiny.levels(long)
    drawing = best(lambda: tiny.selection.draw(levels, tiny.budget, system_entropy()))
    print(f"\n10,000 sentences, epsilon .001, exponential: {once:.0f} ms a release, {drawing:.2f} ms the draw alone")
    naive = best(lambda: naive_depth(candidates, sentences), 2)
    made = DeepCandidate.of(candidates, epsilon=3.0, utility="depth").utility
    ours = best(lambda: made.scores(sentences))
    same = np.array_equal(naive_depth(candidates, sentences), made.scores(sentences))
    print(f"\ndepth by all comparisons: {naive:.0f} ms, {naive / ours:.0f} times; equal: {same}")


if __name__ == "__main__":
    main()

"""Claim: exact shuffled vulnerability takes milliseconds to seconds, for every adversary that has an exact sum.

Uniform priors up to a billion people and a million values; other priors, known others, tries and distance at the
sizes of the table below.

Run: python benchmarks/leak_speed.py

In the same run: the multiset sum of the paper (equation 11) where it still ends, and shuffling 1e5 numbers as a
physical yardstick.
"""

import platform
import subprocess
from collections.abc import Callable, Iterator
from math import exp, lgamma, log
from time import perf_counter

import numpy as np

from dovetail.core.channel import KRRChannel
from dovetail.core.errors import UnsupportedError
from dovetail.leak.adversaries import top_t_leakage
from dovetail.leak.max_load import max_load_gap
from dovetail.leak.vulnerability import vulnerability

SEED = 1
CASES = [
    (10**9, 2), (10**3, 3), (10**5, 3), (10**6, 3), (10**7, 3), (10**4, 10), (10**6, 10), (10**8, 10), (10**9, 10),
    (10**6, 100), (10**8, 100), (10**6, 10**4), (10**6, 10**6), (10**9, 10**6), (10**9, 3),
]  # fmt: skip
# name, people, values, p, options of `vulnerability`
QUESTIONS = [
    ("prior .5 .5", 10**6, 2, 0.8, {"prior": [0.5, 0.5]}),
    ("prior .4 .4 .2", 10**6, 3, 0.6, {"prior": [0.4, 0.4, 0.2]}),
    ("prior .34 .33 .33", 10**6, 3, 0.6, {"prior": [0.34, 0.33, 0.33]}),
    ("prior, enumerated", 300, 4, 0.6, {"prior": [0.3, 0.3, 0.2, 0.2]}),
    ("2 tries", 10**6, 3, 0.8, {"tries": 2}),
    ("5 tries", 10**6, 100, 0.8, {"tries": 5}),
    ("distance", 10**6, 100, 0.8, {"gain": "distance"}),
    ("p below 1/k", 10**5, 4, 0.1, {}),
    ("knows all", 10**6, 2, 0.8, {"adversary": "strong", "known": (500_000, 499_999)}),
    ("knows some", 10**6, 2, 0.8, {"adversary": "strong", "known": (100_000, 300_000)}),
    ("knows all", 10**4, 3, 0.8, {"adversary": "strong", "known": (5_000, 3_000, 1_999)}),
    ("knows all", 100, 4, 0.8, {"adversary": "strong", "known": (25, 25, 25, 24)}),
    ("knows all", 50, 5, 0.8, {"adversary": "strong", "known": (10, 10, 10, 10, 9)}),
    ("all others alike", 10**6, 100, 0.8, {"adversary": "strong", "known": (10**6 - 1, *[0] * 99)}),
    ("any knowledge", 10**6, 100, 0.8, {"adversary": "strong"}),
    ("certified", 10**6, 100, 0.8, {"certified": True}),
]


def best(run: Callable[[], object], repeats: int) -> float:
    """Smallest time of one call, milliseconds; nothing is remembered from the call before."""
    times = []
    for _ in range(repeats):
        top_t_leakage.cache_clear()
        start = perf_counter()
        run()
        times.append(1e3 * (perf_counter() - start))
    return min(times)


def histograms(n: int, k: int) -> Iterator[tuple[int, ...]]:
    if k == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in histograms(n - first, k - 1):
            yield (first, *rest)


def multisets(n: int, k: int) -> float:
    """Equation 11 as printed: every histogram with its multinomial weight."""
    logs = [lgamma(i + 1) for i in range(n + 1)]
    top = logs[n] - n * log(k)
    return sum(max(z) * exp(top - sum(logs[i] for i in z)) for z in histograms(n, k)) - n / k


def main() -> None:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    print(f"commit {commit.stdout.strip()}, {platform.platform()}, {platform.machine()}, seed {SEED}")
    numbers = np.random.default_rng(SEED)
    yardstick = best(lambda: numbers.permutation(100_000), 20)
    print(f"shuffling 1e5 numbers: {yardstick:.2f} ms\n")
    print(f"{'n':>7} {'k':>7} {'V_S - 1/k':>22} {'error/leak':>10} {'time':>12} {'time/yard':>10}")
    for n, k in CASES:
        try:
            found = max_load_gap(n, k)
        except UnsupportedError as error:
            print(f"{n:7.0e} {k:7.0e} refused: {error}")
            continue
        time = best(lambda n=n, k=k: max_load_gap(n, k), 1 if n * 1.0 / k > 1e6 else 3)
        share = found.error_bound / found.value
        print(f"{n:7.0e} {k:7.0e} {found.value / n:22.15e} {share:10.1e} {time:9.2f} ms {time / yardstick:10.2f}")
    print(f"\n{'question':>18} {'n':>7} {'k':>4} {'leakage':>12} {'error bound':>12} {'time':>12}  method")
    for name, n, k, p, options in QUESTIONS:
        channel = KRRChannel.of(k, p)
        ask = lambda channel=channel, n=n, options=options: vulnerability(channel, n=n, **options)  # noqa: E731
        seen, time = ask(), best(ask, 3)
        leak = seen.randomized_shuffled_leakage
        print(f"{name:>18} {n:7.0e} {k:4} {leak:12.5e} {seen.error_bound:12.1e} {time:9.2f} ms  {seen.method}")
    for n, k in ((50, 5), (300, 3)):
        ours, theirs = best(lambda n=n, k=k: max_load_gap(n, k), 3), best(lambda n=n, k=k: multisets(n, k), 1)
        off = multisets(n, k) / max_load_gap(n, k).value - 1
        print(
            f"\nn = {n}, k = {k}: {ours:.2f} ms, multisets {theirs:.0f} ms, "
            f"{theirs / ours:.0f} times; off by {off:.0e}"
        )


if __name__ == "__main__":
    main()

"""Claim: a certified central epsilon takes milliseconds, whatever n is.

Run: python benchmarks/amplify_speed.py

Times the bracket of the stronger-clone pair (upper and lower end), the whole `amplify` (with attack) and the inverse;
in the same run a direct double sum over both binomials at n = 1e4, and shuffling 1e5 numbers as a physical yardstick.
"""

import platform
import subprocess
from collections.abc import Callable
from math import exp, sqrt
from time import perf_counter

import numpy as np
from scipy.stats import binom

from dovetail.account.amplify import amplify
from dovetail.account.calibrate import max_epsilon
from dovetail.account.clones import ClonePair

SEED, DELTA, REPEATS = 1, 1e-6, 5


def best(run: Callable[[], object], repeats: int = REPEATS) -> float:
    """Smallest time of one call, milliseconds."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        run()
        times.append(1e3 * (perf_counter() - start))
    return min(times)


def direct_sum(epsilon: float, epsilon0: float, n: int) -> float:
    """delta of the pair, term by term, eight standard deviations of C' and all of A."""
    p, factor = exp(epsilon0), exp(epsilon)
    q = 2 / (p + 1)
    reach = 8 * sqrt(n * q * (1 - q))
    total = 0.0
    for c in range(max(0, int((n - 1) * q - reach)), min(n - 1, int((n - 1) * q + reach)) + 1):
        m, a = c + 1, np.arange(c + 2)
        gap = (p - factor) * a + (1 - p * factor) * (m - a)
        total += binom.pmf(c, n - 1, q) * float(binom.pmf(a, m, 0.5) @ np.maximum(gap, 0.0)) * 2 / ((p + 1) * m)
    return total


def main() -> None:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    print(
        f"commit {commit.stdout.strip()}, {platform.platform()}, {platform.machine()}, seed {SEED}, delta {DELTA:g}"
    )
    numbers = np.random.default_rng(SEED)
    yardstick = best(lambda: numbers.permutation(100_000), 20)
    print(f"shuffling 1e5 numbers: {yardstick:.2f} ms\n")
    print("epsilon0       n      epsilon      gap    bracket    amplify    inverse  bracket/yardstick")
    for epsilon0 in (0.1, 1.0, 4.0, 8.0):
        for n in (10**3, 10**4, 10**5, 10**6, 10**9):
            pair = ClonePair(epsilon0, n)
            ends = pair.epsilon(DELTA)
            bracket = best(lambda pair=pair: pair.epsilon(DELTA))
            whole = best(lambda e=epsilon0, n=n: amplify(e, n=n, delta=DELTA))
            inverse = best(lambda e=ends.upper, n=n: max_epsilon(epsilon=e, n=n, delta=DELTA))
            print(
                f"{epsilon0:8g} {n:7.0e} {ends.upper:12.6g} {ends.gap:8.1e} {bracket:6.1f} ms {whole:6.1f} ms "
                f"{inverse:6.1f} ms {bracket / yardstick:12.1f}"
            )
    pair, epsilon = ClonePair(1.0, 10_000), ClonePair(1.0, 10_000).epsilon(DELTA).upper
    ours, direct = best(lambda: pair.delta(epsilon)), best(lambda: direct_sum(epsilon, 1.0, 10_000), 1)
    agree = direct_sum(epsilon, 1.0, 10_000) / pair.delta(epsilon).upper - 1
    print(f"\none delta at n = 1e4: {ours:.1f} ms, direct double sum {direct:.0f} ms, {direct / ours:.0f} times;")
    print(f"relative difference {agree:.1e}")


if __name__ == "__main__":
    main()

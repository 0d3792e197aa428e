"""Claim: a certified central epsilon, its floor, its inverse and whole curves take milliseconds, whatever n is.

Run: python benchmarks/amplify_speed.py

Times the bracket of the stronger-clone pair (upper and lower end), the same with the attack floor beside it, both
inverse questions and curves of 100 points. In the same run, beside it: a sum over every count of clones, a direct
double sum over both binomials, the published algorithm of Feldman, McMillan and Talwar (bisection over blocks of
`step` counts, transcribed here for the same pair, because their script is not on PyPI), the pair written out for
dp_accounting where that is installed, and shuffling 1e5 numbers as a physical yardstick. prv_accountant cannot take
such a pair.
"""

import platform
import subprocess
from collections.abc import Callable
from math import exp, floor, inf, sqrt
from time import perf_counter

import numpy as np
from scipy.stats import binom

from dovetail.account.amplify import curve
from dovetail.account.attack_lower_bound import attack_lower
from dovetail.account.calibrate import max_epsilon, min_people
from dovetail.account.clones import ClonePair

SEED, DELTA, REPEATS, POINTS = 1, 1e-6, 5, 100


def best(run: Callable[[], object], repeats: int = REPEATS) -> float:
    """Smallest time of one call, milliseconds."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        run()
        times.append(1e3 * (perf_counter() - start))
    return min(times)


def every_count(epsilon: float, epsilon0: float, n: int) -> float:
    """delta of the pair, all n counts of clones at once, with SciPy's binomials."""
    p, factor = exp(epsilon0), exp(epsilon)
    beta = (p * factor - 1) / ((p - 1) * (factor + 1))
    coins = np.arange(1, n + 1)
    k = np.floor(beta * coins) + 1
    excess = 0.5 * binom.sf(k - 2, coins - 1, 0.5) - beta * binom.sf(k - 1, coins, 0.5)
    return 2 * (p - 1) / (p + 1) * (1 + factor) * float(binom.pmf(coins - 1, n - 1, 2 / (p + 1)) @ excess)


def double_sum(epsilon: float, epsilon0: float, n: int) -> float:
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


def published(epsilon0: float, n: int, delta: float, *, step: int, iterations: int = 20) -> float:
    """Upper end by the published algorithm: bisection; blocks of `step` counts from the mean outwards, each charged
    with its smallest count; stops when the mass left is below delta and adds that mass."""
    p, q = exp(epsilon0), 2 / (exp(epsilon0) + 1)

    def charge(coins: int, factor: float) -> float:
        beta = (p * factor - 1) / ((p - 1) * (factor + 1))
        k = floor(beta * coins) + 1
        excess = 0.5 * binom.sf(k - 2, coins - 1, 0.5) - beta * binom.sf(k - 1, coins, 0.5)
        return float(2 * (p - 1) / (p + 1) * (1 + factor) * excess)

    def reached(epsilon: float) -> float:
        total, seen, mean, factor = 0.0, 0.0, round((n - 1) * q), exp(epsilon)
        for ring in range(n):
            for low in {mean + ring * step, mean - (ring + 1) * step}:
                mass = binom.cdf(low + step - 1, n - 1, q) - binom.cdf(low - 1, n - 1, q)
                seen += mass
                total += mass * charge(max(low, 0) + 1, factor) if mass > 0 else 0.0
            if 1 - seen < delta or total > delta:
                return total + 1 - seen
        return inf

    low, high = 0.0, epsilon0
    for _ in range(iterations):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if reached(middle) <= delta else (middle, high)
    return high


def accounted(epsilon0: float, n: int, delta: float) -> float:
    """The pair written out, outcome by outcome, for Google's dp_accounting."""
    from dp_accounting.pld.privacy_loss_distribution import from_two_probability_mass_functions

    p, q = exp(epsilon0), 2 / (exp(epsilon0) + 1)
    up, down = {}, {}
    for c in range(n):
        m, a = c + 1, np.arange(c + 2)
        shared = np.log(2 / ((p + 1) * m)) + binom.logpmf(c, n - 1, q) + binom.logpmf(a, m, 0.5)
        up |= {(m, i): value for i, value in enumerate(shared + np.log(p * a + m - a))}
        down |= {(m, i): value for i, value in enumerate(shared + np.log(a + p * (m - a)))}
    law = from_two_probability_mass_functions(down, up, value_discretization_interval=1e-4)
    return float(law.get_epsilon_for_delta(delta))


def table(yardstick: float) -> None:
    print("epsilon0       n      epsilon      gap   bracket   +floor   inverse    people  bracket/yardstick")
    for epsilon0 in (0.1, 1.0, 4.0, 8.0):
        for n in (10**3, 10**4, 10**5, 10**6, 10**9):
            pair = ClonePair(epsilon0, n)
            ends = pair.epsilon(DELTA)
            bracket = best(lambda pair=pair: pair.epsilon(DELTA))
            attack = best(lambda e=epsilon0, n=n, near=ends.upper: attack_lower(e, n, DELTA, guess=near))
            inverse = best(lambda e=ends.upper, n=n: max_epsilon(epsilon=e, n=n, delta=DELTA))
            wanted = 1.001 * ends.upper
            people = best(lambda e0=epsilon0, e=wanted: min_people(epsilon0=e0, epsilon=e, delta=DELTA))
            print(
                f"{epsilon0:8g} {n:7.0e} {ends.upper:12.6g} {ends.gap:8.1e} {bracket:6.2f} ms "
                f"{bracket + attack:5.2f} ms {inverse:6.2f} ms {people:6.2f} ms {bracket / yardstick:10.2f}"
            )


def curves() -> None:
    people, locals_ = np.geomspace(1e3, 1e9, POINTS).astype(int), np.linspace(0.1, 8, POINTS)
    deltas = np.geomspace(1e-12, 1e-2, POINTS)
    for name, grid in (
        ("n 1e3..1e9, epsilon0 1", {"epsilon0": 1.0, "n": people, "delta": DELTA}),
        ("epsilon0 0.1..8, n 1e5", {"epsilon0": locals_, "n": 10**5, "delta": DELTA}),
        ("delta 1e-12..1e-2, epsilon0 1, n 1e4", {"epsilon0": 1.0, "n": 10**4, "delta": deltas}),
    ):
        print(f"curve of {POINTS} points, {name}: {best(lambda grid=grid: curve(**grid), 3):.0f} ms")


def peers() -> None:
    epsilon = ClonePair(1.0, 10_000).epsilon(DELTA).upper
    ours = best(lambda: ClonePair(1.0, 10_000).delta(epsilon))
    exact = ClonePair(1.0, 10_000).delta(epsilon, resolution=1e-7).upper
    print(f"\none delta at n = 1e4: ours {ours:.2f} ms")
    for name, peer in (("every count", every_count), ("double sum", double_sum)):
        time = best(lambda peer=peer: peer(epsilon, 1.0, 10_000), 1)
        print(
            f"  {name}: {time:.0f} ms, {time / ours:.0f} times; "
            f"relative difference {peer(epsilon, 1.0, 10_000) / exact - 1:.1e}"
        )
    for n, step in ((10**4, 1), (10**5, 10), (10**6, 100)):
        ends = ClonePair(1.0, n).epsilon(DELTA)
        ours = best(lambda n=n: ClonePair(1.0, n).epsilon(DELTA))
        theirs = published(1.0, n, DELTA, step=step)
        time = best(lambda n=n, step=step: published(1.0, n, DELTA, step=step), 1)
        print(
            f"one epsilon at n = {n:.0e}: ours {ours:.2f} ms, published algorithm (step {step}) {time:.0f} ms, "
            f"{time / ours:.0f} times; its value is {theirs / ends.upper - 1:+.1%} of ours"
        )
    try:
        time = best(lambda: accounted(1.0, 200, DELTA), 1)
    except ImportError:
        print("dp_accounting is not installed: skipped")
        return
    ends = ClonePair(1.0, 200).epsilon(DELTA)
    ours = best(lambda: ClonePair(1.0, 200).epsilon(DELTA))
    value = accounted(1.0, 200, DELTA)
    print(
        f"one epsilon at n = 200: ours {ours:.2f} ms, dp_accounting with the pair written out {time:.0f} ms, "
        f"{time / ours:.0f} times; its value is {value / ends.upper - 1:+.2%} of ours"
    )


def main() -> None:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    print(
        f"commit {commit.stdout.strip()}, {platform.platform()}, {platform.machine()}, seed {SEED}, delta {DELTA:g}"
    )
    numbers = np.random.default_rng(SEED)
    yardstick = best(lambda: numbers.permutation(100_000), 20)
    print(f"shuffling 1e5 numbers: {yardstick:.2f} ms\n")
    table(yardstick)
    curves()
    peers()


if __name__ == "__main__":
    main()

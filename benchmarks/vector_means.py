"""Claim: at one local epsilon the mean of vectors has at most 1.14 times the error of the best PrivUnit.

python benchmarks/vector_means.py [--peers DIR], where DIR is the site-packages folder of another environment that has
opendp; without it the peer is skipped. Euclidean errors of n people with d coordinates, in units of continuous
PrivUnit with the best parameters (Gaussian cap, its formula alone: drawn in floating point it would promise nothing),
and processor time of one report. The naive version is Laplace noise on every coordinate; opendp's vector Gaussian
noise is asked for one person at a time, as a device would. The yardstick of time is making as many normal numbers
with NumPy and multiplying them with the vector.
"""

import argparse
import math
import sys
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
from scipy.stats import norm

from dovetail.core.entropy import system_entropy
from dovetail.randomize.vectors.closest_direction import ClosestDirection
from dovetail.randomize.vectors.gaussian import Gaussian
from dovetail.randomize.vectors.rotated_blocks import RotatedBlocks
from randomize_speed import machine

SEED, DELTA0 = 1, 1e-6


def priv_unit(d: int, epsilon: float, n: int) -> float:
    """Root mean squared error of PrivUnit's Gaussian form at its best cap, where d is large."""
    p, cap = math.exp(epsilon), np.geomspace(1e-6, 0.5, 4000)
    gain = float(np.max((p - 1.0) / (p * cap + 1.0 - cap) * norm.pdf(norm.isf(cap))))
    return math.sqrt(d / n) / gain


def naive(rows: np.ndarray, epsilon: float, generator: np.random.Generator) -> np.ndarray:
    """Laplace noise on every coordinate: vectors of length 1 are up to 2 sqrt d apart in absolute values."""
    scale = 2.0 * math.sqrt(rows.shape[1]) / epsilon
    return np.asarray((rows + generator.laplace(scale=scale, size=rows.shape)).mean(axis=0))


def by_opendp(d: int, epsilon: float) -> Callable[[np.ndarray], np.ndarray] | None:
    """opendp's Gaussian noise on a vector, as accurate as (epsilon, delta) allows; None where it is missing."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=d), dp.l2_distance(T=float)

    def made(scale: float) -> Any:
        return dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=scale))

    scale = dp.binary_search(lambda s: made(s).map(2.0).epsilon(DELTA0) <= epsilon, bounds=(0.2, 500.0))
    noise = dp.m.make_gaussian(*space, scale=scale)
    return lambda rows: np.array([noise(row.tolist()) for row in rows]).mean(axis=0)


def measured(
    name: str, estimate: Callable[[], np.ndarray], truth: np.ndarray, n: int, limit: float, tick: float
) -> None:
    """One line: the error over that of PrivUnit, and processor time of one person, and over the yardstick."""
    start = process_time()
    off = float(np.linalg.norm(estimate() - truth))
    seconds = (process_time() - start) / n
    print(f"{name:38} {off:9.4f} {off / limit:8.2f} {1e6 * seconds:12.1f} {seconds / tick:9.2f}")


def yardstick(d: int, pairs: int, people: int, generator: np.random.Generator) -> float:
    """Processor time of one person's normal numbers and their products with her vector."""
    vector, start = np.ones(d + 1, dtype=np.float32), process_time()
    for _ in range(people):
        generator.standard_normal((pairs, d + 1), dtype=np.float32) @ vector
    return (process_time() - start) / people


def compare(n: int, d: int, epsilon: float, few: int) -> None:
    """All of them at one epsilon0."""
    generator, rng = np.random.default_rng(SEED), system_entropy()
    rows = generator.normal(size=(n, d))
    rows = rows / np.linalg.norm(rows, axis=1)[:, None] * 0.5 + np.full(d, 0.5 / math.sqrt(d))
    truth, limit = rows.mean(axis=0), priv_unit(d, epsilon, n)
    ours = ClosestDirection(d, 1.0, epsilon)
    tick = yardstick(d, ours.pairs, 200, generator)
    print(f"\nepsilon0 = {epsilon:g}: PrivUnit {limit:.4f}; yardstick {1e6 * tick:.0f} us")
    print(f"{'':38} {'error':>9} {'PrivUnit':>8} {'us a report':>12} {'yardstick':>9}")
    for noise in (ours, RotatedBlocks(d, 1.0, epsilon), Gaussian(d, 1.0, epsilon, delta0=DELTA0)):
        name = f"{noise.name} ({noise.report_bits:,} bits)"
        measured(name, lambda noise=noise: noise.estimate(noise.randomize(rows, rng)), truth, n, limit, tick)
    measured("naive: Laplace, floating point", lambda: naive(rows, epsilon, generator), truth, n, limit, tick)
    peer = by_opendp(d, epsilon)
    if peer is None:
        print("opendp: not installed, skipped")
        return
    scaled = limit * math.sqrt(n / few)
    measured(
        f"opendp, Gaussian, {few:,} people", lambda: peer(rows[:few]), rows[:few].mean(axis=0), few, scaled, tick
    )


def main() -> None:
    """Print errors and processor times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=float, default=2e4)
    parser.add_argument("--d", type=int, default=1000)
    parser.add_argument("--peers", help="site-packages of an environment with opendp")
    arguments = parser.parse_args()
    if arguments.peers:
        sys.path.append(arguments.peers)
    print(f"{machine()}; n = {int(arguments.n):,}, d = {arguments.d:,}, seed {SEED}")
    for epsilon in (1.0, 4.0, 8.0):
        compare(int(arguments.n), arguments.d, epsilon, few=200)


if __name__ == "__main__":
    main()

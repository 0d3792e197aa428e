"""Claim: a distribution and two-way tables cost some shuffles of the reports, and are closer than the naive way is.

python benchmarks/distributions.py [--peers DIR], where DIR is the site-packages folder of another environment that
has opendp; without it the peer is skipped. Made-up people, epsilon 1 and delta 1e-6. Of a distribution in 1,024 bins:
the mean distance between the curves in people, over that of the naive way, counts of all bins behind dummies, summed
up. Of the tables of twelve columns: the mean total variation distance of all 66 pairs, over that of counts whose
negative ones are set to 0. The peer reads every answer: five quantiles of opendp, a fifth of epsilon each, beside the
same five of ours. The yardstick of time is one `Generator.permutation` of as many reports as people send.
"""

import argparse
import sys
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
from scipy.special import ndtr

from dovetail.account.dummies import dummies_for_rounds
from dovetail.account.gaussian_dummies import message_for
from dovetail.core.entropy import system_entropy
from dovetail.core.noise import People
from dovetail.estimate.tables import Pairs, consistent, synthetic, variation
from dovetail.noise.gaussian import GaussianNoise
from dovetail.noise.shuffler import ShufflerNoise
from dovetail.question.distribution import Distribution
from dovetail.question.tables import Tables
from dovetail.randomize.sampling.open_reports import OpenAnswers
from dovetail.shuffle.sampling.dummies import SeveralDummies
from randomize_speed import machine

SEED, EPSILON, DELTA, BINS, RUNS = 1, 1.0, 1e-6, 1024, 20
SIZES = (11, 9, 7, 7, 15, 6, 5, 2, 7, 2, 2, 3)  # as twelve columns of Adult have them
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What the work returns, and its processor time."""
    start = process_time()
    return work(), process_time() - start


def line(name: str, off: float, least: float, seconds: float, tick: float) -> None:
    """One row: what is off, over the naive way, and processor time over the yardstick."""
    print(f"{name:44} {off:10.4g} {off / least:8.2f} {1e3 * seconds:9.0f} {seconds / tick:9.1f}")


def head(title: str, tick: float) -> None:
    """Of a comparison."""
    print(f"\n{title}; yardstick {1e3 * tick:.1f} ms\n{'':44} {'off':>10} {'naive':>8} {'ms':>9} {'yardstick':>9}")


def by_opendp() -> Callable[[np.ndarray], list[float]] | None:
    """opendp's private quantiles among the ends of bins, a fifth of epsilon each; None where it is missing."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance(), dp.max_divergence()
    ends = np.linspace(0.0, 1.0, BINS + 1).tolist()

    def made(share: float, scale: float) -> Any:
        return dp.m.make_private_quantile(*space, candidates=ends, alpha=share, scale=scale)

    # an answer that is replaced is one that goes and one that comes
    each = [made(share, made(share, 1.0).map(2) * len(SHARES) / EPSILON) for share in SHARES]
    return lambda values: [one(values.tolist()) for one in each]


def of_quantiles(values: np.ndarray) -> None:
    """A distribution with two levels, with one, and the quantiles of the peer."""
    n, rng, generator = len(values), system_entropy(), np.random.default_rng(SEED)
    _, tick = timed(lambda: [generator.permutation(2 * n) for _ in range(RUNS)])
    tick /= RUNS
    true = np.arange(1, BINS) / BINS
    curve = np.searchsorted(np.sort(values), true, side="left").astype(np.float64)
    right = np.quantile(values, SHARES, method="inverted_cdf")
    head(f"distribution of {n:,} people in {BINS:,} bins", tick)
    found: dict[str, tuple[float, float, float]] = {}
    for name, levels in (("a tree of two levels", 2), ("naive: counts of bins, summed up", 1)):
        asked = Distribution(0.0, 1.0, bins=BINS, levels=levels, quantiles=SHARES)
        dummies = dummies_for_rounds(k=asked.tree.size, epsilon=EPSILON, delta=DELTA, rounds=levels, law="geometric")
        noise, people = ShufflerNoise(dummies, OpenAnswers(asked.tree.size), levels), People(n)

        def once(asked: Any = asked, noise: Any = noise, people: Any = people) -> tuple[Any, Any]:
            batch = noise.complete(noise.randomize(asked.answer(values, rng), people, rng), rng)
            tally = noise.tally(batch)
            return asked.function(noise, tally, people), asked.learned(noise, tally, people).value

        told, seconds = timed(lambda once=once: [once() for _ in range(RUNS)])
        off = float(np.mean([np.abs(one * n - curve).mean() for one, _ in told]))
        found[name] = off, seconds / RUNS, float(np.mean([np.abs(own - right).mean() for _, own in told]))
    least = found["naive: counts of bins, summed up"][0]
    for name, (off, seconds, _) in found.items():
        line(name, off, least, seconds, tick)
    peer = by_opendp()
    if peer is None:
        print("opendp: not installed, skipped")
        return
    told, seconds = timed(lambda: [peer(values) for _ in range(RUNS)])
    print(f"five quantiles, in parts of the range: ours off by {found['a tree of two levels'][2]:.2g}, ", end="")
    print(f"opendp's by {np.abs(np.array(told) - right).mean():.2g} in {seconds / RUNS / tick:.1f} yardsticks")


def of_tables(n: int) -> None:
    """All two-way tables of twelve columns, made consistent, and as a table of people."""
    generator, rng, pairs = np.random.default_rng(SEED), system_entropy(), Pairs(SIZES)
    hidden = generator.normal(size=(n, 1))
    part = ndtr(0.6 * hidden + 0.8 * generator.normal(size=(n, len(SIZES)))) ** 1.5
    codes = np.minimum((part * SIZES).astype(np.int64), np.array(SIZES) - 1)
    true, reports = pairs.counted(codes), n * len(pairs.all)
    _, tick = timed(lambda: generator.permutation(reports))
    names = [[str(one) for one in range(size)] for size in SIZES]
    asked = Tables(tuple(names[0]), {f"c{place}": tuple(names[place]) for place in range(1, len(SIZES))})
    message = message_for(weights=asked.precisions, epsilon=EPSILON, delta=DELTA)
    dummies = SeveralDummies(message.laws, asked.lists)
    noise, people = GaussianNoise(dummies, OpenAnswers(pairs.size), len(pairs.all)), People(n)

    def collected() -> Any:
        tally = noise.tally(noise.complete(noise.randomize(asked.answer(codes, rng), people, rng), rng))
        return pairs.split(asked.learned(noise, tally, people).value * n)

    def off(tables: Any) -> float:
        return float(np.mean(list(variation(tables, true).values())))

    noisy, collecting = timed(collected)
    variances = dict(zip(pairs.all, dummies.variances[np.array(pairs.starts)].tolist(), strict=True))
    fitted, fitting = timed(lambda: consistent(noisy, SIZES, n, variances))
    made, making = timed(lambda: synthetic(fitted, SIZES, n, np.random.default_rng(SEED)))
    clipped = off({pair: np.maximum(one, 0.0) for pair, one in noisy.items()})
    head(f"66 tables of {n:,} people, {reports:,} reports", tick)
    line("naive: counts, negative ones set to 0", clipped, clipped, collecting, tick)
    line("consistent tables, beyond collecting", off(fitted), clipped, fitting, tick)
    line("a synthetic table, beyond those", off(pairs.counted(made)), clipped, making, tick)


def main() -> None:
    """Print what is off, and processor times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=float, default=1e5)
    parser.add_argument("--peers", help="site-packages of an environment with opendp")
    arguments = parser.parse_args()
    if arguments.peers:
        sys.path.append(arguments.peers)
    print(f"{machine()}; epsilon = {EPSILON:g}, delta = {DELTA:g}, seed {SEED}")
    values = np.clip(np.random.default_rng(SEED).gamma(3.0, 0.08, int(arguments.n)), 0.0, 1.0)
    of_quantiles(values)
    of_tables(int(arguments.n) // 3)


if __name__ == "__main__":
    main()

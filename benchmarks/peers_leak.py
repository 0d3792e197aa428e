"""Claim: exact shuffled vulnerability where the channels that libqif is given no longer fit.

Run: python benchmarks/peers_leak.py

Three ways to one number, V of k-ary randomized response and a uniform shuffle: `dense` builds the channel from k^n
datasets to histograms and calls libqif; `expert` derives by hand the channel from one value to the histogram (F2) and
calls libqif; `ours` is dovetail.vulnerability. Then our general functions against libqif on random channels: values
and time. libqif comes with `pip install qif`; without it only our column has figures.
A dash stands where the channel does not fit --memory.
"""

import argparse
from collections.abc import Callable
from functools import partial, reduce
from importlib import import_module
from itertools import combinations_with_replacement
from math import comb
from typing import Any

import numpy as np
from scipy.special import gammaln, xlogy

from dovetail.core.channel import KRRChannel
from dovetail.leak.qif import vulnerability as bayes
from dovetail.leak.qif import vulnerability as capacity
from dovetail.leak.qif import vulnerability as uncertainty
from dovetail.leak.qif.channels import refined_by
from dovetail.leak.vulnerability import vulnerability
from leak_speed import best
from randomize_speed import machine

KEEP = 0.75
CASES = [(2, 8), (2, 12), (2, 13), (2, 14), (2, 10**4), (2, 10**6), (2, 10**8), (3, 5), (3, 8), (3, 9), (3, 300),
         (3, 2000), (3, 10**5), (10, 10), (10, 10**4), (100, 10**6)]  # fmt: skip


def counts(n: int, k: int) -> np.ndarray:
    """Every histogram, (histograms, k)."""
    if k == 2:
        return np.stack([np.arange(n + 1), n - np.arange(n + 1)], axis=1)
    if k == 3:
        first, second = np.triu_indices(n + 1)
        return np.stack([first, second - first, n - second], axis=1)
    cells = [np.bincount(z, minlength=k) for z in combinations_with_replacement(range(k), n)]
    return np.array(cells)


def dense(k: int, n: int, qif: Any) -> Callable[[], float]:
    person = KRRChannel.of(k, KEEP).matrix()

    def run() -> float:
        values = np.indices((k,) * n).reshape(n, -1).T
        codes = np.stack([(values == v).sum(axis=1) for v in range(k)], axis=1) @ (n + 1) ** np.arange(k)
        _, column = np.unique(codes, return_inverse=True)
        noise = reduce(np.kron, [person] * n)
        channel = np.zeros((k**n, column.max() + 1))
        for z in range(channel.shape[1]):
            channel[:, z] = noise[:, column == z].sum(axis=1)
        gain = (values[:, 0] == np.arange(k)[:, None]).astype(float)
        return float(qif.measure.g_vuln.posterior(gain, np.full(k**n, float(k) ** -n), channel))

    return run


def expert(k: int, n: int, qif: Any) -> Callable[[], float]:
    krr = KRRChannel.of(k, KEEP)

    def run() -> float:
        z = counts(n, k)
        law = np.exp(gammaln(n + 1) - gammaln(z + 1).sum(axis=1) - xlogy(n, k))
        channel = k * law * (krr.s + krr.contrast * z.T / n)  # Pr(z | value) = Pr(z) Pr(value | z) k
        return float(qif.measure.bayes_vuln.posterior(np.full(k, 1 / k), channel))

    return run


def ways(qif: Any, memory: float) -> None:
    """One line per setting: milliseconds and values of the three ways."""
    head = ("k", "n", "dense ms", "expert ms", "ours ms", "V", "dense off", "expert off")
    row = "{:>4} {:>11} {:>11} {:>11} {:>9} {:>18} {:>9} {:>10}"
    print(row.format(*head))
    for k, n in CASES:
        krr = KRRChannel.of(k, KEEP)
        truth = vulnerability(krr, n=n).randomized_shuffled
        needs = {dense: 8 * k ** (2 * n) if n < 40 else np.inf, expert: 32 * k * comb(n + k - 1, k - 1)}
        times, offs = [], []
        for way, size in needs.items():
            fits = qif is not None and size <= memory
            times.append(f"{best(way(k, n, qif), 1 if size > 1e8 else 3):.3f}" if fits else "-")
            offs.append(f"{way(k, n, qif)() - truth:.0e}" if fits else "")
        own = best(partial(vulnerability, krr, n=n), 3)
        print(row.format(k, f"{n:,}", *times, f"{own:.3f}", f"{truth:.15f}", *offs))


def both(qif: Any) -> dict[str, tuple[Callable[..., float], Callable[..., float]]]:
    """libqif's and our functions of a gain, a prior and a channel."""
    seen, bits = qif.measure, 1.0 / np.log(2.0)

    def line(c: np.ndarray) -> np.ndarray:
        return np.abs(np.subtract.outer(np.arange(len(c)), np.arange(len(c))))

    return {
        "g-vulnerability": (
            seen.g_vuln.posterior,
            lambda g, pi, c: bayes.posterior_vulnerability(pi, c, gain=g),
        ),
        "multiplicative leakage": (
            seen.g_vuln.mult_leakage,
            lambda g, pi, c: bayes.multiplicative_leakage(pi, c, gain=g),
        ),
        "Bayes risk": (
            lambda g, pi, c: seen.bayes_risk.posterior(pi, c),
            lambda g, pi, c: bayes.bayes_risk(pi, c),
        ),
        "min-entropy leakage, bits": (
            lambda g, pi, c: seen.bayes_vuln.min_entropy_leakage(pi, c),
            lambda g, pi, c: bits * bayes.min_entropy_leakage(pi, c),
        ),
        "multiplicative capacity": (
            lambda g, pi, c: seen.bayes_vuln.mult_capacity(c),
            lambda g, pi, c: capacity.multiplicative_capacity(c),
        ),
        "additive capacity": (
            lambda g, pi, c: seen.g_vuln.add_capacity(pi, c, True),
            lambda g, pi, c: capacity.additive_capacity(pi, c).value,
        ),
        "Shannon leakage, bits": (
            lambda g, pi, c: seen.shannon.add_leakage(pi, c),
            lambda g, pi, c: bits * uncertainty.shannon_leakage(pi, c),
        ),
        "guessing entropy": (
            lambda g, pi, c: seen.guessing.posterior(pi, c),
            lambda g, pi, c: uncertainty.conditional_guessing_entropy(pi, c),
        ),
        "metric privacy": (
            lambda g, pi, c: seen.d_privacy.smallest_epsilon(c, lambda x, y: abs(x - y)),
            lambda g, pi, c: capacity.metric_privacy(c, distance=line(c)),
        ),
    }


def functions(qif: Any, numbers: np.random.Generator) -> None:
    """Our general functions and libqif on random channels: largest difference, time per call."""

    def situation(k: int, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return numbers.uniform(size=(k, k)), numbers.dirichlet(np.ones(k)), numbers.dirichlet(np.ones(m), k)

    print(f"\n{'30 random channels':>26} {'largest difference':>19} {'100 x 200: libqif ms':>21} {'ours ms':>9}")
    for name, (theirs, ours) in both(qif).items():
        cases = [situation(*numbers.integers(2, 30, size=2)) for _ in range(30)]
        gap = max(abs(theirs(*case) - ours(*case)) for case in cases)
        large = situation(100, 200)
        times = [best(partial(function, *large), 3) for function in (theirs, ours)]
        print(f"{name:>26} {gap:19.1e} {times[0]:21.3f} {times[1]:9.3f}")
    agree = 0
    for _ in range(30):
        one = numbers.dirichlet(np.ones(6), 4)
        other = one @ numbers.dirichlet(np.ones(3), 6)
        for pair in ((one, other), (other, one)):
            agree += bool(qif.refinement.refined_by(*pair)) == refined_by(*pair).holds
    print(f"refinement: {agree} of 60 answers agree", end="; ")
    one = numbers.dirichlet(np.ones(20), 15)
    other = one @ numbers.dirichlet(np.ones(20), 20)
    times = [best(partial(function, one, other), 3) for function in (qif.refinement.refined_by, refined_by)]
    print(f"15 x 20: libqif {times[0]:.1f} ms, ours {times[1]:.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", type=float, default=1.5e9, help="bytes that one channel may take")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"{machine()}\nseed {options.seed}, best of 3, p = {KEEP}, one channel at most {options.memory:.1e} bytes")
    try:
        qif = import_module("qif")
    except ImportError as error:
        print(f"libqif is skipped: {error}")
        qif = None
    ways(qif, options.memory)
    if qif is not None:
        functions(qif, np.random.default_rng(options.seed))


if __name__ == "__main__":
    main()

"""Statistical assertions with a stated false-alarm rate; tolerances are derived, never tuned."""

from collections.abc import Iterable
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom, norm

from dovetail.core.entropy import Entropy, simulation

FALSE_ALARM = 1e-9  # per assertion


def rng_of(name: str) -> Entropy:
    """The simulation generator of a test: its seed comes from the test's own name."""
    return simulation(crc32(name.encode()))


def misfit(counts: ArrayLike, probabilities: ArrayLike) -> float:
    """Smallest p-value with which these counts contradict this law: exact binomial per cell, Bonferroni over cells.

    A count in a cell of probability 0 has p-value 0.
    """
    seen, law = np.asarray(counts), np.asarray(probabilities, dtype=float)
    assert seen.shape == law.shape, (seen.shape, law.shape)
    assert abs(law.sum() - 1.0) < 1e-9, law.sum()
    n = seen.sum()
    tail = np.minimum(binom.cdf(seen, n, law), binom.sf(seen - 1, n, law))
    return float(min(1.0, 2 * seen.size * tail.min()))


def expect_law(counts: ArrayLike, probabilities: ArrayLike, false_alarm: float = FALSE_ALARM) -> None:
    """The counts come from this law; wrongly fails with probability at most `false_alarm`."""
    p_value = misfit(counts, probabilities)
    assert p_value >= false_alarm, f"counts {counts} contradict the law {probabilities}: p-value {p_value:.3g}"


def expect_broken(counts: ArrayLike, probabilities: ArrayLike, false_alarm: float = FALSE_ALARM) -> None:
    """The counts do not come from this law: the same test that passes a right mechanism must catch this one."""
    p_value = misfit(counts, probabilities)
    assert p_value < false_alarm, f"the broken mechanism was not caught: p-value {p_value:.3g}"


def expect_mean(samples: ArrayLike, truth: ArrayLike, false_alarm: float = FALSE_ALARM) -> None:
    """Column means of samples (trials, ..) equal `truth`; normal approximation, so use at least 100 trials."""
    table = np.asarray(samples, dtype=float)
    assert len(table) >= 100
    error = np.maximum(table.std(axis=0, ddof=1) / np.sqrt(len(table)), 1e-300)
    off = np.abs(table.mean(axis=0) - truth) / error
    limit = norm.isf(false_alarm / 2 / off.size)
    assert off.max() <= limit, f"mean off by {off.max():.2f} standard errors, limit {limit:.2f}"


def expect_coverage(hits: Iterable[bool], level: float, false_alarm: float = FALSE_ALARM) -> None:
    """Intervals cover at least at `level`; wrongly fails with probability at most `false_alarm`."""
    inside = np.fromiter(hits, dtype=bool)
    p_value = float(binom.cdf(inside.sum(), inside.size, level))
    assert p_value >= false_alarm, f"covered {inside.mean():.4f} of {inside.size}, wanted {level}: p {p_value:.3g}"

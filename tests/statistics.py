"""Statistical assertions with a stated false-alarm rate and a stated power; tolerances are derived, never tuned.

A test that could not see what it is for is no test: each assertion computes with which probability it would see its
alternative, and fails where that is below `POWER`. The alternatives are a standard error that is a fifth too small or
a quarter too large, and a bias of half the standard deviation of one sample.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom, norm

from dovetail.core.entropy import Entropy, simulation

FALSE_ALARM = 1e-9  # per assertion
POWER = 0.9  # against the alternative, at least
SHORT, LONG = 0.8, 1.25  # standard errors that must be seen, as shares of the right one


class Contradiction(AssertionError):
    """What was seen contradicts what was claimed."""


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
    """The counts come from this law; wrongly fails with probability at most `false_alarm`.

    What it can see depends on the law: show it by `expect_broken`.
    """
    p_value = misfit(counts, probabilities)
    if p_value < false_alarm:
        raise Contradiction(f"counts {counts} contradict the law {probabilities}: p-value {p_value:.3g}")


def expect_broken(counts: ArrayLike, probabilities: ArrayLike, false_alarm: float = FALSE_ALARM) -> None:
    """The counts do not come from this law: the same test that passes a right mechanism must catch this one."""
    p_value = misfit(counts, probabilities)
    assert p_value < false_alarm, f"the broken mechanism was not caught: p-value {p_value:.3g}"


def expect_caught(test: Callable[..., None], *claim: Any) -> None:
    """The assertion `test` of this module contradicts the claim of a broken mechanism."""
    try:
        test(*claim)
    except Contradiction:
        return
    raise AssertionError("the broken mechanism was not caught")


def expect_mean(
    samples: ArrayLike,
    truth: ArrayLike,
    against: Sequence[float] | None = None,
    false_alarm: float = FALSE_ALARM,
) -> None:
    """Column means of samples (trials, ..) equal `truth`; normal approximation, so use at least 100 trials.

    `against` are the smallest differences that must be seen in every column, in units of the samples; half of a
    column's standard deviation without.
    """
    table = np.asarray(samples, dtype=float)
    assert len(table) >= 100
    spread = np.maximum(table.std(axis=0, ddof=1), 1e-300)
    error = spread / np.sqrt(len(table))
    limit = norm.isf(false_alarm / 2 / error.size)
    least = spread / 2 if against is None else np.min(np.abs(against))
    power = float(norm.cdf(least / error - limit).min())
    off = np.abs(table.mean(axis=0) - truth) / error
    told = f"mean off by {off.max():.2f} standard errors, limit {limit:.2f}; power {power:.3f}"
    if off.max() > limit:
        raise Contradiction(told)
    assert power >= POWER, f"{told}: more trials than {len(table)}"


def expect_standard_error(errors: ArrayLike, claimed: ArrayLike, false_alarm: float = FALSE_ALARM) -> None:
    """Errors (trials, ..) of unbiased estimates have the claimed standard errors: error^2 - claim^2 has mean 0."""
    off = np.asarray(errors, dtype=float)
    variance = np.broadcast_to(np.asarray(claimed, dtype=float) ** 2, off.shape)
    excess = (off**2 - variance) / variance.mean(axis=0)
    expect_mean(excess, 0.0, (1.0 - SHORT**2, LONG**2 - 1.0), false_alarm)


def expect_share(
    hits: ArrayLike, least: float, most: float, against: Iterable[float], false_alarm: float = FALSE_ALARM
) -> None:
    """What hits (trials,) count happens with a probability from `least` to `most`; exact binomial tails.

    `against` are the probabilities that must be seen.
    """
    inside = np.asarray(hits, dtype=bool)
    n, seen = inside.size, int(inside.sum())
    counts = np.arange(n + 1)
    low = counts[2 * binom.cdf(counts, n, least) < false_alarm]  # both regions are ends of the range
    high = counts[2 * binom.sf(counts - 1, n, most) < false_alarm]
    few, many = (low[-1] if low.size else -1), (high[0] if high.size else n + 1)
    power = min(binom.cdf(few, n, p) + binom.sf(many - 1, n, p) for p in against)
    told = f"{seen} of {n}, a share of {seen / n:.4f}; wanted {few + 1} to {many - 1}; power {power:.3f}"
    if not few < seen < many:
        raise Contradiction(told)
    assert power >= POWER, f"{told}: more trials"


def coverages(level: float) -> tuple[float, float]:
    """Coverage of normal intervals at `level` whose standard error is `SHORT` or `LONG` by the factor."""
    z = norm.isf((1.0 - level) / 2)
    short, long = 1.0 - 2.0 * norm.sf(z * np.array([SHORT, LONG]))
    return float(short), float(long)


def expect_coverage(hits: ArrayLike, level: float, slack: float = 0.0, false_alarm: float = FALSE_ALARM) -> None:
    """Intervals cover at `level`, neither less nor more, give or take a derived `slack`.

    Most is seen at a level of 0.8: 1000 trials; 1500 at 0.95.
    """
    expect_share(hits, level - slack, level + slack, coverages(level), false_alarm)


def expect_at_least(hits: ArrayLike, level: float, false_alarm: float = FALSE_ALARM) -> None:
    """Intervals that are wide by design cover at least at `level`; show by `expect_caught` that they have to be."""
    expect_share(hits, level, 1.0, coverages(level)[:1], false_alarm)

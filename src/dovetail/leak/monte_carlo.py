"""Monte Carlo estimate of additive leakage with a confidence interval, where no exact sum is in reach."""

from __future__ import annotations

import math

import numpy as np

from dovetail.core.channel import Matrix
from dovetail.core.entropy import Entropy
from dovetail.core.numeric.special import Reals
from dovetail.leak.additive_leakage import AdditiveLeakage

LEVEL = 1.0 - 1e-6
DRAWS = 1 << 17
TAU = 1e-12  # chance that a draw is cut
CELLS = 1 << 22


def monte_carlo_leakage(advantage: Matrix, pmf: Reals, *, n: int, rng: Entropy) -> AdditiveLeakage:
    r"""Mean of the positive part over random histograms, with an empirical Bernstein interval.

    .. math:: \left| \bar X - E X \right| \le \sqrt{\frac{2 S^2 \ln(4/\delta)}{M}}
              + \frac{7 c \ln(4/\delta)}{3 (M - 1)}, \qquad 0 \le X \le c

    The draws are cut at c, which is of order n^(-1/2); what the cut misses is added to the upper end, see
    `clipping_threshold`.

    Parameters
    ----------
    advantage : float array (actions, kinds)
        Advantage of each action over the best one without reports, per kind of report.
    pmf : float array (kinds,)
    n : int
    rng : Entropy
        Seeds NumPy's multinomial; 131,072 draws.

    Notes
    -----
    The interval fails with probability at most 1e-6. The value it is added to, the prior vulnerability, is the
    control variate.

    Source
    ------
    Maurer, Pontil (2009), Empirical Bernstein Bounds and Sample Variance Penalization, COLT, Theorem 4, both sides.
    """
    source, pmf = np.random.default_rng(rng.words(4)), pmf / pmf.sum()
    step = max(1, CELLS // pmf.size)
    parts = [
        np.maximum((source.multinomial(n, pmf, size=min(step, DRAWS - start)) @ advantage.T).max(axis=1), 0.0)
        for start in range(0, DRAWS, step)
    ]
    most, missed = clipping_threshold(advantage, n)
    draws = np.minimum(np.concatenate(parts) / n, most)
    level, mean = math.log(4.0 / (1.0 - LEVEL)), float(draws.mean())
    width = math.sqrt(2.0 * float(draws.var(ddof=1)) * level / DRAWS) + 7.0 * most * level / (3.0 * (DRAWS - 1))
    return AdditiveLeakage(mean, max(0.0, mean - width), mean + width + missed, "sampled")


def clipping_threshold(advantage: Matrix, n: int) -> tuple[float, float]:
    r"""Where draws are cut, and a bound on what that takes from their mean.

    .. math:: c = \frac{D}{\sqrt n} \left( \sqrt{\tfrac12 \ln(A + 1)} + \sqrt{\tfrac12 \ln(1/\tau)} \right),
              \qquad E (X - c)^+ \le \frac{\tau D}{4 \sqrt{n \ln(1/\tau) / 2}}

    with A actions and D the largest range of one action's advantage. Without a cut the bound on X is the largest
    advantage, of order 1.

    Notes
    -----
    X is the positive part of the largest of A means of n independent reports, none with a positive expectation
    (the action they are compared with is the best one beforehand). Each mean is sub-Gaussian with variance factor
    D^2/(4n) (Hoeffding's lemma), so that E X, the mean of the largest of A + 1 with the constant 0, is at most the
    first part of c. One report moves X by at most D/n, so that X exceeds its mean by t with chance at most
    exp(-2 n t^2/D^2) (McDiarmid); with t0 the second part of c, E(X - c)^+ is at most the integral over u of
    exp(-2 n (t0 + u)^2/D^2), which is at most tau D^2/(4 n t0).

    Source
    ------
    Boucheron, Lugosi, Massart (2013), Concentration Inequalities, Lemma 2.2, Theorems 2.5 and 6.2.
    """
    unit = float(np.ptp(advantage, axis=1).max()) / math.sqrt(n)
    beyond = math.sqrt(math.log(1.0 / TAU) / 2.0)
    most = unit * (math.sqrt(math.log(len(advantage) + 1.0) / 2.0) + beyond)
    largest = float(advantage.max())
    return (largest, 0.0) if largest <= most else (most, TAU * unit / (4.0 * beyond))

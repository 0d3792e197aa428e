"""Monte Carlo with an interval that holds at a stated level, where no exact sum is in reach."""

from __future__ import annotations

import math

import numpy as np

from dovetail.core.channel import Matrix
from dovetail.core.entropy import Entropy
from dovetail.core.special import Reals
from dovetail.leak.excess import Excess

LEVEL = 1.0 - 1e-6
DRAWS = 1 << 17
CELLS = 1 << 22


def sampled_gain(edge: Matrix, law: Reals, *, n: int, rng: Entropy) -> Excess:
    r"""Mean of the positive part over random histograms, with an empirical Bernstein interval.

    .. math:: \left| \bar X - E X \right| \le \sqrt{\frac{2 S^2 \ln(4/\delta)}{M}}
              + \frac{7 b \ln(4/\delta)}{3 (M - 1)}, \qquad 0 \le X \le b

    Parameters
    ----------
    edge : float array (actions, kinds)
        Advantage of each action over the best one without reports, per kind of report.
    law : float array (kinds,)
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
    source = np.random.default_rng(rng.words(4))
    step = max(1, CELLS // law.size)
    parts = [
        np.maximum((source.multinomial(n, law / law.sum(), size=min(step, DRAWS - start)) @ edge.T).max(axis=1), 0.0)
        for start in range(0, DRAWS, step)
    ]
    draws = np.concatenate(parts) / n
    level, largest = math.log(4.0 / (1.0 - LEVEL)), float(edge.max())
    width = math.sqrt(2.0 * float(draws.var(ddof=1)) * level / DRAWS) + 7.0 * largest * level / (3.0 * (DRAWS - 1))
    return Excess.around(float(draws.mean()), width, "sampled")

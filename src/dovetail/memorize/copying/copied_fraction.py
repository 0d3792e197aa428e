"""A lower bound of the share of generated points that are copies, by a threshold fixed beforehand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

Distances = NDArray[np.float64]  # (n,)


def clopper_pearson(hits: int, trials: int, *, level: float = 0.95) -> tuple[float, float]:
    """The exact interval of a binomial share.

    >>> tuple(round(end, 4) for end in clopper_pearson(0, 100))
    (0.0, 0.0362)
    """
    tail = (1.0 - level) / 2
    low = 0.0 if hits == 0 else float(betaincinv(hits, trials - hits + 1, tail))
    high = 1.0 if hits == trials else float(betaincinv(hits + 1, trials - hits, 1.0 - tail))
    return low, high


def copied_fraction(
    fresh: Distances, generated: Distances, threshold: float, *, level: float = 0.95
) -> tuple[float, int, int]:
    r"""At least this share of Q is copied, with confidence `level`; and how many of Q and P are within `threshold`.

    .. math:: \rho \ge \frac{L - U}{1 - U}

    L is the lower end of Pr(d(Q) <= threshold) and U the upper end of Pr(d(P) <= threshold), each of one-sided level
    1 - (1 - level)/2. It counts as copied what is nearer than the law of P explains, so it takes for granted that the
    part that is not copied follows P's law, and that the threshold was not chosen by looking at Q.
    """
    near, usual = int((generated <= threshold).sum()), int((fresh <= threshold).sum())
    low = clopper_pearson(near, len(generated), level=level)[0]
    high = clopper_pearson(usual, len(fresh), level=level)[1]
    return (max(0.0, (low - high) / (1.0 - high)) if high < 1.0 else 0.0), near, usual

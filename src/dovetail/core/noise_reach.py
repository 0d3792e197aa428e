"""How far a known discrete error, with a normal one on top, goes: quantiles of their sum."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core.special import Reals

CELL = 0.02  # in the log: standard deviations are rounded up to multiples of so much
TURNS = 50


def noise_reach(places: Reals, masses: Reals, sigma: ArrayLike, level: float) -> Reals:
    r"""The least t with Pr[|Z + N(0, sigma^2)| <= t] >= level, rounded up; for each sigma, at least 0.

    Without normal noise it is one of the |places|: the interval covers at least with this probability.

    Parameters
    ----------
    places, masses : float arrays (points,)
        The law of Z.

    Examples
    --------
    >>> noise_reach(np.array([-1.0, 0.0, 1.0]), np.array([0.25, 0.5, 0.25]), [0.0, 1.0], 0.5).round(1).tolist()
    [0.0, 0.8]
    """
    deviations = np.asarray(sigma, dtype=np.float64)
    with np.errstate(divide="ignore"):
        cells = np.ceil(np.log(deviations) / CELL)
    kinds, where = np.unique(cells, return_inverse=True)
    reaches = np.array([_reach(places, masses, float(np.exp(CELL * cell)), level) for cell in kinds])
    return np.asarray(reaches[where.reshape(deviations.shape)])


def _reach(places: Reals, masses: Reals, sigma: float, level: float) -> float:
    from scipy.special import ndtr

    if sigma == 0.0:
        order = np.argsort(np.abs(places), kind="stable")
        enough = np.flatnonzero(np.cumsum(masses[order]) >= level)
        return float(np.abs(places)[order[enough[0] if enough.size else -1]])
    low, high = 0.0, float(np.abs(places).max()) + 9.0 * sigma
    for _ in range(TURNS):
        t = 0.5 * (low + high)
        inside = float(masses @ (ndtr((t - places) / sigma) - ndtr((-t - places) / sigma)))
        low, high = (t, high) if inside < level else (low, t)
    return high

r"""Probability that independent Laplace numbers come in a given order, by quadrature.

.. math:: \Pr[X_1 < .. < X_k], \quad X_i \sim c_i + \mathrm{Lap}(1): \qquad
          F_1 = 1, \quad F_{i+1}(x) = \int_{-\infty}^x f_i(t) F_i(t)\, dt
"""

from functools import cache

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

_NODES = 16
_REACH = 45  # beyond it a density is below 3e-20


def log_order_probability(centres: Numbers) -> float:
    """log Pr[X_1 < .. < X_k]; absolute error of the probability below 1e-13 for up to 6 numbers.

    >>> round(float(np.exp(log_order_probability(np.array([0.0, 0.0, 0.0])))), 12)
    0.166666666667
    """
    ends = np.unique(np.add.outer(centres, np.arange(-_REACH, _REACH + 1)))
    ends = ends[np.append(True, np.diff(ends) > 1e-12)]
    nodes, weights, within = _rule()
    width = np.diff(ends)
    x = ends[:-1, None] + width[:, None] * nodes  # (panels, nodes)
    below = np.ones_like(x)
    total = 1.0
    for centre in centres:
        density = 0.5 * np.exp(-np.abs(x - centre)) * below * width[:, None]
        panel = density @ weights
        before = np.cumsum(panel) - panel
        below = before[:, None] + density @ within.T
        total = float(panel.sum())
    return float(np.log(total)) if total > 0.0 else -np.inf


@cache
def _rule() -> tuple[Numbers, Numbers, Numbers]:
    """Gauss-Legendre nodes and weights on [0, 1], and the matrix of integrals from 0 to each node."""
    nodes, weights = legendre.leggauss(_NODES)
    table = legendre.legvander(nodes, _NODES - 1)
    integrals = np.stack([legendre.legval(nodes, legendre.legint(row, lbnd=-1)) for row in np.eye(_NODES)], axis=1)
    return (nodes + 1) / 2, weights / 2, integrals @ np.linalg.inv(table) / 2

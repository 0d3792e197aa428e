"""Mean and variance of the number of inversions under the Mallows law, for any number of people."""

import math
from collections.abc import Callable

import numpy as np

from dovetail.shuffle.sampling.mallows import Terms


def mean_inversions(n: int, theta: float) -> float:
    r"""Mean of inv.

    .. math:: \mathrm{E}[\mathrm{inv}] = \sum_{m=1}^{n} \frac{1}{e^{\theta} - 1} - \frac{m}{e^{m\theta} - 1}
                                       = \sum_{m=1}^{n} h(\theta) - m\, h(m\theta), \quad
              h(y) = \frac{1}{e^y - 1} - \frac1y
    """
    if math.isinf(theta):
        return 0.0
    return _sum(n, lambda m: np.where(m * theta > 1.0, _rest(m, theta), _h(np.float64(theta)) - m * _h(m * theta)))


def inversion_variance(n: int, theta: float) -> float:
    r"""Variance of inv.

    .. math:: \mathrm{Var}[\mathrm{inv}] = \sum_{m=1}^{n} k(\theta) - m^2 k(m\theta), \quad
              k(y) = \frac{1}{4 \sinh^2(y/2)} - \frac{1}{y^2}
    """
    if math.isinf(theta):
        return 0.0
    return _sum(
        n, lambda m: np.where(m * theta > 1.0, _spread(m, theta), _k(np.float64(theta)) - m**2 * _k(m * theta))
    )


def _sum(n: int, term: Callable[[Terms], Terms]) -> float:
    return float(term(np.arange(1, n + 1, dtype=np.float64)).sum())


def _rest(m: Terms, theta: float) -> Terms:
    """Mean of the digit below m where m theta is not small (elsewhere finite and unused)."""
    theta = max(theta, 0.5 / m[-1])
    return np.asarray(_over_expm1(np.float64(theta)) - m * _over_expm1(m * theta))


def _spread(m: Terms, theta: float) -> Terms:
    """Variance of the digit below m where m theta is not small (elsewhere finite and unused)."""
    theta = max(theta, 0.5 / m[-1])
    one, all_ = _over_expm1(np.float64(theta)), _over_expm1(m * theta)
    return np.asarray(one * (one + 1) - m**2 * all_ * (all_ + 1))


def _over_expm1(y: Terms | np.float64) -> Terms:
    """1 / (e^y - 1), 0 where e^y overflows."""
    small = np.exp(-y)
    return np.asarray(small / -np.expm1(-y))


def _h(y: Terms | np.float64) -> Terms:
    y = np.minimum(y, 1.0)
    series = -1 / 2 + y / 12 - y**3 / 720 + y**5 / 30240 - y**7 / 1209600
    return np.asarray(np.where(y < 0.1, series, 1 / np.expm1(np.maximum(y, 0.1)) - 1 / np.maximum(y, 0.1)))


def _k(y: Terms | np.float64) -> Terms:
    y = np.minimum(y, 1.0)
    series = -1 / 12 + y**2 / 240 - y**4 / 6048 + y**6 / 172800
    large = np.maximum(y, 0.1)
    return np.asarray(np.where(y < 0.1, series, 1 / (4 * np.sinh(large / 2) ** 2) - 1 / large**2))

r"""What mu-Gaussian differential privacy says, exactly: the curve of epsilon and delta, and posterior odds.

.. math:: \delta(\epsilon) = \Phi(\mu/2 - \epsilon/\mu) - e^{\epsilon} \Phi(-\mu/2 - \epsilon/\mu)

The loss of order lambda is lambda mu^2 / 2 for every lambda at once.

Source
------
Dong, Roth, Su (2022), Gaussian Differential Privacy, JRSS B 84(1), Corollary 1.
"""

from __future__ import annotations

from math import exp, inf, log, sqrt

from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri

from dovetail.core.checks import not_negative_or_infinite, positive, probability

_ULP = 2.0**-52


def delta_of(epsilon: float, *, mu: float) -> float:
    """Smallest delta of mu-Gaussian privacy at this epsilon, nats; rounded up by what the difference may lose.

    >>> round(delta_of(1.0, mu=1.0), 6)
    0.126937
    """
    if mu == 0.0:
        return 0.0
    second = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    first = float(ndtr(mu / 2 - epsilon / mu))
    lost = 8 * _ULP * (2.0 + abs(second)) * first  # relative errors of both terms, of which neither exceeds the first
    return min(1.0, max(0.0, first - exp(min(second, 0.0))) + lost)


def epsilon_of(delta: float, *, mu: float) -> float:
    """Smallest epsilon of mu-Gaussian privacy at this delta, in (0, 1); rounded up.

    >>> round(epsilon_of(1e-5, mu=0.5), 3)
    1.993
    """
    probability("delta", delta)
    if delta_of(0.0, mu=mu) <= delta:
        return 0.0
    top = mu * mu / 2 + mu * 40.0
    found = brentq(lambda epsilon: delta_of(epsilon, mu=mu) - delta, 0.0, top, xtol=1e-12)
    return float(found) * (1.0 + 1e-9) + 1e-11


def mu_of(epsilon: float, *, delta: float) -> float:
    """Largest mu whose curve keeps delta at this epsilon; rounded down."""
    positive("epsilon", epsilon)
    probability("delta", delta)
    ends = log(min(1e-9, epsilon / 60)), log(2 * sqrt(epsilon) + 40.0)
    found = exp(brentq(lambda size: delta_of(epsilon, mu=exp(size)) - delta, *ends, xtol=1e-13))
    while delta_of(epsilon, mu=found) > delta:
        found *= 1.0 - 1e-9
    return found


def renyi_loss(order: float, *, mu: float) -> float:
    """Loss of order lambda, lambda mu^2 / 2; `order` above 1."""
    return order * mu * mu / 2


def mu_of_loss(epsilon: float, *, order: float) -> float:
    """mu of a loss `epsilon` of order lambda, sqrt(2 epsilon / lambda).

    >>> mu_of_loss(0.1, order=5.0)
    0.2
    """
    return sqrt(2.0 * not_negative_or_infinite("epsilon", epsilon) / positive("order", order))


def posterior_odds(chance: float, *, mu: float) -> float:
    r"""Odds that the posterior of one value over another exceeds the prior's by, either way, with this chance.

    The log ratio is N(mu^2/2, mu^2), so this is the quantile of its absolute value.

    >>> round(posterior_odds(0.01, mu=0.2), 3), round(posterior_odds(0.1, mu=0.2), 3)
    (1.678, 1.392)
    """
    probability("chance", chance)
    if mu == 0.0:
        return 1.0
    middle, spread = mu * mu / 2, mu

    def beyond(value: float) -> float:
        return float(ndtr((middle - value) / spread) + ndtr((-value - middle) / spread)) - chance

    top = middle + spread * float(-ndtri(chance / 2)) + 1.0
    value = float(brentq(beyond, 0.0, top, xtol=1e-12))
    return exp(value) if value < 700.0 else inf

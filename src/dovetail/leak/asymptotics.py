"""Leakage for large n: of order 1/sqrt(n) where several guesses are best, exponentially small where one is."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from dovetail.core.channel import KRRChannel, Matrix
from dovetail.core.checks import whole
from dovetail.core.errors import UnsupportedError
from dovetail.core.numeric.special import Reals


def normal_maximum(k: int) -> float:
    r"""mu_k, the expected maximum of k independent standard normals.

    .. math:: \mu_k = \int_0^\infty \left( 1 - \Phi(x)^k - \Phi(-x)^k \right) dx

    >>> round(normal_maximum(3), 6)  # 3 / (2 sqrt(pi))
    0.846284
    """
    from scipy.integrate import quad
    from scipy.special import log_ndtr

    k = whole("k", k, least=1)

    def tail(x: float) -> float:
        return float(-np.expm1(k * log_ndtr(x)) - np.exp(k * log_ndtr(-x)))

    middle = math.sqrt(2.0 * math.log(k)) if k > 1 else 1.0
    ends = [0.0, max(0.5, 0.7 * middle), middle + 1.0, middle + 12.0]
    return float(sum(quad(tail, low, high, epsabs=1e-14, epsrel=1e-13)[0] for low, high in pairwise(ends)))


def normal_limit(channel: KRRChannel, *, n: int) -> float:
    r"""What V_NS - 1/k tends to for the uniform prior; exact tools give the number itself.

    .. math:: V_{NS} - \frac1k \sim (p - s) \, \frac{\mu_k}{\sqrt{k n}}, \qquad p \ge \frac1k

    Parameters
    ----------
    channel : KRRChannel
    n : int, much larger than k log k
        Relative distance to the limit O(sqrt(k/n)), O(1/n) for k = 2.

    Raises
    ------
    UnsupportedError
        For p below 1/k.

    Examples
    --------
    >>> round(normal_limit(KRRChannel.of(2, 0.9), n=200), 4)  # exact: 0.5225 - 0.5
    0.0226

    Source
    ------
    Central limit theorem and uniform integrability; compare `published_limit`.
    """
    people = whole("n", n, least=1)
    return _contrast(channel) * normal_maximum(channel.k) / math.sqrt(channel.k * people)


def published_limit(channel: KRRChannel, *, n: int) -> float:
    r"""The same in the form and with the constant of the paper, for comparison.

    .. math:: (p - s) f \sqrt{\frac{\ln k}{k n}}, \qquad f = 1 \text{ in print; the limit has } f = \mu_k/\sqrt{\ln k}

    Source
    ------
    Jurado, Gonze, Alvim, Palamidessi (2023), CSF, equations 15 and 16.
    """
    people = whole("n", n, least=1)
    return _contrast(channel) * math.sqrt(math.log(channel.k) / (channel.k * people))


def _contrast(channel: KRRChannel) -> float:
    if channel.keep < channel.lie:
        raise UnsupportedError("The limit needs p >= 1/k; below, the emptiest bin decides and the constant differs.")
    return channel.contrast


def chernoff_bound(advantage: Matrix, pmf: Reals, n: int) -> float:
    r"""Upper bound on the additive leakage under an i.i.d. prior; exponentially small where one guess is best.

    .. math:: E \left( \max_a \langle H_a, z / n \rangle \right)^+ \le \sum_a \max_v H_{a v}^+ \, e^{-n I_a},
              \qquad I_a = \sup_{t \ge 0} - \ln \sum_v q_v e^{t H_{a v}}

    Parameters
    ----------
    advantage : float array (actions, kinds), H
        Advantage of each other action over the best one without reports, per kind of report.
    pmf : float array (kinds,), q
    n : int

    Notes
    -----
    Any t gives a bound, so an inexact maximum over t costs tightness, never truth.

    Examples
    --------
    >>> chernoff_bound(np.array([[-1.0, 0.0]]), np.array([0.5, 0.5]), 10)  # no report changes the guess
    0.0
    """
    return float(sum(max(0.0, row.max()) * math.exp(-n * _chernoff_exponent(row, pmf)) for row in advantage))


def _chernoff_exponent(row: Reals, pmf: Reals) -> float:
    """I_a: the Chernoff exponent of one action, infinite where no report speaks for it."""
    from scipy.optimize import minimize_scalar
    from scipy.special import logsumexp

    if row.max() <= 0.0:
        return math.inf
    top = 1.0 / float(np.abs(row).max())
    best = 0.0
    for _ in range(60):  # the exponent is concave in t: double the interval until its end is past the peak
        found = minimize_scalar(
            lambda t: float(logsumexp(t * row, b=pmf)),
            bounds=(0.0, top),
            method="bounded",
            options={"xatol": 1e-9 * top},
        )
        best = max(best, -float(found.fun))
        if found.x < 0.9 * top:
            break
        top *= 4.0
    return best

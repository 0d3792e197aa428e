"""Additive leakage, the posterior less the prior vulnerability: a value between two ends, and its method."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dovetail.core.channel import KRRChannel, Matrix
from dovetail.core.checks import whole
from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.core.special import Reals

ULP = 2.0**-52
METHODS = ("closed form", "exact sum", "enumerated", "sampled", "bracket")  # from the firmest to the loosest


@dataclass(frozen=True)
class AdditiveLeakage:
    """Posterior minus prior vulnerability: lower <= truth <= upper.

    Parameters
    ----------
    value, lower, upper : float, at least 0
        For "sampled" the ends hold at the stated confidence, for "bracket" `value` is the upper end.
    method : str
        One of `METHODS`.
    """

    value: float
    lower: float
    upper: float
    method: str

    @classmethod
    def from_error(cls, value: float, error: float, method: str) -> AdditiveLeakage:
        """A leakage of `value`, known to within `error`.

        >>> AdditiveLeakage.from_error(0.5, 0.25, "exact sum").lower
        0.25
        """
        return cls(value, max(0.0, value - error), value + error, method)

    @classmethod
    def from_bracket(cls, lower: float, upper: float) -> AdditiveLeakage:
        """Only two ends are known; the value to quote is the upper one."""
        return cls(upper, lower, upper, "bracket")

    def scale(self, factor: float) -> AdditiveLeakage:
        """The same in other units; `factor` is at least 0.

        >>> AdditiveLeakage.from_error(0.5, 0.25, "exact sum").scale(2.0).value
        1.0
        """
        return AdditiveLeakage(factor * self.value, factor * self.lower, factor * self.upper, self.method)

    @property
    def error(self) -> float:
        """Distance from `value` to the farther end."""
        return max(self.upper - self.value, self.value - self.lower)


NO_LEAKAGE = AdditiveLeakage(0.0, 0.0, 0.0, "closed form")


def weakest_method(*parts: AdditiveLeakage) -> str:
    """The least firm of the methods of `parts`.

    >>> weakest_method(NO_LEAKAGE, AdditiveLeakage.from_bracket(0.0, 0.5))
    'bracket'
    """
    return max((part.method for part in parts), key=METHODS.index)


# Leakage for large n: of order 1/sqrt(n) where several guesses are best, exponentially small where one is.


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
    r"""Limit of V_NS - 1/k for the uniform prior; exact tools give the number itself.

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


# Monte Carlo estimate of additive leakage with a confidence interval, where no exact sum is in reach.


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
    r"""Threshold at which draws are cut, and a bound on what that takes from their mean.

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

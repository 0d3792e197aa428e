r"""Sums of independent privacy losses by one tilted Fourier transform, its errors charged.

Under the tilted law the losses around the epsilon in question are the usual ones, so that rounding is small beside
delta itself, however small delta is:

.. math:: \Pr[S = s] = e^{K(\theta) - \theta s} \Pr_\theta[S = s], \qquad
          K(\theta) = \sum_r t_r \log E[e^{\theta L_r}].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from dovetail.account.composition.privacy_loss import PrivacyLossDistribution
from dovetail.core.errors import UnsupportedError
from dovetail.core.numeric.special import Reals

OUTSIDE = 1e-12  # tilted mass that may lie outside the transform
LONGEST = 2**24
UNIT = 2.0**-53

Terms = Sequence[tuple[PrivacyLossDistribution, int]]


@dataclass(frozen=True, eq=False)
class ComposedPLD:
    """The tilted law of a sum of losses on its grid, good for epsilons near the one it was made for.

    Parameters
    ----------
    theta, log_moment : float
        The tilt and K(theta).
    start, step : float, nats
    masses : float array (points,)
        Tilted law, total about 1.
    noise : float
        Bound on the Euclidean error of `masses`: rounding of the transforms.
    infinity : float
        Mass of the sum at infinity.
    error : float
        Relative error of delta that the rounds bring in, all of them together.
    """

    theta: float
    log_moment: float
    start: float
    step: float
    masses: Reals
    noise: float
    infinity: float
    error: float

    @property
    def middle(self) -> float:
        """The middle of the window: about the epsilon it was made for."""
        return self.start + 0.5 * self.step * self.masses.size

    def upper(self, epsilon: float) -> float:
        """At least delta(epsilon) of the sum."""
        finite, doubt = self._finite(epsilon)
        return min(1.0, (finite + doubt) * (1.0 + self.error) + self.infinity)

    def lower(self, epsilon: float) -> float:
        """At most delta(epsilon) of the sum, what lies at infinity left out."""
        if self.error >= 1.0:  # rounding may be all there is
            return 0.0
        finite, doubt = self._finite(epsilon)
        return max(0.0, finite - doubt) * (1.0 - self.error)

    def _finite(self, epsilon: float) -> tuple[float, float]:
        """What the finite losses give, and what rounding and wrapping round may have changed."""
        first = max(0, math.floor((epsilon - self.start) / self.step) + 1)
        gap = self.start - epsilon + self.step * np.arange(first, self.masses.size)
        weights = -np.expm1(-gap) * np.exp(-self.theta * gap)
        scale = math.exp(min(self.log_moment - self.theta * epsilon, 700.0))
        rounding = self.noise * float(np.linalg.norm(weights)) + 1e-12 * float(weights @ self.masses[first:])
        return scale * float(weights @ self.masses[first:]), scale * (rounding + 2.0 * OUTSIDE)


def convolve_plds(terms: Terms, *, theta: float) -> ComposedPLD:
    r"""The law of the sum of t_r independent losses of each law r, tilted by theta >= 0.

    The window holds all but `OUTSIDE` of the tilted law on each side, by Chernoff's bound; what wraps round it is
    charged. For `upper` a sum above the window may count too little, by e^(K - theta epsilon) times the tilted mass
    there at most; for `lower` one that wraps in from either side may count too much, by as much at most.

    Raises
    ------
    UnsupportedError
        When the transform would be longer than `LONGEST`.
    """
    from scipy.fft import irfft, next_fast_len, rfft

    step = terms[0][0].step
    spread = max(math.sqrt(_cumulants(terms, theta)[2]), step)
    z = math.sqrt(2.0 * math.log(1.0 / OUTSIDE)) / spread
    high, low = (_reach(terms, theta, sign * z) for sign in (1.0, -1.0))
    origin = sum(times * pld.start for pld, times in terms)
    first = math.floor((low - origin) / step)
    size = next_fast_len(max(math.ceil((high - low) / step) + 2, *(pld.masses.size for pld, _ in terms)), real=True)
    if size > LONGEST:
        raise UnsupportedError(
            f"The sum of losses needs {size:,} grid points, more than {LONGEST:,}: split the rounds."
        )
    spectrum = reduce(np.multiply, (rfft(_tilted(pld, theta), size) ** times for pld, times in terms))
    masses = np.roll(irfft(spectrum, size), -(first % size))
    rounds = sum(times for _, times in terms)
    return ComposedPLD(
        theta=theta,
        log_moment=_cumulants(terms, theta)[0],
        start=origin + first * step,
        step=step,
        masses=np.maximum(masses, 0.0),
        noise=16.0 * UNIT * (rounds + 1) * math.log2(size),
        infinity=sum(times * pld.infinity for pld, times in terms),
        error=math.expm1(sum(times * math.log1p(pld.error) for pld, times in terms)),
    )


def convolve_near(terms: Terms, *, delta: float, epsilon: float = math.inf) -> ComposedPLD:
    """The sum tilted until its mean is about `epsilon`, or else Chernoff's bound at its mean is about `delta`."""
    high = 1.0
    while _short(terms, high, delta, epsilon) and high * terms[0][0].step < 1.0:
        high *= 2.0
    low = 0.5 * high if high > 1.0 else 0.0
    while high - low > 0.02 * high + 1e-9:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _short(terms, middle, delta, epsilon) else (low, middle)
    return convolve_plds(terms, theta=high)


def _short(terms: Terms, theta: float, delta: float, epsilon: float) -> bool:
    """Whether K' < epsilon and K - theta K' > log delta."""
    value, mean, _ = _cumulants(terms, theta)
    return mean < epsilon and value - theta * mean > math.log(delta)


def shift_quantile(terms: Terms, shifts: Sequence[Reals], beta: float) -> float:
    r"""What the sum of all shifts exceeds with probability at most `beta`, by Chernoff's bound.

    .. math:: w = \min_{u > 0} \frac{\log(1/\beta) + \sum_r t_r \log E[e^{u Z_r}]}{u}

    Parameters
    ----------
    shifts : float arrays, one for each law, nats
        What each of its losses exceeds the truth by.
    """
    from scipy.special import logsumexp

    rounds, step = sum(times for _, times in terms), terms[0][0].step
    rates = np.geomspace(1e-2 / (rounds * step), 1e4 / step, 60)
    growth = np.zeros(rates.size)
    for (pld, times), shift in zip(terms, shifts, strict=True):
        growth += times * logsumexp(np.outer(rates, shift), b=pld.masses, axis=1)
    surely = sum(times * float(shift.max()) for (_, times), shift in zip(terms, shifts, strict=True))
    return min(surely, float(np.min((growth - math.log(beta)) / rates)))


def _cumulants(terms: Terms, theta: float) -> tuple[float, float, float]:
    """K and its first two derivatives."""
    total = np.zeros(3)
    for pld, times in terms:
        tilted, losses = _tilted(pld, theta), pld.losses
        mean = float(tilted @ losses)
        total += times * np.array([_log_moment(pld, theta), mean, float(tilted @ (losses - mean) ** 2)])
    return float(total[0]), float(total[1]), float(total[2])


def _log_moment(pld: PrivacyLossDistribution, theta: float) -> float:
    from scipy.special import logsumexp

    return float(logsumexp(theta * pld.losses, b=pld.masses))


def _tilted(pld: PrivacyLossDistribution, theta: float) -> Reals:
    weights = theta * pld.losses
    top = float(np.max(weights[pld.masses > 0.0]))
    tilted: Reals = pld.masses * np.exp(np.minimum(weights - top, 0.0))
    return np.asarray(tilted / tilted.sum())


def _reach(terms: Terms, theta: float, z: float) -> float:
    """Where all but `OUTSIDE` of the tilted sum is below (z > 0) or above (z < 0), by Chernoff's bound."""
    growth = sum(times * (_log_moment(pld, theta + z) - _log_moment(pld, theta)) for pld, times in terms)
    return (growth - math.log(OUTSIDE)) / z

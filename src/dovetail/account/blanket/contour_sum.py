r"""The expected positive part of a sum of independent copies, by a sum over a line in the complex plane.

With N normal of variance eta^2, h a step and L = 2 pi / h, Poisson's summation formula says, for every theta > 0,

.. math:: \frac{h}{2 \pi} \sum_{j} \frac{M(z_j)^n e^{\eta^2 z_j^2 / 2}}{z_j^2}
          = \sum_k e^{\theta k L}\, E[(S + N - k L)_+], \qquad z_j = \theta + i j h, \quad M(z) = E[e^{z G}]

Every term on the right is at least 0, and noise only adds to the one at k = 0: so the sum is above E[S_+] whatever
the step is. And s_+ is at least E[(s + N)_+] less eta^2 times the density of N at s: the same sum with 1/z^2 - eta^2
instead of 1/z^2, less what stands at the other k, is below it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dovetail.core.bracket import Bracket
from dovetail.core.numeric.special import Reals

NOISE_SHARES = (4e-6, 4e-8)  # eta^2 as a share of the variance of the tilted sum: the first that is sharp enough
SHARP = 1e-5  # relative gap in epsilon, about
ALIAS = 1e-7  # share of the answer that other k may add
REACH = 5.5  # the nodes end where the noise is e^(-REACH^2 / 2)
STEEPEST = 30.0  # largest exponent of a tilt
MOST_WORK = 1 << 19  # nodes times atoms
ULP = 2.0**-48  # the rounding of a sum over 32 atoms, and more than that of a few operations
_SHARES = np.array([0.5, 0.8, 0.95])  # of theta, by which the tilt is lessened to bound what stands at k < 0


class _Tilted(NamedTuple):
    """Masses p of the values that are not 0, tilted by theta; log M(theta)."""

    theta: float
    values: Reals
    p: Reals
    kappa: float
    doubt: float  # of kappa


def contour_sum(values: Reals, masses: Reals, n: int, theta: float, *, uncertain: Reals) -> Bracket | None:
    r"""Ends of E[(G_1 + .. + G_n)_+], or None where they would be far apart or take long.

    Parameters
    ----------
    values, masses : float arrays (atoms,)
        Masses sum to 1.
    n : int, at least 2
    theta : float, above 0
        Near the saddle point; every one is valid.
    uncertain : float array (atoms,), at least 0
        The lower end holds also for values that are smaller by so much.

    Notes
    -----
    The time does not depend on n. Roundings of M are charged as n times what a sum of atoms may be off, which grows
    with sqrt(n) only: 1e-8 of the answer at n = 1e12.
    """
    found = _tilted(values, masses, theta)
    if found is None:
        return None
    mean = float(found.p @ found.values)
    variance = float(found.p @ found.values**2) - mean**2
    if not variance > 0.0:
        return None
    spread = math.sqrt(n * variance)
    about = 1.0 / (theta * (1.0 + theta * spread * 2.5))  # of the sum over nodes: E_theta[S_+ e^(-theta S)]
    period = _period(found, n, spread, ALIAS * about)
    if period is None:
        return None
    for share in NOISE_SHARES:
        ends = _ends(found, n, math.sqrt(share) * spread, *period)
        if ends is None:
            return None
        gathered = n * float(masses @ (uncertain * np.exp(theta * values))) * math.exp(-found.kappa)
        low = max(0.0, ends[0] - gathered * (1.0 + ULP))  # E[D; S > 0] <= E[D e^(theta S)], D what is uncertain
        if ends[1] - low <= SHARP * (1.0 + (theta * spread) ** 2) * ends[1]:
            scale, off = n * found.kappa, n * found.doubt + ULP
            return Bracket(low * math.exp(scale - off), ends[1] * math.exp(scale + off))
    return None


def _ends(found: _Tilted, n: int, eta: float, period: float, aliased: float) -> tuple[float, float] | None:
    """Ends of E_theta[S_+ e^(-theta S)] with noise of this standard deviation; None where that takes long."""
    step, theta = 2.0 * math.pi / period, found.theta
    count = math.ceil(REACH / (eta * step)) + 1
    if count * found.values.size > MOST_WORK:
        return None
    u, logs, doubt = _transform(found, n, step, count)
    square = theta**2 - u**2 + 2j * theta * u  # z^2
    size = np.exp(logs.real + 0.5 * eta**2 * square.real)
    turned = np.exp(1j * (logs.imag + 0.5 * eta**2 * square.imag)) * size
    weight = np.full(count, step / math.pi)
    weight[0] *= 0.5
    inverse = 1.0 / square
    high = float(weight @ (turned * inverse).real)
    low = high - eta**2 * float(weight @ turned.real)
    charge = weight * size * (doubt + ULP)
    end = float(u[-1])
    left = math.exp(0.5 * eta**2 * (theta**2 - end**2)) / (math.pi * end * eta**2)  # of the nodes beyond the last
    far = np.abs(inverse)
    high += float(charge @ far) + left / end**2
    low -= float(charge @ (far + eta**2)) + left * (1.0 / end**2 + eta**2) + aliased
    return low, high


def _tilted(values: Reals, masses: Reals, theta: float) -> _Tilted | None:
    """The tilted law; None where the tilt is too steep."""
    used = (values != 0.0) & (masses > 0.0)
    x, m = theta * values[used], masses[used]
    if not np.abs(x).max() <= STEEPEST:
        return None
    less, mass = m * np.expm1(x), m * np.exp(x)
    total = 1.0 + float(less.sum())
    if not total > 1e-3:
        return None
    doubt = ULP * float(np.abs(less).sum() + mass @ np.abs(x)) / total
    return _Tilted(theta, values[used], mass / total, math.log1p(float(less.sum())), doubt)


def _period(law: _Tilted, n: int, spread: float, most: float) -> tuple[float, float] | None:
    """L, and what all k but 0 add at most, tilted; as a rule at most `most`.

    From Chernoff's bound, for every t > 0: e^(theta x) E[(S - x)_+] <= M(t)^n e^((theta - t) x) / (e t).
    """
    period = 0.0
    found = []
    for sign, shifts in ((1.0, np.array([4.0, 8.0]) / spread), (-1.0, _SHARES * law.theta)):
        tilts = sign * shifts
        if np.abs(tilts[:, None] * law.values).max() > 2.0 * STEEPEST:
            return None
        grown = n * np.log1p((law.p * np.expm1(tilts[:, None] * law.values)).sum(axis=1))
        logs = grown - np.log(math.e * (law.theta + tilts)) + 1e-6
        found.append((shifts, logs))
        period = max(period, float(np.min((logs - math.log(0.5 * most)) / shifts)))
    if not 0.0 < period < math.inf:
        return None
    far = [float(np.min(logs - shifts * period - np.log(-np.expm1(-shifts * period)))) for shifts, logs in found]
    return period, math.fsum(math.exp(min(log, 700.0)) for log in far)


def _transform(law: _Tilted, n: int, step: float, count: int) -> tuple[Reals, NDArray[np.complex128], Reals]:
    """The nodes u_j = j h, n log(M(z_j) / M(theta)), and by which share M(z_j)^n may be off, (count,).

    Angles are sums of a coarse and a fine one: (1 + a)(1 + b) - 1 = a + b + a b keeps what is small.
    """
    fine = 1 << max(1, math.ceil(0.5 * math.log2(count)))
    rows = -(-count // fine)
    one = _turns(step * np.arange(fine)[:, None] * law.values)
    many = _turns(step * fine * np.arange(rows)[:, None] * law.values)
    weighted = law.p * (1.0 + many)
    total = ((law.p * many).sum(axis=1)[:, None] + weighted @ one.T).ravel()[:count]  # sum of p (e^(i u v) - 1)
    u = step * np.arange(count)
    excess = 2.0 * total.real + total.real**2 + total.imag**2
    real = 0.5 * np.log1p(np.maximum(excess, -1.0 + 1e-300))
    imaginary = np.arctan2(total.imag, 1.0 + total.real)
    rough = ULP * float(law.p @ (np.abs(law.values) * (1.0 + law.theta * np.abs(law.values)))) * u
    share = n * (rough / np.exp(real) + ULP * (np.abs(real) + np.abs(imaginary)))
    return np.asarray(u), n * (real + 1j * imaginary), np.asarray(np.expm1(np.minimum(share, 700.0)))


def _turns(angles: Reals) -> NDArray[np.complex128]:
    """e^(i angle) - 1."""
    half = np.sin(0.5 * angles)
    return np.asarray(-2.0 * half**2 + 1j * np.sin(angles))

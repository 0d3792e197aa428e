r"""What noise of a long trace is, and its exact loss: f I + p y y' + q Sigma for one secret location.

D + G is B = (1 + q) Sigma + f I and two matrices of rank one, so that two systems with B give the loss, and a third
one, by the diagonal of the inverse of a Toeplitz matrix, that of every adversary who knows one other location.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from dovetail.core.bracket import Bracket
from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.trace.kernels.kernel import Floats
from dovetail.trace.loss.adversaries import MOST_LOST, TOLD
from dovetail.trace.mechanisms.regular_prior import RegularPrior
from dovetail.trace.sampler import standard_normals

_UNIT = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class RegularNoise:
    """Noise f I + p y y' + q Sigma, |y| = 1.

    Parameters
    ----------
    prior : RegularPrior
    place : int
        Of the secret.
    white, rank_one, shared : float
        f, p and q.
    direction : float array (n,)
    """

    prior: RegularPrior
    place: int
    white: float
    rank_one: float
    shared: float
    direction: Floats

    def draw(self, rng: Entropy) -> Floats:
        """One draw of the noise (n,)."""
        n = self.prior.n
        drawn = sqrt(self.white) * standard_normals(n, rng)
        drawn += sqrt(self.rank_one) * float(standard_normals(1, rng)[0]) * self.direction
        return drawn if self.shared == 0.0 else drawn + sqrt(self.shared) * self.prior.draw(rng)

    def variances(self) -> Floats:
        """Variance at each point (n,)."""
        return np.asarray(self.white + self.shared + self.rank_one * self.direction**2)

    def matrix(self) -> Floats:
        """The covariance (n, n), for short traces."""
        n = np.arange(self.prior.n)
        whole = self.shared * self.prior.column[np.abs(n[:, None] - n[None, :])]
        white = self.white * np.eye(len(n))
        return np.asarray(whole + white + self.rank_one * np.outer(self.direction, self.direction))


@dataclass(frozen=True, eq=False)
class _Forms:
    """V' B^-1 V for V = (c, y), between K and K + wide I; B^-1 V, and the error of each of its columns in norm."""

    forms: Floats
    wide: float
    solved: Floats
    wrong: float


def regular_loss(believed: RegularPrior, noise: RegularNoise) -> Bracket:
    """J against an adversary with this prior: a' (D + G)^-1 a with a = c and D = Sigma* - c c'."""
    found = _forms(believed, noise)
    ends = [_explained(found.forms + add * np.eye(2), noise.rank_one) for add in (-found.wide, found.wide)]
    if ends[1] >= 1.0:
        raise UnsupportedError("the loss of this noise is open in doubles; ask for a larger floor.")
    low, high = (max(0.0, end) for end in ends)
    return Bracket(low / (1.0 - low), high / (1.0 - high))


def _forms(believed: RegularPrior, noise: RegularNoise) -> _Forms:
    """With U = B^-1 V up to R = V - B U: V' B^-1 V = V'U + U'R + R' B^-1 R, and the last is at most |R|^2 / f."""
    together = RegularPrior(believed.column + noise.shared * noise.prior.column)
    vectors = np.column_stack([believed.row(noise.place), noise.direction])
    parts = [together.solve(column, ridge=noise.white) for column in vectors.T]
    solved, left = (np.column_stack([part[i] for part in parts]) for i in (0, 1))
    forms = vectors.T @ solved + solved.T @ left
    size = float(np.linalg.norm(solved) * np.linalg.norm(vectors))
    worst = float(np.linalg.norm([part[2] for part in parts]))
    wide = worst**2 / noise.white + float(np.linalg.norm(solved)) * (worst - float(np.linalg.norm(left)))
    return _Forms(0.5 * (forms + forms.T), wide + 64.0 * _UNIT * size, solved, worst / noise.white)


def _explained(forms: Floats, rank_one: float) -> float:
    """c' (B + p y y')^-1 c."""
    return float(forms[0, 0] - rank_one * forms[0, 1] ** 2 / (1.0 + rank_one * forms[1, 1]))


def regular_sighting(noise: RegularNoise) -> float:
    r"""Upper bound on J when the true location at the worst other time t is known too.

    .. math:: J - 2 \rho h + \rho^2 e + (h - \rho e)^2 / l, \quad \rho = c_t / D_{tt}, \quad h = (D M^{-1} c)_t, \quad
              e = (D M^{-1} D)_{tt}, \quad l = D_{tt} - e, \quad M = D + G

    With M_0 = M - p y y' and H = f I + q Sigma: D M_0^{-1} x = x - H M_0^{-1} x, D - D M_0^{-1} D = H - H M_0^{-1} H.
    """
    prior, found = noise.prior, _forms(noise.prior, noise)
    loss = regular_loss(prior, noise).upper
    column, direction = prior.row(noise.place), noise.direction
    cc, cy, yy = found.forms[0, 0], found.forms[0, 1], found.forms[1, 1]
    rest = 1.0 - cc
    share, flat = noise.shared / (1.0 + noise.shared), noise.white / (1.0 + noise.shared)  # H = flat I + share B
    together = RegularPrior((1.0 + noise.shared) * prior.column)
    inverse, open_end = together.inverse_diagonal(ridge=noise.white)
    read_c = flat * found.solved[:, 0] + share * column  # H B^-1 c
    read_y = flat * found.solved[:, 1] + share * direction + read_c * cy / rest  # H M0^-1 y
    kept_c, kept_y = column - read_c / rest, direction - read_y  # D M0^-1 c, D M0^-1 y
    told_y = yy + cy**2 / rest
    weight = noise.rank_one / (1.0 + noise.rank_one * told_y)
    half = kept_c - weight * (cy / rest) * kept_y
    white_part = flat * (1.0 - 2.0 * share) + share * (1.0 - share) * (1.0 + noise.shared + noise.white)
    left = white_part - flat**2 * inverse - read_c**2 / rest + weight * kept_y**2
    wrong = flat * found.wrong + 16.0 * _UNIT
    error = flat**2 * open_end + 2.0 * np.abs(read_c) * wrong / rest + read_c**2 * found.wide / rest**2
    error += 2.0 * weight * np.abs(kept_y) * wrong * (1.0 + abs(cy) / rest) + 16.0 * _UNIT * (white_part + 1.0)
    others = np.arange(prior.n) != noise.place
    before = 1.0 - column**2
    if not (error[others] <= MOST_LOST * left[others]).all() or (before[others] < TOLD).any():
        return float("inf")
    half_error = wrong * (1.0 + 1.0 / rest) * (1.0 + weight * abs(cy) / rest)
    with np.errstate(divide="ignore", invalid="ignore"):
        share_seen = column / before
        told = before - left  # d' M^-1 d
        plain = loss - 2.0 * share_seen * half + share_seen**2 * told
        blur = np.abs(share_seen) * (2.0 * half_error + np.abs(share_seen) * error)
        across = np.abs(half - share_seen * told) + half_error + np.abs(share_seen) * error
        found_t = plain + blur + across**2 / (left - error)
    return float(found_t[others].max())

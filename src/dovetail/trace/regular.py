"""Noise for one secret location of a long trace: f I + p y y' + q Sigma, with y the optimal direction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.sparse.linalg import LinearOperator, cg

from dovetail.core.certified import Bracket
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.trace.descent import Budget
from dovetail.trace.kernels import Floats, Kernel
from dovetail.trace.loss import MOST_LOST, TOLD
from dovetail.trace.mechanisms import standard_normals

# The prior of a long trace at equal steps, never formed: products by circulant embedding, conjugate gradients.
#
# A Toeplitz matrix of n rows is the corner of a circulant one of 2n rows, which the Fourier transform diagonalizes; a
# circulant matrix of n rows preconditions.
#
# Source
# ------
# Chan, Ng (1996), Conjugate gradient methods for Toeplitz systems, SIAM Review 38(3); Gohberg, Semencul (1972) for
# the
# diagonal of the inverse.


_TOLERANCE, _MOST_STEPS = 1e-13, 5000


@dataclass(frozen=True, eq=False)
class RegularPrior:
    """The prior of n locations at equal steps, as products.

    Parameters
    ----------
    column : float array (n,)
        Correlations with the first location.
    """

    column: Floats

    @classmethod
    def of(cls, kernel: Kernel, n: int, *, step: float = 1.0) -> RegularPrior:
        """The prior of a kernel, variance 1."""
        return cls(kernel.correlation(np.arange(n, dtype=np.float64) * step))

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.column)

    def row(self, place: int) -> Floats:
        """Correlations with the location at a place."""
        return self.column[np.abs(np.arange(self.n) - place)]

    def product(self) -> Callable[[Floats], Floats]:
        """x -> Sigma x."""
        size = next_fast_len(2 * self.n - 1, real=True)
        ring = np.zeros(size)
        ring[: self.n] = self.column
        ring[size - self.n + 1 :] = self.column[:0:-1]
        spectrum = rfft(ring)

        def multiply(x: Floats) -> Floats:
            return np.asarray(irfft(rfft(x, size) * spectrum, size)[: self.n])

        return multiply

    def solve(self, right: Floats, *, ridge: float) -> tuple[Floats, Floats, float]:
        """x with (Sigma + ridge I) x = right, what is left of it, and a bound on the norm of what truly is."""
        multiply = self.product()
        folded = np.concatenate([self.column[: self.n // 2 + 1], self.column[1 : self.n - self.n // 2][::-1]])
        spectrum = np.maximum(rfft(folded).real, 0.0) + ridge
        shape = (self.n, self.n)
        matrix = LinearOperator(shape, matvec=lambda x: multiply(x) + ridge * x, dtype=np.float64)
        near = LinearOperator(shape, matvec=lambda x: irfft(rfft(x) / spectrum, self.n), dtype=np.float64)
        found, failed = cg(matrix, right, rtol=_TOLERANCE, maxiter=_MOST_STEPS, M=near)
        left = right - multiply(found) - ridge * found
        size = float(np.linalg.norm(left))
        if failed and size > 1e-8 * float(np.linalg.norm(right)):
            raise UnsupportedError(f"conjugate gradients did not end in {_MOST_STEPS} steps; ask for a larger floor.")
        lost = 16.0 * np.log2(2.0 * self.n) * _UNIT * (float(np.abs(self.column).sum()) * 2.0 + ridge)
        return np.asarray(found), left, size + lost * float(np.linalg.norm(found))

    def inverse_diagonal(self, *, ridge: float) -> tuple[Floats, float]:
        r"""Diagonal of (Sigma + ridge I)^{-1} from its first column x, and a bound on its error.

        .. math:: (B^{-1})_{ii} = \frac1{x_0} \sum_{j \le i} (x_j^2 - x_{n-j}^2), \quad x_n = 0
        """
        first = np.zeros(self.n)
        first[0] = 1.0
        x, _, left = self.solve(first, ridge=ridge)
        mirrored = np.concatenate([[0.0], x[:0:-1]])
        found = np.cumsum(x * x - mirrored * mirrored) / x[0]
        wrong = left / ridge  # of x, in its norm
        size = float(np.linalg.norm(x))
        return found, float((4.0 * wrong * (size + wrong) + found.max() * wrong + self.n * _UNIT * size**2) / x[0])

    def draw(self, rng: Entropy) -> Floats:
        """One draw of N(0, Sigma), by embedding it into a periodic trace."""
        size, spectrum = self._embedded()
        waves = rfft(standard_normals(size, rng)) * np.sqrt(np.maximum(spectrum, 0.0))
        return np.asarray(irfft(waves, size)[: self.n])

    def check_draw(self) -> None:
        """Refuse a prior that no draw can be made of."""
        self._embedded()

    def _embedded(self) -> tuple[int, Floats]:
        """Length and spectrum of a periodic trace whose beginning has this prior."""
        size = next_fast_len(4 * self.n, real=True)
        half = size // 2
        lags = np.arange(size)
        column = np.zeros(half + 1)
        column[: min(self.n, half + 1)] = self.column[: half + 1]
        spectrum = rfft(column[np.minimum(lags, size - lags)]).real
        if spectrum.min() < -1e-6 * spectrum.max():
            raise UnsupportedError(
                "this kernel reaches over the whole trace: noise from it cannot be drawn for so many points; use "
                "--noise full or a shorter trace."
            )
        return size, np.asarray(spectrum)


# What noise of a long trace is, and its exact loss: f I + p y y' + q Sigma for one secret location.
#
# D + G is B = (1 + q) Sigma + f I and two matrices of rank one, so that two systems with B give the loss, and a third
# one, by the diagonal of the inverse of a Toeplitz matrix, that of every adversary who knows one other location.


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


@dataclass(frozen=True, eq=False)
class RegularDesign:
    """Noise for one secret location of a long trace, and its loss.

    Parameters
    ----------
    noise : RegularNoise
    loss : Bracket
        J, between what the conjugate gradients leave open.
    """

    noise: RegularNoise
    loss: Bracket


def design_regular(prior: RegularPrior, place: int, budget: Budget, *, name: str = "mixed") -> RegularDesign:
    """`full` or `mixed` noise for one secret location of a long trace.

    Parameters
    ----------
    prior : RegularPrior
    place : int
    budget : Budget
    name : "full" or "mixed"

    Notes
    -----
    O(n log n) for each step of conjugate gradients; a few dozen steps.
    """
    if name not in ("full", "mixed"):
        raise ParameterError(f"`noise` must be full or mixed for a trace of {prior.n:,} points, got {name!r}.")
    if not 0 <= place < prior.n:
        raise ParameterError(f"`secret` must lie inside the trace, points 0 to {prior.n - 1}, got {place}.")
    column = prior.row(place)
    ridge = budget.total - (budget.n - 1) * budget.white
    y, rest, left = prior.solve(column, ridge=ridge)
    direction = y / np.linalg.norm(y)
    if name == "mixed":
        half = 0.5 * budget.free
        noise = RegularNoise(prior, place, budget.white, half, half / budget.n, direction)
        return RegularDesign(noise, regular_loss(prior, noise))
    # J* = q / (1 - q), q = c' (Sigma + w I)^-1 c, between c'y + y'r and that and |r|^2 / w
    q = float(column @ y + y @ rest)
    open_end = left**2 / ridge + float(np.linalg.norm(y)) * (left - float(np.linalg.norm(rest))) + 1e-12
    low, high = max(0.0, q - open_end), min(1.0 - 1e-15, q + open_end)
    noise = RegularNoise(prior, place, budget.white, budget.free, 0.0, direction)
    return RegularDesign(noise, Bracket(low / (1.0 - low), high / (1.0 - high)))

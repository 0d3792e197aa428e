r"""One secret location in a long trace at equal steps: products by circulant embedding, conjugate gradients.

The prior is never formed. A Toeplitz matrix of n rows is the corner of a circulant one of 2n rows, which the Fourier
transform diagonalizes; a circulant matrix of n rows preconditions. For the noise G = f I + p y y' + q Sigma, with y
the optimal direction, D + G is (1 + q) Sigma + f I plus two matrices of rank one: two systems give the exact loss.

Source
------
Chan, Ng (1996), Conjugate gradient methods for Toeplitz systems, SIAM Review 38(3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.sparse.linalg import LinearOperator, cg

from dovetail.core.bracket import Bracket
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.trace.kernels.kernel import Floats, Kernel
from dovetail.trace.mechanisms.design import Budget
from dovetail.trace.sampler import standard_normals

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

    def solve(self, right: Floats, *, ridge: float) -> tuple[Floats, float]:
        """x with (Sigma + ridge I) x = right, and the norm of what is left."""
        multiply = self.product()
        folded = np.concatenate([self.column[: self.n // 2 + 1], self.column[1 : self.n - self.n // 2][::-1]])
        spectrum = np.maximum(rfft(folded).real, 0.0) + ridge
        shape = (self.n, self.n)
        matrix = LinearOperator(shape, matvec=lambda x: multiply(x) + ridge * x, dtype=np.float64)
        near = LinearOperator(shape, matvec=lambda x: irfft(rfft(x) / spectrum, self.n), dtype=np.float64)
        found, failed = cg(matrix, right, rtol=_TOLERANCE, maxiter=_MOST_STEPS, M=near)
        left = float(np.linalg.norm(right - multiply(found) - ridge * found))
        if failed and left > 1e-8 * float(np.linalg.norm(right)):
            raise UnsupportedError(f"conjugate gradients did not end in {_MOST_STEPS} steps; ask for a larger floor.")
        return np.asarray(found), left

    def draw(self, rng: Entropy) -> Floats:
        """One draw of N(0, Sigma), by embedding it into a periodic trace."""
        size = next_fast_len(4 * self.n, real=True)
        half = size // 2
        lags = np.arange(size)
        column = np.zeros(half + 1)
        column[: min(self.n, half + 1)] = self.column[: half + 1]
        spectrum = rfft(column[np.minimum(lags, size - lags)]).real
        if spectrum.min() < -1e-6 * spectrum.max():
            raise UnsupportedError("this kernel reaches over the whole trace; a periodic draw does not have its law.")
        waves = rfft(standard_normals(size, rng)) * np.sqrt(np.maximum(spectrum, 0.0))
        return np.asarray(irfft(waves, size)[: self.n])


@dataclass(frozen=True, eq=False)
class RegularDesign:
    """Noise f I + p y y' + q Sigma, |y| = 1, for one secret location.

    Parameters
    ----------
    prior : RegularPrior
    place : int
    white, rank_one, shared : float
        f, p and q.
    direction : float array (n,)
    loss : Bracket
        J, between what the conjugate gradients leave open.
    """

    prior: RegularPrior
    place: int
    white: float
    rank_one: float
    shared: float
    direction: Floats
    loss: Bracket

    def draw(self, rng: Entropy) -> Floats:
        """One draw of the noise (n,)."""
        n = self.prior.n
        drawn = sqrt(self.white) * standard_normals(n, rng)
        drawn += sqrt(self.rank_one) * float(standard_normals(1, rng)[0]) * self.direction
        return drawn if self.shared == 0.0 else drawn + sqrt(self.shared) * self.prior.draw(rng)


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
    y, left = prior.solve(column, ridge=ridge)
    direction = y / np.linalg.norm(y)
    if name == "full":
        # J* = q / (1 - q), q = c' (Sigma + w I)^-1 c; what is left of the residual moves q by at most |c| |r| / w
        q = float(column @ y)
        open_end = float(np.linalg.norm(column)) * left / ridge + 1e-12
        ends = [max(0.0, q - open_end), min(1.0 - 1e-15, q + open_end)]
        loss = Bracket(ends[0] / (1.0 - ends[0]), ends[1] / (1.0 - ends[1]))
        return RegularDesign(prior, place, budget.white, budget.free, 0.0, direction, loss)
    half = 0.5 * budget.free
    blank = RegularDesign(prior, place, budget.white, half, half / budget.n, direction, Bracket(0.0, np.inf))
    return replace(blank, loss=regular_loss(prior, blank))


def regular_loss(believed: RegularPrior, design: RegularDesign) -> Bracket:
    """J of a design against an adversary with this prior: a' (D + G)^-1 a with a = c and D = Sigma* - c c'."""
    column, direction = believed.row(design.place), design.direction
    rank_one, white = design.rank_one, design.white
    together = RegularPrior(believed.column + design.shared * design.prior.column)
    u, left_u = together.solve(column, ridge=white)
    v, left_v = together.solve(direction, ridge=white)
    cu, cv, yv = float(column @ u), float(column @ v), float(direction @ v)
    # (B + p y y')^-1 first, then the downdate by c c'
    inner = cu - rank_one * cv * cv / (1.0 + rank_one * yv)
    slack = 4.0 * float(np.linalg.norm(column)) * (left_u + left_v) / white + 1e-12
    low, high = max(0.0, inner - slack), inner + slack
    if high >= 1.0:
        raise UnsupportedError("the loss of this noise is open in doubles; ask for a larger floor.")
    return Bracket(low / (1.0 - low), high / (1.0 - high))

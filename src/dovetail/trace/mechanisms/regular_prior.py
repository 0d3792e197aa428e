r"""The prior of a long trace at equal steps, never formed: products by circulant embedding, conjugate gradients.

A Toeplitz matrix of n rows is the corner of a circulant one of 2n rows, which the Fourier transform diagonalizes; a
circulant matrix of n rows preconditions.

Source
------
Chan, Ng (1996), Conjugate gradient methods for Toeplitz systems, SIAM Review 38(3); Gohberg, Semencul (1972) for the
diagonal of the inverse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.sparse.linalg import LinearOperator, cg

from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.trace.kernels.kernel import Floats, Kernel
from dovetail.trace.sampler import standard_normals

_TOLERANCE, _MOST_STEPS = 1e-13, 5000
_UNIT = float(np.finfo(float).eps)


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

r"""The information of a release Z = X + noise about a secret, exact for any noise covariance G.

.. math:: J(G) = \tilde A' (D + G)^{-1} \tilde A, \qquad
          Z \mid X_S = x \sim N(\tilde A x + \mathrm{const}, D + G)

The log likelihood ratio of two values of the secret that differ by Delta is N(mu^2/2, mu^2) with mu^2 = Delta' J
Delta: the release is exactly mu-Gaussian-differentially private on that pair, and the loss of order
lambda is lambda mu^2 / 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from dovetail.core.bracket import Bracket
from dovetail.core.errors import UnsupportedError
from dovetail.trace.kernels.kernel import Floats
from dovetail.trace.loss.conditional import Conditional, positive_factor

_WORST_ERROR = 0.01


@dataclass(frozen=True, eq=False)
class Information:
    """J of a release, with the relative error of its arithmetic.

    Parameters
    ----------
    matrix : float array (S, S), 1 / (unit of a location)^2
    error : float
        Every quadratic form of `matrix` is right up to this share.
    """

    matrix: Floats
    error: float

    @property
    def largest(self) -> Bracket:
        """The largest eigenvalue of J: J itself for one secret location."""
        return self.bracket(float(np.linalg.eigvalsh(self.matrix)[-1]))

    def bracket(self, value: float) -> Bracket:
        """A quadratic form of J between its ends."""
        return Bracket(max(0.0, value * (1.0 - self.error)), value * (1.0 + self.error))

    def posterior(self, variance: Floats) -> Floats:
        r"""Posterior covariance of the secret, :math:`(\Sigma_{ss}^{-1} + J)^{-1}`."""
        # (Sss^-1 + J)^-1 = Sss (I + J Sss)^-1: no inverse of a prior that may be nearly singular
        found = np.linalg.solve(np.eye(len(variance)) + variance @ self.matrix, variance)
        return 0.5 * (found + found.T)


def information(seen: Conditional, noise: Floats) -> Information:
    """J of noise with covariance `noise` (n, n).

    The relative error is that of a Cholesky solution: at most 4 (n + 4) u tr(M) / mineig(M), u the unit roundoff, for
    M = D + G (Higham 2002, Accuracy and Stability of Numerical Algorithms, theorem 10.3), and 16 n u of what the
    rounding of D and the regression is amplified by: prior variance / mineig(M) + 1 / mineig(secret's correlation).

    Raises
    ------
    UnsupportedError
        D + G so nearly singular that a double says nothing: the noise wants a white floor.
    """
    middle = seen.residual + noise
    factor = positive_factor(middle, "The covariance of the release given the secret")
    root = solve_triangular(factor, seen.weights, lower=True)
    error = arithmetic_error(seen, middle)
    if error > _WORST_ERROR:
        raise UnsupportedError(
            f"The loss of this noise is known to {error:.0e} of itself in doubles: ask for a white floor (0.01 of "
            "the budget)."
        )
    return Information(root.T @ root, error)


def arithmetic_error(seen: Conditional, middle: Floats) -> float:
    """Relative error of a quadratic form of J, for M = `middle` (n, n); infinite where M is singular in doubles."""
    smallest = float(np.linalg.eigvalsh(middle)[0])
    spread = float(np.trace(middle)) / smallest if smallest > 0.0 else np.inf
    own = 4 * (len(middle) + 4) * np.finfo(float).eps * spread
    return float(own + 16 * len(middle) * np.finfo(float).eps * _amplified(seen, smallest))


def _amplified(seen: Conditional, smallest: float) -> float:
    scale = np.sqrt(np.diag(seen.variance))
    secret = float(np.linalg.eigvalsh(seen.variance / np.outer(scale, scale))[0])
    largest = max(float(np.diag(seen.variance).max()), float(np.diag(seen.residual).max()))
    return largest / smallest + 1.0 / secret if min(smallest, secret) > 0.0 else np.inf


def posterior_width(posterior: Floats) -> float:
    """Twice the smallest posterior standard deviation of the secret, over all directions: figure 5.2's measure."""
    return 2.0 * float(np.sqrt(max(0.0, np.linalg.eigvalsh(posterior)[0])))

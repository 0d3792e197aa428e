r"""A Gaussian prior seen from a secret: the regression on it and what it leaves open.

.. math:: \tilde A = \Sigma E \Sigma_{ss}^{-1}, \qquad
          D = \Sigma - \Sigma E \Sigma_{ss}^{-1} E' \Sigma = \mathrm{Cov}(X \mid X_S)

The columns of E are those of the identity at the secret S. Rows and columns of D at S are 0, rows of A at S are I.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.trace.kernels.kernel import Floats

_NEARLY_ONE = 1e-9  # prior variance left, as a share, below which two times are one for a double


@dataclass(frozen=True, eq=False)
class Conditional:
    """The regression of a trace on a secret.

    Parameters
    ----------
    weights : float array (n, S), the matrix A
    residual : float array (n, n), the matrix D
    variance : float array (S, S), the prior covariance of the secret
    secret : tuple of int
        Positions of the secret, from 0.
    """

    weights: Floats
    residual: Floats
    variance: Floats
    secret: tuple[int, ...]


def condition(prior: Floats, secret: Sequence[int]) -> Conditional:
    """The regression of a trace with covariance `prior` (n, n) on its locations at `secret`.

    Raises
    ------
    ParameterError
        A position outside the trace, none, or one that is named twice.
    UnsupportedError
        Two secret times that the kernel cannot tell apart.
    """
    places = check_secret(secret, len(prior))
    rows = list(places)
    variance = prior[np.ix_(rows, rows)]
    scale = np.sqrt(np.diag(variance))
    if np.linalg.eigvalsh(variance / np.outer(scale, scale))[0] < _NEARLY_ONE:
        raise UnsupportedError(
            f"The secret times {places} hold nearly the same location under this kernel: name fewer of them."
        )
    weights = cho_solve(cho_factor(variance, lower=True), prior[rows]).T
    residual = prior - weights @ prior[rows]
    residual = 0.5 * (residual + residual.T)
    weights[rows] = np.eye(len(rows))
    residual[rows] = 0.0
    residual[:, rows] = 0.0
    return Conditional(weights, residual, variance, places)


def check_secret(secret: Sequence[int], n: int) -> tuple[int, ...]:
    """Positions of a secret, sorted; each inside a trace of n points and named once."""
    places = tuple(sorted(int(place) for place in secret))
    if not places:
        raise ParameterError("`secret` must name at least one point of the trace, got none.")
    if len(set(places)) < len(places):
        raise ParameterError(f"`secret` must name a point once, got {places}.")
    if places[0] < 0 or places[-1] >= n:
        raise ParameterError(f"`secret` must lie inside the trace, points 0 to {n - 1}, got {places}.")
    return places


def positive_factor(matrix: Floats, what: str) -> Floats:
    """Lower Cholesky factor; one clear line where the matrix is not positive definite in doubles."""
    try:
        return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
    except LinAlgError:
        raise UnsupportedError(
            f"{what} is singular in doubles: ask for a white floor (0.01 of the budget)."
        ) from None

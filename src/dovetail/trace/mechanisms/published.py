r"""The paper's SDP_A as its authors' code computes it, in closed form: a baseline, not a mechanism to choose.

With :math:`\tilde A^+ = (\tilde A' \tilde A)^{-1} \tilde A'`, C = A+ D A+', N = A'A and
beta = (stab T + tr(C N)) / tr N, the program's only optimum is B - D = A (beta I - C) A' where beta I >= C. The code
then keeps the mean of the diagonal at the secret, drops the covariance between the secret and the rest, and divides
by `stab`, a factor that the paper does not mention. 1/beta is no bound of the loss: it understates it.
"""

from __future__ import annotations

import numpy as np

from dovetail.core.checks import positive
from dovetail.core.errors import UnsupportedError
from dovetail.trace.kernels.kernel import Floats
from dovetail.trace.loss.conditional import Conditional
from dovetail.trace.loss.information import Information
from dovetail.trace.mechanisms.design import Budget, Design

STABS = (10.0, 1000.0, 1e4)  # the factors of the figures, the least valid one is taken


def published_sdp_a(seen: Conditional, budget: Budget, *, stab: float | None = None) -> Design:
    """SDP_A in closed form, with the white floor of the budget.

    Parameters
    ----------
    seen : Conditional
    budget : Budget
    stab : float, above 0
        By default the first of 10, 1000 and 10,000 for which the closed form is the optimum.

    Raises
    ------
    UnsupportedError
        beta I - C has a negative eigenvalue: the closed form is not the program's optimum.
    """
    factors = STABS if stab is None else (positive("stab", stab),)
    for factor in factors:
        middle = published_middle(seen, budget, factor)
        least = float(np.linalg.eigvalsh(middle)[0])
        if least >= 0.0:
            return Design("published", _noise(seen, middle, factor, budget), None, "SDP_A's bound")
    raise UnsupportedError(
        f"SDP_A's closed form wants beta I >= C, which fails by {-least:.3g} at stab {factors[-1]:g}; "
        "try 1000 or 10000."
    )


def published_middle(seen: Conditional, budget: Budget, stab: float) -> Floats:
    """beta I - C, (S, S)."""
    normal = seen.weights.T @ seen.weights
    left = np.linalg.solve(normal, seen.weights.T)
    inner = left @ seen.residual @ left.T
    beta = (stab * budget.free + float(np.trace(inner @ normal))) / float(np.trace(normal))
    return np.asarray(beta * np.eye(len(normal)) - 0.5 * (inner + inner.T))


def _noise(seen: Conditional, middle: Floats, stab: float, budget: Budget) -> Floats:
    rows = list(seen.secret)
    noise = seen.weights @ middle @ seen.weights.T / stab
    own = float(np.mean(np.diag(noise)[rows]))
    noise[rows] = 0.0
    noise[:, rows] = 0.0
    noise[rows, rows] = own
    return np.asarray(0.5 * (noise + noise.T) + budget.white * np.eye(budget.n))


def published_loss_without_floor(seen: Conditional, budget: Budget, *, stab: float) -> Information:
    r"""J of SDP_A's noise without a floor, where doubles cannot factor D + G.

    With M = (beta I - C) / stab and Q = A' Sigma_{u|s}^{-1} A the inverse of the inferential part is Q^{-1} + M
    (matrix inversion lemma). A ridge makes Q smaller, so its loss is a lower end; Q to infinity is an upper end.
    """
    middle = published_middle(seen, budget, stab) / stab
    others = [i for i in range(budget.n) if i not in seen.secret]
    own = float(np.mean(np.diag(seen.weights @ middle @ seen.weights.T)[list(seen.secret)]))
    part = seen.weights[others]
    ridge = seen.residual[np.ix_(others, others)] + 1e-12 * np.trace(seen.residual) / budget.n * np.eye(len(others))
    told = part.T @ np.linalg.solve(ridge, part)
    direct = np.eye(len(seen.secret)) / own
    lower, upper = direct + np.linalg.inv(np.linalg.inv(told) + middle), direct + np.linalg.inv(middle)
    # every quadratic form lies between the two: the largest relative difference is the error
    root = np.linalg.inv(np.linalg.cholesky(upper))
    error = float(np.linalg.eigvalsh(root @ (upper - lower) @ root.T)[-1])
    return Information(upper, max(error, 0.0) + 1e-9)

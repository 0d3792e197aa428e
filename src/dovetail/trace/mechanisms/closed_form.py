r"""Optima in closed form: one secret location, with any noise, with the paper's family, and all locations at once.

**Full**, the least loss of one secret location over all covariances with floor f and trace T:

.. math:: y = (\Sigma + (T - (n-1) f) I)^{-1} \Sigma e_s, \qquad G^* = f I + (T - n f) y y' / |y|^2

.. math:: J^* = a' (D + (T - (n-1) f) I)^{-1} a

with a the regression on the secret and D what it leaves open. A total budget T protects as
well as white noise of variance T on every point, which costs n T.

**Block**, the same without a covariance between the secret and the rest: the loss is the sum of what the secret's own
release tells, 1/s^2, and what the others tell; each part is (full) by itself, and the budget is split between them.

**Prior**, all locations at once: noise with the prior's own covariance, G = f I + c Sigma; for f = 0 and a prior of
unit diagonal nothing of this budget has a larger smallest posterior variance, and J = 1/c is the loss of independent
points.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize_scalar

from dovetail.core.bracket import Bracket
from dovetail.trace.kernels.kernel import Floats
from dovetail.trace.loss.conditional import Conditional
from dovetail.trace.mechanisms.design import Budget, Design

_ROUNDING = 1e-9  # relative; the systems solved here have a condition of at most n / mse


def full_weights(prior: Floats, place: int, budget: Budget) -> Floats:
    """The direction y (n,) of the optimal noise: the weights with which a smoother would read the secret."""
    ridge = budget.total - (budget.n - 1) * budget.white
    factor = cho_factor(prior + ridge * np.eye(budget.n), lower=True)
    return np.asarray(cho_solve(factor, prior[:, place]))


def full(prior: Floats, place: int, budget: Budget) -> Design:
    """The least loss of one secret location: rank-one noise along the smoother's weights, above the floor."""
    y = full_weights(prior, place, budget)
    noise = budget.white * np.eye(budget.n) + budget.free * np.outer(y, y) / (y @ y)
    value = full_loss(prior, place, budget)
    return Design("full", noise, Bracket(value * (1 - _ROUNDING), value * (1 + _ROUNDING)), "loss of the secret")


def full_loss(prior: Floats, place: int, budget: Budget) -> float:
    """J* of the full design: a' (D + (T - (n-1) f) I)^-1 a, which needs no inverse of the prior."""
    ridge = budget.total - (budget.n - 1) * budget.white
    column = prior[:, place]
    factor = cho_factor(prior + ridge * np.eye(budget.n), lower=True)
    # (D + w I)^-1 by rank one: with q = c' (Sigma + w I)^-1 c / Sss, a' (D + w I)^-1 a = (q / Sss) / (1 - q)
    own = prior[place, place]
    q = float(column @ cho_solve(factor, column)) / own
    return float(q / own / (1.0 - q))


def block(seen: Conditional, budget: Budget) -> Design:
    """The least loss of one secret location when its noise is independent of all the other noise."""
    place = seen.secret[0]
    others = np.array([i for i in range(budget.n) if i != place])
    values, vectors = np.linalg.eigh(seen.residual[np.ix_(others, others)])
    values = np.maximum(values, 0.0)
    turned = vectors.T @ seen.weights[others, 0]
    white = budget.white

    def rest(share: float) -> float:
        """Ridge of the optimum inside the others, whose budget is `share` above the floor."""
        return white + share

    def loss(share: float) -> float:
        own = white + budget.free - share
        return float(1.0 / own + (turned**2 / (values + rest(share))).sum())

    best = minimize_scalar(
        loss, bounds=(0.0, budget.free), method="bounded", options={"xatol": 1e-12 * budget.free}
    ).x
    y = vectors @ (turned / (values + rest(best)))
    noise = white * np.eye(budget.n)
    noise[np.ix_(others, others)] += best * np.outer(y, y) / (y @ y)
    noise[place, place] += budget.free - best
    value = loss(best)
    return Design("block", noise, Bracket(value * (1 - 1e-7), value * (1 + _ROUNDING)), "loss, no cross covariance")


def from_prior(prior: Floats, budget: Budget) -> Design:
    """Noise drawn from the prior itself, above the floor: all locations at once, whatever is secret."""
    scale = budget.free / float(np.trace(prior))
    noise = budget.white * np.eye(budget.n) + scale * prior
    return Design("all", noise, None, "smallest posterior variance over all points")

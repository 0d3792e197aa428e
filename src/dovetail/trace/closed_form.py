"""Noise for traces in closed form: the published SDP_A, independent noise, and the optima for one secret location."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize_scalar

from dovetail.core.certified import Bracket
from dovetail.core.checks import positive
from dovetail.core.errors import UnsupportedError
from dovetail.trace.descent import Budget, Design
from dovetail.trace.kernels import Floats
from dovetail.trace.loss import Conditional, Information, condition, information

# The paper's SDP_A as its authors' code computes it, in closed form: a baseline, not a mechanism to choose.
#
# With \tilde A^+ = (\tilde A' \tilde A)^{-1} \tilde A', C = A+ D A+', N = A'A and beta = (stab T + tr(C N)) / tr N,
# the program's only optimum is B - D = A (beta I - C) A' where beta I >= C. The code then keeps the mean of the
# diagonal at the secret, drops the covariance between the secret and the rest, and divides by `stab`, a factor that
# the paper does not mention. 1/beta is no bound of the loss: it understates it.


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


# The baselines of geo-indistinguishability: independent noise on every point, or on the secret points alone.


def uniform(budget: Budget) -> Design:
    """Independent noise of the same variance on every point."""
    return Design("uniform", budget.mse * np.eye(budget.n), None, "none")


def concentrated(secret: tuple[int, ...], budget: Budget) -> Design:
    """Independent noise, all of the budget above the floor on the secret points."""
    variance = np.full(budget.n, budget.white)
    variance[list(secret)] += budget.free / len(secret)
    return Design("concentrated", np.diag(variance), None, "none")


# Optima in closed form: one secret location, with any noise, with the paper's family, and all locations at once.
#
# **Full**, the least loss of one secret location over all covariances with floor f and trace T:
#
# .. math:: y = (\Sigma + (T - (n-1) f) I)^{-1} \Sigma e_s, \qquad G^* = f I + (T - n f) y y' / |y|^2
#
# .. math:: J^* = a' (D + (T - (n-1) f) I)^{-1} a
#
# with a the regression on the secret and D what it leaves open. A total budget T protects as
# well as white noise of variance T on every point, which costs n T.
#
# **Block**, the same without a covariance between the secret and the rest: the loss is the sum of what the secret's
#   own
# release tells, 1/s^2, and what the others tell; each part is (full) by itself, and the budget is split between them.
#
# **Prior**, all locations at once: noise with the prior's own covariance, G = f I + c Sigma; for f = 0 and a prior of
# unit diagonal nothing of this budget has a larger smallest posterior variance, and J = 1/c is the loss of
# independent
# points.


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


# Losses of noise without a white floor, where doubles cannot factor D + G but a formula knows the answer.


def information_without_floor(prior: Floats, secret: tuple[int, ...], design: Design, budget: Budget) -> Information:
    """J of a design whose budget has no floor, as a formula gives it.

    Raises
    ------
    UnsupportedError
        For a mechanism without such a formula.
    """
    seen = condition(prior, secret)
    if design.name == "uniform":
        return information(seen, design.noise)
    if design.name == "all":  # J = Sss^-1 / c for G = c Sigma, because At' (D + c Sigma)^-1 At = Sss^-1 / c
        scale = budget.free / float(np.trace(prior))
        return Information(np.asarray(np.linalg.inv(seen.variance) / scale, dtype=np.float64), 1e-9)
    if len(secret) == 1 and design.optimum is not None:
        return _between(design.optimum)
    if design.name == "published":
        stab = next(one for one in STABS if np.linalg.eigvalsh(published_middle(seen, budget, one))[0] >= 0.0)
        return published_loss_without_floor(seen, budget, stab=stab)
    return information(seen, design.noise)


def _between(ends: Bracket) -> Information:
    middle = 0.5 * (ends.lower + ends.upper)
    return Information(np.array([[middle]]), 0.5 * (ends.upper - ends.lower) / middle)

"""Semidefinite programs of the paper on traces, solved in another way than ours: for studies and tests alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dovetail.core.extras import require
from dovetail.trace.descent import Budget, repaired, solve
from dovetail.trace.kernels import Floats
from dovetail.trace.loss import Conditional


def least_block_loss(seen: Conditional, budget: Budget, *, solver: str | None = None) -> Floats:
    """The paper's family: noise s^2 I at the secret, independent of the rest; direct plus inferential loss."""
    cp = require("cvxpy", extra="trace")
    others = [i for i in range(budget.n) if i not in seen.secret]
    count, rest = len(seen.secret), len(others)
    inner, own = cp.Variable((rest, rest), PSD=True), cp.Variable()
    direct, inferred = cp.Variable(), cp.Variable()
    part = seen.weights[others]
    middle = seen.residual[np.ix_(others, others)] + budget.white * np.eye(rest) + inner
    limits = [
        cp.bmat([[inferred * np.eye(count), part.T], [part, middle]]) >> 0,
        direct >= cp.inv_pos(own),
        cp.trace(inner) + count * (own - budget.white) <= budget.free,
        own >= budget.white,
    ]
    solve(cp.Problem(cp.Minimize(direct + inferred), limits), budget.n, solver)
    noise = budget.white * np.eye(budget.n)
    noise[np.ix_(others, others)] += inner.value
    for place in seen.secret:
        noise[place, place] = own.value
    return repaired(noise, budget)


def largest_posterior_eigenvalue(
    prior: Floats, seen: Conditional, budget: Budget, *, solver: str | None = None
) -> Floats:
    """Noise with the largest smallest eigenvalue of the posterior covariance of a compound secret."""
    cp = require("cvxpy", extra="trace")
    noise, level = cp.Variable((budget.n, budget.n), PSD=True), cp.Variable()
    rows = list(seen.secret)
    middle = prior + budget.white * np.eye(budget.n) + noise
    left = seen.variance - level * np.eye(len(rows))
    limits = [cp.trace(noise) <= budget.free, cp.bmat([[left, prior[rows]], [prior[:, rows], middle]]) >> 0]
    solve(cp.Problem(cp.Maximize(level), limits), budget.n, solver)
    return repaired(noise.value + budget.white * np.eye(budget.n), budget)


def largest_least_variance(prior: Floats, budget: Budget, *, solver: str | None = None) -> Floats:
    """Noise with the largest smallest posterior variance over all points."""
    cp = require("cvxpy", extra="trace")
    n = budget.n
    noise, level, cover = cp.Variable((n, n), PSD=True), cp.Variable(), cp.Variable((n, n), symmetric=True)
    middle = prior + budget.white * np.eye(n) + noise
    limits = [
        cp.trace(noise) <= budget.free,
        cp.bmat([[cover, prior], [prior, middle]]) >> 0,
        cp.diag(cover) <= np.diag(prior) - level,
    ]
    solve(cp.Problem(cp.Maximize(level), limits), n, solver)
    return repaired(noise.value + budget.white * np.eye(n), budget)


def published_sdp_a_by_solver(seen: Conditional, budget: Budget, *, stab: float, solver: str | None = None) -> Floats:
    """SDP_A as its authors' code states it, with the full B: before `stab` divides and blocks are dropped."""
    cp = require("cvxpy", extra="trace")
    whole, beta = cp.Variable((budget.n, budget.n), symmetric=True), cp.Variable()
    left = np.linalg.solve(seen.weights.T @ seen.weights, seen.weights.T)
    limits = [
        left @ whole @ left.T >> beta * np.eye(len(seen.secret)),
        whole >> seen.residual,
        cp.trace(whole) <= np.trace(seen.residual) + stab * budget.free,
    ]
    solve(cp.Problem(cp.Maximize(beta), limits), budget.n, solver)
    return np.asarray(whole.value - seen.residual)


def published_sdp_b(noises: Sequence[Floats], *, solver: str | None = None) -> Floats:
    """SDP_B: the least trace above every given covariance, with what the solver violates added to the diagonal."""
    cp = require("cvxpy", extra="trace")
    n = len(noises[0])
    noise = cp.Variable((n, n), symmetric=True)
    solve(cp.Problem(cp.Minimize(cp.trace(noise)), [noise >> one for one in noises]), n, solver)
    found = 0.5 * (noise.value + noise.value.T)
    slack = min(float(np.linalg.eigvalsh(found - one)[0]) for one in noises)
    return np.asarray(found + max(0.0, -slack) * (1.0 + 1e-9) * np.eye(n))

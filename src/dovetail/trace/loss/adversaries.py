"""Whom a loss is stated against: kernels of other length-scales and nuggets, an unknown mean, and one sighting.

A design that is tuned to one kernel may tell much to an adversary who knows another one, or who knows a single other
true location. So every loss is published for the whole list, each exactly, with that adversary's own prior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from dovetail.trace.kernels.combined import scale_nugget
from dovetail.trace.kernels.kernel import Floats, Kernel
from dovetail.trace.loss.conditional import Conditional
from dovetail.trace.loss.information import arithmetic_error

OWN = "the kernel itself"
STRETCHES = (0.5, 1.0, 1.5, 2.0, 3.0)  # of the length-scale; 39 % of published fits hit their upper bound
NO_NUGGET = "no nugget"
NUGGETS = {NO_NUGGET: 0.0, "a tenth of the nugget": 0.1}  # fits to rough receivers take movement for nugget
UNKNOWN_MEAN = 100.0  # prior variance of an unknown mean, in variances of a location; the limit is bounded
MOST_LOST = 0.01  # relative error of a sighting's loss beyond which nothing is stated
TOLD = 1e-9  # prior variance left, as a share, below which a sighting itself tells the secret


@dataclass(frozen=True, eq=False)
class Adversary:
    """A prior that somebody may hold.

    Parameters
    ----------
    name : str
    prior : float array (n, n)
        Covariance, variance 1 at every point unless the mean is unknown.
    unknown_mean : bool
        Whether the variance of the mean is taken to its limit.
    """

    name: str
    prior: Floats
    unknown_mean: bool = False


def adversary_kernels(kernel: Kernel, *, stretches: Sequence[float] = STRETCHES) -> dict[str, Kernel]:
    """The kernel itself first, then stretched ones, then those with less nugget where it has one."""
    others = {f"length x {factor:g}": kernel.stretched(factor) for factor in stretches if factor != 1.0}
    nuggets = {name: scale_nugget(kernel, factor) for name, factor in NUGGETS.items()}
    return {OWN: kernel, **others, **{name: other for name, other in nuggets.items() if other != kernel}}


def adversaries(kernel: Kernel, times: Floats, *, stretches: Sequence[float] = STRETCHES) -> list[Adversary]:
    """The kernel itself first, then the others, then one for whom the mean of the trace is unknown."""
    kernels = adversary_kernels(kernel, stretches=stretches)
    found = [Adversary(name, model.matrix(times)) for name, model in kernels.items()]
    return [*found, Adversary("unknown mean", found[0].prior + UNKNOWN_MEAN, unknown_mean=True)]


def limit_of_mean(prior: Floats, secret: Sequence[int]) -> Floats:
    r"""What J (S, S) of a mean of variance `UNKNOWN_MEAN` may lack of its limit, a mean of which nothing is known.

    .. math:: J_\infty = V_\infty^{-1} - P_\infty \le V_c^{-1} - P_\infty = J_c + h h' / (q (1 + c q)), \quad
              h = \Sigma_{ss}^{-1} 1, \quad q = 1' h

    with V the posterior covariance of the secret, which grows with c, and P its prior precision,
    :math:`\Sigma_{ss}^{-1} - h h' / (1/c + q)`.
    """
    rows = list(secret)
    h = np.linalg.solve(prior[np.ix_(rows, rows)], np.ones(len(rows)))
    return np.asarray(np.outer(h, h) / (h.sum() * (1.0 + UNKNOWN_MEAN * h.sum())))


def sightings(seen: Conditional, prior: Floats, noise: Floats) -> Floats:
    r"""Largest eigenvalue of J when the true location at one other time t is known too, for each t; (n,).

    .. math:: D_t = D - d d' / D_{tt}, \; \tilde A_t = \tilde A - d \tilde A_{t \cdot} / D_{tt}, \; d = D_{\cdot t}

    the regression of :math:`\Sigma - \Sigma_{\cdot t} \Sigma_{t \cdot} / \Sigma_{tt}`. At the secret itself 0;
    infinite where the sighting alone tells the secret, or where doubles know it worse than to a hundredth. Each
    number has the arithmetic's error, at most a hundredth, added.
    """
    middle = seen.residual + noise
    factor, error = cho_factor(middle, lower=True), arithmetic_error(seen, middle)
    inverse = cho_solve(factor, np.eye(len(prior)))
    found = np.zeros(len(prior))
    for t in range(len(prior)):
        if t in seen.secret:
            continue
        known = residual_given(seen, prior, t)
        if known is None:
            found[t] = np.inf
            continue
        column, weights = known
        solved = inverse @ column
        left = seen.residual[t, t] - column @ solved
        half = weights.T @ solved
        matrix = weights.T @ inverse @ weights + np.outer(half, half) / left
        # what the solution is wrong by grows by the cancellation in `left`
        lost = error * (1.0 + seen.residual[t, t] / max(left, 1e-300)) + _subtracted(
            len(prior), seen.residual[t, t], left, prior[t, t]
        )
        largest = np.linalg.eigvalsh(0.5 * (matrix + matrix.T))[-1]
        found[t] = largest * (1.0 + lost) if lost <= MOST_LOST else np.inf
    return found


def _subtracted(n: int, variance: float, left: float, scale: float) -> float:
    """Relative error of what two subtractions leave of a variance: D_tt of the prior's, then `left` of D_tt."""
    return float(16 * n * np.finfo(float).eps * (variance / left + scale / variance)) if left > 0.0 else np.inf


def residual_given(seen: Conditional, prior: Floats, t: int) -> tuple[Floats, Floats] | None:
    """The column d and the weights A_t when the location at t is known; None where that tells the secret."""
    column = seen.residual[:, t]
    if column[t] < TOLD * prior[t, t]:
        return None
    return column, seen.weights - np.outer(column, seen.weights[t]) / column[t]


def with_sighting(seen: Conditional, prior: Floats, t: int) -> Conditional | None:
    """The regression on the secret when the location at t is known too; None where that tells the secret."""
    known = residual_given(seen, prior, t)
    if known is None:
        return None
    column, weights = known
    residual = seen.residual - np.outer(column, column) / column[t]
    residual[t] = 0.0
    residual[:, t] = 0.0
    weights[t] = 0.0
    return Conditional(weights, residual, seen.variance, seen.secret)

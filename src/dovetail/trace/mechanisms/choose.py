"""A mechanism by name, for one coordinate of a trace in units of its prior variance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dovetail.core.checks import nearest
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.trace.kernels.kernel import Floats, Kernel
from dovetail.trace.loss.adversaries import STRETCHES, adversaries
from dovetail.trace.loss.conditional import check_secret, condition
from dovetail.trace.loss.information import information
from dovetail.trace.loss.posterior import Posterior
from dovetail.trace.mechanisms.closed_form import block, from_prior, full
from dovetail.trace.mechanisms.descent import Descent, Goal
from dovetail.trace.mechanisms.design import Budget, Design
from dovetail.trace.mechanisms.published import published_sdp_a
from dovetail.trace.mechanisms.robust import MOST_POINTS, mixed, robust
from dovetail.trace.mechanisms.semidefinite import least_worst_loss
from dovetail.trace.mechanisms.uniform import concentrated, uniform

NOISES = {
    "robust": "least worst loss over stretched kernels, an unknown mean and one sighting; the default",
    "mixed": "half the optimum, half noise from the prior; the default above 300 points",
    "full": "the optimum for one kernel: undone by a single sighting",
    "block": "the optimum without a covariance between the secret and the rest",
    "all": "noise drawn from the prior: every location by itself, whatever is secret",
    "uniform": "independent noise on every point",
    "concentrated": "independent noise on the secret points",
    "published": "SDP_A of the paper, a baseline",
}
MOST_SECRETS_SEARCHED = 12  # robust noise searches over every secret and every sighting
LEAST_SEARCH_FLOOR = 1e-4  # of the budget: searches by descent need a floor


def default_noise(n: int) -> str:
    """The mechanism for one secret location of a trace of n points where none is named."""
    return "robust" if n <= MOST_POINTS else "mixed"


def default_design(
    kernel: Kernel, times: Floats, secrets: Sequence[tuple[int, ...]], budget: Budget, *, every_time: bool = False
) -> Design:
    """The noise where none is named: never one that tells more than independent noise of the same error.

    Noise from the prior where every time is secret. Robust and independent noise are compared up to 300 points and 12
    secrets, mixed noise, noise from the prior and independent noise beyond: the least loss against the kernel itself.
    """
    if every_time:
        return design_noise("all", kernel, times, secrets, budget)
    names = ["mixed", "all", "uniform"]
    if len(times) <= MOST_POINTS and len(secrets) <= MOST_SECRETS_SEARCHED:
        names = ["robust", "uniform"]
    prior = kernel.matrix(times)
    made = [design_noise(name, kernel, times, secrets, budget) for name in names]
    return min(made, key=lambda one: worst_loss(prior, secrets, one.noise))


def worst_loss(prior: Floats, secrets: Sequence[tuple[int, ...]], noise: Floats) -> float:
    """The largest S maxeig J of all secrets."""
    single = [secret[0] for secret in secrets if len(secret) == 1]
    basic = [one.upper for one in Posterior.of(prior, noise).losses(single)] if single else []
    several = [secret for secret in secrets if len(secret) > 1]
    together = [len(one) * information(condition(prior, one), noise).largest.upper for one in several]
    return max([*basic, *together])


def design_noise(
    name: str,
    kernel: Kernel,
    times: Floats,
    secrets: Sequence[tuple[int, ...]],
    budget: Budget,
    *,
    stretches: Sequence[float] = STRETCHES,
    solver: str | None = None,
) -> Design:
    """The noise covariance of a mechanism.

    Parameters
    ----------
    name : one of `NOISES`
    kernel : Kernel
    times : float array (n,), seconds
    secrets : list of tuple of int
        Each is one location, or several that are secret together.
    budget : Budget
    stretches : list of float
        Length-scales that `robust` holds against, as multiples.
    solver : "clarabel" or "scs"
        Solve `full` as a semidefinite program instead of by descent.
    """
    if name not in NOISES:
        raise ParameterError(f"`noise` must be one of {', '.join(NOISES)}, got {name!r}{nearest(name, NOISES)}")
    secrets = [check_secret(secret, len(times)) for secret in secrets]
    if name == "uniform":
        return uniform(budget)
    if name == "concentrated":
        return concentrated(tuple(sorted({place for secret in secrets for place in secret})), budget)
    prior = kernel.matrix(times)
    if name == "all":
        return from_prior(prior, budget)
    if name == "mixed":
        return mixed(prior, secrets, budget)
    if name == "robust":
        if budget.floor < LEAST_SEARCH_FLOOR:
            raise UnsupportedError(
                f"`floor` must be at least {LEAST_SEARCH_FLOOR:g} for robust noise, got {budget.floor:g}."
            )
        return robust(adversaries(kernel, times, stretches=stretches), secrets, budget)
    if name == "full":
        return _full(prior, secrets, budget, solver)
    if len(secrets) != 1:
        raise UnsupportedError(f"`noise` {name} knows one secret, got {len(secrets)}; use robust, mixed or full.")
    seen = condition(prior, secrets[0])
    if name == "published":
        return published_sdp_a(seen, budget)
    if len(seen.secret) != 1:
        raise UnsupportedError("`noise` block is a closed form for one secret location; use full for several.")
    return block(seen, budget)


def _full(prior: Floats, secrets: Sequence[tuple[int, ...]], budget: Budget, solver: str | None) -> Design:
    if len(secrets) == len(secrets[0]) == 1 and solver is None:
        return full(prior, secrets[0][0], budget)
    within = Budget(budget.n, budget.mse, max(budget.floor, LEAST_SEARCH_FLOOR))
    goals = [Goal.of(condition(prior, secret)) for secret in secrets]
    start = mixed(prior, secrets, within).noise
    noise, optimum = Descent(goals, within).run(start)
    if solver is not None:
        noise = least_worst_loss(goals, within, solver=solver.upper())
    # (1 - p) G + p o I has the floor p o and the budget of G: a floor costs at most 1 / (1 - p)
    lower = optimum.lower * (1.0 - (within.floor - budget.floor))
    return Design("full", np.asarray(noise), type(optimum)(lower, optimum.upper), "largest loss of the secrets")

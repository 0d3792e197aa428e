"""Noise mechanisms for a trace by name: the robust search, the default, and the closed forms."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log2, sqrt

import numpy as np
from scipy.special import ndtri

from dovetail.core.checks import nearest, positive
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.trace.closed_form import block, concentrated, from_prior, full, published_sdp_a, uniform
from dovetail.trace.descent import LEAST_FLOOR, Budget, Descent, Design, Goal, least_worst_loss
from dovetail.trace.kernels import Floats, Kernel
from dovetail.trace.loss import (
    Adversary,
    adversaries,
    check_secret,
    condition,
    information,
    positive_factor,
    with_sighting,
)
from dovetail.trace.posterior_loss import Posterior

# Noise that is released: normal numbers from the operating system's entropy, on a public grid.
#
# Locations are rounded to a public step before the noise is added and afterwards, so that the last bits of a
# double tell nothing about them. That is not proved to make a floating-point Gaussian private; the guarantee says so.


_FINEST = 1e-6  # step, as a share of the floor's standard deviation
_DEFAULT = 1e-4
_CHARGE = 0.02  # of mu, that rounding all points may cost by default


def standard_normals(count: int, rng: Entropy) -> Floats:
    """`count` normal numbers from 64-bit words: a sign, and a tail probability of 63 bits, which reaches 9 sigma."""
    words = rng.words(count)
    tails = ((words >> np.uint64(1)).astype(np.float64) + 0.5) * 2.0**-64  # in (0, 1/2)
    return np.asarray(np.where(words & np.uint64(1), ndtri(tails), -ndtri(tails)))


def correlated_noise(covariance: Floats, rng: Entropy) -> Floats:
    """One draw (n,) of N(0, covariance)."""
    return positive_factor(covariance, "The noise") @ standard_normals(len(covariance), rng)


def default_step(white: float) -> float:
    """A public step in metres, a power of two: 1e-4 of the floor's standard deviation or less.

    >>> default_step(12.5) == 2.0**-12
    True
    """
    return 2.0 ** floor(log2(_DEFAULT * sqrt(positive("white", white))))


def step_for(mu: float, *, white: float, numbers: int) -> float:
    """A public step in metres, a power of two: rounding `numbers` coordinates adds at most a fiftieth to `mu`.

    Never coarser than the default, nor finer than what doubles allow.

    >>> step_for(1.0, white=12.5, numbers=60) == default_step(12.5)
    True
    """
    share = min(_DEFAULT, _CHARGE * mu / sqrt(numbers))
    return 2.0 ** floor(log2(max(2.0 * _FINEST, share) * sqrt(positive("white", white))))


def check_step(step: float, *, white: float, floor_share: float) -> None:
    """Refuse a floor or a step that rounding would spoil.

    Parameters
    ----------
    step : float, metres
    white : float, square metres
        Variance of the white part of the noise on every coordinate.
    floor_share : float
        White part as a share of the budget.
    """
    if floor_share < LEAST_FLOOR:
        raise UnsupportedError(
            f"`floor` must be at least {LEAST_FLOOR:g} of the budget for a release, got {floor_share:g}."
        )
    if not _FINEST * sqrt(white) <= step <= sqrt(white):
        raise ParameterError(
            f"`step` must lie between {_FINEST * sqrt(white):.3g} and {sqrt(white):.3g} m for this noise, got "
            f"{step:g}."
        )


def on_grid(points: Floats, step: float) -> Floats:
    """Points rounded to the public grid."""
    return np.asarray(np.rint(points / step) * step)


# The default: noise that is good against every adversary of the list, and against one other true location.
#
# The optimum for one kernel is undone by a single sighting and weak against longer kernels. So the noise is chosen to
# keep small, at once: the loss under each stretched kernel and an unknown mean, and the loss of an adversary who
# knows the true location at any one other time, which may be larger in the proportion in which it must be.


MOST_POINTS = 300  # beyond it the default is the average of the optimum and noise from the prior
SIGHTING_SLACK = 2.0  # a sighting may cost this much more, beside what it must cost
_ROUNDS, _TOO_LARGE, _GAP = 6, 1.02, 1e-3
WORK = 5e10  # multiplications of one search, about half a minute of one processor; no clock decides what is found


def mixed(prior: Floats, secrets: Sequence[tuple[int, ...]], budget: Budget) -> Design:
    """The average of the optima for every secret location, and noise from the prior; needs no search.

    The share w of a part costs at most 1/w of the loss that it has alone, because less noise is left out than added.
    """
    places = sorted({place for secret in secrets for place in secret})
    optima = np.mean([full(prior, place, budget).noise for place in places], axis=0)
    noise = 0.5 * optima + 0.5 * from_prior(prior, budget).noise
    return Design("mixed", noise, None, "half the optimum, half noise from the prior")


def robust(
    known: Sequence[Adversary],
    secrets: Sequence[tuple[int, ...]],
    budget: Budget,
    *,
    sighting: bool = True,
    work: float = WORK,
) -> Design:
    """The least worst loss over all adversaries, all secrets, and one sighting at any other time.

    Parameters
    ----------
    known : list of Adversary
        The first is the kernel itself.
    secrets : list of tuple of int
    budget : Budget
    sighting : bool
        Whether the true location at one other time may be known.
    work : float
        Multiplications: half for the kernels, the rest for the sightings. What was found by then counts.

    Notes
    -----
    Sightings join the goals only where they bind: the worst ones are added until none is above its level. The bracket
    is that of the goals that joined; its lower end is valid for all of them.
    """
    own = known[0].prior
    start = mixed(own, secrets, budget).noise
    goals = [Goal.of(condition(own, secret)) for secret in secrets]
    goals += [goal for one in known[1:] for secret in secrets for goal in _told_apart(one.prior, secret)]
    waiting = _sightings(own, secrets, budget) if sighting else []
    noise, optimum = Descent(goals, budget).run(start, gap=_GAP, work=work / 2.0)
    for _ in range(_ROUNDS):
        late = _beyond(waiting, noise, optimum.upper)
        if not late:
            break
        goals += late
        waiting = [goal for goal in waiting if not any(goal is other for other in late)]
        noise, optimum = Descent(goals, budget).run(noise, gap=_GAP, warm=True, work=work / 2.0 / _ROUNDS)
    return Design("robust", noise, optimum, "worst loss over kernels, unknown mean and one sighting")


def _told_apart(prior: Floats, secret: tuple[int, ...]) -> list[Goal]:
    """The goal of another adversary; none where secret times are one for him, and no noise helps."""
    try:
        return [Goal.of(condition(prior, secret))]
    except UnsupportedError:
        return []


def _sightings(prior: Floats, secrets: Sequence[tuple[int, ...]], budget: Budget) -> list[Goal]:
    """A goal for every other time whose location may be known, weighted by what it must cost."""
    found = []
    for secret in secrets:
        seen = condition(prior, secret)
        least = _least(Goal.of(seen), budget)
        for t in range(budget.n):
            known = with_sighting(seen, prior, t) if t not in secret else None
            if known is not None:
                goal = Goal.of(known)
                weight = SIGHTING_SLACK * max(1.0, _least(goal, budget) / least)
                found.append(Goal(goal.weights, goal.residual, weight))
    return found


def _least(goal: Goal, budget: Budget) -> float:
    """A lower end of the loss of one goal by itself: white noise of the whole budget on every point."""
    ridge = budget.total - (budget.n - 1) * budget.white
    solved = np.linalg.solve(goal.residual + ridge * np.eye(budget.n), goal.weights)
    return float(np.linalg.eigvalsh(goal.weights.T @ solved)[-1])


def _beyond(waiting: Sequence[Goal], noise: Floats, level: float) -> list[Goal]:
    """The goals that are not met, the worst first, at most eight."""
    losses = []
    for goal in waiting:
        matrix = goal.weights.T @ np.linalg.solve(goal.residual + noise, goal.weights)
        losses.append(float(np.linalg.eigvalsh(0.5 * (matrix + matrix.T))[-1]) / goal.weight)
    order = np.argsort(losses)[::-1]
    return [waiting[i] for i in order[:8] if losses[i] > _TOO_LARGE * level]


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
        return robust(adversaries(kernel, times), secrets, budget)
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

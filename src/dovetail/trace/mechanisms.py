"""A mechanism by name, for one coordinate of a trace in units of its prior variance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize_scalar

from dovetail.core.certified import Bracket
from dovetail.core.checks import nearest, positive
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.trace.descent import Budget, Descent, Design, Goal, least_worst_loss
from dovetail.trace.kernels import Floats, Kernel
from dovetail.trace.loss import (
    STRETCHES,
    Adversary,
    Conditional,
    Information,
    adversaries,
    check_secret,
    condition,
    information,
    with_sighting,
)
from dovetail.trace.posterior_loss import Posterior

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

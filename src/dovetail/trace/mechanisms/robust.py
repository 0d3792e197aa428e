"""The default: noise that is good against every adversary of the list, and against one other true location.

The optimum for one kernel is undone by a single sighting and weak against longer kernels. So the noise is chosen to
keep small, at once: the loss under each stretched kernel and an unknown mean, and the loss of an adversary who knows
the true location at any one other time, which may be larger in the proportion in which it must be.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dovetail.core.errors import UnsupportedError
from dovetail.trace.kernels.kernel import Floats
from dovetail.trace.loss.adversaries import Adversary, with_sighting
from dovetail.trace.loss.conditional import condition
from dovetail.trace.mechanisms.closed_form import from_prior, full
from dovetail.trace.mechanisms.descent import Descent, Goal
from dovetail.trace.mechanisms.design import Budget, Design

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

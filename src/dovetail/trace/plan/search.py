"""From a wanted guarantee to the smallest budget that reaches it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import log, sqrt

import numpy as np

from dovetail.core.checks import positive
from dovetail.core.errors import UnsupportedError
from dovetail.trace.kernels.kernel import Floats
from dovetail.trace.loss.rounding import MOST_CHARGE, rounding_charge
from dovetail.trace.plan.release_design import design_release
from dovetail.trace.plan.trace_plan import TracePlan
from dovetail.trace.prior import TracePrior
from dovetail.trace.sampler import step_for
from dovetail.trace.secrets import SecretTimes

MOST_AT_DEFAULT = 200  # points for which the default step is fine enough
_CLOSE, _STEPS, _FARTHEST = 0.005, 40, 1e4


def error_for(
    mu: float,
    prior: TracePrior,
    secrets: SecretTimes,
    times: Floats,
    *,
    radius: float,
    noise: str = "",
    floor: float = 0.01,
    step: float = 0.0,
    window: int = 0,
    tried: Callable[[int], None] = lambda count: None,
) -> TracePlan:
    """The plan of least error, within half a percent, whose worst secret keeps `mu`.

    `tried` is told how many budgets were designed so far.

    Raises
    ------
    UnsupportedError
        No budget up to ten thousand times what traces move reaches it.

    Examples
    --------
    >>> from dovetail.trace.kernels.stationary import Matern32
    >>> prior = TracePrior(Matern32(length=600.0), np.array([[1e6]]))
    >>> plan = error_for(0.5, prior, SecretTimes(), np.arange(0.0, 600.0, 60.0), radius=100.0)
    >>> 100.0 < plan.error < 1000.0
    True
    """
    positive("mu", mu)
    scale = sqrt(float(np.trace(prior.covariance)))

    numbers = len(times) * prior.dimensions
    if not step and rounding_charge(step_for(0.0, white=1.0, numbers=numbers), numbers, 1.0) > MOST_CHARGE * mu:
        raise UnsupportedError(
            f"`mu` {mu:g} is out of reach: rounding {len(times):,} points to the finest grid that doubles allow "
            "costs more than a twentieth of it; ask for a larger mu."
        )

    def plan(error: float) -> TracePlan:
        first = TracePlan(prior, secrets, radius, error, noise, floor, step, window)
        return first if step else replace(first, step=step_for(mu, white=first.white, numbers=numbers))

    count = 0

    def reached(error: float) -> float:
        nonlocal count
        found = design_release(plan(error), times).guarantee.mu
        tried(count := count + 1)
        return found

    most = _FARTHEST * scale
    # white noise on one point alone would need sqrt(2) radius / mu
    low, high = None, min(0.5 * radius / mu, most)
    while (found := reached(high)) > mu:
        low, high = high, min(most, high * max(1.3, min(4.0, found / mu)))
        if low == most:
            raise UnsupportedError(
                f"`mu` {mu:g} within {radius:g} m is out of reach: even {_FARTHEST:g} times what traces move is not "
                "enough; ask for a larger mu or a smaller radius."
            )
    while low is None:
        smaller = high / 2.0
        if reached(smaller) > mu:
            low = smaller
        else:
            high = smaller
            if high < 1e-6 * scale:
                return plan(high)
    for _ in range(_STEPS):
        if high / low <= 1.0 + _CLOSE:
            break
        middle = low * (high / low) ** 0.5 if log(high / low) > 0.05 else (low + high) / 2.0
        low, high = (middle, high) if reached(middle) > mu else (low, middle)
    return plan(high)


def plan_for_error(plan: TracePlan, times: Floats) -> TracePlan:
    """A plan whose step is as coarse as its guarantee allows for traces of these times; a stated step is kept.

    The noise does not depend on the step, the charge for rounding does: the guarantee at the finest step tells mu.
    """
    if plan.step or len(times) <= MOST_AT_DEFAULT:
        return plan
    numbers = len(times) * plan.prior.dimensions
    finest = replace(plan, step=step_for(0.0, white=plan.white, numbers=numbers))
    mu = design_release(finest, times).guarantee.mu
    return replace(plan, step=step_for(mu, white=plan.white, numbers=numbers))

"""The noise of one trace under a plan, from its time stamps alone, and its guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq

from dovetail.core.errors import UnsupportedError
from dovetail.trace.guarantee import TraceGuarantee
from dovetail.trace.kernels.kernel import Floats, sorted_times
from dovetail.trace.loss.rounding import check_charge, least_variance, rounding_charge
from dovetail.trace.mechanisms.choose import default_design, design_noise
from dovetail.trace.mechanisms.closed_form import full_loss
from dovetail.trace.mechanisms.design import Budget, Design
from dovetail.trace.plan.noise import TraceDesign
from dovetail.trace.plan.statement import Secret, Zone, secret_losses, zone_loss
from dovetail.trace.plan.trace_plan import TracePlan

MOST_POINTS = 1000  # as one matrix
MOST_TO_SHARE = 300  # points around a secret that decide how axes share the budget


def design_trace(plan: TracePlan, times: Floats) -> TraceDesign:
    """The noise for a trace with these time stamps as one matrix; it reads nothing else of the trace.

    Raises
    ------
    UnsupportedError
        More points than one matrix can hold, a kernel that is singular at the secret, or a step that costs more than
        a twentieth of mu.
    """
    stamps = shown_times(plan, times)
    if len(stamps) > MOST_POINTS:
        raise UnsupportedError(
            f"a trace must have at most {MOST_POINTS:,} points here, got {len(stamps):,}; use design_release."
        )
    return _design(plan, stamps.tobytes())


def shown_times(plan: TracePlan, times: Floats) -> Floats:
    """Checked time stamps; from 0 unless secrets are named by the clock, so that one design serves many traces."""
    stamps = sorted_times(times)
    return stamps - stamps[0] if plan.secrets.from_start else stamps


@lru_cache(maxsize=64)
def _design(plan: TracePlan, stamps: bytes) -> TraceDesign:
    times = np.frombuffer(stamps)
    secrets = plan.secrets.places(times)
    variances, axes = plan.prior.axes()
    name, noises = axis_noises(plan, times, secrets)
    guarantee = _guarantee(plan, times, noises, secrets, name)
    return TraceDesign(times, axes, variances, guarantee, noises)


def axis_noises(plan: TracePlan, times: Floats, secrets: Sequence[Secret]) -> tuple[str, tuple[Floats, ...]]:
    """The mechanism, and its covariance along each axis; one object where two axes have the same."""
    variances, _ = plan.prior.axes()
    shares = axis_shares(plan, times, secrets[0][0], len(times) * plan.error**2)
    name, noises = plan.noise, list[Floats]()
    for share, variance in zip(shares, variances, strict=True):
        if noises and np.isclose(share / variance, shares[0] / variances[0], rtol=1e-9, atol=0.0):
            noises.append(noises[0])
            continue
        budget = Budget(len(times), share * plan.error**2 / variance, plan.floor)
        made = _axis(plan, name, times, secrets, budget)
        name = made.name
        noises.append(made.noise)
    return name, tuple(noises)


def _axis(plan: TracePlan, name: str, times: Floats, secrets: Sequence[Secret], budget: Budget) -> Design:
    if name:
        return design_noise(name, plan.prior.kernel, times, secrets, budget)
    return default_design(plan.prior.kernel, times, secrets, budget, every_time=plan.secrets.every_time)


def axis_shares(plan: TracePlan, times: Floats, place: int, total: float) -> Floats:
    """The share of a total budget of each axis: equal losses, by the closed form of one secret location.

    How the budget is shared changes no statement; far from the secret nothing matters for it.
    """
    variances, _ = plan.prior.axes()
    if len(variances) == 1 or np.allclose(variances, variances[0], rtol=1e-9, atol=0.0):
        return np.full(len(variances), 1.0 / len(variances))
    start = max(0, min(place - MOST_TO_SHARE // 2, len(times) - MOST_TO_SHARE))
    near = times[start : start + MOST_TO_SHARE]
    prior, here = plan.prior.kernel.matrix(near), place - start

    def loss(share: float, variance: float) -> float:
        budget = Budget(len(near), share * total / len(near) / variance, plan.floor)
        return full_loss(prior, here, budget) / variance

    first = brentq(lambda s: np.log(loss(s, variances[0]) / loss(1.0 - s, variances[1])), 1e-6, 1.0 - 1e-6)
    return np.array([first, 1.0 - first])


def _guarantee(
    plan: TracePlan, times: Floats, noises: tuple[Floats, ...], secrets: Sequence[Secret], name: str
) -> TraceGuarantee:
    """The guarantee of these covariances, each loss computed from the matrix that is sampled."""
    variances, _ = plan.prior.axes()
    white = min(least_variance(noise) * variance for noise, variance in zip(noises, variances, strict=True))
    charge = rounding_charge(plan.grid, plan.prior.dimensions * len(times), white)  # every point is rounded
    found = zone_loss(plan.prior.kernel, Zone(times, noises, secrets, {}), variances)
    return stated(plan, times, secrets, found.moves, found.widths, charge, name)


def stated(
    plan: TracePlan,
    times: Floats,
    secrets: Sequence[Secret],
    moves: dict[str, Floats],
    widths: Floats,
    charge: float,
    name: str,
) -> TraceGuarantee:
    """The guarantee of the worst moves (k,) of each secret for each adversary, the kernel itself first."""
    worst = {who: float(plan.radius * np.sqrt(each.max()) + charge) for who, each in moves.items()}
    own_name = next(iter(moves))
    losses = secret_losses(secrets, times, moves[own_name], widths, plan.radius, charge)
    own = worst.pop(own_name)
    check_charge(charge, own, plan.grid)
    return TraceGuarantee(own, plan.radius, tuple(losses), worst, plan.error, name)

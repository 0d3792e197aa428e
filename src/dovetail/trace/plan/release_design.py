"""The noise of any trace: one matrix where that fits, otherwise products for one secret, or windows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import inf

import numpy as np

from dovetail.trace.guarantee import TraceGuarantee
from dovetail.trace.kernels.kernel import Floats
from dovetail.trace.loss.adversaries import NO_NUGGET, OWN, adversary_kernels
from dovetail.trace.loss.evaluate import SIGHTING
from dovetail.trace.loss.rounding import rounding_charge
from dovetail.trace.mechanisms.design import Budget
from dovetail.trace.mechanisms.regular_design import design_regular
from dovetail.trace.mechanisms.regular_noise import RegularNoise, regular_loss, regular_sighting
from dovetail.trace.mechanisms.regular_prior import RegularPrior
from dovetail.trace.plan.design import MOST_POINTS, axis_shares, design_trace, shown_times, stated
from dovetail.trace.plan.noise import LongDesign, TraceNoise
from dovetail.trace.plan.statement import SIGHTING_NO_NUGGET, UNKNOWN
from dovetail.trace.plan.trace_plan import TracePlan
from dovetail.trace.plan.windowed import design_windows

LONG_NOISES = ("", "mixed", "full")
_UNEVEN = 1e-6  # of a step, that time stamps may be off


def design_release(plan: TracePlan, times: Floats) -> TraceNoise:
    """The noise for a trace with these time stamps, however many; it reads nothing else of the trace.

    One matrix up to 1,000 points. Beyond, one secret location at equal steps has the optimum of the whole trace, by
    conjugate gradients; everything else is cut into windows of independent noise.

    Raises
    ------
    DataError
        For times that do not increase.
    UnsupportedError
        Where no noise of this plan protects these times: the message says what to change.

    Examples
    --------
    >>> from dovetail.trace.kernels.stationary import Matern32
    >>> from dovetail.trace.prior import TracePrior
    >>> from dovetail.trace.secrets import SecretTimes
    >>> prior = TracePrior(Matern32(length=600.0), np.array([[1e6]]))
    >>> plan = TracePlan(prior, SecretTimes(), radius=100.0, error=300.0)
    >>> design = design_release(plan, np.arange(0.0, 600.0, 60.0))
    >>> design.guarantee.mu < 1.0
    True
    """
    stamps = shown_times(plan, times)
    if plan.window == 0 and len(stamps) <= MOST_POINTS:
        return design_trace(plan, times)
    secrets = plan.secrets.places(stamps)
    alone = len(secrets) == len(secrets[0]) == 1
    if plan.window == 0 and alone and plan.noise in LONG_NOISES and _equal_steps(stamps):
        return _long(plan, stamps.tobytes())
    return _windows(plan, stamps.tobytes())


def _equal_steps(times: Floats) -> bool:
    step = (times[-1] - times[0]) / (len(times) - 1)
    return bool(np.abs(times - times[0] - step * np.arange(len(times))).max() <= _UNEVEN * step)


@lru_cache(maxsize=8)
def _windows(plan: TracePlan, stamps: bytes) -> TraceNoise:
    return design_windows(plan, np.frombuffer(stamps))


@lru_cache(maxsize=8)
def _long(plan: TracePlan, stamps: bytes) -> LongDesign:
    times = np.frombuffer(stamps)
    ((place,),) = plan.secrets.places(times)
    variances, axes = plan.prior.axes()
    n, name = len(times), plan.noise or "mixed"
    prior = RegularPrior.of(plan.prior.kernel, n, step=float(times[-1] - times[0]) / (n - 1))
    if name == "mixed":
        prior.check_draw()
    noises: list[RegularNoise] = []
    shares = axis_shares(plan, times, place, n * plan.error**2)
    for share, variance in zip(shares, variances, strict=True):
        if noises and np.isclose(share / variance, shares[0] / variances[0], rtol=1e-9, atol=0.0):
            noises.append(noises[0])
            continue
        budget = Budget(n, share * plan.error**2 / variance, plan.floor)
        noises.append(design_regular(prior, place, budget, name=name).noise)
    guarantee = _long_guarantee(plan, times, noises, name)
    return LongDesign(times, axes, variances, guarantee, tuple(noises))


def _long_guarantee(plan: TracePlan, times: Floats, noises: Sequence[RegularNoise], name: str) -> TraceGuarantee:
    """The guarantee of noise that is never formed; an unknown mean adds at most what telling it would."""
    variances, _ = plan.prior.axes()
    n, step = len(times), float(times[-1] - times[0]) / (len(times) - 1)
    white = min(noise.white * variance for noise, variance in zip(noises, variances, strict=True))
    charge = rounding_charge(plan.grid, plan.prior.dimensions * n, white)
    single = {id(noise): noise for noise in noises}
    moves: dict[str, dict[int, float]] = {}
    for who, model in adversary_kernels(plan.prior.kernel).items():
        believed = RegularPrior.of(model, n, step=step)
        moves[who] = {key: regular_loss(believed, noise).upper for key, noise in single.items()}
    moves[UNKNOWN] = {key: value + 1.0 for key, value in moves[OWN].items()}
    moves[SIGHTING] = {key: regular_sighting(noise) for key, noise in single.items()}
    if NO_NUGGET in moves:  # not computed for a kernel that the noise was not made for
        moves[SIGHTING_NO_NUGGET] = dict.fromkeys(single, inf)
    worst = {
        who: np.array([max(each[id(noise)] / v for noise, v in zip(noises, variances, strict=True))])
        for who, each in moves.items()
    }
    width = min(2.0 * np.sqrt(v / (1.0 + moves[OWN][id(noise)])) for noise, v in zip(noises, variances, strict=True))
    secrets = plan.secrets.places(times)
    return stated(plan, times, secrets, worst, np.array([width]), charge, name)

"""Release one trace: rounded, noise added along the principal axes, rounded again."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail.core.entropy import entropy_or_system
from dovetail.trace.kernels import Floats
from dovetail.trace.noise import TraceNoise
from dovetail.trace.plan import TracePlan
from dovetail.trace.sampler import on_grid
from dovetail.trace.trace import Trace


def release_trace(trace: Trace, plan: TracePlan, design: TraceNoise, *, rng: Any = None) -> Floats:
    """Released points (n, d), metres, of a trace under a design for its times.

    Parameters
    ----------
    trace : Trace
    plan : TracePlan
    design : TraceNoise
        `design_release(plan, trace.times)`.
    rng : Entropy
        The operating system's by default.

    Raises
    ------
    UnsupportedError
        For a trace that the plan's kernel was fitted on.

    Examples
    --------
    >>> from dovetail.trace.kernels import Matern32
    >>> from dovetail.trace.release_design import design_release
    >>> from dovetail.trace.prior import TracePrior
    >>> from dovetail.trace.trace import SecretTimes
    >>> prior = TracePrior(Matern32(length=600.0), np.array([[1e6]]))
    >>> plan = TracePlan(prior, SecretTimes(), radius=100.0, error=300.0)
    >>> trace = Trace.of("a", np.arange(0.0, 600.0, 60.0), np.linspace(0.0, 900.0, 10))
    >>> release_trace(trace, plan, design_release(plan, trace.times)).shape
    (10, 1)
    """
    plan.prior.refuse_own(trace)
    return on_grid(on_grid(trace.points, plan.grid) + draw_noise(design, rng=rng), plan.grid)


def draw_noise(design: TraceNoise, *, rng: Any = None) -> Floats:
    """One draw of the noise (n, d), metres; every axis has its own stream of words."""
    entropy = entropy_or_system(rng)
    drawn = [np.sqrt(variance) * design.draw_axis(k, entropy) for k, variance in enumerate(design.variances)]
    return np.column_stack(drawn) @ design.axes

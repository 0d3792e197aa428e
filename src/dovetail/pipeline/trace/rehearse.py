"""Rehearse a plan on known traces: attacks and utility, and what the report draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dovetail.core.entropy import simulation
from dovetail.core.errors import UnsupportedError
from dovetail.trace.adversary.rehearsal import independent_noise, rehearse_attack, synthetic_traces
from dovetail.trace.adversary.smoother import smoother
from dovetail.trace.plan import TracePlan, design_trace
from dovetail.trace.release import draw_noise
from dovetail.trace.trace import Trace
from dovetail.trace.utility import utility


@dataclass(frozen=True)
class TraceRehearsal:
    """What a rehearsal found.

    Parameters
    ----------
    document : dict
        For machines and for the report's tables.
    picture : dict
        True and released points of one trace, and the adversary's ellipses at its secrets; metres.
    """

    document: dict[str, Any]
    picture: dict[str, Any]


def rehearse_traces(plan: TracePlan, traces: Sequence[Trace], *, draws: int, seed: int) -> TraceRehearsal:
    """Attack `draws` simulated releases of every trace, and of traces drawn from the prior.

    Raises
    ------
    UnsupportedError
        The traces have other coordinates than the prior.
    """
    for trace in traces:
        if trace.points.shape[1] != plan.prior.dimensions:
            raise UnsupportedError(f"trace {trace.name!r} has other coordinates than the prior.")
    if any(len({p for one in plan.secrets.places(trace.times) for p in one}) == trace.n for trace in traces):
        raise UnsupportedError("the plan's secrets are all times of a trace: an attack wants other times to see.")
    rng = simulation(seed)
    attacks = rehearse_attack(plan, traces, draws=draws, rng=rng)
    model = rehearse_attack(plan, synthetic_traces(plan, traces, rng), draws=draws, rng=rng)
    designs = [design_trace(plan, trace.times) for trace in traces]
    guarantees = [design.guarantee for design in designs]
    worst = max(guarantees, key=lambda one: one.mu)
    measured = {}
    for name, made in ((worst.noise, designs), ("uniform", [independent_noise(plan, one) for one in designs])):
        released = [trace.points + draw_noise(one, rng=rng) for trace, one in zip(traces, made, strict=True)]
        found = utility([trace.times for trace in traces], [trace.points for trace in traces], released)
        measured[name] = {**asdict(found), "heat": {f"{cell:g} m": value for cell, value in found.heat.items()}}
    document = {
        "mode": "rehearsal",
        "traces": len(traces),
        "draws": draws,
        "seed": seed,
        "radius": plan.radius,
        "error": plan.error,
        "mu": worst.mu,
        "by_adversary": {name: _number(value) for name, value in worst.by_adversary.items()},
        "secrets": [{"start": one.start, "end": one.end, "mu": one.mu, "width": one.width} for one in worst.secrets],
        "attacks": [asdict(one) for one in attacks],
        "model": [asdict(one) for one in model],
        "utility": measured,
        "conditions": list(worst.conditions),
    }
    return TraceRehearsal(document, _picture(plan, traces[0], rng))


def _number(value: float) -> float | str:
    return "inf" if value == float("inf") else value


def _picture(plan: TracePlan, trace: Trace, rng: Any) -> dict[str, Any]:
    """One trace, one release of it under the plan and under independent noise, and the ellipses of the smoother."""
    design = design_trace(plan, trace.times)
    places = sorted({place for one in plan.secrets.places(trace.times) for place in one})
    prior, panels = plan.prior.kernel.matrix(trace.times), {}
    for name, made in ((design.guarantee.noise, design), ("uniform", independent_noise(plan, design))):
        released = trace.points + draw_noise(made, rng=rng)
        turned, guesses, variances = released @ made.axes.T, [], []
        for k, (noise, variance) in enumerate(zip(made.noises, made.variances, strict=True)):
            reader = smoother(prior, noise, places)
            guesses.append(reader.estimate(turned[:, k]))
            variances.append(variance * reader.variance)
        panels[name] = {
            "released": released.tolist(),
            "centres": (np.column_stack(guesses) @ made.axes).tolist(),
            "deviations": np.sqrt(np.column_stack(variances)).tolist(),
            "axes": made.axes.tolist(),
        }
    return {"true": trace.points.tolist(), "secrets": places, "radius": plan.radius, "panels": panels}

"""Rehearse a plan on known traces: attacks and utility, and what the report draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import UnsupportedError
from dovetail.trace.adversary.rehearsal import Scene, independent_noise, rehearse_attack, scenes, synthetic_traces
from dovetail.trace.adversary.smoother import smoother
from dovetail.trace.guarantee import TraceGuarantee
from dovetail.trace.kernels.kernel import Floats
from dovetail.trace.plan.noise import TraceDesign
from dovetail.trace.plan.release_design import design_release
from dovetail.trace.plan.trace_plan import TracePlan
from dovetail.trace.release import draw_noise
from dovetail.trace.sampler import standard_normals
from dovetail.trace.trace import Trace
from dovetail.trace.utility import utility

MOST_POINTS = 3000  # of a rehearsed trace: one like it is drawn from the prior


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
        The traces have other coordinates than the prior, are too long, or have no time that is not secret.
    """
    for trace in traces:
        _check(plan, trace)
    rng = simulation(seed)
    attacks = rehearse_attack(plan, traces, draws=draws, rng=rng)
    model = rehearse_attack(plan, synthetic_traces(plan, traces, rng), draws=draws, rng=rng)
    worst = max((design_release(plan, trace.times).guarantee for trace in traces), key=lambda one: one.mu)
    document = {
        "mode": "rehearsal",
        "traces": len(traces),
        "draws": draws,
        "seed": seed,
        "error": plan.error,
        **_promised(worst),
        "attacks": [asdict(one) for one in attacks],
        "model": [asdict(one) for one in model],
        "utility": _utility(plan, traces, worst.noise, rng),
        "conditions": list(worst.conditions),
        "caveats": list(worst.caveats),
    }
    return TraceRehearsal(document, _picture(plan, scenes(plan, traces[0])[0], rng))


def _check(plan: TracePlan, trace: Trace) -> None:
    if trace.points.shape[1] != plan.prior.dimensions:
        raise UnsupportedError(f"trace {trace.name!r} has other coordinates than the prior.")
    if trace.n > MOST_POINTS:
        raise UnsupportedError(
            f"trace {trace.name!r}: must have at most {MOST_POINTS:,} points for a rehearsal, got {trace.n:,}."
        )
    if len({p for one in plan.secrets.places(trace.times) for p in one}) == trace.n:
        raise UnsupportedError("the plan's secrets are all times of a trace: an attack wants other times to see.")


def _promised(worst: TraceGuarantee) -> dict[str, Any]:
    return {
        "radius": worst.radius,
        "noise": worst.noise,
        "mu": worst.mu,
        "by_adversary": {name: _number(value) for name, value in worst.by_adversary.items()},
        "secrets": [{"start": one.start, "end": one.end, "mu": one.mu, "width": one.width} for one in worst.secrets],
    }


def _number(value: float) -> float | str:
    return "inf" if value == float("inf") else value


def _utility(plan: TracePlan, traces: Sequence[Trace], noise: str, rng: Entropy) -> dict[str, Any]:
    """Utility of one release of every trace, beside independent noise of the same error."""
    spread = plan.error / np.sqrt(plan.prior.dimensions)
    ours = [trace.points + draw_noise(design_release(plan, trace.times), rng=rng) for trace in traces]
    flat = [trace.points + spread * _normals(trace.points.shape, rng) for trace in traces]
    measured = {}
    for name, released in {noise: ours, "uniform": flat}.items():
        found = utility([trace.times for trace in traces], [trace.points for trace in traces], released)
        measured[name] = {**asdict(found), "heat": {f"{cell:g} m": value for cell, value in found.heat.items()}}
    return measured


def _normals(shape: tuple[int, ...], rng: Entropy) -> Floats:
    return standard_normals(int(np.prod(shape)), rng).reshape(shape)


def _picture(plan: TracePlan, scene: Scene, rng: Entropy) -> dict[str, Any]:
    """One scene, one release of it under the plan and under independent noise, and the ellipses of the smoother."""
    designs = {scene.design.guarantee.noise: scene.design, "uniform": independent_noise(plan, scene.design)}
    panels = {name: _panel(plan, scene, made, rng) for name, made in designs.items()}
    return {"true": scene.trace.points.tolist(), "secrets": scene.places, "radius": plan.radius, "panels": panels}


def _panel(plan: TracePlan, scene: Scene, made: TraceDesign, rng: Entropy) -> dict[str, Any]:
    prior = plan.prior.kernel.matrix(scene.trace.times)
    released = scene.trace.points + draw_noise(made, rng=rng)
    turned, guesses, variances = released @ made.axes.T, [], []
    for k, (noise, variance) in enumerate(zip(made.noises, made.variances, strict=True)):
        reader = smoother(prior, noise, scene.places)
        guesses.append(reader.estimate(turned[:, k]))
        variances.append(variance * reader.variance)
    return {
        "released": released.tolist(),
        "centres": (np.column_stack(guesses) @ made.axes).tolist(),
        "deviations": np.sqrt(np.column_stack(variances)).tolist(),
        "axes": made.axes.tolist(),
    }

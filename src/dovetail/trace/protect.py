"""Protecting the traces of a table: one design for each pattern of times, one draw for each trace, and the ledger."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from math import hypot, inf, sqrt
from multiprocessing import get_context
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from dovetail.core.display import mute, upward
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.core.progress import Progress, silent
from dovetail.trace.descent import one_thread
from dovetail.trace.kernels import Floats
from dovetail.trace.ledger import StoredRelease, TraceLedger, unrecorded
from dovetail.trace.loss import condition, information, protection
from dovetail.trace.mechanisms import standard_normals
from dovetail.trace.noise import TraceDesign, TraceNoise, shown_times
from dovetail.trace.plan import SecretLoss, TraceGuarantee, TracePlan, TracePrior
from dovetail.trace.posterior_loss import least_variance, rounding_charge
from dovetail.trace.rehearsal import (
    AttackedTrace,
    attacked_traces,
    independent_noise,
    rehearse_attack,
    smoother,
    synthetic_traces,
    utility,
)
from dovetail.trace.release_design import design_release, draw_noise, release_trace
from dovetail.trace.trace import Trace

# Designs for many traces: one for each pattern of time stamps, in parallel processes where there are many.


WORTH_A_PROCESS = 8  # patterns of time stamps: a process takes a second to start


def design_all(
    plan: TracePlan, traces: Sequence[Trace], *, jobs: int = 0, progress: Progress = silent
) -> list[TraceNoise]:
    """The noise of every trace; what is wrong is said with the trace's name.

    Parameters
    ----------
    plan : TracePlan
    traces : list of Trace
    jobs : int, at least 0
        Processes; 0 for as many as there are processors, where there are many patterns of time stamps.
    progress : function
    """
    patterns: dict[bytes, Trace] = {}
    for trace in traces:
        patterns.setdefault(shown_times(plan, trace.times).tobytes(), trace)
    workers = jobs or (1 if len(patterns) < WORTH_A_PROCESS else os.cpu_count() or 1)
    found = _apart(plan, patterns, min(workers, len(patterns)), progress)
    return [found[shown_times(plan, trace.times).tobytes()] for trace in traces]


Designs = dict[bytes, TraceNoise]  # by the bytes of time stamps


def _apart(plan: TracePlan, patterns: dict[bytes, Trace], workers: int, progress: Progress) -> Designs:
    """The design of every pattern; designs draw nothing, so that no process needs entropy."""
    found: Designs = {}
    if workers <= 1:
        for done, (key, trace) in enumerate(patterns.items(), start=1):
            found[key] = _named(plan, trace)
            progress("designing noise", done, len(patterns))
        return found
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(_alone, plan, trace.times, trace.name): key for key, trace in patterns.items()}
        try:
            for done, future in enumerate(as_completed(waiting), start=1):
                found[waiting[future]] = future.result()
                progress("designing noise", done, len(patterns))
        finally:
            pool.shutdown(cancel_futures=True)
    return found


def _alone(plan: TracePlan, times: Floats, name: str) -> TraceNoise:
    """In a process of its own, on one thread."""
    with one_thread():
        return _named(plan, Trace.of(name, times, times))


def _named(plan: TracePlan, trace: Trace) -> TraceNoise:
    try:
        return design_release(plan, trace.times)
    except (ParameterError, UnsupportedError) as error:
        raise UnsupportedError(f"trace {trace.name!r}: {error}") from None


TOGETHER = (
    "what earlier releases about this person promised alone no longer holds: mu counts the secrets of all of them, "
    "each within the radius of its own plan, under the kernel of this one"
)
UNNAMED = (
    "other releases of this person are not counted: no person is named, so two releases are known to be about one "
    "person only if half of the shorter one's points lie in the same cells of about 100 m at the same seconds"
)
MOST_ROWS = 4000  # of the joint covariance of all releases of a person


@dataclass(frozen=True, eq=False)
class ProtectedTrace:
    """One released trace.

    Parameters
    ----------
    name : str
    points : float array (n, d), metres
    guarantee : TraceGuarantee
        Counts every release that the ledger knows about this person.
    reproduced : bool
        Whether it was released before and is the same again.
    """

    name: str
    points: Floats
    guarantee: TraceGuarantee
    reproduced: bool


@dataclass(frozen=True)
class Protection:
    """Protection of a table of traces.

    Parameters
    ----------
    plan : TracePlan
    rng : Entropy
    ledger : TraceLedger or None
        None in a simulation.
    new_release : bool
        Release again although the same person was released before: losses are computed for all releases together.
    jobs : int
        Processes for the designs; 0 for as many as are worth it.
    """

    plan: TracePlan
    rng: Entropy
    ledger: TraceLedger | None
    new_release: bool = False
    jobs: int = 0

    def protect(
        self, traces: Sequence[Trace], people: Sequence[str | None], *, progress: Progress | None = None
    ) -> list[ProtectedTrace]:
        """Every trace, released; all are checked before the first is drawn."""
        for trace in traces:
            self.plan.prior.refuse_own(trace)
            if trace.points.shape[1] != self.plan.prior.dimensions:
                raise UnsupportedError(
                    f"trace {trace.name!r} has {trace.points.shape[1]} coordinates, the prior "
                    f"{self.plan.prior.dimensions}."
                )
        designs = design_all(self.plan, traces, jobs=self.jobs, progress=progress or silent)
        if self.ledger is None:
            pairs = zip(traces, designs, strict=True)
            drawn = [release_trace(trace, self.plan, design, rng=self.rng) for trace, design in pairs]
            return self._protected(traces, [design.guarantee for design in designs], drawn, [False] * len(traces))
        known = self.ledger.earlier_of_all(traces, people, plane=self.plan.prior.plane)
        replayed = [self._replayed(found, trace) for found, trace in zip(known, traces, strict=True)]
        for trace, found, again in zip(traces, known, replayed, strict=True):
            self._refuse_second(trace, found, again)
        guarantees = self._guarantees(self.ledger, traces, people, designs, known, replayed)
        points, repeated = self._draw(self.ledger, traces, people, designs, replayed)
        return self._protected(traces, guarantees, points, repeated)

    def _protected(
        self,
        traces: Sequence[Trace],
        guarantees: Sequence[TraceGuarantee],
        points: Sequence[Floats],
        again: list[bool],
    ) -> list[ProtectedTrace]:
        return [
            ProtectedTrace(trace.name, each, guarantee.drawn_from(self.rng.provenance), repeated)
            for trace, guarantee, each, repeated in zip(traces, guarantees, points, again, strict=True)
        ]

    def _guarantees(
        self,
        ledger: TraceLedger,
        traces: Sequence[Trace],
        people: Sequence[str | None],
        designs: Sequence[TraceNoise],
        known: Sequence[list[StoredRelease]],
        replayed: Sequence[StoredRelease | None],
    ) -> list[TraceGuarantee]:
        """Guarantee of each release together with every other one about its person, before and in this table.

        Computed before the first draw, so that a loss that cannot be stated leaves nothing drawn or recorded.
        """
        prints = [ledger.print_of_terms(trace, self.plan.terms()) for trace in traces]
        # a trace that stands twice in the table is drawn once, unless every one is meant as a new release
        first = [j if self.new_release else prints.index(one) for j, one in enumerate(prints)]
        linked, found = ledger.linked(traces, people, plane=self.plan.prior.plane), []
        for i, (trace, person, design) in enumerate(zip(traces, people, designs, strict=True)):
            others = [one for one in known[i] if one is not replayed[i]]
            others += [
                unrecorded(self.plan, designs[j], traces[j].times)
                for j in linked[i]
                if first[j] == j and replayed[j] is None and j != first[i]
            ]
            guarantee = self._composed(trace, design, others) if others else design.guarantee
            unnamed = (UNNAMED,) if person is None else ()
            found.append(replace(guarantee, caveats=(*guarantee.caveats, *unnamed)))
        return found

    def _replayed(self, earlier: list[StoredRelease], trace: Trace) -> StoredRelease | None:
        """The stored release that answers this request."""
        if self.ledger is None or self.new_release:
            return None
        return self.ledger.same(earlier, trace, self.plan.terms())

    def _composed(self, trace: Trace, design: TraceNoise, others: list[StoredRelease]) -> TraceGuarantee:
        try:
            return composed_guarantee(self.plan, trace.times, design, others)
        except UnsupportedError as error:
            raise UnsupportedError(f"trace {trace.name!r}: {error}") from None

    def _refuse_second(self, trace: Trace, earlier: list[StoredRelease], replayed: StoredRelease | None) -> None:
        if earlier and replayed is None and not self.new_release:
            raise UnsupportedError(
                f"trace {trace.name!r}: this person's locations were released before ({len(earlier)} times) under "
                "other terms; a further release is counted with them: use --new-release if you mean it."
            )

    def _draw(
        self,
        ledger: TraceLedger,
        traces: Sequence[Trace],
        people: Sequence[str | None],
        designs: Sequence[TraceNoise],
        replayed: Sequence[StoredRelease | None],
    ) -> tuple[list[Floats], list[bool]]:
        """Released points of every trace, and whether they are a repeat; recorded before anybody sees them."""
        made: dict[str, Floats] = {}
        points, repeated = list[Floats](), list[bool]()
        for trace, person, design, stored in zip(traces, people, designs, replayed, strict=True):
            request = ledger.print_of_terms(trace, self.plan.terms())
            again = stored is not None or (request in made and not self.new_release)
            if stored is not None:
                made[request] = stored.points
            elif not again:
                made[request] = release_trace(trace, self.plan, design, rng=self.rng)
                ledger.record(trace, person, self.plan, design, made[request])
            points.append(made[request])
            repeated.append(again)
        return points, repeated


def joint_prior(prior: TracePrior, times: Floats) -> Floats:
    """Prior covariance (n d, n d) in square metres, coordinates of a point side by side."""
    return np.asarray(np.kron(prior.kernel.matrix(times), prior.covariance))


def joint_charge(releases: Sequence[StoredRelease]) -> float:
    """Charge on mu of rounding the points of all releases: two hops over all of their numbers."""
    return hypot(*(rounding_charge(one.entry.step, len(one.noise), least_variance(one.noise)) for one in releases))


def composed_guarantee(
    plan: TracePlan, times: Floats, design: TraceNoise, others: Sequence[StoredRelease]
) -> TraceGuarantee:
    """The secrets of this release and of all others if one sees all: the joint prior, block by block noise.

    Another release's promise was made for it alone, so its secrets are computed again, each with its own radius.
    """
    d = plan.prior.dimensions
    if any(len(one.noise) not in (0, d * len(one.times)) for one in others):
        raise UnsupportedError("an earlier release of this person has other coordinates; use one prior for all.")
    releases = [unrecorded(plan, design, times), *others]
    if d * sum(len(one.times) for one in releases) > MOST_ROWS or any(len(one.noise) == 0 for one in releases):
        raise UnsupportedError(
            f"{len(releases)} releases of this person hold too many points for their joint loss; nothing is promised."
        )
    noise = block_diag(*(one.noise for one in releases))
    prior = joint_prior(plan.prior, np.concatenate([one.times for one in releases]))
    charge, start = joint_charge(releases), 0
    losses: list[SecretLoss] = []
    for number, one in enumerate(releases):
        for places in one.entry.secrets:
            rows = [(start + place) * d + k for place in places for k in range(d)]
            found = information(condition(prior, rows), noise).largest.upper
            mu = one.entry.radius * sqrt(found * len(places)) + charge
            first, last = (float(one.times[place] - one.times[0]) for place in (places[0], places[-1]))
            losses.append(SecretLoss(tuple(places), first, last, mu, 0.0, number > 0))
        start += len(one.times)
    # adversaries with other kernels are not computed for several releases: nothing is promised against them
    return replace(
        design.guarantee,
        mu=max(one.mu for one in losses),
        secrets=tuple(losses),
        by_adversary=dict.fromkeys(design.guarantee.by_adversary, inf),
        releases=len(releases),
        caveats=(*design.guarantee.caveats, TOGETHER),
    )


# Traces of many people: every device protects its own, a shuffler mixes whole traces; what the centre then knows.
#
# A device runs numpy: noise along a whole trace wants matrices, so there is no scalar twin. The shuffler sees
# released traces only; it drops names and people and draws a uniform order.


@dataclass(frozen=True)
class CentralTraces:
    """Guarantee of a shuffled collection of protected traces.

    Parameters
    ----------
    people, traces : int
    mu : float
        The worst of all traces, against an adversary who knows which trace is whose.
    radius : float, metres
    crowd : int
        Traces that have the same time stamps as the most conspicuous one.
    alike : int
        Traces that share their time stamps with at least one other.
    caveats : tuple of str
        Of the traces' own guarantees.
    """

    people: int
    traces: int
    mu: float
    radius: float
    crowd: int
    alike: int
    caveats: tuple[str, ...] = ()

    def lines(self) -> tuple[str, ...]:
        """With an honest shuffler what it adds and what it does not, and what remains if it colludes."""
        mu = upward(self.mu)
        return (
            f"the order tells nothing of whose a trace is: by time stamps alone its owner is one of at least "
            f"{self.crowd:,} ({self.alike:,} of {self.traces:,} traces share their time stamps with another one)",
            f"shuffling adds nothing to mu, which stays {mu} within {self.radius:g} m: places that are not secret "
            "may name the owner, and amplification by shuffling wants reports that hide every value",
            f"whose trace is whose is known, and mu {mu} remains",
        )


@mute
@dataclass(frozen=True, eq=False)
class ShuffledTraces:
    """Released traces in a uniform order, without names.

    Parameters
    ----------
    times : list of float array (n,), seconds
    points : list of float array (n, d), metres
    central : CentralTraces
    """

    times: Sequence[Floats]
    points: Sequence[Floats]
    central: CentralTraces


def shuffle_traces(
    traces: Sequence[Trace],
    people: Sequence[str | None],
    released: Sequence[ProtectedTrace],
    *,
    relative: bool,
    rng: Entropy,
) -> ShuffledTraces:
    """Mix whole traces.

    Parameters
    ----------
    traces : list of Trace
        Only their time stamps are read.
    people : list of str or None
        Whose each is; without a name every trace counts as somebody's own.
    released : list of ProtectedTrace
        What the devices sent.
    relative : bool
        Release seconds from the start of each trace instead of its clock, so that starts tell no traces apart.
    rng : Entropy
    """
    times = [trace.times - trace.times[0] if relative else trace.times for trace in traces]
    order = rng.permutation(len(traces))
    crowds = Counter(stamps.tobytes() for stamps in times)
    central = CentralTraces(
        people=len({name if name is not None else i for i, name in enumerate(people)}),
        traces=len(traces),
        mu=max(one.guarantee.mu for one in released),
        radius=released[0].guarantee.radius,
        crowd=min(crowds.values()),
        alike=sum(count for count in crowds.values() if count > 1),
        caveats=tuple(dict.fromkeys(caveat for one in released for caveat in one.guarantee.caveats)),
    )
    places = np.asarray(order).tolist()
    return ShuffledTraces([times[i] for i in places], [released[i].points for i in places], central)


# Rehearse a plan on known traces: attacks and utility, and what the report draws.


MOST_POINTS = 3000  # of a rehearsed trace: one like it is drawn from the prior


@dataclass(frozen=True)
class TraceRehearsal:
    """Result of a rehearsal.

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
    return TraceRehearsal(document, _picture(plan, attacked_traces(plan, traces[0])[0], rng))


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
        "verdict": protection(worst.strongest),
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


def _picture(plan: TracePlan, scene: AttackedTrace, rng: Entropy) -> dict[str, Any]:
    """One scene, one release of it under the plan and under independent noise, and the ellipses of the smoother."""
    designs = {scene.design.guarantee.noise: scene.design, "uniform": independent_noise(plan, scene.design)}
    panels = {name: _panel(plan, scene, made, rng) for name, made in designs.items()}
    return {"true": scene.trace.points.tolist(), "secrets": scene.places, "radius": plan.radius, "panels": panels}


def _panel(plan: TracePlan, scene: AttackedTrace, made: TraceDesign, rng: Entropy) -> dict[str, Any]:
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

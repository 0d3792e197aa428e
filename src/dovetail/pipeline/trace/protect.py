"""Protecting the traces of a table: one design for each pattern of times, one draw for each trace, and the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import hypot, inf, sqrt
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from dovetail.core.entropy import Entropy
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.pipeline.progress import Progress
from dovetail.pipeline.trace.trace_ledger import StoredRelease, TraceLedger
from dovetail.trace.guarantee import TraceGuarantee
from dovetail.trace.kernels.kernel import Floats
from dovetail.trace.loss.conditional import condition
from dovetail.trace.loss.information import information
from dovetail.trace.loss.rounding import least_variance, rounding_charge
from dovetail.trace.plan import TraceDesign, TracePlan, design_trace, joint_noise
from dovetail.trace.prior import TracePrior
from dovetail.trace.release import release_trace
from dovetail.trace.trace import Trace

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
    """How a table is protected.

    Parameters
    ----------
    plan : TracePlan
    rng : Entropy
    ledger : TraceLedger or None
        None in a simulation.
    new_release : bool
        Release again although the same person was released before: losses are computed for all releases together.
    """

    plan: TracePlan
    rng: Entropy
    ledger: TraceLedger | None
    new_release: bool = False

    def protect(
        self, traces: Sequence[Trace], people: Sequence[str | None], *, progress: Progress | None = None
    ) -> list[ProtectedTrace]:
        """Every trace, released; all are checked before the first is drawn."""
        designs = []
        for done, trace in enumerate(traces, start=1):
            self.plan.prior.refuse_own(trace)
            if trace.points.shape[1] != self.plan.prior.dimensions:
                raise UnsupportedError(
                    f"trace {trace.name!r} has {trace.points.shape[1]} coordinates, the prior "
                    f"{self.plan.prior.dimensions}."
                )
            designs.append(_design(self.plan, trace))
            if progress is not None:
                progress("designing noise", done, len(traces))
        if self.ledger is not None and not self.new_release:
            for trace, person in zip(traces, people, strict=True):
                self._refuse_second(trace, person)
        drawn = [self._draw(*each) for each in zip(traces, people, designs, strict=True)]
        return [
            ProtectedTrace(trace.name, points, self._guarantee(trace, person, design, number), again)
            for trace, person, design, (points, number, again) in zip(traces, people, designs, drawn, strict=True)
        ]

    def _refuse_second(self, trace: Trace, person: str | None) -> None:
        assert self.ledger is not None
        earlier = self.ledger.earlier(trace, person)
        if earlier and self.ledger.same(earlier, trace, self.plan.terms()) is None:
            raise UnsupportedError(
                f"trace {trace.name!r}: this person's locations were released before ({len(earlier)} times) "
                f"under other "
                "terms; a further release is counted with them: use --new-release if you mean it."
            )

    def _draw(self, trace: Trace, person: str | None, design: TraceDesign) -> tuple[Floats, int, bool]:
        """Released points, the number of their entry, and whether they are a repeat."""
        if self.ledger is None:
            return release_trace(trace, self.plan, design, rng=self.rng), 0, False
        if not self.new_release:
            stored = self.ledger.same(self.ledger.earlier(trace, person), trace, self.plan.terms())
            if stored is not None:
                return stored.points, stored.entry.number, True
        points = release_trace(trace, self.plan, design, rng=self.rng)
        entry = self.ledger.record(trace, person, self.plan, design, points)
        return points, entry.number, False

    def _guarantee(self, trace: Trace, person: str | None, design: TraceDesign, number: int) -> TraceGuarantee:
        """What holds for this release together with every other one about the person, before and in this table."""
        guarantee = design.guarantee
        if self.ledger is not None:
            others = [one for one in self.ledger.earlier(trace, person) if one.entry.number != number]
            if others:
                guarantee = composed_guarantee(self.plan, trace.times, design, others)
        return guarantee.drawn_from(self.rng.provenance)


def _design(plan: TracePlan, trace: Trace) -> TraceDesign:
    """The noise for a trace; what is wrong is said with its name."""
    try:
        return design_trace(plan, trace.times)
    except (ParameterError, UnsupportedError) as error:
        raise UnsupportedError(f"trace {trace.name!r}: {error}") from None


def joint_prior(prior: TracePrior, times: Floats) -> Floats:
    """Prior covariance (n d, n d) in square metres, coordinates of a point side by side."""
    return np.asarray(np.kron(prior.kernel.matrix(times), prior.covariance))


def joint_charge(plan: TracePlan, times: Floats, design: TraceDesign, earlier: Sequence[StoredRelease]) -> float:
    """What rounding the points of all releases adds to mu: two hops over all of their numbers."""
    d = plan.prior.dimensions
    parts = [(plan.grid, len(times), joint_noise(design))]
    parts += [(one.entry.step, len(one.times), one.noise) for one in earlier]
    return hypot(*(rounding_charge(step, d * n, least_variance(noise)) for step, n, noise in parts))


def composed_guarantee(
    plan: TracePlan, times: Floats, design: TraceDesign, earlier: Sequence[StoredRelease]
) -> TraceGuarantee:
    """The stated secrets of this release against whoever sees all releases: the joint prior, block by block noise."""
    d = plan.prior.dimensions
    if any(len(one.noise) != d * len(one.times) for one in earlier):
        raise UnsupportedError("an earlier release of this person has other coordinates; use one prior for all.")
    if d * (len(times) + sum(len(one.times) for one in earlier)) > MOST_ROWS:
        raise UnsupportedError(
            f"{1 + len(earlier)} releases of this person hold too many points for their joint loss; nothing is "
            f"promised."
        )
    stamps = np.concatenate([times, *(one.times for one in earlier)])
    noise = block_diag(joint_noise(design), *(one.noise for one in earlier))
    prior = joint_prior(plan.prior, stamps)
    charge = joint_charge(plan, times, design, earlier)
    losses = []
    for secret in design.guarantee.secrets:
        rows = [place * d + k for place in secret.places for k in range(d)]
        found = information(condition(prior, rows), noise).largest.upper
        losses.append(replace(secret, mu=plan.radius * sqrt(found * len(secret.places)) + charge, width=0.0))
    # adversaries with other kernels are not computed for several releases: nothing is promised against them
    others: dict[str, Any] = dict.fromkeys(design.guarantee.by_adversary, inf)
    return replace(
        design.guarantee,
        mu=max(one.mu for one in losses),
        secrets=tuple(losses),
        by_adversary=others,
        releases=1 + len(earlier),
    )

"""Protecting the traces of a table: one design for each pattern of times, one draw for each trace, and the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import hypot, inf, sqrt

import numpy as np
from scipy.linalg import block_diag

from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.pipeline.progress import Progress, silent
from dovetail.pipeline.trace.designs import design_all
from dovetail.pipeline.trace.trace_ledger import StoredRelease, TraceLedger, unrecorded
from dovetail.trace.guarantee import SecretLoss, TraceGuarantee
from dovetail.trace.kernels.kernel import Floats
from dovetail.trace.loss.conditional import condition
from dovetail.trace.loss.information import information
from dovetail.trace.loss.rounding import least_variance, rounding_charge
from dovetail.trace.plan.noise import TraceNoise
from dovetail.trace.plan.trace_plan import TracePlan
from dovetail.trace.prior import TracePrior
from dovetail.trace.release import release_trace
from dovetail.trace.trace import Trace

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
    """How a table is protected.

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
        """What will hold for each release together with every other one about its person, before and in this table.

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
    """What rounding the points of all releases adds to mu: two hops over all of their numbers."""
    return hypot(*(rounding_charge(one.entry.step, len(one.noise), least_variance(one.noise)) for one in releases))


def composed_guarantee(
    plan: TracePlan, times: Floats, design: TraceNoise, others: Sequence[StoredRelease]
) -> TraceGuarantee:
    """The secrets of this release and of all others against whoever sees all: the joint prior, block by block noise.

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

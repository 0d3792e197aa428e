"""A rehearsal, where the truth is known, and a release, which remembers nothing else; and the folder of either."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from dovetail import __version__
from dovetail.core.certified import sum_as_written
from dovetail.core.display import mute
from dovetail.core.entropy import Entropy, entropy_or_system, simulation, system_entropy
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.core.extras import pl
from dovetail.core.guarantee import CentralDP, LocalDP, OrderPrivacy
from dovetail.core.missing import Missing
from dovetail.core.noise import Noise
from dovetail.core.progress import Progress, silent
from dovetail.core.question import Question
from dovetail.core.stages import SECTIONS, Labels, Reports
from dovetail.job.attacks import attacks, learnability
from dovetail.job.build import digest_of
from dovetail.job.collection import Collection, Fit, need_collection
from dovetail.job.config import AttackSection, EstimateSection
from dovetail.job.evaluate import (
    assumptions,
    collection_document,
    evaluate,
    randomizer_document,
    steps,
)
from dovetail.leak.linkage import Linkage
from dovetail.ledger.releases import LedgerAnswer, LedgerEntry, ReleaseLedger, ReleaseRequest, charged
from dovetail.report.document import NO_DIGEST, Evaluation, PrivacyReport
from dovetail.shuffle.uniform import Uniform
from dovetail.table.reader import canonical
from dovetail.table.released import describe_reports, from_columns, to_columns
from dovetail.table.spelling import names_of

# A rehearsal: the truth is known, so shufflers are compared on the same reports, attacked and scored.


NOTHING = Missing("a rehearsal releases nothing")
NO_TABLE = Missing('a rehearsal knows the truth and gives no table away; use mode = "release"')


def rehearse(
    collection: Collection,
    *,
    compare: Sequence[Fit] = (),
    estimate: EstimateSection | None = None,
    attack: AttackSection | None = None,
    seed: int | None = None,
    rng: Entropy | None = None,
    progress: Progress = silent,
) -> PrivacyReport:
    """Truth is known: every shuffler that is compared gets the same reports, the estimates stand beside the truth.

    Parameters
    ----------
    compare : functions of the public columns
        Further shufflers, as `Collection.of` takes one.
    estimate, attack : sections of a configuration, optional
        What the analyst wants, and which attacks are mounted.
    seed : int, optional
        Draw from `dt.simulation(seed)`: the same rehearsal of the same collection again.

    Raises
    ------
    ParameterError
        For what is no `Collection`, and for a seed beside an `rng`.
    UnsupportedError, DataError
        Where an attack or an estimate that was asked for does not apply.

    Examples
    --------
    >>> import dovetail as dt
    >>> import polars as pl
    >>> table = pl.DataFrame({"answer": ["no", "yes"] * 50})
    >>> krr = dt.KRR(k=2, epsilon=1.0)
    >>> asked = Collection.of(table, private="answer", randomizer=krr, rng=dt.simulation(1))
    >>> rehearse(asked, rng=dt.simulation(2)).evaluation.central.epsilon < 1.0
    True
    """
    need_collection(collection)
    if seed is not None and rng is not None:
        raise ParameterError("give `seed` or `rng`, not both: `seed` stands for rng=dt.simulation(seed).")
    rng, wanted = entropy_or_system(rng) if seed is None else simulation(seed), estimate or EstimateSection()
    reports = collection.randomized(rng)
    every = {one.shuffler.name: one for one in (collection, *(collection.through(fit) for fit in compare))}
    unmeasured = collection.hidden
    learned: dict[str, Any] = dict.fromkeys(every, unmeasured)
    if unmeasured is None:
        learned = learnability(
            wanted, collection.survey, collection.randomizer, [one.shuffler for one in every.values()], rng
        )
    attacking = attack or AttackSection.choose({})
    targets = rng.permutation(collection.n)[: attacking.targets]  # the same people, whatever shuffles
    found = [
        replace(
            _one(one, reports, wanted, attacking, targets, rng, progress),
            learnability=learned[one.shuffler.name],
        )
        for one in every.values()
    ]
    found[0] = replace(found[0], sections=unmeasured or _measured(collection, rng, progress))
    comparison = {evaluation.shuffler: evaluation for evaluation in found[1:] + found[:1]}
    return collection_report(
        collection, found[0], None, rng, comparison=tuple(comparison.values()) if compare else ()
    )


def _measured(collection: Collection, rng: Entropy, progress: Progress) -> dict[str, dict[str, Any] | Missing]:
    """Every section about the release of the chosen shuffler."""
    sections = tuple(SECTIONS)
    found = {}
    for done, section in enumerate(sections):
        progress("sections of the report", done, len(sections))
        found[section.name] = section.measure(collection, rng)
    progress("sections of the report", len(sections), len(sections))
    return found


def _one(
    collection: Collection,
    reports: Reports,
    estimate: EstimateSection,
    attack: AttackSection,
    targets: Labels,
    rng: Entropy,
    progress: Progress,
) -> Evaluation:
    shuffler = collection.shuffler
    progress(f"shuffle: {shuffler.label}", 0, 1)
    batch = shuffler.shuffle(reports, rng)
    batch = collection.noise.complete(batch, rng)
    progress(f"shuffle: {shuffler.label}", 1, 1)
    evaluation = evaluate(
        collection, batch, estimate=estimate, truth=collection.survey.values, provenance=rng.provenance
    )
    return replace(
        evaluation, attacks=collection.question.hidden or attacks(collection, attack, targets, rng, progress)
    )


# Drawing a release: randomize, shuffle, and put the reports into a table that remembers nothing else.


class HasOrder(Protocol):
    """Anything that promises something about order."""

    @property
    def guarantee(self) -> OrderPrivacy: ...


@dataclass(frozen=True)
class RecordedGroups:
    """The groups of an earlier release, of which the ledger keeps no more than a fingerprint."""

    number: int

    def covers(self, other: object) -> bool:
        """Known of themselves alone."""
        return self == other

    def __repr__(self) -> str:
        return f"the groups of release {self.number}"


@mute
@dataclass(frozen=True, eq=False)
class ReleasedTable:
    """The released table, its reports, and every release of these people so far."""

    table: pl.DataFrame
    reports: Reports
    public: pl.DataFrame
    history: tuple[LedgerEntry, ...]
    number: int
    reproduced: bool
    total: LocalDP | None = None  # over all releases, where it is known person by person

    @classmethod
    def of(
        cls,
        answer: LedgerAnswer,
        reports: Reports | None = None,
        *,
        public: pl.DataFrame | None = None,
        total: LocalDP | None = None,
    ) -> Self:
        """The release that the ledger answered; estimates are of `reports` and `public`, where they need a form."""
        return cls(
            answer.reports,
            np.empty(0) if reports is None else reports,
            pl.DataFrame() if public is None else public,
            answer.history,
            answer.number,
            answer.reproduced,
            total,
        )

    def compose(self, evaluation: Evaluation, noise: Noise | None = None) -> Evaluation:
        """The guarantees for everything released about these people.

        Local budgets add over all releases, person by person where that is known, and so do order budgets of the same
        groups and promises about the batches, where the ledger has that of each, unless the `noise` of all is one
        that is paid for so many. Leakage of earlier releases held on its own terms; several give no number.
        """
        if len(self.history) < 2:
            return evaluation
        total, central = self._total(), self._central(evaluation.central, noise)
        reason = f"these people took part in {len(self.history)} releases, each on terms of its own"
        if isinstance(central, Missing):
            central = Missing(f"{reason}: {central.reason}")
        order = replace(evaluation.order, guarantee=self._order(evaluation.order.guarantee))
        linked = evaluation.linkage
        if isinstance(linked, Linkage):  # other releases tell about the others' values
            linked = replace(linked, shares_known=linked.values_known, method="bound")
        return replace(
            evaluation, local=total, central=central, leakage=Missing(reason), linkage=linked, order=order,
        )  # fmt: skip

    def _central(self, last: CentralDP | Missing, noise: Noise | None) -> CentralDP | Missing:
        """The promise about the batches of all releases: one that is paid for so many, or their sum."""
        count, together = len(self.history), {entry.note for entry in self.history}
        if noise is not None and together == {noise.rounds_note()} and count <= noise.releases:
            return last
        found = [last if entry.number == self.number else entry.central for entry in self.history]
        known = [one for one in found if isinstance(one, CentralDP)]
        if isinstance(last, Missing) or len(known) < count:
            return next(one for one in found if isinstance(one, Missing))
        try:
            total = reduce(CentralDP.compose, known)
        except UnsupportedError as error:
            return Missing(str(error))
        source = (
            f"basic composition (Dwork et al. 2006) of {count} releases, where it is no secret whether the table had "
            f"changed in between; the last: [{last.source}]"
        )
        return replace(total, method=f"basic composition of {count} releases", source=source)

    def _total(self) -> LocalDP:
        local = [LocalDP(entry.epsilon, source=f"release {entry.number}") for entry in self.history]
        return reduce(LocalDP.compose, local) if self.total is None else self.total

    def _order(self, last: OrderPrivacy) -> OrderPrivacy:
        """Alphas add for one common grouping; a uniform shuffle of the same table has alpha 0 for any."""
        finer = [entry for entry in self.history if entry.shuffler != Uniform.name] or self.history
        mixed = len({entry.groups for entry in self.history}) > 1
        one_table = len({entry.table for entry in self.history}) == 1
        if mixed and not (one_table and len({entry.groups for entry in finer}) == 1):
            return OrderPrivacy(math.inf, source="releases for different groups: no order promise over all of them")
        alpha = sum_as_written(entry.alpha for entry in self.history)
        groups = last.groups if self.history[-1] in finer else RecordedGroups(finer[-1].number)
        source = f"{len(self.history)} independent releases add: [{last.source}]"
        return replace(last, alpha=alpha, groups=groups, source=source)

    def document(self) -> dict[str, Any]:
        """For the report."""
        return {
            "number": self.number,
            "releases": len(self.history),
            "total_epsilon": self._total().epsilon,
        }


def report_of(
    title: str, evaluation: Evaluation, released: ReleasedTable | None, rng: Entropy, **rest: Any
) -> PrivacyReport:
    """The report of any job: what rehearsals and releases differ in; `rest` are the fields in which jobs differ.

    Parameters
    ----------
    evaluation : Evaluation
        Over every release of these people, where there is one.
    released : ReleasedTable, optional
        None for a rehearsal.
    """
    return PrivacyReport(
        title=title,
        mode="rehearsal" if released is None else "release",
        entropy=rng.provenance,
        seed=rng.seed,
        version=__version__,
        evaluation=evaluation,
        release=NOTHING if released is None else released.document(),
        sanitized=NO_TABLE if released is None else released.table,
        **rest,
    )


def collection_report(
    collection: Collection, evaluation: Evaluation, released: ReleasedTable | None, rng: Entropy, **rest: Any
) -> PrivacyReport:
    """The report of one column whose metrics are `evaluation`."""
    mode, described = "rehearsal" if released is None else "release", collection_document(collection)
    return report_of(
        collection.title or f"Collection of {described['private']}", evaluation, released, rng,
        collection=described,
        randomizer=randomizer_document(collection.randomizer),
        assumptions=assumptions(collection, evaluation, mode=mode),
        steps=steps(evaluation, collection.noise),
        config=dict(collection.asked),
        table=sha256(collection.survey.content).hexdigest() if released is None else NO_DIGEST,
        sanitized_description=describe_collection(collection, rng.provenance),
        **rest,
    )  # fmt: skip


def describe_collection(collection: Collection, provenance: str) -> dict[str, Any]:
    """The settings that a later stage needs to read the reports."""
    return describe_reports(
        collection.randomizer, collection.categories, provenance,
        shuffle=collection.asked.get("shuffle") or {"shuffler": collection.shuffler.name},
        **collection.noise.described(collection.people), **recorded(collection.question),
    )  # fmt: skip


def recorded(question: Question) -> dict[str, Any]:
    """The settings of a question that a later stage needs beside its reports."""
    settings = asdict(question) if question.settings() else {}  # type: ignore[call-overload]
    return {"question": {"ask": question.name, **settings}} if settings else {}


def release(
    collection: Collection,
    *,
    ledger: ReleaseLedger | None = None,
    estimate: EstimateSection | None = None,
    new_release: bool = False,
    progress: Progress = silent,
) -> PrivacyReport:
    """Release a table by the operating system's entropy; from then on nothing looks at the private column.

    Parameters
    ----------
    ledger : ReleaseLedger, optional
        The private release ledger; default: DOVETAIL_LEDGER or the user's application folder.
    estimate : section of a configuration, optional
        What the analyst wants.
    new_release : bool
        Draw afresh although these people and values have been released before; budgets add.

    Raises
    ------
    UnsupportedError
        Where nobody is shuffled, categories were inferred, or the table was released under other terms.

    Examples
    --------
    >>> import polars as pl
    >>> import dovetail as dt
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> table = pl.DataFrame({"answer": ["no", "yes"] * 50})
    >>> krr = dt.KRR(k=2, epsilon=1.0)
    >>> asked = dt.Collection.of(table, private="answer", categories=["no", "yes"], randomizer=krr)
    >>> with TemporaryDirectory() as ledger:
    ...     first, again = (dt.release(asked, ledger=ReleaseLedger(Path(ledger))).sanitized for _ in range(2))
    >>> first.shape, first.equals(again)
    ((100, 1), True)
    """
    need_collection(collection)
    if collection.inferred:
        raise UnsupportedError("a release must declare its categories: those of the table are private.")
    if collection.provenance != system_entropy().provenance:
        raise UnsupportedError(
            "a release draws from the operating system, also the order of its rows: leave out `rng`."
        )
    collection.refuse_drowned()
    rng, wanted = system_entropy(), estimate or EstimateSection()
    refuse_identity_shuffle(collection.shuffler)
    progress("draw the release", 0, 1)
    released = draw_release(collection, rng, ledger or ReleaseLedger.default(), new_release=new_release)
    progress("draw the release", 1, 1)
    if collection.shuffler.keeps_places:  # the recorded rows have their own order: fit to that
        collection = collection.along(released.public)
    evaluation = evaluate(collection, released.reports, estimate=wanted, truth=None, provenance=rng.provenance)
    return collection_report(collection, released.compose(evaluation, collection.noise), released, rng)


def draw_release(collection: Collection, rng: Entropy, ledger: ReleaseLedger, *, new_release: bool) -> ReleasedTable:
    """The recorded release of this table under these terms, or a fresh one."""
    survey, randomizer, shuffler = collection.survey, collection.randomizer, collection.shuffler

    def draw() -> pl.DataFrame:
        batch = collection.drawn(rng)  # once: a repeated run reads the recorded batch
        columns = to_columns(randomizer, batch, collection.categories)
        return pl.DataFrame([*survey.public, *columns]) if shuffler.keeps_places else columns

    answer = ledger.answer(_request(collection), new_release=new_release, draw=draw)
    table = answer.reports
    public = table.select(survey.public.columns) if shuffler.keeps_places else survey.public.clear()
    return ReleasedTable.of(answer, from_columns(randomizer, table, collection.categories), public=public)


def _request(collection: Collection) -> ReleaseRequest:
    survey, shuffler, section = collection.survey, collection.shuffler, collection.groups
    grouped, spec = list[str](), "everybody"
    if section is not None and shuffler.keeps_places:
        grouped = [name for name in section.columns if name in survey.public.columns]  # people stand beside them
        spec = section.with_files(digest_of).model_dump_json()
    if not collection.as_configured:
        spec = collection.grouping()
    alone = bool(survey.prints) and not survey.public.width  # prints tell of people already
    return ReleaseRequest(
        table=survey.content,
        terms=collection.terms() + (b"" if alone else canonical(pl.DataFrame([*survey.people, *survey.public]))),
        groups=spec.encode() + canonical(pl.DataFrame([*survey.people, *survey.public.select(grouped)])),
        people=[] if not survey.people.width else names_of(survey.people.to_series()).to_list(),
        epsilon=charged(collection.randomizer.guarantee),
        alpha=shuffler.guarantee.alpha,
        n=survey.n,
        shuffler=shuffler.name,
        dummies=collection.noise.most_added(collection.people),
        dropped=collection.noise.most_dropped(collection.people),
        note=collection.noise.rounds_note(),
        central=collection.central,
    )


def refuse_identity_shuffle(shuffler: HasOrder) -> None:
    """A release shuffles: what leaves everybody at their places publishes who sent what."""
    if not shuffler.guarantee.protects:
        raise UnsupportedError(
            "nobody would be shuffled with anybody else, so this release would publish who sent what: use larger "
            'groups, a finite alpha, or shuffler = "uniform".'
        )


# The folder of a run: report.json, report.html and, for a release, the sanitized table; all of them or none.


def write_report(report: PrivacyReport, target: Path, *, force: bool, progress: Progress) -> PrivacyReport:
    """Write the report into the folder `target`; it then names its files."""
    progress("write the report", 0, 1)
    report = report.save(target, force=force)
    progress("write the report", 1, 1)
    return report

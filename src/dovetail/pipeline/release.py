"""Drawing a release: randomize, shuffle, and put the reports into a table that remembers nothing else."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Protocol

import polars as pl

from dovetail.core.display.display import mute
from dovetail.core.entropy import Entropy, system_entropy
from dovetail.core.errors import UnsupportedError
from dovetail.core.guarantee import LocalDP, OrderPrivacy
from dovetail.core.stages import Reports
from dovetail.pipeline.collection import Collection, need_collection
from dovetail.pipeline.config.sections import EstimateSection
from dovetail.pipeline.evaluate.evaluate import evaluate, privacy_report
from dovetail.pipeline.files.report_columns import from_columns, to_columns
from dovetail.pipeline.files.table import as_text, canonical
from dovetail.pipeline.progress import Progress, silent
from dovetail.pipeline.release_entry import LedgerEntry, ReleaseRequest
from dovetail.pipeline.release_ledger import ReleaseLedger
from dovetail.report.document import Evaluation, Missing, PrivacyReport
from dovetail.report.number_format import upward
from dovetail.shuffle.uniform import Uniform


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

    def compose(self, evaluation: Evaluation) -> Evaluation:
        """The guarantees for everything released about these people.

        Local budgets add over all releases, person by person where that is known, and so do order budgets of the same
        groups. Central guarantees and leakage of earlier releases held on their own terms; over several releases
        they give no number.
        """
        if len(self.history) < 2:
            return evaluation
        total = self._total()
        reason = (
            f"these people took part in {len(self.history)} releases, each on terms of its own; "
            f"what is promised over all of them is local epsilon {upward(total.epsilon)}, where it is no secret "
            "whether the table had changed in between"
        )
        order = replace(evaluation.order, guarantee=self._order(evaluation.order.guarantee))
        return replace(evaluation, local=total, central=Missing(reason), leakage=Missing(reason), order=order)

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
        alpha = math.fsum(entry.alpha for entry in self.history)
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


def release(
    collection: Collection,
    *,
    ledger: ReleaseLedger | None = None,
    estimate: EstimateSection | None = None,
    new_release: bool = False,
    progress: Progress = silent,
) -> PrivacyReport:
    """What leaves the house, drawn from the operating system; from then on nothing looks at the private column.

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
    rng, wanted = system_entropy(), estimate or EstimateSection()
    refuse_still(collection.shuffler)
    progress("draw the release", 0, 1)
    released = draw_release(collection, rng, ledger or ReleaseLedger.default(), new_release=new_release)
    progress("draw the release", 1, 1)
    if collection.shuffler.keeps_places:  # the recorded rows have their own order: fit to that
        collection = collection.along(released.public)
    evaluation = evaluate(collection, released.reports, estimate=wanted, truth=None, provenance=rng.provenance)
    return privacy_report(
        collection, released.compose(evaluation), mode="release", provenance=rng.provenance, seed=None, comparison=(),
        release=released.document(), sanitized=released.table,
    )  # fmt: skip


def draw_release(collection: Collection, rng: Entropy, ledger: ReleaseLedger, *, new_release: bool) -> ReleasedTable:
    """The recorded release of this table under these terms, or a fresh one."""
    survey, randomizer, shuffler = collection.survey, collection.randomizer, collection.shuffler

    def draw() -> pl.DataFrame:
        batch = shuffler.shuffle(collection.randomized(rng), rng)
        if collection.dummies is not None:  # once: a repeated run reads the recorded batch
            batch = collection.dummies.add(batch, rng)
        columns = to_columns(randomizer, batch, collection.categories)
        return pl.DataFrame([*survey.public, *columns]) if shuffler.keeps_places else columns

    answer = ledger.answer(_request(collection), new_release=new_release, draw=draw)
    table = answer.reports
    return ReleasedTable(
        table=table,
        reports=from_columns(randomizer, table, collection.categories),
        public=table.select(survey.public.columns) if shuffler.keeps_places else survey.public.clear(),
        history=answer.history,
        number=answer.number,
        reproduced=answer.reproduced,
    )


def _request(collection: Collection) -> ReleaseRequest:
    survey, shuffler, section = collection.survey, collection.shuffler, collection.groups
    grouped = [] if section is None or not shuffler.keeps_places else section.columns
    spec = "everybody" if section is None or not shuffler.keeps_places else section.model_dump_json()
    if not collection.as_configured:
        spec = collection.grouping()
    return ReleaseRequest(
        table=canonical(survey.identity),
        terms=collection.terms() + canonical(pl.DataFrame([*survey.people, *survey.public])),
        groups=spec.encode() + canonical(pl.DataFrame([*survey.people, *survey.public.select(grouped)])),
        people=[] if not survey.people.width else as_text(survey.people.to_series()).to_list(),
        epsilon=collection.randomizer.guarantee.epsilon,
        alpha=shuffler.guarantee.alpha,
        n=survey.n,
        shuffler=shuffler.name,
        dummies=collection.most_dummies,
    )


def refuse_still(shuffler: HasOrder) -> None:
    """A release shuffles: what leaves everybody at their places publishes who sent what."""
    if not shuffler.guarantee.protects:
        raise UnsupportedError(
            "nobody would be shuffled with anybody else, so this release would publish who sent what: use larger "
            'groups, a finite alpha, or shuffler = "uniform".'
        )

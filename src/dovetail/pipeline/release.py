"""Drawing a release: randomize, shuffle, and put the reports into a table that remembers nothing else."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Protocol

import polars as pl

from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.core.guarantee import LocalDP, OrderPrivacy
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer, Reports, Shuffler
from dovetail.pipeline.config.build import mechanism_of
from dovetail.pipeline.config.run_config import RunConfig
from dovetail.pipeline.files.report_columns import from_columns, to_columns
from dovetail.pipeline.files.table import Survey, as_text, canonical
from dovetail.pipeline.release_ledger import Ledger, Request
from dovetail.pipeline.release_ledger import Release as Entry
from dovetail.report.document import Evaluation, Missing
from dovetail.report.number_format import upward
from dovetail.shuffle.uniform import Uniform


class HasOrder(Protocol):
    """Anything that promises something about order."""

    @property
    def guarantee(self) -> OrderPrivacy: ...


@dataclass(frozen=True, eq=False)
class Released:
    """The released table, its reports, and every release of these people so far."""

    table: pl.DataFrame
    reports: Reports
    public: pl.DataFrame
    history: tuple[Entry, ...]
    number: int
    reproduced: bool

    def compose(self, lenses: Evaluation) -> Evaluation:
        """The guarantees for everything released about these people.

        Local budgets add over all releases, and so do order budgets of the same groups. Central guarantees and
        leakage of earlier releases held on their own terms; over several releases those lenses give no number.
        """
        if len(self.history) < 2:
            return lenses
        local = [LocalDP(entry.epsilon, source=f"release {entry.number}") for entry in self.history]
        total = reduce(LocalDP.compose, local)
        reason = (
            f"these people took part in {len(self.history)} releases, each on terms of its own; "
            f"what is promised over all of them is local epsilon {upward(total.epsilon)}"
        )
        order = replace(lenses.order, guarantee=self._order(lenses.order.guarantee))
        return replace(lenses, local=total, central=Missing(reason), leakage=Missing(reason), order=order)

    def _order(self, last: OrderPrivacy) -> OrderPrivacy:
        if len({entry.groups for entry in self.history}) > 1:
            return OrderPrivacy(math.inf, source="releases for different groups: no order promise over all of them")
        alpha = math.fsum(entry.alpha for entry in self.history)
        return replace(last, alpha=alpha, source=f"{len(self.history)} independent releases add: [{last.source}]")

    def document(self) -> dict[str, Any]:
        """For the report."""
        return {
            "number": self.number,
            "releases": len(self.history),
            "total_epsilon": sum(entry.epsilon for entry in self.history),
        }


def release(
    settings: RunConfig,
    survey: Survey,
    randomizer: FrequencyRandomizer | NumericRandomizer,
    shuffler: Shuffler,
    rng: Entropy,
    ledger: Ledger,
    *,
    new_release: bool,
) -> Released:
    """The recorded release of this table under these terms, or a fresh one."""
    keeps_order = not isinstance(mechanism_of(shuffler), Uniform)
    categories = None if survey.categories is None else list(survey.categories)

    def draw() -> pl.DataFrame:
        batch = shuffler.shuffle(randomizer.randomize(survey.values, rng), rng)
        columns = to_columns(randomizer, batch, categories)
        return pl.DataFrame([*survey.public, *columns]) if keeps_order else columns

    section = settings.shuffle.groups
    grouped = [] if section is None or not keeps_order else section.columns
    spec = "everybody" if section is None or not keeps_order else section.model_dump_json()
    request = Request(
        table=canonical(survey.identity),
        terms=terms(settings) + canonical(pl.DataFrame([*survey.people, *survey.public])),
        groups=spec.encode() + canonical(pl.DataFrame([*survey.people, *survey.public.select(grouped)])),
        people=[] if not survey.people.width else as_text(survey.people.to_series()).to_list(),
        epsilon=settings.randomize.epsilon,
        alpha=shuffler.guarantee.alpha,
        n=survey.n,
        shuffler=shuffler.name,
    )
    answer = ledger.answer(request, new_release=new_release, draw=draw)
    table = answer.reports
    public = table.select(survey.public.columns) if keeps_order else survey.public.clear()
    return Released(
        table=table,
        reports=from_columns(randomizer, table, categories),
        public=public,
        history=answer.history,
        number=answer.number,
        reproduced=answer.reproduced,
    )


def refuse_still(shuffler: HasOrder) -> None:
    """A release shuffles: what leaves everybody at their places publishes who sent what."""
    if not shuffler.guarantee.protects:
        raise UnsupportedError(
            "nobody would be shuffled with anybody else, so this release would publish who sent what: use larger "
            'groups, a finite alpha, or shuffler = "uniform".'
        )


def terms(settings: RunConfig) -> bytes:
    """Everything that shapes the reports; estimates and promises are read off afterwards and may change."""
    chosen = settings.model_dump(mode="json", include={"data", "randomize", "shuffle"})
    chosen["data"].pop("path")
    chosen["shuffle"].pop("graph")  # its content counts, not where it lies
    chosen["promise"] = {"cap": settings.promise.cap}
    return json.dumps(chosen, sort_keys=True).encode()

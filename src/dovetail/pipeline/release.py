"""Drawing a release: randomize, shuffle, and put the reports into a table that remembers nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from dovetail.core.entropy import Entropy
from dovetail.core.guarantee import LocalDP
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer, Reports, Shuffler
from dovetail.pipeline.columns import from_columns, to_columns
from dovetail.pipeline.config import RunConfig
from dovetail.pipeline.ledger import Ledger
from dovetail.pipeline.ledger import Release as Entry
from dovetail.pipeline.table import Survey
from dovetail.report.document import Lenses, Missing
from dovetail.shuffle.uniform import Uniform


@dataclass(frozen=True, eq=False)
class Released:
    """The released table, its reports, and every release of these people so far."""

    table: pl.DataFrame
    reports: Reports
    public: pl.DataFrame
    history: tuple[Entry, ...]
    number: int
    reproduced: bool

    def compose(self, lenses: Lenses) -> Lenses:
        """The guarantees for everything released about these people: local budgets add, over all releases.

        Central guarantees of earlier releases held for their own terms; they are not added up here, so after a
        second release the central lens gives no number.
        """
        if len(self.history) < 2:
            return lenses
        local = LocalDP(self.history[0].epsilon, source="first release")
        for entry in self.history[1:]:
            local = local.compose(LocalDP(entry.epsilon, source=f"release {entry.number}"))
        reason = (
            f"these people were released {len(self.history)} times under terms of their own; "
            f"what is promised over all releases is local epsilon {local.epsilon:g}"
        )
        return replace(lenses, local=local, central=Missing(reason), leakage=Missing(reason))

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
    keeps_order = not isinstance(shuffler, Uniform)
    categories = None if survey.categories is None else list(survey.categories)

    def draw() -> pl.DataFrame:
        batch = shuffler.shuffle(randomizer.randomize(survey.values, rng), rng)
        columns = to_columns(randomizer, batch, categories)
        clash = [name for name in survey.public.columns if name in columns.columns]
        public = survey.public.rename({name: f"{name}_public" for name in clash})
        return pl.DataFrame([*public, *columns]) if keeps_order else columns

    private = pl.Series("private value", survey.values)
    answer = ledger.answer(
        table=_canonical([private]),
        request=_terms(settings) + _canonical([*survey.public, private]),
        terms={"epsilon": settings.randomize.epsilon, "n": survey.n, "shuffler": shuffler.name},
        new_release=new_release,
        draw=draw,
    )
    table = answer.reports
    public = table.select(table.columns[: len(survey.public.columns)]) if keeps_order else survey.public.clear()
    public.columns = survey.public.columns
    return Released(
        table=table,
        reports=from_columns(randomizer, table, categories),
        public=public,
        history=answer.history,
        number=answer.number,
        reproduced=answer.reproduced,
    )


def _terms(settings: RunConfig) -> bytes:
    """Everything that shapes the reports; estimates and promises are read off afterwards and may change."""
    chosen = settings.model_dump(mode="json", include={"data", "randomize", "shuffle"})
    chosen["data"].pop("path")
    return json.dumps(chosen, sort_keys=True).encode()


def _canonical(columns: list[pl.Series]) -> bytes:
    """Content of a table whatever the order of its rows."""
    return pl.DataFrame(columns).select(pl.all().cast(pl.String)).sort(pl.all()).write_csv().encode()

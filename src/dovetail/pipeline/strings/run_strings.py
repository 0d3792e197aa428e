"""A run on texts without a list of categories: the strings that many people hold, and the privacy report."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import polars as pl

from dovetail import __version__
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ConfigError, DovetailError
from dovetail.core.guarantee import LocalDP
from dovetail.pipeline.config.run_config import RunConfig
from dovetail.pipeline.files.table import Survey, as_text, canonical, read_survey
from dovetail.pipeline.progress import Progress
from dovetail.pipeline.rehearse import NO_TABLE, NOTHING
from dovetail.pipeline.release import ReleasedTable
from dovetail.pipeline.release_entry import ReleaseRequest, everybody
from dovetail.pipeline.release_ledger import ReleaseLedger
from dovetail.pipeline.strings.describe import NOT_LOCAL, Search, assumptions_of, evaluation_of, steps_of
from dovetail.pipeline.strings.frequent_strings import (
    FrequentString,
    find_frequent_strings,
    group_sizes,
    promise_of_dummies,
)
from dovetail.pipeline.strings.section import StringsSection
from dovetail.report.document import PrivacyReport
from dovetail.shuffle.uniform import Uniform


def run_strings(
    settings: RunConfig, rng: Entropy, ledger: ReleaseLedger, *, table: Any, new_release: bool, progress: Progress
) -> PrivacyReport:
    """The report of a search; a rehearsal beside the truth, a release recorded in the ledger."""
    asked = settings.strings
    assert asked is not None  # checked by the caller
    progress("read the table", 0, 1)
    survey = read_survey(settings.data, rng, table=table)
    people = list(zip(as_text(survey.people.to_series()).to_list(), _texts(survey), strict=True))
    progress("read the table", 1, 1)
    progress("find strings", 0, 1)
    try:
        if settings.mode == "release":
            search, released = _released(people, survey, asked, rng, ledger, new_release=new_release)
        else:
            search, released = _search(people, asked, rng), None
    except DovetailError as error:
        raise ConfigError(f"[strings] {error}") from None
    progress("find strings", 1, 1)
    return _report(settings, asked, survey, people, search, released, rng)


def _texts(survey: Survey) -> list[str]:
    return [(survey.categories or ())[code] for code in survey.values.tolist()]


def _search(people: list[tuple[str, str]], asked: StringsSection, rng: Entropy) -> Search:
    answer = find_frequent_strings(people, **asked.model_dump(), rng=rng)
    bare = asked.trust == "shuffler"
    local = LocalDP(inf, source=NOT_LOCAL) if bare else LocalDP(answer.guarantee.colluding, source="one report")
    return Search(list(answer.found), local, answer.guarantee, answer.groups[-1], asked.levels)


def _released(
    people: list[tuple[str, str]], survey: Survey, asked: StringsSection, rng: Entropy, ledger: ReleaseLedger,
    *, new_release: bool,
) -> tuple[Search, ReleasedTable]:  # fmt: skip
    """The recorded search of this table under these terms, or a fresh one. The ledger has a row for each person."""
    columns = {"string": pl.String, "complete": pl.Boolean, "share": pl.Float64, "standard_error": pl.Float64}

    def draw() -> pl.DataFrame:
        found = _search(people, asked, rng).found
        rows = [(one.text, one.complete, one.share, one.standard_error) for one in found]
        return pl.DataFrame([*rows, *[(None,) * 4] * (survey.n - len(rows))], schema=columns, orient="row")

    request = ReleaseRequest(
        table=canonical(survey.identity), terms=b"strings" + asked.model_dump_json().encode(),
        groups=everybody([name for name, _ in people]), people=[name for name, _ in people],
        epsilon=inf, alpha=0.0, n=survey.n, shuffler=Uniform.name,
    )  # fmt: skip
    answer = ledger.answer(request, new_release=new_release, draw=draw)
    table = answer.reports.drop_nulls("string")
    found = [FrequentString(*row) for row in table.iter_rows()]
    sizes = group_sizes([name for name, _ in people], asked.levels)
    central = promise_of_dummies(sizes, epsilon=asked.epsilon, delta=asked.delta)
    released = ReleasedTable(
        table=table, reports=np.zeros(0), public=pl.DataFrame(), history=answer.history, number=answer.number,
        reproduced=answer.reproduced,
    )  # fmt: skip
    return Search(found, LocalDP(inf, source=NOT_LOCAL), central, sizes[-1], asked.levels), released


def _report(
    settings: RunConfig, asked: StringsSection, survey: Survey, people: list[tuple[str, str]], search: Search,
    released: ReleasedTable | None, rng: Entropy,
) -> PrivacyReport:  # fmt: skip
    truth = None if released is not None else [text for _, text in people]
    evaluation = evaluation_of(search, survey.n, truth, rng.provenance)
    config = settings.model_dump(mode="json", include={"schema_version", "mode", "title", "strings"})
    return PrivacyReport(
        title=settings.title or f"Strings of {settings.data.private}",
        mode=settings.mode,
        entropy=rng.provenance,
        seed=settings.seed,
        version=__version__,
        collection={
            "n": survey.n, "private": settings.data.private, "public": [], "kind": "categorical",
            "categories": evaluation.estimates.overall.labels,
        },
        randomizer=search.randomizer,
        evaluation=evaluation if released is None else released.compose(evaluation),
        comparison=(),
        assumptions=assumptions_of(asked, survey.n, search, truth),
        steps=steps_of(asked, search),
        config=config,
        release=NOTHING if released is None else released.document(),
        sanitized=NO_TABLE if released is None else released.table,
        sanitized_description={"strings": config["strings"], "private": settings.data.private},
    )  # fmt: skip

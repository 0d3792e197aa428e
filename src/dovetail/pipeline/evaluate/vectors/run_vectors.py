"""A run on a column of arrays: the mean of shortened vectors, and the privacy report."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import polars as pl

from dovetail import __version__
from dovetail.core.display.display import mute
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ConfigError, DovetailError, UnsupportedError
from dovetail.core.guarantee import CentralDP
from dovetail.pipeline.config.run_config import RunConfig
from dovetail.pipeline.evaluate.vector_mean import shuffled_vectors
from dovetail.pipeline.evaluate.vectors.arrays import People, read_vectors
from dovetail.pipeline.evaluate.vectors.describe import (
    PIECE,
    Truth,
    assumptions_of,
    collection_of,
    evaluation_of,
    randomizer_of,
    steps_of,
)
from dovetail.pipeline.evaluate.vectors.section import VectorSection
from dovetail.pipeline.files.report_columns import report_columns
from dovetail.pipeline.progress import Progress
from dovetail.pipeline.rehearse import NO_TABLE, NOTHING
from dovetail.pipeline.release import ReleasedTable
from dovetail.pipeline.release_entry import ReleaseRequest, everybody
from dovetail.pipeline.release_ledger import ReleaseLedger
from dovetail.randomize.vectors.shared.vector_randomizer import VectorRandomizer, VectorReports
from dovetail.report.document import Missing, PrivacyReport
from dovetail.shuffle.uniform import Uniform


@mute
@dataclass(frozen=True)
class Drawn:
    """The shuffled reports; for a release also how they stand in the ledger."""

    reports: VectorReports
    released: ReleasedTable | None = None


def run_vectors(
    settings: RunConfig, rng: Entropy, ledger: ReleaseLedger, *, table: Any, new_release: bool, progress: Progress
) -> PrivacyReport:
    """The report on a mean of vectors; a rehearsal beside the truth, a release recorded in the ledger."""
    asked = settings.vector
    assert asked is not None  # checked by the caller
    try:
        mechanism = asked.mechanism()
    except DovetailError as error:
        raise ConfigError(f"[vector] {error}") from None
    progress("read the table", 0, 1)
    people = read_vectors(settings.data, asked.dimension, rng, table=table)
    progress("read the table", 1, 1)
    n = len(people.vectors)
    if asked.honest is not None and asked.honest > n:
        raise ConfigError(f"`vector.honest` must be at most the {n:,} people of the table, got {asked.honest:,}.")
    if settings.mode == "release":
        drawn = _released(people, asked, mechanism, rng, ledger, new_release=new_release, progress=progress)
    else:
        drawn = Drawn(_shuffled(people, mechanism, rng, progress))
    return _report(settings, asked, mechanism, people, drawn, rng)


def _shuffled(people: People, mechanism: VectorRandomizer, rng: Entropy, progress: Progress) -> VectorReports:
    """Everybody's report, in a random order of its own."""
    n, count = len(people.vectors), max(1, PIECE // mechanism.d)
    pieces = []
    for start in range(0, n, count):
        progress("randomize vectors", start, n)
        pieces.append(mechanism.randomize(people.vectors[start : start + count], rng))
    progress("randomize vectors", n, n)
    return np.concatenate(pieces)[rng.permutation(n)]


def _released(
    people: People, asked: VectorSection, mechanism: VectorRandomizer, rng: Entropy, ledger: ReleaseLedger,
    *, new_release: bool, progress: Progress,
) -> Drawn:  # fmt: skip
    """The recorded release of these vectors under these terms, or a fresh one.

    The ledger adds epsilons alone: where the promise has a delta, what several releases promise is not bounded there.
    """
    promise = mechanism.guarantee
    request = ReleaseRequest(
        table=people.identity,
        terms=b"vector" + asked.model_dump_json(exclude={"delta", "honest"}).encode(),
        groups=everybody(people.names),
        people=people.names,
        epsilon=promise.epsilon if promise.delta == 0.0 else inf,
        alpha=0.0,
        n=len(people.vectors),
        shuffler=Uniform.name,
    )
    answer = ledger.answer(
        request, new_release=new_release, draw=lambda: to_frame(_shuffled(people, mechanism, rng, progress))
    )
    reports = from_frame(answer.reports)
    released = ReleasedTable(
        table=answer.reports, reports=reports, public=pl.DataFrame(), history=answer.history, number=answer.number,
        reproduced=answer.reproduced,
    )  # fmt: skip
    return Drawn(reports, released)


def to_frame(reports: VectorReports) -> pl.DataFrame:
    """Reports as columns: report, or report_0, report_1, .."""
    if reports.ndim == 1:
        return pl.DataFrame({"report": reports})
    return pl.DataFrame({f"report_{part}": reports[:, part] for part in range(reports.shape[1])})


def from_frame(table: pl.DataFrame) -> VectorReports:
    """The inverse of `to_frame`."""
    names = report_columns(table)
    return table["report"].to_numpy() if names == ["report"] else table.select(names).to_numpy()


def _central(mechanism: VectorRandomizer, asked: VectorSection, n: int) -> CentralDP | Missing:
    try:
        return shuffled_vectors(mechanism, n=n, delta=asked.delta, honest=asked.honest)
    except UnsupportedError as error:
        return Missing(str(error).rstrip("."))


def _report(
    settings: RunConfig, asked: VectorSection, mechanism: VectorRandomizer, people: People, drawn: Drawn, rng: Entropy
) -> PrivacyReport:
    n, released = len(people.vectors), drawn.released
    truth = None if released is not None else Truth.of(mechanism, people.vectors)
    central = _central(mechanism, asked, n)
    evaluation = evaluation_of(mechanism, drawn.reports, central, truth=truth, provenance=rng.provenance)
    config = settings.model_dump(mode="json", include={"schema_version", "mode", "title", "vector"})
    return PrivacyReport(
        title=settings.title or f"Mean of {settings.data.private}",
        mode=settings.mode,
        entropy=rng.provenance,
        seed=settings.seed,
        version=__version__,
        collection=collection_of(mechanism, settings.data.private, n=n),
        randomizer=randomizer_of(mechanism),
        evaluation=evaluation if released is None else released.compose(evaluation),
        comparison=(),
        assumptions=assumptions_of(mechanism, n=n, truth=truth),
        steps=steps_of(mechanism, central),
        config=config,
        release=NOTHING if released is None else released.document(),
        sanitized=NO_TABLE if released is None else released.table,
        sanitized_description={"vector": config["vector"], "private": settings.data.private},
    )

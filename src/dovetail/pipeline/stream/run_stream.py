"""The main job on a stream: rounds of a fleet go in; estimates, window queries and their cost come out."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from dovetail import __version__
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ConfigError
from dovetail.core.stages import Reports
from dovetail.pipeline.config.build import UNPUBLISHED
from dovetail.pipeline.config.run_config import RunConfig, files_of
from dovetail.pipeline.evaluate.sentences import randomizer_document
from dovetail.pipeline.files.report_columns import describe_reports, from_columns, to_columns
from dovetail.pipeline.progress import Progress
from dovetail.pipeline.release import ReleasedTable, refuse_still
from dovetail.pipeline.release_ledger import ReleaseLedger
from dovetail.pipeline.stream.evaluate_stream import evaluate_stream
from dovetail.pipeline.stream.fleet import Fleet
from dovetail.pipeline.stream.fleet_run import FleetRun
from dovetail.pipeline.stream.rounds_document import rounds_document, sent_of, true_means, windows_document
from dovetail.pipeline.stream.sentences import assumptions, steps
from dovetail.pipeline.stream.stream import Stream, read_stream
from dovetail.pipeline.stream.stream_release import StreamRelease
from dovetail.report.document import Missing, PrivacyReport


def run_stream(
    settings: RunConfig, rng: Entropy, ledger: ReleaseLedger, *, table: Any, new_release: bool, progress: Progress
) -> PrivacyReport:
    """All rounds of a table: drawn (or, for a release, drawn once and recorded), estimated and accounted for."""
    stream = read_stream(settings, table=table)
    n, honest = len(stream.roster), settings.promise.honest
    if honest is not None and honest > n:
        raise ConfigError(f"`promise.honest` must be at most the {n:,} devices of the table, got {honest:,}.")
    fleet, time = stream.fleet(settings), str(settings.data.time)
    if settings.mode == "release":
        refuse_still(fleet.shuffler)
        asked = StreamRelease(settings, stream, fleet, ledger)
        before = asked.spent_before(new_release=new_release)
        run = FleetRun(fleet, before=before)
        sent = asked.due(run.budget)
        released = asked.draw(
            sent, lambda: _draw(stream, FleetRun(fleet, before=before), time, rng, progress), new_release=new_release
        )
        batches = _batches(fleet, released.table, time)
    else:
        released, run = None, FleetRun(fleet)
        sent = sent_of(stream, run.budget)
        batches = _batches(fleet, _draw(stream, FleetRun(fleet), time, rng, progress), time)
    run.replay_table(stream.rows, batches, simulated=rng.provenance == "simulation")
    return _report(settings, stream, run, batches, sent, rng, released)


def _draw(stream: Stream, run: FleetRun, time: str, rng: Entropy, progress: Progress) -> pl.DataFrame:
    """The reports of all rounds in their released order, beside their stamps."""
    parts: list[tuple[int, Reports]] = []
    run.submit_table(
        stream.rows, rng=rng,
        released=lambda t, batch: parts.append((t, batch)),
        progress=lambda done, total: progress("rounds", done, total),
    )  # fmt: skip
    reports = to_columns(run.fleet.randomizer, np.concatenate([batch for _, batch in parts]), None)
    stamps = np.repeat([t for t, _ in parts], [len(batch) for _, batch in parts])
    return pl.DataFrame([pl.Series(time, stamps, dtype=pl.Int64), *reports])


def _batches(fleet: Fleet, table: pl.DataFrame, time: str) -> dict[int, Reports]:
    """The reports of each round."""
    reports = from_columns(fleet.randomizer, table, None)
    stamps, starts = np.unique(table[time].to_numpy(), return_index=True)
    return dict(zip(stamps.tolist(), np.split(reports, starts[1:]), strict=True))


def _report(
    settings: RunConfig,
    stream: Stream,
    run: FleetRun,
    batches: dict[int, Reports],
    sent: pl.DataFrame,
    rng: Entropy,
    released: ReleasedTable | None,
) -> PrivacyReport:
    fleet, data = run.fleet, settings.data
    truth = None if released is not None else true_means(stream, sent)
    evaluation = evaluate_stream(settings, run, batches, sent, truth, rng)
    detail = rounds_document(settings, run, sent, truth, provenance=rng.provenance)
    windows = windows_document(run, settings.estimate.window, truth)
    if released is not None:
        evaluation = released.compose(evaluation)
    return PrivacyReport(
        title=settings.title or f"Stream of {data.private}",
        mode=settings.mode,
        entropy=rng.provenance,
        seed=settings.seed,
        version=__version__,
        collection={"n": len(stream.roster), "private": data.private, "public": list(data.public), "kind": "numeric",
                    "lower": data.lower, "upper": data.upper},
        randomizer=randomizer_document(fleet.randomizer),
        evaluation=evaluation,
        comparison=(),
        assumptions=assumptions(settings, run, detail, evaluation),
        steps=steps(evaluation, fleet, detail),
        config=settings.model_dump(
            mode="json", exclude={"data": UNPUBLISHED, "shuffle": set(files_of(settings.shuffle)), "seed": True}
        ),
        release=Missing("a rehearsal releases nothing") if released is None else released.document(),
        sanitized=Missing('a rehearsal knows the truth and gives no table away; use mode = "release"')
        if released is None
        else released.table,
        sanitized_description=describe_reports(fleet.randomizer, None, rng.provenance),
        rounds=detail,
        windows=windows,
    )  # fmt: skip

"""From the tally of the released files to the privacy report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import polars as pl

from dovetail.core.estimate import Estimate, Tally
from dovetail.core.stages import Labels, NumericRandomizer, Shuffler
from dovetail.pipeline.evaluate.better_randomizer import better_randomizer
from dovetail.pipeline.evaluate.estimates import LEVEL, mixing_of, shares_of, span_of
from dovetail.pipeline.evaluate.evaluate import NO_ORDER, privacy_report
from dovetail.pipeline.evaluate.guarantees import central_guarantee, order_evaluation
from dovetail.pipeline.evaluate.leakage import bayes_leakage
from dovetail.pipeline.release import ReleasedTable
from dovetail.pipeline.release_entry import LedgerEntry
from dovetail.report.document import Estimates, Evaluation, IntervalEstimates, Missing, PrivacyReport
from dovetail.scale.job import Job, Order
from dovetail.scale.orders.line import Fitted
from dovetail.scale.passes.census import Census
from dovetail.scale.supported import estimator_of

TRUST = (
    "Drawn by {name} in {partitions} partitions; tasks that were tried again, {retried} here, draw the same reports.",
    "Randomization and shuffle ran in one place, {where}: whoever runs it, or reads its memory during the job, can "
    "undo both, and is a party that must be trusted until the job has ended.",
    "The promise is computational: reports and their order are AES-256 of a secret that was drawn for this release, "
    "held in memory only, and forgotten.",
)
IN_FILES = Missing("the reports lie in files, which are too large to be held: see files")


def scale_report(
    job: Job,
    census: Census,
    ordered: Order,
    tally: Tally,
    *,
    history: tuple[LedgerEntry, ...],
    reproduced: bool,
    engine: dict[str, Any],
) -> PrivacyReport:
    """The report of a release in files, as `run` makes it of one in memory.

    Parameters
    ----------
    ordered : the order of the release
    tally : counts (g, width) of n (g,) released reports
    history : every release of some of these people, this one last
    engine : what drew it
    """
    collection = job.collection(census)
    order = ordered.shuffler if isinstance(ordered, Fitted) else cast(Shuffler, ordered)
    found = _estimates(job, census, ordered, tally)
    made = replace(collection, fit=lambda public: order)
    evaluation = Evaluation(
        shuffler=order.name,
        local=job.randomizer.guarantee.drawn_from("device"),
        central=central_guarantee(
            job.randomizer, order, delta=collection.delta, honest=collection.honest, provenance="device"
        ),
        order=order_evaluation(order, provenance="device"),
        leakage=bayes_leakage(
            job.randomizer,
            order,
            honest=collection.honest,
            shares=np.asarray(found.overall.possible),
            law="estimated",
        ),
        estimates=replace(found, better=better_randomizer(job.randomizer, n=census.n, delta=collection.delta)),
    )
    empty = pl.DataFrame()
    released = ReleasedTable(empty, np.empty(0), empty, history, history[-1].number, reproduced)
    report = privacy_report(
        made, released.compose(evaluation), mode="release", provenance="device", seed=None, comparison=(),
        release=released.document(), sanitized=IN_FILES, engine=engine,
    )  # fmt: skip
    trust = tuple(line.format(**engine) for line in TRUST)
    return replace(report, assumptions=(*report.assumptions, *trust))


def _estimates(job: Job, census: Census, order: Order, tally: Tally) -> Estimates:
    """Estimates over everybody and, where they were asked for, within each public group."""
    numeric, wanted = isinstance(job.randomizer, NumericRandomizer), job.config.estimate
    labels, span = list(job.categories or ["mean"]), span_of(job.randomizer)
    overall = estimator_of(job.randomizer, 1).overall.solve(Tally(tally.counts.sum(axis=0), int(np.sum(tally.n))))
    groups: list[IntervalEstimates] | Missing = Missing("no grouping column was asked for: list it in [estimate] by")
    withheld: list[dict[str, Any]] = []
    if wanted.by and job.group is None:
        groups = Missing(NO_ORDER)
    elif wanted.by:
        names, sizes = list(census.groups), np.array(list(census.groups.values()))
        kept = np.flatnonzero(sizes >= wanted.min_group_size)
        small = {"groups": int(sizes.size - kept.size), "people": int(sizes.sum() - sizes[kept].sum())}
        withheld = [{"by": job.group, **small}] if small["groups"] else []
        kept = kept[_in_order(job, names, kept)]
        within = _solve(job, order, tally, kept)
        groups = [
            shares_of(within.group(row), labels, None, by=job.group, group=names[place], span=span)
            for row, place in enumerate(kept.tolist())
        ]
    return Estimates(
        "mean" if numeric else "share", LEVEL, shares_of(overall, labels, None, span=span), groups, withheld,
        estimator=Missing("the Rao-Blackwell mean adds up over files" if numeric else "shares have one estimator"),
    )  # fmt: skip


def _in_order(job: Job, names: list[str], kept: Labels) -> Labels:
    """The groups that are kept in the order of their names: of their numbers, where the names must be numbers."""
    if job.group not in job.config.numbers:
        return np.arange(kept.size)
    return np.argsort(np.array([float(names[place]) for place in kept]), kind="stable")


def _solve(job: Job, order: Order, tally: Tally, kept: Labels) -> Estimate:
    """Estimates within the groups that are kept; where reports move between groups, widened by how many do."""
    if not kept.size:
        return estimator_of(job.randomizer, 1).solve(
            Tally(tally.counts.sum(axis=0)[None], np.array([np.sum(tally.n)]))
        )
    counts, n = tally.counts[kept], np.asarray(tally.n)[kept]
    if not isinstance(order, Fitted):
        return estimator_of(job.randomizer, kept.size).solve(Tally(counts, n))
    row = np.full(len(tally.counts), kept.size)
    row[kept] = np.arange(kept.size)
    if (row == kept.size).any():  # the groups that are too small, together
        rest = row == kept.size
        counts = np.concatenate([counts, tally.counts[rest].sum(axis=0, keepdims=True)])
        n = np.append(n, np.asarray(tally.n)[rest].sum())
    mixing = mixing_of(order.shuffler, np.repeat(row, order.line.sizes), str(job.group))
    return estimator_of(job.randomizer, len(n)).solve(Tally(counts, n), mixing)

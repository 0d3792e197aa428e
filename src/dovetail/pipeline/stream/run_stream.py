"""The main job on a stream: rounds of a fleet go in; estimates, window queries and their cost come out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from dovetail import __version__
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ConfigError
from dovetail.core.guarantee import OrderPrivacy
from dovetail.core.stages import Reports
from dovetail.pipeline.config.build import terms
from dovetail.pipeline.config.run_config import RunConfig, files_of
from dovetail.pipeline.evaluate.estimates import LEVEL, chosen_mean, shares_of
from dovetail.pipeline.evaluate.guarantees import order_lens
from dovetail.pipeline.evaluate.sentences import randomizer_document
from dovetail.pipeline.files.report_columns import describe_reports, from_columns, to_columns
from dovetail.pipeline.files.table import as_text, canonical
from dovetail.pipeline.progress import Progress
from dovetail.pipeline.release import ReleasedTable, refuse_still
from dovetail.pipeline.release_ledger import Ledger, Request
from dovetail.pipeline.stream.batch_sizes import Batches
from dovetail.pipeline.stream.fleet import Campaign
from dovetail.pipeline.stream.fleet_run import Rounds
from dovetail.pipeline.stream.rounds_document import rounds_document, sent_of, true_means, windows_document
from dovetail.pipeline.stream.sentences import assumptions, steps
from dovetail.pipeline.stream.stream import Stream, read_stream
from dovetail.report.document import Estimates, Evaluation, Missing, OrderEvaluation, PrivacyReport

_ATTACK = "re-identification needs a history of known senders: see `dovetail attack reidentify`"
_LEAKAGE = "exact leakage is for categories, and the private column of a stream is a number"
_NO_GROUPS = "a stream is estimated round by round, not by public group"


def run_stream(
    settings: RunConfig, rng: Entropy, ledger: Ledger, *, table: Any, new_release: bool, progress: Progress
) -> PrivacyReport:
    """All rounds of a table: drawn (or, for a release, drawn once and recorded), estimated and accounted for."""
    stream = read_stream(settings, table=table)
    n, honest = len(stream.roster), settings.promise.honest
    if honest is not None and honest > n:
        raise ConfigError(f"`promise.honest` must be at most the {n:,} devices of the table, got {honest:,}.")
    campaign = stream.campaign(settings)
    sent = sent_of(stream, campaign)

    def draw() -> pl.DataFrame:
        return _draw(stream, campaign, str(settings.data.time), rng, progress)

    released = None
    if settings.mode == "release":
        refuse_still(campaign.shuffler)
        released = _released(settings, stream, campaign, sent, ledger, draw, new_release=new_release)
    batches = _batches(campaign, draw() if released is None else released.table, str(settings.data.time))
    rounds = Rounds(campaign)
    rounds.replay_table(stream.rows, batches, simulated=rng.provenance == "simulation")
    return _report(settings, stream, rounds, batches, sent, rng, released)


def _draw(stream: Stream, campaign: Campaign, time: str, rng: Entropy, progress: Progress) -> pl.DataFrame:
    """The reports of all rounds in their released order, beside their stamps."""
    parts: list[tuple[int, Reports]] = []
    Rounds(campaign).submit_table(
        stream.rows, rng=rng,
        released=lambda t, batch: parts.append((t, batch)),
        progress=lambda done, total: progress("rounds", done, total),
    )  # fmt: skip
    reports = to_columns(campaign.randomizer, np.concatenate([batch for _, batch in parts]), None)
    stamps = np.repeat([t for t, _ in parts], [len(batch) for _, batch in parts])
    return pl.DataFrame([pl.Series(time, stamps, dtype=pl.Int64), *reports])


def _batches(campaign: Campaign, table: pl.DataFrame, time: str) -> dict[int, Reports]:
    """The reports of each round."""
    reports = from_columns(campaign.randomizer, table, None)
    stamps, starts = np.unique(table[time].to_numpy(), return_index=True)
    return dict(zip(stamps.tolist(), np.split(reports, starts[1:]), strict=True))


def _released(
    settings: RunConfig,
    stream: Stream,
    campaign: Campaign,
    sent: pl.DataFrame,
    ledger: Ledger,
    draw: Callable[[], pl.DataFrame],
    *,
    new_release: bool,
) -> ReleasedTable:
    """The recorded release of this stream, or a fresh one: all its rounds together are one release of the table."""
    public = canonical(pl.DataFrame([pl.Series("device", stream.roster), *stream.public]))
    edges = b"" if stream.edges is None else canonical(stream.edges)
    most = int(sent["place"].value_counts()["count"].max())  # type: ignore[arg-type]
    rounds = Rounds(campaign)
    section = settings.shuffle.groups
    answer = ledger.answer(
        Request(
            table=canonical(stream.rows),
            terms=terms(settings) + public + edges,
            groups=(b"" if section is None else section.model_dump_json().encode()) + public + edges,
            people=as_text(pl.Series(stream.roster)).to_list(),
            epsilon=rounds.cost(most),
            alpha=rounds.order_cost(stream.rows["time"].n_unique()),
            n=sent.height,
            shuffler=settings.shuffle.shuffler,
        ),
        new_release=new_release,
        draw=draw,
    )
    table = answer.reports
    reports = from_columns(campaign.randomizer, table, None)
    return ReleasedTable(table, reports, stream.public.clear(), answer.history, answer.number, answer.reproduced)


def _report(
    settings: RunConfig,
    stream: Stream,
    rounds: Rounds,
    batches: dict[int, Reports],
    sent: pl.DataFrame,
    rng: Entropy,
    released: ReleasedTable | None,
) -> PrivacyReport:
    campaign, data = rounds.campaign, settings.data
    truth = None if released is not None else true_means(stream, sent)
    evaluation = _evaluation(settings, rounds, batches, sent, truth, rng)
    detail = rounds_document(settings, rounds, sent, truth, provenance=rng.provenance)
    windows = windows_document(rounds, settings.estimate.window, truth)
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
        randomizer=randomizer_document(campaign.randomizer),
        evaluation=evaluation,
        comparison=(),
        assumptions=assumptions(settings, rounds, detail, evaluation),
        steps=steps(evaluation, campaign, detail),
        config=settings.model_dump(
            mode="json", exclude={"data": {"path"}, "shuffle": set(files_of(settings.shuffle)), "seed": True}
        ),
        release=Missing("a rehearsal releases nothing") if released is None else released.document(),
        sanitized=Missing('a rehearsal knows the truth and gives no table away; use mode = "release"')
        if released is None
        else released.table,
        sanitized_description=describe_reports(campaign.randomizer, None, rng.provenance),
        rounds=detail,
        windows=windows,
    )  # fmt: skip


def _evaluation(
    settings: RunConfig,
    rounds: Rounds,
    batches: dict[int, Reports],
    sent: pl.DataFrame,
    truth: dict[int, float] | None,
    rng: Entropy,
) -> Evaluation:
    """What all rounds together promise, leak and teach."""
    campaign, promise = rounds.campaign, settings.promise
    shuffler, randomizer = campaign.shuffler, campaign.randomizer
    groups = Batches.of(shuffler, sent, honest=promise.honest)  # type: ignore[arg-type]
    central: Any = groups
    if isinstance(groups, Batches):
        most = int(sent["place"].value_counts()["count"].max())  # type: ignore[arg-type]
        central = groups.of_all_rounds(randomizer, most=most, delta=promise.delta)
    first = rounds.rounds[0].t
    whole = rounds.window(rounds.last, width=rounds.last - first + 1).estimate
    known = None if truth is None else [float(np.mean(list(truth.values())))]
    chosen = chosen_mean(randomizer, max(batches.values(), key=len), settings.estimate)
    return Evaluation(
        shuffler=settings.shuffle.shuffler,
        local=rounds.guarantee,
        central=central if isinstance(central, Missing) else central.drawn_from(rng.provenance),
        order=_order(rounds, rng),
        leakage=Missing(_LEAKAGE),
        estimates=Estimates(
            measure="mean",
            level=LEVEL,
            overall=shares_of(whole, ["mean"], known),
            groups=Missing(_NO_GROUPS),
            withheld=[],
            estimator=chosen | {"reason": f"in the largest round: {chosen['reason']}"},
        ),
        attacks=Missing(_ATTACK),
        learnability=Missing(_NO_GROUPS),
    )


def _order(rounds: Rounds, rng: Entropy) -> OrderEvaluation:
    """Orders of different rounds are drawn independently, so their alphas add."""
    lens = order_lens(rounds.campaign.shuffler, provenance=rng.provenance)  # type: ignore[arg-type]
    count = len(rounds.rounds)
    both: OrderPrivacy = replace(
        lens.guarantee,
        alpha=rounds.order_cost(count),
        source=f"{count:,} independent rounds add: [{lens.guarantee.source}]",
    )
    return replace(lens, guarantee=both)

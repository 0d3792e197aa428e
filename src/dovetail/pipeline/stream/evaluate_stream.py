"""Every metric of a stream: what all rounds together promise and teach, and what does not apply."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from dovetail.core.entropy import Entropy
from dovetail.core.guarantee import CentralDP
from dovetail.core.stages import Reports
from dovetail.pipeline.config.run_config import RunConfig
from dovetail.pipeline.evaluate.estimates import LEVEL, chosen_mean, shares_of, span_of
from dovetail.pipeline.evaluate.guarantees import order_evaluation
from dovetail.pipeline.stream.batch_sizes import Batches
from dovetail.pipeline.stream.fleet import Fleet
from dovetail.pipeline.stream.fleet_run import FleetRun
from dovetail.pipeline.stream.rounds_document import most_sent
from dovetail.report.document import Estimates, Evaluation, Missing, OrderEvaluation

_ATTACK = "re-identification needs a history of known senders: see `dovetail attack reidentify`"
_LEAKAGE = "exact leakage is for categories, and the private column of a stream is a number"
_NO_GROUPS = "a stream is estimated round by round, not by public group"


def evaluate_stream(
    settings: RunConfig,
    run: FleetRun,
    batches: dict[int, Reports],
    sent: pl.DataFrame,
    truth: dict[int, float] | None,
    rng: Entropy,
) -> Evaluation:
    """What all rounds together promise, leak and teach."""
    first = run.rounds[0].t
    whole = run.time_window(run.last, width=run.last - first + 1).estimate
    known = None if truth is None else [float(np.mean(list(truth.values())))]
    chosen = chosen_mean(run.fleet.randomizer, max(batches.values(), key=len), settings.estimate)
    return Evaluation(
        shuffler=settings.shuffle.shuffler,
        local=run.guarantee,
        central=_central(settings, run.fleet, sent, rng),
        order=_order(run, rng),
        leakage=Missing(_LEAKAGE),
        estimates=Estimates(
            measure="mean",
            level=LEVEL,
            overall=shares_of(whole, ["mean"], known, span=span_of(run.fleet.randomizer)),
            groups=Missing(_NO_GROUPS),
            withheld=[],
            estimator=chosen | {"reason": f"in the largest round: {chosen['reason']}"},
        ),
        attacks=Missing(_ATTACK),
        learnability=Missing(_NO_GROUPS),
    )


def _central(settings: RunConfig, fleet: Fleet, sent: pl.DataFrame, rng: Entropy) -> CentralDP | Missing:
    """What all rounds together promise about a device's values, where the shuffler is uniform inside groups."""
    batches = Batches.of(fleet.shuffler, sent, honest=settings.promise.honest)
    if isinstance(batches, Missing):
        return batches
    found = batches.of_all_rounds(fleet.randomizer, most=most_sent(sent), delta=settings.promise.delta)
    return found if isinstance(found, Missing) else found.drawn_from(rng.provenance)


def _order(run: FleetRun, rng: Entropy) -> OrderEvaluation:
    """Orders of different rounds are drawn independently, so their alphas add."""
    found, count = order_evaluation(run.fleet.shuffler, provenance=rng.provenance), len(run.rounds)
    one = found.guarantee
    source = f"{count:,} independent rounds add: [{one.source}]"
    return replace(found, guarantee=replace(one, alpha=run.order_cost(count), source=source))

"""The rounds of a stream as the report tells them: the series of estimates, the windows, and what they cost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from dovetail.core.errors import ConfigError
from dovetail.core.estimate import Estimate
from dovetail.estimate.mean import in_range
from dovetail.pipeline.config.run_config import RunConfig
from dovetail.pipeline.evaluate.estimates import LEVEL
from dovetail.pipeline.stream.batch_sizes import Batches
from dovetail.pipeline.stream.fleet_budget import FleetBudget
from dovetail.pipeline.stream.fleet_run import FleetRun
from dovetail.pipeline.stream.stream import Stream
from dovetail.report.document import Missing, central_document

NO_CAP = "no cap was set: a device may report in every round"
NO_SPREAD = "a device answers in every round until its cap is reached"
SILENT = "every device that had a value has spent its budget"


def sent_of(stream: Stream, budget: FleetBudget) -> pl.DataFrame:
    """Who reports in which round (place, time, value), given turns and budgets: public but for the value."""
    place = stream.rows["device"].replace_strict(stream.roster, range(len(stream.roster)), return_dtype=pl.Int64)
    due = budget.due(place.to_numpy(), stream.rows["time"].to_numpy())
    return stream.rows.with_columns(place=place).filter(pl.Series(due)).drop("device")


def most_sent(sent: pl.DataFrame) -> int:
    """Reports of the device that sends the most."""
    return int(sent["place"].value_counts()["count"].max())  # type: ignore[arg-type]


def true_means(stream: Stream, sent: pl.DataFrame) -> dict[int, float]:
    """Mean of the values behind the reports of each round, for rehearsals."""
    means = sent.group_by("time").agg(pl.col("value").mean())
    return dict(zip(means["time"].to_list(), means["value"].to_list(), strict=True))


def rounds_document(
    settings: RunConfig, run: FleetRun, sent: pl.DataFrame, truth: dict[int, float] | None, *, provenance: str
) -> dict[str, Any]:
    """The series of estimates, and what a round and all of them cost."""
    fleet, facts = run.fleet, run.summary()
    batches = Batches.of(fleet.shuffler, sent, honest=settings.promise.honest)
    once = fleet.randomizer.guarantee.drawn_from(provenance)
    central: Any = batches
    if isinstance(batches, Batches):
        central = batches.of_a_round(fleet.randomizer, delta=settings.promise.delta)
        central = central if isinstance(central, Missing) else central.drawn_from(provenance)
    first, last = run.rounds[0].t, run.last
    own = {f"{name}_of_a_round": value for name, value in fleet.shuffler.facts().items()}
    return {
        **facts,
        **own,
        "first": first,
        "last": last,
        "missing": last - first + 1 - len(run.rounds),
        "silent": sum(each.estimate is None for each in run.rounds),
        "alone": batches.alone if isinstance(batches, Batches) else batches,
        "smallest_batch": batches.smallest if isinstance(batches, Batches) else batches,
        "cap": Missing(NO_CAP) if math.isinf(fleet.cap) else fleet.cap,
        "local_of_a_round": {"epsilon": once.epsilon, "delta": once.delta, "source": once.source},
        "central_of_a_round": central_document(central),
        "spread": Missing(NO_SPREAD) if fleet.spread is None else fleet.spread,
        "series": _series(run, truth, batches),
    }


def _series(run: FleetRun, truth: dict[int, float] | None, batches: Batches | Missing) -> dict[str, list[Any]]:
    """Column by column; null where no device had budget left, and for the n of a central promise where there is none.

    `value` and `unbiased_interval` are unbiased and may lie outside the public range; `possible` and `interval` are
    what lies in it.
    A local promise counts reports of one device, whoever else sends; the central one counts those it hides among.
    """
    table = run.estimates()
    found = [each.estimate for each in run.rounds if each.estimate is not None]
    estimates = Estimate(
        value=np.array([float(each.value) for each in found]),
        standard_error=np.array([float(each.standard_error) for each in found]),
        n=None,
        population_error=np.array([float(each.population_error) for each in found]),
        bias_bound=np.array([float(each.bias_bound) for each in found]),
    )
    ends = iter(np.column_stack(estimates.interval(LEVEL)).tolist())
    columns: dict[str, list[Any]] = {name: table[name].to_list() for name in table.columns}
    columns["unbiased_interval"] = [None if value is None else next(ends) for value in columns["value"]]
    inside = [
        None if value is None else _shown(run, value, ends)
        for value, ends in zip(columns["value"], columns["unbiased_interval"], strict=True)
    ]
    columns["possible"] = [None if each is None else each[0] for each in inside]
    columns["interval"] = [None if each is None else each[1] for each in inside]
    columns["bias_bound"] = [None if each.estimate is None else float(each.estimate.bias_bound)
                             for each in run.rounds]  # fmt: skip
    counted = {} if isinstance(batches, Missing) else batches.counted
    columns["central_n"] = [counted.get(t) for t in columns["t"]]
    return columns if truth is None else columns | {"truth": [truth.get(t) for t in columns["t"]]}


def _shown(run: FleetRun, value: float, ends: list[float]) -> tuple[float, list[float]]:
    """The nearest mean that is possible, and what of the interval is."""
    span = (run.fleet.randomizer.lower, run.fleet.randomizer.upper)
    possible, interval = in_range(value, (ends[0], ends[1]), span)
    return possible, list(interval)


def windows_document(run: FleetRun, width: int | None, truth: dict[int, float] | None) -> dict[str, Any] | Missing:
    """Windows side by side, counted back from the last round.

    Raises
    ------
    ConfigError
        For a window that is longer than the stream.
    """
    if width is None:
        return Missing("no window was asked for: [estimate] window is the number of rounds in one")
    first, last = run.rounds[0].t, run.last
    if width > last - first + 1:
        raise ConfigError(
            f"`estimate.window` must be at most the {last - first + 1:,} rounds from {first:,} to {last:,}, "
            f"got {width:,}."
        )
    ends = range(last, first + width - 2, -width)
    have = {each.t for each in run.rounds if each.estimate is not None}
    return {
        "width": width,
        "level": LEVEL,
        "rows": [_window(run, end, width, have, truth) for end in reversed(ends)],
    }


def _window(run: FleetRun, end: int, width: int, have: set[int], truth: dict[int, float] | None) -> dict[str, Any]:
    stamps = range(end - width + 1, end + 1)
    row: dict[str, Any] = {"from": stamps[0], "to": end}
    inside = [t for t in stamps if t in have]
    if not inside:
        none = Missing("no round of this window has an estimate")
        numbers = ("value", "possible", "standard_error", "interval", "unbiased_interval")
        return {**row, **dict.fromkeys(numbers, none), "n": 0, "missing": list(stamps)}
    answer = run.time_window(end, width=width)
    ends = [float(end) for end in answer.estimate.interval(LEVEL)]
    possible, inside_range = _shown(run, float(answer.estimate.value), ends)
    row |= {
        "value": float(answer.estimate.value),
        "possible": possible,
        "standard_error": float(answer.estimate.standard_error),
        "population_error": float(answer.estimate.population_error),
        "interval": inside_range,
        "unbiased_interval": ends,
        "n": answer.estimate.n,
        "missing": list(answer.missing),
    }
    return row if truth is None else row | {"truth": float(np.mean([truth[t] for t in inside]))}

"""What was bought: estimates over everybody and per public group, with intervals that admit what they cannot know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.errors import UnsupportedError
from dovetail.core.estimate import Estimate
from dovetail.core.stages import FrequencyRandomizer, Labels, NumericRandomizer, Reports, Shuffler
from dovetail.estimate.best_mean import best_mean
from dovetail.estimate.frequency import estimate_frequencies
from dovetail.estimate.grouped import estimate_group_means, estimate_groups
from dovetail.estimate.mean import estimate_mean, in_range
from dovetail.estimate.simplex import project_to_simplex
from dovetail.pipeline.config.sections import EstimateSection
from dovetail.report.document import Estimates, IntervalEstimates, Missing
from dovetail.shuffle.identity import Identity

LEVEL = 0.95

Truth = NDArray[Any] | None  # (n,) the private values, in rehearsals


def estimates(
    randomizer: FrequencyRandomizer | NumericRandomizer,
    reports: Reports,
    public: pl.DataFrame | Missing,
    shuffler: Shuffler,
    *,
    wanted: EstimateSection,
    labels: list[str],
    truth: Truth,
) -> Estimates:
    """Estimates from released reports; `public` stands beside them only where the shuffler keeps an order."""
    numeric = isinstance(randomizer, NumericRandomizer)
    estimator: dict[str, str] | Missing = Missing("shares have one estimator")
    if isinstance(randomizer, NumericRandomizer):
        estimator = chosen_mean(randomizer, reports, wanted)
        overall = mean_estimator(wanted)(randomizer, reports)
    else:
        overall = estimate_frequencies(randomizer, reports)
    if not wanted.by:
        public = Missing("no grouping column was asked for: list it in [estimate] by")
    everybody = shares_of(overall, labels, _true(truth, randomizer), span=span_of(randomizer))
    if isinstance(public, Missing):
        return Estimates("mean" if numeric else "share", LEVEL, everybody, public, withheld=[], estimator=estimator)
    parts = [_by_column(randomizer, reports, public[name], shuffler, wanted, labels, truth) for name in wanted.by]
    return Estimates(
        measure="mean" if numeric else "share",
        level=LEVEL,
        overall=everybody,
        groups=[entry for shares, _ in parts for entry in shares],
        withheld=[entry for _, small in parts for entry in small],
        estimator=estimator,
    )


def mean_estimator(wanted: EstimateSection) -> Callable[[NumericRandomizer, Reports], Estimate]:
    """The estimator of a mean that was asked for."""
    if wanted.estimator == "best":
        return lambda randomizer, reports: best_mean(randomizer, reports).estimate
    return estimate_mean


def chosen_mean(randomizer: NumericRandomizer, reports: Reports, wanted: EstimateSection) -> dict[str, str]:
    """Which estimator of the mean was used, and which one promises the smaller error, with the reason."""
    best = best_mean(randomizer, reports)
    unbiased = "rao-blackwell" if randomizer.memoryless else "mean"
    return {
        "name": best.name if wanted.estimator == "best" else unbiased,
        "best": best.name,
        "reason": best.reason,
    }


def _by_column(
    randomizer: FrequencyRandomizer | NumericRandomizer,
    reports: Reports,
    column: pl.Series,
    shuffler: Shuffler,
    wanted: EstimateSection,
    labels: list[str],
    truth: Truth,
) -> tuple[list[IntervalEstimates], list[dict[str, Any]]]:
    """One entry per group of at least `min_group_size` people; smaller ones are pooled and withheld."""
    names = column.unique().sort()
    codes = column.replace_strict(names, range(len(names)), return_dtype=pl.Int64).to_numpy()
    sizes = np.bincount(codes, minlength=len(names))
    kept = np.flatnonzero(sizes >= wanted.min_group_size)
    small = sizes.size - kept.size
    withheld = (
        [{"by": column.name, "groups": int(small), "people": int(sizes.sum() - sizes[kept].sum())}] if small else []
    )
    if kept.size == 0:
        return [], withheld
    place = np.full(sizes.size, kept.size, dtype=np.int64)
    place[kept] = np.arange(kept.size)
    places = place[codes]
    mixing = mixing_of(shuffler, places, column.name)
    if isinstance(randomizer, NumericRandomizer):
        estimate = estimate_group_means(randomizer, reports, places, mixing=mixing)
    else:
        estimate = estimate_groups(randomizer, reports, places, mixing=mixing)
    entries = []
    for row, group in enumerate(kept):
        part = estimate.group(row)
        true = _true(None if truth is None else truth[places == row], randomizer)
        entries.append(
            shares_of(part, labels, true, by=column.name, group=str(names[int(group)]), span=span_of(randomizer))
        )
    return entries, withheld


def mixing_of(shuffler: Shuffler, places: Labels, name: str) -> NDArray[np.float64] | None:
    """How reports moved between groups; None where all of them stayed."""
    if isinstance(shuffler, Identity):
        return None
    try:
        mixing = shuffler.mixing(places)
    except UnsupportedError as error:
        raise UnsupportedError(
            f"estimates by {name!r}: {error} Raise min_group_size or take a coarser column."
        ) from None
    return None if np.all(1.0 - np.diag(mixing) < 1e-12) else mixing


def _true(truth: Truth, randomizer: FrequencyRandomizer | NumericRandomizer) -> list[float] | None:
    if truth is None:
        return None
    if isinstance(randomizer, NumericRandomizer):
        return [float(truth.mean())]
    return [float(share) for share in np.bincount(truth, minlength=randomizer.k) / len(truth)]


def shares_of(
    estimate: Estimate,
    labels: list[str],
    truth: list[float] | None,
    by: str | None = None,
    group: str | None = None,
    *,
    span: tuple[float, float] | None = None,
) -> IntervalEstimates:
    """An estimate as the report holds it; `span` is the declared range of a mean.

    Interval and `possible` value are what the truth can be; the interval reaches to the possible value where the
    projection moved it further than the noise does, and covers no less for it.
    """
    low, high = estimate.interval(LEVEL)
    possible = estimate.value
    if len(labels) > 1:
        low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
        possible = project_to_simplex(estimate).value if np.isfinite(estimate.value).all() else possible
    elif span is not None:
        mean, (least, most) = in_range(float(estimate.value), (float(low), float(high)), span)
        low, high, possible = np.asarray(least), np.asarray(most), np.asarray(mean)
    low, high = np.minimum(low, possible), np.maximum(high, possible)
    return IntervalEstimates(
        labels=labels,
        value=_list(estimate.value),
        standard_error=_list(estimate.standard_error),
        population_error=_list(estimate.population_error),
        interval=list(zip(_list(low), _list(high), strict=True)),
        possible=_list(possible),
        bias_bound=float(np.max(estimate.bias_bound)),
        n=int(estimate.n),
        truth=truth,
        by=by,
        group=group,
    )


def span_of(randomizer: FrequencyRandomizer | NumericRandomizer) -> tuple[float, float] | None:
    """The declared range of a mean."""
    return (randomizer.lower, randomizer.upper) if isinstance(randomizer, NumericRandomizer) else None


def _list(values: Any) -> list[float]:
    return [float(value) for value in np.atleast_1d(values)]

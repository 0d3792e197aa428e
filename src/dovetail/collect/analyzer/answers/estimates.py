"""From tallies to estimates, by the package's own estimators: everybody, per public group, per round, and windows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dovetail.collect.analyzer.tallies import (
    CampaignRandomizer,
    add_tallies,
    estimator_tally,
    expand_tally,
    tallies_by_group,
)
from dovetail.collect.store.interfaces import GroupTally
from dovetail.core.errors import DataError
from dovetail.core.estimate import Estimate
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer
from dovetail.estimate.aggregates import QuantileEstimate, estimate_quantile
from dovetail.estimate.best_mean import BestMean, best_mean
from dovetail.estimate.frequency import FrequencyEstimator
from dovetail.estimate.mean import estimate_mean
from dovetail.estimate.median import estimate_median
from dovetail.estimate.mixture import estimate_mixture_counts
from dovetail.estimate.rao_blackwell import MOST_STEPS, ClampedGrid
from dovetail.estimate.with_dummies import shares_of_counts, shares_of_people
from dovetail.pipeline.stream.time_windows import FleetRound, TimeWindow, time_window
from dovetail.randomize.krr import KRR
from dovetail.shuffle.dummies.dummies import Dummies
from dovetail.shuffle.dummies.user_dummies import UserDummies

SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)  # of the quantiles that are listed
EVERYBODY = ""
Classes = tuple[tuple[int, KRR], ...]


def estimate(randomizer: CampaignRandomizer, counted: GroupTally) -> Estimate:
    """Shares of the symbols, or the Rao-Blackwell mean: exactly what the library says of the same reports."""
    if isinstance(randomizer, NumericRandomizer):
        return estimate_mean(randomizer, expand_tally(counted))
    return FrequencyEstimator(randomizer).solve(estimator_tally(randomizer, counted))


def estimate_among_dummies(
    randomizer: CampaignRandomizer, counted: GroupTally, dummies: Dummies | UserDummies, *, n: int
) -> Estimate:
    """Shares of the symbols of n people, whose tally holds dummies, and blanks: the dummies' mean is subtracted."""
    assert isinstance(randomizer, FrequencyRandomizer)
    if isinstance(dummies, UserDummies):
        messages = estimator_tally(randomizer, counted).counts[: dummies.k]
        return shares_of_people(dummies, messages - n * dummies.rate / dummies.k, n=n)
    counts = estimator_tally(randomizer, counted).counts - dummies.reach
    return shares_of_counts(dummies, counts.astype(np.float64), n=n, randomizer=randomizer)


def estimate_classes(classes: Classes, counted: GroupTally) -> Estimate:
    """Weighted shares of the symbols, where people have different epsilons and reports do not say whose is whose."""
    counts = estimator_tally(classes[0][1], counted).counts
    return estimate_mixture_counts(classes, counts.astype(np.int64))


@dataclass(frozen=True)
class RoundEstimates:
    """What is known about one round from its counted batches.

    Parameters
    ----------
    t : int
        The round; where several were merged, the last of them.
    rounds : tuple of int
        All rounds whose reports are in it.
    randomizer : the analyst's
    tallies : tuple of GroupTally
        One for each public group.
    minimum : int
        Valid reports that an estimate must rest on: the campaign's, which the shuffler could not check for validity.
    placed : dict
        Estimates of public groups that come from places in a released order, not from tallies.
    dummies : Dummies or UserDummies, optional
        What the shuffler added or the people sent, and how many `people` they are.
    classes : several (people, KRR), optional
        Who sent something by which randomizer, where people have different epsilons.
    """

    t: int
    rounds: tuple[int, ...]
    randomizer: CampaignRandomizer
    tallies: tuple[GroupTally, ...]
    minimum: int
    placed: dict[str, Estimate] = field(default_factory=dict)
    dummies: Dummies | UserDummies | None = None
    people: int = 0
    classes: Classes = ()

    @property
    def n(self) -> int:
        """Valid reports of devices."""
        if self.dummies is not None:
            return self.people
        return sum(part.n for part in self.tallies)

    @property
    def withheld(self) -> bool:
        """Whether nothing is said, because too few reports are valid."""
        return self.n < self.minimum

    @cached_property
    def by_group(self) -> dict[str, Estimate]:
        """Everybody's estimate under "", and one for each public group that may be told apart.

        Nothing of a batch that is withheld, and of public groups only those that `separable` names.
        """
        if self.withheld:
            return {}
        if self.dummies is not None:
            all_reports = add_tallies(self.tallies)
            return {EVERYBODY: estimate_among_dummies(self.randomizer, all_reports, self.dummies, n=self.people)}
        if self.classes:
            return {EVERYBODY: estimate_classes(self.classes, add_tallies(self.tallies))} if self.n else {}
        parts = {name: part for name, part in tallies_by_group(self.tallies).items() if part.n}
        everybody = {EVERYBODY: add_tallies(parts.values())}
        told = separable({name: part.n for name, part in parts.items()}, minimum=self.minimum)
        shown = everybody | {name: part for name, part in parts.items() if name in told}
        counted = {name: estimate(self.randomizer, part) for name, part in shown.items()}
        placed = separable({name: each.n for name, each in self.placed.items()}, minimum=self.minimum)
        return counted | {name: each for name, each in self.placed.items() if name in placed}

    @cached_property
    def numbers(self) -> NumericSummary | None:
        """More about a number than its mean; None for categories, without reports, and where they tell no more."""
        if not isinstance(self.randomizer, NumericRandomizer) or self.withheld or not self.randomizer.memoryless:
            return None
        return NumericSummary.of(self.randomizer, add_tallies(self.tallies))


def separable(sizes: Mapping[str, int], *, minimum: int) -> set[str]:
    """The groups (valid reports by name) of which an estimate may stand beside everybody's.

    Each has `minimum` reports, and so have those that are left out, taken together, or there are none of them: they
    are everybody's less the others', which anybody can compute.

    >>> sorted(separable({"a": 40, "b": 30, "c": 3}, minimum=10))
    ['a']
    >>> sorted(separable({"a": 40, "b": 30, "c": 7, "d": 5}, minimum=10))
    ['a', 'b']
    """
    told = sorted((name for name, n in sizes.items() if n >= minimum), key=lambda name: (sizes[name], name))
    rest = sum(n for n in sizes.values() if n < minimum)
    return set(told[1:] if 0 < rest < minimum else told)


@dataclass(frozen=True)
class NumericSummary:
    """Median, quantiles, and which estimate of the mean promises the smaller error."""

    median: Estimate
    best: BestMean
    quantiles: tuple[tuple[float, QuantileEstimate], ...]  # (share, quantile); empty where the grid is too fine

    @classmethod
    def of(cls, randomizer: NumericRandomizer, counted: GroupTally) -> NumericSummary:
        """From the tally of everybody."""
        reports = expand_tally(counted)
        shares = SHARES if ClampedGrid.of(randomizer).steps <= MOST_STEPS else ()
        quantiles = tuple((share, estimate_quantile(randomizer, reports, share=share)) for share in shares)
        return cls(estimate_median(randomizer, reports), best_mean(randomizer, reports), quantiles)


@dataclass(frozen=True)
class WindowEstimates:
    """Win(t, w): one mean of estimates for everybody and for each public group; rounds without one are named."""

    t: int
    width: int
    by_group: dict[str, TimeWindow]


def window_estimates(rounds: Sequence[RoundEstimates], t: int, *, width: int) -> WindowEstimates:
    """The mean of the estimates of rounds t - width + 1 .. t, as in RASE's Algorithm 3; DataError if there is none.

    Randomization of different rounds is independent given the values, so variances add. Rounds that were merged into
    a later one have no estimate of their own and are named as missing.
    """
    names = {name: None for each in rounds if t - width < each.t <= t for name in each.by_group}
    if not names:
        raise DataError(f"no round from {max(1, t - width + 1):,} to {t:,} has an estimate.")
    return WindowEstimates(t, width, {name: _window(rounds, name, t, width) for name in names})


def _window(rounds: Iterable[RoundEstimates], name: str, t: int, width: int) -> TimeWindow:
    kept = (FleetRound(each.t, each.by_group.get(name), absent=0, held_back=0, simulated=False) for each in rounds)
    return time_window(kept, t, width=width)

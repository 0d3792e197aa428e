"""The result of the test for data-copying, as a value and as a JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import scipy  # scipy.stats loads when it is first used: half a second
from numpy.typing import ArrayLike, NDArray

from dovetail.core.errors import DataError, UnsupportedError
from dovetail.memorize.copying.cells import CellComparison
from dovetail.memorize.copying.controls import HoldoutRatio, HoldoutShare, Membership, PairedTail, TailTest
from dovetail.memorize.copying.rank_test import RankTest, detectable_by_ranks, detectable_by_tail
from dovetail.memorize.copying.search import (
    Duplicates,
    SearchNote,
    equal_pairs,
    repeated_share,
    row_keys,
    rows_in,
    unrepeated_columns,
)

FEW_HELD_OUT = 10  # training rows for each held-out one, from which on the controls see few of them
MANY_COLUMNS = 4  # a mean of l rows is nearer to them than to others by about width / l
TIED = 0.1  # share of fresh points at distance 0, above which the test is weak


@dataclass(frozen=True)
class NearestCopy:
    """A generated row, its nearest training row, and the share of fresh points that are as near to theirs."""

    generated: int
    train: int
    distance: float
    fresh_as_near: float


@dataclass(frozen=True)
class CopyingResult:
    """Everything that was measured for one generated sample; `document()` is what the verb prints."""

    l: int  # noqa: E741
    n: int
    m: int
    overall: RankTest
    interval: tuple[float, float]
    cells: CellComparison
    tail: TailTest
    ratio: HoldoutRatio
    local_ratio: dict[int, HoldoutRatio]
    paired: PairedTail
    share: HoldoutShare
    membership: Membership
    duplicates: Duplicates
    copied_fraction: float
    threshold: tuple[float, int, int]
    nearest: tuple[NearestCopy, ...]
    baselines: dict[str, Any]
    level: float
    distance: str
    constant_columns: int
    fresh_at_zero: float
    search: SearchNote
    width: int = 0

    @property
    def delta_interval(self) -> tuple[float, float]:
        """Interval of Delta over all points, longer at the lower end by what an approximate search may miss."""
        return max(0.0, self.interval[0] - self.search.missed), self.interval[1]

    @property
    def p_underfitting(self) -> float:
        """At least the p-value of exact search: neighbours that were missed feign under-fitting."""
        return self.overall.p_underfitting_below(self.search.missed)

    @property
    def closeness(self) -> dict[str, float]:
        """p of the tests that ask whether Q is nearer to T than P is, adjusted for being several (Bonferroni)."""
        worst = min((cell.p_holm for cell in self.cells.cells), default=1.0)
        tests = {
            "all points": self.overall.p_copying,
            "worst cell": worst,
            "nearest points": self.tail.p,
            "exact copies": self.duplicates.p,
        }
        return {name: min(1.0, len(tests) * p) for name, p in tests.items()}

    @property
    def controls(self) -> dict[str, float]:
        """p of the tests that a shrunk or collapsed model does not trip, adjusted for being four (Bonferroni)."""
        tests = {
            "holdout ratio": self.ratio.p,
            "holdout ratio of a cell": min(1.0, len(self.local_ratio) * min(r.p for r in self.local_ratio.values())),
            "points singled out": self.paired.p,
            "membership": self.membership.p,
        }
        return {name: min(1.0, len(tests) * p) for name, p in tests.items()}

    @property
    def fired(self) -> tuple[str, ...]:
        """Names of the tests that found something at `level`."""
        both = {**self.closeness, **self.controls}
        literal = ("literal copies",) if self.duplicates.literal else ()
        return literal + tuple(name for name, p in both.items() if p <= self.level)

    @property
    def verdict(self) -> str:
        """Nearer to T than P is, and a control fired too, or rows were copied literally: `copying`.

        Only nearer: `closer`, which shrinking does too. Only a control: `members stand out`.
        """
        fired = self.fired
        near, member = (any(name in fired for name in tests) for tests in (self.closeness, self.controls))
        if "literal copies" in fired or (near and member):
            return "copying"
        return "closer" if near else "members stand out" if member else "nothing found"

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        names = ", ".join(self.fired)
        if self._by_members_alone:
            return (
                "Generated data are nearer to the training data than fresh data are and tell who was in them "
                f"({names}): copying, or, with {self.width:,} numbers in a row and {self.l:,} training rows, a model "
                "that was fitted to few rows and repeats none."
            )
        if self.verdict == "copying":
            return f"The model repeats training data: {names}."
        if self.verdict == "closer":
            return (
                f"Generated data are nearer to the training data than fresh data are ({names}), but the controls did "
                "not fire: copying, or a model that shrinks the data or drops parts of them."
            )
        if self.verdict == "members stand out":
            return (
                "Generated data are no nearer to the training data than fresh data are, yet they tell who was in "
                f"them ({names})."
            )
        return f"No copying was found. {self.would_have_found}"

    @property
    def would_have_found(self) -> str:
        """The minimum detectable effect in words."""
        ranks, tail = self.detectable
        return (
            f"With these sizes a share of {ranks:.2%} of exact copies would have been found by the test over all "
            f"points with a chance of 80 %, {tail:.2%} by the nearest {self.tail.k}."
        )

    @property
    def detectable(self) -> tuple[float, float]:
        """Shares of exact copies that the verdict finds with power 0.8: by all points, by the nearest ones."""
        return self._detectable(self.level / len(self.closeness))

    def _detectable(self, level: float) -> tuple[float, float]:
        ranks = detectable_by_ranks(self.n, self.m, level=level) + self.search.missed
        tail = detectable_by_tail(self.n, self.m, self.tail.k, level=level) / (1.0 - self.search.missed)
        return min(1.0, ranks), min(1.0, tail)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings: what makes the numbers weaker than they look."""
        said = []
        if self.fresh_at_zero > TIED:
            said.append(
                f"{self.fresh_at_zero:.0%} of the fresh points stand in the training sample already: the tests are "
                "right but weak, since a copy looks like a coincidence."
            )
        if self.constant_columns:
            said.append(
                f"Constant in the training sample, so telling nothing apart: {self.constant_columns} columns."
            )
        if self.duplicates.twins_generated > self.duplicates.twins_fresh + 0.01:
            said.append(
                f"{self.duplicates.twins_generated:.1%} of the generated rows repeat each other "
                f"({self.duplicates.twins_fresh:.1%} of the fresh ones): p-values take rows for independent; "
                "compare distinct rows too (--deduplicate)."
            )
        copied = self.duplicates
        if copied.generated and not (copied.fresh or copied.twins_train or copied.literal):
            said.append(
                f"{copied.generated:,} generated rows stand in the training sample ({copied.distinct:,} rows) "
                f"and no fresh row does: coincidence is not ruled out (a chance of {copied.by_coincidence:.2g}); "
                "where rows cannot coincide, as with independent numbers of many digits, they are copies."
            )
        if self.cells.left_out:
            said.append(
                f"{self.cells.left_out} cells have fewer than 20 fresh or generated points and were not tested; what "
                "happens there is seen by the overall tests alone."
            )
        if self.l >= FEW_HELD_OUT * self.ratio.size:
            said.append(
                f"The controls hold {self.ratio.size:,} of the {self.l:,} training rows against as many held-out "
                "ones: copies of the others escape them, so copying may be called closer; a larger held-out sample "
                "(--holdout) sees more."
            )
        return (*said, self.search.sentence) if self.search.sentence else tuple(said)

    @property
    def _by_members_alone(self) -> bool:
        """True if `copying` rests on controls that a mean of few rows in many columns trips as well."""
        copies = {"literal copies", "holdout ratio", "holdout ratio of a cell"}
        return self.verdict == "copying" and self.width * MANY_COLUMNS >= self.l and not copies & {*self.fired}

    def _missed_in(self, m: int) -> float:
        """All that was missed may lie in one cell of m generated points."""
        return min(1.0, self.search.missed * self.m / m)

    def document(self) -> dict[str, Any]:
        """JSON-ready; what does not apply is null with its reason."""
        cells, missing = self.cells, {"value": None, "reason": "no cell has 20 points of P and of Q"}
        return {
            "l": self.l,
            "n": self.n,
            "m": self.m,
            "distance": self.distance,
            "verdict": self.verdict,
            "sentence": self.sentence,
            "fired": list(self.fired),
            "level": self.level,
            "z": self.overall.z,
            "delta": {"value": self.overall.delta, "interval": list(self.delta_interval)},
            "search": self.search.document(),
            "p_copying": self.overall.p_copying,
            "p_underfitting": self.p_underfitting,
            "p_method": self.overall.method,
            "minimum_detectable_share": {
                **dict(zip(("all_points", "nearest_points"), self._detectable(self.level), strict=True)),
                "in_verdict": dict(zip(("all_points", "nearest_points"), self.detectable, strict=True)),
            },
            "c_t": missing if cells.c_t is None else cells.c_t,
            "c_t_standardized": missing if cells.c_t_standardized is None else cells.c_t_standardized,
            "cells": [
                {
                    "cell": cell.cell,
                    "n": cell.n,
                    "m": cell.m,
                    "delta": cell.test.delta,
                    "interval": [max(0.0, cell.interval[0] - self._missed_in(cell.m)), cell.interval[1]],
                    "z": cell.test.z,
                    "p": cell.test.p_copying,
                    "p_holm": cell.p_holm,
                    "p_benjamini_hochberg": cell.p_bh,
                    "representation_z": cell.representation,
                    "representation_p_holm": cell.p_representation,
                    "minimum_detectable_share": min(1.0, cell.detectable + self._missed_in(cell.m)),
                }
                for cell in cells.cells
            ],
            "cells_left_out": cells.left_out,
            "cross_fitted": cells.cross_fitted,
            "covered": cells.covered_fresh,
            "covered_generated": cells.covered_generated,
            "duplicates": self.duplicates.generated,
            "duplicate_test": vars(self.duplicates),
            "tail": vars(self.tail),
            "controls": {
                "holdout_ratio": vars(self.ratio),
                "holdout_ratio_by_cell": {str(cell): vars(ratio) for cell, ratio in self.local_ratio.items()},
                "points_singled_out": vars(self.paired),
                "holdout_share": {**vars(self.share), "rho": self.share.rho},
                "membership": {**vars(self.membership), "interval": list(self.membership.interval)},
            },
            "copied_fraction": {
                "at_least": self.copied_fraction,
                "threshold": self.threshold[0],
                "generated_within": self.threshold[1],
                "fresh_within": self.threshold[2],
            },
            "adjusted": {**self.closeness, **self.controls},
            "nearest": [vars(pair) for pair in self.nearest],
            "baselines": self.baselines or {"value": None, "reason": "not asked for"},
            "warnings": list(self.warnings),
        }


# What may be compared: three samples of finite numbers, the fresh one not seen in training.


Points = NDArray[np.float64]  # (n, d)

LEAST = 20
CHANCE = 0.01  # of coincidences, below which they are called a leak
CHANCE_OF_UNREPEATED = 0.05  # the same where two columns hardly repeat a value
LARGEST, SMALLEST = 1e60, 1e-60  # products of covariances stay inside the doubles

WHY_FRESH = (
    "the test compares generated data with a fresh sample of the truth, which the model has not seen: without one, "
    "closeness to the training data has no scale (held-out rows will do)"
)


def checked(points: ArrayLike | None, what: str, *, width: int | None = None) -> Points:
    """Rows of finite numbers (n, d), at least 20; images (n, ..) are flattened.

    Raises
    ------
    DataError
        One line: what, where, what to do.
    """
    if points is None:
        raise UnsupportedError(f"no {what} sample: {WHY_FRESH}.")
    try:
        found = np.asarray(points)
        if np.iscomplexobj(found):
            raise TypeError
        found = np.asarray(found, dtype=np.float64).reshape(len(found), -1)
    except (TypeError, ValueError):
        raise DataError(f"{what}: must be rows of numbers; got what is no array of numbers.") from None
    if len(found) < LEAST:
        raise DataError(
            f"{what}: must have at least {LEAST} rows, got {len(found):,}; smaller samples decide nothing."
        )
    if found.shape[1] == 0:
        raise DataError(f"{what}: has no columns.")
    if width is not None and found.shape[1] != width:
        raise DataError(f"{what}: has {found.shape[1]:,} columns, the training sample {width:,}; they must agree.")
    bad = ~(np.abs(found) < LARGEST).all(axis=1)
    if bad.any():
        rows = np.flatnonzero(bad)
        raise DataError(
            f"{what}: {rows.size:,} rows hold values that are missing, infinite or beyond 1e60 (first row "
            f"{rows[0] + 1}); drop or fill them in all samples alike."
        )
    return found


def apart(train: Points, fresh: Points, *, overlap: str, what: str = "fresh") -> Points:
    """The fresh sample, once it is clear that it was not trained on.

    Rounded values and categories coincide by chance, and how often is seen inside the two samples; beyond that the
    fresh sample holds training rows, which hides copying: 10 % of it hide 5 % of copies. Where rows coincide by
    chance, dropping them from the fresh sample alone would make honest data look like copies, and is refused.

    Parameters
    ----------
    overlap : "refuse", "drop" or "keep"
    """
    same = rows_in(fresh, train)
    if not same.any() or overlap == "keep":
        return fresh
    usual = expected_overlap(train, fresh)
    if overlap == "drop":
        if usual * len(fresh) >= 1.0:
            raise DataError(
                f"{what}: {usual:.1%} of the rows have an equal in such a sample, so rows coincide by chance; "
                "dropping them from one sample alone would make honest data look like copies: keep them (--overlap "
                "keep)."
            )
        left = fresh[~same]
        if len(left) < LEAST:
            raise DataError(
                f"{what}: {len(left):,} rows are left without those of the training sample; at least {LEAST}."
            )
        return left
    room = 3.0 * sqrt(usual * (1.0 - usual) * (1.0 / len(fresh) + 2.0 / len(train)))
    if same.mean() > usual + room and _leak(train, fresh, int(same.sum())):
        raise DataError(
            f"{what}: {int(same.sum()):,} of {len(fresh):,} rows stand in the training sample too (first row "
            f"{int(np.flatnonzero(same)[0]) + 1}), where chance explains {usual:.1%}; that hides copying: take a "
            "sample that was not trained on, drop these rows (--overlap drop) or, if they coincide by chance because "
            "equal rows were removed from both samples, keep them (--overlap keep)."
        )
    return fresh


def expected_overlap(train: Points, fresh: Points) -> float:
    """Share of rows that have a twin by chance among as many as the training rows.

    Seen in the training sample; where its rows were made distinct, in the fresh one, in proportion to the sizes,
    which is too much rather than too little.
    """
    if (own := repeated_share(row_keys(train))) > 0.0:
        return own
    return min(1.0, repeated_share(row_keys(fresh)) * max(1.0, len(train) / len(fresh)))


def _leak(train: Points, fresh: Points, count: int) -> bool:
    """True if so many coincidences between the samples are more than those inside them let expect, at 1 %.

    Few coincidences are pairs that fall anywhere alike: l n of the pairs lie between the samples, the rest inside;
    pairs inside training rows that were made distinct are left out. In tables with two columns that hardly repeat a
    value whole rows coincide only where the columns determine each other, as the two of a place do: 5 %.
    """
    twins = [equal_pairs(row_keys(sample)) for sample in (train, fresh)]
    unrepeated = unrepeated_columns(train) > 1
    chance = CHANCE_OF_UNREPEATED if unrepeated else CHANCE
    kept = [len(one) for one, pairs in zip((train, fresh), twins, strict=True) if pairs or unrepeated or one is fresh]
    between = len(train) * len(fresh)
    pairs = between + sum(size * (size - 1) / 2 for size in kept)
    return bool(scipy.stats.binom.sf(count - 1, count + sum(twins), between / pairs) <= chance)


def varied(train: Points, widths: Sequence[int] | None = None) -> int:
    """Number of constant columns of the training sample; a sample without any variation is refused.

    `widths`: how many numbers stand for each column, one without it; a column is constant where all of them are.
    """
    spread = np.ptp(train, axis=0)
    same = spread == 0.0
    starts = np.arange(same.size) if widths is None else np.cumsum([0, *widths[:-1]])
    constant = int(np.logical_and.reduceat(same, starts).sum())
    if same.all():
        raise DataError("train: all rows are equal, so every distance says the same; nothing can be tested.")
    if spread.max() < SMALLEST:
        raise DataError("train: no column varies by more than 1e-60, so that squares of distances vanish; scale all.")
    return constant

"""What may be compared: three samples of finite numbers, the fresh one not seen in training."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from dovetail.core.errors import DataError, UnsupportedError
from dovetail.memorize.copying.duplicates import equal_pairs, repeated_share, row_keys, rows_in, unrepeated_columns

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
                f"{what}: {usual:.1%} of the rows have a twin in a sample of this size, so rows coincide by chance; "
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
            "twins were removed from both samples, keep them (--overlap keep)."
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
    """Whether so many coincidences between the samples are more than those inside them let expect, at 1 %.

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
    return bool(binom.sf(count - 1, count + sum(twins), between / pairs) <= chance)


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

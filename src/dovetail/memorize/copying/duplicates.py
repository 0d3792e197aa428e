"""Equal rows, found by hashing: what is in two samples, and what stands in one sample more than once.

Hashes have 64 bits, so that a million training rows take eight megabytes; two different rows among a million and ten
thousand share one with a chance below 1e-9.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, fisher_exact

Points = NDArray[np.float64]  # (n, d)
Keys = NDArray[np.int64]  # (n,)


LITERAL = 0.01  # chance of coincidence, up to which equal rows are called copies


@dataclass(frozen=True)
class Duplicates:
    """Rows of Q and of P that stand in T, with Fisher's p for "more of Q", and twins inside each sample.

    `by_coincidence` is the chance that so many coincidences all fall to Q, where T and P show none; `distinct` is how
    many training rows stand in Q.
    """

    generated: int
    fresh: int
    p: float
    twins_train: float
    twins_generated: float
    twins_fresh: float
    by_coincidence: float
    distinct: int

    @property
    def literal(self) -> bool:
        """Whether Q holds several training rows although nothing else repeats: more than coincidence explains."""
        alone = self.distinct > 1 and self.fresh == 0 and self.twins_train == 0.0
        return alone and self.by_coincidence <= LITERAL


def row_keys(points: Points) -> Keys:
    """One hash per row (n, d), equal for equal rows; -0.0 equals 0.0."""
    return np.fromiter((hash((row + 0.0).tobytes()) for row in points), dtype=np.int64, count=len(points))


def rows_in(queries: Points, sample: Points) -> NDArray[np.bool_]:
    """Which rows of `queries` (n, d) stand in `sample` too."""
    return np.isin(row_keys(queries), row_keys(sample))


def first_rows(points: Points) -> NDArray[np.int64]:
    """The rows that stand for the distinct ones, in their order."""
    return np.sort(np.unique(row_keys(points), return_index=True)[1]).astype(np.int64)


def all_coincide_in(count: int, l: int, n: int, m: int) -> float:  # noqa: E741
    """Chance that `count` coincidences of rows are all between Q (m) and T (l), none in T or between P (n) and T.

    Pairs of rows are taken to coincide equally often wherever they are.

    >>> round(all_coincide_in(2, l=2000, n=1000, m=1000), 3)
    0.111
    """
    among_others, of_generated = l * (l - 1) / 2 + l * n, l * m
    return float((of_generated / (among_others + of_generated)) ** count)


def concentrated(count: int, keys: Keys, train: Keys) -> float:
    """Chance that so many of Q's coincidences fall to T if rows of Q meet T as often as each other; 0 without any.

    `count` rows of T stand in Q (m,); pairs of equal rows in Q that T lacks speak for a model that draws in its data,
    or chooses among few rows: it meets T by chance more often than fresh data do.
    """
    twins = equal_pairs(keys[~np.isin(keys, train)])
    inside, between = len(keys) * (len(keys) - 1) / 2, len(keys) * len(train)
    return float(binom.sf(count - 1, count + twins, between / (between + inside))) if twins else 0.0


def equal_pairs(keys: Keys) -> int:
    """Pairs of equal rows, from their `row_keys`."""
    counts = np.unique(keys, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


def unrepeated_columns(points: Points) -> int:
    """Columns of at most 2,000 rows in which at least 99 % of the values are distinct."""
    some = np.sort(points[:2_000], axis=0)
    return int(((np.diff(some, axis=0) > 0).mean(axis=0) >= 0.99).sum())


def repeated_share(keys: Keys) -> float:
    """Share of rows that have a twin in the same sample, from their `row_keys`."""
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return float((counts[inverse] > 1).mean())


def duplicates_of(train: Keys, fresh: Keys, generated: Keys, *, distinct: bool = False) -> Duplicates:
    """Count from the `row_keys` of all rows; `distinct` counts equal generated rows once."""
    once = np.unique(generated) if distinct else generated
    copies, usual = (np.isin(keys, train) for keys in (once, fresh))
    table = [[copies.sum(), (~copies).sum()], [usual.sum(), (~usual).sum()]]
    found = len(np.intersect1d(generated, train))
    return Duplicates(
        int(copies.sum()),
        int(usual.sum()),
        float(fisher_exact(table, alternative="greater").pvalue),
        repeated_share(train),
        repeated_share(generated),
        repeated_share(fresh),
        max(all_coincide_in(found, len(train), len(fresh), len(once)), concentrated(found, generated, train)),
        found,
    )

"""All two-way tables of some columns: made consistent, tested for independence, and made into a synthetic table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.errors import ParameterError

Reals = NDArray[np.float64]
Codes = NDArray[np.int64]  # (n, columns)
Pair = tuple[int, int]
Tables = dict[Pair, Reals]  # (values of the one, values of the other), numbers of people

SWEEPS = 40  # of making tables consistent
UPDATES, STEP, COOLING = 30, 0.5, 0.93  # of a synthetic table
DRAWS = 199  # under independence
LEAST, TIMES = 10.0, 10.0  # people, and standard deviations of noise, in a margin of a test


@dataclass(frozen=True)
class Pairs:
    """Columns of so many values each, and the list of all cells of all their two-way tables.

    Parameters
    ----------
    sizes : tuple of int, each at least 2
        Two columns or more.

    Examples
    --------
    >>> pairs = Pairs((2, 3, 2))
    >>> pairs.all, pairs.size, pairs.symbols(np.array([[1, 2, 0]])).tolist()
    (((0, 1), (0, 2), (1, 2)), 16, [[5, 8, 14]])
    """

    sizes: tuple[int, ...]

    @cached_property
    def all(self) -> tuple[Pair, ...]:
        """Every two columns."""
        return tuple(combinations(range(len(self.sizes)), 2))

    @property
    def cells(self) -> tuple[int, ...]:
        """Cells of each table."""
        return tuple(self.sizes[i] * self.sizes[j] for i, j in self.all)

    @property
    def precisions(self) -> tuple[int, ...]:
        """Weights of the tables, c^(2/3) of c cells, which give the least sum of errors for a loss that they share.

        >>> Pairs((2, 3, 9)).precisions
        (3, 7, 9)
        """
        return tuple(round(cells ** (2.0 / 3.0)) for cells in self.cells)

    @property
    def size(self) -> int:
        """Cells of all tables."""
        return sum(self.cells)

    @property
    def starts(self) -> NDArray[np.int64]:
        """The number of the first cell of each table."""
        return np.concatenate([[0], np.cumsum(self.cells)[:-1]]).astype(np.int64)

    def symbols(self, codes: Codes) -> Codes:
        """The cell of each table in which each person lies (n, tables)."""
        columns = [codes[:, i] * self.sizes[j] + codes[:, j] for i, j in self.all]
        return np.column_stack(columns) + self.starts

    def split(self, cells: ArrayLike) -> Tables:
        """The tables of a list of all cells."""
        parts = np.split(np.asarray(cells, dtype=np.float64), self.starts[1:])
        return {
            (i, j): part.reshape(self.sizes[i], self.sizes[j]) for (i, j), part in zip(self.all, parts, strict=True)
        }

    def noise(self, errors: ArrayLike) -> dict[Pair, float]:
        """Standard error of a typical cell of each table, over its n / cells people; above 1 the noise drowns it."""
        return {pair: math.sqrt(float((one**2).mean())) * one.size for pair, one in self.split(errors).items()}

    def needed(self, errors: ArrayLike, n: int) -> dict[Pair, int]:
        """From how many people on a typical cell of each table holds more than its noise, of n with these errors.

        Noise falls with their number, or, where the errors of cells differ with how many are in them, with its root.
        """
        apart = {pair: bool(np.ptp(one) > 0.0) for pair, one in self.split(errors).items()}
        return {
            pair: math.ceil(n * max(one, one**2) if apart[pair] else n * one)
            for pair, one in self.noise(errors).items()
        }

    def counted(self, codes: Codes) -> Tables:
        """The tables of people."""
        return self.split(np.bincount(self.symbols(codes).ravel(), minlength=self.size))


def projected(values: Reals, mass: float) -> Reals:
    """The nearest numbers that are at least 0 and sum to `mass`.

    >>> projected(np.array([3.0, 2.0, -1.0]), 4.0).tolist()
    [2.5, 1.5, 0.0]
    """
    flat = np.sort(values.ravel())[::-1]
    over = (np.cumsum(flat) - mass) / np.arange(1, flat.size + 1)
    kept = np.flatnonzero(flat > over)
    return np.asarray(np.maximum(values - over[kept[-1] if kept.size else 0], 0.0))


def consistent(
    tables: Tables, sizes: tuple[int, ...], n: float, variances: Mapping[Pair, float] | None = None
) -> Tables:
    """Tables of nonnegative numbers of n people, the margins of each column the same in all of them.

    A margin is the mean over the tables that have it, weighted by precision: by how few cells a row sums, and by the
    `variances` of the cells of each table, equal by default.
    """
    margins = []
    for column, values in enumerate(sizes):
        sums, weights = np.zeros(values), 0.0
        for (i, j), table in tables.items():
            if column in (i, j):
                other = j if column == i else i
                weight = 1.0 / (sizes[other] * (1.0 if variances is None else variances[i, j]))
                sums += weight * table.sum(axis=1 if column == i else 0)
                weights += weight
        margins.append(projected(sums / weights, n))
    found = {}
    for (i, j), table in tables.items():
        moved = projected(table, n)
        for _ in range(SWEEPS):
            moved = moved + ((margins[i] - moved.sum(axis=1)) / sizes[j])[:, None]
            moved = moved + (margins[j] - moved.sum(axis=0)) / sizes[i]
            moved = projected(moved, n)
        found[i, j] = fitted_margins(moved, margins[i], margins[j])
    return found


def fitted_margins(table: Reals, rows: Reals, columns: Reals) -> Reals:
    """The table scaled to margins, by iterative proportional fitting; cells of empty rows are filled evenly first."""
    found = table + 1e-9 * np.outer(rows, columns) / max(float(rows.sum()), 1e-300)
    for _ in range(200):
        by = found.sum(axis=1)
        found = found * np.divide(rows, by, out=np.zeros_like(by), where=by > 0.0)[:, None]
        by = found.sum(axis=0)
        found = found * np.divide(columns, by, out=np.zeros_like(by), where=by > 0.0)
    return found


def mutual_information(table: Reals) -> float:
    """How much two columns tell of one another, nats: 0 where they are independent.

    >>> mutual_information(np.eye(2)), mutual_information(np.ones((2, 3)))
    (0.6931471805599453, 0.0)
    """
    law = np.maximum(table, 0.0) / max(float(np.maximum(table, 0.0).sum()), 1e-300)
    even = np.outer(law.sum(axis=1), law.sum(axis=0))
    here = law > 0.0
    return max(0.0, float((law[here] * np.log(law[here] / even[here])).sum()))


def independence(
    tables: Tables,
    n: int,
    variances: Mapping[Pair, float],
    drawn: Callable[[Codes], Tables],
    rng: np.random.Generator,
) -> dict[Pair, float]:
    r"""Probabilities of tables as far from independence, where the columns are independent.

    .. math:: \sum \frac{(t - e)^2}{e + v}, \qquad p = \frac{1 + \#\{\text{draws at least as large}\}}{200}

    e from the table's own margins, v the noise variance of its cells. Draws are multinomial, with noise, and
    everything is worked out again. Rows and columns that are too small are merged first; where one is left there is
    no test.

    Parameters
    ----------
    drawn : function
        Noise of all tables, of how many people are in each cell of all of them.
    """
    merged: dict[Pair, tuple[Codes, Codes]] = {}
    for pair, table in tables.items():
        parts = tuple(
            _merge(table.sum(axis=1 - axis), max(LEAST, TIMES * np.sqrt(variances[pair] * table.shape[1 - axis])))
            for axis in (0, 1)
        )
        if min(int(one.max()) for one in parts) > 0:
            merged[pair] = (parts[0], parts[1])
    found = {pair: _statistic(tables[pair], by, variances[pair]) for pair, by in merged.items()}
    above = dict.fromkeys(merged, 1)
    laws = {pair: _independent(tables[pair]) for pair in merged}
    held = {pair: np.zeros(table.shape, dtype=np.int64) for pair, table in tables.items()}
    for _ in range(DRAWS):
        held |= {pair: rng.multinomial(n, law.ravel()).reshape(law.shape) for pair, law in laws.items()}
        noise = drawn(np.concatenate([one.ravel() for one in held.values()]))
        for pair, by in merged.items():
            above[pair] += _statistic(held[pair] + noise[pair], by, variances[pair]) >= found[pair]
    return {pair: count / (DRAWS + 1) for pair, count in above.items()}


def _merge(margin: Reals, least: float) -> Codes:
    """The part to which each value goes: those of few people are one, with the smallest of the rest where needed."""
    large = margin >= least
    parts = np.cumsum(large) - 1
    if large.all():
        return parts.astype(np.int64)
    pool = float(margin[~large].sum())
    if pool >= least or not large.any():
        return np.where(large, parts, int(large.sum())).astype(np.int64)
    smallest = parts[np.flatnonzero(large)[np.argmin(margin[large])]]
    return np.where(large, parts, smallest).astype(np.int64)


def _independent(table: Reals) -> Reals:
    """Chances of the cells under independence, by the table's own margins."""
    rows, columns = (np.maximum(table.sum(axis=axis), 0.0) for axis in (1, 0))
    law = np.outer(rows, columns) / max(float(rows.sum() * columns.sum()), 1e-300)
    return np.asarray(law / law.sum())


def _statistic(table: Reals, by: tuple[Codes, Codes], variance: float) -> float:
    rows, columns = (np.eye(int(one.max()) + 1)[one] for one in by)
    joined, many = rows.T @ table @ columns, np.outer(rows.sum(axis=0), columns.sum(axis=0))
    even = np.maximum(np.outer(joined.sum(axis=1), joined.sum(axis=0)) / joined.sum(), 0.0)
    return float(((joined - even) ** 2 / (even + variance * many)).sum())


def synthetic(tables: Tables, sizes: tuple[int, ...], n: int, rng: np.random.Generator) -> Codes:
    """n records (n, columns) whose two-way tables are near these, by gradual update (Zhang et al. 2021, PrivSyn).

    They start along the tree of columns that tell most of one another (Chow, Liu 1968). Then, table by table, records
    move from cells with too many to cells with too few, half by overwriting the two columns, half as
    copies of records that lie there.
    """
    if len(sizes) < 2 or n < 1:
        raise ParameterError("`tables` must be of two columns or more, and of one person or more.")
    records = _along_tree(tables, sizes, n, rng)
    step = STEP
    for _ in range(UPDATES):
        for place in rng.permutation(len(tables)):
            i, j = tuple(tables)[place]
            _update(records, (i, j), tables[i, j] * (n / tables[i, j].sum()), step, rng)
        step *= COOLING
    return records


def _update(records: Codes, pair: Pair, wanted: Reals, step: float, rng: np.random.Generator) -> None:
    """Move records of one table towards it, in place."""
    (i, j), (height, width) = pair, wanted.shape
    cell = records[:, i] * width + records[:, j]
    gap = np.bincount(cell, minlength=height * width) - wanted.ravel()
    give = _whole(step * np.maximum(gap, 0.0), rng)
    take = step * np.maximum(-gap, 0.0)
    order = rng.permutation(len(cell))
    ranked = order[np.argsort(cell[order], kind="stable")]
    starts = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=height * width))])
    movers = np.concatenate([ranked[starts[c] : starts[c] + give[c]] for c in np.flatnonzero(give)] or [ranked[:0]])
    if not movers.size or take.sum() <= 0.0:
        return
    movers = movers[rng.permutation(movers.size)]
    goals = np.repeat(np.arange(height * width), _whole(take * (movers.size / take.sum()), rng))
    goals = goals[rng.permutation(goals.size)][: movers.size]
    movers = movers[: goals.size]
    counts = np.diff(starts)
    copied = (np.arange(goals.size) % 2 == 0) & (counts[goals] > 0)
    chosen = starts[goals] + (rng.random(goals.size) * counts[goals]).astype(np.int64)
    source = ranked[np.minimum(chosen, len(ranked) - 1)]
    rows = records[source[copied]]
    records[movers[copied]] = rows
    others = movers[~copied]
    records[others, i], records[others, j] = goals[~copied] // width, goals[~copied] % width


def _whole(numbers: Reals, rng: np.random.Generator) -> Codes:
    """Whole numbers, right on average."""
    below = np.floor(numbers)
    return (below + (rng.random(numbers.shape) < numbers - below)).astype(np.int64)


def _along_tree(tables: Tables, sizes: tuple[int, ...], n: int, rng: np.random.Generator) -> Codes:
    """Records along the spanning tree of most mutual information, each child drawn within its parent's value."""
    told = {pair: mutual_information(table) for pair, table in tables.items()}
    records, placed = np.zeros((n, len(sizes)), dtype=np.int64), {0}
    first = tables[0, 1].sum(axis=1)
    records[:, 0] = rng.permutation(_systematic(first, n, rng))
    while len(placed) < len(sizes):
        parent, child = max(
            ((i, j) if i in placed else (j, i) for i, j in tables if (i in placed) != (j in placed)),
            key=lambda pair: told[min(pair), max(pair)],
        )
        table = tables[min(parent, child), max(parent, child)]
        table = table if parent < child else table.T
        for value in range(sizes[parent]):
            here = np.flatnonzero(records[:, parent] == value)
            if here.size:
                law = table[value] if table[value].sum() > 0.0 else table.sum(axis=0)
                records[here, child] = rng.permutation(_systematic(law, here.size, rng))
        placed.add(child)
    return records


def _systematic(law: Reals, count: int, rng: np.random.Generator) -> Codes:
    """`count` values whose numbers are within one of what the law says."""
    ends = np.cumsum(np.maximum(law, 0.0))
    places = (np.arange(count) + rng.random()) / count * ends[-1]
    found = np.searchsorted(ends, places, side="right")
    return np.asarray(np.minimum(found, len(law) - 1), dtype=np.int64)


def variation(one: Mapping[Pair, Reals], other: Mapping[Pair, Reals]) -> dict[Pair, float]:
    """Total variation distance of each table from the other, both as shares."""
    return {
        pair: 0.5 * float(np.abs(table / table.sum() - other[pair] / other[pair].sum()).sum())
        for pair, table in one.items()
    }

"""How every two of several columns go together: all two-way tables with one promise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import refuse
from dovetail.core.display import mute
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import ParameterError
from dovetail.core.estimate import Estimate, Tally
from dovetail.core.missing import Missing
from dovetail.core.noise import Noise, People
from dovetail.core.question import Question, Values
from dovetail.estimate.tables import Pairs, consistent, independence, mutual_information
from dovetail_protocol.asked import Part, Symbol

SEED = 20_000_101  # of the draws of tests: the same numbers for the same release
MOST_COLUMNS = 20
NO_TEST = Missing("too few people for the noise: one row or column is left")
FORM = 'written as "sex: F | M; income: low | high"'


@final
@mute
@dataclass(frozen=True, eq=False)
class CellIntervals:
    """Intervals of the cells of tables, by the law of the noise in them.

    Parameters
    ----------
    repeats : int array (tables,)
        Cells of each.
    reach : function of a tail
        How far below and above the truth the cells of each table may lie (tables,).
    spread : float array (cells,)
        Variance of a share by sampling, where that is added.
    """

    repeats: NDArray[np.int64]
    reach: Callable[[float], tuple[NDArray[np.float64], NDArray[np.float64]]]
    sampling: NDArray[np.float64]
    sampled: bool = False

    def drawn(self, share: Any) -> CellIntervals:
        """With sampling added, by a normal approximation."""
        return replace(self, sampled=True)

    def each(self, pick: Callable[[Any], Any]) -> CellIntervals:
        """The same: tables are not cut into groups."""
        return self

    def interval(self, value: NDArray[np.float64], z: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """As in `Intervals`."""
        from scipy.special import ndtr

        below, above = (np.repeat(one, self.repeats) for one in self.reach(float(ndtr(-z))))
        extra = z * np.sqrt(self.sampling) * self.sampled
        return value - np.hypot(above, extra), value + np.hypot(below, extra)


@final
@dataclass(frozen=True)
class Tables(Question):
    r"""The share of people in every cell of all two-way tables of K columns.

    A person says her cell of each table, in K (K - 1) / 2 messages that nobody can link; the promise is of all of
    them together. People of a table sum to n, which is known, so each cell gets its part of what is missing:

    .. math:: \hat c = h + \frac{n - \sum h}{\mathrm{cells}}, \qquad
              \mathrm{Var}\, \hat c = \Bigl(1 - \frac{1}{\mathrm{cells}}\Bigr) \mathrm{Var}\, Z

    Where reports are kept by chance, those of a table do not sum to a number that is known: counts stay as they are,
    and each has the interval of its own law. Beside the cells stand, for each pair, the mutual information of a
    consistent table and a test of independence.

    Parameters
    ----------
    categories : tuple of str
        Of the private column.
    others : text, or mapping from a column to its categories
        Private too: "sex: F | M; income: low | high"; a mapping for categories with such signs in them.

    Raises
    ------
    ParameterError
        For columns that are not written in this form, fewer than two categories, and more than 20 columns.

    Examples
    --------
    >>> asked = Tables(("a", "b"), "sex: F | M; income: low | middle | high")
    >>> asked.symbols, asked.domain, asked.labels[0], asked.labels[-1]
    (3, {'k': 16}, 'a, sex F', 'sex M, income high')

    Source
    ------
    docs/theory/distributions.md.
    """

    categories: tuple[str, ...]
    others: Any
    name: ClassVar[str] = "tables"
    label: ClassVar[str] = "all two-way tables"
    measure: ClassVar[str] = "share"
    needs = "frequency"
    hidden: ClassVar[Missing | None] = Missing(
        "guesses are measured of one answer of a list; here several columns are asked"
    )
    of_numbers: ClassVar[bool] = False
    needs_names: ClassVar[bool] = True
    several: ClassVar[bool] = True
    bounds_sums: ClassVar[bool] = True

    @dataclass
    class Settings:
        """Of a configuration.

        Parameters
        ----------
        others
            Further private columns with all their categories: "sex: F | M; income: low | high".
        """

        others: str | Any  # what is neither text nor table is refused in one sentence, by `Tables`

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", tuple(self.categories))
        object.__setattr__(self, "others", _listed(self.others))
        if len(self.categories) < 2:
            raise refuse("categories", "two or more", self.categories)

    @classmethod
    def of(cls, data: Any, categories: Sequence[str] | None, **settings: Any) -> Self:
        if data.numeric or not categories:
            raise ParameterError("tables are of columns with `categories`: declare them in [data]")
        found = cls(tuple(categories), **settings)
        if data.private in found.further:
            raise ParameterError(f"`others` must be other columns than {data.private!r}.")
        return found

    @cached_property
    def pairs(self) -> Pairs:
        """The tables."""
        return Pairs((len(self.categories), *(len(values) for _, values in self.others)))

    @property
    def symbols(self) -> int:
        return len(self.pairs.all)

    @property
    def lists(self) -> tuple[int, ...]:
        return self.pairs.cells

    @property
    def precisions(self) -> tuple[int, ...]:
        return self.pairs.precisions

    @property
    def column(self) -> dict[str, Any]:
        return {"categories": list(self.categories)}

    @property
    def domain(self) -> dict[str, Any]:
        return {"k": self.pairs.size}

    @property
    def names(self) -> list[str] | None:
        return self.labels

    @property
    def labels(self) -> list[str]:
        called = [list(self.categories), *([f"{name} {one}" for one in values] for name, values in self.others)]
        return [f"{one}, {other}" for i, j in self.pairs.all for one in called[i] for other in called[j]]

    @property
    def span(self) -> tuple[float, float] | None:
        return 0.0, 1.0

    @property
    def further(self) -> Mapping[str, tuple[float, float] | tuple[str, ...]]:
        return dict(self.others)

    def answer(self, values: Values, rng: Entropy) -> Values:
        found = self.pairs.symbols(values.astype(np.int64))
        return found[:, 0] if self.symbols == 1 else found

    def device_symbols(self, names: Sequence[str], k: int | None) -> tuple[Symbol, ...] | None:
        columns = [Part((name,), "list", size) for name, size in zip(names, self.pairs.sizes, strict=True)]
        return tuple(Symbol((columns[i], columns[j])) for i, j in self.pairs.all)

    def _cells(self, noise: Noise, tally: Tally, people: People) -> NDArray[np.float64]:
        counts = noise.shares(tally, people).value * people.n
        if noise.kept < 1.0:
            return counts
        sums = np.add.reduceat(counts, self.pairs.starts)
        return np.asarray(counts + np.repeat((people.n - sums) / self.pairs.cells, self.pairs.cells))

    def _classes(self, noise: Noise) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Weights of a table's counts in the estimate of one of its cells: of that cell, and of the others."""
        cells = np.array(self.pairs.cells, dtype=np.float64)
        others = np.zeros_like(cells) if noise.kept < 1.0 else -1.0 / cells
        return np.column_stack([1.0 + others, others]), np.column_stack([np.ones_like(cells), cells - 1.0])

    def learned(self, noise: Noise, tally: Tally, people: People) -> Estimate:
        if noise.kept < 1.0:
            found = noise.shares(tally, people)
            shares = np.clip(found.value, 0.0, 1.0)
            drawn = np.sqrt(found.standard_error**2 + shares * (1.0 - shares) / people.n)
            return replace(found, population_error=drawn)
        weights, sizes = self._classes(noise)
        value = self._cells(noise, tally, people) / people.n
        _, first, which = np.unique(self.pairs.cells, return_index=True, return_inverse=True)

        @cache
        def reach(tail: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            none = np.zeros(1, dtype=np.int64)
            found = [
                noise.part(one).reach(weights[one : one + 1], sizes[one : one + 1], none, people, tail=tail)
                for one in first.tolist()
            ]
            below, above = (np.concatenate(side)[which] for side in zip(*found, strict=True))
            return below, above

        error = np.repeat(self._deviations(noise, people), self.pairs.cells)
        shares = np.clip(value, 0.0, 1.0)
        sampling = shares * (1.0 - shares) / people.n
        intervals = CellIntervals(np.array(self.pairs.cells), reach, sampling)
        return Estimate(value, error, people.n, np.sqrt(error**2 + sampling), spread=intervals)

    def _deviations(self, noise: Noise, people: People) -> NDArray[np.float64]:
        """The largest standard errors of a share in a cell of each table."""
        weights, sizes = self._classes(noise)
        tables = range(self.symbols)
        return np.concatenate([noise.part(one).deviation(weights[[one]], sizes[[one]], people) for one in tables])

    def _typical(self, noise: Noise, people: People) -> NDArray[np.float64]:
        """The same where all cells of a table have as many people."""
        if noise.kept == 1.0:
            return self._deviations(noise, people)
        even = np.repeat(1.0 / np.array(self.pairs.cells), self.pairs.cells)
        return noise.shares(noise.expected(even, people), people).standard_error[self.pairs.starts]

    def curve(self, noise: Noise, tally: Tally, people: People) -> dict[str, Any]:
        tables = self.pairs.split(self._cells(noise, tally, people))
        alone = people.n * self._typical(noise, people) / np.sqrt(self._classes(noise)[0][:, 0])
        variances = {pair: deviation**2 for pair, deviation in zip(tables, alone, strict=True)}
        fitted = consistent(tables, self.pairs.sizes, people.n, variances)
        rng = simulation(SEED)

        def drawn(held: NDArray[np.int64]) -> dict[tuple[int, int], NDArray[np.float64]]:
            off = self.pairs.split(noise.off(held, people, rng))
            return off if noise.kept < 1.0 else {pair: one - one.mean() for pair, one in off.items()}

        found = independence(tables, people.n, variances, drawn, np.random.default_rng(SEED))
        return {
            "pairs": [list(pair) for pair in tables],
            "information": [mutual_information(fitted[pair]) for pair in tables],
            "p": [found.get(pair, NO_TEST) for pair in tables],
        }

    def error(self, noise: Noise, people: People) -> float:
        """Of a share in a cell, the largest."""
        return float(self._deviations(noise, people).max())

    def noise_ratio(self, noise: Noise, people: People) -> float:
        """The standard error of a cell over a typical cell, in the table where it is least."""
        return float((self._typical(noise, people) * self.pairs.cells).min())

    def truth(self, values: Values) -> list[float]:
        tables = self.pairs.counted(values.astype(np.int64))
        return [float(one) / len(values) for table in tables.values() for one in table.ravel()]

    def described(self, private: str) -> dict[str, Any]:
        columns = [private, *(name for name, _ in self.others)]
        return {
            "kind": "tables", "domain": f"all pairs of {', '.join(columns)}", "columns": columns,
            "values": [list(self.categories), *(list(values) for _, values in self.others)],
        }  # fmt: skip

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(("a", "b"), "sex: F | M; income: low | middle | high"),)


def _listed(given: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Columns with their categories, from text, a mapping or what was recorded."""
    try:
        if isinstance(given, str):
            given = [part.split(":", 1) for part in given.split(";")]
        rows = [*(given.items() if isinstance(given, Mapping) else given)]
        listed = [(name, values.split("|") if isinstance(values, str) else values) for name, values in rows]
        found = tuple((str(name).strip(), tuple(str(one).strip() for one in values)) for name, values in listed)
    except (TypeError, ValueError):
        raise refuse("others", f"columns with their categories, {FORM}", given) from None
    few = any(len(set(values)) < max(2, len(values)) or "" in values for _, values in found)
    names = {name for name, _ in found}
    if few or not 1 <= len(found) < MOST_COLUMNS or len(names) < len(found):
        raise refuse(
            "others", f"1 to {MOST_COLUMNS - 1} columns with two different categories or more, {FORM}", given
        )
    return found

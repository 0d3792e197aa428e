"""Orders of a release in files, which engines draw in the same two steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.errors import DataError, UnsupportedError
from dovetail.engine.publication import need_memory
from dovetail.engine.rows import BETWEEN, Rows, Secret
from dovetail.job.config import ShuffleSection

Keys = NDArray[np.uint64]  # (n, 2), 128 bits of a pseudorandom function of each person
Codes = NDArray[np.int64]  # (n,), numbers of public labels
Marks = tuple[NDArray[Any], ...]  # what else travels beside a report, one number of each kind per row


class Arrangement(ABC):
    """Which partition a row falls to and, inside a partition, the order of its rows.

    Laws: partitions follow one another along the release; `send` and `order` are functions of the secret and the rows
    alone, whatever the batches, attempts and the number of partitions.
    """

    parts: int
    names: tuple[str, ...]  # of the public labels that stand beside the reports; none where nothing does

    @property
    @abstractmethod
    def marks(self) -> tuple[np.dtype[Any], ...]:
        """The kinds of what travels beside a report and its key."""

    @abstractmethod
    def send(self, rows: Rows, keys: Keys, secret: Secret) -> tuple[NDArray[np.int64], Marks]:
        """The partition of each row, and its marks."""

    def spread(self, keys: Keys) -> NDArray[np.int64]:
        """The partition of messages that belong to nobody's row, where everybody is mixed evenly."""
        raise UnsupportedError("messages without a place go with a uniform shuffle of everybody.")

    @abstractmethod
    def order(self, part: int, keys: Keys, marks: Marks, secret: Secret) -> tuple[NDArray[np.int64], Codes]:
        """The rows of a partition in their order, and the label at each place.

        Raises
        ------
        DataError
            Where one person stands in two rows, or other rows have come than were counted.
        """


def codes_of(names: tuple[str, ...], groups: pl.Series | None, n: int) -> Codes:
    """The number of each row's label; 0 where there are none."""
    if groups is None or not names:
        return np.zeros(n, dtype=np.int64)
    codes = groups.replace_strict(list(names), range(len(names)), default=None, return_dtype=pl.Int64)
    if codes.null_count():
        raise changed()
    return codes.to_numpy()


def labels_of(columns: tuple[str, ...], names: pl.Series) -> pl.DataFrame:
    """The public columns behind names of labels."""
    if len(columns) == 1:
        return names.alias(columns[0]).to_frame()
    split = names.str.split_exact(BETWEEN, len(columns) - 1).struct.unnest()
    return split.rename(dict(zip(split.columns, columns, strict=True)))


def changed() -> DataError:
    """The one line of a table that was not the same when it was read again."""
    return DataError("the table has changed while it was read; nothing was released.")


def refuse_twins(ordered: Keys) -> None:
    """DataError where neighbours have one key: they are one person."""
    if (ordered[1:] == ordered[:-1]).all(axis=1).any():
        raise DataError("a person stands in two rows; nothing was released.")


# A fitted order in as few numbers as there are public labels, so that it travels to tasks.
#
# A shuffler is fitted to everybody's public label in one memory, as `run` fits it: nobody's private value is there.
# People with one label are in the same groups and at the same place of the reference order, so the law of the order
# is one of labels: who of them stands where is decided by their keys.


MOST_FITTED = 1 << 28  # people whose public labels are held while an order is fitted
_FIT = 120  # bytes for each of them, measured

Sizes = NDArray[np.int64]  # (labels,)


@dataclass(frozen=True, eq=False)
class Line:
    """The labels in the reference order.

    Parameters
    ----------
    names : of the labels, in the order of their codes
    sizes : people of each label
    component : component of each label, numbered along the line
    along : codes in the order of the line; every component is a stretch of it
    """

    names: tuple[str, ...]
    sizes: Sizes
    component: Sizes
    along: Codes

    @property
    def n(self) -> int:
        """Number of people."""
        return int(self.sizes.sum())

    @cached_property
    def rank(self) -> Sizes:
        """Place of each label among the labels along the line."""
        result = np.empty_like(self.along)
        result[self.along] = np.arange(self.along.size)
        return result

    @cached_property
    def _ends(self) -> Sizes:
        return np.cumsum(self.sizes[self.along])

    @cached_property
    def component_starts(self) -> Sizes:
        """First place of each component, and the end (components + 1,)."""
        people = np.bincount(self.component, weights=self.sizes).astype(np.int64)
        return np.append(0, np.cumsum(people))

    def codes_at(self, start: int, stop: int) -> Codes:
        """The label of each of these places."""
        return np.asarray(self.along[np.searchsorted(self._ends, np.arange(start, stop), side="right")])


@dataclass(frozen=True, eq=False)
class Fitted:
    """A shuffler and the line that tasks need of it.

    Parameters
    ----------
    shuffler : fitted to everybody, label by label
    first : one person of each label
    """

    shuffler: Any
    line: Line
    first: Sizes = field(repr=False)

    @property
    def name(self) -> str:
        """Of the shuffler."""
        return str(self.shuffler.name)

    def of_labels(self, values: NDArray[Any]) -> NDArray[Any]:
        """Common facts of the people of each label."""
        return np.asarray(values[self.first])


def fit_line(section: ShuffleSection, columns: tuple[str, ...], groups: dict[str, int]) -> Fitted:
    """The shuffler of a section, fitted as `run` fits it to a table with so many people of each label.

    Raises
    ------
    UnsupportedError
        For more people than one memory holds.
    DataError
        For labels that must be numbers and are none.
    """
    names, sizes = tuple(groups), np.array(list(groups.values()), dtype=np.int64)
    n = int(sizes.sum())
    if n > MOST_FITTED:
        raise UnsupportedError(
            f"--engine: shuffler {section.shuffler!r} is fitted to everybody's public label in one memory, at most "
            f"{MOST_FITTED:,} people, got {n:,}; use `within_groups` or uniform, or draw from parts of the table."
        )
    instead = "use `within_groups` or uniform, or draw from parts of the table"
    need_memory(f"fitting shuffler {section.shuffler!r} to {n:,} people", n * _FIT, instead)
    from dovetail.job.build import fit_of  # tasks have no use for it

    public = labels_of(columns, pl.Series(names, dtype=pl.String))[np.repeat(np.arange(sizes.size), sizes)]
    shuffler: Any = fit_of(section, n)(public)
    first = np.cumsum(sizes) - sizes
    place = shuffler.line.places[first]
    along = np.lexsort((np.arange(sizes.size), shuffler.line.atom[place]))
    return Fitted(shuffler, Line(names, sizes, shuffler.line.component[place], along), first)


# Uniform orders, of everybody or within public groups.
#
# Sorting distinct, exchangeable keys by any fixed total order gives a uniform permutation. The order here is (group,
# key); partitions are ranges of it, so their number and sizes change nothing. Keys are AES-256 of the person's id:
# they are distinct, and the order is uniform up to the advantage against AES.


@dataclass(frozen=True)
class Layout(Arrangement):
    """Which rows of the release lie in which partition: equal shares of the order (group, key).

    Parameters
    ----------
    n : int
    parts : int
    groups : people in each public group, in order; empty: everybody is in one
    """

    n: int
    parts: int
    groups: dict[str, int] = field(default_factory=dict)

    @cached_property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(self.groups)

    @cached_property
    def _sizes(self) -> NDArray[np.uint64]:
        return np.array(list(self.groups.values()) or [self.n], dtype=np.uint64)

    @cached_property
    def _starts(self) -> NDArray[np.uint64]:
        return np.cumsum(self._sizes) - self._sizes

    @property
    def marks(self) -> tuple[np.dtype[Any], ...]:
        return (np.dtype(np.uint32),) if self.groups else ()

    def part(self, codes: Codes, keys: Keys) -> NDArray[np.int64]:
        """The partition of each row: it never falls along (group, key)."""
        within = (keys[:, 0] >> np.uint64(32)) * self._sizes[codes] >> np.uint64(32)
        return ((self._starts[codes] + within) * np.uint64(self.parts) // np.uint64(self.n)).astype(np.int64)

    def spread(self, keys: Keys) -> NDArray[np.int64]:
        return self.part(np.zeros(len(keys), dtype=np.int64), keys)

    def send(self, rows: Rows, keys: Keys, secret: Secret) -> tuple[NDArray[np.int64], Marks]:
        codes = codes_of(self.names, rows.groups, rows.n)
        return self.part(codes, keys), ((codes.astype(np.uint32),) if self.groups else ())

    def order(self, part: int, keys: Keys, marks: Marks, secret: Secret) -> tuple[NDArray[np.int64], Codes]:
        codes = marks[0].astype(np.int64) if marks else np.zeros(len(keys), dtype=np.int64)
        order = sorted_order(codes, keys)
        return order, codes[order]


def sorted_order(codes: Codes, keys: Keys) -> NDArray[np.int64]:
    """The order of (group, key); DataError where two keys are equal, because one person stands in two rows."""
    several = bool(codes.size) and int(codes.max()) != int(codes.min())
    order, unsure = _lexical(codes, keys[:, 0]) if several else upper_order(keys[:, 0])
    rows = order[unsure]  # hardly ever any
    rows = rows[np.lexsort((keys[rows, 1], keys[rows, 0], codes[rows]))]
    order[unsure] = rows
    refuse_twins(keys[rows])
    return order


def _lexical(codes: Codes, words: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    order = np.lexsort((words, codes))
    return order, _runs(words[order])


def upper_order(words: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """An order by the upper bits of words, and the places, in runs of equal bits, that the lower bits decide.

    A row's number takes the place of the lower bits, so that one sort of plain numbers does, several times faster
    than one that carries rows along.

    >>> upper_order(np.array([7, 5, 6], dtype=np.uint64) << np.uint64(61))
    (array([1, 2, 0]), array([], dtype=int64))
    """
    if not words.size:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    least = words.min()
    room, below = 64 - int(words.max() - least).bit_length(), int(words.size - 1).bit_length()
    lower = np.uint64((1 << below) - 1)
    marked = (((words - least) << np.uint64(min(room, 63))) & ~lower) | np.arange(words.size, dtype=np.uint64)
    marked.sort()
    return (marked & lower).astype(np.int64), _runs(marked >> np.uint64(below))


def _runs(ordered: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The places of numbers that are equal to a neighbour."""
    same = np.append(False, ordered[1:] == ordered[:-1])
    return np.flatnonzero(same | np.append(same[1:], False))


# No shuffle, for rehearsals: every report at the place of its row.


@dataclass(frozen=True)
class RowPlaces(Arrangement):
    """The order of the rows in their files.

    Parameters
    ----------
    rows : int
        Of the table, those that were left out among them.
    parts : int
    names : of the public labels beside the reports
    """

    rows: int
    parts: int
    names: tuple[str, ...] = ()

    @property
    def marks(self) -> tuple[np.dtype[Any], ...]:
        return np.dtype(np.int64), np.dtype(np.uint32)

    def send(self, rows: Rows, keys: Keys, secret: Secret) -> tuple[NDArray[np.int64], Marks]:
        assert rows.places is not None  # refused for tables without
        codes = codes_of(self.names, rows.groups, rows.n)
        return rows.places * self.parts // self.rows, (rows.places, codes.astype(np.uint32))

    def order(self, part: int, keys: Keys, marks: Marks, secret: Secret) -> tuple[NDArray[np.int64], Codes]:
        sorted_order(np.zeros(len(keys), dtype=np.int64), keys)  # one person in two rows is refused
        order = np.argsort(marks[0])
        return order, marks[1][order].astype(np.int64)

"""A fitted order in as few numbers as there are public labels, so that it travels to tasks.

A shuffler is fitted to everybody's public label in one memory, as `run` fits it: nobody's private value is there.
People with one label are in the same groups and at the same place of the reference order, so the law of the order is
one of labels: who of them stands where is decided by their keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.errors import UnsupportedError
from dovetail.pipeline.config.sections import ShuffleSection
from dovetail.scale.orders.arrangement import Codes, labels_of
from dovetail.scale.storage import need_memory

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
        """What the people of each label have in common."""
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
            f"{MOST_FITTED:,} people, got {n:,}; use within_groups or uniform, or draw from parts of the table."
        )
    instead = "use within_groups or uniform, or draw from parts of the table"
    need_memory(f"fitting shuffler {section.shuffler!r} to {n:,} people", n * _FIT, instead)
    from dovetail.pipeline.config.build import fit_of  # tasks have no use for it

    public = labels_of(columns, pl.Series(names, dtype=pl.String))[np.repeat(np.arange(sizes.size), sizes)]
    shuffler: Any = fit_of(section, n)(public)
    first = np.cumsum(sizes) - sizes
    place = shuffler.line.places[first]
    along = np.lexsort((np.arange(sizes.size), shuffler.line.atom[place]))
    return Fitted(shuffler, Line(names, sizes, shuffler.line.component[place], along), first)

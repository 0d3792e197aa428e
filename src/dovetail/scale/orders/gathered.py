"""Orders of one component at a time: all of its rows meet in one task, which runs the shuffler's own sampler there.

Rows of a component first stand in the reference order; who of the people with one label comes first is decided by
their keys: uniformly, as in memory, where rows are put into a random order before anything else. Then the sampler
draws from a stream that belongs to the component, so that attempts and partitions draw the same order.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy.keyed import KeyedEntropy
from dovetail.core.errors import UnsupportedError
from dovetail.scale.orders.arrangement import Arrangement, Codes, Keys, Marks, changed, codes_of, refuse_twins
from dovetail.scale.orders.line import Fitted, Line, Sizes
from dovetail.scale.passes.rows import Rows
from dovetail.scale.secrets import Secret
from dovetail.scale.storage import need_memory
from dovetail.shuffle.fitting.components import PartitionedOrder
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.planar import PlanarLaplace
from dovetail.shuffle.sampling import mallows_on_components
from dovetail.shuffle.sampling.kd_order import kd_order
from dovetail.shuffle.sampling.planar_noise import Plane, planar_laplace
from dovetail.shuffle.sensitivity.planar import RATE

MOST_TOGETHER = 1 << 27  # people of a component, whom one task holds
_TASK = 250  # bytes for each of them, measured: keys and marks, as they came and joined, and the sampler's


@dataclass(frozen=True, eq=False)
class Gathered(Arrangement):
    """Whole components in each partition.

    Parameters
    ----------
    line : Line
    part_starts : int array (parts + 1,)
        First component of each partition, and the end.
    """

    line: Line
    part_starts: Sizes = field(repr=False)

    shuffler: ClassVar[str]

    @classmethod
    @abstractmethod
    def of(cls, fitted: Fitted, parts: int) -> Self:
        """The order of a fitted shuffler in at most so many partitions."""

    @property
    def parts(self) -> int:  # type: ignore[override]
        return len(self.part_starts) - 1

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.line.names

    def order(self, part: int, keys: Keys, marks: Marks, secret: Secret) -> tuple[NDArray[np.int64], Codes]:
        what = f"a partition of shuffler {self.shuffler!r} with {len(keys):,} people"
        need_memory(
            what, len(keys) * _TASK, "use noisy_sort, a smaller radius, or split the table by a public column"
        )
        first, last = self.part_starts[part : part + 2].tolist()
        starts = self.line.component_starts[first : last + 1]
        places = self.line.codes_at(int(starts[0]), int(starts[-1]))
        codes = marks[0].astype(np.int64)
        standing = np.lexsort((keys[:, 1], keys[:, 0], self.line.rank[codes]))
        refuse_twins(keys[standing])
        if not np.array_equal(codes[standing], places):
            raise changed()
        kappa = self._draw(first, starts - starts[0], places, keys[standing], _of(marks, standing), secret)
        return standing[kappa], places

    @abstractmethod
    def _draw(
        self, first: int, starts: Sizes, places: Codes, keys: Keys, marks: Marks, secret: Secret
    ) -> NDArray[np.int64]:
        """kappa (n,): from which place each place of a partition receives its report.

        Parameters
        ----------
        first : number of the first component
        starts : first place of each component, and the end
        places : label at each place
        keys, marks : of the rows, in reference order
        """

    def _part(self, codes: Codes) -> NDArray[np.int64]:
        return np.searchsorted(self.part_starts, self.line.component[codes], side="right") - 1


@dataclass(frozen=True, eq=False)
class MallowsPlaces(Gathered):
    """The Mallows law, component by component.

    Parameters
    ----------
    thetas : float array (components,)
    atom : int array (labels,)
        Number of the atom of each label.
    """

    thetas: NDArray[np.float64] = field(repr=False)
    atom: Sizes = field(repr=False)

    shuffler: ClassVar[str] = Mallows.name

    @classmethod
    def of(cls, fitted: Fitted, parts: int) -> Self:
        shuffler, line = fitted.shuffler, fitted.line
        atom = fitted.of_labels(shuffler.line.atom[shuffler.line.places])
        return cls(line, _cut(line, cls.shuffler, parts), shuffler.thetas, atom)

    @property
    def marks(self) -> tuple[np.dtype[Any], ...]:
        return (np.dtype(np.uint32),)

    def send(self, rows: Rows, keys: Keys, secret: Secret) -> tuple[NDArray[np.int64], Marks]:
        codes = codes_of(self.names, rows.groups, rows.n)
        return self._part(codes), (codes.astype(np.uint32),)

    def _draw(
        self, first: int, starts: Sizes, places: Codes, keys: Keys, marks: Marks, secret: Secret
    ) -> NDArray[np.int64]:
        kappa, key = np.arange(starts[-1]), secret.of(f"order {self.shuffler}")
        for number in np.flatnonzero(np.diff(starts) > 1).tolist():
            start, stop = starts[number : number + 2].tolist()
            atoms = np.append(0, 1 + np.flatnonzero(np.diff(self.atom[places[start:stop]])))
            line = PartitionedOrder(
                np.arange(stop - start), np.array([0, stop - start]), np.append(atoms, stop - start)
            )
            stream = KeyedEntropy(key, np.array([first + number]))
            own = mallows_on_components.draw(line, self.thetas[first + number : first + number + 1], stream)
            kappa[start:stop] = start + own
        return kappa


@dataclass(frozen=True, eq=False)
class PlanarPlaces(Gathered):
    """Noisy points, matched to homes component by component; every row draws its own noise.

    Parameters
    ----------
    grid : int array (labels, 2)
        Whole coordinates of each label.
    """

    grid: Plane = field(repr=False)

    shuffler: ClassVar[str] = PlanarLaplace.name

    @classmethod
    def of(cls, fitted: Fitted, parts: int) -> Self:
        line = fitted.line
        return cls(line, _cut(line, cls.shuffler, parts), fitted.of_labels(fitted.shuffler.grid))

    @property
    def marks(self) -> tuple[np.dtype[Any], ...]:
        return np.dtype(np.uint32), np.dtype(np.int64), np.dtype(np.int64)

    def send(self, rows: Rows, keys: Keys, secret: Secret) -> tuple[NDArray[np.int64], Marks]:
        codes = codes_of(self.names, rows.groups, rows.n)
        noise = planar_laplace(RATE, rows.n, KeyedEntropy(secret.of(f"noise {self.shuffler}"), rows.ids))
        noisy = self.grid[codes] + noise
        return self._part(codes), (codes.astype(np.uint32), noisy[:, 0], noisy[:, 1])

    def _draw(
        self, first: int, starts: Sizes, places: Codes, keys: Keys, marks: Marks, secret: Secret
    ) -> NDArray[np.int64]:
        n = int(starts[-1])
        line = PartitionedOrder(np.arange(n), starts, np.arange(n + 1))
        homes = kd_order(self.grid[places], line, np.arange(n))
        kappa = np.empty(n, dtype=np.int64)
        kappa[homes] = kd_order(np.column_stack(marks[1:]), line, np.lexsort((keys[:, 1], keys[:, 0])))
        return kappa


def _of(marks: Marks, rows: NDArray[np.int64]) -> Marks:
    return tuple(mark[rows] for mark in marks)


def _cut(line: Line, shuffler: str, parts: int) -> Sizes:
    """First component of each partition, so that partitions of whole components are about even."""
    starts = line.component_starts
    sizes = np.diff(starts)
    if sizes.max() > MOST_TOGETHER:
        raise UnsupportedError(
            f"--engine: shuffler {shuffler!r} draws a component of groups that overlap in one task, at most "
            f"{MOST_TOGETHER:,} people, and one has {int(sizes.max()):,}; use noisy_sort, a smaller radius, or split "
            "the table by a public column."
        )
    middle = (starts[:-1] + starts[1:]) // 2
    part = middle * parts // starts[-1]
    return np.append(np.flatnonzero(np.append(True, np.diff(part) > 0)), sizes.size)

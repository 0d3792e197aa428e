"""Fitted orders of a release in files, by components or noisy places; imported by the tasks that draw them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dovetail.core.discrete_noise import discrete_laplace
from dovetail.core.entropy import Entropy, KeyedEntropy, simulation
from dovetail.core.errors import UnsupportedError
from dovetail.engine.orders import (
    Arrangement,
    Codes,
    Fitted,
    Keys,
    Line,
    Marks,
    Sizes,
    changed,
    codes_of,
    refuse_twins,
)
from dovetail.engine.publication import need_memory
from dovetail.engine.rows import Rows, Secret
from dovetail.shuffle.fitting import components as mallows_on_components
from dovetail.shuffle.fitting.components import PartitionedOrder, kd_order
from dovetail.shuffle.fitting.sensitivity import RATE
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.noisy_sort import RATE as noisy_sort_RATE
from dovetail.shuffle.noisy_sort import NoisySort
from dovetail.shuffle.planar import PlanarLaplace
from dovetail.shuffle.sampling.permutations import Plane, planar_laplace

# Orders of one component at a time: all of its rows meet in one task, which runs the shuffler's own sampler there.
#
# Rows of a component first stand in the reference order; who of the people with one label comes first is decided by
# their keys: uniformly, as in memory, where rows are put into a random order before anything else. Then the sampler
# draws from a stream that belongs to the component, so that attempts and partitions draw the same order.


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
            what, len(keys) * _TASK, "use `noisy_sort`, a smaller radius, or split the table by a public column"
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
            f"{MOST_TOGETHER:,} people; one has {int(sizes.max()):,}; use `noisy_sort`, a smaller radius, or split "
            "the table by a public column."
        )
    middle = (starts[:-1] + starts[1:]) // 2
    part = middle * parts // starts[-1]
    return np.append(np.flatnonzero(np.append(True, np.diff(part) > 0)), sizes.size)


# The noisy sort of a release in files: every row draws its own noise, and a sort by noisy scores is the order.
#
# .. math:: \mathrm{key}_i = a_c (s_i - s_{\min}) + N_i, \qquad
#           \text{in the order of } (\text{component}, \mathrm{key}, \mathrm{AES}(id_i))
#
# The scores are those of `NoisySort`, the noise is its exact discrete Laplace number from the row's own stream, and
# ties are broken by the person's key: uniformly, as there. Where partitions are cut decides nothing but their sizes.


_BEYOND = (
    64 * noisy_sort_RATE.denominator // noisy_sort_RATE.numerator
)  # steps of noise beyond which places are not told apart
_SEEN = 256  # sampled rows of each partition, from which the cuts are read
_BITS = 62  # of a place among all components


@dataclass(frozen=True, eq=False)
class NoisyPlaces(Arrangement):
    """The order of a noisy sort.

    Parameters
    ----------
    line : Line
    base : int array (labels,)
        Scaled score of each label above the smallest of its component.
    cuts : uint64 array (parts - 1,)
        Places among all components at which a new partition begins.
    starts : int array (parts + 1,)
        Rows before each partition, once they are counted.
    """

    line: Line
    base: NDArray[np.int64] = field(repr=False)
    cuts: NDArray[np.uint64] = field(repr=False)
    starts: NDArray[np.int64] | None = field(default=None, repr=False)

    shuffler: ClassVar[str] = NoisySort.name

    @classmethod
    def of(cls, fitted: Fitted, parts: int) -> Self:
        """The order of a fitted shuffler in about so many even partitions."""
        shuffler, line = fitted.shuffler, fitted.line
        scores = fitted.of_labels(shuffler.scores)
        low = np.full(line.component.max() + 1, np.iinfo(np.int64).max)
        np.minimum.at(low, line.component, scores)
        base = (scores - low[line.component]) * shuffler.scales[line.component]
        whole = cls(line, base, np.empty(0, dtype=np.uint64))
        return cls(line, base, whole.even_cuts(parts, simulation(0)))

    @property
    def parts(self) -> int:  # type: ignore[override]
        return len(self.cuts) + 1

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.line.names

    @property
    def marks(self) -> tuple[np.dtype[Any], ...]:
        return np.dtype(np.int64), np.dtype(np.uint32)

    def counted(self, counts: dict[str, int]) -> NoisyPlaces:
        """With the number of rows of each partition."""
        sizes = [counts.get(str(part), 0) for part in range(self.parts)]
        return NoisyPlaces(self.line, self.base, self.cuts, np.append(0, np.cumsum(sizes)))

    def send(self, rows: Rows, keys: Keys, secret: Secret) -> tuple[NDArray[np.int64], Marks]:
        codes = codes_of(self.names, rows.groups, rows.n)
        noisy = self._noisy(codes, KeyedEntropy(secret.of(f"noise {self.shuffler}"), rows.ids))
        part = np.searchsorted(self.cuts, self._place(codes, noisy), side="right")
        return part, (noisy, self.line.component[codes].astype(np.uint32))

    def order(self, part: int, keys: Keys, marks: Marks, secret: Secret) -> tuple[NDArray[np.int64], Codes]:
        noisy, component = marks
        order = np.lexsort((keys[:, 1], keys[:, 0], noisy, component))
        refuse_twins(keys[order])
        if self.starts is None or len(keys) != self.starts[part + 1] - self.starts[part]:
            raise changed()
        return order, self.line.codes_at(int(self.starts[part]), int(self.starts[part + 1]))

    def even_cuts(self, parts: int, rng: Entropy) -> NDArray[np.uint64]:
        """Where places are cut so that partitions are about even: read off a sample of the public law."""
        line = self.line
        places = (np.arange(_SEEN * parts) * line.n // (_SEEN * parts)).astype(np.int64)
        codes = np.asarray(line.along[np.searchsorted(np.cumsum(line.sizes[line.along]), places, side="right")])
        seen = np.sort(self._place(codes, self._noisy(codes, rng)))
        return np.unique(seen[_SEEN::_SEEN]) if parts > 1 else np.empty(0, dtype=np.uint64)

    def _noisy(self, codes: Codes, rng: Entropy) -> NDArray[np.int64]:
        return self.base[codes] + discrete_laplace(noisy_sort_RATE, codes.size, rng)

    def _place(self, codes: Codes, noisy: NDArray[np.int64]) -> NDArray[np.uint64]:
        """A number that never falls along (component, key)."""
        offsets, reach, shift = self._room
        component = self.line.component[codes]
        within = np.clip(noisy + _BEYOND, 0, reach[component]).astype(np.uint64) >> np.uint64(shift)
        return np.asarray(offsets[component] + within)

    @cached_property
    def _room(self) -> tuple[NDArray[np.uint64], NDArray[np.int64], int]:
        """Where the places of each component begin, how far its keys reach, and by how many bits they are cut."""
        reach = np.zeros(self.line.component.max() + 1, dtype=np.int64)
        np.maximum.at(reach, self.line.component, self.base)
        reach += 2 * _BEYOND
        total = sum(reach.tolist()) + reach.size
        shift = max(0, total.bit_length() - _BITS)
        widths = (reach >> shift) + 1
        return (np.cumsum(widths) - widths).astype(np.uint64), reach, shift


# Which fitted shufflers are drawn in tasks. Tasks themselves import the one that they draw, and start the faster.


FITTED = (NoisyPlaces, MallowsPlaces, PlanarPlaces)  # of shufflers that are fitted to public labels


def arrangement_of(shuffler: str) -> type[NoisyPlaces | MallowsPlaces | PlanarPlaces] | None:
    """Find the class that draws a fitted shuffler in tasks; None for others.

    >>> arrangement_of("uniform") is None
    True
    """
    return next((kind for kind in FITTED if kind.shuffler == shuffler), None)

"""Independent shufflers side by side: a line of everybody, cut into components, cut into atoms.

A group lies in one component, so components may be shuffled independently and each as little as its own groups
allow. A group holds whole atoms, so people of one atom may be exchanged freely: the order inside an atom is uniform.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.entropy import Permutation
from dovetail.core.errors import DataError
from dovetail.core.numeric.compiled import njit
from dovetail.shuffle.fitting.fit_provenance import FitProvenance
from dovetail.shuffle.groups.groups import Groups
from dovetail.shuffle.groups.ranges import People, Places
from dovetail.shuffle.reference_order.atom_blocks import make_contiguous
from dovetail.shuffle.reference_order.candidates import best_order
from dovetail.shuffle.sampling.lehmer_code import BlockStarts
from dovetail.shuffle.sampling.permutations import check_permutation, inverse


@dataclass(frozen=True, eq=False)
class PartitionedOrder:
    """Everybody in reference order, in components of atoms.

    Parameters
    ----------
    order : int array (n,)
        order[k] is the person at place k.
    component_starts : int array (components + 1,)
        Component c stands at places component_starts[c]..component_starts[c + 1] - 1. People in no group are
        components of their own.
    atom_starts : int array (atoms + 1,)
        The same for atoms; every component is made of whole atoms.
    """

    order: Permutation
    component_starts: BlockStarts
    atom_starts: BlockStarts

    def __post_init__(self) -> None:
        order = check_permutation(self.order, np.size(self.order), "order")
        parts, cells = (
            _check_starts(name, getattr(self, name), order.size) for name in ("component_starts", "atom_starts")
        )
        if not np.isin(parts, cells, assume_unique=True).all():
            raise DataError("`component_starts` must begin where `atom_starts` begin.")
        for name, array in (("order", order), ("component_starts", parts), ("atom_starts", cells)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @classmethod
    def single_component(cls, order: ArrayLike) -> PartitionedOrder:
        """One component of everybody, without atoms."""
        line = np.asarray(order)
        return cls(line, np.array([0, line.size]), np.arange(line.size + 1))

    @classmethod
    def singletons(cls, n: int) -> PartitionedOrder:
        """Everybody a component of their own: nobody moves."""
        return cls(np.arange(n), np.arange(n + 1), np.arange(n + 1))

    @property
    def n(self) -> int:
        """Number of people."""
        return self.order.size

    @cached_property
    def places(self) -> Permutation:
        """Place of each person (n,)."""
        return inverse(self.order)

    @property
    def components(self) -> int:
        """Number of components."""
        return self.component_starts.size - 1

    @property
    def sizes(self) -> Places:
        """People in each component (components,)."""
        return np.diff(self.component_starts)

    @cached_property
    def component(self) -> Places:
        """Component of each place (n,)."""
        return np.repeat(np.arange(self.component_starts.size - 1), self.sizes)

    @cached_property
    def atom(self) -> Places:
        """Atom of each place (n,)."""
        return np.repeat(np.arange(self.atom_starts.size - 1), np.diff(self.atom_starts))

    @property
    def has_several_atoms(self) -> NDArray[np.bool_]:
        """Which components have several atoms (components,)."""
        return np.diff(np.searchsorted(self.atom_starts, self.component_starts)) > 1

    def component_of(self, groups: Groups) -> Places:
        """Component of the first member of each group (groups,)."""
        return self.component[self.places[groups.rows.people[groups.rows.starts]]]

    def restrict(self, present: NDArray[np.bool_]) -> tuple[PartitionedOrder, NDArray[np.bool_]]:
        """The line of the people that are present, renumbered, and which components are left."""
        here = present[self.order]
        before = np.concatenate(([0], np.cumsum(here)))
        number = np.cumsum(present) - 1
        parts, cells = before[self.component_starts], before[self.atom_starts]
        left = np.diff(parts) > 0
        return PartitionedOrder(number[self.order[here]], np.unique(parts), np.unique(cells)), left


def partition_reference_order(
    groups: Groups, *, points: ArrayLike | None = None, reference: ArrayLike | None = None
) -> tuple[PartitionedOrder, FitProvenance]:
    """Components and atoms of the groups, each component in the best of the candidate orders for it.

    With `reference` (n,) people keep that public order as far as components and atoms can stand together.
    """
    codes, component = groups.atoms(), _components(groups)
    if reference is None:
        best = best_order(groups, points=points, atoms=codes)
        order, provenance = best.order, FitProvenance.of(best)
    else:
        given = check_permutation(reference, groups.n, "reference")
        order, provenance = (
            make_contiguous(make_contiguous(given, codes), component),
            FitProvenance(reference="given"),
        )
    return PartitionedOrder(order, _begins(component[order]), _begins(codes[order])), provenance


def partition_order(groups: Groups, order: ArrayLike) -> PartitionedOrder:
    """Components of the groups, people in the given order inside each of them, without atoms."""
    component = _components(groups)
    line = make_contiguous(order, component)
    return PartitionedOrder(line, _begins(component[line]), np.arange(groups.n + 1))


def crosses(groups: Groups, line: PartitionedOrder) -> NDArray[np.bool_]:
    """Which groups meet more than one component (groups,)."""
    rows, part = groups.rows, line.component[line.places]
    if groups.contiguous:
        along = part[rows.people]
        changes = np.concatenate(([0], np.cumsum(along[1:] != along[:-1])))
        return np.asarray(changes[rows.starts] != changes[rows.stops - 1])
    return np.asarray(_crossing(part, rows.people, rows.starts, rows.stops))


def check_groups(groups: Groups, line: PartitionedOrder) -> None:
    """DataError unless the groups speak of as many people as the line holds."""
    if groups.n != line.n:
        raise DataError(f"`groups` must speak of {line.n:,} people, as the reference order does, got {groups.n:,}.")


def largest_by_component(values: Places, groups: Groups, line: PartitionedOrder) -> Places:
    """Largest value over the groups of each component (components,)."""
    result = np.zeros(line.component_starts.size - 1, dtype=np.int64)
    np.maximum.at(result, line.component_of(groups), values)
    return result


def refuse_crossing(groups: Groups, line: PartitionedOrder) -> None:
    """DataError when a group meets two components."""
    crossing = crosses(groups, line)
    if crossing.any():
        raise DataError(f"`line` must hold each group in one component; {int(crossing.sum()):,} groups cross.")


def _components(groups: Groups) -> Places:
    """Connected component of each person (n,); people in no group have one of their own."""
    component = groups.components().copy()
    alone = np.flatnonzero(component < 0)
    component[alone] = component.max(initial=-1) + 1 + np.arange(alone.size)
    return component


def _begins(codes: Places) -> BlockStarts:
    """Where a new code begins along the line, and the end."""
    return np.concatenate(([0], 1 + np.flatnonzero(np.diff(codes)), [codes.size]))


def _check_starts(name: str, starts: ArrayLike, n: int) -> BlockStarts:
    given = np.asarray(starts)
    if given.ndim != 1 or given.dtype.kind not in "iu" or given.size < 2:
        raise DataError(f"`{name}` must be whole numbers 0, .., {n:,}, got shape {given.shape} of {given.dtype}.")
    if given[0] != 0 or given[-1] != n or (np.diff(given) <= 0).any():
        raise DataError(f"`{name}` must increase from 0 to {n:,}, got {given[:8].tolist()} ..")
    return given.astype(np.int64)


@njit(cache=True, nogil=True)
def _crossing(part: Places, people: People, starts: Places, stops: Places) -> NDArray[np.bool_]:
    result = np.zeros(starts.size, dtype=np.bool_)
    for g in range(starts.size):
        first = part[people[starts[g]]]
        for person in people[starts[g] : stops[g]]:
            result[g] |= part[person] != first
    return result

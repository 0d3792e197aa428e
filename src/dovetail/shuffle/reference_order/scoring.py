"""The exact sensitivity of a reference order in each component, and the best order of every component."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.core.entropy import Permutation
from dovetail.shuffle.groups.atoms import Codes
from dovetail.shuffle.groups.groups import Groups
from dovetail.shuffle.groups.ranges import Places
from dovetail.shuffle.reference_order.atom_blocks import block_places, make_contiguous, pairs_within_atoms
from dovetail.shuffle.reference_order.barycenter import score_components
from dovetail.shuffle.sampling.permutations import inverse


@dataclass(frozen=True, eq=False)
class OrderScorer:
    """Scores orders of the same groups.

    Components are laid out one after the other, people in no group last, and atoms are made contiguous. Moving the
    components apart never raises a sensitivity (removing the others between the members of a group cannot), and it
    lets the best order be chosen for each component by itself.

    Parameters
    ----------
    groups : Groups
    codes : int array (n,)
        Atoms, numbered 0..; everybody alone when atoms are not used.
    part : int array (groups,)
        Component of each group.
    layout : int array (n,)
        Component of each person; the number of components for people in no group.
    within : int array (groups,)
        Pairs of members of a common atom.
    joined : bool
        Whether some atom has more than one member.
    """

    groups: Groups
    codes: Codes
    part: Places
    layout: Places
    within: Places
    joined: bool

    @classmethod
    def of(cls, groups: Groups, codes: Codes) -> OrderScorer:
        """The scorer for these groups and atoms."""
        component = groups.components()
        parts = int(component.max(initial=-1)) + 1
        part = component[groups.rows.people[groups.rows.starts]] if len(groups) else np.empty(0, dtype=np.int64)
        layout = np.where(component < 0, parts, component)
        joined = bool((np.bincount(codes) > 1).any())
        return cls(groups, codes, part, layout, pairs_within_atoms(groups, codes), joined)

    @property
    def parts(self) -> int:
        """Number of components."""
        return int(self.part.max(initial=-1)) + 1

    @property
    def bounds(self) -> Places:
        """Lower bound C(g, 2) - c_G of the sensitivity of any order, for each component (components,)."""
        result = np.zeros(self.parts, dtype=np.int64)
        sizes = self.groups.sizes
        np.maximum.at(result, self.part, sizes * (sizes - 1) // 2 - self.within)
        return result

    def score(self, name: str, order: Permutation) -> ScoredOrder:
        """This order, laid out and scored."""
        line = make_contiguous(order, self.codes) if self.joined else order
        if self.layout.any():
            line = line[np.argsort(self.layout[line], kind="stable")]
        deltas, widths = score_components(
            self.groups.rows, inverse(line), within=self.within, part=self.part, parts=self.parts
        )
        return ScoredOrder(name, line, order, deltas, widths, np.full(self.parts, name, dtype=object))

    def best_by_component(self, one: ScoredOrder, other: ScoredOrder) -> ScoredOrder:
        """Each component from the order with the smaller sensitivity there, then the smaller width; ties stay."""
        swap = (other.deltas < one.deltas) | ((other.deltas == one.deltas) & (other.widths < one.widths))
        if not swap.any():
            return one
        take = np.append(swap, False)[self.layout[one.line]]  # both lines have the same layout
        return ScoredOrder(
            one.first,
            np.where(take, other.line, one.line),
            other.whole if other.sensitivity < one.sensitivity else one.whole,
            np.where(swap, other.deltas, one.deltas),
            np.where(swap, other.widths, one.widths),
            np.where(swap, other.names, one.names),
        )

    def join_components(self, scored: ScoredOrder) -> Permutation:
        """Its line, with components (and people in no group) where they are on average in the order it came from."""
        alone = np.flatnonzero(self.layout == self.parts)
        blocks = self.layout.copy()
        blocks[alone] = self.parts + np.arange(alone.size)
        means, firsts = block_places(inverse(scored.whole), blocks)
        return np.lexsort((inverse(scored.line), firsts[blocks], means[blocks]))


@dataclass(frozen=True, eq=False)
class ScoredOrder:
    """One order, its scores by component, and where they come from.

    Parameters
    ----------
    first : str
        What it is called where there are no components to win.
    line : int array (n,)
        The order as scored: components one after the other, by number.
    whole : int array (n,)
        The order as it was proposed.
    deltas, widths, names : arrays (components,)
        Largest exact sensitivity, largest width, and the name of the order, in each component.
    """

    first: str
    line: Permutation
    whole: Permutation
    deltas: Places
    widths: Places
    names: np.ndarray

    @property
    def sensitivity(self) -> int:
        """Largest over the components."""
        return int(self.deltas.max(initial=0))

    @property
    def width(self) -> int:
        """Largest over the components."""
        return int(self.widths.max(initial=0))

    @property
    def name(self) -> str:
        """Name of the order in the component that decides."""
        return str(self.names[np.argmax(self.deltas)]) if self.names.size else self.first

"""The best shuffler for given groups and a given promise."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core.checks import not_negative_or_infinite
from dovetail.core.stages import PublicData, ShufflerKind
from dovetail.shuffle.fitting.components import FitProvenance, PartitionedOrder, partition_reference_order
from dovetail.shuffle.fitting.groups import Groups, need_groups
from dovetail.shuffle.fitting.neighbours import check_points
from dovetail.shuffle.fitting.sensitivity import Numbers
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.noisy_sort import NoisySort
from dovetail.shuffle.planar import PlanarLaplace, mean_distance
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups

Fitted = TypeVar("Fitted", bound=Mallows | NoisySort | PlanarLaplace)

FLAT = 3.0  # noise in lengths of the line: places before and after it correlate by 1 / sqrt(1 + 24 * 3^2)
NEARLY_ALL = 0.99  # of all people


def best_shuffler(
    groups: Groups, *, alpha: float, points: ArrayLike | None = None
) -> Uniform | WithinGroups | Mallows | NoisySort | PlanarLaplace:
    r"""The shuffler that keeps alpha for these groups and moves reports the least, as far as we know.

    * Disjoint groups: `WithinGroups`. It promises alpha = 0, less than any alpha asked for, and no report leaves its
      group, so everything that order privacy allows to be learned is kept exactly; no mechanism beats either side.
    * Overlapping groups: `NoisySort` or `Mallows`, both component by component: the one whose seeded draws move
      reports by the least mean distance, of `points` where there are some, else of places along the line that people
      in exactly the same groups share. Noise on places wins where 1 / theta is a few places or more and groups have
      more than a handful of people.
    * Overlapping groups of public `points` (n, 2) in the plane: of these two and `PlanarLaplace` the one whose seeded
      draws move reports by the least mean distance.

    * Where the noise along the line is `FLAT` times as long as the line, so that its order is all but uniform: the
      uniform shuffle of each component (`WithinGroups`), or of everybody (`Uniform`) where one component holds nearly
      all. It promises alpha = 0 for the same loss, and a central guarantee where nobody is alone.

    The reason is kept in the provenance and in the summary. Only public data decide.

    Raises
    ------
    ParameterError
        For an alpha below 0, and for `groups` that are no `Groups`.
    DataError
        For `points` that are no finite numbers, one row per person.

    Examples
    --------
    >>> best_shuffler(Groups.from_labels(["a", "b", "a"]), alpha=1.0).name
    'within_groups'
    >>> best_shuffler(Groups.from_lists([[0, 1], [1, 2]], 3), alpha=8.0).name
    'mallows'
    >>> best_shuffler(Groups.from_labels(range(100), radius=5), alpha=2.0).name
    'noisy_sort'
    """
    wanted, groups = not_negative_or_infinite("alpha", alpha), need_groups(groups)
    if groups.disjoint:
        reason = "the groups are disjoint: alpha = 0, and nothing leaves its group"
        return WithinGroups(groups, FitProvenance(reason=reason))
    if math.isinf(wanted):
        return _with_reason(Mallows.fit(groups, alpha=wanted), "alpha is infinite: the order is left alone")
    line, provenance = partition_reference_order(groups, points=points)
    if points is None or check_points(points).shape[1] != 2:
        chosen, shift = _along(line, provenance, groups, wanted, points)
        return _unless_uniform(chosen, shift, line, groups)
    planar = PlanarLaplace.fit(groups, alpha=wanted, points=points)
    mallows = Mallows.along(line, groups, alpha=wanted, provenance=provenance)
    sort = NoisySort.along(line, groups, alpha=wanted, provenance=provenance)
    here, *there = (mean_distance(each, planar.points) for each in (planar, mallows, sort))
    compared = f"a mean distance of {here:.3g} in the plane against {there[0]:.3g} by Mallows and {there[1]:.3g} by "
    compared += "noise on places along a line, in seeded draws"
    if here < min(there):
        return _with_reason(planar, f"planar noise keeps reports nearer home: {compared}")
    chosen = mallows if there[0] <= there[1] else sort
    chosen = _with_reason(chosen, f"{chosen.label} keeps reports nearest home: {compared}")
    return _unless_uniform(chosen, chosen.displacements(), line, groups)


def _unless_uniform(
    chosen: Mallows | NoisySort, shift: Numbers, line: PartitionedOrder, groups: Groups
) -> Uniform | WithinGroups | Mallows | NoisySort:
    """The shuffler along the line, unless a uniform one loses hardly more and promises more."""
    flat = (shift >= FLAT * line.sizes) | (line.sizes == 1)
    if line.sizes[flat].sum() < NEARLY_ALL * line.n or line.sizes.max() == 1:
        return chosen
    component = groups.components()
    together = line.sizes.max() >= NEARLY_ALL * line.n and bool((component >= 0).all())
    whom = "everybody" if together else "each component of the groups"
    reason = (
        "for this alpha the order along a line would be all but uniform (places before and after it correlate by "
        f"about a tenth or less): {whom} is shuffled uniformly instead, which promises alpha = 0, and a central "
        f"guarantee{'' if together else ' where nobody is alone'}; raise alpha or make the groups smaller for an "
        "order that can be learned from"
    )
    if together:
        return Uniform(line.n, FitProvenance(reason=reason))
    alone = -1 - np.arange(line.n)  # people in no group stay where they are
    return WithinGroups(Groups.from_labels(np.where(component < 0, alone, component)), FitProvenance(reason=reason))


class Best(ShufflerKind):
    """The choice of `best_shuffler`, by its name in configurations."""

    name: ClassVar[str] = "best"
    label: ClassVar[str] = "the best shuffler for the groups"

    @classmethod
    def from_public(
        cls, public: PublicData, *, alpha: float | None = None, **settings: Any
    ) -> Uniform | WithinGroups | Mallows | NoisySort | PlanarLaplace:
        return best_shuffler(public.groups, alpha=math.inf if alpha is None else alpha, points=public.points)


def _along(
    line: PartitionedOrder, provenance: FitProvenance, groups: Groups, alpha: float, points: ArrayLike | None
) -> tuple[Mallows | NoisySort, Numbers]:
    """The better one of the two shufflers along a line, and its mean displacement in places (components,)."""
    mallows = Mallows.along(line, groups, alpha=alpha, provenance=provenance)
    sort = NoisySort.along(line, groups, alpha=alpha, provenance=provenance)
    if points is None:  # people of an atom are exchanged for nothing: they share the mean of their places
        shared = (line.atom_starts[:-1] + line.atom_starts[1:] - 1)[line.atom] / 2.0
        where, unit = shared[line.places][:, None], "places"
    else:
        where, unit = check_points(points), "units of the points"
    by_mallows, by_sort = (mean_distance(each, where) for each in (mallows, sort))
    if not line.has_several_atoms.any():
        return _with_reason(mallows, "nothing but a uniform shuffle is possible"), mallows.displacements()
    chosen = sort if by_sort < by_mallows else mallows
    compared = f"{by_sort:.3g} {unit} by noise on places against {by_mallows:.3g} by Mallows, in seeded draws"
    return _with_reason(chosen, f"{chosen.label} keeps reports nearest home: {compared}"), chosen.displacements()


def _with_reason(shuffler: Fitted, reason: str) -> Fitted:
    return replace(shuffler, provenance=shuffler.provenance.with_reason(reason))

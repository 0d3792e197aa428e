"""The Mallows shuffler: nearby orders are likelier, and no group's order tells more than alpha."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core.certified import round_up_largest_product
from dovetail.core.checks import not_negative_or_infinite
from dovetail.core.entropy import Entropy, Permutation
from dovetail.core.errors import DataError
from dovetail.core.stages import PublicData
from dovetail.shuffle.fitting import components as mallows_law
from dovetail.shuffle.fitting.components import (
    FitProvenance,
    PartitionedOrder,
    average_mixing,
    check_groups,
    crosses,
    exact_mixing,
    largest_by_component,
    partition_reference_order,
    refuse_crossing,
)
from dovetail.shuffle.fitting.fitted_shuffler import (
    LineShuffler,
    check_present,
    restrict_groups,
    smallest_theta,
    summarize,
)
from dovetail.shuffle.fitting.groups import Groups, need_groups
from dovetail.shuffle.fitting.ranges import Places
from dovetail.shuffle.fitting.reference_orders import reference_order
from dovetail.shuffle.fitting.sensitivity import kendall_between_atoms, largest_theta, width_by_group
from dovetail.shuffle.sampling.lehmer_code import MOST_THETA, Thetas
from dovetail.shuffle.sampling.permutations import Labels, Mixing, check_labels, check_permutation

_EXACT_MIXING = 512


@dataclass(frozen=True, eq=False)
class Mallows(LineShuffler):
    r"""A random order around a reference order s, with exactly the promised alpha in each component.

    .. math:: \Pr[\sigma] \propto e^{-\theta\, \mathrm{inv}(s^{-1} \sigma s)}, \qquad \theta = \alpha / \Delta

    The line in the order s is disturbed by a Mallows permutation kappa: sigma(s(k)) = s(kappa(k)). Groups that
    overlap directly or through others form a component; each component is shuffled by itself with its own
    theta = alpha / Delta, and nothing leaves it. People with the same groups form an atom; atoms stand together in s,
    the order inside them is uniform, and only inversions between different atoms count (Delta:
    `kendall_between_atoms`). A component of one atom is shuffled uniformly; people in no group stay in place. For
    disjoint groups this is `WithinGroups`.

    `Mallows.single` is the published mechanism, one order of everybody, with the exact Delta: worse for these groups,
    but it promises something finite to every other grouping (`exact_alpha`).

    Parameters
    ----------
    groups : Groups
        From public data only.
    alpha : float, at least 0, nats
        What the order inside a group may tell. 0 shuffles each component uniformly, infinity leaves the order alone.
    line : PartitionedOrder
        The reference order with its components and atoms.
    thetas : float array (components,), 0 to 1000
        theta of each component; refused where theta Delta exceeds alpha in exact arithmetic.

    Raises
    ------
    ParameterError
        For parameters outside their ranges, and for `groups` that are no `Groups`.
    DataError
        From `shuffle`, for another number of reports.

    Notes
    -----
    Digits of the Lehmer code are drawn exactly, from every entropy: no floating-point error adds to alpha. `theta` is
    the smallest one above 0, or 0 when every component is uniform, or infinite when nobody moves; `sensitivity` and
    `width` are the largest over the groups. Without a group of two people alpha holds vacuously.

    Examples
    --------
    >>> shuffler = Mallows.fit(Groups.from_labels([30, 31, 32, 33], radius=1), alpha=2.0)
    >>> shuffler.width, shuffler.sensitivity, round(shuffler.theta, 4)
    (2, 3, 0.6667)

    Source
    ------
    Meehan, Roy Chowdhury, Chaudhuri, Jha (2022), Privacy Implications of Shuffling, ICLR, Algorithm 1 and Theorem
    4.3, in the one reading of its line 8 that keeps the promise. Components and atoms are ours.
    """

    name: ClassVar[str] = "mallows"
    source: ClassVar[str] = (
        "Meehan et al. (2022), Privacy Implications of Shuffling, Theorem 4.3 with the exact Kendall sensitivity "
        "between atoms, component by component (convention and proof in docs/errata.md)"
    )
    label: ClassVar[str] = "Mallows"

    @dataclass(frozen=True)
    class Settings:
        """Setting of the reference order.

        Parameters
        ----------
        line : "components" or "single"
            Shuffle each component by itself, or everybody along one line, as published.
        """

        line: Literal["components", "single"] = "components"

    groups: Groups
    alpha: float
    line: PartitionedOrder = field(repr=False)
    thetas: Thetas = field(repr=False)
    provenance: FitProvenance = field(default_factory=FitProvenance, repr=False)
    sensitivities: Places = field(init=False, repr=False)

    def __post_init__(self) -> None:
        alpha = not_negative_or_infinite("alpha", self.alpha)
        check_groups(self.groups, self.line)
        thetas = np.array(self.thetas, dtype=np.float64)
        if thetas.shape != (self.line.components,) or not ((thetas >= 0.0) & (thetas <= MOST_THETA)).all():
            raise DataError(f"`thetas` must be {self.line.components:,} numbers in [0, {MOST_THETA:g}].")
        largest = np.zeros(thetas.size, dtype=np.int64)
        if math.isfinite(alpha):
            largest = _sensitivities(self.groups, self.line)
            for theta, delta in np.unique(np.column_stack((thetas, largest)), axis=0).tolist():
                if Fraction(theta) * int(delta) > Fraction(alpha):
                    raise DataError(f"`thetas` must keep alpha = {alpha:g}, got {theta!r} at {int(delta):,}.")
        thetas.setflags(write=False)
        object.__setattr__(self, "alpha", alpha)
        object.__setattr__(self, "thetas", thetas)
        object.__setattr__(self, "sensitivities", largest)

    @classmethod
    def from_public(
        cls, public: PublicData, *, alpha: float | None = None, line: str = "components", **settings: Any
    ) -> Self:
        kept = math.inf if alpha is None else alpha
        if line == "single":
            return cls.single(public.groups, alpha=kept)
        return cls.fit(public.groups, alpha=kept, points=public.points)

    @classmethod
    def fit(
        cls, groups: Groups, *, alpha: float, points: ArrayLike | None = None, reference: ArrayLike | None = None
    ) -> Self:
        """The shuffler that promises alpha for these groups, component by component, with atoms.

        `points` (n, d) are public coordinates that may help to find a reference order; `reference` (n,) is a public
        order to use instead, as far as components and atoms stand together in it.
        """
        groups = need_groups(groups)
        if math.isinf(not_negative_or_infinite("alpha", alpha)):
            return cls._identity(groups, alpha)
        line, provenance = partition_reference_order(groups, points=points, reference=reference)
        return cls.along(line, groups, alpha=alpha, provenance=provenance)

    @classmethod
    def single(cls, groups: Groups, *, alpha: float, reference: ArrayLike | None = None) -> Self:
        """The published mechanism with the exact sensitivity: one order of everybody, no components, no atoms.

        `reference` (n,) is a public order; the paper's breadth-first order, or the label order, if absent.
        """
        order = reference_order(groups) if reference is None else check_permutation(reference, groups.n, "reference")
        if math.isinf(not_negative_or_infinite("alpha", alpha)) or not len(groups):
            return cls._identity(groups, alpha)
        grown = "label order" if groups.contiguous else "breadth first"
        provenance = FitProvenance(reference=grown if reference is None else "given")
        return cls.along(PartitionedOrder.single_component(order), groups, alpha=alpha, provenance=provenance)

    @classmethod
    def along(
        cls, line: PartitionedOrder, groups: Groups, *, alpha: float, provenance: FitProvenance | None = None
    ) -> Self:
        """The largest theta of each component that keeps alpha, along a given line."""
        largest = _sensitivities(groups, line)
        deltas, number = np.unique(largest, return_inverse=True)
        thetas = np.array([largest_theta(alpha, delta) if delta else 0.0 for delta in deltas.tolist()])
        return cls(groups, alpha, line, thetas[number], provenance or FitProvenance())

    @classmethod
    def _identity(cls, groups: Groups, alpha: float) -> Self:
        return cls(groups, alpha, PartitionedOrder.singletons(groups.n), np.zeros(groups.n))

    @property
    def sensitivity(self) -> int:
        """Largest exact sensitivity over the groups."""
        return int(self.sensitivities.max(initial=0))

    @property
    def width(self) -> int:
        """Largest width over the groups: last minus first place of a group in the reference order."""
        return int(width_by_group(self.groups, self.line.places).max(initial=0))

    @property
    def theta(self) -> float:
        """Smallest theta above 0 of a component; 0 when all are uniform, infinite when nobody moves."""
        return smallest_theta(self.thetas, self.line)

    def exchangeable_blocks(self) -> Labels:
        """Atoms, and whole components where theta = 0."""
        line = self.line
        return np.where(self.thetas[line.component] > 0.0, line.atom, -1 - line.component)[line.places]

    def exact_alpha(self, groups: Groups) -> float:
        r"""Exact alpha of the order for the groups of another grouping, rounded up to a double.

        .. math:: \alpha'(G') = \theta_c\, \Delta(\text{union of the atoms that } G' \text{ meets})

        Infinite when a group meets two components. Exact for groups that are unions of atoms, so for every group of
        `Mallows.single`; an upper bound otherwise.

        Source
        ------
        Meehan et al. (2022), Theorem 4.4.
        """
        check_groups(groups, self.line)
        if crosses(groups, self.line).any():
            return math.inf
        return round_up_largest_product(
            self.thetas[self.line.component_of(groups)], kendall_between_atoms(groups, self.line)
        )

    def restrict(self, present: ArrayLike) -> Self:
        """This shuffler for the people that are `present` (n,), in their order, with the same thetas.

        Deleting people never raises a sensitivity, so alpha holds for what is left of each group, provided that who
        is present does not depend on the values. The provenance counts the groups that lost members.
        """
        here = check_present(present, self.n)
        groups, _, provenance = restrict_groups(self.groups, here, self.provenance)
        line, left = self.line.restrict(here)
        return type(self)(groups, self.alpha, line, self.thetas[left], provenance)

    def _draw(self, rng: Entropy) -> Permutation:
        return mallows_law.draw(self.line, self.thetas, rng)

    def log_weight(self, permutation: ArrayLike) -> float:
        kappa = self.line.places[check_permutation(permutation, self.n)[self.order]]
        return mallows_law.log_weight(self.line, self.thetas, kappa)

    def mixing(self, labels: Labels) -> Mixing:
        """As in `Shuffler.mixing`: exact up to 512 people, otherwise the mean of seeded draws from the public law.

        Standard errors are at most 1e-3, or a tenth of a label's own sampling error where that is larger (see
        `average_mixing`). No report is touched, and memory is O(n).
        """
        line = check_labels(labels, self.n)[self.order]
        if self.n <= _EXACT_MIXING:
            return exact_mixing(line, mallows_law.marginals_on_components(self.line, self.thetas))
        return average_mixing(line, self._draw)

    def displacements(self) -> Thetas:
        """Mean displacement 2 log 2 / theta in places, away from the ends (components,); infinite at theta = 0."""
        result = np.full(self.thetas.size, math.inf)
        return np.asarray(np.divide(2.0 * math.log(2.0), self.thetas, out=result, where=self.thetas > 0.0))

    def summary(self) -> dict[str, Any]:
        return summarize(
            self, self.line, self.displacements(), thetas=self.thetas, provenance=self.provenance,
            width=self.width, sensitivity=self.sensitivity,
        )  # fmt: skip

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        chain = Groups.from_lists([[0, 1], [1, 2, 3]], 4)
        return (
            cls.single(chain, alpha=4.0, reference=[1, 2, 3, 0]),
            cls.single(chain, alpha=0.0, reference=[0, 2, 3, 1]),
            cls.fit(chain, alpha=math.inf),
            cls.single(Groups.from_labels([4, 3, 3, 2, 1], radius=1), alpha=1.0, reference=[2, 0, 1, 4, 3]),
            cls.fit(Groups.from_lists([[2]], 3), alpha=1.0),
            cls.fit(chain, alpha=3.0),
            cls.fit(Groups.from_lists([[4, 1], [1, 0, 2]], 5), alpha=2.0, reference=[2, 4, 3, 0, 1]),
            cls.fit(Groups.from_lists([[0, 3], [1, 4]], 5), alpha=2.0),
            cls.fit(Groups.from_lists([[0, 3, 1], [3, 2]], 5), alpha=0.0),
        )


def _sensitivities(groups: Groups, line: PartitionedOrder) -> Places:
    """Largest sensitivity in each component (components,); groups must not cross components."""
    refuse_crossing(groups, line)
    return largest_by_component(kendall_between_atoms(groups, line), groups, line)

"""The noisy sort: Laplace noise on everybody's place in the reference order, and the order of the noisy places."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.certified import round_up_largest_product
from dovetail.core.checks import not_negative_or_infinite
from dovetail.core.discrete_noise import discrete_laplace
from dovetail.core.entropy import Entropy, Permutation
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.settings import PublicColumn
from dovetail.core.stages import PublicData
from dovetail.shuffle.fitting.components import (
    FitProvenance,
    PartitionedOrder,
    average_mixing,
    check_groups,
    crosses,
    largest_by_component,
    partition_order,
    partition_reference_order,
    refuse_crossing,
)
from dovetail.shuffle.fitting.fitted_shuffler import LineShuffler, check_present, restrict_groups, summarize
from dovetail.shuffle.fitting.groups import Groups, need_groups
from dovetail.shuffle.fitting.ranges import Places
from dovetail.shuffle.fitting.sensitivity import footrule_by_group, width_by_group
from dovetail.shuffle.sampling.permutations import (
    Labels,
    Mixing,
    check_labels,
    check_permutation,
    log_order_probability,
    number_rows,
)

RATE = Fraction(1, 1 << 32)  # of the noise, in grid steps; scores are stretched to fit the promise

_MOST_KEY = 1 << 61
_MOST_EXACT = 6


@dataclass(frozen=True, eq=False)
class NoisySort(LineShuffler):
    r"""Everybody's public score plus Laplace noise, sorted; the order of the noisy scores is the shuffle.

    .. math:: \mathrm{key}_i = a_c s_i + N_i, \qquad \Pr[N = j] \propto e^{-\rho |j|}, \qquad
              \rho\, a_c\, \Delta_F \le \alpha

    Reordering the data inside a group moves the vector of keys by at most a_c Delta_F in the sum of absolute
    differences, with Delta_F = 2 (sum of the upper half of the scores - sum of the lower half), at most over the
    groups of the component. Scores are places in the reference order, equal for an atom, which then costs nothing.
    People move by about Delta_F / alpha places: less than with `Mallows` (1.39 Delta / alpha) except in tiny groups.

    Parameters
    ----------
    groups : Groups
        From public data only.
    alpha : float, at least 0, nats
    line : PartitionedOrder
        The reference order with its components.
    scores : int array (n,)
        Public score of each person; the line is in order of score inside each component.
    scales : int array (components,)
        a_c; refused where rho a_c Delta_F exceeds alpha in exact arithmetic. 0 shuffles the component uniformly.

    Raises
    ------
    ParameterError
        For parameters outside their ranges, and for `groups` that are no `Groups`.
    DataError
        From `shuffle`, for another number of reports.

    Notes
    -----
    Keys are whole numbers, noise is drawn exactly and ties are broken by a uniform permutation, never by index: pure.
    `log_weight` has no closed form; it integrates for components of up to 6 people. It treats the grid of 2^32 steps
    per unit of noise as continuous, which is off by a factor below 1 + 1e-8.

    Examples
    --------
    >>> shuffler = NoisySort.fit(Groups.from_labels([30, 31, 32, 33], radius=1), alpha=2.0)
    >>> shuffler.sensitivity, shuffler.summary()["mean_displacement"]
    (8, 1.25)

    Source
    ------
    Dwork, McSherry, Nissim, Smith (2006), Calibrating Noise to Sensitivity, Proposition 1; its use for orders
    is ours.
    """

    name: ClassVar[str] = "noisy_sort"
    source: ClassVar[str] = (
        "Laplace mechanism on the footrule sensitivity of the scores, then post-processing, component by component: "
        "discrete Laplace noise on whole scores, ties broken uniformly"
    )
    label: ClassVar[str] = "noisy sort"

    @dataclass(frozen=True)
    class Settings:
        """Setting of what is sorted.

        Parameters
        ----------
        scores : public column of whole numbers, optional
            Sort by these numbers instead of by places in the best reference order.
        """

        scores: PublicColumn | None = None

    groups: Groups
    alpha: float
    line: PartitionedOrder = field(repr=False)
    scores: Places = field(repr=False)
    scales: Places = field(repr=False)
    provenance: FitProvenance = field(default_factory=FitProvenance, repr=False)
    sensitivities: Places = field(init=False, repr=False)

    def __post_init__(self) -> None:
        alpha = not_negative_or_infinite("alpha", self.alpha)
        check_groups(self.groups, self.line)
        scores = check_scores(self.scores, self.line.n)
        scales = np.asarray(self.scales)
        parts = self.line.components
        if scales.shape != (parts,) or scales.dtype.kind not in "iu" or (scales < 0).any():
            raise DataError(f"`scales` must be {parts:,} whole numbers, at least 0, got {scales[:8].tolist()}.")
        reach = _spreads(self.line, scores).tolist()
        if any(scale * spread >= _MOST_KEY for scale, spread in zip(scales.tolist(), reach, strict=True)):
            raise DataError("`scales` times the spread of the scores must stay below 2^61.")
        largest = np.zeros(parts, dtype=np.int64)
        if math.isfinite(alpha):
            largest = _sensitivities(self.groups, self.line, scores)
            pairs = np.unique(np.column_stack((scales, largest)), axis=0).tolist()
            if any(RATE * scale * delta > Fraction(alpha) for scale, delta in pairs):
                raise DataError(f"`scales` must keep alpha = {alpha:g} for the scores of the groups.")
        for name, value in (("scores", scores), ("scales", scales.astype(np.int64))):
            value.setflags(write=False)
            object.__setattr__(self, name, value)
        object.__setattr__(self, "alpha", alpha)
        object.__setattr__(self, "sensitivities", largest)

    @classmethod
    def from_public(
        cls, public: PublicData, *, alpha: float | None = None, scores: str | None = None, **settings: Any
    ) -> Self:
        kept = math.inf if alpha is None else alpha
        if scores is None:
            return cls.fit(public.groups, alpha=kept, points=public.points)
        numbers = public.columns[scores]
        broken = np.flatnonzero(numbers != np.floor(numbers))
        if broken.size:
            raise DataError(f"column {scores!r}: `scores` must be whole numbers, got {numbers[broken[0]]:g}.")
        return cls.fit(public.groups, alpha=kept, scores=np.clip(numbers, -(2.0**60), 2.0**60).astype(np.int64))

    @classmethod
    def fit(
        cls, groups: Groups, *, alpha: float, points: ArrayLike | None = None, scores: ArrayLike | None = None
    ) -> Self:
        """The noisy sort that promises alpha for these groups, component by component.

        `scores` (n,) are public whole numbers to sort by; the places in the best reference order if absent, which
        public coordinates `points` (n, d) may help to find.
        """
        groups = need_groups(groups)
        if math.isinf(not_negative_or_infinite("alpha", alpha)):
            still = PartitionedOrder.singletons(groups.n)
            return cls(groups, alpha, still, still.order, np.zeros(groups.n, dtype=np.int64))
        if scores is None:
            line, provenance = partition_reference_order(groups, points=points)
            return cls.along(line, groups, alpha=alpha, provenance=provenance)
        given = check_scores(scores, groups.n)
        line = partition_order(groups, np.argsort(given, kind="stable"))
        return cls._stretched(line, groups, alpha, given, FitProvenance(reference="given scores"))

    @classmethod
    def along(
        cls, line: PartitionedOrder, groups: Groups, *, alpha: float, provenance: FitProvenance | None = None
    ) -> Self:
        """The noisy sort of places along a given line; people of an atom share the mean of their places."""
        doubled = (line.atom_starts[:-1] + line.atom_starts[1:] - 1)[line.atom]  # twice the mean, so that it is whole
        return cls._stretched(line, groups, alpha, doubled[line.places], provenance or FitProvenance())

    @classmethod
    def _stretched(
        cls, line: PartitionedOrder, groups: Groups, alpha: float, scores: Places, provenance: FitProvenance
    ) -> Self:
        """With the largest scales that keep alpha."""
        exact, scales = Fraction(alpha) / RATE, []
        spreads = _spreads(line, scores).tolist()
        for delta, spread in zip(_sensitivities(groups, line, scores).tolist(), spreads, strict=True):
            scales.append(min(exact // delta, (_MOST_KEY - 1) // spread) if delta else 0)
        return cls(groups, alpha, line, scores, np.array(scales, dtype=np.int64), provenance)

    @property
    def sensitivity(self) -> int:
        """Largest footrule sensitivity of the scores over the groups."""
        return int(self.sensitivities.max(initial=0))

    def exchangeable_blocks(self) -> Labels:
        """People of a component with the same key: their noise is alike, and ties are broken uniformly."""
        component = self.line.component[self.line.places]
        return number_rows(np.column_stack((component, np.where(self.scales[component] > 0, self.scores, 0))))

    def exact_alpha(self, groups: Groups) -> float:
        r"""Upper bound of what the order promises to the groups of another grouping, rounded up to a double.

        .. math:: \alpha'(G') \le \rho\, a_c\, \Delta_F(G')

        Infinite when a group meets two components.
        """
        check_groups(groups, self.line)
        if crosses(groups, self.line).any():
            return math.inf
        delta = footrule_by_group(groups, self.scores)
        return round_up_largest_product(self.scales[self.line.component_of(groups)], delta, unit=RATE)

    def restrict(self, present: ArrayLike) -> Self:
        """As `Mallows.restrict`: the same scores and noise for the people that are `present` (n,)."""
        here = check_present(present, self.n)
        groups, _, provenance = restrict_groups(self.groups, here, self.provenance)
        line, left = self.line.restrict(here)
        return type(self)(groups, self.alpha, line, self.scores[here], self.scales[left], provenance)

    def log_weight(self, permutation: ArrayLike) -> float:
        kappa = self.line.places[check_permutation(permutation, self.n)[self.order]]
        line, keys = self.line, self.scores[self.order] * float(RATE)
        if line.sizes.max() > _MOST_EXACT:
            raise UnsupportedError(
                f"The law of a noisy sort is integrated for components of at most {_MOST_EXACT} people, this one has "
                f"{int(line.sizes.max()):,}; it has no closed form. Draw permutations, or use Mallows."
            )
        if (line.component[kappa] != line.component).any():
            return -math.inf
        blocks = [
            kappa[line.component_starts[part] : line.component_starts[part + 1]] for part in range(line.sizes.size)
        ]
        chances = [
            log_order_probability(keys[block] * scale) for block, scale in zip(blocks, self.scales, strict=True)
        ]
        return float(sum(chance for block, chance in zip(blocks, chances, strict=True) if block.size > 1))

    def mixing(self, labels: Labels) -> Mixing:
        """As in `Shuffler.mixing`: the mean of seeded draws from the public law (see `average_mixing`)."""
        return average_mixing(check_labels(labels, self.n)[self.order], self._draw)

    def displacements(self) -> NDArray[np.float64]:
        """Mean displacement in places (components,): one unit of noise, in units of the average step of the score."""
        spread, steps = _spreads(self.line, self.scores), self.line.sizes - 1
        unit = np.divide(spread, steps, out=np.ones(steps.size), where=(steps > 0) & (spread > 0))
        rates = float(RATE) * self.scales * unit
        return np.asarray(np.divide(1.0, rates, out=np.full(rates.size, math.inf), where=rates > 0.0))

    def summary(self) -> dict[str, Any]:
        shift, width = self.displacements(), width_by_group(self.groups, self.line.places)
        return summarize(
            self, self.line, shift, thetas=1.0 / shift, provenance=self.provenance,
            width=int(width.max(initial=0)), sensitivity=self.sensitivity,
        )  # fmt: skip

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        chain = Groups.from_lists([[0, 1], [1, 2, 3]], 4)
        return (
            cls.fit(chain, alpha=3.0),
            cls.fit(chain, alpha=0.0),
            cls.fit(chain, alpha=math.inf),
            cls.fit(chain, alpha=2.0, scores=[5, 1, 0, 3]),
            cls.fit(Groups.from_lists([[4, 1], [1, 0]], 5), alpha=2.0),
            cls.fit(Groups.from_lists([[0, 3], [1, 4]], 5), alpha=2.0),
        )

    def _draw(self, rng: Entropy) -> Permutation:
        line = self.line
        low = np.minimum.reduceat(self.scores[self.order], line.component_starts[:-1])
        keys = (self.scores[self.order] - low[line.component]) * self.scales[line.component]
        return sort_keys(keys + discrete_laplace(RATE, self.n, rng), line.component, rng)


def sort_keys(keys: Places, part: Places, rng: Entropy) -> Permutation:
    """The places in the order of (part, key); equal keys of a part come in uniformly random order."""
    mixed = rng.permutation(keys.size)
    return mixed[np.lexsort((keys[mixed], part[mixed]))]


def check_scores(scores: ArrayLike, n: int) -> Places:
    """`scores` as whole numbers (n,) below 2^40 in size."""
    given = np.asarray(scores)
    if given.shape != (n,) or given.dtype.kind not in "iu" or (np.abs(given.astype(np.int64)) >= 1 << 40).any():
        raise DataError(f"`scores` must be {n:,} whole numbers below 2^40, got shape {given.shape} of {given.dtype}.")
    return given.astype(np.int64)


def _spreads(line: PartitionedOrder, scores: Places) -> Places:
    """Largest minus smallest score of each component (components,)."""
    along = scores[line.order]
    return np.maximum.reduceat(along, line.component_starts[:-1]) - np.minimum.reduceat(
        along, line.component_starts[:-1]
    )


def _sensitivities(groups: Groups, line: PartitionedOrder, scores: Places) -> Places:
    """Largest footrule sensitivity of the scores in each component (components,)."""
    refuse_crossing(groups, line)
    return largest_by_component(footrule_by_group(groups, scores), groups, line)

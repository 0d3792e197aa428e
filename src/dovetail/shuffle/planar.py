"""The planar Laplace shuffler: noise on everybody's public point, and a matching of noisy points with homes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core.certified import round_up_to_double
from dovetail.core.checks import not_negative_or_infinite
from dovetail.core.entropy import Entropy, Permutation, simulation
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.core.stages import PublicData, Shuffler
from dovetail.shuffle.fitting.components import (
    FitProvenance,
    PartitionedOrder,
    average_mixing,
    check_groups,
    crosses,
    kd_order,
    largest_by_component,
    partition_order,
    refuse_crossing,
)
from dovetail.shuffle.fitting.fitted_shuffler import LineShuffler, check_present, restrict_groups
from dovetail.shuffle.fitting.groups import Groups, need_groups
from dovetail.shuffle.fitting.neighbours import check_points, refuse_vanishing
from dovetail.shuffle.fitting.ranges import Places
from dovetail.shuffle.fitting.sensitivity import (
    MOST_COORDINATE,
    RATE,
    Numbers,
    Points,
    choose_centres,
    displacement_bounds,
    largest_scales,
    planar_sensitivities,
    scale_to_grid,
    uniform_distance,
)
from dovetail.shuffle.sampling.permutations import (
    Labels,
    Mixing,
    Plane,
    check_labels,
    check_permutation,
    number_rows,
    planar_laplace,
)

_MANY = 0.5  # share of the people from which on a shuffle counts as nearly uniform
DRAWS, FEW_DRAWN, MOST_DRAWN = (
    8,
    40_000,
    2_000_000,
)  # seeded orders by which shufflers are compared: at least so many,
# more of few people, until they are so many people; fewer of very many
MOST_DRAWS = 400


@dataclass(frozen=True, eq=False)
class PlanarLaplace(LineShuffler):
    r"""Everybody's public point plus planar noise; each home receives the report whose noisy point is matched to it.

    .. math:: u_i = \mathrm{round}(a_c t_i) + Z_i, \qquad \Pr[Z = z] \propto e^{-\rho \lVert z \rVert_2}, \qquad
              \rho\, \Delta_2 \le \alpha, \quad
              \Delta_2 = \max_G 2 \sum_{i \in G} \lVert \mathrm{round}(a_c t_i) - c_G \rVert_2

    for any centre c_G: reordering the data inside G moves the points by at most that much in the sum of distances
    (triangle inequality, `centres`). Homes and noisy points are matched by their k-d order: both are cut into eight
    equal parts along the first coordinate, each of these along the second, and so on. For points in the plane, where
    a line would forget the second coordinate; for anything else use `Mallows` or `NoisySort`.

    Parameters
    ----------
    groups : Groups
        From public data only.
    alpha : float, at least 0, nats
    line : PartitionedOrder
        The components.
    points : float array (n, 2)
        Public points, in any unit.
    scales : float array (components,)
        Grid steps per unit; refused where rho Delta_2 exceeds alpha. 0 shuffles the component uniformly.
    centres : float array (groups, 2)
        A public centre for each group, in the unit of the points; any will do, the geometric median is the best.

    Raises
    ------
    ParameterError
        For parameters outside their ranges, and for `groups` that are no `Groups`.
    DataError
        From `shuffle`, for another number of reports.

    Notes
    -----
    The noise is drawn exactly on whole grid points, so the promise is pure; distances in Delta_2 are rounded up. The
    matching breaks ties by a uniform permutation, never by index. The law has no closed form: `log_weight` refuses.

    Examples
    --------
    >>> points = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    >>> shuffler = PlanarLaplace.fit(Groups.within_radius(points, 1.0), alpha=4.0, points=points)
    >>> round(shuffler.sensitivity, 4), round(shuffler.summary()["mean_distance"], 2)
    (3.8637, 0.71)

    Source
    ------
    Andres, Bordenabe, Chatzikokolakis, Palamidessi (2013), Geo-Indistinguishability, Definition 4.1 for the noise;
    the matching and the grouping bound are ours.
    """

    name: ClassVar[str] = "planar"
    source: ClassVar[str] = (
        "Laplace mechanism for sums of Euclidean distances, then post-processing by a matching that does not see who "
        "is who, component by component: discrete planar Laplace noise on a public grid, ties broken uniformly"
    )
    label: ClassVar[str] = "planar Laplace"
    groups: Groups
    alpha: float
    line: PartitionedOrder = field(repr=False)
    points: Points = field(repr=False)
    scales: Numbers = field(repr=False)
    centres: Points = field(repr=False)
    provenance: FitProvenance = field(default_factory=FitProvenance, repr=False)
    sensitivities: Numbers = field(init=False, repr=False)

    def __post_init__(self) -> None:
        alpha = not_negative_or_infinite("alpha", self.alpha)
        check_groups(self.groups, self.line)
        points = check_plane(self.points, self.line.n)
        scales = np.array(self.scales, dtype=np.float64)
        if scales.shape != (self.line.components,) or not ((scales >= 0.0) & (scales < math.inf)).all():
            raise DataError(f"`scales` must be {self.line.components:,} finite numbers, at least 0.")
        centres = np.array(self.centres, dtype=np.float64)
        if centres.shape != (len(self.groups), 2) or not np.isfinite(centres).all():
            raise DataError(f"`centres` must be {len(self.groups):,} points in the plane, got shape {centres.shape}.")
        for name, value in (("points", points), ("scales", scales), ("centres", centres)):
            value.setflags(write=False)
            object.__setattr__(self, name, value)
        object.__setattr__(self, "alpha", alpha)
        if not (np.abs(scale_to_grid(points, scales, self.line)) <= MOST_COORDINATE).all():
            raise DataError("`scales` times `points` must stay below 2^60.")
        largest = np.zeros(scales.size)
        if math.isfinite(alpha):
            refuse_crossing(self.groups, self.line)
            largest = planar_sensitivities(self.groups, self.line, self.grid, centres, scales)
            if any(RATE * Fraction(delta) > Fraction(alpha) for delta in np.unique(largest).tolist()):
                raise DataError(f"`scales` must keep alpha = {alpha:g} for the points of the groups.")
        object.__setattr__(self, "sensitivities", largest)

    @classmethod
    def objection(cls, *, alpha: float | None, coordinates: int | None, settings: dict[str, Any]) -> str:
        general = super().objection(alpha=alpha, coordinates=coordinates, settings=settings)
        return general or (
            "" if coordinates == 2 else f"shuffler {cls.name!r} needs groups of `points` with two coordinates"
        )

    @classmethod
    def from_public(cls, public: PublicData, *, alpha: float | None = None, **settings: Any) -> Self:
        if public.points is None:
            raise ParameterError("shuffler planar moves points in the plane: it needs two columns of coordinates.")
        return cls.fit(public.groups, alpha=math.inf if alpha is None else alpha, points=public.points)

    @classmethod
    def fit(cls, groups: Groups, *, alpha: float, points: ArrayLike) -> Self:
        """The planar shuffler that promises alpha for these groups, component by component; `points` is (n, 2)."""
        given = check_plane(points, need_groups(groups).n)
        if math.isinf(not_negative_or_infinite("alpha", alpha)):
            return cls(
                groups,
                alpha,
                PartitionedOrder.singletons(groups.n),
                given,
                np.zeros(groups.n),
                np.zeros((len(groups), 2)),
            )
        line = partition_order(groups, np.arange(groups.n))
        centres = choose_centres(groups, given, line.component_of(groups))
        return cls(groups, alpha, line, given, largest_scales(groups, line, given, centres, alpha), centres)

    @cached_property
    def grid(self) -> Plane:
        """Whole coordinates (n, 2) of everybody, stretched component by component."""
        return np.asarray(scale_to_grid(self.points, self.scales, self.line).astype(np.int64))

    @property
    def sensitivity(self) -> float:
        """Largest Delta_2 over the groups, in the unit of the points."""
        moving = self.scales > 0.0
        return float((self.sensitivities[moving] / self.scales[moving]).max(initial=0.0))

    def exchangeable_blocks(self) -> Labels:
        """People of a component at the same point: the matching does not know whose noisy point is whose."""
        return number_rows(np.column_stack((self.line.component[self.line.places], self.grid)))

    def exact_alpha(self, groups: Groups) -> float:
        r"""Upper bound of what the order promises to the groups of another grouping, rounded up to a double.

        .. math:: \alpha'(G') \le \rho \cdot 2 \sum_{i \in G'} \lVert \mathrm{round}(a_c t_i) - c \rVert_2

        Infinite when a group meets two components.
        """
        check_groups(groups, self.line)
        if crosses(groups, self.line).any():
            return math.inf
        grid = self.grid.astype(np.float64)
        distances = displacement_bounds(
            groups, grid, choose_centres(groups, grid, np.zeros(len(groups), dtype=np.int64))
        )
        bound = round_up_to_double(RATE * Fraction(float(distances.max(initial=0.0))))
        return min(bound, self.alpha) if self.groups.covers(groups) else bound

    def restrict(self, present: ArrayLike) -> Self:
        """As `Mallows.restrict`: the same points, centres and noise for the people that are `present` (n,)."""
        here = check_present(present, self.n)
        groups, kept, provenance = restrict_groups(self.groups, here, self.provenance)
        line, left = self.line.restrict(here)
        return type(self)(
            groups, self.alpha, line, self.points[here], self.scales[left], self.centres[kept], provenance
        )

    def log_weight(self, permutation: ArrayLike) -> float:
        check_permutation(permutation, self.n)
        raise UnsupportedError(
            "The law of a matching of noisy points has no closed form, and integrating it takes 2n dimensions. Draw "
            "permutations, or use Mallows, whose law is exact."
        )

    def mixing(self, labels: Labels) -> Mixing:
        """As in `Shuffler.mixing`: the mean of seeded draws from the public law (see `average_mixing`)."""
        return average_mixing(check_labels(labels, self.n)[self.order], self._draw)

    def summary(self) -> dict[str, Any]:
        groups, share = self.groups, self.near_uniform_share
        found = {
            "shuffler": self.name,
            "n": self.n,
            "alpha": self.alpha,
            "sensitivity": self.sensitivity,
            "components": int(groups.components().max(initial=-1)) + 1,
            "largest_group": groups.largest,
            "groups": len(groups),
            "ungrouped": int((~groups.grouped).sum()),
            "mean_distance": mean_distance(self, self.points),
            "near_uniform": share >= _MANY,
            "near_uniform_share": share,
        }
        if found["near_uniform"]:
            found["warning"] = (
                f"for {share:.0%} of the people the noise is as large as their component: the shuffle is nearly "
                "uniform there and little can be learned about places. Use smaller groups or a larger alpha."
            )
        return found | self.provenance.summary()

    def distances(self) -> Numbers:
        """Mean distance (components,) of a noisy point from its own, at most that of a uniform shuffle."""
        far = self._across
        noise = np.divide(2.0 / float(RATE), self.scales, out=far.copy(), where=self.scales > 0.0)
        return np.minimum(noise, far)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        near = Groups.within_radius(corners, 1.0)
        return (
            cls.fit(near, alpha=3.0, points=corners),
            cls.fit(near, alpha=0.0, points=corners),
            cls.fit(near, alpha=math.inf, points=corners),
            cls.fit(Groups.from_lists([[0, 1], [2, 3]], 4), alpha=1.0, points=corners),
            cls.fit(near, alpha=1.0, points=np.zeros((4, 2))),
        )

    @property
    def near_uniform_share(self) -> float:
        """Share of the people in components across which noise reaches, and who are not all in the same groups."""
        several = self.line.sizes > self._largest_group
        return float(self.line.sizes[several & (self.distances() >= self._across)].sum() / self.n)

    @property
    def _largest_group(self) -> Places:
        """Members of the largest group of each component (components,)."""
        return (
            largest_by_component(self.groups.sizes, self.groups, self.line)
            if math.isfinite(self.alpha)
            else self.line.sizes
        )

    @property
    def _across(self) -> Numbers:
        """Distance of two people of a component under a uniform shuffle, about (components,)."""
        return uniform_distance(self.points[self.order], self.line)

    @cached_property
    def _homes(self) -> Permutation:
        """Places in k-d order."""
        return kd_order(self.grid[self.order], self.line, np.arange(self.n))

    def _draw(self, rng: Entropy) -> Permutation:
        noisy = self.grid[self.order] + planar_laplace(RATE, self.n, rng)
        kappa = np.empty(self.n, dtype=np.int64)
        kappa[self._homes] = kd_order(noisy, self.line, rng.permutation(self.n))
        return kappa


def check_plane(points: ArrayLike, n: int) -> Points:
    """`points` as finite coordinates (n, 2)."""
    given = check_points(points)
    refuse_vanishing(given)
    if given.shape != (n, 2):
        raise DataError(f"`points` must be {n:,} points in the plane, got shape {given.shape}.")
    return np.array(given, dtype=np.float64)


def mean_distance(shuffler: Shuffler, points: Points) -> float:
    """Mean distance of people's points (n, d) from those at whose places their reports stand, in seeded draws."""
    wanted = min(MOST_DRAWS, max(DRAWS, FEW_DRAWN // len(points)))
    rng, draws = simulation(0), max(1, min(wanted, MOST_DRAWN // len(points)))
    moves = (points[shuffler.permutation(rng)] - points for _ in range(draws))
    return float(np.mean([np.linalg.norm(move, axis=1).mean() for move in moves]))

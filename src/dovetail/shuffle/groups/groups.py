"""Groups: sets of people inside which the released order must tell (almost) nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import not_negative_or_infinite, whole
from dovetail.core.entropy import Permutation
from dovetail.core.errors import DataError, ParameterError
from dovetail.shuffle.groups import connected_components, covering, distances, graph, neighbours
from dovetail.shuffle.groups import distinct_rows as distinct
from dovetail.shuffle.groups.atoms import Codes, atoms
from dovetail.shuffle.groups.ranges import Places, Ranges, refuse_beyond_memory


@dataclass(frozen=True, eq=False, repr=False)
class Groups:
    """The distinct groups of a grouping of n people, and who owns them.

    Built by `from_labels`, `within_radius`, `nearest` and `from_lists`, from public data only: groups made from
    private values void every guarantee. Groups with fewer than two members promise nothing and are dropped.

    Parameters
    ----------
    n : int, at least 1
    rows : Ranges
        One row per distinct group with at least two members.
    owners : Ranges
        For each group the people it was made for; a group made for nobody in particular belongs to the first one
        listed. Reference orders are grown from owners; guarantees do not depend on them.
    dropped : int
        Distinct groups with fewer than two members.
    contiguous : bool
        Whether `rows.people` lists everybody once, so that every group is contiguous in that public order.

    Raises
    ------
    ParameterError
        For radii, numbers of neighbours and people outside their ranges.
    DataError
        For labels, points and lists of people that are none.

    Notes
    -----
    Memory is 4 bytes per member of a distinct group; label groups take O(n) whatever the radius. Two groupings are
    equal when they have the same n and the same distinct groups, compared by 128-bit fingerprints.

    Examples
    --------
    >>> groups = Groups.from_labels([30, 31, 31, 40], radius=1)
    >>> groups
    Groups(n=4, groups=1, largest=3)
    >>> groups.members(0)
    array([0, 1, 2])
    """

    n: int
    rows: Ranges
    owners: Ranges
    dropped: int
    contiguous: bool

    @classmethod
    def from_labels(cls, labels: ArrayLike, radius: float | None = None) -> Groups:
        """People with equal labels, or with number labels at most `radius` apart; missing labels are refused.

        So are labels that rounding alone tells apart, such as 0.1 + 0.2 and 0.3, where equal ones are asked for.
        """
        codes, values = neighbours.encode_labels(labels)
        each = np.arange(values.size)
        reach = None if radius is None else not_negative_or_infinite("radius", radius)
        if not reach:
            neighbours.refuse_rounded_apart(values)
        first, last = (each, each + 1) if reach is None else neighbours.windows(values, values, reach)
        return cls(codes.size, *distinct.label_windows(codes, first, last))

    @classmethod
    def within_radius(cls, points: ArrayLike, radius: ArrayLike, *, metric: str = "euclidean") -> Groups:
        """For each person everybody at most `radius` away; points are coordinates (n,) or (n, d).

        `radius` is one number or one for each person (n,), in the unit of the points. `metric="haversine"` takes
        latitude and longitude in degrees and metres along the globe. Every other metric is one of
        `scipy.spatial.distance`; all but euclidean, cityblock and chebyshev compare each person with each.
        """
        given = neighbours.check_points(points)
        reach = neighbours.check_radius(radius, len(given))
        if metric != "haversine":
            neighbours.refuse_vanishing(given, reach)
        if metric not in distances.NORMS and metric != "haversine":
            return cls(len(given), *distinct.one_row_each(distances.within(given, reach, metric)))
        if metric == "haversine":
            given, reach = distances.on_sphere(given), distances.chord(reach)
        p = distances.NORMS.get(metric, 2.0)
        if given.shape[1] == 1 and isinstance(reach, float):
            return cls.from_labels(given[:, 0], reach)
        if isinstance(reach, float):
            rows, site = neighbours.balls(given, reach, p)
            return cls(len(given), *distinct.distinct_rows(rows, np.arange(len(given)), site, n=len(given)))
        if given.shape[1] == 1:
            return cls(len(given), *distinct.own_windows(given[:, 0], reach))
        return cls(len(given), *distinct.one_row_each(neighbours.own_balls(given, reach, p)))

    @classmethod
    def nearest(cls, points: ArrayLike, k: int) -> Groups:
        """For each person the k nearest people, the person included; equal distances go by index."""
        given = neighbours.check_points(points)
        neighbours.refuse_vanishing(given)
        return cls(len(given), *distinct.one_row_each(neighbours.nearest(given, k)))

    @classmethod
    def from_graph(cls, edges: Any, *, hops: int = 1, n: int | None = None, closed: bool = True) -> Groups:
        """For each person everybody within `hops` steps of an undirected public network, the person included.

        `edges` is an array of pairs (m, 2), a square scipy sparse matrix (entries other than 0 are edges) or a
        networkx graph with nodes 0..n-1. `closed=False` leaves the owner out: such a group promises that its
        members look alike, and nothing about the owner.
        """
        pairs, people = graph.check_edges(edges, n)
        rows = graph.neighbourhoods(pairs, people, hops=hops, closed=closed)
        return cls(people, *distinct.one_row_each(rows))

    @classmethod
    def union(cls, *groupings: Groups) -> Groups:
        """All groups of several groupings of the same people: each promise is kept."""
        if not groupings or any(other.n != groupings[0].n for other in groupings):
            got = ", ".join(f"{other.n:,}" for other in groupings) or "none"
            raise DataError(f"`groupings` must be at least one grouping, all of the same people, got n = {got}.")
        rows = [
            distinct.DistinctRows(other.rows, other.owners, other.dropped, other.contiguous) for other in groupings
        ]
        return cls(groupings[0].n, *distinct.union(groupings[0].n, rows))

    @classmethod
    def from_lists(cls, lists: Iterable[Sequence[int]], n: int) -> Groups:
        """Explicit groups of people 0..n-1; the first one listed owns the group."""
        n = whole("n", n, least=1)
        each = [list(group) for group in lists]
        sizes = np.array([len(group) for group in each], dtype=np.int64)
        refuse_beyond_memory(int(sizes.sum()))
        people = np.array(list(chain.from_iterable(each)) or np.empty(0, np.int64))
        if people.dtype.kind not in "iu":
            raise DataError(f"`lists` must hold whole numbers 0..{n - 1}, got {people.dtype}.")
        bad = np.flatnonzero((people < 0) | (people >= n))
        if bad.size:
            raise DataError(
                f"`lists` must hold people 0..{n - 1}, got {bad.size:,} that are not; first {people[bad[0]]}."
            )
        rows = Ranges.compress(np.repeat(np.arange(sizes.size), sizes), people, shape=(sizes.size, n))
        some = np.flatnonzero(sizes > 0)
        return cls(n, *distinct.distinct_rows(rows, people[(np.cumsum(sizes) - sizes)[some]], some, n=n))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Permutation]:
        return (self.members(g) for g in range(len(self)))

    def members(self, g: int) -> Permutation:
        """The members of group g, in increasing order."""
        return np.sort(self.rows.row(g)).astype(np.int64)

    @property
    def sizes(self) -> Places:
        """Members of each distinct group (groups,)."""
        return self.rows.sizes

    @property
    def largest(self) -> int:
        """Members of the largest group; 0 without groups."""
        return int(self.sizes.max(initial=0))

    @property
    def order(self) -> Permutation | None:
        """A public order of everybody in which each group is contiguous, when the groups came with one."""
        return self.rows.people.astype(np.int64) if self.contiguous else None

    @cached_property
    def grouped(self) -> NDArray[np.bool_]:
        """Who is in a group (n,)."""
        return self.rows.mask(self.n)

    @property
    def disjoint(self) -> bool:
        """Whether nobody is in two groups."""
        return self.rows.entries == int(self.grouped.sum())

    def components(self) -> Places:
        """Connected component of co-membership of each person (n,), 0..; -1 for people in no group."""
        find = connected_components.components_of_windows if self.contiguous else connected_components.components
        return find(self.rows, self.n)

    def atoms(self) -> Codes:
        """Atom of each person (n,): people with the same groups, numbered 0.. in the order of their first member.

        People in no group are atoms of their own: nothing is promised to them, so nothing may move them. For windows
        of labels the list is never made longer than n; where windows lie inside each other (own radius for each
        person) atoms are runs of the label order, possibly finer than the definition, which is always safe.

        Examples
        --------
        >>> Groups.from_lists([[0, 1, 2], [2, 3]], 5).atoms()
        array([0, 0, 1, 2, 3])
        """
        return atoms(self.rows, self.n, contiguous=self.contiguous)

    def relabel(self, order: Permutation) -> Groups:
        """The same groups when person order[k] is called k; groups come by their first member."""
        place = np.empty(self.n, dtype=np.int32)
        place[order] = np.arange(self.n, dtype=np.int32)
        rows, owners = (replace(table, people=place[table.people]) for table in (self.rows, self.owners))
        if not self.contiguous:
            rows = rows.materialize()
            by = np.argsort(rows.people[rows.starts], kind="stable")
            rows, owners = rows.take(by).materialize(), owners.take(by).materialize()
        return replace(self, rows=rows, owners=owners)

    def summary(self) -> dict[str, Any]:
        """Plain facts: sizes, connections and memory; `ownerless` groups do not hold their owner."""
        component, codes = self.components(), self.atoms()
        arrays = (self.rows.people, self.rows.starts, self.rows.stops)
        owners = (self.owners.people, self.owners.starts, self.owners.stops)
        return {
            "n": self.n,
            "groups": len(self),
            "dropped": self.dropped,
            "ownerless": int((~self.owned_by_member).sum()),
            "ungrouped": int((~self.grouped).sum()),
            "largest": self.largest,
            "mean_size": float(self.sizes.mean()) if len(self) else 0.0,
            "entries": self.rows.entries,
            "components": int(component.max(initial=-1)) + 1,
            "atoms": int(codes.max(initial=-1)) + 1,
            "memory_bytes": sum({id(array): array.nbytes for array in (*arrays, *owners)}.values()),
        }

    @property
    def owned_by_member(self) -> NDArray[np.bool_]:
        """Whether every owner of a group is one of its members (groups,)."""
        owners, rows = self.owners.materialize(), self.rows
        held = covering.rows_hold_owners(
            rows.people, rows.starts, rows.stops, owners.people, owners.starts, owners.stops, self.n, self.contiguous
        )
        return np.asarray(held)

    def covers(self, other: object) -> bool:
        """Whether every group of `other` lies inside a group of this grouping."""
        if not isinstance(other, Groups) or other.n != self.n or other.largest > self.largest:
            return False
        inside = covering.covers_by_window if self.contiguous else covering.covers_by_member
        return self == other or inside(self.rows, other.rows, self.n)

    @cached_property
    def _digest(self) -> bytes:
        table = np.column_stack((self.sizes.astype(np.uint64), self.rows.fingerprints()))
        return sha256(np.ascontiguousarray(table[np.lexsort(table.T)]).tobytes()).digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Groups) and self.n == other.n and self._digest == other._digest

    def __hash__(self) -> int:
        return hash((self.n, self._digest))

    def __repr__(self) -> str:
        return f"Groups(n={self.n:,}, groups={len(self):,}, largest={self.largest:,})"


def need_groups(groups: object) -> Groups:
    """`groups` as they are; ParameterError for labels and lists that are none yet."""
    if not isinstance(groups, Groups):
        example, kind = "dt.Groups.from_labels(..)", type(groups).__name__
        raise ParameterError(f"`groups` must be dt.Groups, such as {example}, got a value of type {kind}.")
    return groups

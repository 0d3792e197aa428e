"""Groups: sets of people inside which the released order must tell (almost) nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import not_negative_or_infinite, whole
from dovetail.core.compiled import njit
from dovetail.core.entropy import Permutation
from dovetail.core.errors import DataError, ParameterError
from dovetail.shuffle.fitting import neighbours
from dovetail.shuffle.fitting import neighbours as distances
from dovetail.shuffle.fitting import neighbours as graph
from dovetail.shuffle.fitting import ranges as connected_components
from dovetail.shuffle.fitting.ranges import People, Places, Ranges, first_equal_rows, refuse_beyond_memory

# Whether every group of one grouping lies inside a group of another.


def covers_by_window(outer: Ranges, inner: Ranges, n: int) -> bool:
    """For outer rows that are windows of a list of everybody: the first and last place of a row decide."""
    if not len(outer):
        return not len(inner)
    place = np.empty(n, dtype=np.int64)
    place[outer.people] = np.arange(n)
    reach = np.zeros(n, dtype=np.int64)  # how far the windows that begin at or before a place extend
    np.maximum.at(reach, outer.starts, outer.stops)
    reach = np.maximum.accumulate(reach)
    return bool(_windows_hold(place, reach, inner.people, inner.starts, inner.stops))


def covers_by_member(outer: Ranges, inner: Ranges, n: int) -> bool:
    """For any outer rows: try the rows around the member of each inner row that has the fewest."""
    around = outer.transpose(n)
    return bool(
        _members_held(
            outer.people, outer.starts, outer.stops, around.people, around.starts, around.stops,
            inner.people, inner.starts, inner.stops,
        )
    )  # fmt: skip


@njit(cache=True, nogil=True)
def rows_hold_owners(
    people: People, starts: Places, stops: Places, owners: People, owner_starts: Places, owner_stops: Places,
    n: int, contiguous: bool,
) -> NDArray[np.bool_]:  # fmt: skip
    """True where each row holds all its owners; contiguous rows are windows of a list of everybody."""
    result = np.ones(starts.size, dtype=np.bool_)
    mark = np.full(n, -1, dtype=np.int64)  # place of a person, or last row that holds the person
    if contiguous:
        for place in range(people.size):
            mark[people[place]] = place
    for g in range(starts.size):
        if not contiguous:
            for member in people[starts[g] : stops[g]]:
                mark[member] = g
        for owner in owners[owner_starts[g] : owner_stops[g]]:
            inside = starts[g] <= mark[owner] < stops[g] if contiguous else mark[owner] == g
            result[g] = result[g] and inside
    return result


@njit(cache=True, nogil=True)
def _windows_hold(place: Places, reach: Places, people: People, starts: Places, stops: Places) -> bool:
    for h in range(starts.size):
        low = high = place[people[starts[h]]]
        for member in people[starts[h] : stops[h]]:
            low, high = min(low, place[member]), max(high, place[member])
        if high >= reach[low]:
            return False
    return True


@njit(cache=True, nogil=True)
def _members_held(
    outer: People, outer_starts: Places, outer_stops: Places,
    around: People, around_starts: Places, around_stops: Places,
    people: People, starts: Places, stops: Places,
) -> bool:  # fmt: skip
    stamp = np.full(around_starts.size, -1, dtype=np.int64)
    for h in range(starts.size):
        rare = people[starts[h]]
        for member in people[starts[h] : stops[h]]:
            stamp[member] = h
            if around_stops[member] - around_starts[member] < around_stops[rare] - around_starts[rare]:
                rare = member
        held = False
        for g in around[around_starts[rare] : around_stops[rare]]:
            common = 0
            for member in outer[outer_starts[g] : outer_stops[g]]:
                common += stamp[member] == h
            if common == stops[h] - starts[h]:
                held = True
                break
        if not held:
            return False
    return True


# Rows with their owners, made distinct: equal groups become one, and groups of fewer than two are dropped.


class DistinctRows(NamedTuple):
    """Rows that differ, their owners, how many rows were too small, and whether rows are windows of everybody.

    The fields are those of `Groups`.
    """

    rows: Ranges
    owners: Ranges
    dropped: int
    contiguous: bool


def one_row_each(rows: Ranges) -> DistinctRows:
    """Row i belongs to person i."""
    everybody = np.arange(len(rows))
    return distinct_rows(rows, everybody, everybody, n=len(rows))


def label_windows(codes: Places, first: Places, last: Places) -> DistinctRows:
    """Each of the sorted distinct labels with the people of the labels first[i], .., last[i] - 1 around it."""
    people = np.argsort(codes, kind="stable").astype(np.int32)
    ends = np.cumsum(np.bincount(codes, minlength=first.size))
    begins = ends - np.diff(ends, prepend=0)
    # windows are monotone in the label: equal ones are neighbours
    new = np.flatnonzero(np.diff(first, prepend=-1) | np.diff(last, prepend=-1))
    rows = Ranges(people, begins[first[new]], ends[last[new] - 1])
    owners = Ranges(people, begins[new], ends[np.append(new[1:], first.size) - 1])
    keep = rows.sizes >= 2
    return DistinctRows(rows.take(keep), owners.take(keep), int((~keep).sum()), contiguous=True)


def own_windows(numbers: NDArray[np.float64], reach: NDArray[np.float64]) -> DistinctRows:
    """For each person everybody whose number is at most the person's own reach away."""
    codes, values = neighbours.encode_labels(numbers)
    first, last = neighbours.windows(values, numbers, reach)
    people = np.argsort(codes, kind="stable").astype(np.int32)
    ends = np.append(0, np.cumsum(np.bincount(codes, minlength=values.size)))
    return distinct_windows(people, ends[first], ends[last], np.arange(numbers.size))


def distinct_windows(people: People, starts: Places, stops: Places, owner: Places) -> DistinctRows:
    """From (owner, window of one list of everybody); equal windows become one."""
    windows, number = np.unique(np.column_stack((starts, stops)), axis=0, return_inverse=True)
    rows = Ranges(people, windows[:, 0].copy(), windows[:, 1].copy())
    owners = Ranges.compress(number.reshape(-1), owner, shape=(len(rows), people.size))
    keep = rows.sizes >= 2
    return DistinctRows(rows.take(keep), owners.take(keep).materialize(), int((~keep).sum()), contiguous=True)


def distinct_rows(rows: Ranges, owner: ArrayLike, owned: ArrayLike, *, n: int) -> DistinctRows:
    """From rows that list each person once, and (owner, row) pairs; identical rows become one."""
    same = first_equal_rows(rows)
    first = same == np.arange(len(rows))
    keep = first & (rows.sizes >= 2)
    number = np.where(keep, np.cumsum(keep) - 1, -1)[same]
    groups = number[np.asarray(owned)]
    owners = Ranges.compress(groups[groups >= 0], np.asarray(owner)[groups >= 0], shape=(int(keep.sum()), n))
    return DistinctRows(rows.take(keep).materialize(), owners, int((first & ~keep).sum()), contiguous=False)


def union(n: int, groupings: list[DistinctRows]) -> DistinctRows:
    """All rows of several groupings of the same n people, each with all its owners."""
    people = groupings[0].rows.people
    flat = [each.owners.materialize().people for each in groupings]
    owned = [np.repeat(np.arange(len(each.rows)), each.owners.sizes) for each in groupings]
    shift = np.cumsum([0, *(len(each.rows) for each in groupings)])
    owner = np.concatenate(flat).astype(np.int64)
    row = np.concatenate([which + before for which, before in zip(owned, shift, strict=False)])
    if all(each.contiguous and np.array_equal(each.rows.people, people) for each in groupings):
        starts, stops = (
            np.concatenate([getattr(each.rows, end) for each in groupings]) for end in ("starts", "stops")
        )
        joined = distinct_windows(people, starts[row], stops[row], owner)
    else:
        refuse_beyond_memory(sum(each.rows.entries for each in groupings))
        joined = distinct_rows(Ranges.concatenate([each.rows.materialize() for each in groupings]), owner, row, n=n)
    return joined._replace(dropped=sum(each.dropped for each in groupings))


# Atoms: people whom no group tells apart, so that their order among themselves is free.
#
# .. math:: i \sim j \iff \{G : i \in G\} = \{G : j \in G\} \ne \emptyset


Codes = Places  # (n,), 0.. without gaps


def atoms(rows: Ranges, n: int, *, contiguous: bool) -> Codes:
    """Atom of each of n people, numbered 0.. in the order of their first member; see `Groups.atoms`.

    `contiguous` rows are windows of a list of everybody. O(members of all rows), or O(n log n) for windows.
    Fingerprints find the candidates, comparison confirms them.
    """
    same = _of_windows(rows, n) if contiguous else first_equal_rows(rows.transpose(n))
    alone = np.flatnonzero(~rows.mask(n))
    same[alone] = alone
    leads = np.asarray(same == np.arange(n))
    return np.asarray((np.cumsum(leads) - 1)[same])


def _of_windows(rows: Ranges, n: int) -> Places:
    """First member of the run of each person; a run ends where a window begins or ends."""
    cut = np.zeros(n + 1, dtype=np.bool_)
    cut[rows.starts] = cut[rows.stops] = cut[0] = True
    run = np.cumsum(cut[:n]) - 1
    first = np.full(int(run[-1]) + 1, n, dtype=np.int64)
    np.minimum.at(first, run, rows.people)
    same = np.empty(n, dtype=np.int64)
    same[rows.people] = first[run]
    return same


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
        return cls(codes.size, *label_windows(codes, first, last))

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
            return cls(len(given), *one_row_each(distances.within(given, reach, metric)))
        if metric == "haversine":
            given, reach = distances.on_sphere(given), distances.chord(reach)
        p = distances.NORMS.get(metric, 2.0)
        if given.shape[1] == 1 and isinstance(reach, float):
            return cls.from_labels(given[:, 0], reach)
        if isinstance(reach, float):
            rows, site = neighbours.balls(given, reach, p)
            return cls(len(given), *distinct_rows(rows, np.arange(len(given)), site, n=len(given)))
        if given.shape[1] == 1:
            return cls(len(given), *own_windows(given[:, 0], reach))
        return cls(len(given), *one_row_each(neighbours.own_balls(given, reach, p)))

    @classmethod
    def nearest(cls, points: ArrayLike, k: int) -> Groups:
        """For each person the k nearest people, the person included; equal distances go by index."""
        given = neighbours.check_points(points)
        neighbours.refuse_vanishing(given)
        return cls(len(given), *one_row_each(neighbours.nearest(given, k)))

    @classmethod
    def from_graph(cls, edges: Any, *, hops: int = 1, n: int | None = None, closed: bool = True) -> Groups:
        """For each person everybody within `hops` steps of an undirected public network, the person included.

        `edges` is an array of pairs (m, 2), a square scipy sparse matrix (entries other than 0 are edges) or a
        networkx graph with nodes 0..n-1. `closed=False` leaves the owner out: such a group promises that its
        members look alike, and nothing about the owner.
        """
        pairs, people = graph.check_edges(edges, n)
        rows = graph.neighbourhoods(pairs, people, hops=hops, closed=closed)
        return cls(people, *one_row_each(rows))

    @classmethod
    def union(cls, *groupings: Groups) -> Groups:
        """All groups of several groupings of the same people: each promise is kept."""
        if not groupings or any(other.n != groupings[0].n for other in groupings):
            got = ", ".join(f"{other.n:,}" for other in groupings) or "none"
            raise DataError(f"`groupings` must be at least one grouping, all of the same people, got n = {got}.")
        rows = [DistinctRows(other.rows, other.owners, other.dropped, other.contiguous) for other in groupings]
        return cls(groupings[0].n, *union(groupings[0].n, rows))

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
        return cls(n, *distinct_rows(rows, people[(np.cumsum(sizes) - sizes)[some]], some, n=n))

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
        """Mark the people who are in a group (n,)."""
        return self.rows.mask(self.n)

    @property
    def disjoint(self) -> bool:
        """True if no person is in two groups."""
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
        """True where every owner of a group is one of its members (groups,)."""
        owners, rows = self.owners.materialize(), self.rows
        held = rows_hold_owners(
            rows.people, rows.starts, rows.stops, owners.people, owners.starts, owners.stops, self.n, self.contiguous
        )
        return np.asarray(held)

    def covers(self, other: object) -> bool:
        """True if every group of `other` lies inside a group of this grouping."""
        if not isinstance(other, Groups) or other.n != self.n or other.largest > self.largest:
            return False
        inside = covers_by_window if self.contiguous else covers_by_member
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

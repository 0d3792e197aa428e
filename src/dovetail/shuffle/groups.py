"""Groups: sets of people inside which the released order must tell (almost) nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import chain

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import whole
from dovetail.core.entropy import Permutation
from dovetail.core.errors import DataError
from dovetail.shuffle import connect, cover, near
from dovetail.shuffle.ranges import Places, Ranges, refuse_beyond_memory


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
    lined : bool
        Whether `rows.people` lists everybody once, so that every group is contiguous in that public order.

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
    lined: bool

    @classmethod
    def from_labels(cls, labels: ArrayLike, radius: float | None = None) -> Groups:
        """People with equal labels, or with number labels at most `radius` apart; missing labels are refused."""
        codes, values = near.coded(labels)
        each = np.arange(values.size)
        first, last = (each, each + 1) if radius is None else near.windows(values, radius)
        people = np.argsort(codes, kind="stable").astype(np.int32)
        ends = np.cumsum(np.bincount(codes, minlength=values.size))
        begins = ends - np.diff(ends, prepend=0)
        # windows are monotone in the label: equal ones are neighbours
        new = np.flatnonzero(np.diff(first, prepend=-1) | np.diff(last, prepend=-1))
        rows = Ranges(people, begins[first[new]], ends[last[new] - 1])
        owners = Ranges(people, begins[new], ends[np.append(new[1:], values.size) - 1])
        keep = rows.sizes >= 2
        return cls(codes.size, rows.take(keep), owners.take(keep), int((~keep).sum()), lined=True)

    @classmethod
    def within_radius(cls, points: ArrayLike, radius: float) -> Groups:
        """For each person everybody within Euclidean distance `radius`; points are coordinates (n,) or (n, d)."""
        given = near.checked_points(points)
        if given.shape[1] == 1:
            return cls.from_labels(given[:, 0], radius)
        rows, site = near.balls(given, radius)
        return _distinct(rows, np.arange(len(given)), site, n=len(given))

    @classmethod
    def nearest(cls, points: ArrayLike, k: int) -> Groups:
        """For each person the k nearest people, the person included; equal distances go by index."""
        given = near.checked_points(points)
        everybody = np.arange(len(given))
        return _distinct(near.nearest(given, k), everybody, everybody, n=len(given))

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
        return _distinct(rows, people[(np.cumsum(sizes) - sizes)[some]], some, n=n)

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
        return self.rows.people.astype(np.int64) if self.lined else None

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
        return connect.spans(self.rows, self.n) if self.lined else connect.components(self.rows, self.n)

    def covers(self, other: object) -> bool:
        """Whether every group of `other` lies inside a group of this grouping."""
        if not isinstance(other, Groups) or other.n != self.n or other.largest > self.largest:
            return False
        inside = cover.by_window if self.lined else cover.by_member
        return self == other or inside(self.rows, other.rows, self.n)

    @cached_property
    def _digest(self) -> bytes:
        table = np.column_stack((self.sizes.astype(np.uint64), self.rows.prints()))
        return sha256(np.ascontiguousarray(table[np.lexsort(table.T)]).tobytes()).digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Groups) and self.n == other.n and self._digest == other._digest

    def __hash__(self) -> int:
        return hash((self.n, self._digest))

    def __repr__(self) -> str:
        return f"Groups(n={self.n:,}, groups={len(self):,}, largest={self.largest:,})"


def _distinct(rows: Ranges, owner: ArrayLike, owned: ArrayLike, *, n: int) -> Groups:
    """Groups from rows that list each person once, and (owner, row) pairs; identical rows become one."""
    same = connect.twins(rows)
    first = same == np.arange(len(rows))
    keep = first & (rows.sizes >= 2)
    number = np.where(keep, np.cumsum(keep) - 1, -1)[same]
    groups = number[np.asarray(owned)]
    owners = Ranges.compress(groups[groups >= 0], np.asarray(owner)[groups >= 0], shape=(int(keep.sum()), n))
    return Groups(n, rows.take(keep).listed(), owners, int((first & ~keep).sum()), lined=False)

"""The shuffler inside disjoint groups: each group is shuffled uniformly, and nothing leaves its group."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.special import gammaln

from dovetail.core.entropy import Entropy, Permutation
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.core.guarantee import OrderPrivacy
from dovetail.core.stages import PublicData
from dovetail.shuffle.fitting.components import FitProvenance
from dovetail.shuffle.fitting.fitted_shuffler import FittedShuffler, check_present, restrict_groups
from dovetail.shuffle.fitting.groups import Groups, need_groups
from dovetail.shuffle.fitting.ranges import Places
from dovetail.shuffle.sampling.permutations import (
    Labels,
    Mixing,
    check_labels,
    check_permutation,
    normalize_rows,
    permute_within_blocks,
)

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class WithinGroups(FittedShuffler):
    r"""A uniform shuffle inside each of disjoint groups; nothing leaves its group, people in no group stay in place.

    .. math:: \Pr[\sigma] = \prod_{G} 1 / |G|! \quad \text{for } \sigma \text{ that maps every } G \text{ to itself}

    For disjoint groups nothing is better: alpha = 0, and every count of a group survives exactly.

    Parameters
    ----------
    groups : Groups, disjoint
    provenance : FitProvenance
        How it came about.

    Raises
    ------
    UnsupportedError
        For groups that overlap; Mallows serves those.

    Examples
    --------
    >>> shuffler = WithinGroups(Groups.from_labels(["a", "b", "a", "b"]))
    >>> batch = shuffler.shuffle([1, 2, 3, 4])
    >>> set(batch[[0, 2]].tolist()) == {1, 3}, shuffler.guarantee.alpha
    (True, 0.0)
    """

    name: ClassVar[str] = "within_groups"
    drawn_by_labels: ClassVar[bool] = True
    label: ClassVar[str] = "uniform shuffle inside each group"
    needs_alpha: ClassVar[bool] = False
    groups: Groups
    provenance: FitProvenance = field(default_factory=FitProvenance, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not need_groups(self.groups).disjoint:
            twice = self.groups.rows.entries - int(self.groups.grouped.sum())
            raise UnsupportedError(
                f"A uniform shuffle inside each group needs disjoint groups; these overlap ({twice:,} memberships "
                "too many). Use Mallows, which bounds what the order tells inside overlapping groups."
            )

    @classmethod
    def fit(cls, groups: Groups, *, alpha: float | None = None) -> Self:
        """The shuffle inside these groups; it keeps alpha = 0, whatever is asked."""
        return cls(groups)

    @classmethod
    def by(cls, *columns: str) -> Callable[[pl.DataFrame], WithinGroups]:
        """The shuffle inside groups of people who have the same public columns, as `Collection.of` takes it.

        >>> import polars as pl
        >>> shuffler = WithinGroups.by("age")(pl.DataFrame({"age": [20, 30, 20, 30, 30]}))
        >>> shuffler.groups.sizes.tolist()
        [2, 3]
        """
        if not columns:
            raise ParameterError("`columns` must name at least one public column.")

        def fit(public: pl.DataFrame) -> WithinGroups:
            if gone := [one for one in columns if one not in public.columns]:
                raise ParameterError(f"`columns` must be public columns, got {', '.join(map(repr, gone))}.")
            return cls(Groups.from_labels([repr(row) for row in public.select(columns).rows()]))

        return fit

    @classmethod
    def from_public(cls, public: PublicData, *, alpha: float | None = None, **settings: Any) -> Self:
        return cls(public.groups)

    def uniform_blocks(self) -> Labels:
        component = self.groups.components()
        return np.where(component < 0, -1 - np.arange(self.n), component)  # alone, each by itself

    def exact_alpha(self, groups: Groups) -> float:
        return 0.0 if self.groups.covers(groups) else math.inf

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of people."""
        return self.groups.n

    @property
    def guarantee(self) -> OrderPrivacy:
        source = "uniform inside each of disjoint groups: the law is invariant under every reordering of a group"
        return self.provenance.guarantee(0.0, self.groups, source)

    def restrict(self, present: ArrayLike) -> Self:
        """The shuffle inside what is left of the groups when only some people are `present` (n,), in their order."""
        groups, _, provenance = restrict_groups(self.groups, check_present(present, self.n), self.provenance)
        return type(self)(groups, provenance)

    def _permutation(self, rng: Entropy) -> Permutation:
        flat = self.groups.rows.materialize()
        result = np.arange(self.n, dtype=np.int64)
        result[flat.people] = flat.people[permute_within_blocks(np.append(0, flat.stops), rng)]
        return result

    def log_weight(self, permutation: ArrayLike) -> float:
        home = self._home()
        given = check_permutation(permutation, self.n)
        if (home[given] != home).any():
            return -math.inf
        return -float(gammaln(self.groups.sizes + 1.0).sum())

    def mixing(self, labels: Labels) -> Mixing:
        codes = check_labels(labels, self.n)
        home = self._home()
        size = np.bincount(home)
        seats = csr_array((np.ones(self.n), (home, codes)), shape=(size.size, int(codes.max()) + 1))
        return normalize_rows(np.asarray((seats.T @ seats.multiply(1 / size[:, None]).tocsr()).todense()))

    def summary(self) -> dict[str, Any]:
        groups = self.groups
        return {
            "shuffler": self.name,
            "n": self.n,
            "alpha": 0.0,
            "components": len(groups),
            "largest_group": groups.largest,
            "groups": len(groups),
            "ungrouped": int((~groups.grouped).sum()),
        } | self.provenance.summary()

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (
            cls(Groups.from_lists([[3, 0], [4, 2]], 5)),
            cls(Groups.from_labels([2, 1, 2, 1, 2])),
            cls(Groups.from_lists([], 3)),
        )

    def _home(self) -> Places:
        """Number (n,) of each person's group; people in no group have one of their own."""
        flat = self.groups.rows.materialize()
        result = len(flat) + np.arange(self.n)
        result[flat.people] = np.repeat(np.arange(len(flat)), flat.sizes)
        return np.unique(result, return_inverse=True)[1].reshape(-1).astype(np.int64)

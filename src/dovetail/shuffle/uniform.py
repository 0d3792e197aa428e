"""Shufflers without a dial: nothing moves, everything moves, or everything moves inside disjoint groups."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.special import gammaln

from dovetail.core.checks import whole
from dovetail.core.entropy import Entropy, Permutation
from dovetail.core.errors import UnsupportedError
from dovetail.core.guarantee import OrderPrivacy
from dovetail.core.stages import Shuffler
from dovetail.shuffle.fitting.fit_provenance import Plan
from dovetail.shuffle.fitting.missing_people import checked_present, restrict_groups
from dovetail.shuffle.groups.groups import Groups
from dovetail.shuffle.groups.ranges import Places
from dovetail.shuffle.sampling.permutations import Labels, Mixing, checked, checked_labels, shares
from dovetail.shuffle.sampling.within_blocks import uniform_inside


@dataclass(frozen=True)
class Identity(Shuffler):
    """Releases the batch in the order it came in: protects nobody's place.

    Parameters
    ----------
    n : int, at least 1
    """

    name: ClassVar[str] = "identity"
    n: int

    def __post_init__(self) -> None:
        whole("n", self.n, least=1)

    @classmethod
    def fit(cls, groups: Groups, *, alpha: float | None = None) -> Self:
        """The identity for as many people; no alpha can be kept, and the guarantee says so."""
        return cls(groups.n)

    @property
    def guarantee(self) -> OrderPrivacy:
        return OrderPrivacy(math.inf, None, source="the order is released as it is: nothing is promised")

    def _permutation(self, rng: Entropy) -> Permutation:
        return np.arange(self.n, dtype=np.int64)

    def restrict(self, present: ArrayLike) -> Self:
        """The identity for the people that are `present` (n,)."""
        return type(self)(int(checked_present(present, self.n).sum()))

    def log_weight(self, permutation: ArrayLike) -> float:
        return 0.0 if (checked(permutation, self.n) == np.arange(self.n)).all() else -math.inf

    def mixing(self, labels: Labels) -> Mixing:
        return np.eye(int(checked_labels(labels, self.n).max()) + 1)

    def summary(self) -> dict[str, Any]:
        return {"shuffler": self.name, "n": self.n, "alpha": math.inf}

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(1), cls(4))


@dataclass(frozen=True)
class Uniform(Shuffler):
    r"""Every order with the same probability: the shuffler of the amplification theorems.

    .. math:: \Pr[\sigma] = 1 / n!

    Parameters
    ----------
    n : int, at least 1
    """

    name: ClassVar[str] = "uniform"
    n: int

    def __post_init__(self) -> None:
        whole("n", self.n, least=1)

    @classmethod
    def fit(cls, groups: Groups, *, alpha: float | None = None) -> Self:
        """The uniform shuffle of as many people; it keeps alpha = 0, whatever is asked."""
        return cls(groups.n)

    @property
    def guarantee(self) -> OrderPrivacy:
        return OrderPrivacy(0.0, None, source="uniform over all orders: the law is invariant under every reordering")

    def _permutation(self, rng: Entropy) -> Permutation:
        return rng.permutation(self.n)

    def restrict(self, present: ArrayLike) -> Self:
        """The uniform shuffle of the people that are `present` (n,)."""
        return type(self)(int(checked_present(present, self.n).sum()))

    def log_weight(self, permutation: ArrayLike) -> float:
        checked(permutation, self.n)
        return -float(gammaln(self.n + 1.0))

    def mixing(self, labels: Labels) -> Mixing:
        counts = np.bincount(checked_labels(labels, self.n)).astype(np.float64)
        return shares(np.outer(counts, counts))

    def summary(self) -> dict[str, Any]:
        return {"shuffler": self.name, "n": self.n, "alpha": 0.0}

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(1), cls(4))


@dataclass(frozen=True)
class WithinGroups(Shuffler):
    r"""A uniform shuffle inside each of disjoint groups; nothing leaves its group, people in no group stay in place.

    .. math:: \Pr[\sigma] = \prod_{G} 1 / |G|! \quad \text{for } \sigma \text{ that maps every } G \text{ to itself}

    For disjoint groups nothing is better: alpha = 0, and every count of a group survives exactly.

    Parameters
    ----------
    groups : Groups, disjoint
    plan : Plan
        How it came about.

    Raises
    ------
    UnsupportedError
        For groups that overlap; Mallows serves those.
    """

    name: ClassVar[str] = "within_groups"
    groups: Groups
    plan: Plan = field(default_factory=Plan, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.groups.disjoint:
            twice = self.groups.rows.entries - int(self.groups.grouped.sum())
            raise UnsupportedError(
                f"A uniform shuffle inside each group needs disjoint groups; these overlap ({twice:,} memberships "
                "too many). Use Mallows, which bounds what the order tells inside overlapping groups."
            )

    @classmethod
    def fit(cls, groups: Groups, *, alpha: float | None = None) -> Self:
        """The shuffle inside these groups; it keeps alpha = 0, whatever is asked."""
        return cls(groups)

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of people."""
        return self.groups.n

    @property
    def guarantee(self) -> OrderPrivacy:
        source = "uniform inside each of disjoint groups: the law is invariant under every reordering of a group"
        return self.plan.promise(0.0, self.groups, source)

    def restrict(self, present: ArrayLike) -> Self:
        """The shuffle inside what is left of the groups when only some people are `present` (n,), in their order."""
        groups, _, plan = restrict_groups(self.groups, checked_present(present, self.n), self.plan)
        return type(self)(groups, plan)

    def _permutation(self, rng: Entropy) -> Permutation:
        flat = self.groups.rows.listed()
        result = np.arange(self.n, dtype=np.int64)
        result[flat.people] = flat.people[uniform_inside(np.append(0, flat.stops), rng)]
        return result

    def log_weight(self, permutation: ArrayLike) -> float:
        home = self._home()
        given = checked(permutation, self.n)
        if (home[given] != home).any():
            return -math.inf
        return -float(gammaln(self.groups.sizes + 1.0).sum())

    def mixing(self, labels: Labels) -> Mixing:
        codes = checked_labels(labels, self.n)
        home = self._home()
        size = np.bincount(home)
        seats = csr_array((np.ones(self.n), (home, codes)), shape=(size.size, int(codes.max()) + 1))
        return shares(np.asarray((seats.T @ seats.multiply(1 / size[:, None]).tocsr()).todense()))

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
        } | self.plan.facts()

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (
            cls(Groups.from_lists([[3, 0], [4, 2]], 5)),
            cls(Groups.from_labels([2, 1, 2, 1, 2])),
            cls(Groups.from_lists([], 3)),
        )

    def _home(self) -> Places:
        """Number (n,) of each person's group; people in no group have one of their own."""
        flat = self.groups.rows.listed()
        result = len(flat) + np.arange(self.n)
        result[flat.people] = np.repeat(np.arange(len(flat)), flat.sizes)
        return np.unique(result, return_inverse=True)[1].reshape(-1).astype(np.int64)

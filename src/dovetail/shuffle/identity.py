"""The identity shuffler: the batch keeps its order, and nobody's place is protected."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core.checks import whole
from dovetail.core.entropy import Entropy, Permutation
from dovetail.core.guarantee import OrderPrivacy
from dovetail.core.stages import PublicData
from dovetail.shuffle.fitting.fitted_shuffler import FittedShuffler, check_present
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.sampling.permutations import Labels, Mixing, check_labels, check_permutation


@dataclass(frozen=True)
class Identity(FittedShuffler):
    """Releases the batch in the order it came in: protects nobody's place.

    Parameters
    ----------
    n : int, at least 1

    Raises
    ------
    ParameterError
        For an n that is no whole number, at least 1.
    DataError
        From `shuffle`, for another number of reports.

    Examples
    --------
    >>> Identity(3).shuffle([5, 6, 7]).tolist(), Identity(3).guarantee.protects
    ([5, 6, 7], False)
    """

    name: ClassVar[str] = "identity"
    label: ClassVar[str] = "no shuffle"
    needs_groups: ClassVar[bool] = False
    needs_alpha: ClassVar[bool] = False
    drawn_by_labels: ClassVar[bool] = True
    moves_reports: ClassVar[bool] = False
    n: int

    def __post_init__(self) -> None:
        whole("n", self.n, least=1)

    @classmethod
    def fit(cls, groups: Groups, *, alpha: float | None = None) -> Self:
        """The identity for as many people; no alpha can be kept, and the guarantee says so."""
        return cls(groups.n)

    @classmethod
    def from_public(cls, public: PublicData, *, alpha: float | None = None, **settings: Any) -> Self:
        return cls(public.n)

    def uniform_blocks(self) -> Labels:
        return np.arange(self.n)

    @property
    def smallest_block(self) -> int:
        return 1

    def exact_alpha(self, groups: Groups) -> float:
        return math.inf

    @property
    def guarantee(self) -> OrderPrivacy:
        return OrderPrivacy(math.inf, None, source="the order is released as it is: nothing is promised")

    def _permutation(self, rng: Entropy) -> Permutation:
        return np.arange(self.n, dtype=np.int64)

    def restrict(self, present: ArrayLike) -> Self:
        """The identity for the people that are `present` (n,)."""
        return type(self)(int(check_present(present, self.n).sum()))

    def log_weight(self, permutation: ArrayLike) -> float:
        return 0.0 if (check_permutation(permutation, self.n) == np.arange(self.n)).all() else -math.inf

    def mixing(self, labels: Labels) -> Mixing:
        return np.eye(int(check_labels(labels, self.n).max()) + 1)

    def summary(self) -> dict[str, Any]:
        return {"shuffler": self.name, "n": self.n, "alpha": math.inf}

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(1), cls(4))

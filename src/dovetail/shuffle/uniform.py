"""The uniform shuffler: every order has the same probability, as the amplification theorems assume."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from dovetail.core.checks import whole
from dovetail.core.entropy import Entropy, Permutation
from dovetail.core.guarantee import OrderPrivacy
from dovetail.core.stages import PublicData
from dovetail.shuffle.fitting.components import FitProvenance
from dovetail.shuffle.fitting.fitted_shuffler import FittedShuffler, check_present
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.sampling.permutations import Labels, Mixing, check_labels, check_permutation, normalize_rows


@dataclass(frozen=True)
class Uniform(FittedShuffler):
    r"""Every order with the same probability: the shuffler of the amplification theorems.

    .. math:: \Pr[\sigma] = 1 / n!

    Parameters
    ----------
    n : int, at least 1
    provenance : FitProvenance
        How it came about.

    Raises
    ------
    ParameterError
        For an n that is no whole number, at least 1.
    DataError
        From `shuffle`, for another number of reports.

    Examples
    --------
    >>> Uniform(3).guarantee
    OrderPrivacy: alpha 0 for everybody
    """

    name: ClassVar[str] = "uniform"
    drawn_by_labels: ClassVar[bool] = True
    label: ClassVar[str] = "uniform shuffle"
    needs_groups: ClassVar[bool] = False
    needs_alpha: ClassVar[bool] = False
    n: int
    provenance: FitProvenance = field(default_factory=FitProvenance, repr=False, compare=False)

    def __post_init__(self) -> None:
        whole("n", self.n, least=1)

    @classmethod
    def fit(cls, groups: Groups, *, alpha: float | None = None) -> Self:
        """The uniform shuffle of as many people; it keeps alpha = 0, whatever is asked."""
        return cls(groups.n)

    @classmethod
    def from_public(cls, public: PublicData, *, alpha: float | None = None, **settings: Any) -> Self:
        return cls(public.n)

    @property
    def keeps_places(self) -> bool:
        return False

    def uniform_blocks(self) -> Labels:
        return np.zeros(self.n, dtype=np.int64)

    @property
    def smallest_block(self) -> int:
        return self.n

    def exact_alpha(self, groups: Groups) -> float:
        return 0.0

    @property
    def guarantee(self) -> OrderPrivacy:
        return OrderPrivacy(0.0, None, source="uniform over all orders: the law is invariant under every reordering")

    def _permutation(self, rng: Entropy) -> Permutation:
        return rng.permutation(self.n)

    def restrict(self, present: ArrayLike) -> Self:
        """The uniform shuffle of the people that are `present` (n,)."""
        return type(self)(int(check_present(present, self.n).sum()), self.provenance)

    def log_weight(self, permutation: ArrayLike) -> float:
        check_permutation(permutation, self.n)
        return -float(gammaln(self.n + 1.0))

    def mixing(self, labels: Labels) -> Mixing:
        counts = np.bincount(check_labels(labels, self.n)).astype(np.float64)
        return normalize_rows(np.outer(counts, counts))

    def summary(self) -> dict[str, Any]:
        why = {"reason": self.provenance.reason} if self.provenance.reason else {}
        return {"shuffler": self.name, "n": self.n, "alpha": 0.0, **why}

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(1), cls(4))

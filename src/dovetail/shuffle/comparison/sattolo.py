"""Sattolo's cyclic shuffle, which protects nobody: kept to show what the RASE paper's auxiliary shuffler does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from dovetail.core.checks import whole
from dovetail.core.entropy import Entropy, Permutation
from dovetail.core.guarantee import OrderPrivacy
from dovetail.core.stages import PublicData, Shuffler
from dovetail.shuffle.fitting.missing_people import check_present
from dovetail.shuffle.sampling.permutations import Labels, Mixing, check_labels, check_permutation, normalize_rows

UNPROTECTED = (
    "Sattolo's loop never leaves anybody in place: some orders are possible before a reordering and impossible after "
    "it, so alpha is infinite (Theorem 3 of the RASE paper does not hold); two people always swap"
)


@dataclass(frozen=True)
class Sattolo(Shuffler):
    r"""For reproducing the RASE paper only: a uniform cyclic permutation, without any order privacy.

    .. math:: \Pr[\sigma] = \frac{1}{(n - 1)!} \quad \text{for } \sigma \text{ with a single cycle, otherwise } 0

    The auxiliary shuffler as printed swaps i = 1..n-1 with a uniform j in {i+1..n}, which is Sattolo's algorithm.
    With j in {i..n} it is Fisher and Yates', which `Uniform` draws. Use that one.

    Parameters
    ----------
    n : int, at least 2

    Examples
    --------
    >>> from dovetail.core.entropy import system_entropy
    >>> Sattolo(2).permutation(system_entropy())
    array([1, 0])
    >>> Sattolo(2).guarantee.protects
    False

    Source
    ------
    Wang, Tao, Zou, RASE, Algorithm 2, lines 12-15; Sattolo (1986), An Algorithm to Generate a Random Cyclic
    Permutation, Information Processing Letters 22(6).
    """

    name: ClassVar[str] = "sattolo"
    n: int

    def __post_init__(self) -> None:
        whole("n", self.n, least=2)

    @classmethod
    def from_public(cls, public: PublicData, *, alpha: float | None = None, **settings: Any) -> Self:
        return cls(public.n)

    @property
    def guarantee(self) -> OrderPrivacy:
        return OrderPrivacy(math.inf, None, source="nothing is promised", caveats=(UNPROTECTED,))

    def _permutation(self, rng: Entropy) -> Permutation:
        around = rng.permutation(self.n)  # each cycle is written in n ways, so cycles stay equally likely
        result = np.empty(self.n, dtype=np.int64)
        result[around] = np.roll(around, -1)
        return result

    def restrict(self, present: ArrayLike) -> Self:
        """The cyclic shuffle of the people that are `present` (n,)."""
        return type(self)(int(check_present(present, self.n).sum()))

    def log_weight(self, permutation: ArrayLike) -> float:
        given = check_permutation(permutation, self.n)
        person, steps = int(given[0]), 1
        while person != 0:
            person, steps = int(given[person]), steps + 1
        return -float(gammaln(self.n)) if steps == self.n else -math.inf

    def mixing(self, labels: Labels) -> Mixing:
        counts = np.bincount(check_labels(labels, self.n)).astype(np.float64)
        return normalize_rows(np.outer(counts, counts) - np.diag(counts))

    def summary(self) -> dict[str, Any]:
        return {"shuffler": self.name, "n": self.n, "alpha": math.inf, "warning": UNPROTECTED}

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(2), cls(4))

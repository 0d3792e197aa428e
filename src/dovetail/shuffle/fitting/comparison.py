"""Orders for comparison alone, which protect no one: Mallows laws of other distances, and Sattolo's shuffle."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp

from dovetail.core.checks import not_negative_or_infinite, whole
from dovetail.core.entropy import Entropy, Permutation, entropy_or_system
from dovetail.core.guarantee import OrderPrivacy
from dovetail.core.stages import PublicData, Shuffler
from dovetail.shuffle.fitting.fitted_shuffler import check_present
from dovetail.shuffle.sampling.permutations import Labels, Mixing, check_labels, check_permutation, normalize_rows

# Mallows laws under Cayley's and Hamming's distance, for comparison studies only: nothing else may use them.
#
# .. math:: \Pr[\kappa] \propto e^{-\theta d(\kappa)}
#
# Their sensitivities g - 1 and g do not depend on a reference order, so nothing is gained from neighbours: to keep
# half of 10,000 people in place at groups of 30, Hamming needs alpha of about 256.
#
# Source
# ------
# Irurozki, Calvo, Lozano (2016), PerMallows: An R Package for Mallows and Generalized Mallows Models, Journal of
# Statistical Software 71(12).


Logs = NDArray[np.float64]


def cayley_mallows(n: int, theta: float, rng: Entropy | None = None) -> Permutation:
    """A draw by n - 1 independent choices: i stays with probability e^theta / (e^theta + i), else swaps with a j < i.

    Double precision: for studies, not for a promise.
    """
    rng = entropy_or_system(rng)
    n, theta = whole("n", n, least=1), not_negative_or_infinite("theta", theta)
    result = np.arange(n, dtype=np.int64)
    moves = _uniform(n, rng) * (1.0 + np.arange(n) * math.exp(-theta)) >= 1.0
    partners = (_uniform(n, rng) * np.arange(n)).astype(np.int64)
    for i in np.flatnonzero(moves):
        result[i], result[partners[i]] = result[partners[i]], result[i]
    return result


def hamming_mallows(n: int, theta: float, rng: Entropy | None = None) -> Permutation:
    """A draw by the number h of people who move, with weight C(n, h) D_h e^(-theta h), who they are, and how.

    Double precision: for studies, not for a promise.
    """
    rng = entropy_or_system(rng)
    n, theta = whole("n", n, least=1), not_negative_or_infinite("theta", theta)
    weights = hamming_weights(n, theta)
    total = np.cumsum(np.exp(weights - weights.max()))
    h = int(np.searchsorted(total, _uniform(1, rng)[0] * total[-1], side="right"))
    movers = np.sort(rng.permutation(n)[:h])
    result = np.arange(n, dtype=np.int64)
    while h:
        mixed = rng.permutation(h)  # a uniform derangement by rejection, after e attempts on average
        if (mixed != np.arange(h)).all():
            result[movers] = movers[mixed]
            break
    return result


def hamming_weights(n: int, theta: float) -> Logs:
    r"""log(C(n, h) D_h) - theta h for h = 0..n; D_h = h! sum (-1)^i / i! counts derangements."""
    h = np.arange(n + 1)
    signs = np.where(np.arange(n + 1) % 2, -1.0, 1.0) * np.exp(-gammaln(np.arange(n + 1) + 1.0))
    with np.errstate(divide="ignore"):
        derangements = np.log(np.maximum(np.cumsum(signs), 0.0))  # D_h / h!
    derangements[1:2] = -math.inf
    return np.asarray(gammaln(n + 1.0) - gammaln(n - h + 1.0) + derangements - theta * h)


def cayley_log_normalizer(n: int, theta: float) -> float:
    """log of the product of 1 + i e^-theta over i = 1..n-1."""
    return float(np.log1p(np.arange(1, n) * math.exp(-theta)).sum())


def hamming_log_normalizer(n: int, theta: float) -> float:
    """log of the sum of the weights."""
    return float(logsumexp(hamming_weights(n, theta)))


def _uniform(count: int, rng: Entropy) -> Logs:
    """Uniform doubles in [0, 1)."""
    return np.asarray((rng.words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53)


# Sattolo's cyclic shuffle, which protects nobody: kept to show what the RASE paper's auxiliary shuffler does.


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

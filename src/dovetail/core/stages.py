"""The stages of a collection and the laws that every implementation keeps.

Randomizers, shufflers and estimators are frozen values: data and randomness are arguments. The same object lives
on the device and at the analyst. Randomness is the operating system's unless `simulation(seed)` is passed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.channel import Channel
from dovetail.core.entropy import Entropy, Permutation, entropy_or_system
from dovetail.core.errors import DataError
from dovetail.core.estimate import Estimate, Tally
from dovetail.core.guarantee import LocalDP, OrderPrivacy

Reports = NDArray[Any]  # (n,) or (n, width): one row per person
Labels = NDArray[np.int64]  # (n,), 0..g-1


class Randomizer(ABC):
    """Turns one person's value into one report.

    Laws: reports of different people are independent; `guarantee` holds for the realized integer thresholds, not
    for idealized probabilities; the law of a report is exactly the published channel or log density.
    """

    name: ClassVar[str]

    @property
    @abstractmethod
    def guarantee(self) -> LocalDP:
        """What one report promises."""

    @final
    def randomize(self, values: ArrayLike, rng: Entropy | None = None) -> Reports:
        """Reports for `values`, in the same order; values outside the domain raise DataError."""
        return self._randomize(values, entropy_or_system(rng))

    @abstractmethod
    def _randomize(self, values: ArrayLike, rng: Entropy) -> Reports:
        """`randomize` with the randomness that it is to use."""

    @classmethod
    @abstractmethod
    def examples(cls) -> tuple[Self, ...]:
        """Small instances on which the laws are tested."""


class FrequencyRandomizer(Randomizer):
    """A randomizer of one of k symbols, coded 0..k-1.

    Laws: `tally` ignores order and adds over concatenation; `invert(tally)` is unbiased for the shares of the
    symbols among exactly these people; its variance per report is `variance(shares)`.
    """

    k: int

    @abstractmethod
    def channel(self) -> Channel:
        """The law of one report given the value; refuses where it would be too large to hold."""

    @abstractmethod
    def tally(self, reports: Reports) -> NDArray[np.int64]:
        """Counts that are enough for estimation: (width,)."""

    @abstractmethod
    def invert(self, counts: NDArray[Any], n: Any) -> NDArray[np.float64]:
        """Unbiased shares (.., k) from counts (.., width) of n (..) reports."""

    @abstractmethod
    def variance(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """n Var[invert] (.., k) for people whose true shares are `shares` (.., k), fixed."""

    @abstractmethod
    def check_reports(self, reports: ArrayLike) -> Reports:
        """`reports` as a valid array; DataError with the first offenders otherwise."""


class NumericRandomizer(Randomizer):
    """A randomizer of one number in [lower, upper] on a public grid; a report is a whole number of grid steps.

    Laws: `decode(report)` is unbiased for the value rounded to the grid; `log_density` is its exact law.
    """

    lower: float
    upper: float

    @abstractmethod
    def log_density(self, report: ArrayLike, value: ArrayLike) -> NDArray[np.float64]:
        """Log probability of `report` given `value`."""

    @abstractmethod
    def decode(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Reports as numbers on the value's scale."""

    @property
    @abstractmethod
    def noise_variance(self) -> float:
        """Variance of the noise, in squared units of the value: an upper bound for a clamped report, decoded."""

    @property
    @abstractmethod
    def rounding(self) -> float:
        """Largest absolute difference between a value and its grid point."""


class Shuffler(ABC):
    """Reorders a batch of reports.

    Laws: z[i] = y[permutation[i]]; `log_weight` is the exact log probability of a permutation; shuffling never
    looks at the reports; `guarantee` holds for that law. Fitted shufflers are made from public data alone.
    """

    name: ClassVar[str]
    n: int

    @property
    @abstractmethod
    def guarantee(self) -> OrderPrivacy:
        """What the order of the released batch promises."""

    @final
    def permutation(self, rng: Entropy | None = None) -> Permutation:
        """A draw: place i receives the report of person permutation[i]."""
        return self._permutation(entropy_or_system(rng))

    @abstractmethod
    def _permutation(self, rng: Entropy) -> Permutation:
        """`permutation` with the randomness that it is to use."""

    @abstractmethod
    def log_weight(self, permutation: ArrayLike) -> float:
        """Log probability that `permutation` returns this permutation."""

    @abstractmethod
    def mixing(self, labels: Labels) -> NDArray[np.float64]:
        """Public expectation (g, g): share of the reports at places of group a that people of group b sent.

        Rows sum to 1. One minus the diagonal bounds the bias of a share read off at the places of a group.
        """

    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """What was fitted, in public numbers."""

    @classmethod
    @abstractmethod
    def examples(cls) -> tuple[Self, ...]:
        """Small instances on which the laws are tested."""

    @final
    def shuffle(self, reports: ArrayLike, rng: Entropy | None = None) -> Reports:
        """The batch in its released order; `reports` has one row per person (n, ..)."""
        batch = np.asarray(reports)
        if batch.ndim == 0 or len(batch) != self.n:
            got = "a single value" if batch.ndim == 0 else f"{len(batch):,}"
            raise DataError(f"`reports` must have {self.n:,} rows, as the shuffler was fitted for, got {got}.")
        return batch[self.permutation(rng)]


class Estimator(ABC):
    """Turns a batch into an estimate without looking at its order.

    Laws: `tally` is invariant under permutations and tally(a + b) = tally(a) + tally(b).
    """

    @abstractmethod
    def tally(self, reports: Reports) -> Tally:
        """Order-free summary."""

    @abstractmethod
    def solve(self, tally: Tally) -> Estimate:
        """The estimate with its standard error and n."""

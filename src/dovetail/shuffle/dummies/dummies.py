"""A shuffler that adds dummies: exact counts stay hidden in the number of dummies of each symbol."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import privacy_budget, rectangular, share, whole
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.shuffle.dummies.truncated_geometric import TruncatedGeometric

MOST_DUMMIES = 10**8


@final
@dataclass(frozen=True)
class Dummies:
    r"""What the shuffler adds to a batch: independently for each of the k symbols Z - s dummies too many or too few.

    .. math:: h_j = c_j + Z_j, \qquad \hat c_j = h_j - s, \qquad \Pr[Z = a] \propto t^{|a - s|}, \quad a = 0..2s

    The standard deviation of every count is that of Z, 2.8 at epsilon = 1 and delta = 1e-6, whatever the number of
    people, symbols and the count; local noise is not needed. **The shuffler must be trusted with more**: with the
    analyst it reads every answer. See `dovetail.account.dummies_guarantee` for what is promised against whom.

    Every symbol that can be reported needs dummies, also one that nobody holds: the k symbols are public and closed.
    Draw the dummies of a round once: two draws for one batch are two releases.

    Parameters
    ----------
    k : int, 2 to 2^24
        Number of symbols; reports are 0..k-1.
    epsilon : float, above 0, at most 700, nats
        Of one round.
    delta : float, above 0, below 1

    Raises
    ------
    ParameterError
        For parameters outside their ranges.
    DataError
        For reports that are no symbols, and for a batch that cannot hold these dummies.
    UnsupportedError
        From `add`, for more than 1e8 dummies.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> dummies = Dummies(k=3, epsilon=1.0, delta=1e-6)
    >>> batch = dummies.add([0] * 500 + [2] * 40, rng=simulation(1))
    >>> dummies.reach, dummies.counts(batch).round().tolist()
    (27, [499.0, -1.0, 40.0])

    Source
    ------
    docs/theory/accuracy.md, section B.
    """

    k: int
    epsilon: float
    delta: float
    noise: TruncatedGeometric = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole("k", self.k, least=2, most=1 << 24))
        object.__setattr__(self, "epsilon", privacy_budget("epsilon", self.epsilon))
        object.__setattr__(self, "delta", share("delta", self.delta))
        law = TruncatedGeometric.calibrated(epsilon=self.epsilon, delta=self.delta)
        object.__setattr__(self, "noise", law)

    @property
    def reach(self) -> int:
        """s: dummies of each symbol on average, and the most that a count is off."""
        return self.noise.reach

    @property
    def variance(self) -> float:
        """Of every estimated count."""
        return float(self.noise.variance)

    def add(self, reports: ArrayLike, rng: Entropy | None = None) -> NDArray[np.int64]:
        """`reports` (n,) and the dummies in uniform order; the dummies are drawn anew with each call."""
        rng = entropy_or_system(rng)
        batch = self._symbols(reports)
        if self.k * self.reach > MOST_DUMMIES:
            raise UnsupportedError(
                f"{self.k:,} symbols take {self.k * self.reach:,} dummies, more than {MOST_DUMMIES:,}: join symbols."
            )
        mixed = np.concatenate([batch, np.repeat(np.arange(self.k), self.noise.sample(self.k, rng))])
        return mixed[rng.permutation(mixed.size)]

    def counts(self, batch: ArrayLike) -> NDArray[np.float64]:
        """Unbiased numbers (k,) of people behind the symbols of a batch with dummies."""
        return np.bincount(self._symbols(batch), minlength=self.k).astype(np.float64) - self.reach

    def _symbols(self, reports: ArrayLike) -> NDArray[np.int64]:
        """`reports` (n,) as symbols; DataError for anything else."""
        batch = rectangular("reports", reports)
        whole_numbers = batch.ndim == 1 and (batch.dtype.kind in "iu" or batch.size == 0)
        if not whole_numbers or (batch.size and not (batch.min() >= 0 and batch.max() < self.k)):
            raise DataError(f"`reports` must be whole numbers in 0..{self.k - 1}, one for each person.")
        return batch.astype(np.int64)

    def people(self, size: int, n: int) -> int:
        """`n`, where a batch of `size` reports can be that of n people; DataError otherwise.

        Too small or too large a batch means that its shuffler adds other dummies than these, or none; a good batch is
        refused with probability below 1e-11 (Bernstein), and one without any dummies always.
        """
        mean, slack = self.k * self.reach, 27.0 * self.reach / 3.0
        reach = slack + math.sqrt(slack**2 + 54.0 * self.k * self.variance)
        least, most = max(1, math.floor(mean - reach)), min(2 * mean, math.ceil(mean + reach))
        if not n + least <= size <= n + most:
            raise DataError(
                f"a batch of {n:,} people has {n + least:,} to {n + most:,} reports with these dummies, got "
                f"{size:,}: its shuffler adds others, or none."
            )
        return n

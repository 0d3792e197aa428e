"""Where a person's report can stand, by the public law of the shuffle."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dovetail.attack.experiment.arrays import People
from dovetail.core.display.display import mute
from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.core.stages import Labels, Shuffler
from dovetail.shuffle.sampling.permutations import inverse

Rows = NDArray[np.float64]  # (n or m, columns)

MOST_SEATS = 50_000_000  # places of people in all draws that are kept: 200 MB
FEWEST_DRAWS = 8


class Seats(ABC):
    """The law of the place of each target's report, and of the sender at each place."""

    @abstractmethod
    def at_places(self, people: Rows, *, step: int = 1) -> Rows:
        """Expected row of whoever's report stands at every `step`-th place, from everybody's rows (n, d)."""

    @abstractmethod
    def at_targets(self, places: Rows) -> Rows:
        """Expected row (m, d) at the place of each target's report, from the rows of all places (n, d)."""

    @property
    def draws(self) -> int | None:
        """Orders that were drawn; None where the law is exact."""
        return None

    @property
    @abstractmethod
    def certainty(self) -> NDArray[np.float64]:
        """How far (m,) `at_targets` is to be believed: 1 if exact, towards 0 where draws scatter."""

    def first(self, draws: int) -> Seats:
        """The same by the first draws alone, where it is by draws."""
        return self

    @abstractmethod
    def halves(self) -> tuple[Seats, Seats]:
        """Two of these that share no draw; twice the same where nothing was drawn."""


def seats_of(shuffler: Shuffler, targets: People, *, draws: int, rng: Entropy) -> Seats:
    """Exact where places are mixed evenly in blocks; else from draws of the shuffler.

    Raises
    ------
    UnsupportedError
        For so many people that not even eight draws can be kept.
    """
    blocks = shuffler.uniform_blocks()
    if blocks is not None:
        return EvenBlocks(np.unique(blocks, return_inverse=True)[1], targets)
    fewer = min(draws, MOST_SEATS // shuffler.n)
    if fewer < FEWEST_DRAWS:
        raise UnsupportedError(
            f"the places of {shuffler.n:,} people in {FEWEST_DRAWS} orders exceed {MOST_SEATS:,} cells"
        )
    senders = np.array([shuffler.permutation(rng) for _ in range(fewer)], dtype=np.int32)
    return DrawnOrders.of(senders, targets)


@dataclass(frozen=True, eq=False)
class EvenBlocks(Seats):
    """Inside a block each report is at each place with the same probability.

    Parameters
    ----------
    blocks : int array (n,), 0..g-1
    targets : int array (m,)
    """

    blocks: Labels
    targets: People

    def at_places(self, people: Rows, *, step: int = 1) -> Rows:
        return self._means(people)[self.blocks[::step]]

    def at_targets(self, places: Rows) -> Rows:
        return self._means(places)[self.blocks[self.targets]]

    def _means(self, rows: Rows) -> Rows:
        sums = np.array([np.bincount(self.blocks, column) for column in rows.T]).T
        return np.asarray(sums / np.bincount(self.blocks)[:, None])

    @property
    def certainty(self) -> NDArray[np.float64]:
        return np.ones(len(self.targets))

    def halves(self) -> tuple[Seats, Seats]:
        return self, self


@mute
@dataclass(frozen=True, eq=False)
class DrawnOrders(Seats):
    r"""Means over draws of the shuffler.

    A mean over S draws of something that varies from place to place has a share H of its variance in the law itself,
    and (1 - H) / S in the draws, H = sum_p Pr[p]^2 being the chance that two draws agree. The best linear estimate
    believes the mean by

    .. math:: \frac{H}{H + (1 - H) / S}

    with H from the pairs of draws that agree.

    Parameters
    ----------
    senders : int array (draws, n)
        Whose report stands at each place.
    seats : int array (draws, m)
        The place of each target's report.
    """

    senders: NDArray[np.int32]
    seats: NDArray[np.int32]

    @classmethod
    def of(cls, senders: NDArray[np.int32], targets: People) -> Self:
        """From the draws alone."""
        return cls(senders, np.array([inverse(row)[targets] for row in senders], dtype=np.int32))

    def at_places(self, people: Rows, *, step: int = 1) -> Rows:
        return np.asarray(sum(people[row[::step]] for row in self.senders) / len(self.senders))

    def at_targets(self, places: Rows) -> Rows:
        return np.asarray(sum(places[row] for row in self.seats) / len(self.seats))

    @property
    def draws(self) -> int | None:
        return len(self.senders)

    @property
    def certainty(self) -> NDArray[np.float64]:
        draws = len(self.seats)
        line = np.sort(self.seats, axis=0)
        agree, run = np.zeros(line.shape[1]), np.zeros(line.shape[1])
        for before, after in pairwise(line):
            run = np.where(before == after, run + 1, 0)
            agree += run
        known = agree / (draws * (draws - 1) / 2)
        return np.asarray(known / (known + (1.0 - known) / draws))

    def first(self, draws: int) -> Seats:
        return replace(self, senders=self.senders[:draws], seats=self.seats[:draws])

    def halves(self) -> tuple[Seats, Seats]:
        middle = len(self.seats) // 2
        return self.first(middle), replace(self, senders=self.senders[middle:], seats=self.seats[middle:])

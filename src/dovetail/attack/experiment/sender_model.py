"""Chances of who sent each report, by the public law of the shuffle, and of values, by what is publicly known."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from dovetail.attack.experiment.run_attack import People
from dovetail.core.display import mute
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.stages import Knowledge, Labels, Shuffler
from dovetail.estimate.frequency import project_shares
from dovetail.shuffle.sampling.permutations import inverse

# Where a person's report can stand, by the public law of the shuffle.


Rows = NDArray[np.float64]  # (n or m, columns)

MOST_SEATS = 50_000_000  # places of people in all draws that are kept: 200 MB
FEWEST_DRAWS = 8


class Seats(ABC):
    """The law of the place of each target's report, and of the sender at each place."""

    @abstractmethod
    def at_places(self, people: Rows, *, step: int = 1) -> Rows:
        """Expected row of the person whose report stands at every `step`-th place, from everybody's rows (n, d)."""

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


# Regression of reports on who can have sent them, shrunk by as much as the reports themselves ask for.


_SPREADS = np.concatenate(([0.0], np.geomspace(1e-7, 1e3, 41)))  # of the coefficients, in the noise's variance


@mute
@dataclass(frozen=True, eq=False)
class Regression:
    r"""Ridge regression on centred columns, its strength the likeliest one.

    .. math:: u_v = A \beta_v + \varepsilon, \qquad \beta_v \sim N(0, g \sigma_v^2 I),
              \quad \varepsilon \sim N(0, \sigma_v^2 I)

    g is common to all values and found on a grid by the marginal likelihood, sigma_v maximised out. Where the order
    tells nothing, g = 0 is likeliest: then everybody is average.

    Parameters
    ----------
    centre : float array (d,)
        Mean column of A.
    features : float array (n, d)
        A, centred.
    vectors : float array (d, d)
        Eigenvectors of A'A.
    values : float array (d,)
        Its eigenvalues.

    Source
    ------
    MacKay (1992), Bayesian interpolation, Neural Computation 4.
    """

    centre: NDArray[np.float64]
    features: Rows
    vectors: Rows
    values: NDArray[np.float64]

    @classmethod
    def on(cls, features: Rows) -> Self:
        """For the rows (n, d) of all places."""
        centre = features.mean(axis=0)
        centred = features - centre
        values, vectors = np.linalg.eigh(centred.T @ centred)
        return cls(centre, centred, vectors, np.maximum(values, 0.0))

    def evidence(self, seen: Rows) -> float:
        """The largest log likelihood of `seen` (n, k), up to a constant that is the same for all features."""
        return float(self._likelihoods(seen, self._along(seen)).max())

    def shares(self, seen: Rows, *rows: Rows) -> tuple[Rows, ...]:
        """Predicted shares (m, k) of the values at each of `rows` (m, d) of features, from one fit."""
        return tuple(with_floor(project_shares(each), len(seen)) for each in self.predict(seen, *rows))

    def predict(self, seen: Rows, *rows: Rows) -> tuple[Rows, ...]:
        """Predicted columns of `seen` (n, k) at each of `rows` (m, d) of features, from one fit."""
        mean, along = seen.mean(axis=0), self._along(seen)
        strength = _SPREADS[int(self._likelihoods(seen, along).argmax())]
        pull = strength / (1.0 + strength * self.values)
        slope = self.vectors @ (pull[:, None] * along)
        return tuple(np.asarray(mean + (each - self.centre) @ slope) for each in rows)

    def _along(self, seen: Rows) -> Rows:
        return np.asarray(self.vectors.T @ (self.features.T @ (seen - seen.mean(axis=0))))

    def _likelihoods(self, seen: Rows, along: Rows) -> NDArray[np.float64]:
        n, squares = len(seen), (along**2)[None]  # (1, d, k)
        grown = 1.0 + _SPREADS[:, None] * self.values  # (spreads, d)
        told = (_SPREADS[:, None, None] / grown[:, :, None] * squares).sum(axis=1)  # (spreads, k)
        total = ((seen - seen.mean(axis=0)) ** 2).sum(axis=0)
        left = np.maximum(total - told, 1e-12 * np.maximum(total, 1e-300))
        return np.asarray(-0.5 * (n * np.log(left).sum(axis=1) + seen.shape[1] * np.log(grown).sum(axis=1)))


def with_floor(shares: Rows, n: int) -> Rows:
    """Shares of at least about 1 / n: what was never seen stays possible."""
    k = shares.shape[-1]
    return np.asarray((n * shares + 1.0) / (n + k))


# Soft classes of people by what is publicly known about them: each person's shares in them.


Traits = NDArray[np.float64]  # (n, d), rows sum to 1

MOST_CLASSES = 128
LANDMARKS = 48
MOST_CELLS = 50_000_000  # of people and their shares: 400 MB
_SCALES = (0.5, 1.0, 2.0, 4.0)


def candidate_traits(known: Knowledge, rng: Entropy) -> list[Traits]:
    """Equal public data as classes, all of it or a part, where they are few, and kernels around landmarks.

    Of many classes of columns that are not numbers the largest are taken, and everybody else is one class.

    Raises
    ------
    DataError
        When everybody is alone with columns that are not numbers.
    """
    found: list[Traits] = []
    reasons: list[str] = []
    kinds = known.coarser()
    try:
        kinds = [known.classes(), *kinds]
    except DataError as error:
        reasons.append(str(error))
    for kind in kinds:
        codes = np.unique(kind, return_inverse=True)[1]
        most = min(MOST_CLASSES, MOST_CELLS // len(codes))
        if codes.max() < most:
            found.append(np.eye(int(codes.max()) + 1)[codes])
        else:
            reasons.append(f"{int(codes.max()) + 1:,} classes of people exceed {most}")
    try:
        found.extend(_around_landmarks(known.points(), rng))
    except DataError as error:
        reasons.append(str(error))
    for kind in kinds if not found else []:
        codes, sizes = np.unique(kind, return_inverse=True, return_counts=True)[1:]
        largest = np.argsort(-sizes, kind="stable")[: min(MOST_CLASSES, MOST_CELLS // len(codes)) - 1]
        largest = largest[sizes[largest] > 1]  # the largest classes, and everybody else as one
        if largest.size:
            place = np.full(len(sizes), len(largest))
            place[largest] = np.arange(len(largest))
            found.append(np.eye(len(largest) + 1)[place[codes]])
    if not found:
        raise DataError("; ".join(reasons))
    return found


def _around_landmarks(points: NDArray[np.float64], rng: Entropy) -> Iterator[Traits]:
    """Shares that fall off with the distance from people who were drawn, as a normal density does."""
    places = np.unique(points, axis=0)
    marks = places[rng.permutation(len(places))[: min(LANDMARKS, MOST_CELLS // len(points))]]
    if len(marks) < 2:
        return
    between = cdist(marks, marks)
    apart = float(np.median(np.where(between > 0.0, between, np.inf).min(axis=1)))
    squares = cdist(points, marks, "sqeuclidean")
    squares -= squares.min(axis=1, keepdims=True)
    for scale in _SCALES:
        weights = np.exp(-squares / (2.0 * (scale * apart) ** 2))
        yield weights / weights.sum(axis=1, keepdims=True)

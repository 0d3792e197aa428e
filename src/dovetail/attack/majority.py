"""The majority vote attack: guess a person's value from the reports at the places of similar people nearby."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from dovetail.attack.evidence import Support, supports
from dovetail.attack.result import LEVEL, VULNERABLE_AT, Guesses, People, Progress, columns, mount, people
from dovetail.core.checks import whole
from dovetail.core.entropy import Entropy, Words
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.stages import FrequencyRandomizer, Reports, Shuffler
from dovetail.randomize.krr import KRR
from dovetail.shuffle.checks import not_negative

Points = NDArray[np.float64]  # (n, d)
Places = NDArray[np.int64]  # (targets, votes): places whose reports vote, -1 where there are fewer


@dataclass(frozen=True)
class AttackResult:
    """The majority vote as one lens of a report: numbers only.

    Parameters
    ----------
    success : float
        Share of right guesses over targets and trials.
    chance : float
        Share of targets that hold the commonest value: what naming it for everybody reaches.
    interval : (float, float)
        Interval at `level` for `success` over repeated randomization of this population (Student t over trials).
    vulnerable : float
        Share of targets guessed right in at least `vulnerable_at` of the trials, each with an order of its own.
    """

    success: float
    chance: float
    interval: tuple[float, float]
    vulnerable: float
    targets: int
    trials: int
    votes: int
    level: float = LEVEL
    vulnerable_at: float = VULNERABLE_AT
    name: str = "majority vote"


@dataclass(frozen=True, eq=False)
class MajorityVote:
    r"""Guesses the value that most of the reports at a target's places support.

    .. math:: \hat{x}_i = \arg\max_v \#\{ j \in \mathrm{places}(i) : z_j \text{ supports } v \} \quad
              \text{(ties at random)}

    The likeliest value if everybody at these places holds the same one. For KRR a report supports the value that it
    names; `evidence.supports` has the other randomizers.

    Parameters
    ----------
    randomizer : FrequencyRandomizer
        KRR of any k; Unary, LocalHashing and Hadamard up to n k = ten million.
    targets : int array (m,)
    places : int array (m, votes), -1 for none
        From `voters`.

    Notes
    -----
    `guess` takes about 5 ms for 33,000 targets with 25 votes.

    Source
    ------
    Meehan, Roy Chowdhury, Chaudhuri, Jha (2022), Privacy Implications of Shuffling, ICLR, section 5.
    """

    name: ClassVar[str] = "majority vote"
    randomizer: FrequencyRandomizer
    targets: People
    places: Places

    def __post_init__(self) -> None:
        places = np.asarray(self.places)
        if places.ndim != 2 or len(places) != np.size(self.targets) or places.dtype.kind not in "iu":
            wanted = f"whole numbers ({np.size(self.targets):,}, votes)"
            raise DataError(f"`places` must be {wanted}, got shape {places.shape} of {places.dtype}.")
        if places.min(initial=-1) < -1 or not (places >= 0).any(axis=1).all():
            raise DataError("`places` must hold at least one place for each target, and -1 where there are fewer.")

    def guess(self, reports: Reports, rng: Entropy) -> Guesses:
        given = self.randomizer.check_reports(reports)
        if self.places.max() >= len(given):
            raise DataError(f"`reports` must have a row for each of {self.places.max() + 1:,} places.")
        words = rng.words(len(self.places))
        if isinstance(self.randomizer, KRR):
            return np.asarray(_vote(given, self.places, self.randomizer.k, words))
        return np.asarray(_vote_support(supports(self.randomizer, given), self.places, words))


def majority_vote(
    randomizer: FrequencyRandomizer,
    values: NDArray[np.int64],
    places: Places,
    shuffler: Shuffler,
    *,
    targets: NDArray[np.int64],
    trials: int,
    rng: Entropy,
    progress: Progress = lambda done, total: None,
) -> AttackResult:
    """Randomize and shuffle `trials` times and vote each time: the numbers alone.

    `mount(MajorityVote(..), ..)` is the paper's experiment, with what it reaches against each person.

    Parameters
    ----------
    randomizer : FrequencyRandomizer
        KRR, Hadamard, Unary or LocalHashing.
    values : int array (n,), codes 0..k-1
    places : int array (targets, votes) from `voters`
    targets : int array (m,), the people guessed
    trials : int, at least 2
    """
    found = mount(
        MajorityVote(randomizer, targets, places), randomizer, values, shuffler,
        shuffles=whole("trials", trials, least=2), randomizations=1, rng=rng, progress=progress,
    )  # fmt: skip
    return AttackResult(
        success=found.success,
        chance=found.chance,
        interval=found.interval,
        vulnerable=float((found.by_person >= VULNERABLE_AT).mean()),
        targets=len(targets),
        trials=trials,
        votes=places.shape[1],
    )


def voters(
    targets: ArrayLike,
    *,
    within: tuple[ArrayLike, float] | None,
    similar: ArrayLike | None,
    votes: int = 25,
    rng: Entropy,
) -> Places:
    """For each target, the places of the `votes` most similar people nearby, the target's own included.

    Parameters
    ----------
    targets : int array (m,)
    within : (points (n, d), radius), or None
        Only people within this distance of the target vote (r* in the paper); None admits everybody.
    similar : float array (n, e), or None
        What the attacker knows besides: the nearest in these columns vote; without it, voters are drawn at random.
    votes : int, at least 1
    rng : Entropy
        Breaks ties and draws voters.

    Raises
    ------
    DataError
        When there is neither `within` nor `similar`, or their columns are not finite numbers for each person.
    UnsupportedError
        When nobody but the target itself is within the radius of any target.

    Notes
    -----
    With `within` every target is compared with everybody in reach along the first column of the points, about 10 ns
    each; without it a tree finds the nearest.
    """
    whole("votes", votes, least=1)
    if within is None:
        if similar is None:
            raise DataError(
                "the majority vote needs public columns to look for neighbours by: `within` or `similar`."
            )
        return _nearest_of_all(targets, columns("similar", similar), votes, rng)
    points, radius = columns("within", within[0]), not_negative("radius", within[1])
    n = len(points)
    who = people("targets", targets, n=n)
    known = np.empty((n, 0)) if similar is None else columns("similar", similar, n=n)
    order = np.argsort(points[:, 0], kind="stable")
    line = points[order, 0]
    starts = np.searchsorted(line, np.nextafter(points[who, 0] - radius, -np.inf), side="left")
    ends = np.searchsorted(line, np.nextafter(points[who, 0] + radius, np.inf), side="right")
    words = rng.words(who.size)
    places, nearby = _nearest_within(who, order, starts, ends, points[order], radius, known[order], votes, words)
    if not nearby:
        raise UnsupportedError(
            f"Nobody is within {radius:g} of any target, so nobody can vote; widen the radius, which is in the unit "
            "of the columns."
        )
    return np.asarray(places)


def _nearest_of_all(targets: ArrayLike, similar: Points, votes: int, rng: Entropy) -> Places:
    who = people("targets", targets, n=len(similar))
    count = min(votes, len(similar))
    mixed = rng.permutation(len(similar))  # equal distances go by the order in the tree
    found = cKDTree(similar[mixed]).query(similar[who], k=count)[1].reshape(who.size, count)
    places = np.full((who.size, votes), -1, dtype=np.int64)
    places[:, :count] = mixed[found]
    missing = ~(places == who[:, None]).any(axis=1)
    places[missing, count - 1] = who[missing]  # ties can crowd the target out
    return places


@njit(cache=True, nogil=True)
def _nearest_within(
    targets: People, order: People, starts: People, ends: People, points: Points, radius: float, known: Points,
    votes: int, words: Words,
) -> tuple[Places, bool]:  # fmt: skip
    """The nearest in `known` of those within `radius`; `points` and `known` stand in `order`."""
    places = np.full((targets.size, votes), -1, dtype=np.int64)
    nearby = False
    seat = np.empty(order.size, dtype=np.int64)
    seat[order] = np.arange(order.size)
    far, tie = np.empty(votes), np.empty(votes, dtype=np.uint64)
    for row in range(targets.size):
        mine = seat[targets[row]]
        places[row, 0], count = targets[row], 1
        for other in range(starts[row], ends[row]):
            gap = 0.0
            for d in range(points.shape[1]):
                gap += (points[other, d] - points[mine, d]) ** 2
            if gap > radius * radius or other == mine:
                continue
            nearby = True
            distance = 0.0
            for d in range(known.shape[1]):
                distance += (known[other, d] - known[mine, d]) ** 2
            if votes == 1 or (count == votes and distance > far[votes - 1]):
                continue
            lot = _mixed(words[row] + np.uint64(other))
            if count == votes and distance == far[votes - 1] and lot >= tie[votes - 1]:
                continue
            at = min(count, votes - 1)
            while at > 1 and (distance < far[at - 1] or (distance == far[at - 1] and lot < tie[at - 1])):
                far[at], tie[at], places[row, at] = far[at - 1], tie[at - 1], places[row, at - 1]
                at -= 1
            far[at], tie[at], places[row, at] = distance, lot, order[other]
            count = min(count + 1, votes)
    return places, nearby


@njit(cache=True, nogil=True)
def _mixed(word: np.uint64) -> np.uint64:
    """The finalizer of splitmix64: a lot for breaking ties."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@njit(cache=True, nogil=True)
def _vote(reports: NDArray[np.int64], places: Places, k: int, words: Words) -> Guesses:
    """The commonest report of each row of places; ties are broken by the word of the row."""
    winners = np.empty(places.shape[0], dtype=np.int64)
    counts = np.zeros(k, dtype=np.int64)
    for row in range(places.shape[0]):
        for place in places[row]:
            if place >= 0:
                counts[reports[place]] += 1
        winners[row] = _winner(counts, words[row])
        counts[:] = 0
    return winners


@njit(cache=True, nogil=True)
def _vote_support(support: Support, places: Places, words: Words) -> Guesses:
    """The value with the most support in each row of places; ties are broken by the word of the row."""
    winners = np.empty(places.shape[0], dtype=np.int64)
    counts = np.zeros(support.shape[1], dtype=np.int64)
    for row in range(places.shape[0]):
        for place in places[row]:
            if place >= 0:
                for value in range(counts.size):
                    counts[value] += support[place, value]
        winners[row] = _winner(counts, words[row])
        counts[:] = 0
    return winners


@njit(cache=True, nogil=True)
def _winner(counts: NDArray[np.int64], word: np.uint64) -> int:
    """One of the largest counts, each with the same probability."""
    best, ties = counts[0], 1
    for count in counts[1:]:
        if count > best:
            best, ties = count, 0
        ties += count == best
    pick = np.int64(word % np.uint64(ties))
    for value in range(counts.size):
        if counts[value] == best:
            if pick == 0:
                return value
            pick -= 1
    return -1

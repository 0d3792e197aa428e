"""The majority vote attack: guess a person's value from the reports at the places of similar people nearby."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from annotated_types import Ge, Le
from numpy.typing import NDArray

from dovetail.attack.experiment.run_attack import Guesses, People
from dovetail.attack.experiment.voter_selection import Places
from dovetail.core.compiled import njit
from dovetail.core.entropy import Entropy, Words, entropy_or_system
from dovetail.core.errors import DataError
from dovetail.core.stages import Attack, FrequencyRandomizer, Knowledge, Reports, Shuffler, Support


@dataclass(frozen=True, eq=False)
class MajorityVote(Attack):
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
        From `select_voters`.

    Raises
    ------
    DataError
        For places that are not a row for each target, and reports without a row for a place.

    Notes
    -----
    `guess` takes about 5 ms for 33,000 targets with 25 votes.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> from dovetail.randomize.krr import KRR
    >>> attack = MajorityVote(KRR(k=3, epsilon=1.0), np.array([0]), np.array([[0, 1, 2]]))
    >>> attack.guess(np.array([2, 0, 2, 1]), simulation(1)).tolist()
    [2]

    Source
    ------
    Meehan, Roy Chowdhury, Chaudhuri, Jha (2022), Privacy Implications of Shuffling, ICLR, section 5.
    """

    name: ClassVar[str] = "majority"
    label: ClassVar[str] = "majority vote"

    @dataclass(frozen=True)
    class Settings:
        """Settings that the attacker may choose.

        Parameters
        ----------
        votes : int, 1 to 1000
            Reports that vote on each target.
        """

        votes: Annotated[int, Ge(1), Le(1000)] = 25

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

    @classmethod
    def prepare(
        cls, known: Knowledge, randomizer: FrequencyRandomizer, shuffler: Shuffler, *, targets: People, rng: Entropy,
        votes: int = 25, **settings: Any,
    ) -> Self:  # fmt: skip
        return cls(randomizer, targets, known.places(targets, votes=votes, rng=rng))

    @classmethod
    def weighed(cls, n: int, settings: dict[str, Any]) -> int:
        return int(min(settings["votes"], n))

    def guess(self, reports: Reports, rng: Entropy | None = None) -> Guesses:
        rng = entropy_or_system(rng)
        given = self.randomizer.check_reports(reports)
        if self.places.max() >= len(given):
            raise DataError(f"`reports` must have a row for each of {self.places.max() + 1:,} places.")
        words = rng.words(len(self.places))
        if self.randomizer.names_values:
            return np.asarray(_vote(given, self.places, self.randomizer.k, words))
        return np.asarray(_vote_support(self.randomizer.support(given), self.places, words))


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

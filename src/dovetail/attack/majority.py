"""The majority vote attack: guess a person's value from the reports at the places of similar people nearby."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.special import stdtrit

from dovetail.core.checks import whole
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.stages import FrequencyRandomizer, Shuffler
from dovetail.randomize.krr import KRR

Points = NDArray[np.float64]  # (n, d)
Places = NDArray[np.int64]  # (targets, votes): places whose reports vote, -1 where there are fewer

LEVEL = 0.95
VULNERABLE_AT = 0.9
MOST_NEARBY = 4_000  # people whom the attacker compares with one target


@dataclass(frozen=True)
class AttackResult:
    """What the attack reached, beside what it would reach without the reports.

    Parameters
    ----------
    success : float
        Share of right guesses over targets and trials.
    chance : float
        Share of targets that hold the commonest value: what naming it for everybody reaches.
    interval : (float, float)
        Interval at `level` for `success` over repeated randomization of this population (Student t over trials).
    vulnerable : float
        Share of targets guessed right in at least `vulnerable_at` of the trials (rho in the paper).
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


def voters(
    targets: NDArray[np.int64],
    *,
    within: tuple[Points, float] | None,
    similar: Points | None,
    votes: int,
    rng: Entropy,
) -> Places:
    """For each target, the places of the `votes` most similar people nearby, the target's own included.

    Parameters
    ----------
    targets : int array (m,)
    within : (points (n, d), radius), or None
        Only people within this distance of the target vote (r* in the paper), a random 4,000 of them where there
        are more; None admits everybody.
    similar : float array (n, e), or None
        What the attacker knows besides: the nearest in these columns vote; without it, voters are drawn at random.
    votes : int, at least 1
    rng : Entropy
        Breaks ties and draws voters.

    Raises
    ------
    DataError
        When there is neither `within` nor `similar`.
    """
    whole("votes", votes, least=1)
    if within is None:
        if similar is None:
            raise DataError(
                "the majority vote needs public columns to look for neighbours by: `within` or `similar`."
            )
        return _nearest_of_all(targets, similar, votes)
    nearby = _neighbourhoods(*within)
    places = np.full((len(targets), votes), -1, dtype=np.int64)
    for row, person in enumerate(targets):
        others = nearby(person, rng)
        others = others[others != person]
        if similar is None or others.size < votes:
            others = others[rng.permutation(others.size)]
        else:
            distance = ((similar[others] - similar[person]) ** 2).sum(axis=1)
            others = others[np.lexsort((rng.words(others.size), distance))]
        places[row, 0] = person
        places[row, 1 : 1 + others[: votes - 1].size] = others[: votes - 1]
    return places


def majority_vote(
    randomizer: FrequencyRandomizer,
    values: NDArray[np.int64],
    places: Places,
    shuffler: Shuffler,
    *,
    targets: NDArray[np.int64],
    trials: int,
    rng: Entropy,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> AttackResult:
    r"""Randomize and shuffle `trials` times; each time guess every target by the commonest report among its voters.

    .. math:: \hat{x}_i = \arg\max_v \#\{ j \in \mathrm{voters}(i) : z_j = v \} \quad \text{(ties at random)}

    Parameters
    ----------
    randomizer : KRR
        Reports must be symbols; other randomizers raise UnsupportedError.
    values : int array (n,), codes 0..k-1
    places : int array (targets, votes) from `voters`
    targets : int array (m,), the people guessed
    trials : int, at least 2

    Source
    ------
    Meehan, Roy Chowdhury, Chaudhuri, Jha (2022), Privacy Implications of Shuffling, ICLR, section 5.
    """
    if not isinstance(randomizer, KRR):
        raise UnsupportedError(
            "The majority vote counts reports that are values themselves: it needs randomizer krr."
        )
    whole("trials", trials, least=2)
    truth = values[targets]
    right = np.zeros(len(targets), dtype=np.int64)
    shares = np.empty(trials)
    for trial in range(trials):
        reports = shuffler.shuffle(randomizer.randomize(values, rng), rng)
        hit = _vote(reports, places, randomizer.k, rng.words(len(targets))) == truth
        right += hit
        shares[trial] = hit.mean()
        progress(trial + 1, trials)
    reach = float(stdtrit(trials - 1, 0.5 + LEVEL / 2)) * float(shares.std(ddof=1)) / trials**0.5
    mean = float(shares.mean())
    return AttackResult(
        success=mean,
        chance=float(np.bincount(truth).max() / len(truth)),
        interval=(max(0.0, mean - reach), min(1.0, mean + reach)),
        vulnerable=float((right >= VULNERABLE_AT * trials).mean()),
        targets=len(targets),
        trials=trials,
        votes=places.shape[1],
    )


def _neighbourhoods(points: Points, radius: float) -> Callable[[np.int64, Entropy], NDArray[np.int64]]:
    """Who stands within `radius` of a person; of more than MOST_NEARBY people a random selection."""
    if points.shape[1] > 1:
        tree = cKDTree(points)

        def in_ball(person: np.int64, rng: Entropy) -> NDArray[np.int64]:
            found = np.asarray(tree.query_ball_point(points[person], radius), dtype=np.int64)
            return found if found.size <= MOST_NEARBY else found[np.unique(rng.below(found.size, MOST_NEARBY))]

        return in_ball
    order = np.argsort(points[:, 0], kind="stable")
    line = points[order, 0]
    starts = np.searchsorted(line, points[:, 0] - radius, side="left")
    ends = np.searchsorted(line, points[:, 0] + radius, side="right")

    def in_window(person: np.int64, rng: Entropy) -> NDArray[np.int64]:
        start, size = int(starts[person]), int(ends[person] - starts[person])
        picks = np.arange(size) if size <= MOST_NEARBY else rng.below(size, MOST_NEARBY)
        return np.asarray(order[start + np.unique(picks)])

    return in_window


def _nearest_of_all(targets: NDArray[np.int64], similar: Points, votes: int) -> Places:
    count = min(votes, len(similar))
    nearby = cKDTree(similar).query(similar[targets], k=count)[1].reshape(len(targets), count).astype(np.int64)
    places = np.full((len(targets), votes), -1, dtype=np.int64)
    places[:, :count] = nearby
    missing = ~(nearby == targets[:, None]).any(axis=1)
    places[missing, count - 1] = targets[missing]  # ties can crowd the target out
    return places


@njit(cache=True, nogil=True)
def _vote(reports: NDArray[np.int64], places: Places, k: int, words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The commonest report of each row of places; ties are broken by the word of the row."""
    winners = np.empty(places.shape[0], dtype=np.int64)
    counts = np.zeros(k, dtype=np.int64)
    for row in range(places.shape[0]):
        best = 0
        for place in places[row]:
            if place >= 0:
                counts[reports[place]] += 1
                best = max(best, counts[reports[place]])
        ties = 0
        for value in range(k):
            ties += counts[value] == best
        pick = np.int64(words[row] % np.uint64(ties))
        for value in range(k):
            if counts[value] == best:
                if pick == 0:
                    winners[row] = value
                pick -= 1
            counts[value] = 0
    return winners

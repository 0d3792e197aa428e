"""The places that vote on a person: those of people nearby who are most similar in what else is known of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from dovetail.attack.experiment.run_attack import People, check_columns, check_people
from dovetail.core.checks import not_negative_or_infinite, whole
from dovetail.core.compiled import njit
from dovetail.core.entropy import Entropy, Words, entropy_or_system
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.shuffle.fitting.groups import Groups

Points = NDArray[np.float64]  # (n, d)
Places = NDArray[np.int64]  # (targets, votes): places whose reports vote, -1 where there are fewer


def select_voters(
    targets: ArrayLike,
    *,
    within: tuple[ArrayLike, float] | None,
    similar: ArrayLike | None,
    votes: int = 25,
    rng: Entropy | None = None,
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
    rng : Entropy, optional
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

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> select_voters([0], within=([[1.0], [1.2], [9.0]], 0.5), similar=None, votes=2, rng=simulation(1))
    array([[0, 1]])
    """
    rng = entropy_or_system(rng)
    whole("votes", votes, least=1)
    if within is None:
        if similar is None:
            raise DataError(
                "the majority vote needs public columns to look for neighbours by: `within` or `similar`."
            )
        return _nearest_of_all(targets, check_columns("similar", similar), votes, rng)
    points, radius = check_columns("within", within[0]), not_negative_or_infinite("radius", within[1])
    n = len(points)
    who = check_people("targets", targets, n=n)
    known = np.empty((n, 0)) if similar is None else check_columns("similar", similar, n=n)
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


def select_members(targets: ArrayLike, groups: Groups, *, similar: Points | None, votes: int, rng: Entropy) -> Places:
    """For each target, the places of `votes` members of the groups made for the target, the target's own included.

    Where none was made for the target, those that hold it count. The nearest in `similar` are taken; without it,
    members are drawn at random.
    """
    who = check_people("targets", targets, n=groups.n)
    places = np.full((who.size, votes), -1, dtype=np.int64)
    rows, owned, around = groups.rows, groups.owners.transpose(groups.n), groups.rows.transpose(groups.n)
    for place, target in enumerate(who.tolist()):
        chosen = owned.row(target) if owned.row(target).size else around.row(target)
        mine = [rows.row(row) for row in chosen.tolist()]
        near = np.unique(np.concatenate([*mine, [target]])).astype(np.int64)
        near = near[near != target]
        near = near[rng.permutation(near.size)]
        if similar is not None:
            near = near[np.argsort(((similar[near] - similar[target]) ** 2).sum(axis=1), kind="stable")]
        found = np.concatenate(([target], near[: votes - 1]))
        places[place, : found.size] = found
    return places


def _nearest_of_all(targets: ArrayLike, similar: Points, votes: int, rng: Entropy) -> Places:
    who = check_people("targets", targets, n=len(similar))
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
            # is this one nearer in what is known than the last of the votes so far? ties fall by lot
            distance = 0.0
            for d in range(known.shape[1]):
                distance += (known[other, d] - known[mine, d]) ** 2
            if votes == 1 or (count == votes and distance > far[votes - 1]):
                continue
            lot = _mixed(words[row] + np.uint64(other))
            if count == votes and distance == far[votes - 1] and lot >= tie[votes - 1]:
                continue
            # put it in its place among them, behind the target
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

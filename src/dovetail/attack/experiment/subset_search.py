"""The adversary of Theorem 4.2: pick out the places of a release that hold the reports of a few people."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, permutations, product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.account.order_privacy import exact_alpha, reidentification_bound
from dovetail.attack.experiment.run_attack import (
    LEVEL,
    VULNERABLE_AT,
    AttackResult,
    People,
    check_people,
    check_values,
)
from dovetail.core.channel import Channel
from dovetail.core.checks import whole
from dovetail.core.display import mute
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.progress import Tick, no_tick
from dovetail.core.stages import FrequencyRandomizer, Reports, Shuffler
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.sampling.permutations import inverse

_MOST_CELLS = 20_000_000


def best_subset_success(channel: Channel, values: ArrayLike, shuffler: Shuffler, *, subset: ArrayLike) -> float:
    r"""Largest chance of any adversary to name places of which more than half hold the reports of `subset`.

    .. math:: \sum_z \max_{|H| = k} \sum_{\sigma : |\sigma(H) \cap I| > k / 2} \Pr[\sigma]
              \prod_i W(z_i \mid x_{\sigma(i)})

    The adversary knows all values, the channel and the shuffler. Exact, by listing every order and every release.

    Parameters
    ----------
    channel : Channel
        The randomizer that everybody uses.
    values : int array (n,), codes of the channel's inputs
    shuffler : Shuffler of n people
    subset : int array (k,), the people I looked for

    Raises
    ------
    UnsupportedError
        When there are too many orders and releases to list; `SubsetSearch` serves those.

    Notes
    -----
    O(n! m^n) for m reports, times the number of choices: under a second for n = 6 and m = 2.

    Examples
    --------
    >>> from dovetail.core.channel import KRRChannel
    >>> from dovetail.shuffle.uniform import Uniform
    >>> round(best_subset_success(KRRChannel.of(2, 0.75), [0, 1, 1], Uniform(3), subset=[0]), 3)
    0.625

    Source
    ------
    The game of Meehan et al. (2022), Privacy Implications of Shuffling, Theorem 4.2; its optimal play.
    """
    n, reports = shuffler.n, channel.shape[1]
    held, members = check_values(values, channel.shape[0], shuffler), _subset(subset, n)
    if math.factorial(min(n, 20)) * max(reports**n, math.comb(n, members.size)) > _MOST_CELLS:
        raise UnsupportedError(
            f"Listing the orders of {n} people and {reports}^{n} releases exceeds {_MOST_CELLS:,} cells; "
            "use SubsetSearch, whose success is a lower bound."
        )
    choices = np.array(list(combinations(range(n), members.size)))
    orders = np.array(list(permutations(range(n))), dtype=np.int64)
    probabilities = np.exp([shuffler.log_weight(order) for order in orders])
    wins = (2 * np.isin(orders, members)[:, choices].sum(axis=2) > members.size).astype(np.float64)
    rows = channel.matrix()[held][orders]  # (orders, n, reports)
    releases = product(range(reports), repeat=n)
    seats = np.arange(n)
    return float(sum(((probabilities * rows[:, seats, release].prod(axis=1)) @ wins).max() for release in releases))


def subset_bound(
    randomizer: FrequencyRandomizer, shuffler: Shuffler, *, subset: ArrayLike, group: ArrayLike | None = None
) -> float:
    """The bound of Theorem 4.2 against `subset` as part of `group`; 1 where it says nothing.

    Without `group` the better of two: everybody, and the largest group with the subset that the shuffler guarantees
    alpha for.

    Raises
    ------
    DataError
        For a subset with people outside `group`, or who stand there twice.

    Examples
    --------
    >>> from dovetail.randomize.krr import KRR
    >>> from dovetail.shuffle.uniform import Uniform
    >>> round(subset_bound(KRR(k=2, epsilon=1.0), Uniform(10), subset=[0]), 3)
    0.451
    """
    members = _subset(subset, shuffler.n)
    if group is None:
        every = [np.arange(shuffler.n), *_largest_guaranteed_group(shuffler, members)]
        return min(subset_bound(randomizer, shuffler, subset=members, group=one) for one in every)
    people = np.unique(check_people("group", group, n=shuffler.n))
    if not np.isin(members, people).all():
        raise DataError("`subset` must be people of `group`.")
    alpha = exact_alpha(shuffler, Groups.from_lists([people.tolist()], shuffler.n))
    return reidentification_bound(epsilon=randomizer.guarantee.epsilon, alpha=alpha, r=people.size, k=members.size)


def _largest_guaranteed_group(shuffler: Shuffler, members: People) -> list[People]:
    """The largest group of the shuffler's guarantee that holds all of these people, if there is one."""
    groups = shuffler.guarantee.groups
    if not isinstance(groups, Groups):
        return []
    holding = groups.rows.transpose(groups.n)
    rows = reduce(np.intersect1d, [holding.row(person) for person in members])
    return [groups.members(int(rows[groups.sizes[rows].argmax()]))] if rows.size else []


@mute
@dataclass(frozen=True, eq=False)
class SubsetSearch:
    r"""Names the k places that most likely hold reports of the subset, each judged by itself.

    .. math:: \mathrm{score}_i = \frac{\sum_v \Pr[\sigma(i) \in I,\, x_{\sigma(i)} = v]\, W(z_i \mid v)}
                                     {\sum_v \Pr[x_{\sigma(i)} = v]\, W(z_i \mid v)}

    The optimal adversary weighs all places together; this one is optimal when the reports tell nothing and the places
    are judged for a single person, and its success is a lower bound otherwise.

    Parameters
    ----------
    randomizer : FrequencyRandomizer
        KRR, Hadamard, Unary or LocalHashing.
    subset : int array (k,)
    subset_counts, total_counts : float arrays (n, values)
        How often place i held a report of the subset, of anybody, from a person with this value; from `learn`.

    Raises
    ------
    DataError
        For reports that are not one for each place.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> from dovetail.randomize.krr import KRR
    >>> from dovetail.shuffle.identity import Identity
    >>> krr, values = KRR(k=2, epsilon=1.0), [0, 1, 1]
    >>> search = SubsetSearch.learn(krr, values, Identity(3), subset=[0], draws=20, rng=simulation(1))
    >>> search.guess(np.array([1, 0, 1]), simulation(2)).tolist()
    [0]
    """

    randomizer: FrequencyRandomizer
    subset: People
    subset_counts: NDArray[np.float64]
    total_counts: NDArray[np.float64]

    @classmethod
    def learn(
        cls, randomizer: FrequencyRandomizer, values: ArrayLike, shuffler: Shuffler, *, subset: ArrayLike,
        draws: int = 500, rng: Entropy | None = None,
    ) -> SubsetSearch:  # fmt: skip
        """From orders that the adversary draws for itself: the shuffler is public. O(n draws)."""
        rng = entropy_or_system(rng)
        held, members = check_values(values, randomizer.k, shuffler), _subset(subset, shuffler.n)
        seats, total_counts = np.arange(held.size), np.zeros((held.size, randomizer.k))
        subset_counts = np.zeros_like(total_counts)
        for _ in range(whole("draws", draws, least=1)):
            order = shuffler.permutation(rng)
            total_counts[seats, held[order]] += 1.0
            subset_counts[inverse(order)[members], held[members]] += 1.0
        return cls(randomizer, members, subset_counts, total_counts)

    def guess(self, reports: Reports, rng: Entropy | None = None) -> People:
        """The k places named."""
        rng = entropy_or_system(rng)
        seen = self.randomizer.support(reports)
        if seen.shape != self.subset_counts.shape:
            raise DataError(f"`reports` must be {len(self.subset_counts):,}, one for each place, got {len(seen):,}.")
        likelihood = np.where(seen, 1.0, math.exp(-self.randomizer.support_log_odds))
        score = (self.subset_counts * likelihood).sum(axis=1) / (self.total_counts * likelihood).sum(axis=1)
        return np.lexsort((rng.words(score.size), -score))[: self.subset.size].astype(np.int64)


def reidentify_subset(
    search: SubsetSearch,
    values: ArrayLike,
    shuffler: Shuffler,
    *,
    trials: int = 500,
    rng: Entropy | None = None,
    progress: Tick = no_tick,
) -> AttackResult:
    """Release `trials` times, each in an order of its own, and count the wins.

    Returns
    -------
    AttackResult
        `success` is the share of wins with its Clopper-Pearson interval, `chance` what naming random places wins,
        `by_person` how often the report of each member of the subset was among those named, `vulnerable` the share
        of members for whom it was in at least `vulnerable_at` of the trials.

    Raises
    ------
    ParameterError
        For fewer than one trial.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> from dovetail.randomize.krr import KRR
    >>> from dovetail.shuffle.identity import Identity
    >>> krr, values = KRR(k=2, epsilon=1.0), [0, 1, 1]
    >>> search = SubsetSearch.learn(krr, values, Identity(3), subset=[0], draws=20, rng=simulation(1))
    >>> reidentify_subset(search, values, Identity(3), trials=20, rng=simulation(2)).success
    1.0
    """
    rng = entropy_or_system(rng)
    held = check_values(values, search.randomizer.k, shuffler)
    found = np.zeros((whole("trials", trials, least=1), search.subset.size), dtype=np.bool_)
    for row in range(trials):
        order = shuffler.permutation(rng)
        named = search.guess(search.randomizer.randomize(held, rng)[order], rng)
        found[row] = np.isin(search.subset, order[named])
        progress(row + 1, trials)
    k = search.subset.size
    wins = int((2 * found.sum(axis=1) > k).sum())
    from scipy.stats import binomtest, hypergeom  # half a second

    interval = binomtest(wins, trials).proportion_ci(LEVEL, method="exact")
    shares = found.mean(axis=0)
    return AttackResult(
        "re-identification of a subset",
        success=wins / trials,
        chance=float(hypergeom.sf(k // 2, held.size, k, k)),
        interval=(float(interval.low), float(interval.high)),
        by_person=shares,
        vulnerable=float((shares >= VULNERABLE_AT).mean()),
        shuffles=trials,
        randomizations=1,
    )


def _subset(subset: ArrayLike, n: int) -> People:
    members = check_people("subset", subset, n=n)
    if np.unique(members).size < members.size:
        raise DataError("`subset` must name each person once.")
    return members

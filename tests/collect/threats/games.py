r"""Games against a build of the service: what it tells about one report, and about who sent which.

An audit can catch a wrong build and never proves a right one: it returns lower bounds on what leaks, each of them
wrong with a probability that the caller states.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, gammaln
from scipy.stats import binom

from dovetail.core.checks import probability, whole
from dovetail.core.errors import DataError

Seen = TypeVar("Seen", bound=Hashable)


@dataclass(frozen=True)
class Membership:
    """What a membership game found.

    Parameters
    ----------
    epsilon : float, nats
        The build tells at least so much about one value; 0 where the game found nothing.
    hit, false : float
        Lower bound of the chance of the attacker's event in its own world, upper bound in the other one.
    """

    epsilon: float
    hit: float
    false: float


def membership(play: Callable[[int], Hashable], *, trials: int, false_alarm: float = 1e-9) -> Membership:
    r"""A lower bound on the epsilon of a build, from playing both worlds.

    .. math:: \varepsilon \ge \log \Pr[S \mid 0] - \log \Pr[S \mid 1]

    The first half of the trials chooses the event S and its world, the second half bounds both probabilities.

    Parameters
    ----------
    play : function of the world, 0 or 1
        What the attacker sees when the target holds its first or its second value; everybody else holds the same.
    trials : int, at least 2
        Of each world.
    false_alarm : float in (0, 1)
        With which the bound is above the build's true epsilon, at most.

    Source
    ------
    Clopper, Pearson (1934), Biometrika 26, for both probabilities.
    """
    whole("trials", trials, least=2)
    probability("false_alarm", false_alarm)
    chosen, counted = ([Counter(play(world) for _ in range(trials // 2)) for world in (0, 1)] for _ in range(2))
    best = max(
        (_bound(chosen, event, world, false_alarm).epsilon, world, len(event))
        for world in (0, 1)
        for event in _events(chosen[world], chosen[1 - world])
    )
    event = next(e for e in _events(chosen[best[1]], chosen[1 - best[1]]) if len(e) == best[2])
    return _bound(counted, event, best[1], false_alarm)


def missed(hit: float, false: float, *, epsilon: float, trials: int, false_alarm: float = 1e-9) -> float:
    r"""The chance, at most, that `membership` finds no more than epsilon where the attacker sees a yes or a no.

    .. math:: 2 \sum_{h, f} \mathrm{Bin}(h; n, a)\,\mathrm{Bin}(f; n, b)\,[\varepsilon(h, f) \le \varepsilon]

    with a = `hit` and b = `false` the chances of a yes in its own world and in the other one, b = 1 - a, and n half
    the trials: once for the half that counts, once for the half that chooses, in which a wrong event is chosen only
    if the bound of the right one is as low. Both worlds have the same law.
    """
    n = trials // 2
    seen = np.arange(n + 1)
    low = np.where(seen > 0, betaincinv(np.maximum(seen, 1), n - seen + 1, false_alarm / 2), 0.0)
    high = np.where(seen < n, betaincinv(seen + 1, np.maximum(n - seen, 1), 1 - false_alarm / 2), 1.0)
    unseen = low[:, None] <= math.exp(epsilon) * high
    return 2 * float(binom.pmf(seen, n, hit) @ unseen @ binom.pmf(seen, n, false))


@dataclass(frozen=True)
class Linkage:
    """What a linkage game found.

    Parameters
    ----------
    success, chance : float
        Share of the reports that the attacker gives to the right device, and what she reaches by guessing.
    p_value : float
        With which a uniform shuffle shows as much, at most.
    """

    success: float
    chance: float
    p_value: float


def linkage(order: ArrayLike) -> Linkage:
    r"""Whether a batch remembers the order of arrival.

    The attacker names devices by place: in the order of arrival, in equal steps along the batch, or earlier ones
    further to one end. Under a uniform shuffle of n reports

    .. math::
        \Pr[F \ge f] \le 1/f!, \qquad \Pr[S_d \ge s] \le 1/s!, \qquad
        \Pr[|I - n(n-1)/4| \ge t] \le 2 \exp\Bigl(-2 t^2 \big/ \sum_{i<n} i^2\Bigr)

    for F reports at their own places, S_d neighbours of which the second arrived d later, and I inversions.

    Parameters
    ----------
    order : int array (n,), a permutation of 0..n-1
        At each place of the batch, when its report arrived.

    Examples
    --------
    >>> linkage(range(100)).p_value < 1e-9
    True
    >>> linkage([3, 1, 4, 0, 2, 5])
    Linkage(success=0.3333333333333333, chance=0.16666666666666666, p_value=1.0)

    Source
    ------
    Factorial moments and Markov's inequality for F and S_d; Hoeffding (1963), Theorem 2, for I, which is a sum of
    independent numbers uniform on 0..i.
    """
    came = np.asarray(order)
    n = came.size
    if n < 2 or not np.array_equal(np.sort(came), np.arange(n)):
        raise DataError("`order` must be a permutation of 0..n-1, n at least 2.")
    steps = np.unique(np.diff(came), return_counts=True)[1].max()
    fixed = int((came == np.arange(n)).sum())
    inversions = sum(int((came[:place] > came[place]).sum()) for place in range(n))
    far = abs(inversions - n * (n - 1) / 4)
    tails = (
        -gammaln(fixed + 1),
        math.log(2 * n) - gammaln(steps + 1),  # d is one of 2 (n - 1)
        math.log(2) - 2 * far**2 / ((n - 1) * n * (2 * n - 1) / 6),
    )
    return Linkage(fixed / n, 1 / n, float(min(1.0, len(tails) * math.exp(min(tails)))))


def _events(mine: Counter[Seen], other: Counter[Seen]) -> list[frozenset[Seen]]:
    """Sets of what was seen, from the most telling one on."""
    telling = sorted(mine, key=lambda seen: (other[seen] + 1) / (mine[seen] + 1))
    return [frozenset(telling[: count + 1]) for count in range(len(telling))]


def _bound(worlds: list[Counter[Seen]], event: frozenset[Seen], world: int, false_alarm: float) -> Membership:
    """The bound that this event gives; each of the two probabilities is wrong with half the false alarm."""
    hits, misses = (sum(worlds[each][seen] for seen in event) for each in (world, 1 - world))
    mine, other = worlds[world].total(), worlds[1 - world].total()
    low = float(betaincinv(hits, mine - hits + 1, false_alarm / 2)) if hits else 0.0
    high = float(betaincinv(misses + 1, other - misses, 1 - false_alarm / 2)) if misses < other else 1.0
    return Membership(max(0.0, math.log(low / high)) if low > 0.0 else 0.0, low, high)

r"""What rounds reveal at least: collections fixed in advance, the same in every round, compose as a product.

Let (P, Q) be the pair of laws of one such collection. A convex function of E between (1 - E)_+ and D_E(P || Q) is the
hockey stick of a pair that is a post-processing of (P, Q); so its products reveal no more than those of (P, Q), which
are a collection that exists.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from dovetail.account.blanket.privacy_blanket import BlanketLaw, ShuffledLaw
from dovetail.account.composition.mechanism_curve import lower_hull
from dovetail.account.composition.pld_convolution import ComposedPLD, Terms, convolve_near
from dovetail.account.composition.privacy_loss import PrivacyLossDistribution
from dovetail.account.composition.shuffled_round import ShuffledRound
from dovetail.account.mechanism_law import Mechanism, attack_dataset, worst_dataset_for
from dovetail.account.threshold_search import bracket_root, log_ratio
from dovetail.core.checks import MOST_PEOPLE
from dovetail.core.errors import UnsupportedError
from dovetail.core.numeric.special import Reals

FINENESS, MOST_PLACES = 10.0, 100  # evaluated points in one typical loss, and of each order
POINTS = 1 << 12  # of the grid on which one collection is summed
GRID, LONGEST_SUM = 800, 2**20  # cells in one typical loss, and about the most for the sum of all
MOST_KINDS = 8  # of rounds that are told apart: beyond, rounds of about as many people count as the largest of them
REACHED = 1e-3  # share of delta below which no more losses are told apart
GIVEN_UP = 1e-3  # share of delta that the grid may be wrong with
LEAST = 1e-9  # nats: smaller losses differ by little more than their rounding
APART = 1e-6  # share of epsilon0 that the last place is below it: slopes of closer places are all rounding
ROUNDING = 1e-11  # share by which values are moved against the attack, for the rounding of their differences

Ends = tuple[Reals, Reals, Reals]  # places E, and lower and upper ends of D_E there


@dataclass(frozen=True, eq=False)
class FixedCollection:
    """One collection: the victim's two values and everybody else's, as its law and its size."""

    law: BlanketLaw
    n: int

    @property
    def scale(self) -> float:
        """About the normal shift that it behaves like: a guess."""
        return min(math.sqrt(self.law.spread / self.n), self.law.epsilon0)

    @cached_property
    def _kept(self) -> dict[float, tuple[Ends, Ends]]:
        return {}

    @cached_property
    def _shuffled(self) -> ShuffledLaw:
        return ShuffledLaw(self.law, self.n, POINTS)

    def ends(self, least: float) -> tuple[Ends, Ends]:
        """As `_ends`, which are kept."""
        if least not in self._kept:
            self._kept[least] = self._ends(least)
        return self._kept[least]

    def _ends(self, least: float) -> tuple[Ends, Ends]:
        """Ends of D_E(P || Q) and of D_E(Q || P) on both sides of E = 1, until they are below `least`."""
        stride, worst = min(self.scale / FINENESS, self.law.epsilon0 / 24.0), self.law.epsilon0
        found = [[self._shuffled.one_way(0.0)], [self._shuffled.one_way(0.0, mirrored=True)]]
        while max(ways[-1].lower for ways in found) > least and len(found[0]) < MOST_PLACES:
            loss = stride * len(found[0])
            if loss >= worst * (1.0 - APART):
                break
            for mirrored, ways in enumerate(found):
                ways.append(self._shuffled.one_way(loss, mirrored=bool(mirrored)))
        losses = np.asarray(stride * np.arange(len(found[0]), dtype=np.float64))
        ahead, back = (
            (
                np.array([end.lower * (1.0 - ROUNDING) for end in ways]),
                np.array([end.upper * (1.0 + ROUNDING) for end in ways]),
            )
            for ways in found
        )
        return _both_sides(losses, ahead, back, worst), _both_sides(losses, back, ahead, worst)


def attacked_epsilon(parts: Sequence[ShuffledRound], *, delta: float, most: float) -> float:
    """An epsilon that fixed collections of the worst known values reach in all rounds together; at most `most`.

    0 where nothing is found.
    """
    if delta == 0.0:  # binary response reaches every smaller sum with positive probability
        return 0.0 if any(part.mechanism is not None for part in parts) else most
    best = 0.0
    if most < LEAST:
        return best
    for attack in _attacks(parts, delta):
        for near in (math.inf, 0.98 * most):
            found = attack.reached(delta, near, most=most)
            best = max(best, found)
            if found > 0.0:  # the tilt for the epsilon found
                best = max(best, attack.reached(delta, found, most=most))
            if best > 0.9 * most:
                break
    return best


def attacked_delta(parts: Sequence[ShuffledRound], *, epsilon: float, scale: float) -> float:
    """A delta that fixed collections reach at `epsilon`, where about `scale` is expected; 0 where none is found."""
    return max(
        (attack.lower(attack.sum(delta=scale, epsilon=epsilon), epsilon) for attack in _attacks(parts, scale)),
        default=0.0,
    )


@dataclass(frozen=True, eq=False)
class _Attack:
    """Losses of a post-processing of one collection in each round, split onto a grid with the mean kept.

    A sum of n splits of width s exceeds the sum of the true losses by more than `allowance` with probability at most
    `beta` (Hoeffding).
    """

    terms: Terms
    beta: float

    @property
    def allowance(self) -> float:
        rounds = sum(times for _, times in self.terms)
        return self.terms[0][0].step * math.sqrt(0.5 * rounds * math.log(1.0 / self.beta)) * (1.0 + 1e-12)

    def sum(self, *, delta: float, epsilon: float) -> ComposedPLD:
        return convolve_near(self.terms, delta=delta, epsilon=epsilon + self.allowance)

    def reached(self, delta: float, near: float, *, most: float) -> float:
        """The largest epsilon at which the sum tilted for `near` was seen to exceed `delta`; 0 where none was."""
        total = self.sum(delta=delta, epsilon=near)
        return bracket_root(
            lambda e: log_ratio(self.lower(total, e), delta),
            min(near, max(total.middle, total.step), 0.99 * most),
            steepness=2.0 * math.log(1.0 / delta) + 1.0,
            most=most,
            tolerance=1e-6,
        )[0]

    def lower(self, total: ComposedPLD, epsilon: float) -> float:
        """What all rounds reach at `epsilon`."""
        return max(0.0, total.lower(epsilon + self.allowance) - self.beta)


def _attacks(parts: Sequence[ShuffledRound], delta: float) -> Iterator[_Attack]:
    """Both orders of the two values, which are the same in every round."""
    try:
        known = [(_collection(who, n), times) for (who, n), times in _kinds(parts).items()]
        ends = [(one.ends(REACHED * delta), times) for one, times in known]
    except UnsupportedError:
        return
    step, alike = _step(known), all(one.law.symmetric for one, _ in known)
    for order in (0,) if alike else (0, 1):
        terms = [(_lower_pld(both[order], step), times) for both, times in ends]
        if all(pld.masses.any() for pld, _ in terms):  # rounding leaves nothing of losses near 1e-16
            yield _Attack(terms, GIVEN_UP * delta)


def _lower_pld(ends: Ends, step: float) -> PrivacyLossDistribution:
    """Slopes of values near 1 are wrong by a few roundings over the distance of their places."""
    nearest = float(np.diff(np.log(ends[0][1:])).min())
    return split_pld(*lower_vertices(*ends), step=step, error=1e-9 + 2.0**-48 / nearest)


def _kinds(parts: Sequence[ShuffledRound]) -> Counter[tuple[Mechanism | float, int]]:
    """Who shuffled with how many others, with the number of such rounds; few kinds.

    More people of a collection with common values reveal no more: those beyond n may be revealed.
    """
    ratio = 1.0
    while True:
        kinds: Counter[tuple[Mechanism | float, int]] = Counter()
        for part in parts:
            n = part.n if ratio == 1.0 else min(math.ceil(ratio ** math.ceil(math.log(part.n, ratio))), MOST_PEOPLE)
            kinds[(part.mechanism or part.epsilon0, max(part.n, n))] += part.times
        if len(kinds) <= MOST_KINDS or ratio > 2.0**40:
            break
        ratio = 1.1 if ratio == 1.0 else ratio * ratio
    if len(kinds) > MOST_KINDS:
        raise UnsupportedError(f"Attacks are evaluated for {MOST_KINDS} kinds of rounds, got {len(kinds)}.")
    return kinds


@lru_cache(maxsize=32)
def _collection(who: Mechanism | float, n: int) -> FixedCollection:
    return FixedCollection(worst_dataset_for(who) if isinstance(who, float) else attack_dataset(who), n)


def _step(known: Sequence[tuple[FixedCollection, int]]) -> float:
    rounds = sum(times for _, times in known)
    typical = math.sqrt(math.fsum(times * one.scale**2 for one, times in known) / rounds)
    widest = max(one.scale for one, _ in known)
    return max(typical / GRID, 16.0 * typical * math.sqrt(rounds) / LONGEST_SUM, 16.0 * widest / LONGEST_SUM)


def _both_sides(losses: Reals, ahead: tuple[Reals, Reals], back: tuple[Reals, Reals], worst: float) -> Ends:
    """Places ascending in E: below 1 it is 1 - E + E D_{1/E}(Q || P); at both ends nothing is left."""
    below, above = np.exp(-losses[:0:-1]), np.exp(losses)
    low, high = (np.concatenate([1.0 - below + below * b[:0:-1], a]) for b, a in zip(back, ahead, strict=True))
    first, last = math.exp(-worst) * (1.0 - 1e-15), math.exp(worst) * (1.0 + 1e-15)
    return (
        np.concatenate([[0.0, first], below, above, [last]]),
        np.concatenate([[1.0, 1.0 - first], low, [0.0]]),
        np.concatenate([[1.0, 1.0 - first], high, [0.0]]),
    )


def lower_vertices(places: Reals, low: Reals, high: Reals) -> tuple[Reals, Reals]:
    """Vertices of a convex function below every convex function between the two ends, which falls no faster than E.

    Between two places the lines through the neighbours outside, of which the nearer one counts at its lower end and
    the farther one at its upper end, lie below it; where they meet is a vertex.
    """
    gaps = np.diff(places)
    from_left = np.maximum(np.append(-1.0, (low[1:-1] - high[:-2]) / gaps[:-1]), -1.0)  # slopes from places[j] on
    from_right = np.minimum(np.append((high[2:] - low[1:-1]) / gaps[1:], 0.0), 0.0)  # slopes up to places[j + 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        along = (low[1:] - low[:-1] - from_right * gaps) / (from_left - from_right)
    inside = (from_left < from_right) & (along > 0.0) & (along < gaps)
    x = np.concatenate([places, (places[:-1] + along)[inside]])
    y = np.concatenate([low, (low[:-1] + from_left * along)[inside]])
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    kept = np.append(True, np.diff(x) > 0.0)
    hull = lower_hull(x[kept], y[kept])
    return x[kept][hull], y[kept][hull]


def split_pld(places: Reals, heights: Reals, *, step: float, error: float = 1e-9) -> PrivacyLossDistribution:
    r"""The losses under P of the pair with this hockey stick, each split onto two multiples of `step`, its mean kept.

    .. math:: P(\log E_j) = E_j (C'(E_j+) - C'(E_j-))

    Mass on the two outermost vertices, of losses that were not told apart, is moved down: the lowest is left out.
    """
    slopes = np.append(np.diff(heights) / np.diff(places), 0.0)
    masses = places[1:] * np.maximum(np.diff(slopes), 0.0)
    if masses.size < 3:
        return PrivacyLossDistribution(step, 0.0, np.zeros(1), 0.0, 0.0)
    losses = np.log(places[1:])
    masses, losses = masses[1:], np.minimum(losses[1:], losses[-2])
    cells = np.floor(losses / step)
    right = losses / step - cells
    first = int(cells.min())
    where = (cells - first).astype(np.int64)
    size = int(where.max()) + 2
    grid = np.bincount(where, masses * (1.0 - right), size) + np.bincount(where + 1, masses * right, size)
    return PrivacyLossDistribution(step, step * first, grid / max(1.0, float(grid.sum())), 0.0, error)

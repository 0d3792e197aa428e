"""A shuffled collection that is repeated, and what several of them add up to before any theorem."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from dovetail.account.bound import bracket_root, log_ratio
from dovetail.account.clones import ClonePair, Kind, total_variation
from dovetail.account.mechanism_law import Mechanism, attack_dataset, has_law, local_epsilon
from dovetail.account.mixture import SOURCE, UP, MixtureLaw
from dovetail.account.privacy_blanket import BlanketLaw, ShuffledLaw
from dovetail.account.privacy_loss import (
    COARSE,
    ComposedPLD,
    MechanismCurve,
    PrivacyLossDistribution,
    Terms,
    convolve_near,
    envelope_pld,
    evaluate_delta,
    lower_hull,
    smallest_of_sum,
)
from dovetail.core.certified import round_up_sum
from dovetail.core.checks import MOST_PEOPLE, privacy_budget, refuse, share, whole
from dovetail.core.errors import UnsupportedError
from dovetail.core.special import Reals
from dovetail.core.stages import Randomizer

MOST_ROUNDS = 10**9

Pairs = Sequence[tuple[ClonePair, int]]
Laws = Sequence[tuple[ClonePair | MechanismCurve, int]]


@dataclass(frozen=True)
class ShuffledRound:
    r"""One shuffled collection, or several alike, of the same people with fresh randomness and a fresh shuffle.

    The randomizer of a round may depend on everything released before, as long as it is one and the same for all
    people inside the round ("stronger clones"), or keeps the promise given the reports before ("clones").

    Parameters
    ----------
    epsilon0 : float, above 0, at most 700, nats
    n : int, 1 .. 1e12
        Honest reports in the batch of this round.
    times : int, at least 1
    kind : "stronger clones" or "clones"
        Default "stronger clones" for pure randomizers; with delta0 only "clones" is proved, and is the default.
    delta0 : float, at least 0, below 1
        What one report's pure guarantee may fail by.
    mechanism : Randomizer or Channel, optional
        What everybody runs, where that is known when the guarantee is stated: its own law may promise more. Which
        mechanism, n and how many rounds must not depend on earlier outputs then; what people are asked may. See `of`.

    Raises
    ------
    ParameterError
        For parameters outside their ranges.
    UnsupportedError
        For "stronger clones" with a delta0, which no theorem covers.

    Examples
    --------
    >>> ShuffledRound(1.0, 10_000).pair.kind, ShuffledRound(1.0, 10_000, delta0=1e-15).pair.kind
    ('stronger clones', 'clones')
    """

    epsilon0: float
    n: int
    times: int = field(default=1, kw_only=True)
    kind: Kind | None = field(default=None, kw_only=True)
    delta0: float = field(default=0.0, kw_only=True)
    mechanism: Mechanism | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", whole("times", self.times, least=1, most=MOST_ROUNDS))
        object.__setattr__(self, "epsilon0", privacy_budget("epsilon0", self.epsilon0))
        object.__setattr__(self, "delta0", share("delta0", self.delta0))
        if self.mechanism is not None:
            _checked(self.mechanism)
        if self.kind is not None and not isinstance(self.kind, str):
            raise refuse("kind", '"stronger clones" or "clones"', self.kind)
        if self.delta0 > 0.0 and self.kind == "stronger clones":
            raise UnsupportedError(
                "Stronger clones are proved for pure local privacy (docs/theory/stronger-clones.md); "
                'with `delta0` above 0 use kind="clones".'
            )
        if self.mechanism is not None and not self._plain:
            raise UnsupportedError(
                "A mechanism's own law is proved for pure local privacy and one fixed randomizer in a round, with "
                "its own epsilon0; leave `mechanism` out for every other round."
            )
        object.__setattr__(self, "n", self.pair.n)

    @classmethod
    def of(cls, mechanism: Mechanism, n: int, *, times: int = 1) -> ShuffledRound:
        """Rounds of this mechanism, judged by its own law where it has one.

        Examples
        --------
        >>> from dovetail.randomize.krr import KRR
        >>> ShuffledRound.of(KRR(k=10, epsilon=1.0), 10_000, times=5).epsilon0
        1.0
        """
        _checked(mechanism)
        if isinstance(mechanism, Randomizer) and mechanism.guarantee.delta > 0.0:
            return cls(mechanism.guarantee.epsilon, n, times=times, delta0=mechanism.guarantee.delta)
        own = mechanism if has_law(mechanism) else None
        return cls(local_epsilon(mechanism), n, times=times, mechanism=own)

    @property
    def dominating(self) -> ClonePair | MechanismCurve:
        """The dominating pair of one such round, but for delta0."""
        if self.pair.kind == "clones":
            return self.pair
        curve = MechanismCurve(self.mechanism or self.epsilon0, self.n)
        return curve if self.mechanism is not None or curve.hides_more else self.pair

    @property
    def _plain(self) -> bool:
        """True if nothing but the mechanism and n was said."""
        return (
            self.mechanism is not None
            and self.kind != "clones"
            and self.delta0 == 0.0
            and self.epsilon0 == local_epsilon(self.mechanism)
            and not (isinstance(self.mechanism, Randomizer) and self.mechanism.guarantee.delta > 0.0)
        )

    @property
    def pair(self) -> ClonePair:
        """The pair that dominates one such round, but for delta0."""
        return ClonePair(self.epsilon0, self.n, self.kind or ("clones" if self.delta0 else "stronger clones"))


def _checked(mechanism: object) -> None:
    if not isinstance(mechanism, Mechanism):
        raise refuse("mechanism", "a randomizer, a channel or several questions", mechanism)


def distinct_pairs(parts: Sequence[ShuffledRound]) -> Pairs:
    """Each pair once, with the number of its rounds."""
    count: Counter[ClonePair] = Counter()
    for part in parts:
        count[part.pair] += part.times
    return list(count.items())


def distinct_laws(parts: Sequence[ShuffledRound]) -> Laws:
    """The dominating pair of each kind of round, once, with the number of its rounds."""
    count: Counter[ClonePair | MechanismCurve] = Counter()
    for part in parts:
        count[part.dominating] += part.times
    return list(count.items())


def total_slack(parts: Sequence[ShuffledRound]) -> float:
    """How far all rounds together may be from purely private ones."""
    each = (total_variation(part.pair, part.delta0) for part in parts)
    return round_up_sum(each, times=[part.times for part in parts])


def local_total(parts: Sequence[ShuffledRound]) -> tuple[float, float]:
    """The local promises of all rounds added up: what a colluding shuffler leaves."""
    times = [part.times for part in parts]
    return (
        round_up_sum((part.epsilon0 for part in parts), times=times),
        round_up_sum((part.delta0 for part in parts), times=times),
    )


# Several shuffled rounds of people with different epsilons, as a person of one class is exposed in all of them.


POINTS, MOST_POINTS, LONGEST_SUM = 200, 10**5, 2**22  # of the grid: in a typical loss, the widest one, their sum
BASIC = "basic composition"
LOSSES = "privacy loss of the mixtures"
LOCAL = "local budgets add"


@dataclass(frozen=True)
class MixtureRounds:
    """So many rounds, each with at least the others of this law.

    Parameters
    ----------
    law : MixtureLaw
        Of the weakest: the others of every round are at least as many of each class.
    rounds : int, at least 1
    """

    law: MixtureLaw
    rounds: int

    def __post_init__(self) -> None:
        whole("rounds", self.rounds, least=1, most=10**9)

    def epsilon(self, delta: float) -> tuple[float, str, str]:
        r"""The least of three bounds, its name, and its source.

        .. math:: T \epsilon_0, \qquad T \epsilon(\delta / T), \qquad
                  \epsilon : E\left[(1 - e^{\epsilon - L_1 - \dots - L_T})_+\right] \le \delta

        L_t has the convex envelope of the certified delta of one round as its hockey stick, so that it dominates.

        Source: Dwork et al. (2006), Theorem 1; Zhu, Dong, Wang (2022), Theorem 10.
        """
        if not share("delta", delta) > 0.0:
            raise refuse("delta", "above 0: at delta 0 shuffling amplifies nothing", delta)
        rounds, own = self.rounds, self.law.own.epsilon
        found = [
            (rounds * own * UP, LOCAL, "Dwork et al. (2006), Theorem 1"),
            (rounds * self.law.epsilon(delta / rounds) * UP, BASIC, f"Dwork et al. (2006), Theorem 1; of [{SOURCE}]"),
        ]
        if rounds > 1:
            composed = self._composed(delta)
            if composed is not None:
                source = f"Zhu, Dong, Wang (2022), Theorem 10 (dominating pairs compose); of [{SOURCE}]"
                found.append((composed, LOSSES, source))
        return min(found)

    def _composed(self, delta: float) -> float | None:
        rounds, most = self.rounds, self.rounds * self.law.own.epsilon
        scale = self._typical
        widest = min(self.law.own.epsilon, 20.0 * scale)
        step = max(scale / POINTS, 16.0 * scale * math.sqrt(rounds) / LONGEST_SUM, widest / MOST_POINTS)
        stride = max(1, math.floor(min(scale, 0.5 * self.law.own.epsilon) / COARSE / step))
        cut = 1e-3 * delta / rounds
        places, values = evaluate_delta(self.law.delta, self.law.own.epsilon, stride * step, cut)
        pld = envelope_pld(np.rint(places / step).astype(np.int64), values, step=step)
        return smallest_of_sum([(pld, rounds)], delta=delta, most=most)

    @property
    def _typical(self) -> float:
        """About the standard deviation of the loss of one round: a guess, never a bound."""
        law = self.law
        return min(law.uniform * (law.ratio - 1.0) * math.sqrt(2.0 / (law.own.k * (law.mean + 1.0))), law.own.epsilon)


# What rounds reveal at least: collections fixed in advance, the same in every round, compose as a product.
#
# Let (P, Q) be the pair of laws of one such collection. A convex function of E between (1 - E)_+ and D_E(P || Q) is
# the hockey stick of a pair that is a post-processing of (P, Q); so its products reveal no more than those of (P, Q),
# which are a collection that exists.


FINENESS, MOST_PLACES = 10.0, 100  # evaluated points in one typical loss, and of each order
COLLECTION_POINTS = 1 << 12  # of the grid on which one collection is summed
GRID, LONGEST_COLLECTION = 800, 2**20  # cells in one typical loss, and about the most for the sum of all
MOST_KINDS = 8  # of rounds that are told apart: beyond, rounds of about as many people count as the largest of them
REACHED = 1e-3  # share of delta, and of what one of so many rounds has at 0, below which losses are not told apart
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
        return ShuffledLaw(self.law, self.n, COLLECTION_POINTS)

    def ends(self, least: float) -> tuple[Ends, Ends]:
        """As `_ends`, which are kept."""
        if least not in self._kept:
            self._kept[least] = self._ends(least)
        return self._kept[least]

    def _ends(self, least: float) -> tuple[Ends, Ends]:
        """Ends of D_E(P || Q) and of D_E(Q || P) on both sides of E = 1, until they are below `least`."""
        stride, worst = min(self.scale / FINENESS, self.law.epsilon0 / 24.0), self.law.epsilon0
        orders = (False,) if self.law.symmetric else (False, True)
        found = [[self._shuffled.one_way(0.0, mirrored=mirrored)] for mirrored in orders]
        while max(ways[-1].lower for ways in found) > least and len(found[0]) < MOST_PLACES:
            loss = stride * len(found[0])
            if loss >= worst * (1.0 - APART):
                break
            for mirrored, ways in zip(orders, found, strict=True):
                ways.append(self._shuffled.one_way(loss, mirrored=mirrored))
        losses = np.asarray(stride * np.arange(len(found[0]), dtype=np.float64))
        ahead, back = (
            (
                np.array([end.lower * (1.0 - ROUNDING) for end in ways]),
                np.array([end.upper * (1.0 + ROUNDING) for end in ways]),
            )
            for ways in (found[0], found[-1])
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
            best = max(best, attack.reached(delta, near, most=most))
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
        """Lower bound for delta of all rounds at `epsilon`."""
        return max(0.0, total.lower(epsilon + self.allowance) - self.beta)


def _attacks(parts: Sequence[ShuffledRound], delta: float) -> Iterator[_Attack]:
    """Both orders of the two values, which are the same in every round."""
    try:
        known = [(_collection(who, n), times) for (who, n), times in _kinds(parts).items()]
        ends = [(one.ends(REACHED * min(delta, one.scale / times)), times) for one, times in known]
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
    """Number of rounds by mechanism and by the others who were shuffled with it; few kinds.

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
    return FixedCollection(attack_dataset(who), n)


def _step(known: Sequence[tuple[FixedCollection, int]]) -> float:
    rounds = sum(times for _, times in known)
    typical = math.sqrt(math.fsum(times * one.scale**2 for one, times in known) / rounds)
    widest = max(one.scale for one, _ in known)
    return max(
        typical / GRID, 16.0 * typical * math.sqrt(rounds) / LONGEST_COLLECTION, 16.0 * widest / LONGEST_COLLECTION
    )


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
    y = np.concatenate([low, low[:-1][inside] + from_left[inside] * along[inside]])
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

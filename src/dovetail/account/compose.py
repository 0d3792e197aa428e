"""Many shuffled rounds about the same people: one central epsilon for all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from dovetail.account.amplify import SOURCES
from dovetail.account.attack_lower_bound import attack_lower
from dovetail.account.bound import Bound
from dovetail.account.clones.approximate import LOCAL, smallest_epsilon, too_large_reason
from dovetail.account.clones.stronger_clones import ClonePair
from dovetail.account.composition.basic_advanced_renyi import advanced, basic, renyi
from dovetail.account.composition.fixed_collections import attacked_delta, attacked_epsilon
from dovetail.account.composition.pld_convolution import ComposedPLD, Terms, convolve_near, shift_quantile
from dovetail.account.composition.privacy_loss import optimistic_pld, pessimistic_pld
from dovetail.account.composition.shuffled_round import (
    Laws,
    Pairs,
    ShuffledRound,
    distinct_laws,
    distinct_pairs,
    local_total,
    total_slack,
)
from dovetail.account.mechanism_law import mechanism_attack
from dovetail.core.bracket import Bracket
from dovetail.core.checks import real, refuse, share

METHOD = "privacy loss of the clone pairs"
MECHANISM_METHOD = "privacy loss of the mechanisms"
COMPOSITION = (
    "Zhu, Dong, Wang (2022), Optimal Accounting of Differential Privacy, Theorem 10 (dominating pairs compose)"
)
LEAST_DELTA = 1e-200  # below, the tails that are cut off would not be doubles
POINTS = 200  # grid points in one typical loss
MOST_POINTS, LONGEST_SUM = 10**5, 2**21  # about the most for one round, and for the sum


@dataclass(frozen=True)
class Composition:
    """What all rounds together reveal about one person, at one delta, and what simpler theorems would say.

    Parameters
    ----------
    epsilon : float or None, nats
        Upper bound; None where no theorem says anything, with the `reason`.
    lower : float or None, nats
        Numerical lower end of the same theorem's own value: how exact the numerics are. Where rounds name their
        mechanism, it is `attack_lower`.
    delta : float
    rounds : int
    method, source : str
    basic, advanced, renyi : Bound
        Comparisons: basic and advanced composition of single rounds, and Renyi divergences of the same pairs.
    neighbours : str
    attack_lower : float, nats
        What collections reach that are fixed in advance, everybody else on a common value in every round: no proof
        can promise less. 0 where none is known.

    Raises
    ------
    UnsupportedError
        From `compose`, which makes them, where no theorem covers the rounds.

    Examples
    --------
    >>> from dovetail.account.composition.shuffled_round import ShuffledRound
    >>> total = compose([ShuffledRound(1.0, 10_000, times=10)], delta=1e-6)
    >>> total.rounds, total.epsilon is not None and total.epsilon < 1.0
    (10, True)
    """

    epsilon: float | None
    lower: float | None
    delta: float
    rounds: int
    method: str
    source: str
    basic: Bound
    advanced: Bound
    renyi: Bound
    reason: str = ""
    neighbours: str = "replace one person's value"
    attack_lower: float = 0.0


def compose(
    rounds: int | Iterable[ShuffledRound], *, delta: float, epsilon0: float | None = None, n: int | None = None
) -> Composition:
    r"""The central epsilon of several shuffled collections from the same people.

    .. math:: \delta(\epsilon) = E\left[ (1 - e^{\epsilon - L_1 - \dots - L_T})_+ \right]
              + (e^{\epsilon} + 1) \sum_t (1 + e^{-\epsilon_{0,t}})\, n_t\, \delta_{0,t}

    L_t is the privacy loss, under P_t, of the pair (P_t, Q_t) that dominates round t: the clone pair, or where the
    round names its mechanism the convex envelope of the smallest certified delta. The smallest of this, basic
    composition and the sum of the local promises is returned.

    Parameters
    ----------
    rounds : int, or several `ShuffledRound`
        A number of equal rounds goes with `epsilon0` and `n`.
    delta : float, at least 0, below 1
        At 0, or above and at least 1e-200.

    Raises
    ------
    UnsupportedError
        When the rounds differ so much that one grid cannot hold them.

    Notes
    -----
    About a second for a thousand rounds, whatever n is; different rounds cost 0.1 s each. The relative gap to
    `lower` is about 1e-3 for a thousand equal rounds; the upper end itself lies within 1e-4.

    Examples
    --------
    >>> equal = compose(1000, epsilon0=1.0, n=10_000, delta=1e-6)
    >>> round(equal.epsilon, 3), round(equal.basic.epsilon, 1)
    (1.759, 62.2)
    >>> different = compose([ShuffledRound(1.0, 10_000), ShuffledRound(2.0, 5_000, times=12)], delta=1e-6)
    >>> round(different.epsilon, 3)
    0.627

    Source
    ------
    Zhu, Dong, Wang (2022), Optimal Accounting of Differential Privacy via Characteristic Function, Theorem 10;
    `SOURCES` for the pairs; Koskela, Jaelkoe, Honkela (2020), Computing Tight Differential Privacy Guarantees Using
    FFT, for the method; Feldman, McMillan, Talwar (2021), Proposition 2.2, for delta0.
    """
    parts = _read_rounds(rounds, epsilon0, n)
    quoted = compose_upper(parts, delta=delta)
    if quoted.epsilon is None or quoted.epsilon == 0.0:
        return quoted
    once = _reached_once(parts, quoted.delta)
    attack = min(max(once, attacked_epsilon(parts, delta=quoted.delta, most=quoted.epsilon)), quoted.epsilon)
    lower = attack if _of_mechanisms(parts) and quoted.lower is not None else quoted.lower
    return replace(quoted, attack_lower=attack, lower=lower)


def compose_upper(
    rounds: int | Iterable[ShuffledRound], *, delta: float, epsilon0: float | None = None, n: int | None = None
) -> Composition:
    """What `compose` promises, without the attack beside it: for searches.

    Examples
    --------
    >>> round(compose_upper(1000, epsilon0=1.0, n=10_000, delta=1e-6).epsilon, 3)
    1.759
    """
    parts, target = _read_rounds(rounds, epsilon0, n), share("delta", delta)
    if 0.0 < target < LEAST_DELTA:
        raise refuse("delta", f"0 or at least {LEAST_DELTA:g}, where what is cut off still counts", delta)
    simple, local = basic(parts, target), local_total(parts)
    bounds = [simple] if local[1] > target else [Bound("local", local[0], LOCAL), simple]
    kept = any(bound.epsilon == 0.0 for bound in bounds)  # nothing can be smaller
    found = _numeric_epsilon(parts, target) if target > 0.0 and not kept else None
    if found is not None:
        bounds.append(_composed_bound(parts, found))
        if _of_mechanisms(parts):  # their envelopes are coarser than the losses of clone pairs
            pairs = [replace(part, mechanism=None) for part in parts]
            clones = _numeric_epsilon(pairs, target)
            bounds += [] if clones is None else [_composed_bound(pairs, clones)]
    best = min(bounds, key=lambda bound: math.inf if bound.epsilon is None else bound.epsilon)
    return Composition(
        epsilon=best.epsilon,
        lower=0.0 if kept else None if found is None or best.epsilon is None else min(found.lower, best.epsilon),
        delta=target,
        rounds=sum(part.times for part in parts),
        method=best.name,
        source=best.source,
        basic=simple,
        advanced=advanced(parts, target),
        renyi=renyi(parts, target),
        reason=too_large_reason(total_slack(parts), target) if found is None and total_slack(parts) > 0.0 else "",
    )


def composed_delta(
    rounds: int | Iterable[ShuffledRound], *, epsilon: float, epsilon0: float | None = None, n: int | None = None
) -> Bracket:
    """Ends of delta at `epsilon` (at least 0) for all rounds together; see `compose`.

    Raises
    ------
    ParameterError
        For an epsilon below 0, and for rounds given twice or not at all.

    Examples
    --------
    >>> ends = composed_delta(1000, epsilon=1.7585, epsilon0=1.0, n=10_000)
    >>> ends.lower < 1e-6 < ends.upper < 1.01e-6
    True
    """
    parts = _read_rounds(rounds, epsilon0, n)
    if not real("epsilon", epsilon) >= 0.0:
        raise refuse("epsilon", "at least 0", epsilon)
    local = local_total(parts)
    if epsilon >= local[0]:
        return Bracket(0.0, min(1.0, local[1]))
    laws, cut = distinct_laws(parts), 1e-20
    while True:  # until what was cut off weighs nothing
        total = convolve_near(_pessimistic_terms(laws, cut), delta=cut, epsilon=epsilon)
        upper = total.upper(epsilon)
        if total.infinity <= 1e-6 * upper or cut <= LEAST_DELTA or _of_mechanisms(parts):
            break
        cut = max(min(1e-9 * upper, 1e-20 * cut), LEAST_DELTA)
    if _of_mechanisms(parts):
        lower = min(attacked_delta(parts, epsilon=epsilon, scale=upper), upper) if upper > LEAST_DELTA else 0.0
    else:
        below, allowance = _optimistic_terms(distinct_pairs(parts), cut, beta=1e-3 * upper)
        moved = epsilon + allowance
        lower = max(0.0, convolve_near(below, delta=cut, epsilon=moved).lower(moved) - 1e-3 * upper)
    added = (math.exp(epsilon) + 1.0) * total_slack(parts) if epsilon < 700.0 else math.inf
    return Bracket(min(1.0, lower + added), min(1.0, upper + added))


def _numeric_epsilon(parts: Sequence[ShuffledRound], delta: float) -> Bracket | None:
    """Ends of the smallest epsilon that the losses and delta0 leave; None when delta0 leaves none."""
    slack, most = total_slack(parts), local_total(parts)[0]
    terms = _pessimistic_terms(distinct_laws(parts), 1e-9 * delta)

    def smallest(total: ComposedPLD) -> tuple[float, float] | None:
        guess = max(total.middle, total.step)
        return smallest_epsilon(
            lambda e: total.upper(e) if e < most else 0.0, delta, slack=slack, most=most, guess=guess
        )

    first = smallest(convolve_near(terms, delta=delta))
    if first is None:
        return None
    high = (smallest(convolve_near(terms, delta=delta, epsilon=first[1])) or first)[
        1
    ]  # the tilt for the epsilon found
    if _of_mechanisms(parts):
        return Bracket(min(high, _reached_once(parts, delta)), high)
    below, allowance = _optimistic_terms(distinct_pairs(parts), 1e-9 * delta, beta=1e-3 * delta)
    sunk = convolve_near(below, delta=delta, epsilon=high + allowance)

    def beyond(epsilon: float) -> bool:
        value = sunk.lower(epsilon + allowance) - 1e-3 * delta
        return value + ((math.exp(epsilon) + 1.0) * slack if slack > 0.0 else 0.0) > delta

    return Bracket(_lower_end(beyond, high, stride=0.5 * max(allowance, sunk.step)), high)


def _lower_end(beyond: Callable[[float], bool], high: float, *, stride: float) -> float:
    """A point below `high` that was seen to be `beyond` the threshold, the nearest up to a percent; else 0."""
    near = 0.0
    while stride < high and not beyond(high - stride):
        near, stride = stride, 2.0 * stride
    if stride >= high:
        return 0.0
    for _ in range(7):
        middle = 0.5 * (near + stride)
        near, stride = (near, middle) if beyond(high - middle) else (middle, stride)
    return high - stride


def _composed_bound(parts: Sequence[ShuffledRound], found: Bracket) -> Bound:
    """The bound of composed losses, by the laws that they are of."""
    own = "the smallest certified delta of each mechanism (docs/theory/hidden-among-everybody.md)"
    laws = "; ".join(dict.fromkeys(own if part.mechanism else SOURCES[part.pair.kind] for part in parts))
    name = MECHANISM_METHOD if _of_mechanisms(parts) else METHOD
    return Bound(name, found.upper, f"{COMPOSITION}; {laws}", lower=found.lower)


def _of_mechanisms(parts: Sequence[ShuffledRound]) -> bool:
    """Whether some round is judged by a mechanism's own law."""
    return any(part.mechanism is not None for part in parts)


def _reached_once(parts: Sequence[ShuffledRound], delta: float) -> float:
    """What an attack on the worst of the rounds alone reaches: all of them together reveal no less."""

    def reached(part: ShuffledRound) -> float:
        if part.mechanism is None:
            return attack_lower(part.epsilon0, part.n, delta)
        return mechanism_attack(part.mechanism, n=part.n, delta=delta)

    alone = max(parts, key=lambda part: part.pair.gaussian_scale)
    return reached(alone)


def _pessimistic_terms(laws: Laws, cut: float) -> Terms:
    """Laws of losses that dominate, on one grid, with about `cut` cut off from all rounds together."""
    step, share = _step(laws), cut / sum(times for _, times in laws)
    terms = []
    for law, times in laws:
        if isinstance(law, ClonePair):
            terms.append((pessimistic_pld(law, step=step, cut=share), times))
        else:
            terms.append((law.pessimistic(step=step, cut=share), times))
    return terms


def _optimistic_terms(pairs: Pairs, cut: float, *, beta: float) -> tuple[Terms, float]:
    """Laws of losses near the pairs' own, and what their sum exceeds the true one by, with probability 1 - beta."""
    step, rounds = _step(pairs), sum(times for _, times in pairs)
    made = [optimistic_pld(pair, step=step, cut=cut / rounds) for pair, _ in pairs]
    terms = [(pld, times) for (pld, _), (_, times) in zip(made, pairs, strict=True)]
    return terms, shift_quantile(terms, [shifts for _, shifts in made], beta)


def _step(pairs: Laws) -> float:
    """A small share of a typical loss; larger where the sum or a single round would not fit the grid."""
    rounds = sum(times for _, times in pairs)
    scales = [min(pair.gaussian_scale, pair.epsilon0) for pair, _ in pairs]
    typical = math.sqrt(math.fsum(times * s * s for s, (_, times) in zip(scales, pairs, strict=True)) / rounds)
    widest = max(min(pair.epsilon0, 20.0 * scale) for scale, (pair, _) in zip(scales, pairs, strict=True))
    return max(typical / POINTS, 16.0 * typical * math.sqrt(rounds) / LONGEST_SUM, widest / MOST_POINTS)


def _read_rounds(
    rounds: int | Iterable[ShuffledRound], epsilon0: float | None, n: int | None
) -> tuple[ShuffledRound, ...]:
    """The rounds in an order of their own, so that their order does not matter."""
    if isinstance(rounds, Iterable):
        if epsilon0 is not None or n is not None:
            raise refuse("rounds", "a number, where `epsilon0` and `n` are given", rounds)
        parts = tuple(rounds)
        if not parts or not all(isinstance(part, ShuffledRound) for part in parts):
            raise refuse("rounds", "a number of rounds or several `ShuffledRound`", rounds)
    else:
        if epsilon0 is None or n is None:
            raise refuse("rounds", "several `ShuffledRound`, where `epsilon0` or `n` is missing", rounds)
        parts = (ShuffledRound(epsilon0, n, times=rounds),)
    return tuple(sorted(parts, key=_order))


def _order(part: ShuffledRound) -> tuple[float, int, str, float, str]:
    return part.epsilon0, part.n, part.pair.kind, part.delta0, repr(part.mechanism)

"""Many shuffled rounds about the same people: one central epsilon for all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dovetail.account.amplify import SOURCES, Subject, amplify
from dovetail.account.attack_lower_bound import attack_lower
from dovetail.account.bound import Bound, log_ratio
from dovetail.account.clones import LOCAL, ClonePair, normal_threshold, too_large_reason
from dovetail.account.mechanism_law import mechanism_attack
from dovetail.account.privacy_loss import (
    MechanismCurve,
    Terms,
    convolve_near,
    optimistic_pld,
    pessimistic_pld,
    shift_quantile,
    smallest_of_sum,
    tilt_near,
)
from dovetail.account.questions import JointReport, OneQuestion
from dovetail.account.renyi import advanced, basic, renyi
from dovetail.account.rounds import (
    Laws,
    Pairs,
    ShuffledRound,
    attacked_delta,
    attacked_epsilon,
    distinct_laws,
    distinct_pairs,
    local_total,
    total_slack,
)
from dovetail.core.certified import Bracket, round_up_sum
from dovetail.core.checks import real, refuse, share, whole
from dovetail.core.errors import UnsupportedError
from dovetail.core.guarantee import CentralDP, LocalDP
from dovetail.core.stages import Randomizer
from dovetail.randomize.krr import KRR

METHOD = "privacy loss of the clone pairs"
MECHANISM_METHOD = "privacy loss of the mechanisms"
COMPOSITION = (
    "Zhu, Dong, Wang (2022), Optimal Accounting of Differential Privacy, Theorem 10 (dominating pairs compose)"
)
BASIC = "basic composition"
ALL_BUT, SURELY = 1e-9, 0.999  # share of the local budgets that a bound could save; how likely nobody hides anybody
CLEARLY = 0.99  # share of the clone pair's typical loss
CLOSE = 5e-3  # share of log delta that closer places may change
LEAST_DELTA = 1e-200  # below, the tails that are cut off would not be doubles
POINTS, DENSE = 200, 48  # grid points in one typical loss, and in the smallest of several
LEAST_TILT, NORMAL = 0.3, (0.7, 1.3)  # in standard deviations of the sum; a tilt over that of normal losses
MOST_POINTS, LONGEST_SUM = 10**5, 2**21  # about the most for one round, and for the sum


@dataclass(frozen=True)
class Composition:
    """Guarantee of all rounds together at one delta, beside the bounds of simpler theorems.

    Parameters
    ----------
    epsilon : float or None, nats
        Upper bound; None where no theorem says anything, with the `reason`.
    lower : float or None, nats
        `attack_lower`; where randomizers may differ in a round, the numerical lower end of the same theorem's own
        value: how exact the numerics are.
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
    >>> from dovetail.account.rounds import ShuffledRound
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

    L_t is the privacy loss, under P_t, of the pair (P_t, Q_t) that dominates round t: the clone pair, or the convex
    envelope of the smallest certified delta, of its mechanism or of any randomizer (Theorem C). The smallest of this,
    basic composition and the sum of the local promises is returned.

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
    About a second for a thousand rounds, whatever n is; different rounds cost 0.1 to 0.4 s each. Of a thousand equal
    rounds of any randomizer, epsilon0 = 1 and n = 10,000, the upper end is 1.02 times an attack.

    Examples
    --------
    >>> equal = compose(1000, epsilon0=1.0, n=10_000, delta=1e-6)
    >>> round(equal.epsilon, 3), round(equal.basic.epsilon, 1)
    (1.566, 54.9)
    >>> different = compose([ShuffledRound(1.0, 10_000), ShuffledRound(2.0, 5_000, times=12)], delta=1e-6)
    >>> round(different.epsilon, 3)
    0.596

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
    lower = attack if _by_curves(parts) or quoted.lower is None else quoted.lower
    return replace(quoted, attack_lower=attack, lower=lower)


def compose_upper(
    rounds: int | Iterable[ShuffledRound], *, delta: float, epsilon0: float | None = None, n: int | None = None
) -> Composition:
    """Compose without the attack beside it: for searches.

    Examples
    --------
    >>> round(compose_upper(1000, epsilon0=1.0, n=10_000, delta=1e-6).epsilon, 3)
    1.566
    """
    parts, target = _read_rounds(rounds, epsilon0, n), share("delta", delta)
    bounds = _certified_bounds(parts, target)
    best = min(bounds, key=lambda bound: math.inf if bound.epsilon is None else bound.epsilon)
    numeric = any(bound.name in (METHOD, MECHANISM_METHOD) for bound in bounds)
    return Composition(
        epsilon=best.epsilon,
        lower=0.0 if best.epsilon == 0.0 else _lower_end(parts, target, best.epsilon) if numeric else None,
        delta=target,
        rounds=sum(part.times for part in parts),
        method=best.name,
        source=best.source,
        basic=next(bound for bound in bounds if bound.name == BASIC),
        advanced=advanced(parts, target),
        renyi=renyi(parts, target),
        reason="" if numeric or total_slack(parts) == 0.0 else too_large_reason(total_slack(parts), target),
    )


def composed_epsilon(parts: Sequence[ShuffledRound], *, delta: float) -> float | None:
    """The epsilon that `compose` promises, without what stands beside it; None where no theorem says anything."""
    found = [bound.epsilon for bound in _certified_bounds(_read_rounds(parts, None, None), share("delta", delta))]
    return min((epsilon for epsilon in found if epsilon is not None), default=None)


def composed_log_ratio(parts: Sequence[ShuffledRound], *, epsilon: float, delta: float) -> float:
    """At most 0 where rounds without slack keep `epsilon`, about, by one evaluation: for searches.

    The log of delta at `epsilon` over what it may be; the ratio of the epsilons where no sum of losses is asked.
    """
    parts, delta = _read_rounds(parts, None, None), share("delta", delta)
    simple = _simple_bounds(parts, delta)
    known = min((bound.epsilon for bound in simple if bound.epsilon is not None), default=math.inf)
    asked = _laws_to_ask(parts, delta, simple)
    if known <= epsilon or not asked:
        return log_ratio(max(known, 1e-300), epsilon)
    ratio = math.inf
    for laws in asked:  # the first that keeps delta is enough, or is far from it
        terms = _pessimistic_terms(laws, 1e-9 * delta, delta=delta, epsilon=epsilon)
        total = convolve_near(terms, delta=delta, epsilon=epsilon)
        ratio = min(ratio, log_ratio(total.upper(epsilon), delta))
        if ratio <= 0.0 or ratio > CLOSE * math.log(1.0 / delta):
            break
    return ratio


def _certified_bounds(parts: Sequence[ShuffledRound], delta: float) -> list[Bound]:
    """Basic composition, and what else holds; the numeric bound is left out where nothing can be smaller."""
    bounds = _simple_bounds(parts, delta)
    found = [(laws, _numeric_epsilon(laws, parts, delta)) for laws in _laws_to_ask(parts, delta, bounds)]
    return bounds + [_composed_bound(laws, epsilon) for laws, epsilon in found if epsilon is not None]


def _simple_bounds(parts: Sequence[ShuffledRound], delta: float) -> list[Bound]:
    if 0.0 < delta < LEAST_DELTA:
        raise refuse("delta", f"0 or at least {LEAST_DELTA:g}, where what is cut off still counts", delta)
    simple, local = basic(parts, delta), local_total(parts)
    return [simple] if local[1] > delta else [Bound("local", local[0], LOCAL), simple]


def _laws_to_ask(parts: Sequence[ShuffledRound], delta: float, simple: Sequence[Bound]) -> list[Laws]:
    """The laws of losses whose sum may be smaller than what simpler bounds say."""
    if delta == 0.0 or any(bound.epsilon == 0.0 for bound in simple) or _nothing_hides(parts, delta):
        return []
    if _by_curves(parts) and not all(_is_clearly_better(part) for part in parts):
        return [distinct_laws(parts), distinct_pairs(parts)]  # whose places are closer
    return [distinct_laws(parts)]


def _nothing_hides(parts: Sequence[ShuffledRound], delta: float) -> bool:
    """True if clone pairs are all but as bad as local budgets: there is hardly ever a clone or a lie."""
    if any(part.mechanism is not None for part in parts):
        return False
    alone = math.fsum(
        part.times * ((part.n - 1) * math.log(part.pair.clone_probability[1]) - math.log1p(math.exp(-part.epsilon0)))
        for part in parts
    )
    saved = -math.expm1(-ALL_BUT * local_total(parts)[0])
    return math.exp(alone) > SURELY and SURELY * saved > delta


def _is_clearly_better(part: ShuffledRound) -> bool:
    """True if the mechanism's losses are so far below those of the clone pair that these need not be asked."""
    return part.dominating.gaussian_scale < CLEARLY * part.pair.gaussian_scale


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
    >>> ends = composed_delta(1000, epsilon=1.5663, epsilon0=1.0, n=10_000)
    >>> 0.6e-6 < ends.lower < ends.upper < 1e-6
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
        terms = _pessimistic_terms(laws, cut, delta=cut, epsilon=epsilon)
        total = convolve_near(terms, delta=cut, epsilon=epsilon)
        upper = total.upper(epsilon)
        if total.infinity <= 1e-6 * upper or cut <= LEAST_DELTA or _by_curves(parts):
            break
        cut = max(min(1e-9 * upper, 1e-20 * cut), LEAST_DELTA)
    if _by_curves(parts):
        lower = min(attacked_delta(parts, epsilon=epsilon, scale=upper), upper) if upper > LEAST_DELTA else 0.0
    else:
        below, allowance = _optimistic_terms(distinct_pairs(parts), cut, beta=1e-3 * upper)
        moved = epsilon + allowance
        lower = max(0.0, convolve_near(below, delta=cut, epsilon=moved).lower(moved) - 1e-3 * upper)
    added = (math.exp(epsilon) + 1.0) * total_slack(parts) if epsilon < 700.0 else math.inf
    return Bracket(min(1.0, lower + added), min(1.0, upper + added))


def _numeric_epsilon(laws: Laws, parts: Sequence[ShuffledRound], delta: float) -> float | None:
    """The smallest epsilon that the losses and delta0 leave; None when delta0 leaves none."""
    terms = _pessimistic_terms(laws, 1e-9 * delta, delta=delta)
    return smallest_of_sum(terms, delta=delta, most=local_total(parts)[0], slack=total_slack(parts))


def _lower_end(parts: Sequence[ShuffledRound], delta: float, high: float | None) -> float | None:
    """Bound the theorem's own value from below: by an attack where rounds name their mechanism."""
    if high is None:
        return None
    if _by_curves(parts):
        return min(high, _reached_once(parts, delta))
    slack = total_slack(parts)
    below, allowance = _optimistic_terms(distinct_pairs(parts), 1e-9 * delta, beta=1e-3 * delta)
    sunk = convolve_near(below, delta=delta, epsilon=high + allowance)

    def beyond(epsilon: float) -> bool:
        value = sunk.lower(epsilon + allowance) - 1e-3 * delta
        return value + ((math.exp(epsilon) + 1.0) * slack if slack > 0.0 else 0.0) > delta

    return _nearest_beyond(beyond, high, stride=0.5 * max(allowance, sunk.step))


def _nearest_beyond(beyond: Callable[[float], bool], high: float, *, stride: float) -> float:
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


def _composed_bound(laws: Laws, found: float) -> Bound:
    """The bound of composed losses, by the laws that they are of."""
    own = "the smallest certified delta of each mechanism (docs/theory/hidden-among-everybody.md)"
    named = "; ".join(dict.fromkeys(SOURCES[law.kind] if isinstance(law, ClonePair) else own for law, _ in laws))
    curves = any(not isinstance(law, ClonePair) for law, _ in laws)
    return Bound(MECHANISM_METHOD if curves else METHOD, found, f"{COMPOSITION}; {named}")


def _by_curves(parts: Sequence[ShuffledRound]) -> bool:
    """True if some round is judged by more than clones: by its mechanism, or by what any randomizer may do."""
    return any(not isinstance(part.dominating, ClonePair) for part in parts)


def _reached_once(parts: Sequence[ShuffledRound], delta: float) -> float:
    """Epsilon that an attack on the worst of the rounds alone reaches: all of them together reveal no less."""

    def reached(part: ShuffledRound) -> float:
        if part.mechanism is None:
            return attack_lower(part.epsilon0, part.n, delta)
        return mechanism_attack(part.mechanism, n=part.n, delta=delta)

    alone = max(parts, key=lambda part: part.pair.gaussian_scale)
    return reached(alone)


def _pessimistic_terms(laws: Laws, cut: float, *, delta: float, epsilon: float = math.inf) -> Terms:
    """Laws of losses that dominate, on one grid, with about `cut` cut off from all rounds together.

    Few places where the losses look normal; as many everywhere as one law needs where their sum is tilted otherwise.
    """
    spread = math.sqrt(math.fsum(times * _typical(law) ** 2 for law, times in laws))
    z = max(min(normal_threshold(delta / spread)[0], epsilon / spread - 0.5 * spread), LEAST_TILT)
    terms = _terms_at(laws, cut, z / spread)
    found = tilt_near(terms, delta=delta, epsilon=epsilon) * spread
    return terms if NORMAL[0] * z <= found <= NORMAL[1] * z else _terms_at(laws, cut, None)


def _terms_at(laws: Laws, cut: float, theta: float | None) -> Terms:
    step, share = _step(laws, DENSE), cut / sum(times for _, times in laws)
    terms = []
    for law, times in laws:
        if isinstance(law, ClonePair):
            terms.append((pessimistic_pld(law, step=step, cut=share, theta=theta), times))
        else:
            terms.append((law.pessimistic(step=step, cut=share, theta=theta), times))
    return terms


def _optimistic_terms(pairs: Pairs, cut: float, *, beta: float) -> tuple[Terms, float]:
    """Laws of losses near the pairs' own, and what their sum exceeds the true one by, with probability 1 - beta."""
    step, rounds = _step(pairs), sum(times for _, times in pairs)
    made = [optimistic_pld(pair, step=step, cut=cut / rounds) for pair, _ in pairs]
    terms = [(pld, times) for (pld, _), (_, times) in zip(made, pairs, strict=True)]
    return terms, shift_quantile(terms, [shifts for _, shifts in made], beta)


def _step(pairs: Laws, dense: float = POINTS) -> float:
    """A small share of a typical loss; larger where the sum or a single round would not fit the grid.

    `dense` is how many points the smallest loss needs, where that is fewer.
    """
    rounds = sum(times for _, times in pairs)
    scales = [_typical(pair) for pair, _ in pairs]
    typical = math.sqrt(math.fsum(times * s * s for s, (_, times) in zip(scales, pairs, strict=True)) / rounds)
    widest = max(min(pair.epsilon0, 20.0 * scale) for scale, (pair, _) in zip(scales, pairs, strict=True))
    enough = max(typical / POINTS, min(scales) / dense)
    return max(enough, 16.0 * typical * math.sqrt(rounds) / LONGEST_SUM, widest / MOST_POINTS)


def _typical(law: ClonePair | MechanismCurve) -> float:
    return min(law.gaussian_scale, law.epsilon0)


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


# What each person is promised, and what all are: groups, atoms or questions of different sizes, side by side.


@dataclass(frozen=True)
class ShuffledGroup:
    """People whose reports are shuffled uniformly among themselves.

    Which group a person is in must be public and must not depend on private values: a class of a shuffle within
    groups, an atom of an order-private shuffle (whose places are public), or who was asked which question.

    Parameters
    ----------
    mechanism : Randomizer, Channel, several questions, or epsilon0 as a float
        What everybody in the group runs.
    n : int, 1 .. 1e12
        Reports of the group.
    honest : int, optional
        How many of their senders are assumed honest; default all. In a group of one the local promise is left.
    """

    mechanism: Subject
    n: int
    honest: int | None = None


@dataclass(frozen=True)
class PersonalGuarantees:
    """One guarantee for each group: anybody who is in it has it.

    Parameters
    ----------
    each : mapping from the name of a group to its CentralDP
    """

    each: Mapping[str, CentralDP]

    @property
    def weakest(self) -> str:
        """The group with the largest epsilon."""
        return max(self.each, key=lambda name: self.each[name].epsilon)

    @property
    def worst(self) -> CentralDP:
        """Guarantee of everybody, whatever the group."""
        return self.each[self.weakest]

    def of(self, group: str) -> CentralDP:
        """Guarantee of a person of this group."""
        if group not in self.each:
            raise refuse("group", f"one of {', '.join(sorted(self.each))}", group)
        return self.each[group]


def personal_guarantees(groups: Mapping[str, ShuffledGroup], *, delta: float) -> PersonalGuarantees:
    """The central guarantee of every group at one delta.

    The adversary may know which places of the released order belong to which group, and everything about the other
    groups: that is free of the values of this one. What is left is a uniform shuffle of the group.

    Raises
    ------
    UnsupportedError
        Where a group has no guarantee at this delta; the message names it.

    Examples
    --------
    >>> from dovetail.randomize.krr import KRR
    >>> krr = KRR(k=4, epsilon=1.0)
    >>> groups = {"town": ShuffledGroup(krr, 20_000), "village": ShuffledGroup(krr, 90)}
    >>> found = personal_guarantees(groups, delta=1e-6)
    >>> found.weakest, round(found.worst.epsilon, 3), round(found.of("town").epsilon, 3)
    ('village', 0.416, 0.024)

    Source
    ------
    docs/theory/several-questions.md.
    """
    if not groups or not all(isinstance(group, ShuffledGroup) for group in groups.values()):
        raise refuse("groups", "a mapping from names to `ShuffledGroup`", groups)
    found = {}
    for name, group in groups.items():
        try:
            found[name] = amplify(group.mechanism, n=group.n, delta=delta, honest=group.honest)
        except UnsupportedError as error:
            raise UnsupportedError(f"group {name!r}: {error}") from error
    return PersonalGuarantees(found)


# The same question every round: a permanent random answer, drawn once and kept, for values that never change.


SOURCE = "all rounds are post-processing of permanent answers (docs/theory/accuracy.md, section E)"
PATTERN = (
    "The pattern of changes is not protected: with two answers and both stages at epsilon 2, one change halfway is "
    "told from none with a loss of 11.7 after 12 rounds and 51.7 after 52, not 4."
)
WORD = "Say `constant_values=True`"
CHANGES = (
    f"Memoized answers promise nothing about values that change. {PATTERN} {WORD} if values cannot change; else "
    "freeze the first value, or compose fresh reports with dt.compose."
)


def memoized_guarantee(
    permanent: KRR, *, n: int, delta: float, constant_values: bool, honest: int | None = None
) -> CentralDP:
    """Guarantee of one person who keeps her permanent answer over all rounds: that of a single round.

    Each person draws y = permanent(x) once and keeps it; in every round she sends y, or a fresh randomization of y.
    Even if her reports are linked over the rounds by a random pseudonym, all of them are post-processing of the
    shuffled y. Holds if values are constant, everybody takes part in the same rounds and no memory is lost: a new
    device draws a second answer, and the claim ends.

    Parameters
    ----------
    permanent : KRR
    n : int
        People who take part in the rounds that this person takes part in.
    constant_values : bool
        Your word that nobody's value changes over the rounds; without it nothing is promised.
    honest : int, optional
        As in `amplify`.

    Raises
    ------
    UnsupportedError
        For values that may change, with what would leak.

    Examples
    --------
    >>> promise = memoized_guarantee(KRR(k=4, epsilon=7.7), n=100_000, delta=1e-6, constant_values=True)
    >>> promise.epsilon < 1.0, promise.colluding
    (True, 7.7)

    Source
    ------
    docs/theory/accuracy.md, section E.
    """
    if constant_values is not True:
        raise UnsupportedError(CHANGES)
    once = amplify(permanent, n=n, delta=delta, honest=honest)
    return replace(once, source=f"{once.source}; {SOURCE}")


# What a collection of several questions promises: one local budget and one central guarantee for a person.


Ask = Literal["all", "joint", "one"]
NEIGHBOURS = "replace one person's answers to all questions"


def local_guarantee(parts: Sequence[Randomizer], *, ask: Ask) -> LocalDP:
    """Local guarantee of a person's reports together: the sum, or for one question the largest.

    >>> from dovetail.randomize.krr import KRR
    >>> [local_guarantee([KRR(k=2, epsilon=1.0), KRR(k=5, epsilon=0.5)], ask=ask).epsilon for ask in ("all", "one")]
    [1.5, 1.0]
    """
    epsilons = [part.guarantee.epsilon for part in parts]
    caveats = tuple(dict.fromkeys(caveat for part in parts for caveat in part.guarantee.caveats))
    if ask == "one":
        source = "one question for each person, drawn by chance: the largest epsilon of a question"
        return LocalDP(max(epsilons), source=source, caveats=caveats)
    source = "answers with randomness of their own: epsilons of the questions add (Dwork et al. 2006)"
    return LocalDP(round_up_sum(epsilons), source=source, caveats=caveats)


def questions_guarantee(
    parts: Sequence[Randomizer],
    *,
    ask: Ask,
    n: int,
    delta: float,
    honest: int | None = None,
    weights: Sequence[int] = (),
) -> CentralDP:
    """The central guarantee of one person's answers to all questions, from everything that is released.

    Parameters
    ----------
    parts : 2 .. 16 of Randomizer
        Everybody answers question q by parts[q].
    ask : "all", "joint" or "one"
        Every answer a report of its own, each question shuffled by itself; all answers in one report, which stay
        together; or one question for each person, drawn by chance and named.
    n : int
        People, each of whom is asked.
    honest : int, 1 .. n, optional
    weights : whole numbers, at least 1, optional
        For "one": how often a question is drawn, against the others; default all alike.

    Raises
    ------
    ParameterError
        For parameters outside their ranges.
    UnsupportedError
        For answers with a local delta.

    Examples
    --------
    >>> from dovetail.randomize.krr import KRR
    >>> both = [KRR(k=2, epsilon=1.0), KRR(k=5, epsilon=0.5)]
    >>> [round(questions_guarantee(both, ask=ask, n=10_000, delta=1e-6).epsilon, 3) for ask in ("joint", "one")]
    [0.04, 0.026]

    Source
    ------
    docs/theory/several-questions.md.
    """
    subject = JointReport(tuple(parts))  # checks the questions
    if ask == "all":
        return _shuffled_apart(parts, n=n, delta=delta, honest=honest)
    if ask == "joint":
        return replace(amplify(subject, n=n, delta=delta, honest=honest), neighbours=NEIGHBOURS)
    if ask != "one":
        raise refuse("ask", "'all', 'joint' or 'one'", ask)
    given = [whole("weights", weight, least=1) for weight in weights]
    chances = tuple(weight / sum(given) for weight in given)
    return replace(
        amplify(OneQuestion(tuple(parts), chances), n=n, delta=delta, honest=honest), neighbours=NEIGHBOURS
    )


def _shuffled_apart(parts: Sequence[Randomizer], *, n: int, delta: float, honest: int | None) -> CentralDP:
    """Each question is a round of its own: rounds compose."""
    people = whole("n", n, least=1)
    trusted = people if honest is None else whole("honest", honest, least=1, most=people)
    found = compose([ShuffledRound.of(part, trusted) for part in parts], delta=delta)
    whole_batches = [ShuffledRound.of(part, people) for part in parts]
    every = found if trusted == people else compose_upper(whole_batches, delta=delta)
    assert found.epsilon is not None and every.epsilon is not None  # pure local privacy: at most the sum
    local = local_guarantee(parts, ask="all")
    return CentralDP(
        all=min(every.epsilon, found.epsilon),
        honest=found.epsilon,
        colluding=local.epsilon,
        delta=delta,
        n=people,
        honest_n=trusted,
        method=found.method,
        source=found.source,
        numeric=Bracket(min(found.lower or 0.0, found.epsilon), found.epsilon),
        attack_lower=min(found.attack_lower, found.epsilon),
        caveats=local.caveats,
        neighbours=NEIGHBOURS,
    )

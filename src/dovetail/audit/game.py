"""A mechanism as a black box: which input was it? A lower end on epsilon from guesses at inputs that a coin drew."""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, islice
from typing import Any

from dovetail.audit.box import Atoms, Seen, as_mechanism, flat, outputs_by_word, trials
from dovetail.core.checks import not_negative, positive, probability, refuse, share, whole
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError, ParameterError
from dovetail.core.progress import Progress, silent

Key = Callable[[Seen], Hashable]
FIRST, LAST, PARTS = 10, 6, 32  # coordinates that are looked at, and ranges of each
PAIRED = 5  # first coordinates that are looked at by twos
DIGITS = 6  # decimals of a difference
CHOSEN_AT = 0.7  # of the claim: against it events are chosen, and against the claim itself
MOST_STAKE = 0.8  # of what a wrong guess may lose under the claim
MOST_EPSILON = 30.0  # above, no number of calls refutes a claim
MOST_CALLS = 10**8
TICKS = 1_000  # calls between two looks at the clock
SURE = 2.33  # standard deviations: 99 %


class TooFewCalls(ParameterError):
    """So many calls refute no such claim."""


@dataclass(frozen=True)
class AuditedMechanism:
    """The epsilon of a mechanism as guesses at its inputs show it.

    Parameters
    ----------
    alarm : bool
        The lower end is above the claim.
    epsilon, delta : float
        What was claimed.
    lower : float, nats
        A mechanism with a smaller epsilon gives so large a lower end with a probability below `false_alarm`.
    event : str
        Which part of the output shows it.
    events : texts
        All parts of the output that raise the alarm.
    right, wrong : int
        Guesses of the tested half.
    inputs : list
        Those that were told apart: of a search, the two that were chosen.
    sees : float
        An event of this probability under one input and never under another is seen with a chance of 99 percent, if
        it is an event of these parts of the output; 1 if nothing so rare is.
    calls : int
    false_alarm : float
    sentence : str
    """

    alarm: bool
    epsilon: float
    delta: float
    lower: float
    event: str
    events: tuple[str, ...]
    right: int
    wrong: int
    inputs: list[Any]
    sees: float
    calls: int
    false_alarm: float
    sentence: str

    def document(self) -> dict[str, Any]:
        """The result for machines."""
        from dovetail.report.document import to_jsonable

        found: dict[str, Any] = to_jsonable({**vars(self), "inputs": [repr(one) for one in self.inputs]})
        return found


def audit_mechanism(
    mechanism: Any,
    inputs: Sequence[Any],
    *,
    epsilon: float,
    delta: float = 0.0,
    calls: int = 100_000,
    devices: bool = False,
    search: bool = False,
    words: int | None = None,
    seconds: float | None = None,
    patience: float = 60.0,
    false_alarm: float = 1e-9,
    progress: Progress = silent,
    rng: Entropy | None = None,
) -> AuditedMechanism:
    r"""Test the claim that one call of a mechanism is (epsilon, delta)-private for every two of these inputs.

    .. math:: \Pr[\text{right}] - \frac{e^\epsilon}{m - 1} \Pr[\text{wrong}] \le \delta

    holds for every rule that was fixed before, given everything before. Each call gets an input by a fair coin. The
    first half of the calls chooses a rule for each part of the output; the second half bets on it. The wealth of a
    bet is a supermartingale under the claim, so that it grows to a factor c with probability at most 1/c, whatever
    the mechanism remembers.

    Parameters
    ----------
    mechanism : callable, or an object that randomizes
        Of one input; returns numbers, texts, or lists and arrays of them. Also one of our randomizers, a measurement
        of opendp, a mechanism of diffprivlib, a client of pure-ldp.
    inputs : at least 2
        Every two of them are neighbours.
    epsilon, delta : float
        The claim; delta at least 0 and below 1.
    calls : int
    devices : bool
        The mechanism takes nothing and returns a device. Each trial has a new one, which reports two inputs: the
        claim is about the first, over both reports. What a device keeps between its reports shows so.
    search : bool
        Try all inputs with a third of the calls, and test the two that differ most.
    words : int, optional
        The mechanism takes a second argument, its randomness: a whole number below `words`, all equally likely. Every
        output is counted then, and the verdict is exact for these inputs.
    seconds : float, optional
        Stop by then, with what there is.
    patience : float, seconds
        For one call.
    false_alarm : float
        How often a mechanism that keeps the claim raises an alarm, at most.
    progress : function of step, done, total
    rng : Entropy, optional
        The auditor's coins; default the operating system's, which no mechanism can predict.

    Raises
    ------
    ParameterError
        For parameters outside their ranges, and too few calls for such an alarm.
    DataError
        For a mechanism that fails, blocks or returns something else.

    Examples
    --------
    >>> import random
    >>> honest = lambda bit: bit if random.random() < 0.73 else 1 - bit
    >>> audit_mechanism(honest, [0, 1], epsilon=1.0, calls=4_000).alarm
    False
    >>> audit_mechanism(lambda bit: bit, [0, 1], epsilon=1.0, calls=4_000).alarm
    True

    Source
    ------
    Ville's inequality for the likelihood ratio of right guesses; docs/theory/claims.md.
    """
    claimed, slack = not_negative("epsilon", epsilon), share("delta", delta)
    level = probability("false_alarm", false_alarm)
    if claimed > MOST_EPSILON:
        raise refuse("epsilon", f"at most {MOST_EPSILON:g} (nats)", epsilon)
    total = whole("calls", calls, least=2, most=MOST_CALLS)
    limit = math.inf if seconds is None else positive("seconds", seconds)
    if len(inputs) < 2:
        raise refuse("inputs", "two or more", inputs)
    if words is not None:
        number = whole("words", words, least=1, most=MOST_CALLS // len(inputs))
        return _counted(mechanism, [*inputs], number, claimed, slack, positive("patience", patience), progress)
    make = mechanism if devices else as_mechanism(mechanism)
    clock = _Clock(total, limit, progress)
    coins, waits = entropy_or_system(rng), positive("patience", patience)

    def play(tried: Sequence[Any], count: int) -> tuple[list[int], Iterator[Seen]]:
        drawn = coins.below(len(tried), count).tolist()
        told = coins.below(len(tried), count).tolist() if devices else None
        return drawn, trials(make, tried, drawn, told, waits)

    # search: the two inputs that differ most
    tried = [*inputs]
    if search and len(tried) > 2:
        drawn, found = play(tried, total // 3)
        seen = clock.take("search", found, limit / 3)
        tried = [tried[which] for which in _furthest(seen, tried, drawn, claimed, slack)]
    # choose: rules that guess the input, from one half of the calls
    m = len(tried)
    drawn, found = play(tried, total - clock.calls)
    trained = clock.take("choose", islice(found, len(drawn) // 2), limit / 2)
    rules = [
        rule for name, key in _keys(trained, tried) for rule in _rules(key, name, trained, drawn, m, claimed, slack)
    ]
    # test: all rules on the other half, at a level that is shared among them
    wanted = math.log(max(1, len(rules)) / level)
    once = math.log1p((1.0 - slack) / (math.exp(claimed) / (m - 1) + slack))  # what a right guess is worth at most
    _enough(len(drawn) - len(trained), wanted / once, claimed, asked=total)
    tested = clock.take("test", found, limit)
    _enough(len(tested), wanted / once, claimed, asked=clock.calls)
    results = [(*_lower(rule, tested, drawn[len(trained) :], m, slack, wanted), rule.name) for rule in rules]
    lower, right, wrong, event = max(results, key=lambda one: one[0])
    lower = max(0.0, lower)
    sees = min(1.0, _seen_hits(wanted, math.exp(claimed) / (m - 1), slack, len(tested)) * m / len(tested))
    return AuditedMechanism(
        lower > claimed,
        claimed,
        slack,
        lower,
        event,
        tuple(dict.fromkeys(name for end, _, _, name in results if end > claimed)),
        right,
        wrong,
        tried,
        sees,
        clock.calls,
        level,
        _sentence(claimed, lower, event, level, sees),
    )


def _counted(
    mechanism: Callable[[Any, int], Any], inputs: list[Any], words: int, epsilon: float, delta: float,
    patience: float, progress: Progress,
) -> AuditedMechanism:  # fmt: skip
    """The exact epsilon at delta, from all words for each input."""
    laws = []
    for place, value in enumerate(inputs):
        progress("count", place * words, len(inputs) * words)
        laws.append(Counter(outputs_by_word(mechanism, value, words, patience)))
    pairs = [
        (exact_epsilon(one, other, delta=delta), one, other) for one in laws for other in laws if one is not other
    ]
    exact, one, other = max(pairs, key=lambda pair: pair[0])
    worst = max(one, key=lambda y: one[y] / other[y] if other[y] else math.inf)
    alarm = exact > epsilon
    words_of = (
        f"exactly {exact:.6g} for these inputs, all {words:,} words counted, largest at the output {worst[:60]}"
    )
    sentence = f"{'alarm' if alarm else 'no alarm'}: epsilon is {words_of}."
    if not alarm:
        sentence += " Other inputs were not tried."
    events = ("whole output",) if alarm else ()
    return AuditedMechanism(
        alarm, epsilon, delta, exact, "whole output", events, one[worst], other[worst], inputs, 0.0,
        len(inputs) * words, 0.0, sentence,
    )  # fmt: skip


def exact_epsilon(one: Counter[str], other: Counter[str], *, delta: float) -> float:
    r"""The smallest epsilon at which the sum of what exceeds e^epsilon times the other law is at most delta.

    With the outputs in falling order of their ratio, it is the largest (P(S) - delta)/Q(S) over their prefixes S.

    >>> round(exact_epsilon(Counter(a=3, b=1), Counter(a=1, b=3), delta=0.0), 6)
    1.098612
    """
    total, best, near, far = one.total(), 1.0, 0, 0
    for y in sorted(one, key=lambda y: one[y] / other[y] if other[y] else math.inf, reverse=True):
        near, far = near + one[y], far + other[y]
        left = Fraction(near, total) - Fraction(delta)
        if left > 0:
            best = max(best, float(left / Fraction(far, other.total())) if far else math.inf)
    return math.log(best)


def _seen_hits(wanted: float, odds: float, delta: float, calls: int) -> float:
    """So many guesses, expected and all right, raise an alarm with 99 percent, as measured in studies/audit_zoo."""
    stake = (1.0 if delta == 0.0 else MOST_STAKE) / (odds + delta)
    lost = -calls * math.log1p(-stake * delta)  # where delta lets a right guess happen
    hits = (wanted + 3.0 + lost) / math.log1p(stake * (1.0 - delta))
    return hits + SURE * math.sqrt(hits) + 4.0


class _Clock:
    """Counts the calls, tells how far it is, and stops in time."""

    def __init__(self, total: int, limit: float, progress: Progress) -> None:
        self.calls, self._total, self._limit, self._progress = 0, total, limit, progress
        self._began = time.monotonic()

    def take(self, step: str, found: Iterator[Seen], until: float) -> list[Seen]:
        """The items that come until so many seconds have passed since the beginning."""
        taken: list[Seen] = []
        every = TICKS if math.isinf(self._limit) else 1
        for one in found:
            taken.append(one)
            self.calls += 1
            if len(taken) % every == 0:
                self._progress(step, self.calls, self._total)
                if time.monotonic() - self._began > until:
                    break
        return taken


def _enough(calls: int, needed: float, epsilon: float, *, asked: int) -> None:
    if calls < needed:
        raise TooFewCalls(
            f"`calls` must be at least {2 * math.ceil(needed):,}, got {asked:,}: else nothing refutes epsilon = "
            f"{epsilon:g}. Above 10 no test of two inputs helps: judge the law, `dovetail audit claim`."
        )


def _sentence(claimed: float, lower: float, event: str, level: float, sees: float) -> str:
    from dovetail.core.display import downward, upward

    if lower > claimed:
        return (
            f"alarm: at least {downward(lower)} by the {event}; a mechanism with epsilon {claimed:g} shows this with "
            f"probability below {level:g}."
        )
    blind = " The test is blind here: less than half of the claim shows." if lower < claimed / 2 else ""
    rare = f" Events rarer than {upward(sees)} are not seen." if sees < 1.0 else ""
    shown = f"no alarm: at least {downward(lower)} shows, of {claimed:g} claimed."
    return f"{shown}{blind}{rare} A passed audit is no proof."


# Parts of an output, by which an input is guessed.


def _keys(trained: list[Seen], inputs: list[Any]) -> list[tuple[str, Key]]:
    """Parts that are looked at, with ranges that the first half decides."""
    outputs = [seen.now for seen in trained]
    width = max(map(len, outputs), default=0)
    keys: list[tuple[str, Key]] = [("whole output", lambda seen: repr(seen.now))]  # by text: True is not 1
    differ, along = _differences(inputs, width)
    places = sorted({*range(min(width, FIRST)), *range(max(0, width - LAST), width), *differ[:FIRST]})
    for place in places:
        if width > 1:
            keys.append((f"value at place {place}", lambda seen, place=place: repr(_at(seen.now, place))))  # type: ignore[misc]
        keys += _sized(f"at place {place}", outputs, lambda atoms, place=place: _number(_at(atoms, place)))  # type: ignore[misc]
        keys += _bits(place, outputs)
    if width > 2:
        keys.append(("sum", lambda seen: round(_sum(seen.now), DIGITS)))
        keys += _sized("of the sum", outputs, _sum)
        for one, other in combinations(places[: PAIRED + 1], 2):
            name = f"values at places {one} and {other}"
            keys.append(
                (name, lambda seen, one=one, other=other: repr((_at(seen.now, one), _at(seen.now, other))))  # type: ignore[misc]
            )
            name = f"difference of places {one} and {other}"
            keys.append((name, lambda seen, one=one, other=other: _apart(seen.now, one, seen.now, other)))  # type: ignore[misc]
    if along is not None:
        keys.append(("value along the difference of the inputs", lambda seen: round(along(seen.now), DIGITS)))
        keys += _sized("along the difference of the inputs", outputs, along)
    if any(seen.told >= 0 for seen in trained):
        keys.append(("whole output and another report", lambda seen: (seen.told, repr(seen.now), repr(seen.other))))
        keys.append(("whole of another report", lambda seen: (seen.told, repr(seen.other))))
        keys.append(("equality with another report", lambda seen: (seen.told, repr(seen.now) == repr(seen.other))))
        for place in places[: PAIRED + 1]:
            name = f"difference to another report at place {place}"
            keys.append((name, lambda seen, place=place: (seen.told, _apart(seen.now, place, seen.other, place))))  # type: ignore[misc]
    return keys


def _differences(inputs: list[Any], width: int) -> tuple[list[int], Callable[[Atoms], float] | None]:
    """Places at which inputs that look like outputs differ; of two vectors also the direction between them."""
    try:
        rows = [[_number(atom) for atom in flat(value)] for value in inputs]
    except DataError:  # inputs may be anything
        return [], None
    if width < 3 or any(len(row) != width for row in rows):
        return [], None
    differ = [place for place in range(width) if len({repr(row[place]) for row in rows}) > 1]
    if len(rows) > 2 or not all(math.isfinite(value) for row in rows for value in row):
        return differ, None
    steps = [(place, rows[1][place] - rows[0][place]) for place in differ]

    def along(atoms: Atoms) -> float:
        return sum(step * _number(_at(atoms, place)) for place, step in steps)

    return differ, along if len(steps) > 1 else None


def _sized(name: str, outputs: list[Atoms], number: Callable[[Atoms], float]) -> list[tuple[str, Key]]:
    """Ranges of a number, narrower far out; none where it has few values."""
    numbers = sorted(value for atoms in outputs if math.isfinite(value := number(atoms)))
    count = len(numbers)
    if len(set(numbers)) <= PARTS:
        return []
    ranks = {*(count * part // PARTS for part in range(1, PARTS)), *(count // far for far in (1000, 300, 100))}
    cuts = [numbers[rank] for rank in sorted({*ranks, *(count - 1 - count // far for far in (1000, 300, 100))})]

    def part(seen: Seen) -> Hashable:
        value = number(seen.now)
        return "none" if math.isnan(value) else bisect_right(cuts, value)

    return [(f"size {name}", part)]


def _bits(place: int, outputs: list[Atoms]) -> list[tuple[str, Key]]:
    """The lowest bit of a double, where there are any with a fraction."""
    if not any(isinstance(value := _at(atoms, place), float) and not value.is_integer() for atoms in outputs):
        return []
    return [(f"lowest bit at place {place}", lambda seen: _lowest(_at(seen.now, place)))]


def _at(atoms: Atoms, place: int) -> Any:
    return atoms[place] if place < len(atoms) else None


def _number(value: Any) -> float:
    """A number as a float, rounded where it is too long; nan for everything else."""
    try:
        return float(value) if isinstance(value, int | float) else math.nan
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _sum(atoms: Atoms) -> float:
    return sum(value for atom in atoms if math.isfinite(value := _number(atom)))


def _apart(one: Atoms, place: int, other: Atoms, at: int) -> Hashable:
    """A difference, to a few decimals: noise that is used twice drops out."""
    difference = _number(_at(one, place)) - _number(_at(other, at))
    return round(difference, DIGITS) if math.isfinite(difference) else repr(difference)


def _lowest(value: Any) -> Hashable:
    """Size and lowest bit of a double, as exponents of 2: noise around 0 has lower bits than noise around 1."""
    number = _number(value)
    if not math.isfinite(number) or number == 0.0:
        return repr(number)
    top, bottom = number.as_integer_ratio()
    return math.frexp(number)[1], (top & -top).bit_length() - bottom.bit_length()


# Rules of the first half, bets of the second.


@dataclass(frozen=True)
class _Rule:
    """A guess from a part of the output, and how often it is expected to be right.

    `stake` is the share of the wealth that is set on a right guess where delta is above 0, `growth` what the first
    half lets expect of the logarithm of the wealth.
    """

    name: str
    key: Key
    guesses: dict[Hashable, int]
    share: float
    stake: float
    growth: float


def _count(key: Key, trained: list[Seen], drawn: list[int]) -> dict[Hashable, Counter[int]]:
    counts: dict[Hashable, Counter[int]] = defaultdict(Counter)
    for seen, which in zip(trained, drawn, strict=False):
        counts[key(seen)][which] += 1
    return counts


def _rules(
    key: Key, name: str, trained: list[Seen], drawn: list[int], m: int, epsilon: float, delta: float
) -> list[_Rule]:
    """Guess where the first half was most one-sided, as long as the bet grows; delta is granted beforehand.

    Once against a part of the claim, which shows how much of it is used, and once against the claim itself: where all
    outputs reach it, a rare one that breaks it would not be chosen otherwise.
    """
    counts, size = _count(key, trained, drawn), len(trained)
    return [_chosen(key, name, counts, size, m, epsilon, delta, against=share) for share in (CHOSEN_AT, 1.0)]


def _furthest(
    trained: list[Seen], tried: list[Any], drawn: list[int], epsilon: float, delta: float
) -> tuple[int, int]:
    """The two inputs that some part of the output tells apart best."""
    pairs = [*combinations(range(max(drawn, default=0) + 1), 2)]
    found: dict[tuple[int, int], float] = {}
    for name, key in _keys(trained, tried):
        counts = _count(key, trained, drawn)
        for pair in pairs:
            of_pair = {value: Counter({w: seen[w] for w in pair if seen[w]}) for value, seen in counts.items()}
            some = {value: seen for value, seen in of_pair.items() if seen}
            size = sum(seen.total() for seen in some.values())
            rule = _chosen(key, name, some, size, 2, epsilon, delta, against=CHOSEN_AT)
            found[pair] = max(found.get(pair, -1.0), rule.growth)
    return max(found, key=lambda pair: found[pair], default=(0, 1))


def _chosen(
    key: Key, name: str, counts: dict[Hashable, Counter[int]], size: int, m: int, epsilon: float, delta: float, *,
    against: float,
) -> _Rule:  # fmt: skip
    rows = []
    for value, seen in counts.items():
        which, right = seen.most_common(1)[0]
        wrong = seen.total() - right
        rows.append(((right - math.sqrt(right) + 0.5) / (wrong + math.sqrt(wrong) + 0.5), value, which, right, wrong))
    rows.sort(key=lambda row: -row[0])
    claim = 1.0 / (1.0 + (m - 1) * math.exp(-against * epsilon))
    best, kept, expected_share = 0.0, 0, claim
    hits = won = -delta * size
    for place, (_, _, _, right, wrong) in enumerate(rows, 1):
        hits, won = hits + right + wrong, won + right
        if won <= 0.0:
            continue
        expected = (won + 1.0) / (hits + 2.0)
        expected -= math.sqrt(expected * (1.0 - expected) / hits)
        growth = hits * _divergence(expected, claim) if expected > claim else 0.0
        if growth > best:
            best, kept, expected_share = growth, place, expected
    full = 1.0 / (1.0 + (m - 1) * math.exp(-epsilon))
    other = full if expected_share > full else claim  # what shows is above the claim: bet against the claim itself
    stake = min(expected_share / other - 1.0, MOST_STAKE / (other / (1.0 - other) + delta))
    return _Rule(name, key, {value: which for _, value, which, _, _ in rows[:kept]}, expected_share, stake, best)


def _divergence(one: float, other: float) -> float:
    return one * math.log(one / other) + (1.0 - one) * math.log((1.0 - one) / (1.0 - other))


def _lower(
    rule: _Rule, tested: list[Seen], drawn: list[int], m: int, delta: float, wanted: float
) -> tuple[float, int, int]:
    """The epsilon up to which the guesses refute every claim, with right and wrong ones."""
    right = wrong = 0
    for seen, which in zip(tested, drawn, strict=False):
        guess = rule.guesses.get(rule.key(seen))
        if guess is not None:
            right, wrong = (right + 1, wrong) if guess == which else (right, wrong + 1)
    if delta > 0.0:
        abstained = len(tested) - right - wrong
        odds = largest_odds(right, wrong, abstained, stake=rule.stake, delta=delta, wanted=wanted)
        return (math.log(odds * (m - 1)) if odds > 0.0 else 0.0), right, wrong
    refuted = largest_refuted(right, wrong, expected=rule.share, least=1.0 / m, wanted=wanted)
    return math.log(refuted / (1.0 - refuted)) + math.log(m - 1), right, wrong


def largest_refuted(right: int, wrong: int, *, expected: float, least: float, wanted: float) -> float:
    """The largest share s of right guesses that a bet refutes with a wealth above e^wanted; else `least`.

    The wealth under s is (t/s)^right ((1-t)/(1-s))^wrong, t the share expected before. Where it is above 1 it falls
    in s, so that with probability 1 - e^-wanted the truth is above all that is refuted.

    >>> round(largest_refuted(900, 100, expected=0.9, least=0.5, wanted=20.0), 3)
    0.83
    """

    def refutes(s: float) -> bool:
        gain = right * math.log(expected / s) + wrong * (math.log1p(-expected) - math.log1p(-s))
        return gain > wanted

    low, high = least, min(expected, right / (right + wrong) if right else 0.0)
    if high <= low or not refutes(low):
        return least
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if refutes(middle) else (low, middle)
    return low


def largest_odds(right: int, wrong: int, abstained: int, *, stake: float, delta: float, wanted: float) -> float:
    """The largest odds x = e^epsilon / (m - 1) that a bet with a fixed stake refutes at this delta; 0 if none.

    Its wealth is the product of 1 + stake (z - delta), with z = 1 for a right guess, -x for a wrong one and 0
    otherwise: a supermartingale under the claim while it is positive, which falls in x.

    >>> round(largest_odds(900, 100, 1000, stake=0.3, delta=1e-3, wanted=20.0), 2)
    2.95
    """

    def refutes(x: float) -> bool:
        left = 1.0 - stake * (x + delta)
        if left <= 0.0 or stake <= 0.0:
            return False
        gain = right * math.log1p(stake * (1.0 - delta)) + abstained * math.log1p(-stake * delta)
        return gain + wrong * math.log(left) > wanted

    low, high = 0.0, 1.0 / stake if stake > 0.0 else 0.0
    if not refutes(low):
        return 0.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if refutes(middle) else (low, middle)
    return low

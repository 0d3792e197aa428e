"""Randomizers and shufflers of equal accuracy, listed by what each adversary learns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import combinations, islice
from math import exp, expm1, inf, isinf, log2, sqrt
from typing import Any, Literal, get_args

from dovetail.account.accountant import Accountant
from dovetail.core.certified import Bracket
from dovetail.core.channel import Channel, KRRChannel
from dovetail.core.checks import MOST_PEOPLE, whole
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import UnsupportedError
from dovetail.core.progress import Tick, no_tick
from dovetail.core.stages import FrequencyRandomizer
from dovetail.leak.vulnerability import Vulnerability, vulnerability
from dovetail.plan.requirements import Requirements
from dovetail.plan.search import CalibratedRandomizer, calibrate, families, guaranteed_epsilon

# What three adversaries learn from one batch: one knows nothing, one everybody else, one the order.


MOST_COMPARED = 10**7
MOST_REPORT_SYMBOLS = 64  # of report, that are sampled
MOST_CELLS = 1 << 20
MOST_HISTOGRAMS = 64  # known histograms
MOST_SYMBOLS = 5  # with exact sums for known others
STEP = sqrt(2.0)

OWN = "what the person's own report tells"
GUARANTEE = "what (epsilon, delta)-indistinguishable batches allow"
BLANKET = "what is left when every truthful answer of the others is revealed"


@dataclass(frozen=True)
class AdversaryLeakage:
    """Leakage to one adversary who names one person's value in one try; uniform prior.

    Parameters
    ----------
    prior : float
        Her chance before she sees anything: 1/k.
    additive : float
        What seeing the batch adds to it; for "bracket" the upper end.
    ends : Bracket
        Of `additive`.
    method : str
        "closed form", "exact sum", "enumerated", "sampled" or "bracket".
    basis : str
        What is known of the others, or what the ends rest on.
    """

    prior: float
    additive: float
    ends: Bracket
    method: str
    basis: str

    @property
    def vulnerability(self) -> float:
        """Her chance of naming the value in one try."""
        return self.prior + self.additive

    @property
    def multiplicative(self) -> float:
        """The factor by which seeing the batch raises her chance."""
        return 1.0 + self.additive / self.prior


def uninformed_adversary_leakage(randomizer: FrequencyRandomizer, *, n: int, rng: Entropy | None) -> AdversaryLeakage:
    """She knows the prior, and nothing about anybody.

    Raises
    ------
    UnsupportedError
        Where the channel has no matrix, or too many kinds of report or people to sum or to sample.
    """
    channel = _channel(randomizer)
    if not isinstance(channel, KRRChannel) and n > 1:
        if n > MOST_COMPARED:
            raise UnsupportedError(f"beyond {MOST_COMPARED:,} people exact sums take minutes")
        if channel.shape[1] > MOST_REPORT_SYMBOLS:
            raise UnsupportedError(
                f"{channel.shape[1]:,} kinds of report are too many to sample, at most {MOST_REPORT_SYMBOLS} are"
            )
    seen = vulnerability(channel, n=n, rng=rng)
    return _reached(seen, "uniform prior, nobody's value is known")


def strong_adversary_leakage(
    randomizer: FrequencyRandomizer, *, n: int, lower: float, own: float
) -> AdversaryLeakage:
    """She knows the values of all others, whatever is worst.

    Parameters
    ----------
    randomizer : FrequencyRandomizer, pure
    n : int, at least 1
    lower : float, at least 0
        What the uninformed adversary gains: on the average over the others, knowing them gains no less.
    own : float
        What the person's own report tells: all others being known, the batch is made from it.
    """
    channel = randomizer.channel() if randomizer.name == "krr" else None
    if isinstance(channel, KRRChannel):
        tried = _worst_known_histogram(channel, n)
        if tried is not None:
            return tried
    upper, basis = min(
        (own, OWN), (central_leakage_bound(randomizer.guarantee.epsilon, n=n, k=randomizer.k), GUARANTEE)
    )
    if isinstance(channel, KRRChannel):
        blanket = vulnerability(channel, n=n, adversary="strong").randomized_shuffled_leakage
        upper, basis = min((upper, basis), (blanket, BLANKET))
        if channel.k == 2:
            lower = max(lower, *(_knowing(channel, (n - 1 - m, m)).additive for m in (0, (n - 1) // 2)))
    return AdversaryLeakage(
        1.0 / randomizer.k,
        upper,
        Bracket(min(lower, upper), upper),
        "bracket",
        f"whatever is known of the others; upper end: {basis}",
    )


def linked_report_leakage(randomizer: FrequencyRandomizer) -> AdversaryLeakage:
    """She knows who sent which report: a batch of one."""
    basis = "each report is linked to its sender"
    ends = randomizer.own_report_leakage()
    if ends is not None:
        return AdversaryLeakage(
            1.0 / randomizer.k, ends.upper, ends, "bracket", f"{basis}; ends: buckets that are used"
        )
    try:
        return _reached(vulnerability(_channel(randomizer), n=1), basis)
    except UnsupportedError:
        upper = additive_leakage_bound(randomizer.guarantee.epsilon, 0.0, k=randomizer.k)
        return AdversaryLeakage(
            1.0 / randomizer.k, upper, Bracket(0.0, upper), "bracket", f"{basis}; upper end: its local promise"
        )


def cap_leakage(leak: AdversaryLeakage, most: float) -> AdversaryLeakage:
    """The same, knowing that it is at most `most`: what one adversary learns, another who knows more learns too."""
    if leak.ends.upper <= most:
        return leak
    return replace(leak, additive=min(leak.additive, most), ends=Bracket(min(leak.ends.lower, most), most))


def additive_leakage_bound(epsilon: float, delta: float, *, k: int) -> float:
    r"""The most that one output of an (epsilon, delta)-indistinguishable channel adds to a blind guess among k.

    .. math:: V \le \frac{e^\epsilon + (k - 1) \delta}{e^\epsilon + k - 1}, \qquad
              V - \frac1k \le \frac{(k - 1)(e^\epsilon - 1 + k \delta)}{k (e^\epsilon + k - 1)}

    k-ary randomized response with delta = 0 reaches it. Holds against everybody whose uncertainty is about this
    one value, uniform beforehand, hence also for others whose values she does not know.

    Parameters
    ----------
    epsilon : float, at least 0, at most 700, nats
    delta : float, 0 .. 1
    k : int, at least 2

    Examples
    --------
    >>> additive_leakage_bound(0.0, 0.25, k=2)  # half the total variation distance
    0.125

    Source
    ------
    Guess w on the outputs A_w. For each w and w', C_w(A_w) <= e^epsilon C_w'(A_w) + delta; summed over all pairs,
    (k - 1) k V <= e^epsilon (k - k V) + k (k - 1) delta.
    """
    most = (k - 1) / k
    return min(most, most * (expm1(epsilon) + k * delta) / (exp(epsilon) + k - 1))


def central_leakage_bound(epsilon0: float, *, n: int, k: int) -> float:
    """The least `bound` found along the guarantee of n shuffled reports of any pure randomizer.

    Examples
    --------
    >>> round(central_leakage_bound(1.0, n=10_000, k=2), 6)
    0.002319
    """
    shuffled = Accountant(epsilon0, n=n)
    ladder = [epsilon0 * STEP**-step for step in range(int(log2(n)) + 4)]
    return min(additive_leakage_bound(epsilon, shuffled.delta(epsilon), k=k) for epsilon in (*ladder, 0.0))


def _channel(randomizer: FrequencyRandomizer) -> Channel:
    """The channel, where it is small enough to work with."""
    channel = randomizer.channel()
    if not isinstance(channel, KRRChannel) and channel.shape[0] * channel.shape[1] > MOST_CELLS:
        raise UnsupportedError(f"its channel has {channel.shape[1]:,} kinds of report, too many for exact sums")
    return channel


def _reached(seen: Vulnerability, basis: str) -> AdversaryLeakage:
    additive, ends = seen.randomized_shuffled_leakage, seen.randomized_shuffled_bracket
    return AdversaryLeakage(
        seen.prior,
        additive,
        Bracket(max(0.0, min(additive, ends.lower - seen.prior)), max(additive, ends.upper - seen.prior)),
        seen.method,
        basis,
    )


def _knowing(channel: KRRChannel, known: tuple[int, ...]) -> AdversaryLeakage:
    seen = vulnerability(channel, n=sum(known) + 1, adversary="strong", known=known)
    return _reached(seen, f"all others are known; worst of every histogram: {', '.join(map(str, known))}")


def _worst_known_histogram(channel: KRRChannel, n: int) -> AdversaryLeakage | None:
    """The worst of all known histograms, where there are few; relabelled values are one histogram."""
    if channel.k > MOST_SYMBOLS:
        return None
    every = list(islice(_partitions(n - 1, channel.k, n - 1), MOST_HISTOGRAMS + 1))
    if len(every) > MOST_HISTOGRAMS:
        return None
    return max((_knowing(channel, known) for known in every), key=lambda leak: leak.additive)


def _partitions(total: int, parts: int, most: int) -> Iterator[tuple[int, ...]]:
    """Ways to write `total` as so many falling counts of at most `most`."""
    if parts == 1:
        if total <= most:
            yield (total,)
        return
    for first in range(min(most, total), -1, -1):
        if first * parts < total:
            return
        for rest in _partitions(total - first, parts - 1, first):
            yield (first, *rest)


# A comparison of mechanisms: its rows, their ranks by adversary, and where ranks disagree or intervals overlap.


Adversary = Literal["uninformed", "strong", "colluding"]
ADVERSARIES: tuple[Adversary, ...] = get_args(Adversary)
RANK_TOLERANCE = 2e-6  # relative: epsilon0 is solved to 1e-6, so leaks this close are one rank
ADVERSARY_NAMES = {
    "uninformed": "the uninformed adversary",
    "strong": "the strong one",
    "colluding": "a colluding shuffler",
}


@dataclass(frozen=True)
class ComparedMechanism:
    """One row: a randomizer, a shuffler, and what they leak; a string in place of a number is why there is none.

    Parameters
    ----------
    randomizer : "krr", "hadamard", "unary", "local_hashing" or "none"
    shuffler : "uniform" or "none"
    epsilon0 : float or str, nats
        Local epsilon at which the randomizer reaches the error.
    epsilon : float or str, nats
        Central epsilon of the honest people at delta; infinite without a randomizer.
    error95 : float or str
        Predicted 95 % error of one share.
    uninformed, strong, colluding : AdversaryLeakage or str
        To somebody who knows nothing about anybody; who knows all others, whatever is worst; who sees the order.
    """

    randomizer: str
    shuffler: str
    epsilon0: float | str
    epsilon: float | str
    error95: float | str
    uninformed: AdversaryLeakage | str
    strong: AdversaryLeakage | str
    colluding: AdversaryLeakage | str

    @property
    def name(self) -> str:
        """The row in words."""
        if self.randomizer == "none":
            return "shuffle only"
        return f"{self.randomizer} {'only' if self.shuffler == 'none' else 'and shuffle'}"

    def leak(self, adversary: Adversary) -> AdversaryLeakage | str:
        """Leakage to this adversary."""
        return {"uninformed": self.uninformed, "strong": self.strong, "colluding": self.colluding}[adversary]


@dataclass(frozen=True)
class MechanismComparison:
    """Mechanisms of equal accuracy; see `compare_mechanisms`, which makes it.

    Raises
    ------
    ParameterError
        Nowhere by itself: `compare_mechanisms` checks what is asked.

    Examples
    --------
    >>> from dovetail.plan.compare import compare_mechanisms
    >>> found = compare_mechanisms(n=100, k=2, error=0.1)
    >>> found.order("strong")[-1].name
    'shuffle only'
    """

    n: int
    k: int
    error: float
    delta: float
    honest: int
    mechanisms: tuple[ComparedMechanism, ...]

    def order(self, adversary: Adversary) -> tuple[ComparedMechanism, ...]:
        """From the smallest leakage to the largest, by upper bound; rows without a number are left out."""
        known = [one for one in self.mechanisms if not isinstance(one.leak(adversary), str)]
        return tuple(sorted(known, key=lambda one: _upper_end(one, adversary)))

    def rank(self, mechanism: ComparedMechanism, adversary: Adversary) -> int | None:
        """Place in that order, 1 for the smallest; equal leaks share it. None without a number."""
        if isinstance(mechanism.leak(adversary), str):
            return None
        own = _upper_end(mechanism, adversary) * (1.0 - RANK_TOLERANCE)
        return 1 + sum(_upper_end(one, adversary) < own for one in self.order(adversary))

    @property
    def notes(self) -> tuple[str, ...]:
        """Say where the adversaries disagree on the order, and where an order is not decided."""
        return (*_reversals(self), *_overlaps(self))

    def document(self) -> dict[str, Any]:
        """The comparison as JSON-ready dictionaries; what is not known is null with its reason."""
        question = {name: getattr(self, name) for name in ("n", "k", "error", "delta", "honest")}
        rows = [self._row(one) for one in self.mechanisms]
        orders = {adversary: [one.name for one in self.order(adversary)] for adversary in ADVERSARIES}
        return {"question": question, "mechanisms": rows, "orders": orders, "notes": list(self.notes)}

    def _row(self, one: ComparedMechanism) -> dict[str, Any]:
        numbers = {name: _number(getattr(one, name)) for name in ("epsilon0", "epsilon", "error95")}
        row = {"name": one.name, "randomizer": one.randomizer, "shuffler": one.shuffler, **numbers}
        return row | {adversary: self._leak(one, adversary) for adversary in ADVERSARIES}

    def _leak(self, one: ComparedMechanism, adversary: Adversary) -> dict[str, Any]:
        leak = one.leak(adversary)
        if isinstance(leak, str):
            return {"value": None, "reason": leak}
        return {
            "rank": self.rank(one, adversary),
            "vulnerability": leak.vulnerability,
            "multiplicative": leak.multiplicative,
            **asdict(leak),
        }


def _upper_end(one: ComparedMechanism, adversary: Adversary) -> float:
    leak = one.leak(adversary)
    return inf if isinstance(leak, str) else leak.ends.upper


def _leaks_less(one: ComparedMechanism, other: ComparedMechanism, adversary: Adversary) -> bool:
    """True if the one certainly leaks less."""
    first, second = one.leak(adversary), other.leak(adversary)
    if isinstance(first, str) or isinstance(second, str):
        return False
    return first.ends.upper < second.ends.lower * (1.0 - RANK_TOLERANCE)


def _reversals(found: MechanismComparison) -> Iterator[str]:
    for here, there in combinations(ADVERSARIES, 2):
        for one in found.mechanisms:
            others = [
                other.name
                for other in found.mechanisms
                if _leaks_less(one, other, here) and _leaks_less(other, one, there)
            ]
            if others:
                first, second = ADVERSARY_NAMES[here], ADVERSARY_NAMES[there]
                yield f"{one.name} leaks less to {first} but more to {second} than {', '.join(others)}"


def _overlaps(found: MechanismComparison) -> Iterator[str]:
    for adversary in ADVERSARIES:
        order = found.order(adversary)
        names = [
            one.name
            for one in order
            if any(
                other is not one
                and _has_bracket(one, other, adversary)
                and not _leaks_less(one, other, adversary)
                and not _leaks_less(other, one, adversary)
                for other in order
            )
        ]
        if names:
            yield (
                f"to {ADVERSARY_NAMES[adversary]} the intervals of these overlap, so they are ranked by upper bound: "
                f"{', '.join(names)}"
            )


def _has_bracket(one: ComparedMechanism, other: ComparedMechanism, adversary: Adversary) -> bool:
    """True if the leakage of either is known only as an interval."""
    leaks = (one.leak(adversary), other.leak(adversary))
    return any(not isinstance(leak, str) and leak.method in ("sampled", "bracket") for leak in leaks)


def _number(value: float | str) -> Any:
    if isinstance(value, str):
        return {"value": None, "reason": value}
    return "inf" if isinf(value) else value


def compare_mechanisms(
    *,
    n: int,
    k: int,
    error: float,
    delta: float | None = None,
    honest: int | None = None,
    rng: Entropy | None = None,
    progress: Tick = no_tick,
) -> MechanismComparison:
    r"""Compare mechanisms of one accuracy by what they leak to three adversaries.

    Every kind of randomizer gets the least epsilon0 that reaches the error, once with its reports linked to their
    senders (the paper's N) and once in uniformly random order (NS); beside them the values themselves in random
    order (S), which has no error. The order can differ between adversaries: shuffling alone hides much from somebody
    who knows nobody, and nothing from somebody who knows all others.

    Parameters
    ----------
    n : int, 1 .. 1e12
        People who will answer, once each.
    k : int, 2 to 2^24
        Number of values.
    error : float, above 0, below 1
        What one share may be off with probability 95 %, whatever people hold.
    delta : float, at least 0, below 1, optional
        Of the central guarantee; default 1 / (100 n).
    honest : int, 1 .. n, optional
        People assumed to keep their reports secret: the crowd in which one hides; default all.
    rng : Entropy, optional
        Allows Monte Carlo where nothing exact is in reach.
    progress : function of the randomizers that are done and their number, optional

    Raises
    ------
    ParameterError
        For numbers outside these ranges.

    Notes
    -----
    Uninformed: exact for k-ary randomized response; enumerated or sampled for Hadamard response and unary encoding,
    up to 1e7 people and 64 kinds of report; not known for local hashing. Strong: the worst of all known histograms
    for k-ary randomized response while there are at most 64 of them; else a bracket whose upper end decides the
    rank: the smallest of the person's own report, the central guarantee, and a blanket bound. Seconds; n above 1e6
    with 3 to 9 values some thirty times what `vulnerability` takes.

    Examples
    --------
    >>> found = compare_mechanisms(n=1000, k=2, error=0.05)
    >>> [row.name for row in found.mechanisms if found.rank(row, "uninformed") == 1]  # the same law, with two values
    ['krr and shuffle', 'subset_selection and shuffle']
    >>> shuffle_only = found.mechanisms[-1]
    >>> [found.order(adversary)[-1] is shuffle_only for adversary in ("strong", "colluding")]
    [True, True]

    Source
    ------
    Jurado, Gonze, Alvim, Palamidessi (2023), Analyzing the Shuffle Model Through the Lens of Quantitative
    Information Flow, CSF, section VII (the comparison at a desired utility), Propositions 15, 20, 21 and equation 10.
    """
    if rng is not None:
        rng = entropy_or_system(rng)
    people = whole("n", n, least=1, most=MOST_PEOPLE)
    requirements = Requirements(
        "frequency",
        n=people,
        honest=people if honest is None else honest,
        delta=0.01 / people if delta is None else delta,
        k=k,
        error=error,
    )
    rows: list[ComparedMechanism] = []
    every = list(families(requirements))
    for done, family in enumerate(every):
        progress(done, len(every))
        rows += _rows(family.name, calibrate(family, requirements), requirements, rng)
    progress(len(every), len(every))
    return MechanismComparison(
        requirements.n,
        *_domain_and_error(requirements),
        requirements.delta,
        requirements.honest,
        (*rows, _shuffle_only(requirements)),
    )


def _domain_and_error(requirements: Requirements) -> tuple[int, float]:
    assert requirements.k is not None and requirements.error is not None  # a frequency for an error
    return requirements.k, requirements.error


def _rows(
    name: str, found: CalibratedRandomizer | str, requirements: Requirements, rng: Entropy | None
) -> Iterator[ComparedMechanism]:
    """One kind of randomizer, its reports linked to their senders and in uniformly random order."""
    if isinstance(found, str):
        for shuffler in ("none", "uniform"):
            yield ComparedMechanism(name, shuffler, *[found] * 6)
        return
    randomizer = found.randomizer
    assert isinstance(randomizer, FrequencyRandomizer)
    own, n = linked_report_leakage(randomizer), requirements.honest
    yield ComparedMechanism(name, "none", found.epsilon0, found.epsilon0, found.accuracy.error95, own, own, own)
    try:
        blind: AdversaryLeakage | str = uninformed_adversary_leakage(randomizer, n=n, rng=rng)
    except UnsupportedError as error:
        blind = str(error)
    lower = 0.0 if isinstance(blind, str) else blind.ends.lower
    informed = strong_adversary_leakage(randomizer, n=n, lower=lower, own=own.ends.upper)
    if not isinstance(blind, str):
        blind = cap_leakage(blind, informed.ends.upper)
    shuffled = guaranteed_epsilon(found.family, found.epsilon0, requirements, n=requirements.n)
    yield ComparedMechanism(name, "uniform", found.epsilon0, shuffled, found.accuracy.error95, blind, informed, own)


def _shuffle_only(requirements: Requirements) -> ComparedMechanism:
    """The values themselves in random order (Proposition 20); anybody who knows all others subtracts them."""
    k, _ = _domain_and_error(requirements)
    seen = vulnerability(
        KRRChannel(k, keep=2, lie=1), n=requirements.honest
    )  # its shuffled part asks for k and n only
    ends = seen.shuffled_bracket
    blind = AdversaryLeakage(
        seen.prior,
        seen.shuffled_leakage,
        Bracket(max(0.0, ends.lower - seen.prior), max(seen.shuffled_leakage, ends.upper - seen.prior)),
        seen.method,
        "uniform prior, nobody's value is known",
    )
    everything = 1.0 - 1.0 / k
    told = AdversaryLeakage(
        1.0 / k, everything, Bracket(everything, everything), "closed form", "her value is all that is left"
    )
    return ComparedMechanism("none", "uniform", inf, inf, 0.0, blind, told, told)

"""What three adversaries learn from one batch: one knows nothing, one everybody else, one the order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from math import exp, expm1, log2, sqrt

from dovetail.account.clones.stronger_clones import ClonePair
from dovetail.core.bracket import Bracket
from dovetail.core.channel import Channel, KRRChannel
from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.core.stages import FrequencyRandomizer
from dovetail.leak.vulnerability import Vulnerability, vulnerability

MOST_PEOPLE = 10**7
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
    """How much better an adversary names one person's value in one try; uniform prior.

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
        if n > MOST_PEOPLE:
            raise UnsupportedError(f"beyond {MOST_PEOPLE:,} people exact sums take minutes")
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
    0.002514
    """
    pair = ClonePair(epsilon0, n)
    ladder = [epsilon0 * STEP**-step for step in range(int(log2(n)) + 4)]
    return min(additive_leakage_bound(epsilon, pair.delta(epsilon).upper, k=k) for epsilon in (*ladder, 0.0))


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

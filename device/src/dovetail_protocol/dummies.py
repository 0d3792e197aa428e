"""The section of a campaign about dummies: those that its shuffler adds to every batch, or those that people send."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, final

from dovetail_protocol.checks import real, refuse, whole
from dovetail_protocol.errors import ConfigError
from dovetail_protocol.exact_thresholds import Words
from dovetail_protocol.mechanism import Mechanism, pack, size, symbol, unpack
from dovetail_protocol.toml_section import Section

# Dummies that devices send themselves: a message with the symbol, and by chance a second one that says nothing.


CAP = 2  # messages of one person with one symbol, m + 1 with m of them: the shuffler enforces it
SCALE = 1 << 32


@final
@dataclass(frozen=True)
class SentDummies:
    r"""Messages of a device for one value: the value, and with probability `rate` a uniform symbol beside it.

    How many messages a device sends does not depend on its value. Each goes into envelopes of its own: who opens
    two of them together would know that the value is one of the two.

    Parameters
    ----------
    k : int, 2 to 2^24
        Number of symbols; values are 0..k-1.
    rate : float, above 0, at most 1
        Rounded up to a multiple of 2^-32.

    Examples
    --------
    >>> sent = SentDummies(k=4, rate=0.25)
    >>> sent.numerator == 2**30
    True
    """

    k: int
    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole("k", self.k, least=2, most=1 << 24))
        given = real("rate", self.rate)
        if not 0.0 < given <= 1.0:
            raise refuse("rate", "above 0 and at most 1", self.rate)
        object.__setattr__(self, "rate", math.ceil(given * SCALE) / SCALE)

    @property
    def numerator(self) -> int:
        """Of the rate, out of 2^32."""
        return int(self.rate * SCALE)

    def messages(self, value: Any, words: Words) -> list[int]:
        """One or two symbols, to be sealed and sent each by itself."""
        own = symbol(value, self.k)
        if words.bits(32) >= self.numerator:
            return [own]
        return [own, words.below(self.k)]

    def filled(self, values: Sequence[Any], words: Words) -> list[int]:
        """The answers and one dummy, or the blank k in its place, in random order."""
        *others, last = values
        drawn = [*(symbol(one, self.k) for one in others), *self.messages(last, words)]
        drawn += [self.k] * (len(values) + CAP - 1 - len(drawn))
        for place in range(len(drawn) - 1, 0, -1):
            other = words.below(place + 1)
            drawn[place], drawn[other] = drawn[other], drawn[place]
        return drawn


@final
@dataclass(frozen=True)
class Unrandomized(Mechanism):
    """Message of a device where only dummies hide it: a symbol as it is, or a blank.

    There is no local promise: epsilon is infinite.

    Parameters
    ----------
    k : int, 2 to 2^24
        Number of symbols; values are 0..k-1, and k is the blank.

    Examples
    --------
    >>> sent = Unrandomized(k=255)
    >>> sent.report_bytes, sent.decode(sent.encode(sent.blank)), sent.epsilon
    (1, 255, inf)
    """

    k: int
    epsilon: float = field(default=math.inf, init=False)
    name: ClassVar[str] = "none"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole("k", self.k, least=2, most=1 << 24))

    @property
    def blank(self) -> int:
        """Symbol for no message: it is sealed like one, and never counted."""
        return self.k

    @property
    def report_bytes(self) -> int:
        return size(self.k + 1)

    def check(self, value: Any) -> int:
        return symbol(value, self.k)

    def randomize(self, value: Any, words: Words) -> int:
        return self.check(value)

    def encode(self, report: int) -> bytes:
        return pack(report, self.k + 1)

    def decode(self, data: bytes) -> int:
        return unpack(data, self.k + 1)


TRUSTED = {"shuffler": "the shuffler", "users": "other people"}  # who makes the noise where devices make none
TRUSTS = ("local", *TRUSTED)


@dataclass(frozen=True)
class DummiesRule:
    """Dummies that the shuffler adds to every batch where it is trusted with the noise.

    epsilon, delta : of one batch, or of each symbol where people send several, against the analyzer.
    reach : dummies of each symbol on average, by which a shuffler that would add others is known before it takes a
    report. variance : of Gaussian dummies, all but theirs; None of two-sided geometric ones.
    """

    epsilon: float
    delta: float
    reach: int
    variance: Fraction | None = None

    @property
    def by_chance(self) -> tuple[float, float] | None:
        """`kept` and `more` of `SparseRule`; None where every report is in its batch."""
        return None

    def charged(self, symbols: int) -> tuple[float, float]:
        """Epsilon and delta of a batch for a person who sends so many symbols."""
        return symbols * self.epsilon, symbols * self.delta


@dataclass(frozen=True, kw_only=True)
class DigitsRule(DummiesRule):
    """Gaussian dummies of the ternary digits of a number, with epsilon and delta of all of them together.

    reaches : dummies on average of each symbol of a digit, from the last digit on; `reach` is the first of them.
    variance : of the last digit; of the one before it a third, and so on.
    """

    reaches: tuple[int, ...]

    def charged(self, symbols: int) -> tuple[float, float]:
        return self.epsilon, self.delta


@dataclass(frozen=True, kw_only=True)
class SparseRule(DummiesRule):
    """Few dummies, beside reports that are in a batch by chance only: no delta, and no reach.

    kept : the probability that a report is in its batch. more : that a symbol gets one dummy more.
    """

    kept: float
    more: float

    @property
    def by_chance(self) -> tuple[float, float] | None:
        return self.kept, self.more


@dataclass(frozen=True)
class SentRule:
    """Dummies that people add to a batch where they are trusted with the noise.

    epsilon, delta : of one batch, against the analyzer and everybody else, as long as `assumed_honest` people take
    part. rate : the probability with which a device sends a dummy, the same for everybody.
    """

    epsilon: float
    delta: float
    rate: float

    def of(self, mechanism: Unrandomized) -> SentDummies:
        """Distribution that a device draws from."""
        return SentDummies(mechanism.k, self.rate)


def delta_of_each(delta: float, symbols: int) -> float:
    """Share a delta among so many symbols: a double, so many times which are at most that.

    >>> 3 * delta_of_each(0.1, 3) <= 0.1
    True
    """
    found = delta / symbols
    while symbols * found > delta:
        found = math.nextafter(found, 0.0)
    return found


def read_dummies(section: Section, trust: str) -> tuple[DummiesRule | None, SentRule | None]:
    """Whichever rule belongs to this trust; none of them where only each device is trusted."""
    if bool(section) != (trust != "local"):
        raise ConfigError(
            '`promise.trust` = "shuffler" or "users" and the section [dummies] go together: give both or neither.'
        )
    if not section:
        return None, None
    epsilon = section.positive("epsilon")
    if trust == "shuffler" and (kept := section.positive("kept", None)) is not None:
        more = _rate(section.positive("more"), "more")
        section.finish()
        return SparseRule(epsilon=epsilon, delta=0.0, reach=0, kept=_rate(kept, "kept"), more=more), None
    delta = section.probability("delta")
    added: DummiesRule | None = None
    if trust == "shuffler" and (reaches := section.wholes("reaches", least=1)):
        added = DigitsRule(epsilon, delta, reaches[0], _variance(section.text("variance")), reaches=reaches)
    elif trust == "shuffler":
        added = DummiesRule(epsilon, delta, section.whole("reach", least=1), _variance(section.text("variance", "")))
    sent = SentRule(epsilon, delta, _rate(section.positive("rate"))) if trust == "users" else None
    section.finish()
    return added, sent


def _variance(text: str) -> Fraction | None:
    """A fraction as it is written, such as "1715/4"."""
    if not text:
        return None
    try:
        found = Fraction(text)
    except (ValueError, ZeroDivisionError):
        found = Fraction(0)
    if str(found) != text or found <= 0 or max(found.numerator, found.denominator) >= 1 << 53:
        raise ConfigError(f"`dummies.variance` must be a fraction above 0 in lowest terms, got {text!r}.")
    return found


def _rate(given: float, name: str = "rate") -> float:
    """A probability that can be drawn by as it is written."""
    if not (given <= 1.0 and (given * SCALE).is_integer()):
        raise ConfigError(f"`dummies.{name}` must be above 0 and at most 1, and a multiple of 2^-32, got {given!r}.")
    return given


def unrandomized(name: str, trust: str) -> bool:
    """True if `[randomizer]` is none: it has to be where people send dummies, and may be where the shuffler does."""
    if name == Unrandomized.name and trust == "local":
        raise ConfigError(f'`randomizer.name` = "{Unrandomized.name}" goes with dummies: set `promise.trust`.')
    if name != Unrandomized.name and trust == "users":
        raise ConfigError(f'`promise.trust` = "users" goes with `randomizer.name` = "{Unrandomized.name}".')
    return name == Unrandomized.name


def read_unrandomized(section: Section) -> Unrandomized:
    """The symbols of a campaign that randomizes nothing."""
    found = Unrandomized(k=section.whole("k", least=2))
    section.finish()
    return found


def require_people(minimum: int, honest: int | None, dishonest: int) -> None:
    """Refuse batches that could hold fewer honest people than the dummies of a campaign count on."""
    if honest is None:
        raise ConfigError('`promise.assumed_honest` is missing: `trust` = "users" counts on so many people.')
    if minimum < honest + dishonest:
        raise ConfigError(
            f"`batch.minimum` = {minimum} is below `promise.assumed_honest` and `assumed_dishonest` together "
            f"({honest} + {dishonest}): a batch could hold fewer honest people."
        )

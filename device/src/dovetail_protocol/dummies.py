"""What a campaign file says of dummies: those that its shuffler adds to every batch, or those that people send."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

from dovetail_protocol.checks import real, refuse, whole
from dovetail_protocol.errors import ConfigError
from dovetail_protocol.mechanism import Mechanism
from dovetail_protocol.symbols import pack, size, symbol, unpack
from dovetail_protocol.toml_section import Section
from dovetail_protocol.words import Words

# Dummies that devices send themselves: a message with the symbol, and by chance a second one that says nothing.


CAP = 2  # messages of one person, which the shuffler enforces
SCALE = 1 << 32


@final
@dataclass(frozen=True)
class SentDummies:
    r"""What a device sends for one value: the value, and with probability `rate` a uniform symbol beside it.

    How many messages a device sends does not depend on its value. Each goes into envelopes of its own: whoever opens
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

    def filled(self, value: Any, words: Words) -> list[int]:
        """The same with the blank k in place of a dummy that is not sent, in either order: always `CAP` of them."""
        drawn = self.messages(value, words)
        drawn += [self.k] * (CAP - len(drawn))
        return drawn if words.below(2) else drawn[::-1]


@final
@dataclass(frozen=True)
class Unrandomized(Mechanism):
    """What a device sends where only other people's dummies hide it: a symbol as it is, or a blank.

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
        """What stands for no message: it is sealed like one, and nobody counts it."""
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


TRUSTS = ("local", "shuffler", "users")


@dataclass(frozen=True)
class DummiesRule:
    """What the shuffler adds to every batch where it is trusted with the noise, beside the local one.

    epsilon, delta : of one batch, against the analyzer. reach : dummies of each symbol on average, by which a
    shuffler that would add others is known before it takes a report.
    """

    epsilon: float
    delta: float
    reach: int


@dataclass(frozen=True)
class SentRule:
    """What people add to a batch where they are trusted with the noise, and nothing is randomized.

    epsilon, delta : of one batch, against the analyzer and everybody else, as long as `assumed_honest` people take
    part. rate : the probability with which a device sends a dummy, the same for everybody.
    """

    epsilon: float
    delta: float
    rate: float

    def of(self, mechanism: Unrandomized) -> SentDummies:
        """What a device draws from."""
        return SentDummies(mechanism.k, self.rate)


def read_dummies(section: Section, trust: str) -> tuple[DummiesRule | None, SentRule | None]:
    """Whichever rule belongs to this trust; none of them where only each device is trusted."""
    if bool(section) != (trust != "local"):
        raise ConfigError(
            '`promise.trust` = "shuffler" or "users" and the section [dummies] go together: give both or neither.'
        )
    if not section:
        return None, None
    epsilon, delta = section.positive("epsilon"), section.probability("delta")
    added = DummiesRule(epsilon, delta, section.whole("reach", least=1)) if trust == "shuffler" else None
    sent = SentRule(epsilon, delta, _rate(section.positive("rate"))) if trust == "users" else None
    section.finish()
    return added, sent


def _rate(given: float) -> float:
    """A rate that devices can draw by as it is written."""
    if not (given <= 1.0 and (given * SCALE).is_integer()):
        raise ConfigError(f"`dummies.rate` must be above 0 and at most 1, and a multiple of 2^-32, got {given!r}.")
    return given


def unrandomized(name: str, trust: str) -> bool:
    """Whether `[randomizer]` is none; it has to be exactly where people send dummies."""
    if (name == Unrandomized.name) != (trust == "users"):
        raise ConfigError(
            f'`randomizer.name` = "{Unrandomized.name}" and `promise.trust` = "users" go together: only where people '
            "send dummies are answers sent as they are."
        )
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

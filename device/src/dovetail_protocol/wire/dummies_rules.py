"""What a campaign file says of dummies: those that its shuffler adds to every batch, or those that people send."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail_protocol.errors import ConfigError
from dovetail_protocol.toml_section import Section
from dovetail_protocol.wire.sent_dummies import SCALE, SentDummies, Unrandomized

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

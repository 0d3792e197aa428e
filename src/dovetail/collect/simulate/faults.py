"""Faults of a simulation, how often and when: drawn from a seed, because they protect nobody."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Literal, final

from dovetail.core.checks import share, whole
from dovetail.core.entropy import simulation

Role = Literal["device", "shuffler", "analyzer", "issuer"]
MessageFate = Literal["arrives", "lost", "unanswered", "delayed", "repeated"]
"""Of a message: it arrives; never does; does, but not its answer; does when nobody waits any more; does, twice."""


@dataclass(frozen=True)
class FaultRates:
    """How often which fault happens: probabilities, at least 0 and below 1."""

    loss: Annotated[float, "Share of messages lost, and of acknowledgements."] = 0.1
    duplicate: Annotated[float, "Share of messages that arrive twice."] = 0.05
    delay: Annotated[float, "Share of messages that arrive when nobody waits any more."] = 0.05
    crash: Annotated[float, "Share of operations in which a role dies."] = 0.001

    def __post_init__(self) -> None:
        for each in fields(self):
            object.__setattr__(self, each.name, share(each.name, getattr(self, each.name)))


class Crash(BaseException):
    """A process dies here; no handler of an Exception may survive it."""


@final
class SeededChance:
    """Decisions from a seed, one after the other."""

    def __init__(self, seed: int) -> None:
        self._words = simulation(whole("seed", seed, least=0))
        self._drawn: list[int] = []

    def happens(self, probability: float) -> bool:
        """True with this probability."""
        return self.number() < probability

    def fate(self, faults: FaultRates) -> MessageFate:
        """Draw the fate of the next message."""
        odds: tuple[tuple[MessageFate, float], ...] = (
            ("lost", faults.loss),
            ("delayed", faults.delay),
            ("repeated", faults.duplicate),
            ("unanswered", faults.loss),
        )
        return next((fate for fate, probability in odds if self.happens(probability)), "arrives")

    def number(self) -> float:
        """Uniform on [0, 1)."""
        if not self._drawn:
            self._drawn = self._words.words(4096).tolist()
        return (self._drawn.pop() >> 11) / (1 << 53)

    def below(self, bound: int) -> int:
        """One of 0..bound-1; simulations need no rejection."""
        return int(self.number() * bound)

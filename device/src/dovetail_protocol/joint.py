"""Answers to several questions in one report: each is randomized by itself, and all of them stay together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, final

from dovetail_protocol.budget import NOTHING, decimal_at_least
from dovetail_protocol.checks import refuse
from dovetail_protocol.errors import DataError, ParameterError
from dovetail_protocol.exact_thresholds import Words, as_written
from dovetail_protocol.mechanism import Mechanism, exactly, stated_in_full
from dovetail_protocol.toml_section import Section

MOST_PARTS = 16


@final
@dataclass(frozen=True)
class Joint(Mechanism):
    r"""One report about several questions, each by a mechanism and with randomness of its own.

    .. math:: R_{(x_1, .., x_m)} = R^1_{x_1} \otimes \dots \otimes R^m_{x_m}, \qquad \epsilon = \sum_q \epsilon_q

    Parameters
    ----------
    parts : 2 to 16 of Mechanism, of a symbol or a number

    Notes
    -----
    A report is a tuple of the reports of all parts; encoded, they stand one after the other.

    Examples
    --------
    >>> from dovetail_protocol.mechanism import mechanism
    >>> both = Joint((mechanism("krr", k=300, epsilon=0.1), mechanism("krr", k=2, epsilon=0.2)))
    >>> both.epsilon, both.report_bytes, both.decode(both.encode((299, 1)))
    (0.3, 3, (299, 1))
    """

    parts: tuple[Mechanism, ...]
    epsilon: float = field(init=False)
    name: ClassVar[str] = "joint"

    def __post_init__(self) -> None:
        if not 2 <= len(self.parts) <= MOST_PARTS:
            raise refuse("parts", f"2 to {MOST_PARTS} mechanisms", len(self.parts))
        for part in self.parts:
            if isinstance(part, Joint) or hasattr(part, "d"):
                raise ParameterError(f"`parts` must be mechanisms of a symbol or a number, and {part.name} is none.")
        whole = sum((as_written(part.epsilon) for part in self.parts), NOTHING)
        object.__setattr__(self, "epsilon", decimal_at_least(whole))

    @classmethod
    def read(cls, section: Section) -> Self:
        """The mechanism of a table `[randomizer]`, whose parts are tables like those of single mechanisms."""
        found = cls(tuple(stated_in_full(one.text("name"), **one.rest()) for one in section.tables("parts")))
        section.finish()
        return found

    def stated(self) -> dict[str, Any]:
        return {"parts": [{"name": part.name, **part.stated()} for part in self.parts]}

    @property
    def report_bytes(self) -> int:
        return sum(part.report_bytes for part in self.parts)

    def check(self, value: Any) -> tuple[Any, ...]:
        return tuple(part.check(one) for part, one in zip(self.parts, self._each(value, "value"), strict=True))

    def randomize(self, value: Any, words: Words) -> tuple[Any, ...]:
        checked = self.check(value)  # all of it before anything is drawn
        return tuple(part.randomize(one, words) for part, one in zip(self.parts, checked, strict=True))

    def encode(self, report: Any) -> bytes:
        both = zip(self.parts, self._each(report, "report"), strict=True)
        return b"".join(part.encode(one) for part, one in both)

    def decode(self, data: bytes) -> tuple[Any, ...]:
        left, found = exactly(data, self.report_bytes), []
        for part in self.parts:
            found.append(part.decode(left[: part.report_bytes]))
            left = left[part.report_bytes :]
        return tuple(found)

    def _each(self, given: Any, name: str) -> Sequence[Any]:
        if not isinstance(given, list | tuple) or len(given) != len(self.parts):
            raise DataError(f"`{name}` must have {len(self.parts)} parts, one for each question.")
        return given

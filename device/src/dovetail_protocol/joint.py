"""One report about several questions: with the answers to all of them, or to one that the device draws."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from typing import Any, ClassVar, Self, final

from dovetail_protocol.asked import MOST_DRAWN, MOST_WEIGHT
from dovetail_protocol.budget import NOTHING, decimal_at_least
from dovetail_protocol.checks import refuse, whole
from dovetail_protocol.errors import DataError, ParameterError
from dovetail_protocol.exact_thresholds import Words, as_written
from dovetail_protocol.mechanism import Mechanism, exactly, stated_in_full, symbol
from dovetail_protocol.toml_section import Section

MOST_PARTS = MOST_DRAWN


@dataclass(frozen=True)
class Several(Mechanism):
    """One report of a person who holds an answer to each of several questions, each with a mechanism of its own.

    Parameters
    ----------
    parts : 2 to 16 of Mechanism, of a symbol or a number
    """

    parts: tuple[Mechanism, ...]
    epsilon: float = field(init=False)

    def __post_init__(self) -> None:
        if not 2 <= len(self.parts) <= MOST_PARTS:
            raise refuse("parts", f"2 to {MOST_PARTS} mechanisms", len(self.parts))
        for part in self.parts:
            if isinstance(part, Several) or hasattr(part, "d"):
                raise ParameterError(f"`parts` must be mechanisms of a symbol or a number, and {part.name} is none.")
        object.__setattr__(self, "epsilon", self._spent())

    @abstractmethod
    def _spent(self) -> float:
        """The epsilon of one report."""

    @classmethod
    @abstractmethod
    def read(cls, section: Section) -> Self:
        """The mechanism of a table `[randomizer]`, whose parts are tables like those of single mechanisms."""

    @abstractmethod
    def expected(self, people: int) -> tuple[int, ...]:
        """How many of so many people answer each question, on average and at least 1."""

    @abstractmethod
    def own(self, data: bytes, place: int) -> bytes:
        """The answer to one question in an encoded report, encoded; empty where the report has none."""

    def stated(self) -> dict[str, Any]:
        return {"parts": [{"name": part.name, **part.stated()} for part in self.parts]}

    @final
    def check(self, value: Any) -> tuple[Any, ...]:
        return tuple(part.check(one) for part, one in zip(self.parts, self._each(value, "value"), strict=True))

    def _each(self, given: Any, name: str) -> Sequence[Any]:
        if not isinstance(given, list | tuple) or len(given) != len(self.parts):
            raise DataError(f"`{name}` must have {len(self.parts)} parts, one for each question.")
        return given


def _parts_of(section: Section) -> tuple[Mechanism, ...]:
    return tuple(stated_in_full(one.text("name"), **one.rest()) for one in section.tables("parts"))


@final
@dataclass(frozen=True)
class Joint(Several):
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

    name: ClassVar[str] = "joint"

    def _spent(self) -> float:
        return decimal_at_least(sum((as_written(part.epsilon) for part in self.parts), NOTHING))

    @classmethod
    def read(cls, section: Section) -> Self:
        found = cls(_parts_of(section))
        section.finish()
        return found

    def expected(self, people: int) -> tuple[int, ...]:
        return (people,) * len(self.parts)

    def own(self, data: bytes, place: int) -> bytes:
        start = sum(part.report_bytes for part in self.parts[:place])
        return data[start : start + self.parts[place].report_bytes]

    @property
    def report_bytes(self) -> int:
        return sum(part.report_bytes for part in self.parts)

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


@final
@dataclass(frozen=True)
class Drawn(Several):
    r"""One report about one question, which the device draws by chance alone and names in the report.

    .. math:: R_{(x_1, .., x_m)} = \bigoplus_q w_q R^q_{x_q}, \qquad \epsilon = \max_q \epsilon_q

    Parameters
    ----------
    parts : 2 to 16 of Mechanism, of a symbol or a number
    weights : as many int, 1 to 1000
        How often each question is drawn, against the others.

    Notes
    -----
    A report is a pair (question, its report); encoded, one byte and the report, with zeros up to the longest one. The
    draw reads nothing that a person holds, and a report of every question has one length.

    Examples
    --------
    >>> from dovetail_protocol.mechanism import mechanism
    >>> either = Drawn((mechanism("krr", k=300, epsilon=0.1), mechanism("krr", k=2, epsilon=0.2)), (3, 1))
    >>> either.epsilon, either.report_bytes, either.encode((1, 1)), either.expected(100)
    (0.2, 3, b'\x01\x01\x00', (75, 25))
    """

    weights: tuple[int, ...]
    name: ClassVar[str] = "one"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.weights) != len(self.parts):
            raise refuse("weights", f"{len(self.parts)} whole numbers, one for each part", len(self.weights))
        for weight in self.weights:
            whole("weights", weight, least=1, most=MOST_WEIGHT)

    def _spent(self) -> float:
        return max(part.epsilon for part in self.parts)

    @classmethod
    def read(cls, section: Section) -> Self:
        found = cls(_parts_of(section), section.wholes("weights", least=1))
        section.finish()
        return found

    def stated(self) -> dict[str, Any]:
        return {"weights": list(self.weights), **super().stated()}

    @property
    def report_bytes(self) -> int:
        return 1 + max(part.report_bytes for part in self.parts)

    def expected(self, people: int) -> tuple[int, ...]:
        return expected(self.weights, people)

    def own(self, data: bytes, place: int) -> bytes:
        return data[1 : 1 + self.parts[place].report_bytes] if data[:1] == bytes([place]) else b""

    def randomize(self, value: Any, words: Words) -> tuple[int, Any]:
        checked = self.check(value)  # all of it, whichever is drawn
        *ends, last = accumulate(self.weights)
        place = bisect_right(ends, words.below(last))
        return place, self.parts[place].randomize(checked[place], words)

    def encode(self, report: Any) -> bytes:
        if not isinstance(report, list | tuple) or len(report) != 2:
            raise DataError("`report` must be a question and the report to it.")
        place = symbol(report[0], len(self.parts), name="report")
        return (bytes([place]) + self.parts[place].encode(report[1])).ljust(self.report_bytes, b"\0")

    def decode(self, data: bytes) -> tuple[int, Any]:
        place = symbol(exactly(data, self.report_bytes)[0], len(self.parts), name="report")
        own = self.own(data, place)
        if any(data[1 + len(own) :]):
            raise DataError("`report` must have zeros behind its answer.")
        return place, self.parts[place].decode(own)


def expected(weights: Sequence[int], people: int) -> tuple[int, ...]:
    """How many of so many people draw each question, on average and at least 1."""
    whole = sum(weights)
    return tuple(max(1, round(Fraction(people * weight, whole))) for weight in weights)


SEVERAL: dict[str, type[Several]] = {Joint.name: Joint, Drawn.name: Drawn}

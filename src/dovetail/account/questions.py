"""Several questions to the same people: answers joined in one report, or one of the questions for each person."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

from dovetail.core.certified import round_up_sum
from dovetail.core.channel import Channel
from dovetail.core.checks import flag, positive, refuse, whole
from dovetail.core.errors import UnsupportedError
from dovetail.core.stages import Randomizer
from dovetail.randomize.krr import KRR

MOST_QUESTIONS = 16
SUM = 1e-9  # how far chances may be off their sum


@dataclass(frozen=True)
class SeveralQuestions(ABC):
    """A report about several questions, each with a mechanism of its own and with randomness of its own.

    Parameters
    ----------
    parts : 2 .. 16 of Randomizer or Channel, of pure local privacy
        Everybody answers question q by parts[q].
    """

    parts: tuple[Randomizer | Channel, ...]
    fewest: ClassVar[int] = 2

    def __post_init__(self) -> None:
        parts = tuple(self.parts) if isinstance(self.parts, Sequence) else (self.parts,)
        known = all(isinstance(part, Channel) or _has_channel(part) for part in parts)
        if not known or not self.fewest <= len(parts) <= MOST_QUESTIONS:
            raise refuse("parts", f"{self.fewest} to {MOST_QUESTIONS} randomizers or channels", self.parts)
        if any(isinstance(part, Randomizer) and part.guarantee.delta > 0.0 for part in parts):
            raise UnsupportedError(
                "Several questions are accounted together for pure local privacy; collect those with a local delta "
                "separately and `compose` them."
            )
        object.__setattr__(self, "parts", parts)

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """Local epsilon of one person's report; nats."""

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The local promise of each answer."""
        return tuple(part.guarantee.epsilon if isinstance(part, Randomizer) else part.epsilon for part in self.parts)

    @property
    def caveats(self) -> tuple[str, ...]:
        """Caveats of the promises of all answers."""
        named = [part.guarantee.caveats for part in self.parts if isinstance(part, Randomizer)]
        return tuple(dict.fromkeys(caveat for caveats in named for caveat in caveats))


@dataclass(frozen=True)
class JointReport(SeveralQuestions):
    r"""Everybody's answers to all questions in one report: the tuple is shuffled, its entries stay together.

    .. math:: R_{(x_1, .., x_m)} = R^1_{x_1} \otimes \dots \otimes R^m_{x_m}

    Which answers are one person's is released. That hides her less than shuffling each question by itself: choose it
    only where the link between answers is what is wanted. Her budget is the sum over the questions.

    Examples
    --------
    >>> from dovetail.account.amplify import amplify
    >>> from dovetail.randomize.krr import KRR
    >>> both = JointReport((KRR(k=2, epsilon=1.0), KRR(k=5, epsilon=0.5)))
    >>> both.epsilon, round(amplify(both, n=10_000, delta=1e-6).epsilon, 3)
    (1.5, 0.04)

    Source
    ------
    docs/theory/several-questions.md.
    """

    @property
    def epsilon(self) -> float:
        return round_up_sum(self.epsilons)


@dataclass(frozen=True)
class OneQuestion(SeveralQuestions):
    r"""Everybody answers one question, drawn by chance and named in the report.

    .. math:: R_{(x_1, .., x_m)} = \bigoplus_q w_q R^q_{x_q}

    The draw is a person's own, independent of her values and of all others; n counts all people, and no number of
    people who drew a question has to be known. Her budget is the largest of the questions'. For groups that are
    assigned publicly ask each group by itself: `personal_guarantees`.

    Parameters
    ----------
    parts : 2 .. 16 of Randomizer or Channel
    chances : several float above 0, optional
        The chance of each question; default all alike.

    Examples
    --------
    >>> from dovetail.account.amplify import amplify
    >>> from dovetail.randomize.krr import KRR
    >>> either = OneQuestion((KRR(k=2, epsilon=1.0), KRR(k=5, epsilon=0.5)))
    >>> either.epsilon, round(amplify(either, n=10_000, delta=1e-6).epsilon, 3)
    (1.0, 0.026)

    Source
    ------
    docs/theory/several-questions.md.
    """

    chances: tuple[float, ...] = field(default=())

    def __post_init__(self) -> None:
        super().__post_init__()
        count = len(self.parts)
        given: Sequence[Any] = self.chances if isinstance(self.chances, Sequence) else (self.chances,)
        chances = tuple(given) or (1.0 / count,) * count
        fine = len(chances) == count and all(isinstance(w, Real) and 0.0 < float(w) < 1.0 for w in chances)
        if not fine or abs(math.fsum(chances) - 1.0) > SUM:
            raise refuse("chances", f"{count} numbers above 0 with sum 1", self.chances)
        object.__setattr__(self, "chances", tuple(w / math.fsum(chances) for w in chances))

    @property
    def epsilon(self) -> float:
        return max(self.epsilons)


@dataclass(frozen=True)
class SampledBlock(SeveralQuestions):
    r"""Everybody answers one of many questions alike, each by the same k-ary response: drawn evenly and named.

    What `RotatedBlocks` sends: a block of signs of a vector, whose length bounds how many signs are determined.

    Parameters
    ----------
    parts : one KRR
    blocks : int, at least 1
        How many questions there are.
    energy : float, above 0 and at most 1
        Below 1 a symbol stands for s independent signs, k = 2^s, and the mean over all blocks and signs of the
        squared expectation of a sign is at most this, whatever the value is. At 1 symbols are determined.

    Examples
    --------
    >>> from dovetail.account.amplify import amplify
    >>> from dovetail.randomize.krr import KRR
    >>> sampled = SampledBlock((KRR(k=16, epsilon=4.0),), blocks=256)
    >>> round(amplify(sampled, n=100_000, delta=1e-6).epsilon, 3)
    0.105

    Source
    ------
    docs/theory/several-questions.md.
    """

    blocks: int = field(kw_only=True)
    energy: float = field(default=1.0, kw_only=True)
    fewest: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        _only_response(self.parts)
        whole("blocks", self.blocks, least=1)
        if not positive("energy", self.energy) <= 1.0:
            raise refuse("energy", "above 0 and at most 1", self.energy)
        if self.energy < 1.0 and self.response.k != 1 << self.signs:
            raise refuse("parts", "one KRR of 2^s symbols, s signs, where `energy` is below 1", self.parts)

    @property
    def response(self) -> KRR:
        """The response that answers the question that was drawn."""
        return _only_response(self.parts)

    @property
    def signs(self) -> int:
        """s, with k = 2^s."""
        return self.response.k.bit_length() - 1

    @property
    def epsilon(self) -> float:
        return self.epsilons[0]


def _has_channel(part: object) -> bool:
    """True of randomizers but those of vectors, whose reports are too many to have a channel beside others."""
    return isinstance(part, Randomizer) and part.question != "vector"


@dataclass(frozen=True)
class ChosenWord(SeveralQuestions):
    """Everybody draws m words by chance, k-ary response picks one of them or its opposite, and only that one is sent.

    What `ClosestDirection` sends. Neither the other words nor the place of the one that was picked are in the report.

    Parameters
    ----------
    parts : one KRR of 2 m symbols
        Which of the m words, or of their opposites, a value picks may be any function of the words.
    planar : bool
        False where values are not vectors of two coordinates or more: fewer collections are known then.

    Examples
    --------
    >>> from dovetail.account.amplify import amplify
    >>> from dovetail.randomize.krr import KRR
    >>> word = ChosenWord((KRR(k=18, epsilon=4.0),))
    >>> round(amplify(word, n=100_000, delta=1e-6).epsilon, 4)
    0.0733

    Source
    ------
    docs/theory/several-questions.md.
    """

    planar: bool = field(default=True, kw_only=True)
    fewest: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        flag("planar", self.planar)
        if _only_response(self.parts).k % 2:
            raise refuse("parts", "one KRR of an even number of symbols", self.parts)

    @property
    def response(self) -> KRR:
        """The response that picks a word."""
        return _only_response(self.parts)

    @property
    def words(self) -> int:
        """m."""
        return self.response.k // 2

    @property
    def epsilon(self) -> float:
        return self.epsilons[0]


def _only_response(parts: Sequence[Randomizer | Channel]) -> KRR:
    """The one KRR that `parts` must be."""
    if len(parts) != 1 or not isinstance(parts[0], KRR):
        raise refuse("parts", "one KRR", parts)
    return parts[0]

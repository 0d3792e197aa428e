"""Every kind of randomizer, each with the noise that suits the wish best, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dovetail.core.errors import ParameterError
from dovetail.core.guarantee import CentralDP
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer
from dovetail.plan.accuracy import Accuracy, predict
from dovetail.plan.families import Family
from dovetail.plan.requirements import Wish
from dovetail.plan.search import best_epsilon0, promise, smallest_epsilon0

AS_GOOD = 1.05  # within a twentieth the shorter report is worth more


@dataclass(frozen=True)
class Candidate:
    """A randomizer that grants the wish."""

    family: Family
    randomizer: FrequencyRandomizer | NumericRandomizer
    accuracy: Accuracy
    central: CentralDP

    @property
    def epsilon0(self) -> float:
        """Local epsilon of one report."""
        return self.central.colluding

    @property
    def report_bits(self) -> int:
        """Size of one report."""
        return self.randomizer.report_bits


@dataclass(frozen=True)
class Alternative:
    """One row of the comparison: a kind of randomizer with what it would do, or why it would not do."""

    randomizer: str
    epsilon0: float | None = None
    epsilon: float | None = None
    error95: float | None = None
    report_bits: int | None = None
    reason: str = ""

    @classmethod
    def of(cls, candidate: Candidate) -> Alternative:
        """The row of a candidate."""
        return cls(
            candidate.family.name,
            candidate.epsilon0,
            candidate.central.epsilon,
            candidate.accuracy.error95,
            candidate.report_bits,
            candidate.family.burden,
        )


def candidate(family: Family, wish: Wish) -> Candidate | str:
    """This kind with the noise that suits the wish best, or why it cannot grant it."""
    try:
        if wish.error is not None:
            epsilon0 = smallest_epsilon0(family, wish, error=wish.error, n=wish.n)
            if epsilon0 is None:
                return f"no epsilon0 up to {family.most:g} reaches this error"
            return at(family, epsilon0, wish)
        if wish.epsilon is not None:
            return at(family, best_epsilon0(family, wish, epsilon=wish.epsilon, n=wish.n), wish)
        assert wish.epsilon0 is not None
        return at(family, wish.epsilon0, wish)
    except ParameterError as error:
        return str(error)


def at(family: Family, epsilon0: float, wish: Wish) -> Candidate:
    """This kind with a given noise."""
    randomizer = family.make(epsilon0, wish.n)
    return Candidate(
        family,
        randomizer,
        predict(randomizer, n=wish.n, shares=wish.shares),
        promise(family, epsilon0, wish, n=wish.n),
    )


def cost(candidate: Candidate, wish: Wish) -> float:
    """What is to be small: epsilon where the error was given, otherwise the error."""
    return candidate.central.epsilon if wish.error is not None else candidate.accuracy.error95


def recommend(candidates: Sequence[Candidate], wish: Wish) -> Candidate:
    """The shortest report among those that cost at most a twentieth more than the cheapest."""
    least = min(cost(one, wish) for one in candidates)
    good = [one for one in candidates if cost(one, wish) <= AS_GOOD * least]
    return min(good, key=lambda one: (one.report_bits, cost(one, wish)))

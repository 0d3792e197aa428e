"""One kind of randomizer with its epsilon0 calibrated to the requirements, and the recommendation among the kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from dovetail.core.errors import ParameterError
from dovetail.core.guarantee import CentralDP
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer
from dovetail.plan.accuracy import Accuracy, predict_accuracy
from dovetail.plan.families import RandomizerFamily
from dovetail.plan.requirements import Requirements
from dovetail.plan.search import (
    SEARCH_POINTS,
    best_epsilon0,
    central_guarantee,
    guaranteed_epsilon,
    log_excess,
    smallest_epsilon0,
)

NEAR_BEST = 1.05  # within a twentieth the shorter report is worth more


@dataclass(frozen=True)
class CalibratedRandomizer:
    """A randomizer that meets the requirements, with its accuracy and a bound on its central epsilon to about 1e-4.

    `central`, the guarantee with all its digits and all that stands beside its epsilon, takes several times as long:
    it is worked out for the kind that is recommended.
    """

    family: RandomizerFamily
    randomizer: FrequencyRandomizer | NumericRandomizer
    accuracy: Accuracy
    epsilon: float
    requirements: Requirements

    @property
    def epsilon0(self) -> float:
        """Local epsilon of one report."""
        return self.randomizer.guarantee.epsilon

    @cached_property
    def central(self) -> CentralDP:
        """The central guarantee."""
        return central_guarantee(self.family, self.epsilon0, self.requirements, n=self.requirements.n)

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
    def of(cls, calibrated: CalibratedRandomizer) -> Alternative:
        """The row of a calibrated randomizer."""
        return cls(
            calibrated.family.name,
            calibrated.epsilon0,
            calibrated.epsilon,
            calibrated.accuracy.error95,
            calibrated.report_bits,
            calibrated.family.burden,
        )


def calibrate(family: RandomizerFamily, requirements: Requirements) -> CalibratedRandomizer | str:
    """This kind with the epsilon0 and settings that suit the requirements best, or why it cannot meet them."""
    best = _calibrate_member(family, requirements)
    for other in family.others:
        if isinstance(best, str) or _may_beat(other, best, requirements):
            found = _calibrate_member(other, requirements)
            if isinstance(best, str) or (
                not isinstance(found, str) and objective(found, requirements) < objective(best, requirements)
            ):
                best = found
    return best


def _may_beat(family: RandomizerFamily, best: CalibratedRandomizer, requirements: Requirements) -> bool:
    """Whether it is worth a search: for an epsilon, the least epsilon0 that is as accurate must keep it."""
    if requirements.error is not None or requirements.epsilon is None:
        return True
    epsilon0 = smallest_epsilon0(family, requirements, error=best.accuracy.error95, n=requirements.n)
    if epsilon0 is None:
        return False
    return log_excess(family, epsilon0, requirements, epsilon=requirements.epsilon, n=requirements.n) <= 0.0


def _calibrate_member(family: RandomizerFamily, requirements: Requirements) -> CalibratedRandomizer | str:
    try:
        if requirements.error is not None:
            epsilon0 = smallest_epsilon0(family, requirements, error=requirements.error, n=requirements.n)
            if epsilon0 is None:
                return f"no epsilon0 up to {family.largest_epsilon0:g} reaches this error"
            return evaluate_at_epsilon0(family, epsilon0, requirements)
        if requirements.epsilon is not None:
            return _at_epsilon(family, requirements, requirements.epsilon)
        assert requirements.epsilon0 is not None
        return evaluate_at_epsilon0(family, requirements.epsilon0, requirements)
    except ParameterError as error:
        return str(error)


def _at_epsilon(family: RandomizerFamily, requirements: Requirements, epsilon: float) -> CalibratedRandomizer:
    """This kind with the smallest error at that epsilon."""
    asked = epsilon
    while True:  # as a rule once: a bound that does not fall in epsilon everywhere may be missed by a search
        epsilon0 = best_epsilon0(family, requirements, epsilon=asked, n=requirements.n)
        found = evaluate_at_epsilon0(family, epsilon0, requirements)
        if found.epsilon <= epsilon:
            return found
        asked *= 0.999 * epsilon / found.epsilon


def evaluate_at_epsilon0(
    family: RandomizerFamily, epsilon0: float, requirements: Requirements
) -> CalibratedRandomizer:
    """This kind at a given epsilon0."""
    randomizer = family.make(epsilon0, requirements.n)
    return CalibratedRandomizer(
        family,
        randomizer,
        predict_accuracy(randomizer, n=requirements.n, shares=requirements.shares),
        guaranteed_epsilon(family, epsilon0, requirements, n=requirements.n, points=SEARCH_POINTS),
        requirements,
    )


def objective(calibrated: CalibratedRandomizer, requirements: Requirements) -> float:
    """What is minimized: epsilon where the error is given, otherwise the error."""
    return calibrated.epsilon if requirements.error is not None else calibrated.accuracy.error95


def recommend(candidates: Sequence[CalibratedRandomizer], requirements: Requirements) -> CalibratedRandomizer:
    """The shortest report among those whose objective is within a twentieth of the least."""
    least = min(objective(one, requirements) for one in candidates)
    near_best = [one for one in candidates if objective(one, requirements) <= NEAR_BEST * least]
    return min(near_best, key=lambda one: (one.report_bits, objective(one, requirements)))

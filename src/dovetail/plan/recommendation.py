"""The recommended kind: what a plan says first, before what takes longer to work out is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from dovetail.core.errors import ParameterError
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer
from dovetail.plan.calibrated_randomizer import NEAR_BEST, CalibratedRandomizer, calibrate, objective, recommend
from dovetail.plan.explain.infeasible import infeasible_accuracy, infeasible_combination
from dovetail.plan.families import RandomizerFamily, select_families
from dovetail.plan.people import Progress
from dovetail.plan.requirements import Requirements
from dovetail.plan.search import log_excess, predict_error95, smallest_epsilon0

Calibrated = Mapping[str, CalibratedRandomizer | str]

WHAT_IT_TAKES = "what it would take instead"  # the step before infeasible requirements are refused
WIDER = 1.001  # more than searches are rough by


@dataclass(frozen=True)
class Recommendation:
    """What to collect with: its epsilon0 and its error, and an upper bound on its central epsilon.

    Parameters
    ----------
    requirements : Requirements
    chosen : CalibratedRandomizer
    calibrated : mapping of str
        By name, the kinds that came near the best of those before, or why they cannot meet the requirements.
    least : int or None
        The least n, where the number of people was asked for.
    """

    requirements: Requirements
    chosen: CalibratedRandomizer
    calibrated: Calibrated = field(repr=False, compare=False)
    least: int | None = None

    @property
    def randomizer(self) -> FrequencyRandomizer | NumericRandomizer:
        """What every device runs."""
        return self.chosen.randomizer

    @property
    def epsilon0(self) -> float:
        """Local epsilon of one report."""
        return self.chosen.epsilon0

    @property
    def epsilon(self) -> float:
        """An upper bound on the central epsilon, as the plan's is, searched more coarsely: 1e-4 apart."""
        return self.chosen.epsilon

    @property
    def error95(self) -> float:
        """The plan's."""
        return self.chosen.accuracy.error95


def recommend_randomizer(requirements: Requirements, *, least: int | None, progress: Progress) -> Recommendation:
    """Calibrate every kind that the requirements admit, and choose; ParameterError where none meets them."""
    admitted, calibrated = select_families(requirements), dict[str, CalibratedRandomizer | str]()
    for done, family in enumerate(sorted(admitted, key=lambda one: _rank(one, requirements))):
        progress("calibrate every randomizer", done, len(admitted))
        if all(_may_be_chosen(family, one, requirements) for one in _meeting(calibrated)):
            calibrated[family.name] = calibrate(family, requirements)
    best = _best(admitted, calibrated, requirements, progress)
    return Recommendation(requirements, best, calibrated, least)


def _rank(family: RandomizerFamily, requirements: Requirements) -> float:
    """Lower is likelier to be best, as far as the error tells; whoever is tried later is mostly ruled out at once."""
    if requirements.error is None:
        return predict_error95(family, requirements.epsilon0 or 1.0, requirements, n=requirements.n)
    found = smallest_epsilon0(family, requirements, error=requirements.error, n=requirements.n)
    return inf if found is None else found


def _meeting(calibrated: Calibrated) -> list[CalibratedRandomizer]:
    return [one for one in calibrated.values() if not isinstance(one, str)]


def _may_be_chosen(family: RandomizerFamily, other: CalibratedRandomizer, requirements: Requirements) -> bool:
    """Whether a search may end within a twentieth of another kind, and ahead of it if its reports are longer.

    One or two evaluations instead of a dozen; longer reports that are no better are those of the same mechanism.
    """
    best = objective(other, requirements)
    limit = NEAR_BEST * WIDER * best
    if not 0.0 < limit < inf:
        return True
    near = [one for one in (family, *family.others) if _reaches(one, limit, requirements)]
    if requirements.error is not None and requirements.epsilon is not None:  # each that may meet both is asked
        return bool(near)
    return any(not _is_longer(one, other) or _reaches(one, best / WIDER, requirements) for one in near)


def _is_longer(family: RandomizerFamily, other: CalibratedRandomizer) -> bool:
    try:
        return family.make(other.epsilon0, other.requirements.n).report_bits > other.report_bits
    except ParameterError:
        return False


def _reaches(family: RandomizerFamily, limit: float, requirements: Requirements) -> bool:
    error, epsilon, n = requirements.error, requirements.epsilon, requirements.n
    if requirements.epsilon0 is not None:
        return predict_error95(family, requirements.epsilon0, requirements, n=n) <= limit
    error, epsilon = (limit, epsilon) if error is None else (error, limit)
    assert epsilon is not None
    try:
        epsilon0 = smallest_epsilon0(family, requirements, error=error, n=n)
        return epsilon0 is not None and log_excess(family, epsilon0, requirements, epsilon=epsilon, n=n) <= 0.0
    except ParameterError:  # `calibrate` says why
        return True


def _best(
    admitted: tuple[RandomizerFamily, ...], calibrated: Calibrated, requirements: Requirements, progress: Progress
) -> CalibratedRandomizer:
    kept = (calibrated.get(family.name, "") for family in admitted)
    feasible = [one for one in kept if not isinstance(one, str)]
    if not feasible:
        progress(WHAT_IT_TAKES, 0, 1)
        raise infeasible_accuracy(admitted, [str(calibrated[family.name]) for family in admitted], requirements)
    best = recommend(feasible, requirements)
    if requirements.error is None or requirements.epsilon is None or best.epsilon <= requirements.epsilon:
        return best
    best = min(feasible, key=lambda one: one.epsilon)
    if best.epsilon > requirements.epsilon:
        progress(WHAT_IT_TAKES, 0, 1)
        raise infeasible_combination(best, admitted, requirements)
    return best

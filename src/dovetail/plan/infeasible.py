"""Infeasible requirements: why no randomizer meets them, and how far each of them has to be relaxed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, exp, isfinite, log

from dovetail.core.checks import MOST_PEOPLE
from dovetail.core.errors import ParameterError
from dovetail.core.stages import RANDOMIZERS
from dovetail.plan.requirements import Requirements
from dovetail.plan.search import CalibratedRandomizer, RandomizerFamily, calibrate, predict_error95, smallest_n


class InfeasibleError(ParameterError):
    """Requirements that no randomizer meets, with the changes each of which is enough.

    Parameters
    ----------
    message : str
    ways : pairs of a requirement's name and the value that would do
    """

    def __init__(self, message: str, ways: Sequence[tuple[str, float]]) -> None:
        super().__init__(message)
        self.ways = tuple(ways)


def infeasible_accuracy(
    families: Sequence[RandomizerFamily], reasons: Sequence[str], requirements: Requirements
) -> ParameterError:
    """No randomizer meets the requirements at any epsilon0."""
    if requirements.error is None:
        return ParameterError(_list_reasons(families, reasons))
    floor, epsilon0 = min(
        (predict_error95(family, end, requirements, n=requirements.n), end)
        for family in families
        for end in (*family.breaks, family.largest_epsilon0)
    )
    if not isfinite(floor):
        reasons = [construction_failure(family, requirements) for family in families]
        return ParameterError(_list_reasons(families, reasons))
    n = _enough_people(families, requirements, floor=floor)
    more = "" if n is None else f", or collect {n:,} people"
    least = round_up_to_three_digits(floor)
    ways: list[tuple[str, float]] = [("error", float(least)), *([] if n is None else [("n", n)])]
    return InfeasibleError(
        f"`error` must be at least {least} with n = {requirements.n:,}, got {requirements.error:g}: even epsilon0 = "
        f"{epsilon0:.3g} leaves that much. Allow an error of {least}{more}.",
        ways,
    )


def _list_reasons(families: Sequence[RandomizerFamily], reasons: Sequence[str]) -> str:
    labels = [RANDOMIZERS[family.name].label for family in families]
    return "; ".join(f"{label} cannot do this: {why}" for label, why in zip(labels, reasons, strict=True))


def _enough_people(families: Sequence[RandomizerFamily], requirements: Requirements, *, floor: float) -> int | None:
    """An n at which the error is reached, where it falls with the root of n from `floor`; None where it does not."""
    assert requirements.error is not None
    log_n = log(requirements.n) + 2.0 * (log(max(floor, 1e-300)) - log(requirements.error))
    if log_n >= log(MOST_PEOPLE) or (n := ceil(1.001 * exp(log_n))) > MOST_PEOPLE:
        return None
    errors = (predict_error95(family, family.largest_epsilon0, requirements, n=n) for family in families)
    return n if any(error <= requirements.error for error in errors) else None


def construction_failure(family: RandomizerFamily, requirements: Requirements) -> str:
    """Reason why no randomizer of this kind can be built."""
    try:
        family.make(family.largest_epsilon0, requirements.n)
    except ParameterError as error:
        return str(error)
    return "no epsilon0 reaches this error"


def infeasible_combination(
    cheapest: CalibratedRandomizer, families: Sequence[RandomizerFamily], requirements: Requirements
) -> ParameterError:
    """The error needs more epsilon than its ceiling allows: three ways out, each of them enough."""
    assert requirements.error is not None and requirements.epsilon is not None
    ways: list[tuple[str, float, str]] = []
    relaxed = replace(requirements, error=None)
    errors = [
        one.accuracy.error95
        for one in (calibrate(family, relaxed) for family in families)
        if not isinstance(one, str)
    ]
    if errors and min(errors) < requirements.span:
        least = round_up_to_three_digits(min(errors))
        ways.append(("error", float(least), f"ask for an error of {least}"))
    allowed = round_up_to_three_digits(cheapest.epsilon)
    ways.append(("epsilon", float(allowed), f"allow epsilon {allowed}"))
    people = smallest_n(cheapest.family.name, requirements, error=requirements.error, epsilon=requirements.epsilon)
    if people is not None:
        ways.append(("n", people, f"collect {people:,} people"))
    *most, last = [words for _, _, words in ways]
    listed = f"{', '.join(most)}{' or ' if most else ''}{last}"
    honest = "" if requirements.honest == requirements.n else f" of whom {requirements.honest:,} are honest"
    return InfeasibleError(
        f"`error` = {requirements.error:g} and `epsilon` = {requirements.epsilon:g} (delta = {requirements.delta:g}) "
        f"cannot both hold with {requirements.n:,} people{honest}: {listed}.",
        [(name, value) for name, value, _ in ways],
    )


def round_up_to_three_digits(value: float) -> str:
    """Three significant digits, rounded up, so that anybody who asks for this gets it."""
    if not isfinite(value) or value <= 0.0:
        return f"{value:g}"
    rounded = f"{value:.3g}"
    return rounded if float(rounded) >= value else f"{value * 1.005:.3g}"

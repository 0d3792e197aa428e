"""Which other randomizer would estimate the same shares with the same local epsilon, and a smaller error."""

from __future__ import annotations

from dovetail.core.errors import ParameterError
from dovetail.core.stages import FrequencyRandomizer, Randomizer
from dovetail.plan.accuracy import predict_accuracy
from dovetail.plan.families import select_families
from dovetail.plan.requirements import Requirements
from dovetail.report.document import BetterRandomizer, Missing

WORTH_SAYING = 0.8  # of the error here
NOTHING_TO_GAIN = 0.5  # people; where a count is off by less, nobody needs another randomizer


def better_randomizer(randomizer: Randomizer, *, n: int, delta: float) -> BetterRandomizer | Missing:
    """The randomizer with the smallest error of one of many equally frequent shares, where it is clearly smaller.

    Public: it depends on the number of values and people and on epsilon, not on what anybody answered.
    """
    if not isinstance(randomizer, FrequencyRandomizer):
        return Missing("one kind of randomizer per mean is compared in `dovetail plan`")
    epsilon = randomizer.guarantee.epsilon
    here = predict_accuracy(randomizer, n=n, shares="flat").standard_error
    asked = Requirements(question="frequency", n=n, honest=n, delta=delta, k=randomizer.k, epsilon0=epsilon)
    errors = {}
    for family in select_families(asked):
        try:
            errors[family.name] = predict_accuracy(family.make(epsilon, n), n=n, shares="flat").standard_error
        except ParameterError:  # not at this epsilon
            continue
    best = min(errors, key=lambda name: errors[name], default=randomizer.name)
    if best == randomizer.name or errors[best] > WORTH_SAYING * here or here * n < NOTHING_TO_GAIN:
        return Missing("no other randomizer of this epsilon is clearly more accurate")
    return BetterRandomizer(best, errors[best], here)

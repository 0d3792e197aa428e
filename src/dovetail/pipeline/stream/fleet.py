"""A fleet: who reports what, with how much noise, in which order, and for how long."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dovetail.core.checks import not_negative_or_infinite, refuse
from dovetail.core.errors import DataError
from dovetail.core.estimate import Estimate
from dovetail.core.stages import NumericRandomizer, Reports, Shuffler
from dovetail.estimate.mean import estimate_mean


@dataclass(frozen=True)
class Fleet:
    """Who reports what, with how much noise, for how long.

    Parameters
    ----------
    roster : sequence of names, or of whole numbers, each once
        The public list of devices: their places in every round.
    randomizer : NumericRandomizer
        Runs on the device; the same for all of them.
    shuffler : fitted for the roster, such as `RASE.fit(groups)`
    cap : float, nats
        A device stops reporting before its epsilons add up to more than this. `math.inf` is no cap.
    estimate : function of (randomizer, reports)
        The fusion center's estimator of the mean.
    """

    roster: tuple[str, ...] | tuple[int, ...]
    randomizer: NumericRandomizer
    shuffler: Shuffler
    cap: float
    estimate: Callable[[Any, Reports], Estimate] = estimate_mean

    def __post_init__(self) -> None:
        given: Any = self.roster
        if isinstance(given, str | bytes) or not isinstance(given, Iterable):
            raise DataError(f"`roster` must be a sequence of names, got {type(given).__name__}.")
        roster: tuple[Any, ...] = tuple(each.item() if isinstance(each, np.generic) else each for each in given)
        kinds = {type(each) for each in roster}
        if kinds not in ({str}, {int}):
            got = ", ".join(sorted(kind.__name__ for kind in kinds)) or "nobody"
            raise DataError(f"`roster` must name devices by text, or all of them by whole numbers, got {got}.")
        if len(set(roster)) != len(roster):
            raise DataError(f"`roster` must name each device once; {len(roster) - len(set(roster)):,} are repeated.")
        if self.shuffler.n != len(roster):
            raise DataError(f"`shuffler` must be fitted for the {len(roster):,} devices, got {self.shuffler.n:,}.")
        cap, epsilon = not_negative_or_infinite("cap", self.cap), self.randomizer.guarantee.epsilon
        if cap < epsilon:
            raise refuse("cap", f"at least the {epsilon:g} nats of one report", self.cap)
        object.__setattr__(self, "roster", roster)
        object.__setattr__(self, "cap", cap)

    @cached_property
    def places(self) -> dict[Any, int]:
        """The place of each device on the roster."""
        return {device: place for place, device in enumerate(self.roster)}

    @property
    def most_reports(self) -> float:
        """Reports that one device may send: cap / epsilon, rounded down exactly."""
        if math.isinf(self.cap):
            return math.inf
        return Fraction(self.cap) // Fraction(self.randomizer.guarantee.epsilon)

"""What every closed form has in common: the question, the regime and the verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dovetail.account.bound import Bound
from dovetail.core.checks import MOST_PEOPLE, privacy_budget, probability, whole

ROUNDING = 1.0 + 2.0**-44  # values are moved up by this factor: far above what a short formula loses


@dataclass(frozen=True)
class ShuffleParameters:
    """n honest reports, each epsilon0-private; wanted is epsilon at delta.

    Parameters
    ----------
    epsilon0 : float, above 0, at most 700, nats
    n : int, 1 .. 1e12
    delta : float, strictly between 0 and 1
        At 0 shuffling amplifies nothing and no formula has anything to say.
    """

    epsilon0: float
    n: int
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon0", privacy_budget("epsilon0", self.epsilon0))
        object.__setattr__(self, "n", whole("n", self.n, least=1, most=MOST_PEOPLE))
        object.__setattr__(self, "delta", probability("delta", self.delta))

    def log_over_delta(self, numerator: float) -> float:
        """log(numerator / delta), also where the quotient overflows."""
        return math.log(numerator) - math.log(self.delta)

    def bound(self, name: str, epsilon: float, *, source: str) -> Bound:
        """The bound, or nothing where it is not below the local epsilon."""
        value = epsilon * ROUNDING
        if value < self.epsilon0:
            return Bound(name, value, source)
        return Bound.inapplicable(name, f"not informative: {value:.4g} is not below epsilon0", source=source)

    def out_of_regime(self, name: str, limit: float, formula: str, *, source: str) -> Bound | None:
        """Nothing, with the reason, where epsilon0 is above the limit of the theorem."""
        if self.epsilon0 <= limit:
            return None
        return Bound.inapplicable(
            name, f"needs epsilon0 <= {formula} = {limit:.4g}, got {self.epsilon0:g}", source=source
        )

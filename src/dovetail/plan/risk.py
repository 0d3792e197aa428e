"""What an attacker can guess, for the randomizers whose leakage is known exactly."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.core.errors import UnsupportedError
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer
from dovetail.leak.vulnerability import Vulnerability, vulnerability


@dataclass(frozen=True)
class Risk:
    """Exact Bayes vulnerability, or why there is none.

    Parameters
    ----------
    exact : Vulnerability or None
    reason : str
        Why `exact` is None.
    """

    exact: Vulnerability | None
    reason: str = ""

    @property
    def vulnerability(self) -> float | None:
        """Chance of naming one person's value in one try, from the shuffled reports."""
        return None if self.exact is None else self.exact.randomized_shuffled

    @property
    def gain(self) -> float | None:
        """Multiplicative leakage: the factor by which that exceeds a guess without any data."""
        return None if self.exact is None else self.exact.randomized_shuffled / self.exact.prior


def assess_risk(randomizer: FrequencyRandomizer | NumericRandomizer, *, n: int) -> Risk:
    """The vulnerability of one person among n, uniform prior, an adversary who knows nothing else."""
    if isinstance(randomizer, NumericRandomizer):
        return Risk(None, "guessing a number on a fine grid in one try has no exact vulnerability here")
    try:
        return Risk(vulnerability(randomizer, n=n))
    except UnsupportedError as error:
        return Risk(None, str(error))

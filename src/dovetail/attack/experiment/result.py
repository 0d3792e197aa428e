"""The result of an attack: its success beside the chance level, with an interval."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

Shares = NDArray[np.float64]  # (m,)

LEVEL = 0.95
VULNERABLE_AT = 0.9


@dataclass(frozen=True, eq=False)
class AttackResult:
    """Success of an attack, beside what it would reach without the reports.

    Parameters
    ----------
    name : str
        The attack.
    success : float
        Mean success over releases and targets.
    chance : float
        What it would reach without looking at the reports.
    interval : (float, float)
        At `level`, for `success` over repeated releases of this population.
    by_person : float array (targets,)
        Success against each target.
    vulnerable : float
        Share of targets against whom it succeeds in at least `vulnerable_at` of the randomizations of one shuffle,
        mean over shuffles (rho in the paper).
    shuffles, randomizations : int
        Orders drawn, and randomizations released in each of them.
    """

    name: str
    success: float
    chance: float
    interval: tuple[float, float]
    by_person: Shares = field(repr=False)
    vulnerable: float
    shuffles: int
    randomizations: int
    level: float = LEVEL
    vulnerable_at: float = VULNERABLE_AT

    @classmethod
    def of(cls, name: str, rates: NDArray[np.float64], *, chance: float, randomizations: int) -> AttackResult:
        """From the shares of right guesses (shuffles, targets): Student's interval over shuffles."""
        shares = rates.mean(axis=1)
        return cls(
            name,
            success=float(shares.mean()),
            chance=chance,
            interval=_over_shuffles(shares),
            by_person=rates.mean(axis=0),
            vulnerable=float((rates >= VULNERABLE_AT).mean()),
            shuffles=len(rates),
            randomizations=randomizations,
        )

    def summary(self) -> dict[str, Any]:
        """The numbers without those of single people."""
        numbers = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "by_person"}
        return numbers | {"interval": list(self.interval), "targets": len(self.by_person)}


def _over_shuffles(shares: Shares) -> tuple[float, float]:
    """Student's interval for the mean, cut to [0, 1]; all of it for a single share."""
    if len(shares) == 1:
        return 0.0, 1.0
    reach = float(stdtrit(len(shares) - 1, 0.5 + LEVEL / 2)) * float(shares.std(ddof=1)) / len(shares) ** 0.5
    return (max(0.0, float(shares.mean()) - reach), min(1.0, float(shares.mean()) + reach))

"""The result of an attack: its success beside the chance level, with an interval."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

Shares = NDArray[np.float64]  # (m,)

LEVEL = 0.95
VULNERABLE_AT = 0.9
_ROUNDING = 1e-12  # of a mean over many releases
ATTACK, BLIND_GUESS = "attack", "blind guess"


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
    remark : str
        What the attack says of itself, such as how well it knows the order.

    Raises
    ------
    UnsupportedError
        Nowhere by itself: `run_attack` and `attack_released` refuse what cannot be mounted.

    Examples
    --------
    >>> result = AttackResult.of("guess", np.array([[1.0, 0.5], [0.9, 0.4]]), chance=0.5, randomizations=10)
    >>> result.success, result.chance, result.vulnerable
    (0.7, 0.5, 0.5)
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
    remark: str = ""

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

    @property
    def mounted(self) -> str:
        """What an attacker who knows how well this does would mount: the attack, or a guess that needs no reports."""
        return ATTACK if self.success >= self.chance - _ROUNDING else BLIND_GUESS

    @property
    def better(self) -> AttackResult:
        """The better of this attack and the blind guess: nobody does worse than who ignores the reports.

        Examples
        --------
        >>> found = AttackResult.of("vote", np.array([[0.0, 1.0], [0.0, 0.0]]), chance=0.75, randomizations=1)
        >>> found.success, found.better.success, found.better.interval
        (0.25, 0.75, (0.75, 1.0))
        """
        low, high = (max(self.chance, end) for end in self.interval)
        return replace(self, success=max(self.success, self.chance), interval=(low, high))

    def summary(self) -> dict[str, Any]:
        """The numbers of the better of the attack and the blind guess, without those of single people."""
        best = self.better
        numbers = {name: getattr(best, name) for name in self.__dataclass_fields__ if name != "by_person"}
        more = {"targets": len(self.by_person), "mounted": self.mounted, "alone": self.success}
        return numbers | {"interval": list(best.interval)} | more


def _over_shuffles(shares: Shares) -> tuple[float, float]:
    """Student's interval for the mean, cut to [0, 1]; all of it for a single share."""
    if len(shares) == 1:
        return 0.0, 1.0
    reach = float(stdtrit(len(shares) - 1, 0.5 + LEVEL / 2)) * float(shares.std(ddof=1)) / len(shares) ** 0.5
    return (max(0.0, float(shares.mean()) - reach), min(1.0, float(shares.mean()) + reach))

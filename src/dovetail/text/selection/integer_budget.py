r"""Epsilon as whole numbers: selection weights are exact powers of a fraction, so no floating-point number decides.

The weight of a candidate is :math:`(b/(b+1))^{n}` with a whole number n, its level below the best. Changing one
sentence moves levels apart by at most q, the largest even number with :math:`((b+1)/b)^q \le e^\epsilon`.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import privacy_budget
from dovetail.core.errors import ParameterError

Levels = NDArray[np.int64]  # (m,), at least 0, and 0 for the best
Utilities = NDArray[np.int64]  # (m,), whole numbers, larger is better

_BASES = [1 << power for power in range(4, 21)]
_FINE = 128  # steps of epsilon that make rounding cost less than a fiftieth
_FAR = 256  # levels beyond 256 b weigh less than 2^-369 and are cut there


@dataclass(frozen=True)
class IntegerBudget:
    r"""The grid on which a selection spends epsilon.

    .. math:: q = \max \{ 2j : ((b+1)/b)^{2j} \le e^\epsilon \}, \qquad
              r_i = \lfloor U_i (q-2)/C \rfloor, \qquad n_i = \min(\max r - r_i,\ 256 b)

    Parameters
    ----------
    epsilon : float in (0, 700], nats
    base : int
        b, a power of two; the smallest that leaves at least 128 steps.
    steps : int
        q, even.

    Notes
    -----
    If replacing a sentence changes the utilities U by amounts that differ by at most C, the r change by amounts that
    differ by at most q (rounding adds less than two to q - 2, and q is whole), hence weights by at most
    :math:`((b+1)/b)^q \le e^\epsilon`. Adding or removing a sentence changes U by at most C/2, r by at most q/2.
    Cutting far levels is a maximum with a level that moves with the best one, so it moves nothing further apart.
    """

    epsilon: float
    base: int
    steps: int

    def __post_init__(self) -> None:
        most = _steps(privacy_budget("epsilon", self.epsilon), self.base)
        if self.steps % 2 or not 2 <= self.steps <= most:
            raise ParameterError(f"`steps` must be even and from 2 to {most}, got {self.steps!r}.")

    @classmethod
    def of(cls, epsilon: float) -> IntegerBudget:
        """The budget for this epsilon.

        >>> IntegerBudget.of(10.0)
        IntegerBudget(epsilon=10.0, base=16, steps=164)
        """
        epsilon = privacy_budget("epsilon", epsilon)
        for base in _BASES:
            steps = _steps(epsilon, base)
            if steps >= _FINE:
                return cls(epsilon, base, steps)
        if steps < 2:
            raise ParameterError(f"`epsilon` must be at least 2e-6, got {epsilon!r}.")
        return cls(epsilon, base, steps)

    @property
    def spent(self) -> float:
        """What the weights really cost, rounded up; at most epsilon."""
        with localcontext() as context:
            context.prec, context.rounding = 50, ROUND_CEILING
            return min(self.epsilon, float(np.nextafter(float(self.steps * _step(self.base)), np.inf)))

    def levels(self, utilities: Utilities, spread: int) -> Levels:
        """How far each candidate lies below the best, in steps.

        Parameters
        ----------
        utilities : int array (m,)
        spread : int, at least 1
            C: replacing one sentence changes utilities by amounts that differ by at most this.
        """
        steps = self.steps - 2
        if int(np.abs(utilities).max(initial=0)) < (1 << 62) // self.steps:
            ranks = utilities * steps // spread
        else:  # beyond 64 bits
            ranks = np.array([int(one) * steps // spread for one in utilities], dtype=object)
        far = np.minimum(ranks.max() - ranks, _FAR * self.base)
        return np.asarray(far, dtype=np.int64)


def _step(base: int) -> Decimal:
    """log((base + 1)/base), rounded up: `ln` is correctly rounded, and one unit is added."""
    exact = (Decimal(base + 1) / Decimal(base)).ln()  # the quotient is finite: base is a power of two
    return exact.next_plus()


def _steps(epsilon: float, base: int) -> int:
    with localcontext() as context:
        context.prec, context.rounding = 50, ROUND_FLOOR
        return int(Decimal(epsilon) / _step(base)) // 2 * 2

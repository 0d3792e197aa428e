r"""Pure protocols: a report supports its owner's value with probability p and each other value with probability q.

.. math:: \hat f_x = \frac{c_x / n - q}{p - q}, \qquad
          n \operatorname{Var} \hat f_x = \frac{f_x\, p (1 - p) + (1 - f_x)\, q (1 - q)}{(p - q)^2}

c_x counts the reports that support x; the f_x are the shares of exactly these people.

Source: Wang, Blocki, Li, Jha (2017), Locally Differentially Private Protocols for Frequency Estimation, USENIX
Security, the framework of pure protocols.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Pure:
    """The two support probabilities, as exact fractions.

    Parameters
    ----------
    p, q : Fraction, p > q
    """

    p: Fraction
    q: Fraction

    def invert(self, counts: NDArray[Any], n: Any) -> NDArray[np.float64]:
        """Unbiased shares (.., k) from support counts (.., k) of n (..) reports."""
        seen = np.asarray(counts, dtype=np.float64) / np.asarray(n)[..., None]
        return np.asarray((seen - float(self.q)) / float(self.p - self.q))

    def variance(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """n Var (.., k) for people whose shares are exactly `shares` (.., k)."""
        f = np.asarray(shares, dtype=np.float64)
        spread = f * float(self.p * (1 - self.p)) + (1 - f) * float(self.q * (1 - self.q))
        return np.asarray(spread / float(self.p - self.q) ** 2)

"""Binary randomized response: the exact maximum over everybody else's values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from dovetail.account.attack_lower_bound import ERROR, BinaryAttack, MixedAttack, mixed_laws
from dovetail.account.blanket.privacy_blanket import SEARCH
from dovetail.account.threshold_search import bracket_root, largest_exceeding, log_ratio
from dovetail.core.bracket import Bracket
from dovetail.core.checks import privacy_budget, real, refuse, share, whole

MOST_EXACT = 1000  # people up to whom every mixture of values is evaluated
FAR = 2 * MOST_EXACT  # from here on stronger clones are below what so many people have (measured)


@dataclass(frozen=True)
class BinaryExact:
    r"""The shuffled collection of binary randomized response, with the worst values of the others.

    .. math:: \delta(\epsilon) = \max_{n_1, k} \; (r - e^{\epsilon} s) \Pr[T = k - 1]
              - (e^{\epsilon} - 1) \Pr[T \ge k], \qquad
              T \sim \mathrm{Bin}(n - 1 - n_1, s) + \mathrm{Bin}(n_1, r)

    with s = 1/(p + 1), r = p s. The likelihood ratio grows with the number of ones, so thresholds k are all there is;
    exchanging the two symbols turns one direction into the other. That everybody else holds the same value is *not*
    always worst.

    Parameters
    ----------
    epsilon0 : float, above 0 and at most 700, nats
    n : int, 1 .. 1000
        n^2 numbers are held. Above, `BinaryAttack` from below; from above stronger clones, and up to `FAR` people
        this law at 1000, since delta falls in n: one person's report can be revealed.

    Examples
    --------
    >>> bool(BinaryExact(math.log(3.0), 5).delta(math.log(1.25)).contains(81 / 512))
    True

    Source
    ------
    docs/theory/mechanism-laws.md.
    """

    epsilon0: float
    n: int

    def __post_init__(self) -> None:
        privacy_budget("epsilon0", self.epsilon0)
        object.__setattr__(self, "n", whole("n", self.n, least=1, most=MOST_EXACT))

    @cached_property
    def _mixtures(self) -> MixedAttack:
        return MixedAttack(self.epsilon0, mixed_laws(self.epsilon0, self.n))

    def delta(self, epsilon: float) -> Bracket:
        """Ends of delta(epsilon), epsilon >= 0: they differ by rounding."""
        if not real("epsilon", epsilon) >= 0.0:
            raise refuse("epsilon", "at least 0", epsilon)
        if epsilon >= self.epsilon0:
            return Bracket(0.0, 0.0)
        high = self._mixtures.delta(epsilon, error=ERROR)
        return Bracket(self._mixtures.delta(epsilon), min(1.0, high + 1e-300))

    def epsilon(self, delta: float) -> Bracket:
        """Ends of the smallest epsilon with delta(epsilon) <= delta, for 0 <= delta < 1."""
        share("delta", delta)
        if delta == 0.0:
            return Bracket(self.epsilon0, self.epsilon0)
        if self.delta(0.0).upper <= delta:
            return Bracket(0.0, 0.0)
        spread = 2.0 * math.log(1.0 / delta) + 1.0
        _, high = bracket_root(
            lambda e: log_ratio(self.delta(e).upper, delta),
            binary_guess(self.epsilon0, self.n, delta),
            steepness=spread,
            most=self.epsilon0,
            tolerance=SEARCH,
        )
        low = largest_exceeding(lambda e: self.delta(e).lower, delta, most=self.epsilon0, guess=high)
        return Bracket(min(low, high), high)


def binary_reached(epsilon0: float, n: int, delta: float) -> float:
    """An epsilon that a collection reaches: exact up to `MOST_EXACT` people, everybody else on one value above."""
    if n <= MOST_EXACT:
        return BinaryExact(epsilon0, n).epsilon(delta).lower
    guess = binary_guess(epsilon0, n, max(share("delta", delta), 1e-300))
    return largest_exceeding(BinaryAttack(epsilon0, n).delta, delta, most=epsilon0, guess=guess)


def binary_guess(epsilon0: float, n: int, delta: float) -> float:
    """Where a normal approximation puts epsilon(delta)."""
    scale = 2.0 * math.tanh(0.5 * epsilon0) / math.sqrt(max(1.0, n * math.exp(-epsilon0)))
    return scale * math.sqrt(2.0 * math.log(1.0 / delta) + 1e-3)

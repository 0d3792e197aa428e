"""Several shuffled rounds of people with different epsilons, as a person of one class is exposed in all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dovetail.account.clones.approximate import smallest_epsilon
from dovetail.account.composition.mechanism_curve import COARSE, envelope_pld, evaluate_delta
from dovetail.account.composition.pld_convolution import ComposedPLD, convolve_near
from dovetail.account.mechanisms.mixture.krr_mixture import SOURCE, UP, MixtureLaw
from dovetail.core.checks import refuse, share, whole

POINTS, MOST_POINTS, LONGEST_SUM = 200, 10**5, 2**22  # of the grid: in a typical loss, the widest one, their sum
BASIC = "basic composition"
LOSSES = "privacy loss of the mixtures"
LOCAL = "local budgets add"


@dataclass(frozen=True)
class MixtureRounds:
    """So many rounds, each with at least the others of this law.

    Parameters
    ----------
    law : MixtureLaw
        Of the weakest: the others of every round are at least as many of each class.
    rounds : int, at least 1
    """

    law: MixtureLaw
    rounds: int

    def __post_init__(self) -> None:
        whole("rounds", self.rounds, least=1, most=10**9)

    def epsilon(self, delta: float) -> tuple[float, str, str]:
        r"""The least of three bounds, its name, and its source.

        .. math:: T \epsilon_0, \qquad T \epsilon(\delta / T), \qquad
                  \epsilon : E\left[(1 - e^{\epsilon - L_1 - \dots - L_T})_+\right] \le \delta

        L_t has the convex envelope of the certified delta of one round as its hockey stick, so that it dominates.

        Source: Dwork et al. (2006), Theorem 1; Zhu, Dong, Wang (2022), Theorem 10.
        """
        if not share("delta", delta) > 0.0:
            raise refuse("delta", "above 0: at delta 0 shuffling amplifies nothing", delta)
        rounds, own = self.rounds, self.law.own.epsilon
        found = [
            (rounds * own * UP, LOCAL, "Dwork et al. (2006), Theorem 1"),
            (rounds * self.law.epsilon(delta / rounds) * UP, BASIC, f"Dwork et al. (2006), Theorem 1; of [{SOURCE}]"),
        ]
        if rounds > 1:
            composed = self._composed(delta)
            if composed is not None:
                source = f"Zhu, Dong, Wang (2022), Theorem 10 (dominating pairs compose); of [{SOURCE}]"
                found.append((composed, LOSSES, source))
        return min(found)

    def _composed(self, delta: float) -> float | None:
        rounds, most = self.rounds, self.rounds * self.law.own.epsilon
        scale = self._typical
        widest = min(self.law.own.epsilon, 20.0 * scale)
        step = max(scale / POINTS, 16.0 * scale * math.sqrt(rounds) / LONGEST_SUM, widest / MOST_POINTS)
        stride = max(1, math.floor(min(scale, 0.5 * self.law.own.epsilon) / COARSE / step))
        cut = 1e-3 * delta / rounds
        places, values = evaluate_delta(self.law.delta, self.law.own.epsilon, stride * step, cut)
        pld = envelope_pld(np.rint(places / step).astype(np.int64), values, step=step)

        def smallest(total: ComposedPLD) -> float | None:
            found = smallest_epsilon(
                lambda e: total.upper(e) if e < most else 0.0,
                delta, slack=0.0, most=most, guess=max(total.middle, total.step),
            )  # fmt: skip
            return None if found is None else found[1]

        first = smallest(convolve_near([(pld, rounds)], delta=delta))
        if first is None:
            return None
        near = convolve_near([(pld, rounds)], delta=delta, epsilon=max(first, step))  # the tilt for the epsilon found
        return min(first, smallest(near) or first)

    @property
    def _typical(self) -> float:
        """About the standard deviation of the loss of one round: a guess, never a bound."""
        law = self.law
        return min(law.uniform * (law.ratio - 1.0) * math.sqrt(2.0 / (law.own.k * (law.mean + 1.0))), law.own.epsilon)

"""The victim hidden among everybody: an upper bound on delta for every collection of the others' values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dovetail.account.clones.stronger_clones import normal_threshold
from dovetail.account.everybody.exposure import Exposure
from dovetail.account.everybody.fourier_bound import FourierBound
from dovetail.account.everybody.laguerre_nodes import HidingNodes, hiding_nodes
from dovetail.account.everybody.tilt import best_tilt
from dovetail.account.threshold_search import bracket_root, log_ratio
from dovetail.core.checks import real, share, whole
from dovetail.core.errors import UnsupportedError

FEWEST = 30.0  # draws of mu that are expected among the others: below, the bound gives nothing
SEARCH = 1e-6  # relative width to which a threshold is searched
LOST = 1e-6  # share of delta that may be given up

SOURCE = "Hidden among everybody: Theorems A and B of docs/theory/hidden-among-everybody.md"
NAME = "hidden among everybody"


@dataclass(frozen=True, eq=False)
class EverybodyLaw:
    r"""What n shuffled reports of one mechanism reveal at most, whatever the others' values.

    .. math:: \delta(\epsilon) \le \rho + \sum_l \omega_l s_l F(s_l)

    Unlike the privacy blanket, nobody reveals whether her report was a draw of mu; what is lost is a share of about
    1/(g n) of delta, and what the tilt loses: 1 % of delta where epsilon is a normal shift or more away from 0.

    Parameters
    ----------
    exposures : several Exposure
        Of every ordered pair of values, with a type for every value of the others; alike ones once.
    n : int, 1 .. 1e12
        Honest reports in the batch.
    epsilon0 : float, nats
        Local promise: delta is 0 from there on.
    scale : float
        The delta that is asked about: what is given up stays a small share of it.

    Raises
    ------
    UnsupportedError
        For so few people that nothing is gained.
    """

    exposures: Sequence[Exposure]
    n: int
    epsilon0: float
    scale: float

    def __post_init__(self) -> None:
        people = whole("n", self.n, least=1)
        draws = min(exposure.g for exposure in self.exposures) * (people - 1.0)
        if draws < FEWEST:
            raise UnsupportedError(
                f"{SOURCE}: needs {FEWEST:g} reports that say nothing about their senders, expected are {draws:.3g}; "
                "the bounds for fewer people hold."
            )
        object.__setattr__(
            self, "exposures", sorted(self.exposures, key=lambda exposure: -float(exposure.spreads.max()))
        )

    def upper(self, epsilon: float, *, enough: float = 0.0) -> float:
        """At least delta(epsilon), for epsilon at least 0; a pair below `enough` is told no closer than that."""
        if real("epsilon", epsilon) >= self.epsilon0:
            return 0.0
        worst = 0.0
        tilt = best_tilt(self.exposures[0], self.n, epsilon)
        for exposure in self.exposures:
            worst = max(worst, self._one(exposure, epsilon, enough=max(worst, enough) if worst else 0.0, tilt=tilt))
        return min(1.0, worst)

    def reaches(self, epsilon: float, delta: float) -> bool:
        """Whether `delta` is kept at this epsilon for every pair of values, the most exposed asked first."""
        if real("epsilon", epsilon) >= self.epsilon0:
            return True
        tilt = best_tilt(self.exposures[0], self.n, epsilon)
        return all(self._one(exposure, epsilon, enough=delta, tilt=tilt) <= delta for exposure in self.exposures)

    def epsilon_upper(self, delta: float, *, most: float = math.inf, tolerance: float = SEARCH) -> float:
        """A point at which delta(upper) <= `delta` was evaluated for every pair of values, at most epsilon0.

        A pair is solved only when it exceeds `delta` at the answer of those before. A point `most` that is one
        already only saves time, and so does a wider `tolerance`, at the price of an answer larger by that share.
        """
        if share("delta", delta) == 0.0:
            return self.epsilon0
        if math.isfinite(most) and not self.reaches(min(most, self.epsilon0) * (1.0 - tolerance), delta):
            return min(most, self.epsilon0)  # where a search would end, a dozen evaluations later
        found, tilt = 0.0, None
        for exposure in self.exposures:
            if found == 0.0 or self._one(exposure, found, enough=delta, tilt=tilt) > delta:
                solved = self._solved(
                    exposure, delta, guess=found, most=min(most, self.epsilon0), tolerance=tolerance
                )
                found = max(found, solved)
                tilt = best_tilt(exposure, self.n, found)
        return found

    def _solved(self, exposure: Exposure, delta: float, *, guess: float, most: float, tolerance: float) -> float:
        scale = max(math.sqrt(float(exposure.spreads.max()) / self.n), 1e-300)
        t, steepness = normal_threshold(delta / scale)
        return bracket_root(
            lambda e: log_ratio(self._one(exposure, e), delta),
            guess or scale * t,
            steepness=steepness,
            most=most,
            tolerance=tolerance,
        )[1]

    def _one(self, exposure: Exposure, epsilon: float, *, enough: float = 0.0, tilt: float | None = None) -> float:
        nodes = self._nodes(exposure.g)
        bound = FourierBound(exposure, self.n, epsilon, nodes)
        found = bound.value(enough=max(0.0, enough - nodes.rho), tilt=tilt)
        return found + nodes.rho

    def _nodes(self, g: float) -> HidingNodes:
        return hiding_nodes(self.n, g, most=LOST * self.scale)

"""The plan where the shuffler is trusted with the noise: dummies instead of local randomization."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

from dovetail.account.closed_form.dummies import dummies_guarantee
from dovetail.core.checks import positive, privacy_budget, refuse, share, whole
from dovetail.core.errors import ParameterError
from dovetail.core.guarantee import CentralDP
from dovetail.core.numeric.noise_reach import noise_reach
from dovetail.core.verdict import judge_central
from dovetail.plan.accuracy import Accuracy
from dovetail.plan.explain.infeasible import round_up_to_three_digits
from dovetail.plan.people import default_delta
from dovetail.shuffle.dummies.dummies import Dummies
from dovetail.shuffle.dummies.user_dummies import UserDummies
from dovetail_protocol.symbols import size
from dovetail_protocol.wire.message import planned_bytes

LARGEST_EPSILON = 20.0  # beyond it counts are all but exact


class TrustingPlan:
    """What every plan says that trusts somebody with dummies."""

    n: int
    dummies: Dummies | UserDummies
    central: CentralDP
    accuracy: Accuracy
    span: tuple[float, float] | None

    @property
    def message_bytes(self) -> int:
        """Of one message on its way to the shuffler, whatever it says."""
        return planned_bytes(size(self.dummies.k))

    @property
    def grid(self) -> float | None:
        """Width of a step, for the mean of a number."""
        return None if self.span is None else (self.span[1] - self.span[0]) / (self.dummies.k - 1)

    @property
    def measured(self) -> dict[str, Any]:
        """What a JSON document says of a number's grid."""
        return {} if self.span is None else {"lower": self.span[0], "upper": self.span[1], "grid": self.grid}

    @property
    def trust_statement(self) -> tuple[str, ...]:
        """Who has to be trusted with what."""
        return self.central.lines()


@dataclass(frozen=True)
class DummiesPlan(TrustingPlan):
    """What the shuffler adds, what that promises against whom, and how accurate every share is.

    Parameters
    ----------
    n : int
    dummies : Dummies
    central : CentralDP
        With `trust` "shuffler".
    accuracy : Accuracy
        Of one share, the same for frequent and rare values; or of the mean.
    span : lower and upper, optional
        Of a number, whose mean is planned; symbols are then the points of an even grid.
    """

    n: int
    dummies: Dummies
    central: CentralDP
    accuracy: Accuracy
    span: tuple[float, float] | None = None

    @property
    def asked(self) -> float:
        """The epsilon that a configuration asks for."""
        return self.dummies.epsilon

    @property
    def messages(self) -> int:
        """Reports in the batch on average: one of each person, and the dummies."""
        return self.n + self.dummies.k * self.dummies.reach

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "trust": self.central.trust,
            "trust_statement": list(self.trust_statement),
            "verdict": judge_central(self.central).document(),
            "n": self.n,
            "k": self.dummies.k,
            "epsilon0": self.central.colluding,
            "epsilon": self.central.epsilon,
            "delta": self.central.delta,
            "standard_error": self.accuracy.standard_error,
            "error95": self.accuracy.error95,
            "population_error95": self.accuracy.population_error95,
            "count_standard_deviation": sqrt(self.dummies.variance),
            "largest_count_error": self.dummies.reach,
            "dummies_per_value": self.dummies.reach,
            "dummies": self.dummies.k * self.dummies.reach,
            "messages": self.messages,
            "message_bytes": self.message_bytes,
            "report_bits": max(1, (self.dummies.k - 1).bit_length()),
            **self.measured,
        }


def plan_with_dummies(
    *, n: int, k: int, delta: float | None = None, epsilon: float | None = None, error: float | None = None
) -> DummiesPlan:
    r"""Plan shares of k values with dummies, for a wanted epsilon or a wanted error.

    .. math:: \mathrm{se} = \frac{\sqrt{\mathrm{Var}\, Z}}{n}, \qquad
              \mathrm{error}_{95} = \frac1n \min\{a : \Pr[|Z - s| \le a] \ge 0.95\}

    Parameters
    ----------
    epsilon : float, above 0, nats
        Against the analyst, if the shuffler adds the dummies.
    error : float, above 0, below 1
        What one share may be off with probability 95 %; then the least epsilon is sought. With `epsilon` as well that
        is its ceiling.

    Raises
    ------
    ParameterError
        For parameters outside their ranges, and for an error that no epsilon up to 20 reaches.

    Examples
    --------
    >>> plan = plan_with_dummies(n=100_000, k=1000, epsilon=1.0, delta=1e-6)
    >>> round(plan.accuracy.standard_error * plan.n, 2), plan.dummies.reach
    (2.8, 27)
    """
    people, symbols = whole("n", n, least=1, most=10**12), whole("k", k, least=2, most=1 << 24)
    slack = default_delta(people) if delta is None else share("delta", delta)
    if error is None:
        if epsilon is None:
            raise ParameterError("give `epsilon` or `error`: what the batch may tell, or what a share may be off.")
        return _planned(people, Dummies(symbols, privacy_budget("epsilon", epsilon, most=LARGEST_EPSILON), slack))
    wanted = positive("error", error)
    most = LARGEST_EPSILON if epsilon is None else privacy_budget("epsilon", epsilon, most=LARGEST_EPSILON)
    best = Dummies(symbols, most, slack)
    if _error95(best, people) > wanted:
        least = round_up_to_three_digits(_error95(best, people))
        raise refuse("error", f"at least {least} with epsilon {most:g} and these people", wanted)
    low, high = 0.0, most
    while high - low > 1e-4 * high:
        middle = 0.5 * (low + high)
        try:
            tried = Dummies(symbols, middle, slack)
        except ParameterError:  # more dummies than a symbol can have
            low = middle
            continue
        enough = _error95(tried, people) <= wanted
        low, high, best = (low, middle, tried) if enough else (middle, high, best)
    return _planned(people, best)


def _error95(dummies: Dummies, n: int) -> float:
    return _reach95(dummies, n, sampled=0.0)


def _reach95(dummies: Dummies, n: int, *, sampled: float) -> float:
    """What a share is off with probability 95 %, with a normal error of so much variance besides."""
    return float(noise_reach(*dummies.noise.error_law(1.0 / n), sqrt(sampled), 0.95))


def _planned(n: int, dummies: Dummies) -> DummiesPlan:
    error = sqrt(dummies.variance) / n
    accuracy = Accuracy(error, _error95(dummies, n), _reach95(dummies, n, sampled=0.25 / n))
    return DummiesPlan(n, dummies, dummies_guarantee(dummies, n=n), accuracy)

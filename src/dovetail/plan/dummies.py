"""The plan where the shuffler is trusted with the noise: dummies instead of local randomization."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, Literal

from dovetail.account.bound import bracket_root, log_ratio
from dovetail.account.dummies import (
    MOST_EPSILON,
    MOST_PEOPLE,
    UserDummiesLaw,
    dummies_guarantee,
    user_dummies_for,
    user_dummies_guarantee,
)
from dovetail.core.checks import positive, privacy_budget, refuse, share, whole
from dovetail.core.errors import ParameterError
from dovetail.core.guarantee import CentralDP
from dovetail.core.noise_reach import noise_reach
from dovetail.core.verdict import judge_central
from dovetail.estimate.accuracy import Z95, Accuracy
from dovetail.estimate.dummies import mean_grid
from dovetail.plan.families import default_delta, honest_people
from dovetail.plan.infeasible import round_up_to_three_digits
from dovetail.randomize.sampling.open_reports import MOST_POINTS
from dovetail.shuffle.sampling.dummies import Dummies, UserDummies
from dovetail_protocol.checks import number_range
from dovetail_protocol.dummies import CAP
from dovetail_protocol.messages import planned_bytes
from dovetail_protocol.symbols import size

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


# The plan where people make the noise together: each sends her answer, and by chance a dummy.


NEEDS = {
    "shuffler": ("question", "n", "k", "delta", "error", "epsilon", "trust"),
    "users": ("question", "n", "k", "delta", "error", "epsilon", "trust", "honest"),
}


def needs(trust: str, question: str) -> set[str]:
    """The names of what a plan of this question takes."""
    known = set(NEEDS[trust])
    return known - {"k"} | {"lower", "upper", "grid"} if question == "mean" else known


@dataclass(frozen=True)
class UserDummiesPlan(TrustingPlan):
    """How often people send dummies, what that promises against whom, and how accurate every share is.

    Parameters
    ----------
    n : int
    asked : float
        The epsilon that a configuration asks for.
    dummies : UserDummies
    central : CentralDP
        With `trust` "users".
    accuracy : Accuracy
        Of one share, the same for frequent and rare values; or of the mean.
    span : lower and upper, optional
        Of a number, whose mean is planned; symbols are then the points of an even grid.
    """

    n: int
    asked: float
    dummies: UserDummies
    central: CentralDP
    accuracy: Accuracy
    span: tuple[float, float] | None = None

    @property
    def messages(self) -> float:
        """Of one person, on average; the cap is two."""
        return 1.0 + self.dummies.rate

    @property
    def message_bytes(self) -> int:
        """Of what a person's device sends the shuffler, whatever it says: both entries, one of them perhaps blank."""
        return planned_bytes(size(self.dummies.k + 1), entries=CAP)

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "trust": self.central.trust,
            "trust_statement": list(self.trust_statement),
            "verdict": judge_central(self.central).document(),
            "n": self.n,
            "honest": self.central.honest_n,
            "k": self.dummies.k,
            "epsilon0": self.central.colluding,
            "epsilon": self.central.epsilon,
            "epsilon_all_honest": self.central.all,
            "delta": self.central.delta,
            "standard_error": self.accuracy.standard_error,
            "error95": self.accuracy.error95,
            "population_error95": self.accuracy.population_error95,
            "count_standard_deviation": sqrt(self.dummies.variance(self.n)),
            "dummy_rate": self.dummies.rate,
            "dummies": self.n * self.dummies.rate,
            "messages_per_person": self.messages,
            "most_messages_per_person": CAP,
            "messages": self.n * self.messages,
            "message_bytes": self.message_bytes,
            "report_bits": max(1, (self.dummies.k - 1).bit_length()),
            **self.measured,
        }


def plan_with_user_dummies(
    *,
    n: int,
    k: int,
    delta: float | None = None,
    epsilon: float | None = None,
    error: float | None = None,
    honest: float | None = None,
) -> UserDummiesPlan:
    r"""Plan shares of k values with dummies of people, for a wanted epsilon or a wanted error.

    .. math:: \mathrm{se}^2 = \frac{1}{n}\, \frac{\mathrm{rate}}{k} \Bigl(1 - \frac{\mathrm{rate}}{k}\Bigr), \qquad
              \mathrm{error}_{95} = z_{0.975}\, \mathrm{se}

    Parameters
    ----------
    epsilon : float, above 0, at most 20, nats
        Against the analyst, as long as `honest` people send their answers and dummies.
    error : float, above 0, below 1
        What one share may be off with probability 95 %; then the least epsilon is sought. With `epsilon` as well that
        is its ceiling.
    honest : int, or float below 1
        People who are counted on, or their share; default all. Set it below the number that is expected.

    Raises
    ------
    ParameterError
        For parameters outside their ranges, for too few honest people, and for an error that no epsilon reaches.

    Examples
    --------
    >>> plan = plan_with_user_dummies(n=100_000, k=1000, epsilon=1.0, delta=1e-6)
    >>> round(plan.accuracy.standard_error * plan.n, 2), round(plan.messages, 2)
    (6.53, 1.43)
    """
    people, symbols = whole("n", n, least=1, most=MOST_PEOPLE), whole("k", k, least=2, most=1 << 24)
    slack = default_delta(people) if delta is None else share("delta", delta)
    trusted = honest_people(honest, people)

    def planned(wanted: float) -> UserDummiesPlan:
        dummies = user_dummies_for(k=symbols, epsilon=wanted, delta=slack, honest=trusted)
        central = user_dummies_guarantee(dummies, n=people, delta=slack, honest=trusted)
        off = sqrt(dummies.variance(people)) / people
        accuracy = Accuracy(off, Z95 * off, Z95 * sqrt(off**2 + 0.25 / people))
        return UserDummiesPlan(people, wanted, dummies, central, accuracy)

    if error is None:
        if epsilon is None:
            raise ParameterError("give `epsilon` or `error`: what the batch may tell, or what a share may be off.")
        return planned(privacy_budget("epsilon", epsilon, most=MOST_EPSILON))
    bound = positive("error", error)
    most = MOST_EPSILON if epsilon is None else privacy_budget("epsilon", epsilon, most=MOST_EPSILON)
    share_of_dummies = people * (bound / Z95) ** 2  # (rate / k) (1 - rate / k)
    rate = 1.0 if share_of_dummies >= 0.25 else symbols * 0.5 * (1.0 - sqrt(1.0 - 4.0 * share_of_dummies))
    least = UserDummiesLaw(symbols, trusted, max(min(rate, 1.0), 2.0**-32)).epsilon(slack) * (1.0 + 1e-4)
    if least > most or rate < 2.0**-32:
        best = round_up_to_three_digits(planned(most).accuracy.error95 * 1.001)  # `least` is above the law's epsilon
        raise refuse("error", f"at least {best} with epsilon {most:g} and these people", bound)
    return planned(least)


def plan_mean_with_dummies(
    *,
    trust: Literal["shuffler", "users"],
    n: int,
    lower: float,
    upper: float,
    grid: float | None = None,
    delta: float | None = None,
    epsilon: float | None = None,
    error: float | None = None,
    honest: float | None = None,
) -> DummiesPlan | UserDummiesPlan:
    r"""Plan the mean of a number with dummies of the points of a grid, for a wanted epsilon or a wanted error.

    .. math:: \mathrm{se}^2 = V \sum_j \Bigl(v_j - \frac{v_0 + v_{d-1}}2\Bigr)^2 + \frac{(v_1 - v_0)^2}{4 n}, \qquad
              V = \frac{\mathrm{Var}\, Z}{n^2} \ \text{or}\ \frac{\mathrm{rate}}{n d}

    Parameters
    ----------
    trust : "shuffler" or "users"
        Who adds the dummies.
    grid : float, optional
        Width of a step; default that of the least error.
    epsilon : float, above 0, at most 20, nats
    error : float, above 0, in units of the number
        What the mean may be off with probability 95 %; then the least epsilon is sought, up to `epsilon` or 20.
    honest : int, or float below 1
        For "users": people who are counted on, or their share; default all.

    Raises
    ------
    ParameterError
        For parameters outside their ranges, for too few honest people, and for an error that no epsilon reaches.

    Examples
    --------
    >>> plan = plan_mean_with_dummies(trust="shuffler", n=100_000, lower=0.0, upper=1.0, epsilon=1.0, delta=1e-6)
    >>> plan.dummies.k, f"{plan.accuracy.standard_error:.1e}"
    (43, '6.6e-05')
    """
    people = whole("n", n, least=1, most=MOST_PEOPLE)
    low, high, step = number_range(lower, upper, grid)
    slack, trusted = default_delta(people) if delta is None else share("delta", delta), honest_people(honest, people)
    asked = _MeanAsked(trust, people, trusted, (low, high), step, slack)
    if error is None:
        if epsilon is None:
            raise ParameterError("give `epsilon` or `error`: what the batch may tell, or what the mean may be off.")
        return asked.planned(privacy_budget("epsilon", epsilon, most=MOST_EPSILON))
    target = positive("error", error)
    most = MOST_EPSILON if epsilon is None else privacy_budget("epsilon", epsilon, most=MOST_EPSILON)
    return asked.planned(asked.least_epsilon(target, most=most))


@dataclass(frozen=True)
class _MeanAsked:
    """What a mean is planned for, whatever its epsilon; everything checked."""

    trust: str
    n: int
    honest: int
    span: tuple[float, float]
    grid: float | None
    delta: float

    def drawn(self, epsilon: float) -> tuple[Dummies | UserDummies, float]:
        """The dummies, and the standard error of the mean."""
        dummies = mean_dummies(
            self.trust, n=self.n, honest=self.honest, span=self.span, grid=self.grid, epsilon=epsilon,
            delta=self.delta,
        )  # fmt: skip
        noise = dummies.variance / self.n**2 if isinstance(dummies, Dummies) else dummies.rate / dummies.k / self.n
        return dummies, sqrt(_squared_error(dummies.k, self.n, noise)) * (self.span[1] - self.span[0])

    def planned(self, epsilon: float) -> DummiesPlan | UserDummiesPlan:
        dummies, off = self.drawn(epsilon)
        sampled = (self.span[1] - self.span[0]) ** 2 / (4.0 * self.n)
        accuracy = Accuracy(off, Z95 * off, Z95 * sqrt(off**2 + sampled))
        if isinstance(dummies, Dummies):
            return DummiesPlan(self.n, dummies, dummies_guarantee(dummies, n=self.n), accuracy, self.span)
        central = user_dummies_guarantee(dummies, n=self.n, delta=self.delta, honest=self.honest)
        return UserDummiesPlan(self.n, epsilon, dummies, central, accuracy, self.span)

    def least_epsilon(self, error: float, *, most: float) -> float:
        """With which the mean is off by so much, with probability 95 %."""

        def excess(epsilon: float) -> float:
            try:
                return log_ratio(Z95 * self.drawn(epsilon)[1], error)
            except ParameterError:  # more dummies than a symbol, or a person, can have
                return 1.0

        if excess(most) > 0.0:
            best = round_up_to_three_digits(Z95 * self.drawn(most)[1])
            raise refuse("error", f"at least {best} with epsilon {most:g} and these people", error)
        return bracket_root(excess, min(1.0, most), steepness=1.0, most=most, tolerance=1e-3)[1]


def mean_dummies(
    trust: str, *, n: int, honest: int, span: tuple[float, float], grid: float | None, epsilon: float, delta: float
) -> Dummies | UserDummies:
    """Dummies of the points of a grid on [lower, upper], for the mean of n numbers; what `run` draws, too.

    Without a `grid` it is the one of least error, from public numbers alone.
    """
    low, high, step = number_range(*span, grid)
    if trust == "shuffler":
        best_grid = mean_grid(n, variance=Dummies(2, epsilon, delta).variance) if step is None else 0
        return Dummies(best_grid if step is None else _points(low, high, step), epsilon, delta)
    if step is not None:
        return user_dummies_for(k=_points(low, high, step), epsilon=epsilon, delta=delta, honest=honest)
    best = user_dummies_for(k=2, epsilon=epsilon, delta=delta, honest=honest)
    for _ in range(3):  # the number of dummies of a point hardly depends on how many points there are
        each = best.rate / best.k
        points = _points_of_users(n, each)
        try:
            found = user_dummies_for(k=points, epsilon=epsilon, delta=delta, honest=honest)
        except ParameterError:  # two messages a person are not enough for so many points
            break
        if _squared_error(found.k, n, found.rate / found.k / n) >= _squared_error(best.k, n, each / n):
            break
        best = found
    return best


def _points_of_users(n: int, each: float) -> int:
    """Points of the grid of least error, where people send a dummy of each with this probability."""
    return min(range(2, max(3, min(4096, int(1.0 / each)))), key=lambda d: _squared_error(d, n, each / n))


def _squared_error(points: int, n: int, noise: float) -> float:
    """Of a mean on [0, 1], where counts have this variance over n^2; rounding at its worst."""
    d = float(points)
    return noise * d * (d + 1.0) / (12.0 * (d - 1.0)) + 1.0 / (4.0 * (d - 1.0) ** 2 * n)


def _points(lower: float, upper: float, step: float) -> int:
    points = round((upper - lower) / step) + 1
    if points > MOST_POINTS:
        raise refuse("grid", f"at least {(upper - lower) / (MOST_POINTS - 1):g}, as each point gets dummies", step)
    return points


def plan_trusting(
    *, trust: Literal["shuffler", "users"], question: str = "frequency", **asked: Any
) -> DummiesPlan | UserDummiesPlan:
    """The plan of whoever is trusted with the noise; `asked` as `plan_with_dummies` or `plan_with_user_dummies` say.

    Raises
    ------
    ParameterError
        Also without `n` or `k`, or for a mean `lower` and `upper`, and for what does not go with dummies.
    """
    if trust not in NEEDS:
        raise refuse("trust", '"local", "shuffler" or "users"', trust)
    for name, value in asked.items():
        if name not in needs(trust, question) and value is not None:
            raise ParameterError(f'`{name}` does not go with `trust` = "{trust}".')
    for name in ("n", "lower", "upper") if question == "mean" else ("n", "k"):
        if asked.get(name) is None:
            raise ParameterError(f'`{name}` must be given with `trust` = "{trust}".')
    if question == "mean":
        return plan_mean_with_dummies(trust=trust, **asked)
    return plan_with_dummies(**asked) if trust == "shuffler" else plan_with_user_dummies(**asked)

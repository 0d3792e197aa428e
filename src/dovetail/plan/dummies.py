"""The plan where the shuffler is trusted with the noise: dummies instead of local randomization."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import hypot, sqrt
from typing import Any, Literal, TypeVar

from dovetail.account.bound import bracket_root, log_ratio
from dovetail.account.dummies import (
    MOST_EPSILON,
    MOST_PEOPLE,
    UserDummiesLaw,
    dummies_for_rounds,
    dummies_guarantee,
    sparse_guarantee,
    user_dummies_for,
    user_dummies_guarantee,
)
from dovetail.account.gaussian_dummies import Message, message_for
from dovetail.core.checks import privacy_budget, refuse, share, whole, word
from dovetail.core.errors import ParameterError
from dovetail.core.estimate import Z95, noise_reach
from dovetail.core.guarantee import CentralDP
from dovetail.core.verdict import judge_central
from dovetail.estimate.accuracy import Accuracy
from dovetail.estimate.dummies import digits_squared_error, mean_grid
from dovetail.plan.infeasible import round_up_to_three_digits
from dovetail.plan.requirements import error_below
from dovetail.plan.search import default_delta, honest_people
from dovetail.randomize.sampling.open_reports import MOST_POINTS
from dovetail.shuffle.sampling.dummies import (
    AddedDummies,
    Dummies,
    GaussianDummies,
    SeveralDummies,
    SparseDummies,
    UserDummies,
)
from dovetail_protocol.checks import number_range
from dovetail_protocol.dummies import CAP
from dovetail_protocol.mechanism import size
from dovetail_protocol.messages import planned_bytes

MOST_DIGITS = 10
LARGEST_EPSILON = 20.0  # beyond it counts are all but exact


class TrustingPlan:
    """Base of plans that trust the shuffler or people with dummies."""

    n: int
    dummies: AddedDummies | SparseDummies | UserDummies
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
        return None if self.span is None else (self.span[1] - self.span[0]) / (self.points - 1)

    @property
    def points(self) -> int:
        """Of the grid that a number is rounded to; values of a list otherwise."""
        return self.dummies.k

    @property
    def measured(self) -> dict[str, Any]:
        """Part of a JSON document on a number's grid."""
        return {} if self.span is None else {"lower": self.span[0], "upper": self.span[1], "grid": self.grid}

    @property
    def trust_statement(self) -> tuple[str, ...]:
        """Say who has to be trusted with what."""
        return self.central.lines()


@dataclass(frozen=True)
class DummiesPlan(TrustingPlan):
    """Plan of the shuffler's dummies: their guarantee, against whom, and the accuracy of every share.

    Parameters
    ----------
    n : int
    asked : float
        The epsilon that a configuration asks for.
    kind : "geometric", "gaussian", "sparse" or "digits"
        Of dummies, as [promise] `dummies` has it.
    dummies : Dummies, GaussianDummies, SparseDummies, or SeveralDummies of digits
    central : CentralDP
        With `trust` "shuffler"; of all rounds together.
    accuracy : Accuracy
        Of one share, the same for frequent and rare values but behind sparse dummies, where it is that of an answer
        that everybody gives; or of the mean.
    span : lower and upper, optional
        Of a number, whose mean is planned; symbols are then the points of an even grid, or digits.
    rounds : int
        Releases about the same people that keep the promise together.
    """

    n: int
    asked: float
    kind: str
    dummies: AddedDummies | SparseDummies
    central: CentralDP
    accuracy: Accuracy
    span: tuple[float, float] | None = None
    rounds: int = 1

    @property
    def points(self) -> int:
        """Of the grid that a number is rounded to; values of a list otherwise."""
        return 3**self.reports if self.kind == "digits" else self.dummies.k

    @property
    def reports(self) -> int:
        """Of one person."""
        return 1 if isinstance(self.dummies, SparseDummies) else self.dummies.messages

    @property
    def added(self) -> int:
        """Dummies in a batch on average."""
        return round(self.dummies.total)

    @property
    def messages(self) -> int:
        """Reports in the batch on average: those of the people, and the dummies."""
        kept = float(self.dummies.kept) if isinstance(self.dummies, SparseDummies) else self.reports
        return round(self.n * kept) + self.added

    @property
    def count_variance(self) -> float:
        """Of a count; behind sparse dummies of an answer that nobody gives."""
        return float(self.dummies.variance(0) if isinstance(self.dummies, SparseDummies) else self.dummies.variance)

    @property
    def largest_count_error(self) -> int | None:
        """Where there is one."""
        return None if isinstance(self.dummies, SparseDummies) else self.dummies.reach

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "trust": self.central.trust,
            "trust_statement": list(self.trust_statement),
            "verdict": judge_central(self.central).document(),
            "n": self.n,
            "kind": self.kind,
            "rounds": self.rounds,
            "k": self.dummies.k,
            "epsilon0": self.central.colluding,
            "epsilon": self.central.epsilon,
            "delta": self.central.delta,
            "standard_error": self.accuracy.standard_error,
            "error95": self.accuracy.error95,
            "population_error95": self.accuracy.population_error95,
            "count_standard_deviation": sqrt(self.count_variance),
            "largest_count_error": self.largest_count_error,
            "dummies_per_value": self.added / self.dummies.k,
            "dummies": self.added,
            "reports_per_person": self.reports,
            "messages": self.messages,
            "message_bytes": self.message_bytes,
            "report_bits": max(1, (self.dummies.k - 1).bit_length()),
            **self.measured,
        }


Made = TypeVar("Made", bound="DummiesPlan | UserDummiesPlan")
BEST = "best"  # kind of dummies that the planner takes the better of


def plan_with_dummies(
    *,
    n: int,
    k: int,
    delta: float | None = None,
    epsilon: float | None = None,
    error: float | None = None,
    dummies: str = BEST,
    rounds: int = 1,
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
    dummies : "best", "geometric", "gaussian" or "sparse"
        The best is the better of the first two by the number of rounds. Sparse ones are few and have no delta, but
        frequent answers pay: the error is that of an answer that everybody gives.
    rounds : int
        Releases about the same people that keep epsilon together.

    Raises
    ------
    ParameterError
        For parameters outside their ranges, and for an error that no epsilon up to 20 reaches.

    Examples
    --------
    >>> plan = plan_with_dummies(n=100_000, k=1000, epsilon=1.0, delta=1e-6)
    >>> round(plan.accuracy.standard_error * plan.n, 2), plan.dummies.reach
    (2.8, 27)
    >>> monthly = plan_with_dummies(n=100_000, k=1000, epsilon=1.0, delta=1e-6, rounds=12)
    >>> monthly.kind, round(monthly.accuracy.standard_error * plan.n, 1)
    ('gaussian', 20.7)
    """
    people, symbols = whole("n", n, least=1, most=10**12), whole("k", k, least=2, most=1 << 24)
    kinds = _kinds(dummies, "geometric", "gaussian", alone=("sparse",))
    slack, many = default_delta(people) if delta is None else share("delta", delta), _rounds(rounds, dummies)
    if epsilon is None and error is None:
        raise ParameterError("give `epsilon` or `error`: what the batch may tell, or what a share may be off.")
    most = LARGEST_EPSILON if epsilon is None else privacy_budget("epsilon", epsilon, most=LARGEST_EPSILON)
    ways = [_SharesAsked(people, symbols, slack, kind, many) for kind in kinds]
    if error is None:
        return _best([partial(one.planned, most) for one in ways])
    wanted = error_below(1.0, error, question="frequency")
    return _best([partial(one.reaching, wanted, most=most) for one in ways])


def _rounds(rounds: int, dummies: str) -> int:
    many = whole("rounds", rounds, least=1, most=100_000)
    if dummies == "sparse" and many > 1:
        raise refuse("rounds", "1 with sparse dummies", rounds)
    return many


def _kinds(asked: str, *best: str, alone: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The kinds of dummies that are tried where `asked` is asked for."""
    known = (BEST, *best, *alone)
    word("dummies", asked, known, f"one of {', '.join(repr(one) for one in known)}")
    return best if asked == BEST else (asked,)


def _best(ways: Sequence[Callable[[], Made]]) -> Made:
    """The plan of the least epsilon, and among them of the least error; the first refusal where all refuse."""
    found: list[Made] = []
    refused: ParameterError | None = None
    for way in ways:
        try:
            found.append(way())
        except ParameterError as error:
            refused = refused or error
    if not found:
        assert refused is not None
        raise refused
    return min(found, key=lambda plan: (plan.asked, plan.accuracy.standard_error))


@dataclass(frozen=True)
class _SharesAsked:
    """Checked requirements of shares, whatever their epsilon."""

    n: int
    k: int
    delta: float
    kind: str
    rounds: int

    def drawn(self, epsilon: float) -> Dummies | GaussianDummies | SparseDummies:
        if self.kind == "sparse":
            return SparseDummies(self.k, epsilon)
        return dummies_for_rounds(k=self.k, epsilon=epsilon, delta=self.delta, rounds=self.rounds, law=self.kind)

    def error95(self, dummies: Dummies | GaussianDummies | SparseDummies, *, sampled: float = 0.0) -> float:
        """Of a share, with a normal error of so much variance besides."""
        if isinstance(dummies, SparseDummies):
            return Z95 * sqrt(float(dummies.variance(self.n)) / self.n**2 + sampled)
        return float(noise_reach(*dummies.noise.error_law(1.0 / self.n), sqrt(sampled), 0.95))

    def planned(self, epsilon: float) -> DummiesPlan:
        dummies = self.drawn(epsilon)
        if isinstance(dummies, SparseDummies):
            off, central = sqrt(float(dummies.variance(self.n))) / self.n, sparse_guarantee(dummies, n=self.n)
        else:
            off = sqrt(dummies.variance) / self.n
            central = dummies_guarantee(dummies, n=self.n, delta=self.delta, rounds=self.rounds)
        accuracy = Accuracy(off, self.error95(dummies), self.error95(dummies, sampled=0.25 / self.n))
        return DummiesPlan(self.n, epsilon, self.kind, dummies, central, accuracy, rounds=self.rounds)

    def reaching(self, wanted: float, *, most: float) -> DummiesPlan:
        """The plan of the least epsilon with which a share is off by no more."""
        return self.planned(self.least_epsilon(wanted, most=most))

    def least_epsilon(self, wanted: float, *, most: float) -> float:
        """With which a share is off by no more."""
        off = self.error95(self.drawn(most))
        if off > wanted:
            best = round_up_to_three_digits(off)
            raise refuse("error", f"at least {best} with epsilon {most:g} and these people", wanted)
        low, high = 0.0, most
        while high - low > 1e-4 * high:
            middle = 0.5 * (low + high)
            try:
                enough = self.error95(self.drawn(middle)) <= wanted
            except ParameterError:  # more dummies than a symbol can have
                enough = False
            low, high = (low, middle) if enough else (middle, high)
        return high


# The plan where people make the noise together: each sends her answer, and by chance a dummy.


NEEDS = {
    "shuffler": ("question", "n", "k", "delta", "error", "epsilon", "trust", "dummies", "rounds"),
    "users": ("question", "n", "k", "delta", "error", "epsilon", "trust", "honest"),
}


def needs(trust: str, question: str) -> set[str]:
    """The names of what a plan of this question takes."""
    known = set(NEEDS[trust])
    return known - {"k"} | {"lower", "upper", "grid"} if question == "mean" else known


@dataclass(frozen=True)
class UserDummiesPlan(TrustingPlan):
    """Plan of people's dummies: their rate, guarantee, against whom, and the accuracy of every share.

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
    bound = error_below(1.0, error, question="frequency")
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
    dummies: str = BEST,
    rounds: int = 1,
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
    dummies : "best", "geometric", "gaussian", "digits" or "sparse"
        For "shuffler": of the points of a grid, or of the ternary digits of a finer one, for which each person sends
        a report of every digit. The best of these has the least error; with a `grid` digits are left out. Sparse ones
        have no delta, and the mean is that of a sample: the error is that where everybody holds an end of the range.
    rounds : int
        Releases about the same people that keep epsilon together.

    Raises
    ------
    ParameterError
        For parameters outside their ranges, for too few honest people, and for an error that no epsilon reaches.

    Examples
    --------
    >>> plan = plan_mean_with_dummies(trust="shuffler", n=100_000, lower=0.0, upper=1.0, epsilon=1.0, delta=1e-6)
    >>> plan.kind, plan.reports, f"{plan.accuracy.standard_error:.1e}"
    ('digits', 5, '4.3e-05')
    """
    people = whole("n", n, least=1, most=MOST_PEOPLE)
    word("trust", trust, NEEDS, '"shuffler" or "users"')
    low, high, step = number_range(lower, upper, grid)
    slack, trusted = default_delta(people) if delta is None else share("delta", delta), honest_people(honest, people)
    if error is None and epsilon is None:
        raise ParameterError("give `epsilon` or `error`: what the batch may tell, or what the mean may be off.")
    most = MOST_EPSILON if epsilon is None else privacy_budget("epsilon", epsilon, most=MOST_EPSILON)
    kinds = (
        _kinds(dummies, "geometric", "gaussian", "digits", alone=("sparse",)) if trust == "shuffler" else ("users",)
    )
    if step is not None and dummies == "digits":
        raise ParameterError("`grid` does not go with `dummies` of digits: they are of a power of three of points.")
    many = _rounds(rounds, dummies)
    ways = [
        _MeanAsked(trust, people, trusted, (low, high), step, slack, kind, many)
        for kind in kinds
        if step is None or kind != "digits"
    ]
    if error is None:
        return _best([partial(one.planned, most) for one in ways])
    target = error_below(high - low, error, question="mean")
    return _best([partial(one.reaching, target, most=most) for one in ways])


@dataclass(frozen=True)
class _MeanAsked:
    """Checked requirements of a mean, whatever its epsilon."""

    trust: str
    n: int
    honest: int
    span: tuple[float, float]
    grid: float | None
    delta: float
    kind: str
    rounds: int

    def drawn(
        self, epsilon: float
    ) -> tuple[Dummies | GaussianDummies | SparseDummies | Message | UserDummies, float]:
        """The dummies, and the standard error of the mean."""
        dummies = mean_dummies(
            self.trust, n=self.n, honest=self.honest, span=self.span, grid=self.grid, epsilon=epsilon,
            delta=self.delta, dummies=self.kind, rounds=self.rounds,
        )  # fmt: skip
        width = self.span[1] - self.span[0]
        if isinstance(dummies, Message):
            return dummies, width * sqrt(digits_squared_error([law.variance for law in dummies.laws], n=self.n))
        if isinstance(
            dummies, SparseDummies
        ):  # at worst everybody holds an end of the range, half of it from the middle
            few = _squared_error(dummies.k, self.n, float(dummies.variance(0.0)) / self.n**2)
            return dummies, width * sqrt(few + 0.25 * float(1 / dummies.kept - 1) / self.n)
        noise = (
            dummies.rate / dummies.k / self.n if isinstance(dummies, UserDummies) else dummies.variance / self.n**2
        )
        return dummies, width * sqrt(_squared_error(dummies.k, self.n, noise))

    def planned(self, epsilon: float) -> DummiesPlan | UserDummiesPlan:
        dummies, off = self.drawn(epsilon)
        sampled = (self.span[1] - self.span[0]) / sqrt(4.0 * self.n)
        accuracy = Accuracy(off, Z95 * off, Z95 * hypot(off, sampled))
        if isinstance(dummies, UserDummies):
            central = user_dummies_guarantee(dummies, n=self.n, delta=self.delta, honest=self.honest)
            return UserDummiesPlan(self.n, epsilon, dummies, central, accuracy, self.span)
        if isinstance(dummies, SparseDummies):
            central = sparse_guarantee(dummies, n=self.n)
            return DummiesPlan(self.n, epsilon, self.kind, dummies, central, accuracy, self.span)
        central = dummies_guarantee(dummies, n=self.n, delta=self.delta, rounds=self.rounds)
        made = SeveralDummies(dummies.laws, (3,) * len(dummies.laws)) if isinstance(dummies, Message) else dummies
        return DummiesPlan(self.n, epsilon, self.kind, made, central, accuracy, self.span, self.rounds)

    def reaching(self, error: float, *, most: float) -> DummiesPlan | UserDummiesPlan:
        """The plan of the least epsilon with which the mean is off by no more."""
        return self.planned(self.least_epsilon(error, most=most))

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
    trust: str,
    *,
    n: int,
    honest: int,
    span: tuple[float, float],
    grid: float | None,
    epsilon: float,
    delta: float,
    dummies: str = "geometric",
    rounds: int = 1,
) -> Dummies | GaussianDummies | SparseDummies | Message | UserDummies:
    """Dummies of the points of a grid on [lower, upper], for the mean of n numbers; what `run` draws, too.

    Without a `grid` it is the one of least error, from public numbers alone.
    """
    low, high, step = number_range(*span, grid)
    if trust == "shuffler" and dummies == "digits":
        return digit_dummies(n, epsilon=epsilon, delta=delta, rounds=rounds)
    points = None if step is None else grid_points(low, high, step)
    if trust == "users":
        return _dummies_of_users(points, n=n, honest=honest, epsilon=epsilon, delta=delta)
    if dummies == "sparse":
        few = SparseDummies(2, epsilon)
        return replace(few, k=points or mean_grid(n, variance=float(few.variance(0.0))))
    one = dummies_for_rounds(k=2, epsilon=epsilon, delta=delta, rounds=rounds, law=dummies)
    return replace(one, k=points or mean_grid(n, variance=one.variance))


def _dummies_of_users(points: int | None, *, n: int, honest: int, epsilon: float, delta: float) -> UserDummies:
    if points is not None:
        return user_dummies_for(k=points, epsilon=epsilon, delta=delta, honest=honest)
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


def digit_dummies(n: int, *, epsilon: float, delta: float, rounds: int = 1) -> Message:
    """Dummies of the ternary digits of n numbers: as few digits as leave rounding a tenth of the noise's variance."""
    noise = 0.5 * float(message_for(weights=(1,), epsilon=epsilon, delta=delta, rounds=rounds).scale)
    digits = 1
    while digits < MOST_DIGITS and n / (4.0 * (3**digits - 1) ** 2) > 0.1 * noise:
        digits += 1
    return message_for(weights=tuple(3**k for k in range(digits)), epsilon=epsilon, delta=delta, rounds=rounds)


def _points_of_users(n: int, each: float) -> int:
    """Points of the grid of least error, where people send a dummy of each with this probability."""
    return min(range(2, max(3, min(4096, int(1.0 / each)))), key=lambda d: _squared_error(d, n, each / n))


def _squared_error(points: int, n: int, noise: float) -> float:
    """Of a mean on [0, 1], where counts have this variance over n^2; rounding at its worst."""
    d = float(points)
    return noise * d * (d + 1.0) / (12.0 * (d - 1.0)) + 1.0 / (4.0 * (d - 1.0) ** 2 * n)


def grid_points(lower: float, upper: float, step: float) -> int:
    """How many points a grid with this step has, each of which gets dummies."""
    points = round((upper - lower) / step) + 1
    if points > MOST_POINTS:
        raise refuse("grid", f"at least {(upper - lower) / (MOST_POINTS - 1):g}, as each point gets dummies", step)
    return points


def plan_trusting(
    *, trust: Literal["shuffler", "users"], question: str = "frequency", **asked: Any
) -> DummiesPlan | UserDummiesPlan:
    """The plan of who is trusted with the noise; `asked` as `plan_with_dummies` or `plan_with_user_dummies` say.

    Raises
    ------
    ParameterError
        Also without `n` or `k`, or for a mean `lower` and `upper`, and for what does not go with dummies.
    """
    word("trust", trust, NEEDS, '"local", "shuffler" or "users"')
    word("question", question, ("frequency", "mean"), '"frequency" or "mean"')
    for name, value in asked.items():
        if name not in needs(trust, question) and value is not None:
            raise ParameterError(f'`{name}` does not go with `trust` = "{trust}".')
    asked = {name: value for name, value in asked.items() if value is not None or name not in ("dummies", "rounds")}
    for name in ("n", "lower", "upper") if question == "mean" else ("n", "k"):
        if asked.get(name) is None:
            raise ParameterError(f'`{name}` must be given with `trust` = "{trust}".')
    if question == "mean":
        return plan_mean_with_dummies(trust=trust, **asked)
    return plan_with_dummies(**asked) if trust == "shuffler" else plan_with_user_dummies(**asked)

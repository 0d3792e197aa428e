"""Planning a mean of vectors: people, epsilon and error, any one of which is solved for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dovetail.account.accountant import Accountant
from dovetail.account.amplify import amplify, sent_law
from dovetail.core.checks import MOST_PEOPLE, positive, refuse, whole
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.core.guarantee import CentralDP
from dovetail.core.progress import Progress, silent
from dovetail.plan.infeasible import InfeasibleError, round_up_to_three_digits
from dovetail.plan.search import SEARCH_POINTS, check_wishes, default_delta, honest_people
from dovetail.question.vector import check_clip
from dovetail.randomize.vectors.shared.vector_randomizer import VECTOR_RANDOMIZERS, VectorRandomizer

LEAST, MOST = 0.01, 30.0  # epsilon0 that is searched
TOLERANCE = 5e-4  # how far above the least a found number may lie, relative


@dataclass(frozen=True)
class VectorPlan:
    """What every device runs, what is promised, and how far off the mean may be.

    Attributes
    ----------
    mechanism : VectorRandomizer
    n : int
    central : CentralDP
    others : mapping of str
        The other randomizers at the same wishes, or why they cannot meet them.
    """

    mechanism: VectorRandomizer
    n: int
    central: CentralDP
    others: dict[str, VectorPlan | str]

    @property
    def epsilon0(self) -> float:
        """What the device is set to."""
        return self.mechanism.epsilon

    @property
    def error95(self) -> float:
        """Euclidean length by which the mean may be off, with probability 95 %."""
        return self.mechanism.error95(self.n)


@dataclass(frozen=True)
class _Question:
    """The wishes, and one kind of randomizer that is to meet them."""

    kind: Any
    dimension: int
    clip: float
    delta: float | None
    honest: float | None

    def make(self, epsilon0: float) -> VectorRandomizer:
        made: VectorRandomizer = self.kind(d=self.dimension, radius=self.clip, epsilon=epsilon0)
        return made

    def delta_of(self, n: int) -> float:
        return default_delta(n) if self.delta is None else self.delta

    def central(self, epsilon0: float, n: int) -> CentralDP:
        return _central(self, epsilon0, n)

    def epsilon(self, epsilon0: float, n: int) -> float:
        try:
            return self.central(epsilon0, n).epsilon
        except UnsupportedError:
            return math.inf

    def keeps(self, epsilon: float, epsilon0: float, n: int) -> bool:
        """True if the shuffled batch promises epsilon, by one evaluation where that is enough."""
        subject, honest = sent_law(self.make(epsilon0)), honest_people(self.honest, n)
        if subject is None:
            return self.epsilon(epsilon0, n) <= epsilon
        return Accountant(subject, n=honest).log_ratio(epsilon, delta=self.delta_of(n), points=SEARCH_POINTS) <= 0.0

    def epsilon0_of_error(self, error: float, n: int) -> float:
        """The least that reaches an error; infinite where none does."""
        return least(lambda epsilon0: self.make(epsilon0).error95(n) <= error, LEAST, MOST)

    def epsilon0_of_epsilon(self, epsilon: float, n: int) -> float:
        """The largest whose shuffled batch promises epsilon; 0 where none does."""
        beyond = least(lambda epsilon0: not self.keeps(epsilon, epsilon0, n), LEAST, MOST)
        if math.isinf(beyond):
            return MOST
        for _ in range(8):  # what is promised is computed to more digits than what was searched
            beyond /= 1.0 + 2.0 * TOLERANCE
            if self.epsilon(beyond, n) <= epsilon:
                return beyond
        return 0.0

    def people(self, wishes: dict[str, float]) -> float:
        """The least n for two wishes; infinite where none is enough."""
        return least(lambda n: self._meets(wishes, math.ceil(n)), 1.0, float(MOST_PEOPLE), tolerance=1e-3)

    def _meets(self, wishes: dict[str, float], n: int) -> bool:
        epsilon0 = wishes.get("epsilon0") or self.epsilon0_of_error(wishes["error"], n)
        if not epsilon0 <= MOST or ("error" in wishes and self.make(epsilon0).error95(n) > wishes["error"]):
            return False
        return "epsilon" not in wishes or self.keeps(wishes["epsilon"], epsilon0, n)

    def plan(self, wishes: dict[str, float], n: int) -> VectorPlan:
        """InfeasibleError where the wishes cannot be met by this kind."""
        epsilon0 = self._chosen(wishes, n)
        return VectorPlan(self.make(epsilon0), n, self.central(epsilon0, n), {})

    def _chosen(self, wishes: dict[str, float], n: int) -> float:
        if "epsilon0" in wishes:
            return wishes["epsilon0"]
        if "error" not in wishes:
            return self._for_epsilon(wishes["epsilon"], n)
        error, ceiling = wishes["error"], wishes.get("epsilon", math.inf)
        epsilon0 = self.epsilon0_of_error(error, n)
        found = self.epsilon(epsilon0, n) if math.isfinite(epsilon0) else math.inf
        if math.isinf(epsilon0) or found > ceiling:
            beside = "" if math.isinf(ceiling) else f" at epsilon {ceiling:g}"
            raise infeasible(f"an error of {error:g}{beside}", n, self._ways(wishes, found, n))
        return epsilon0

    def _ways(self, wishes: dict[str, float], found: float, n: int) -> dict[str, float]:
        """Changes of one wish that are enough, the others kept."""
        affordable = self.epsilon0_of_epsilon(wishes["epsilon"], n) if "epsilon" in wishes else MOST
        error = math.inf if affordable == 0.0 else self.make(affordable).error95(n)
        people = self.people(wishes if "epsilon" in wishes else {**wishes, "epsilon0": MOST})
        return {"error": error, "epsilon": found, "n": people}

    def _for_epsilon(self, epsilon: float, n: int) -> float:
        epsilon0 = self.epsilon0_of_epsilon(epsilon, n)
        if epsilon0 == 0.0:
            raise infeasible(f"epsilon {epsilon:g}", n, {"epsilon": self.epsilon(LEAST, n)})
        return epsilon0


@lru_cache(maxsize=64)
def _central(question: _Question, epsilon0: float, n: int) -> CentralDP:
    """What is asked again for the point that a search has ended at."""
    honest = honest_people(question.honest, n)
    return amplify(question.make(epsilon0), n=n, delta=question.delta_of(n), honest=honest)


def plan_vectors(
    *,
    dimension: int,
    clip: float,
    n: int | None = None,
    error: float | None = None,
    epsilon: float | None = None,
    epsilon0: float | None = None,
    delta: float | None = None,
    honest: float | None = None,
    randomizer: str | None = None,
    progress: Progress = silent,
) -> VectorPlan:
    """Plan the mean of vectors of bounded length; of the randomizers that meet the wishes the best one.

    Parameters
    ----------
    dimension : int, 1 .. 65,536
    clip : float, from 1e-100 to 1e100
        Euclidean length to which vectors are shortened.
    n : int, optional
        People; left out, the least number for two wishes.
    error : float, optional
        Euclidean length by which the mean may be off with probability 95 %.
    epsilon, epsilon0 : float, optional, nats
        Of the shuffled batch, and of one report.
    delta : float, optional
        Default: a power of ten, at most 1e-6 and 1/(100 n).
    honest : float, optional
        People assumed honest, or their share; default all.
    randomizer : str, optional
        Default: the best one of pure local privacy.

    Raises
    ------
    ParameterError, InfeasibleError
        With what to relax.

    Examples
    --------
    >>> plan = plan_vectors(dimension=100, clip=1.0, n=10_000, epsilon0=4.0)
    >>> plan.mechanism.name, round(plan.error95, 3), round(plan.central.epsilon, 2)
    ('closest_direction', 0.081, 0.26)
    """
    whole("dimension", dimension, least=1, most=1 << 16)
    check_clip(clip)
    given = {"error": error, "epsilon": epsilon, "epsilon0": epsilon0}
    wishes = _wishes(given, n)
    pure = (kind.name for kind in VECTOR_RANDOMIZERS if kind.is_pure)  # a local delta is nothing to be had unasked
    names = tuple(pure) if randomizer is None else (VECTOR_RANDOMIZERS[randomizer].name,)
    questions = {name: _Question(VECTOR_RANDOMIZERS[name], dimension, clip, delta, honest) for name in names}
    people = n if n is not None else _least_people(questions, wishes, progress)
    for _ in range(1 if n is not None else 4):  # the search is rougher than what is promised at its end
        found, failures = _plans(questions, wishes, people, progress)
        plans = [one for one in found.values() if isinstance(one, VectorPlan)]
        if plans:
            break
        people = math.ceil(1.002 * people)
    else:
        raise min(failures, key=_nearest) if failures else ParameterError("; ".join(map(str, found.values())))
    best = min(plans, key=lambda one: one.central.epsilon if "error" in wishes else one.error95)
    others = {name: one for name, one in found.items() if one is not best}
    return VectorPlan(best.mechanism, best.n, best.central, others)


def _plans(
    questions: dict[str, _Question], wishes: dict[str, float], n: int, progress: Progress
) -> tuple[dict[str, VectorPlan | str], list[ParameterError]]:
    """What each kind makes of the wishes, and the refusals."""
    found: dict[str, VectorPlan | str] = {}
    failures: list[ParameterError] = []
    for done, (name, question) in enumerate(questions.items()):
        progress("fit the randomizers", done, len(questions))
        try:
            found[name] = question.plan(wishes, n)
        except (ParameterError, UnsupportedError) as fault:
            found[name] = str(fault)
            failures += [fault] if isinstance(fault, ParameterError) else []
    progress("fit the randomizers", len(questions), len(questions))
    return found, failures


def _wishes(given: dict[str, float | None], n: int | None) -> dict[str, float]:
    if n is None:
        return check_wishes(dict(given))
    whole("n", n, least=1, most=MOST_PEOPLE)
    wishes = {name: positive(name, value) for name, value in given.items() if value is not None}
    if "epsilon0" in wishes and len(wishes) > 1:
        raise ParameterError("with `n` and `epsilon0` error and epsilon follow: leave them out.")
    if not wishes:
        raise ParameterError("with `n`, give one of `error`, `epsilon` and `epsilon0`, or both first ones.")
    if wishes.get("epsilon0", LEAST) > 700.0:
        raise refuse("epsilon0", "above 0 and at most 700", wishes["epsilon0"])
    return wishes


def _least_people(questions: dict[str, _Question], wishes: dict[str, float], progress: Progress) -> int:
    best = math.inf
    for done, question in enumerate(questions.values()):
        progress("how many people each randomizer needs", done, len(questions))
        best = min(best, question.people(wishes))
    if math.isinf(best):
        listed = " and ".join(f"`{name}` = {value:g}" for name, value in wishes.items())
        raise ParameterError(f"{listed} cannot both hold with any number of people up to {MOST_PEOPLE:,}.")
    return math.ceil(best)


def least(true: Callable[[float], bool], low: float, high: float, *, tolerance: float = TOLERANCE) -> float:
    """The least number from `low` to `high` at which a monotone condition is true, from above; else infinity."""
    if true(low):
        return low
    if not true(high):
        return math.inf
    while high > (1.0 + tolerance) * low and math.ceil(high) - low > 1e-9:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if true(middle) else (middle, high)
    return high


def infeasible(what: str, n: int, ways: dict[str, float]) -> InfeasibleError:
    """What is asked for is out of reach: each of these changes alone is enough."""
    words = {"error": "allow an error of {}", "epsilon": "allow epsilon {}", "n": "collect {} people"}
    rounded = {
        name: f"{math.ceil(value):,}" if name == "n" else round_up_to_three_digits(value)
        for name, value in ways.items()
        if math.isfinite(value)
    }
    listed = (
        " or ".join(words[name].format(value) for name, value in rounded.items())
        or "use another randomizer, or a larger delta"
    )
    numbers = [(name, float(value.replace(",", ""))) for name, value in rounded.items()]
    return InfeasibleError(f"{what} cannot be had from {n:,} people: {listed}.", numbers)


def _nearest(fault: ParameterError) -> float:
    """Of several refusals the one that asks for the smallest error."""
    return float(dict(getattr(fault, "ways", ())).get("error", math.inf))

"""The planner's search: the epsilon0 of one kind of randomizer, or the number of people, that is enough."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import asinh, ceil, inf, log, sqrt
from typing import Any, TypeVar

from dovetail.account.accountant import Accountant
from dovetail.account.amplify import amplify
from dovetail.account.bound import bracket_root
from dovetail.account.expected_positive_part import POINTS
from dovetail.core.checks import MOST_PEOPLE, nearest, real, refuse, whole
from dovetail.core.errors import ParameterError
from dovetail.core.guarantee import CentralDP
from dovetail.core.progress import Progress, silent
from dovetail.core.stages import RANDOMIZERS, FrequencyRandomizer, NumericRandomizer, Randomizer
from dovetail.estimate.accuracy import Accuracy, predict_accuracy
from dovetail.plan.requirements import Requirements

Made = TypeVar("Made", bound=Randomizer)
Maker = Callable[[float, int], FrequencyRandomizer | NumericRandomizer]  # (epsilon0, n)


@dataclass(frozen=True)
class RandomizerFamily:
    """Randomizers of one kind, one for each epsilon0.

    Parameters
    ----------
    name : str
    make : function of epsilon0 and n
        Refuses, with ParameterError, what the kind cannot do.
    largest_epsilon0 : float, nats
    breaks : tuple of float
        Ascending epsilon0 after which the kind changes its shape and the error jumps up; it falls in between.
    burden : str
        Why it is not recommended for this many people and values, although it would do.
    others : tuple of RandomizerFamily
        The same kind with other settings: each is calibrated, and the best is taken.
    """

    name: str
    make: Maker
    largest_epsilon0: float = 700.0
    breaks: tuple[float, ...] = ()
    burden: str = ""
    others: tuple[RandomizerFamily, ...] = ()

    @classmethod
    def of(cls, kind: type[Randomizer], requirements: Requirements) -> RandomizerFamily:
        """Family of a declared randomizer for these values and people."""
        build: Any = kind
        if requirements.k is None or not issubclass(kind, FrequencyRandomizer):
            shapes = _shapes(build, requirements)
            first, *others = (cls(kind.name, shape, kind.largest_epsilon) for shape in shapes)
            return replace(first, others=tuple(others))
        k = requirements.k
        return cls(
            kind.name,
            lambda epsilon0, n: promising(lambda epsilon: build(k=k, epsilon=epsilon), epsilon0),
            largest_epsilon0=kind.largest_epsilon,
            breaks=kind.breaks(k),
            burden=kind.burden(k, requirements.n),
        )


def families(requirements: Requirements) -> tuple[RandomizerFamily, ...]:
    """The kinds that can answer the question, whichever of them was asked for.

    Those that need settings of their own are left out: nobody has said what they are to be.
    """
    kinds = [kind for kind in RANDOMIZERS if kind.question == requirements.question]
    return tuple(
        RandomizerFamily.of(kind, requirements) for kind in kinds if not any(one.required for one in kind.settings())
    )


def shapes_of(name: str, requirements: Requirements) -> tuple[RandomizerFamily, ...]:
    """Every way to make the kind of this name."""
    [family] = (family for family in families(requirements) if family.name == name)
    return (family, *family.others)


def select_families(requirements: Requirements) -> tuple[RandomizerFamily, ...]:
    """All kinds without a burden, or the one that the requirements name."""
    every = families(requirements)
    if requirements.randomizer is None:
        return tuple(family for family in every if not family.burden)
    asked = requirements.randomizer
    chosen = tuple(family for family in every if isinstance(asked, str) and family.name == asked)
    if not chosen:
        names = [family.name for family in every]
        listed = ", ".join(f'"{name}"' for name in names)
        hint = nearest(asked, names)
        admissible = f"one of {listed} for the question {requirements.question}"
        raise refuse("randomizer", admissible, asked, hint=hint if hint.endswith("?") else "")
    return chosen


def _shapes(build: Any, requirements: Requirements) -> tuple[Maker, ...]:
    """Ways to make a numeric randomizer of an epsilon0: those that the kind itself declares, or the only one."""
    assert requirements.lower is not None and requirements.upper is not None
    public = {"lower": requirements.lower, "upper": requirements.upper, "grid": requirements.grid}

    def maker(shape: Callable[[float], NumericRandomizer]) -> Maker:
        return lambda epsilon0, n: promising(shape, epsilon0)

    every = build.shapes(**public) or (lambda epsilon0: build(epsilon=epsilon0, **public),)
    return tuple(maker(shape) for shape in every)


def promising(make: Callable[[float], Made], epsilon0: float) -> Made:
    """The randomizer whose guarantee is `epsilon0`, by its parameter `epsilon`; a loose one promises more than that.

    Its guarantee must grow with the parameter: the largest one at which it is at most `epsilon0`, to 1e-12 of itself.
    """
    found = make(epsilon0)
    if found.guarantee.epsilon <= epsilon0:
        return found
    low, high = epsilon0, epsilon0
    while found.guarantee.epsilon > epsilon0:
        low, high = low / 2.0, low
        found = make(low)
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        tried = make(middle)
        if tried.guarantee.epsilon <= epsilon0:
            low, found = middle, tried
        else:
            high = middle
    return found


# Requirements solved for the epsilon0 of one kind of randomizer, or for n; every answer is an evaluated point.


EPSILON0_TOLERANCE = 1e-6  # of the smallest epsilon0
SEARCH_TOLERANCE = 1e-3  # of the smallest n
LARGEST_TOLERANCE = 1e-4  # of the largest epsilon0
MARGIN = 2e-5  # the epsilon of an answer is searched to 1e-5, and is not to exceed what was asked for
SEARCH_POINTS = POINTS // 4  # a bound on epsilon about 1e-4 of itself from the finer one, in a quarter of the time


def predict_error95(family: RandomizerFamily, epsilon0: float, requirements: Requirements, *, n: int) -> float:
    """95 % error of this kind; infinite where it cannot be built."""
    try:
        return predict_accuracy(family.make(epsilon0, n), n=n, shares=requirements.shares).error95
    except ParameterError:
        return inf


def guaranteed_epsilon(
    family: RandomizerFamily, epsilon0: float, requirements: Requirements, *, n: int, points: int = POINTS
) -> float:
    """The epsilon of `CalibratedRandomizer.central`, without its other fields; for searches, with fewer points."""
    honest = requirements.honest_with_anyone(n)
    return Accountant(family.make(epsilon0, n), n=honest).epsilon(requirements.delta, points=points)


def log_excess(
    family: RandomizerFamily, epsilon0: float, requirements: Requirements, *, epsilon: float, n: int
) -> float:
    """At most 0 where `guaranteed_epsilon` is at most `epsilon`: one evaluation instead of a search for it."""
    honest = requirements.honest_with_anyone(n)
    known, asked = Accountant(family.make(epsilon0, n), n=honest), epsilon * (1.0 - MARGIN)
    return known.log_ratio(asked, delta=requirements.delta, points=SEARCH_POINTS)


def steepness_of_delta(requirements: Requirements) -> float:
    """About -d log delta / d log epsilon where delta is that of the requirements."""
    return 2.0 * log(1.0 / max(requirements.delta, 1e-300)) + 1e-3


def smallest_epsilon0(family: RandomizerFamily, requirements: Requirements, *, error: float, n: int) -> float | None:
    """The least epsilon0 with an error of at most `error`; None where no epsilon0 reaches it.

    The error falls between breaks and so does its value from break to break: the first piece that ends low enough
    holds the answer.
    """
    ends = (*family.breaks, family.largest_epsilon0)
    piece = bisect_left(ends, True, key=lambda end: predict_error95(family, end, requirements, n=n) <= error)
    if piece == len(ends):
        return None
    start = ends[piece - 1] * (1.0 + 1e-9) if piece else 0.0

    def log_ratio(epsilon0: float) -> float:
        if epsilon0 <= start:
            return inf
        reached = predict_error95(family, epsilon0, requirements, n=n)
        return log(reached / error) if reached > 0.0 else -inf

    guess = min(max(1.0, 1.01 * start), ends[piece])
    return bracket_root(log_ratio, guess, steepness=1.0, most=ends[piece], tolerance=EPSILON0_TOLERANCE)[1]


def best_epsilon0(family: RandomizerFamily, requirements: Requirements, *, epsilon: float, n: int) -> float:
    """The epsilon0 with the smallest error among those whose shuffled reports are (epsilon, delta)-private."""
    largest = largest_epsilon0(family, requirements, epsilon=epsilon, n=n)
    before = family.breaks[: bisect_left(family.breaks, largest)][-1:]  # a little less may be more accurate
    return min((largest, *before), key=lambda epsilon0: predict_error95(family, epsilon0, requirements, n=n))


def largest_epsilon0(family: RandomizerFamily, requirements: Requirements, *, epsilon: float, n: int) -> float:
    """The largest epsilon0 found admissible: every randomizer's, or more where this kind amplifies more."""
    most, honest = family.largest_epsilon0, requirements.honest_with_anyone(n)
    if requirements.delta == 0.0:
        return min(epsilon, most)

    @cache
    def excess(epsilon0: float) -> float:
        return log_excess(family, epsilon0, requirements, epsilon=epsilon, n=n)

    spread = steepness_of_delta(requirements)
    start = min(max(2.0 * asinh(0.5 * epsilon * sqrt(honest / spread)), epsilon), most)  # stronger clones, as normals
    if excess(start) <= 0.0 and excess(most) <= 0.0:
        return most
    found, _ = bracket_root(
        lambda epsilon0: -excess(epsilon0) or 1e-12,
        start,
        steepness=spread * max(1.0, start / 2.0),
        most=most,
        tolerance=LARGEST_TOLERANCE,
    )
    return max(found, min(epsilon, most))  # shuffling never takes privacy away


def smallest_n(name: str, requirements: Requirements, *, error: float, epsilon: float) -> int | None:
    """The least n, to within a thousandth, at which a kind meets both with the same share of honest people."""
    least: int | None = None
    for family in shapes_of(name, requirements):
        n = _smallest_n(family, requirements, error=error, epsilon=epsilon, most=least or MOST_PEOPLE)
        least = n or least
    return least


def _smallest_n(
    family: RandomizerFamily, requirements: Requirements, *, error: float, epsilon: float, most: int
) -> int | None:
    """The same of one shape of the kind, if it is at most `most`."""

    def log_ratio(people: float) -> float:
        n = max(1, ceil(people))
        epsilon0 = smallest_epsilon0(family, requirements, error=error, n=n)
        return inf if epsilon0 is None else log_excess(family, epsilon0, requirements, epsilon=epsilon, n=n)

    if log_ratio(1) <= 0.0:
        return 1
    if log_ratio(most) > 0.0:
        return None
    steepness = steepness_of_delta(requirements)  # with a smaller epsilon0, and more people to hide among
    guess = min(requirements.n, 0.95 * most)
    return ceil(bracket_root(log_ratio, guess, steepness=steepness, most=most, tolerance=SEARCH_TOLERANCE)[1])


# One kind of randomizer with its epsilon0 calibrated to the requirements, and the recommendation among the kinds.


NEAR_BEST = 1.05  # within a twentieth the shorter report is worth more


@dataclass(frozen=True)
class CalibratedRandomizer:
    """A randomizer that meets the requirements, with its accuracy and a bound on its central epsilon to about 1e-4.

    `central`, the guarantee with all its digits and all that stands beside its epsilon, takes several times as long:
    it is worked out for the kind that is recommended.
    """

    family: RandomizerFamily
    randomizer: FrequencyRandomizer | NumericRandomizer
    accuracy: Accuracy
    epsilon: float
    requirements: Requirements

    @property
    def epsilon0(self) -> float:
        """Local epsilon of one report."""
        return self.randomizer.guarantee.epsilon

    @cached_property
    def central(self) -> CentralDP:
        """The central guarantee of n people of whom some are honest, and sit in the smallest group."""
        asked = self.requirements
        honest, mixed = asked.honest_with_anyone(asked.n), asked.smallest_group or asked.n
        return amplify(self.randomizer, n=max(honest, mixed), delta=asked.delta, honest=honest)

    @property
    def report_bits(self) -> int:
        """Size of one report."""
        return self.randomizer.report_bits


@dataclass(frozen=True)
class Alternative:
    """One row of the comparison: a kind of randomizer with what it would do, or why it would not do."""

    randomizer: str
    epsilon0: float | None = None
    epsilon: float | None = None
    error95: float | None = None
    report_bits: int | None = None
    reason: str = ""

    @classmethod
    def of(cls, calibrated: CalibratedRandomizer) -> Alternative:
        """The row of a calibrated randomizer."""
        return cls(
            calibrated.family.name,
            calibrated.epsilon0,
            calibrated.epsilon,
            calibrated.accuracy.error95,
            calibrated.report_bits,
            calibrated.family.burden,
        )


def calibrate(family: RandomizerFamily, requirements: Requirements) -> CalibratedRandomizer | str:
    """This kind with the epsilon0 and settings that suit the requirements best, or why it cannot meet them."""
    best = _calibrate_member(family, requirements)
    for other in family.others:
        if isinstance(best, str) or _may_beat(other, best, requirements):
            found = _calibrate_member(other, requirements)
            if isinstance(best, str) or (
                not isinstance(found, str) and objective(found, requirements) < objective(best, requirements)
            ):
                best = found
    return best


def _may_beat(family: RandomizerFamily, best: CalibratedRandomizer, requirements: Requirements) -> bool:
    """True if it is worth a search: for an epsilon, the least epsilon0 that is as accurate must keep it."""
    if requirements.error is not None or requirements.epsilon is None:
        return True
    epsilon0 = smallest_epsilon0(family, requirements, error=best.accuracy.error95, n=requirements.n)
    if epsilon0 is None:
        return False
    return log_excess(family, epsilon0, requirements, epsilon=requirements.epsilon, n=requirements.n) <= 0.0


def _calibrate_member(family: RandomizerFamily, requirements: Requirements) -> CalibratedRandomizer | str:
    try:
        if requirements.error is not None:
            epsilon0 = smallest_epsilon0(family, requirements, error=requirements.error, n=requirements.n)
            if epsilon0 is None:
                return f"no epsilon0 up to {family.largest_epsilon0:g} reaches this error"
            return evaluate_at_epsilon0(family, epsilon0, requirements)
        if requirements.epsilon is not None:
            return _at_epsilon(family, requirements, requirements.epsilon)
        assert requirements.epsilon0 is not None
        return evaluate_at_epsilon0(family, requirements.epsilon0, requirements)
    except ParameterError as error:
        return str(error)


def _at_epsilon(family: RandomizerFamily, requirements: Requirements, epsilon: float) -> CalibratedRandomizer:
    """This kind with the smallest error at that epsilon."""
    asked = epsilon
    while True:  # as a rule once: a bound that does not fall in epsilon everywhere may be missed by a search
        epsilon0 = best_epsilon0(family, requirements, epsilon=asked, n=requirements.n)
        found = evaluate_at_epsilon0(family, epsilon0, requirements)
        if found.epsilon <= epsilon:
            return found
        asked *= 0.999 * epsilon / found.epsilon


def evaluate_at_epsilon0(
    family: RandomizerFamily, epsilon0: float, requirements: Requirements
) -> CalibratedRandomizer:
    """This kind at a given epsilon0."""
    randomizer = family.make(epsilon0, requirements.n)
    return CalibratedRandomizer(
        family,
        randomizer,
        predict_accuracy(randomizer, n=requirements.n, shares=requirements.shares),
        guaranteed_epsilon(family, epsilon0, requirements, n=requirements.n, points=SEARCH_POINTS),
        requirements,
    )


def objective(calibrated: CalibratedRandomizer, requirements: Requirements) -> float:
    """Objective of the search: epsilon where the error is given, otherwise the error."""
    return calibrated.epsilon if requirements.error is not None else calibrated.accuracy.error95


def recommend(candidates: Sequence[CalibratedRandomizer], requirements: Requirements) -> CalibratedRandomizer:
    """The shortest report among those whose objective is within a twentieth of the least."""
    least = min(objective(one, requirements) for one in candidates)
    near_best = [one for one in candidates if objective(one, requirements) <= NEAR_BEST * least]
    return min(near_best, key=lambda one: (one.report_bits, objective(one, requirements)))


# How many people: the least n at which two wishes hold together, and what of the question depends on n.


Build = Callable[[int], Requirements]

FIRST_GUESS = 10_000  # people, where the search begins
LARGEST_DELTA = 1e-6


def default_delta(n: int) -> float:
    """A power of ten, at most 1e-6 and at most a hundredth of 1/n.

    A guarantee that fails with this probability for each of n people fails for fewer than one person in a hundred
    collections.
    """
    return min(LARGEST_DELTA, float(f"1e-{len(str(100 * n - 1))}"))


def honest_people(honest: float | None, n: int) -> int:
    """A number of people, or a share of n that lies strictly between 0 and 1; default all."""
    if honest is None:
        return n
    if isinstance(honest, float) and 0.0 < honest < 1.0:
        return max(1, int(n * honest))
    return whole("honest", honest, least=1, most=n)


def smallest_group_of(n: int, *, groups: int | None, smallest_group: int | None) -> int | None:
    """People in the smallest of the groups that are shuffled each by itself; None where everybody is shuffled."""
    if groups is None:
        return smallest_group
    if smallest_group is not None:
        raise ParameterError("give `groups`, which are then equally large, or `smallest_group`, not both.")
    return n // whole("groups", groups, least=1, most=max(1, n // 2))


def least_people(
    wishes: dict[str, Any], build: Build, *, guess: int = FIRST_GUESS, progress: Progress = silent
) -> Requirements:
    r"""The requirements at the least n, to within a thousandth, at which two wishes hold together.

    Parameters
    ----------
    wishes : two of error, epsilon, epsilon0
        With `epsilon0` the device's noise is given and n follows from the other wish.
    build : function of n
        The checked requirements for n people; refuses an n that is too small.
    guess : int
        An n that is large enough to be asked about.

    Raises
    ------
    ParameterError
        When no n up to 1e12 is enough.
    """
    best, name = MOST_PEOPLE + 1, None
    admitted = select_families(build(guess))
    for done, family in enumerate(admitted):
        progress("how many people each randomizer needs", done, len(admitted))
        n = _least_n(_excess(family.name, wishes, build), most=min(best, MOST_PEOPLE))
        if n is not None and n < best:
            best, name = n, family.name
    if name is None:
        listed = " and ".join(f"`{name}` = {value:g}" for name, value in wishes.items())
        raise ParameterError(
            f"{listed} cannot both hold with any number of people up to {MOST_PEOPLE:,}: allow more of one of them."
        )
    return replace(build(best), randomizer=name)


def _excess(name: str, wishes: dict[str, Any], build: Build) -> Callable[[float], float]:
    """The logarithm of what n people reach over what is wished: at most 0 where it is enough."""

    kind = RANDOMIZERS[name]

    def excess(people: float) -> float:
        n = max(1, ceil(people))
        try:
            asked = replace(build(n), randomizer=name)
            return _log_ratio(RandomizerFamily.of(kind, asked), wishes, asked, n)
        except ParameterError:  # too few people for these groups, or for this kind
            return inf

    return excess


def _log_ratio(family: Any, wishes: dict[str, Any], asked: Requirements, n: int) -> float:
    if "epsilon0" not in wishes:
        epsilon0 = smallest_epsilon0(family, asked, error=wishes["error"], n=n)
        return inf if epsilon0 is None else log_excess(family, epsilon0, asked, epsilon=wishes["epsilon"], n=n)
    if "error" in wishes:
        return log(max(predict_error95(family, wishes["epsilon0"], asked, n=n), 1e-300) / wishes["error"])
    return log_excess(family, wishes["epsilon0"], asked, epsilon=wishes["epsilon"], n=n)


def _least_n(excess: Callable[[float], float], *, most: int) -> int | None:
    """The least n up to `most`, which may be what another kind needs."""
    if excess(1) <= 0.0:
        return 1
    if excess(most) > 0.0:
        return None
    guess = min(FIRST_GUESS, 0.95 * most)
    return ceil(bracket_root(excess, guess, steepness=1.0, most=most, tolerance=SEARCH_TOLERANCE)[1])


def check_wishes(wishes: dict[str, Any]) -> dict[str, float]:
    """Exactly two of the three, as numbers."""
    given = {name: value for name, value in wishes.items() if value is not None}
    if len(given) != 2:
        raise ParameterError(
            "without `n`, give two of `error`, `epsilon` and `epsilon0`: n is the least number of people for both; "
            f"got {', '.join(given) or 'none of them'}."
        )
    for name, value in given.items():
        if real(name, value) <= 0.0:
            raise refuse(name, "above 0", value)
    return given

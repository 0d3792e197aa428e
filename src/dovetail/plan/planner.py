"""The planner: accuracy, epsilon0, epsilon, people and risk, solved in the direction that was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any, Literal

from dovetail.core.checks import MOST_PEOPLE, refuse, whole
from dovetail.core.display import Display, Grid, counted, displayed_by, error_in_words, upward
from dovetail.core.errors import ParameterError
from dovetail.core.guarantee import CentralDP
from dovetail.core.progress import Progress, silent
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer
from dovetail.core.verdict import Verdict, judge_central, warnings_of
from dovetail.estimate.accuracy import Accuracy, PopulationShape, predict_accuracy
from dovetail.plan.infeasible import infeasible_accuracy, infeasible_combination
from dovetail.plan.requirements import Requirements, Risk, assess_risk, name_of_shuffle
from dovetail.plan.search import (
    FIRST_GUESS,
    NEAR_BEST,
    SEARCH_POINTS,
    Alternative,
    CalibratedRandomizer,
    RandomizerFamily,
    calibrate,
    check_wishes,
    default_delta,
    families,
    guaranteed_epsilon,
    honest_people,
    least_people,
    log_excess,
    objective,
    predict_error95,
    recommend,
    select_families,
    smallest_epsilon0,
    smallest_group_of,
    smallest_n,
)

# What a plan shows of itself in a notebook: what to collect with, what is promised, and the price of accuracy.


def show_plan(plan: Any) -> Display:
    """A `CollectionPlan` in words."""
    name, people = plan.randomizer.label, counted(plan.requirements.n, "person", "people")
    error = _error(plan, plan.error95)
    what = "one share" if plan.requirements.question == "frequency" else "the mean"
    promised = f"epsilon {upward(plan.epsilon)} at delta {upward(plan.central.delta)}"
    return Display(
        brief=f"CollectionPlan for {people}: {name}, epsilon0 {upward(plan.epsilon0)}\n"
        f"{promised}; {what} to within {error} with 95 % probability",
        title=f"Plan for {people}: {name}",
        facts=(
            ("one report promises", f"epsilon0 {upward(plan.epsilon0)}, whatever the shuffler does"),
            ("the shuffled batch promises", promised),
            ("protection of one person", plan.verdict.sentence()),
            ("who has to be honest", plan.central.lines()[1].rpartition(": ")[0]),
            ("error", f"{what} is within {error} of the truth with 95 % probability"),
        ),
        grid=Grid(
            ("epsilon0", "epsilon", "95 % error"),
            [(upward(one.epsilon0), upward(one.epsilon), _error(plan, one.error95)) for one in plan.tradeoff],
        ),
        notes=("The table is the trade-off: the same randomizer with more and with less noise.", *plan.notes),
    )


def _error(plan: Any, value: float) -> str:
    return error_in_words(value, share=plan.requirements.question == "frequency")


# The recommended kind: what a plan says first, before what takes longer to work out is known.


Calibrated = Mapping[str, CalibratedRandomizer | str]

WHAT_IT_TAKES = "what it would take instead"  # the step before infeasible requirements are refused
WIDER = 1.001  # more than searches are rough by


@dataclass(frozen=True)
class Recommendation:
    """Recommended randomizer with its epsilon0, its error, and an upper bound on its central epsilon.

    Parameters
    ----------
    requirements : Requirements
    chosen : CalibratedRandomizer
    calibrated : mapping of str
        By name, the kinds that came near the best of those before, or why they cannot meet the requirements.
    least : int or None
        The least n, where the number of people was asked for.
    """

    requirements: Requirements
    chosen: CalibratedRandomizer
    calibrated: Calibrated = field(repr=False, compare=False)
    least: int | None = None

    @property
    def randomizer(self) -> FrequencyRandomizer | NumericRandomizer:
        """Randomizer that every device runs."""
        return self.chosen.randomizer

    @property
    def epsilon0(self) -> float:
        """Local epsilon of one report."""
        return self.chosen.epsilon0

    @property
    def epsilon(self) -> float:
        """An upper bound on the central epsilon, as the plan's is, searched more coarsely: 1e-4 apart."""
        return self.chosen.epsilon

    @property
    def error95(self) -> float:
        """The plan's."""
        return self.chosen.accuracy.error95


def recommend_randomizer(requirements: Requirements, *, least: int | None, progress: Progress) -> Recommendation:
    """Calibrate every kind that the requirements admit, and choose; ParameterError where none meets them."""
    admitted, calibrated = select_families(requirements), dict[str, CalibratedRandomizer | str]()
    for done, family in enumerate(sorted(admitted, key=lambda one: _rank(one, requirements))):
        progress("calibrate every randomizer", done, len(admitted))
        if all(_may_be_chosen(family, one, requirements) for one in _meeting(calibrated)):
            calibrated[family.name] = calibrate(family, requirements)
    best = _best(admitted, calibrated, requirements, progress)
    return Recommendation(requirements, best, calibrated, least)


def _rank(family: RandomizerFamily, requirements: Requirements) -> float:
    """Lower is likelier to be best, as far as the error tells; what is tried later is mostly ruled out at once."""
    if requirements.error is None:
        return predict_error95(family, requirements.epsilon0 or 1.0, requirements, n=requirements.n)
    found = smallest_epsilon0(family, requirements, error=requirements.error, n=requirements.n)
    return inf if found is None else found


def _meeting(calibrated: Calibrated) -> list[CalibratedRandomizer]:
    return [one for one in calibrated.values() if not isinstance(one, str)]


def _may_be_chosen(family: RandomizerFamily, other: CalibratedRandomizer, requirements: Requirements) -> bool:
    """True if a search may end within a twentieth of another kind, and ahead of it if its reports are longer.

    One or two evaluations instead of a dozen; longer reports that are no better are those of the same mechanism.
    """
    best = objective(other, requirements)
    limit = NEAR_BEST * WIDER * best
    if not 0.0 < limit < inf:
        return True
    near = [one for one in (family, *family.others) if _reaches(one, limit, requirements)]
    if requirements.error is not None and requirements.epsilon is not None:  # each that may meet both is asked
        return bool(near)
    return any(not _is_longer(one, other) or _reaches(one, best / WIDER, requirements) for one in near)


def _is_longer(family: RandomizerFamily, other: CalibratedRandomizer) -> bool:
    try:
        return family.make(other.epsilon0, other.requirements.n).report_bits > other.report_bits
    except ParameterError:
        return False


def _reaches(family: RandomizerFamily, limit: float, requirements: Requirements) -> bool:
    error, epsilon, n = requirements.error, requirements.epsilon, requirements.n
    if requirements.epsilon0 is not None:
        return predict_error95(family, requirements.epsilon0, requirements, n=n) <= limit
    error, epsilon = (limit, epsilon) if error is None else (error, limit)
    assert epsilon is not None
    try:
        epsilon0 = smallest_epsilon0(family, requirements, error=error, n=n)
        return epsilon0 is not None and log_excess(family, epsilon0, requirements, epsilon=epsilon, n=n) <= 0.0
    except ParameterError:  # `calibrate` says why
        return True


def _best(
    admitted: tuple[RandomizerFamily, ...], calibrated: Calibrated, requirements: Requirements, progress: Progress
) -> CalibratedRandomizer:
    kept = (calibrated.get(family.name, "") for family in admitted)
    feasible = [one for one in kept if not isinstance(one, str)]
    if not feasible:
        progress(WHAT_IT_TAKES, 0, 1)
        raise infeasible_accuracy(admitted, [str(calibrated[family.name]) for family in admitted], requirements)
    best = recommend(feasible, requirements)
    if requirements.error is None or requirements.epsilon is None or best.epsilon <= requirements.epsilon:
        return best
    best = min(feasible, key=lambda one: one.epsilon)
    if best.epsilon > requirements.epsilon:
        progress(WHAT_IT_TAKES, 0, 1)
        raise infeasible_combination(best, admitted, requirements)
    return best


TRADEOFF_FACTORS = tuple(1.25**step for step in range(-6, 6))  # epsilon0 of the trade-off, in units of the answer's


@dataclass(frozen=True)
class TradeoffRow:
    """One row of the trade-off: more noise above, less noise below."""

    epsilon0: float
    epsilon: float
    error95: float
    vulnerability: float | None
    gain: float | None


@displayed_by(show_plan)
@dataclass(frozen=True)
class CollectionPlan:
    """Plan of a collection: randomizer, guarantee, leakage and accuracy.

    Attributes
    ----------
    requirements : Requirements
        The question, and what is required of the answer.
    randomizer : Randomizer
        What every device runs, with its epsilon0.
    accuracy : Accuracy
        Predicted error, for the worst shares unless `requirements.shares` is "flat".
    flat : Accuracy or None
        The same where every value is equally frequent; None for a mean.
    in_smallest_group : Accuracy or None
        The same for the estimate of the smallest group alone; None where everybody is shuffled.
    central : CentralDP
        The guarantee after a uniform shuffle, of everybody or inside the smallest group, in three lines.
    risk : Risk
        Exact vulnerability among the honest people.
    smallest_n : int or None
        The least n, to within a thousandth, at which this kind of randomizer meets both error and epsilon with the
        same share of honest people; None with `smallest_n_reason`.
    report_bits : int
        Size of one report.
    calibrated : mapping of str
        By name, the kinds that came near the best, or why they cannot meet the requirements.

    Raises
    ------
    UnsupportedError
        Nowhere by itself: what cannot be met is refused by `plan_collection`, which makes it.

    Examples
    --------
    >>> plan = plan_collection(question="frequency", n=10_000, k=4, error=0.03)
    >>> plan.error95 <= 0.03, plan.epsilon < plan.epsilon0, plan.shuffler
    (True, True, 'uniform')
    """

    requirements: Requirements
    randomizer: FrequencyRandomizer | NumericRandomizer
    accuracy: Accuracy
    flat: Accuracy | None
    in_smallest_group: Accuracy | None
    central: CentralDP
    risk: Risk
    smallest_n: int | None
    smallest_n_reason: str
    report_bits: int
    calibrated: Calibrated = field(repr=False, compare=False)

    @cached_property
    def tradeoff(self) -> tuple[TradeoffRow, ...]:
        """The same kind of randomizer with more and with less noise; the answer is one of the rows."""
        return tuple(_tradeoff(self.chosen, self.risk, self.requirements))

    @cached_property
    def alternatives(self) -> tuple[Alternative, ...]:
        """The other kinds, each with the epsilon0 that suits the requirements best."""
        others = [family for family in families(self.requirements) if family.name != self.randomizer.name]
        found = {one.name: self.calibrated.get(one.name) or calibrate(one, self.requirements) for one in others}
        return tuple(
            Alternative(name, reason=one) if isinstance(one, str) else Alternative.of(one)
            for name, one in found.items()
        )

    @property
    def chosen(self) -> CalibratedRandomizer:
        """The recommended kind as it was calibrated."""
        chosen = self.calibrated[self.randomizer.name]
        assert not isinstance(chosen, str)
        return chosen

    @property
    def shuffler(self) -> str:
        """Name of the shuffle that the central guarantee assumes."""
        return name_of_shuffle(grouped=self.requirements.smallest_group is not None)

    @property
    def epsilon0(self) -> float:
        """Local epsilon of one report: what remains when the shuffler colludes."""
        return self.central.colluding

    @property
    def epsilon(self) -> float:
        """Central epsilon to quote: honest shuffler, only the people assumed honest."""
        return self.central.epsilon

    @property
    def standard_error(self) -> float:
        """Of one share, or of the mean, among exactly these people."""
        return self.accuracy.standard_error

    @property
    def error95(self) -> float:
        """The estimate lies this close to the truth among exactly these people with probability 95 %."""
        return self.accuracy.error95

    @property
    def vulnerability(self) -> float | None:
        """Chance of naming one person's value in one try; None with `risk.reason`."""
        return self.risk.vulnerability

    @property
    def verdict(self) -> Verdict:
        """Verdict on the protection of one person, by whom one has to trust; the same as in a report."""
        return judge_central(self.central, local_delta=self.randomizer.guarantee.delta)

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings about this plan."""
        return tuple(_notes(self))


def plan_collection(
    *,
    question: Literal["frequency", "mean"],
    n: int | None = None,
    delta: float | None = None,
    k: int | None = None,
    lower: float | None = None,
    upper: float | None = None,
    grid: float | None = None,
    honest: float | None = None,
    groups: int | None = None,
    smallest_group: int | None = None,
    error: float | None = None,
    epsilon: float | None = None,
    epsilon0: float | None = None,
    randomizer: str | None = None,
    shares: PopulationShape = "any",
    progress: Progress = silent,
) -> CollectionPlan:
    r"""Plan a collection from its requirements.

    Without `n`, two of `error`, `epsilon` and `epsilon0` ask for the least number of people at which both hold.
    With it, `error` asks for the least noise budget that reaches it, and recommends the randomizer with the smallest
    central epsilon; `epsilon` and `epsilon0` ask for the best accuracy they buy. `error` and `epsilon` together ask
    whether both can be had, and from which n on. Among randomizers that are equally good to within a twentieth the
    one with the shortest report is taken.

    Parameters
    ----------
    question : "frequency" or "mean"
        The shares of k values, or the mean of a number in [lower, upper].
    n : int, 1 .. 1e12, optional
        People who will answer, once each.
    delta : float, at least 0, below 1, optional
        Of the central guarantee; default `default_delta(n)`, at most a hundredth of 1/n.
    k : int, 2 to 2^24
        Frequency: number of values.
    lower, upper : float
        Mean: public range of the number.
    grid : float, optional
        Mean: width of a step; default the one, of those that a randomizer offers, which admits the most.
    honest : int, 1 .. n, or a share above 0 and below 1, optional
        People assumed to follow the protocol and to keep their reports secret; default all.
    groups, smallest_group : int, optional
        Reports are shuffled inside each of so many equal groups, or of groups of which the smallest has so many
        people: only they hide each other. Default: everybody is shuffled with everybody.
    error : float, above 0 and below the width of the range (1 for shares)
        What one share (or the mean) may be off with probability 95 %, about exactly these n people.
    epsilon : float, above 0, at most 700, nats
        Central epsilon, with an honest shuffler and the people assumed honest.
    epsilon0 : float, above 0, at most 700, nats
        Local epsilon of one report.
    randomizer : str, optional
        Force "krr", "hadamard", "unary" or "local_hashing" ("laplace" for a mean) instead of the recommendation.
    shares : "any" or "flat"
        Frequency: whether the error has to hold whatever people hold (the default), or where every value is equally
        frequent, which is typical of the rare values of a large domain.
    progress : function of what is done, how many kinds of randomizers are done, and how many there are; optional

    Raises
    ------
    ParameterError
        Also for infeasible requirements: the message says which of them to relax, and how far.
    UnsupportedError
        Where people bring randomizers of their own (model H): no amplification theorem holds.

    Notes
    -----
    A third of a second, a second for k of a million, and thirteen times what the vulnerability takes. epsilon0 for an
    error is exact to 1e-6, for an epsilon to 1e-4 and rounded down. Where delta is nearly all that the answer spends,
    as for an epsilon of 1e-9, that leaves up to a third of epsilon unused.

    Examples
    --------
    >>> plan = plan_collection(question="frequency", k=4, n=100_000, error=0.01, delta=1e-8)
    >>> plan.randomizer.name, round(plan.epsilon0, 2), plan.epsilon < 0.02, round(plan.error95, 4)
    ('krr', 1.03, True, 0.01)

    Source
    ------
    Variances: the sources of the randomizers; central guarantee: `amplify`; vulnerability: `vulnerability`.
    """
    asked: dict[str, Any] = {
        "question": question, "k": k, "lower": lower, "upper": upper, "grid": grid, "randomizer": randomizer,
        "shares": shares, "n": n, "delta": delta, "honest": honest, "groups": groups,
        "smallest_group": smallest_group, "error": error, "epsilon": epsilon, "epsilon0": epsilon0,
    }  # fmt: skip
    return complete_plan(recommend_collection(progress=progress, **asked), progress)


def recommend_collection(
    *,
    n: int | None = None,
    delta: float | None = None,
    honest: float | None = None,
    groups: int | None = None,
    smallest_group: int | None = None,
    error: float | None = None,
    epsilon: float | None = None,
    epsilon0: float | None = None,
    progress: Progress = silent,
    **asked: Any,
) -> Recommendation:
    """Recommend what `plan_collection` does, in a third of its time: `complete_plan` works out the rest."""
    wishes = {"error": error, "epsilon": epsilon, "epsilon0": epsilon0}
    shuffled = {"groups": groups, "smallest_group": smallest_group}
    if n is None:
        requirements = _with_least_people(wishes, asked, shuffled, honest=honest, delta=delta, progress=progress)
    else:
        requirements = _requirements(n, {**asked, **wishes}, shuffled, honest=honest, delta=delta)
    return recommend_randomizer(requirements, least=requirements.n if n is None else None, progress=progress)


def _requirements(
    n: int, asked: dict[str, Any], shuffled: dict[str, int | None], *, honest: float | None, delta: float | None
) -> Requirements:
    """The checked requirements for n people."""
    n = whole("n", n, least=1, most=MOST_PEOPLE)
    return Requirements(
        n=n,
        honest=honest_people(honest, n),
        delta=default_delta(n) if delta is None else delta,
        smallest_group=smallest_group_of(n, **shuffled),
        **asked,
    )


def _with_least_people(
    wishes: dict[str, Any],
    asked: dict[str, Any],
    shuffled: dict[str, int | None],
    *,
    honest: float | None,
    delta: float | None,
    progress: Progress,
) -> Requirements:
    given = check_wishes(wishes)
    if shuffled["smallest_group"] is not None:
        raise ParameterError("without `n`, give the number of `groups` instead of `smallest_group`.")
    if honest is not None and not 0.0 < honest < 1.0:
        raise refuse("honest", "a share above 0 and below 1, because `n` is asked for", honest)
    guess = max(FIRST_GUESS, 2 * (shuffled["groups"] or 1))
    if "error" in given:
        _requirements(guess, {**asked, "error": given["error"]}, shuffled, honest=honest, delta=delta)  # refuses
    fixed = {"epsilon0": given["epsilon0"]} if "epsilon0" in given else given
    return least_people(
        given,
        lambda n: _requirements(n, {**asked, **fixed}, shuffled, honest=honest, delta=delta),
        guess=guess,
        progress=progress,
    )


def complete_plan(recommendation: Recommendation, progress: Progress = silent) -> CollectionPlan:
    """The plan that follows from a recommendation: its guarantee, what leaks, and from which n on it holds."""
    progress("say what that promises and what it leaks", 0, 1)
    requirements, best, least = recommendation.requirements, recommendation.chosen, recommendation.least
    smallest, reason = (least, "") if least is not None else _smallest_n(best.family.name, requirements)
    progress("say what that promises and what it leaks", 0, 1)
    central = best.central
    progress("say what that promises and what it leaks", 0, 1)
    return CollectionPlan(
        requirements=requirements,
        randomizer=best.randomizer,
        accuracy=best.accuracy,
        flat=None if requirements.k is None else predict_accuracy(best.randomizer, n=requirements.n, shares="flat"),
        in_smallest_group=None
        if requirements.smallest_group is None
        else predict_accuracy(best.randomizer, n=requirements.smallest_group, shares=requirements.shares),
        central=central,
        risk=assess_risk(best.randomizer, n=requirements.honest_with_anyone(requirements.n)),
        smallest_n=smallest,
        smallest_n_reason=reason,
        report_bits=best.report_bits,
        calibrated=recommendation.calibrated,
    )


def _smallest_n(name: str, requirements: Requirements) -> tuple[int | None, str]:
    if requirements.error is None or requirements.epsilon is None:
        return None, "every n meets this alone; give both an error and an epsilon to ask from which n on both hold"
    return smallest_n(name, requirements, error=requirements.error, epsilon=requirements.epsilon), ""


def _tradeoff(best: CalibratedRandomizer, risk: Risk, requirements: Requirements) -> Iterator[TradeoffRow]:
    trusted = requirements.honest_with_anyone(requirements.n)
    for factor in TRADEOFF_FACTORS:
        epsilon0 = best.epsilon0 * factor
        if factor == 1.0:
            yield TradeoffRow(epsilon0, best.central.epsilon, best.accuracy.error95, risk.vulnerability, risk.gain)
        elif epsilon0 <= best.family.largest_epsilon0:
            try:
                randomizer = best.family.make(epsilon0, requirements.n)
            except ParameterError:  # too small an epsilon0 for this kind
                continue
            # what is not known for the answer is not known at another epsilon0 either
            known = risk if risk.exact is None else assess_risk(randomizer, n=trusted)
            error95 = predict_accuracy(randomizer, n=requirements.n, shares=requirements.shares).error95
            epsilon = guaranteed_epsilon(best.family, epsilon0, requirements, n=requirements.n, points=SEARCH_POINTS)
            yield TradeoffRow(epsilon0, epsilon, error95, known.vulnerability, known.gain)


def _notes(plan: CollectionPlan) -> Iterator[str]:
    requirements = plan.requirements
    trusted = requirements.honest_with_anyone(requirements.n)
    yield from warnings_of(requirements.delta, requirements.n, honest=trusted, epsilon0=plan.epsilon0)
    if plan.error95 >= 0.5 * requirements.span:
        yield "the estimate says next to nothing: its error is as large as a blind guess in the middle of the range"
    if plan.epsilon > 0.9 * plan.epsilon0:
        yield "shuffling adds next to nothing here: the guarantee is that of one report"
    if requirements.error is None and plan.epsilon < 0.99 * (requirements.epsilon or 0.0):
        family, less = plan.chosen.family, f"less than epsilon {requirements.epsilon:g} is spent: "
        if plan.epsilon0 in (*family.breaks, family.largest_epsilon0):
            yield f"{less}with a larger epsilon0 the error would not fall"
        else:
            yield f"{less}delta alone nearly suffices, and epsilon0 is rounded down to a ten-thousandth of itself"
    if requirements.smallest_group is not None:
        yield (
            f"nothing leaves its group: the guarantee is that of the smallest, {requirements.smallest_group:,} "
            "people; everybody shuffled together is promised more, and no group can then be estimated by itself"
        )
    if plan.verdict.decides.everybody:
        some = requirements.n - max(1, requirements.n // 10)
        yield f"counts on the honesty of all {requirements.n:,} people; plan for {some:,} honest ones, too"
    if requirements.honest < requirements.n:
        liars = requirements.n - requirements.honest
        yield f"the error holds if everybody reports as told: {liars:,} people who lie can move the estimate further"

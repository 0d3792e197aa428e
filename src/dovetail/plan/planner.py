"""The planner: accuracy, epsilon0, epsilon, people and risk, solved in the direction that was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from dovetail.core.errors import ParameterError
from dovetail.core.guarantee import CentralDP
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer
from dovetail.plan.accuracy import Accuracy, predict
from dovetail.plan.candidates import Alternative, Candidate, candidate, recommend
from dovetail.plan.families import Family, families, wanted
from dovetail.plan.infeasible import contradiction, unreachable
from dovetail.plan.requirements import Shares, Wish
from dovetail.plan.risk import Risk, risk
from dovetail.plan.search import central, smallest_people

LADDER = tuple(1.25**step for step in range(-6, 6))  # epsilon0 of the trade-off, in units of the answer's


@dataclass(frozen=True)
class Step:
    """One row of the trade-off: more noise above, less noise below."""

    epsilon0: float
    epsilon: float
    error95: float
    vulnerability: float | None
    gain: float | None


@dataclass(frozen=True)
class CollectionPlan:
    """What to collect with, what may be promised, what leaks and how good the answer will be.

    Attributes
    ----------
    wish : Wish
        The question.
    randomizer : Randomizer
        What every device runs, with its epsilon0.
    accuracy : Accuracy
        Predicted error, for the worst shares unless `wish.shares` is "flat".
    flat : Accuracy or None
        The same where every value is equally frequent; None for a mean.
    central : CentralDP
        The promise after a uniform shuffle, in three lines.
    risk : Risk
        Exact vulnerability among the honest people.
    smallest_n : int or None
        The least n, to within a thousandth, at which this kind of randomizer grants both error and epsilon with the
        same share of honest people; None with `smallest_n_reason`.
    tradeoff : tuple of Step
        The same kind of randomizer with more and with less noise; the answer is one of the rows.
    alternatives : tuple of Alternative
        The other kinds, each with the noise that suits the wish best.
    report_bits : int
        Size of one report.
    """

    wish: Wish
    randomizer: FrequencyRandomizer | NumericRandomizer
    accuracy: Accuracy
    flat: Accuracy | None
    central: CentralDP
    risk: Risk
    smallest_n: int | None
    smallest_n_reason: str
    tradeoff: tuple[Step, ...]
    alternatives: tuple[Alternative, ...]
    report_bits: int

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
    def notes(self) -> tuple[str, ...]:
        """What should be known before this plan is used."""
        return tuple(_notes(self))


def plan_collection(
    *,
    question: Literal["frequency", "mean"],
    n: int,
    delta: float,
    k: int | None = None,
    lower: float | None = None,
    upper: float | None = None,
    grid: float | None = None,
    honest: int | None = None,
    error: float | None = None,
    epsilon: float | None = None,
    epsilon0: float | None = None,
    randomizer: str | None = None,
    shares: Shares = "any",
) -> CollectionPlan:
    r"""Plan a collection from what is wanted of it.

    `error` asks for the least noise budget that reaches it, and recommends the randomizer with the smallest central
    epsilon; `epsilon` and `epsilon0` ask for the best accuracy they buy. `error` and `epsilon` together ask whether
    both can be had, and since which n. Among randomizers that are equally good to within a twentieth the one with
    the shortest report is taken.

    Parameters
    ----------
    question : "frequency" or "mean"
        The shares of k values, or the mean of a number in [lower, upper].
    n : int, 1 .. 1e12
        People who will answer, once each.
    delta : float, at least 0, below 1
        Of the central guarantee; well below 1/n.
    k : int, 2 to 2^24
        Frequency: number of values.
    lower, upper : float
        Mean: public range of the number.
    grid : float, optional
        Mean: width of a step; default so fine that rounding adds a twentieth to the error at most.
    honest : int, 1 .. n, optional
        People assumed to follow the protocol and to keep their reports secret; default all.
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

    Raises
    ------
    ParameterError
        Also for wishes that cannot be granted: the message says which of them to relax, and how far.
    UnsupportedError
        Where people bring randomizers of their own (model H): no amplification theorem holds.

    Notes
    -----
    A quarter of a second, or seconds for k of a million, and thirteen times what the vulnerability takes. epsilon0
    for an error is exact to 1e-6, for an epsilon to 1e-3 and rounded down.

    Examples
    --------
    >>> plan = plan_collection(question="frequency", k=4, n=100_000, error=0.01, delta=1e-8)
    >>> plan.randomizer.name, round(plan.epsilon0, 2), plan.epsilon < 0.02, round(plan.error95, 4)
    ('krr', 1.03, True, 0.01)

    Source
    ------
    Variances: the sources of the randomizers; central guarantee: `amplify`; vulnerability: `vulnerability`.
    """
    wish = Wish(
        question=question, n=n, honest=n if honest is None else honest, delta=delta, k=k, lower=lower, upper=upper,
        grid=grid, error=error, epsilon=epsilon, epsilon0=epsilon0, randomizer=randomizer, shares=shares,
    )  # fmt: skip
    kinds = wanted(wish)
    tried = {family.name: candidate(family, wish) for family in families(wish)}
    granted = [one for kind in kinds if not isinstance(one := tried[kind.name], str)]
    if not granted:
        raise unreachable(kinds, [str(tried[kind.name]) for kind in kinds], wish)
    best = recommend(granted, wish)
    if wish.error is not None and wish.epsilon is not None and best.central.epsilon > wish.epsilon:
        best = min(granted, key=lambda one: one.central.epsilon)
        if best.central.epsilon > wish.epsilon:
            raise contradiction(best, kinds, wish)
    people, reason = _smallest_n(best.family, wish)
    seen = risk(best.randomizer, n=wish.honest)
    return CollectionPlan(
        wish=wish,
        randomizer=best.randomizer,
        accuracy=best.accuracy,
        flat=None if wish.k is None else predict(best.randomizer, n=wish.n, shares="flat"),
        central=best.central,
        risk=seen,
        smallest_n=people,
        smallest_n_reason=reason,
        tradeoff=tuple(_tradeoff(best, seen, wish)),
        alternatives=tuple(
            Alternative(name, reason=one) if isinstance(one, str) else Alternative.of(one)
            for name, one in tried.items()
            if name != best.family.name
        ),
        report_bits=best.report_bits,
    )


def _smallest_n(family: Family, wish: Wish) -> tuple[int | None, str]:
    if wish.error is None or wish.epsilon is None:
        return None, "every n can have this alone; give both an error and an epsilon to ask since which n both hold"
    return smallest_people(family, wish, error=wish.error, epsilon=wish.epsilon), ""


def _tradeoff(best: Candidate, seen: Risk, wish: Wish) -> Iterator[Step]:
    for factor in LADDER:
        epsilon0 = best.epsilon0 * factor
        if factor == 1.0:
            yield Step(best.epsilon0, best.central.epsilon, best.accuracy.error95, seen.vulnerability, seen.gain)
        elif epsilon0 <= best.family.most:
            try:
                randomizer = best.family.make(epsilon0, wish.n)
            except ParameterError:  # too little noise budget for this kind
                continue
            # what is not known for the answer is not known with another noise either
            told = seen if seen.seen is None else risk(randomizer, n=wish.honest)
            error95 = predict(randomizer, n=wish.n, shares=wish.shares).error95
            promised = central(best.family, epsilon0, wish, n=wish.n)
            yield Step(epsilon0, promised, error95, told.vulnerability, told.gain)


def delta_notes(delta: float, n: int) -> Iterator[str]:
    """What has to be said of a delta that promises too little for n people."""
    if delta * n >= 1.0:
        yield (
            f"delta = {delta:g} is not below 1/n = {1 / n:.3g}: such a promise allows publishing one "
            "person's report outright; take a delta well below 1/n"
        )


def _notes(plan: CollectionPlan) -> Iterator[str]:
    wish = plan.wish
    yield from delta_notes(wish.delta, wish.n)
    if plan.error95 >= 0.5 * wish.span:
        yield "the estimate says next to nothing: its error is as large as a blind guess in the middle of the range"
    if plan.epsilon > 0.9 * plan.epsilon0:
        yield "shuffling adds next to nothing here: the promise is that of one report"
    if wish.honest < wish.n:
        yield (
            f"the error holds if everybody reports as told: {wish.n - wish.honest:,} people who lie can move the "
            "estimate further"
        )

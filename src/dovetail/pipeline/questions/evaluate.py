"""What each question brings and tells: its estimate for everybody, and how well its answers can be guessed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.display.display import mute
from dovetail.core.estimate import Estimate
from dovetail.core.guarantee import LocalDP
from dovetail.core.stages import NumericRandomizer, Reports, Shuffler
from dovetail.estimate.frequency import estimate_frequencies
from dovetail.estimate.mean import estimate_mean
from dovetail.pipeline.collection import Collection
from dovetail.pipeline.config.sections import EstimateSection
from dovetail.pipeline.evaluate.estimates import LEVEL, shares_of, span_of
from dovetail.pipeline.evaluate.leakage import bayes_leakage
from dovetail.report.document import BayesLeakage, Estimates, GuessAtHand, IntervalEstimates, Missing
from dovetail.shuffle.uniform import Uniform

FEWEST = 2  # answers, from which a spread can be estimated
UNIFORM = "a uniform shuffle keeps no order, so no report belongs to a group"
ONE_OF_SEVERAL = Missing("one of several questions: `plan` compares randomizers for one")
NOT_ATTACKED = Missing(
    "the attacks guess from public columns beside the reports to one question, and know nothing of several"
)
DRAWN_IN_GROUPS = Missing(
    "how many people of a group drew this question differs from group to group; the guarantee covers all of them"
)
DRAWN = "{source}; of {n:,} people {m:,} answered, whoever is guessed at with probability {m:,}/{n:,}"


@dataclass(frozen=True)
class Answered:
    """One question of a collection, from its released reports."""

    part: Collection
    reports: int
    local: LocalDP
    estimates: Estimates | Missing
    leakage: BayesLeakage | Missing


@mute
@dataclass(frozen=True, eq=False)
class Beside:
    """The public columns beside the rows of a released table, where people are shuffled inside groups.

    Parameters
    ----------
    shuffler : Shuffler
    public : data frame (n, public columns)
    answered : bool (n,)
        Which rows hold an answer to the question.
    wanted : EstimateSection
    """

    shuffler: Shuffler
    public: pl.DataFrame
    answered: pl.Series
    wanted: EstimateSection


def evaluate_question(
    part: Collection, reports: Reports, *, known: bool, provenance: str, beside: Beside | None = None
) -> Answered:
    """Estimate and leakage of a question that m of the n people have answered, drawn by chance or all of them."""
    randomizer, m = part.randomizer, len(reports)
    local = randomizer.guarantee.drawn_from(provenance)
    if m < FEWEST:
        why = Missing(f"{m} of {part.n:,} people drew this question: too few to estimate anything")
        return Answered(part, m, local, why, why)
    truth = _truth(part, part.survey.values) if known else None
    everybody = _shares(part, reports, part.n, truth)
    measure = "mean" if isinstance(randomizer, NumericRandomizer) else "share"
    groups, withheld = (Missing(UNIFORM), []) if beside is None else _by_group(part, reports, beside, known=known)
    found = Estimates(measure, LEVEL, everybody, groups, withheld=withheld, better=ONE_OF_SEVERAL)
    if isinstance(randomizer, NumericRandomizer):
        found = replace(found, estimator=Missing("means of several questions have the unbiased estimator"))
    shares = np.asarray(everybody.possible if truth is None else truth)
    return Answered(part, m, local, found, _leakage(part, m, shares, beside, known=known))


def _shares(
    part: Collection, reports: Reports, people: int, truth: list[float] | None, **group: str
) -> IntervalEstimates:
    """The estimate for so many people, of whom those who sent these reports are a random sample."""
    randomizer = part.randomizer
    if isinstance(randomizer, NumericRandomizer):
        estimate, labels = estimate_mean(randomizer, reports), ["mean"]
    else:
        estimate, labels = estimate_frequencies(randomizer, reports), part.categories or []
    return shares_of(of_everybody(estimate, people), labels, truth, span=span_of(randomizer), **group)


def _by_group(
    part: Collection, reports: Reports, beside: Beside, *, known: bool
) -> tuple[list[IntervalEstimates] | Missing, list[dict[str, Any]]]:
    """One entry for each group of enough people: reports stay in their group, so each is a collection of its own."""
    if not beside.wanted.by:
        return Missing("no grouping column was asked for: list it in [estimate] by"), []
    name = beside.wanted.by[0]
    column = beside.public[name].cast(pl.String)  # as groups are made
    sent, values = column.filter(beside.answered).to_numpy(), part.survey.values
    found, small = [], []
    for label, people in column.value_counts(sort=False).sort(name).iter_rows():
        own = sent == label
        if people < beside.wanted.min_group_size or own.sum() < FEWEST:
            small.append(people)
            continue
        truth = _truth(part, values[(column == label).to_numpy()]) if known else None
        found.append(_shares(part, reports[own], people, truth, by=name, group=str(label)))
    return found, [{"by": name, "groups": len(small), "people": sum(small)}] if small else []


def of_everybody(estimate: Estimate, n: int) -> Estimate:
    r"""An estimate from m of n people drawn by chance alone, as one for all n.

    .. math:: \mathrm{se}^2 + \frac{n - m}{n - 1}\, (\mathrm{pe}^2 - \mathrm{se}^2)

    Who draws a question is a uniform sample without replacement of the m who drew it, whatever m is: the estimate is
    unbiased for everybody given m, and the drawing adds the variance of the values, over m, in so far as people are
    left out (Cochran 1977, Sampling Techniques, Theorem 2.2). The error for a population, pe, has it already.
    """
    left = (n - estimate.n) / max(n - 1, 1)
    drawing = estimate.population_error**2 - estimate.standard_error**2
    spread = None if estimate.spread is None else estimate.spread.drawn(left / estimate.n)
    error = np.sqrt(estimate.standard_error**2 + left * drawing)
    return replace(estimate, standard_error=error, spread=spread)


def _truth(part: Collection, values: NDArray[Any]) -> list[float]:
    if part.categories is None:
        return [float(values.mean())]
    return [float(share) for share in np.bincount(values, minlength=len(part.categories)) / values.size]


def _leakage(
    part: Collection, m: int, shares: np.ndarray, beside: Beside | None, *, known: bool
) -> BayesLeakage | Missing:
    """Vulnerability of the answer to this question, to somebody who knows of no link between questions."""
    absent = 0 if part.honest is None else part.n - part.honest
    if beside is not None and m < part.n:
        return DRAWN_IN_GROUPS
    shuffler, honest = (Uniform(m), max(1, m - absent)) if beside is None else (beside.shuffler, part.honest)
    found = bayes_leakage(
        part.randomizer, shuffler, honest=honest, shares=shares, law="empirical" if known else "estimated",
    )  # fmt: skip
    return found if isinstance(found, Missing) or m == part.n else of_those_who_drew(found, m, part.n)


def of_those_who_drew(found: BayesLeakage, m: int, n: int) -> BayesLeakage:
    r"""The vulnerability of a person of whom it is not known whether she is one of the m who answered.

    .. math:: V = \pi + \frac{m}{n} (V_m - \pi)

    Exact for equally likely values, an upper end for others: the maximum of a mixture is at most that of its parts.
    """

    def mixed(value: float | Missing, prior: float) -> float | Missing:
        return value if isinstance(value, Missing) else prior + m / n * (value - prior)

    hand = found.at_hand
    if isinstance(hand, GuessAtHand):
        own = mixed(hand.randomized, hand.prior)
        assert not isinstance(own, Missing)
        both = mixed(hand.randomized_shuffled, hand.prior)
        hand = replace(hand, randomized=own, randomized_shuffled=both, method="bracket")
    alone = mixed(found.randomized, found.prior)
    assert not isinstance(alone, Missing)
    return replace(
        found,
        randomized=alone,
        shuffled=mixed(found.shuffled, found.prior),
        randomized_shuffled=mixed(found.randomized_shuffled, found.prior),
        curve=Missing("drawn for questions that everybody answers"),
        at_hand=hand,
        source=DRAWN.format(source=found.source, n=n, m=m),
    )

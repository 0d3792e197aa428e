"""From a batch to the privacy report: every metric that applies, from released reports and public data."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isinf
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dovetail.account.closed_forms import guess_bounds
from dovetail.core.channel import Channel, KRRChannel
from dovetail.core.display import mute
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.core.estimate import Estimate, Tally
from dovetail.core.extras import pl
from dovetail.core.guarantee import CentralDP
from dovetail.core.missing import Missing
from dovetail.core.noise import Noise, People
from dovetail.core.question import PUBLIC_LISTS, WEAK, Question
from dovetail.core.stages import (
    SHUFFLERS,
    FrequencyRandomizer,
    Labels,
    NumericRandomizer,
    Randomizer,
    Reports,
    Shuffler,
)
from dovetail.estimate.accuracy import predict_accuracy
from dovetail.estimate.frequency import project_to_simplex
from dovetail.estimate.mean import estimate_mean, in_range
from dovetail.estimate.robust_mean import best_mean
from dovetail.job.collection import Collection
from dovetail.job.config import EstimateSection
from dovetail.leak.query import listed_channel, people_in_reach
from dovetail.leak.vulnerability import Vulnerability, vulnerability
from dovetail.noise.local import honest_batch
from dovetail.plan.requirements import Requirements
from dovetail.plan.search import select_families
from dovetail.randomize.krr import KRR
from dovetail.report.document import (
    BayesLeakage,
    BetterRandomizer,
    Estimates,
    Evaluation,
    GuessAtHand,
    IntervalEstimates,
    OrderEvaluation,
)
from dovetail.report.number_format import label_of, upward
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.uniform import Uniform
from dovetail.table.reader import Survey


def order_evaluation(shuffler: Shuffler, *, provenance: str) -> OrderEvaluation:
    """The order guarantee and what was fitted."""
    summary = shuffler.summary()
    theta_n = summary.get("theta_n")
    reason = "this shuffler has no dispersion parameter theta"
    guarantee = shuffler.guarantee.drawn_from(provenance)
    return OrderEvaluation(
        guarantee,
        shuffler.name,
        Missing(reason) if theta_n is None else float(theta_n),
        summary,
    )


# What a guess gains over the blind guess, for the shares at hand instead of equally likely values.


Shares = NDArray[np.float64]  # (k,), at least 0, sum 1


def guess_at_hand(
    randomizer: FrequencyRandomizer,
    channel: Channel | None,
    shares: Shares,
    *,
    law: Literal["empirical", "estimated"],
    m: int | Missing,
    exact: bool,
) -> GuessAtHand:
    r"""Bayes vulnerability where values are drawn from `shares` pi, before and after one report through channel W.

    .. math:: V = \max_x \pi_x, \qquad V_N = \sum_y \max_x \pi_x W(x, y)

    Parameters
    ----------
    channel : Channel or None
        None where reports are too many kinds to be listed; then for every epsilon-LDP randomizer a posterior is at
        most pi e^eps / (pi e^eps + 1 - pi), largest for the commonest value.
    m : int or Missing
        People over whose reports can be summed; fewer than there are give an upper bound. Missing without a uniform
        shuffle.
    exact : bool
        Whether m are all of them.
    """
    blind = float(shares.max())
    own = _own_report(randomizer, channel, shares, blind)
    if isinstance(m, Missing):
        return GuessAtHand(law, blind, own, m, "one report")
    together, method = own, "bracket"  # a shuffled batch tells no more than the report itself
    if channel is not None:
        try:
            seen = vulnerability(channel, n=m, prior=shares)
        except UnsupportedError:
            pass
        else:
            together, method = min(own, seen.randomized_shuffled_bracket.upper), seen.method if exact else "bracket"
    return GuessAtHand(law, blind, own, max(blind, together), method)


def _own_report(randomizer: FrequencyRandomizer, channel: Channel | None, shares: Shares, blind: float) -> float:
    """The chance from one person's own report, or its upper bound; rounded up."""
    if channel is not None:
        joint = shares[:, None] * np.asarray(channel.matrix())
        return min(1.0, math.fsum(joint.max(axis=0)) * (1.0 + 1e-12))
    odds = math.exp(min(700.0, randomizer.guarantee.epsilon)) * blind
    return min(1.0, odds / (odds + 1.0 - blind) * (1.0 + 1e-12))


# Bayes leakage: exact wherever the sums are short, otherwise an upper bound that says so.


_NOT_SYMBOLS = "exact leakage is for categories; the private column is a number"
_UNLISTED = (
    "Reports are too many kinds to be listed: no local randomizer of this epsilon gives more than k-ary randomized "
    "response in one report, and randomizing shuffled values gives no more than the values"
)
_NOT_DRAWN = Missing("drawn where every number is exact")
_LAWS: tuple[Literal["estimated"], Literal["empirical"]] = ("estimated", "empirical")  # without and with the truth
_FEWER = "of {m:,} people: upper bound computed from {m:,} of the {n:,} reports"


def bayes_leakage(
    randomizer: Randomizer,
    shuffler: Shuffler,
    *,
    honest: int | None = None,
    shares: Shares | None = None,
    law: Literal["empirical", "estimated"] = "empirical",
) -> BayesLeakage | Missing:
    """Bayes vulnerability of one person's value, all values equally likely; beside it for the shares at hand.

    Exact for k-ary randomized response, and for other randomizers while histograms are few. Otherwise the method is
    "bracket": upper ends, with the blind guess as the lower one. Who is not among the `honest` people hides nobody.
    """
    if not isinstance(randomizer, FrequencyRandomizer):
        return Missing(_NOT_SYMBOLS)
    batch, channel = honest_batch(shuffler, honest), listed_channel(randomizer)
    n = 1 if isinstance(batch, Missing) else batch
    try:
        found = _found(randomizer, channel, n)
    except UnsupportedError as error:
        return Missing(str(error))
    if shares is not None:
        m = batch if channel is None or isinstance(batch, Missing) else people_in_reach(channel, n)
        at_hand = guess_at_hand(randomizer, channel, shares, law=law, m=m, exact=m == n)
        found = replace(found, at_hand=at_hand)
    if isinstance(batch, Missing):
        return replace(found, shuffled=batch, randomized_shuffled=batch, curve=batch)
    return found


def _found(randomizer: FrequencyRandomizer, channel: Channel | None, n: int) -> BayesLeakage:
    if channel is None:
        return _bracket(randomizer, n, None, _UNLISTED)
    m = n if isinstance(channel, KRRChannel) else people_in_reach(channel, n)
    here = vulnerability(channel, n=m)
    if m < n:
        return _bracket(randomizer, n, here, f"{here.source}, {_FEWER.format(m=m, n=n)}")
    return BayesLeakage(
        prior=here.prior,
        randomized=here.randomized,
        shuffled=here.shuffled,
        randomized_shuffled=here.randomized_shuffled,
        error_bound=here.error_bound,
        method=here.method,
        rounding=here.rounding,
        source=here.source,
        curve=_curve(channel, here, n),
    )


def _bracket(randomizer: FrequencyRandomizer, n: int, fewer: Vulnerability | None, source: str) -> BayesLeakage:
    """Upper ends for n people: from fewer people, where their reports can be summed over, and from the values.

    The shuffled values are those of k-ary randomized response, whose own report is the most that any randomizer of
    this epsilon gives.
    """
    response = vulnerability(KRR(k=randomizer.k, epsilon=randomizer.guarantee.epsilon), n=n)
    own, ends = response.randomized + response.error_bound, [response.shuffled_bracket.upper]
    if fewer is not None:
        own, ends = fewer.randomized, [*ends, fewer.randomized_shuffled_bracket.upper]
    best = min(own, *ends)
    return BayesLeakage(
        prior=response.prior,
        randomized=own,
        shuffled=response.shuffled,
        randomized_shuffled=best,
        error_bound=(own if fewer is None else best) - response.prior,
        method="bracket",
        rounding=response.rounding,
        source=source,
        curve=_NOT_DRAWN,
    )


def _curve(channel: Channel, here: Vulnerability, n: int) -> dict[str, list[float]]:
    """The vulnerabilities of smaller collections, for the drawing; ends with this one."""
    sizes = [int(size) for size in np.unique(np.geomspace(1, n, num=13).round())[:-1]]
    points = [vulnerability(channel, n=size) for size in sizes] + [here]
    return {
        "n": [float(size) for size in (*sizes, n)],
        "shuffled": [point.shuffled for point in points],
        "randomized_shuffled": [point.randomized_shuffled for point in points],
    }


def leakage_of(collection: Collection, shares: Shares, *, truth: bool) -> BayesLeakage | Missing:
    """Exact for local noise; else of the kind of people that is guessed best, from more than is told."""
    question, noise = collection.question, collection.noise
    if question.needs != "frequency" or question.hidden is not None:
        return question.hidden or Missing(_NOT_SYMBOLS)
    found = []
    for one in noise.telling(collection.people, delta=collection.delta):
        each: BayesLeakage | Missing = _open_leakage(one.honest, shares, truth=truth)
        if not isinf(one.randomizer.guarantee.epsilon):
            each = bayes_leakage(one.randomizer, Uniform(one.n), honest=one.honest, shares=shares, law=_LAWS[truth])
        assert isinstance(each, BayesLeakage)  # of categories in a uniform shuffle
        found.append(_capped(each, one.promise, shares, one.why))
    if not found:
        return bayes_leakage(
            collection.randomizer, collection.shuffler, honest=collection.honest, shares=shares, law=_LAWS[truth]
        )
    worst, hands = max(found, key=_after), [one.at_hand for one in found if isinstance(one.at_hand, GuessAtHand)]
    return replace(worst, randomized=max(one.randomized for one in found), at_hand=max(hands, key=_after))


def _after(one: BayesLeakage | GuessAtHand) -> float:
    """The guess from the batch; 0 where there is none."""
    return 0.0 if isinstance(one.randomized_shuffled, Missing) else one.randomized_shuffled


def _open_leakage(n: int, shares: Shares, *, truth: bool) -> BayesLeakage:
    """Of n values in random order."""
    even = vulnerability(KRR(k=len(shares), epsilon=1.0), n=n)
    most = even.shuffled_bracket.upper
    hand = GuessAtHand(_LAWS[truth], float(shares.max()), 1.0, 1.0, "bracket")
    return BayesLeakage(
        even.prior, 1.0, most, most, 0.0, even.method, even.rounding, even.source, _NOT_DRAWN, at_hand=hand
    )


def _capped(found: BayesLeakage, promise: CentralDP, shares: Shares, why: str) -> BayesLeakage:
    """The smaller of a guess from more than is released, and of the guess that a central guarantee leaves."""
    best, hand = found.randomized_shuffled, found.at_hand
    assert not isinstance(best, Missing) and isinstance(hand, GuessAtHand)
    assert not isinstance(hand.randomized_shuffled, Missing)
    priors = np.array([np.full(len(shares), found.prior), shares])
    even, uneven = guess_bounds(priors, epsilon=promise.epsilon, delta=promise.delta)
    best = min(best, float(even))
    return replace(
        found,
        randomized_shuffled=best,
        error_bound=best - found.prior,
        method="bracket",
        curve=_NOT_DRAWN,
        at_hand=replace(hand, randomized_shuffled=min(hand.randomized_shuffled, float(uneven)), method="bracket"),
        source=f"{found.source}, upper bound: {why}, and the central guarantee",
    )


# Which other randomizer would estimate the same shares with the same local epsilon, and a smaller error.


WORTH_SAYING = 0.8  # of the error here
NOTHING_TO_GAIN = 0.5  # people; where a count is off by less, nobody needs another randomizer


def better_randomizer(randomizer: Randomizer, *, n: int, delta: float) -> BetterRandomizer | Missing:
    """The randomizer with the smallest error of one of many equally frequent shares, where it is clearly smaller.

    Public: it depends on the number of values and people and on epsilon, not on what anybody answered.
    """
    if not isinstance(randomizer, FrequencyRandomizer):
        return Missing("one kind of randomizer per mean is compared in `dovetail plan`")
    epsilon = randomizer.guarantee.epsilon
    here = predict_accuracy(randomizer, n=n, shares="flat").standard_error
    asked = Requirements(question="frequency", n=n, honest=n, delta=delta, k=randomizer.k, epsilon0=epsilon)
    errors = {}
    for family in select_families(asked):
        try:
            errors[family.name] = predict_accuracy(family.make(epsilon, n), n=n, shares="flat").standard_error
        except ParameterError:  # not at this epsilon
            continue
    best = min(errors, key=lambda name: errors[name], default=randomizer.name)
    if best == randomizer.name or errors[best] > WORTH_SAYING * here or here * n < NOTHING_TO_GAIN:
        return Missing("no other randomizer of this epsilon is clearly more accurate")
    return BetterRandomizer(best, errors[best], here)


# The sentences of a report: what was collected, what is assumed, and what each step promises.


def collection_document(collection: Collection) -> dict[str, Any]:
    """Who was asked what."""
    survey = collection.survey
    beside = survey.public if collection.shuffler.keeps_places else survey.public.select([])
    return {
        "n": survey.n,
        "private": ", ".join((collection.private, *collection.question.further)),
        "public": survey.public.columns,
        **published_document(beside, survey.n),
        "unconfirmed": list(collection.unconfirmed),
        "inferred": collection.inferred,
        **({} if survey.left_out is None else {"left_out": survey.left_out}),
        **(
            {}
            if (told := collection.question.too_few(collection.noise, collection.people, WEAK)) is None
            else {"too_few": told}
        ),
        **collection.question.described(collection.private),
    }


def published_document(public: pl.DataFrame, n: int) -> dict[str, Any]:
    """Which columns leave as they are beside the reports, and how many people are alone with their combination.

    What stands beside the reports is public, so counting it reveals nothing further.
    """
    alone: int | Missing = Missing("no column leaves beside the reports")
    if public.width:
        alone = Missing("public columns lie in files and are not counted together")
    if public.width and public.height == n:
        alone = int(public.is_unique().sum())
    return {"published": public.columns, "alone": alone}


def randomizer_document(randomizer: FrequencyRandomizer | NumericRandomizer) -> dict[str, Any]:
    """Name, epsilon and parameters."""
    names = [field.name for field in dataclasses.fields(randomizer)]  # type: ignore[arg-type]
    fields = {name: getattr(randomizer, name) for name in names}
    epsilon = fields.pop("epsilon", randomizer.guarantee.epsilon)
    return {
        "name": randomizer.name,
        "label": randomizer.label,
        "epsilon": epsilon,
        "parameters": fields,
        **randomizer.facts(),
    }


def _known_beforehand(collection: Collection) -> str:
    """Where categories or bounds come from: one sentence, that says of each part what is true of it."""
    if not collection.inferred:
        return "Categories, bounds, grids and groups are public knowledge, not read off the private column."
    what = "bounds" if collection.survey.categories is None else "categories"
    return (
        f"Groups are public knowledge, but the {what} were {_read_off(collection)}; the promises hold only if they "
        "are public knowledge too. A release must declare them."
    )


def _read_off(collection: Collection) -> str:
    """Where categories or bounds come from that nobody has vouched for."""
    if collection.unconfirmed:
        return (
            "inferred from the private column by a check of the table, nobody has confirmed them since, and they may "
            "tell who is in it"
        )
    return "inferred from the private column and may tell who is in it"


def assumptions(collection: Collection, evaluation: Evaluation, *, mode: str) -> tuple[str, ...]:
    """Assumptions under which the numbers mean what they say."""
    first, *trusted = collection.noise.assumptions(
        collection.people, delta=collection.delta, central=evaluation.central
    )
    lines = [first, _known_beforehand(collection), *trusted, *gaps_and_outliers(collection.survey, mode=mode)]
    lines += collection.question.notes(evaluation.estimates.beside, n=collection.n, mode=mode)
    lines += _loose(collection.randomizer)
    if collection.question.is_chosen and PUBLIC_LISTS not in lines:
        lines.append(PUBLIC_LISTS)
    lines += collection.noise.repeated(evaluation.local)
    alone = evaluation.order.summary.get("ungrouped", 0)
    if alone:
        lines.append(f"{alone:,} of {collection.n:,} people are in no group: their reports stay at their places.")
    if evaluation.order.guarantee.protects:
        lines.append("The order promise is about reorderings inside the fitted groups; it stands beside epsilon.")
    if isinstance(evaluation.leakage, BayesLeakage):
        lines.append("Vulnerability is against an adversary who holds every category equally likely beforehand.")
    if mode == "release":
        lines.append("The number of reports and the public columns are no secrets.")
        lines.append("A later release about the same people adds its budget to this one.")
    return tuple(lines)


def gaps_and_outliers(survey: Survey, *, mode: str) -> list[str]:
    """The rules, declared beforehand, for people without an answer and for numbers outside their bounds."""
    lines = []
    if survey.left_out is not None:
        lines.append(
            f"{survey.left_out:,} {'person' if survey.left_out == 1 else 'people'} gave no answer and are left out "
            f'(`missing` = "drop"): results are about the {survey.n:,} who answered, and who answered is no secret. '
            "Where whether somebody answers depends on the answer, they are not those of everybody."
        )
    if survey.clipped is not None:
        many = "how many is private and not counted" if mode == "release" else f"{survey.clipped:,} here"
        lines.append(
            f"Numbers outside their bounds count as the nearest bound (`clip` = true), {many}; a mean is that of the "
            "clipped numbers. The rule is the same for everybody and costs no privacy."
        )
    return lines


LOOSE = 1e-3  # share of epsilon by which a guarantee may exceed the loss of a report without a word


def _loose(randomizer: FrequencyRandomizer | NumericRandomizer) -> list[str]:
    """That a report loses less than its guarantee says, where it does."""
    if not isinstance(randomizer, FrequencyRandomizer) or isinf(epsilon := randomizer.guarantee.epsilon):
        return []
    if randomizer.slack <= LOOSE * epsilon:
        return []
    return [
        f"The local guarantee of {randomizer.label} is safe but loose: it says epsilon {upward(epsilon)}, and a "
        f"report of this channel has {upward(epsilon - randomizer.slack)}. The larger one is what adds up."
    ]


def _sends(randomizer: FrequencyRandomizer | NumericRandomizer) -> str:
    """A clause that says what a device without local noise sends."""
    if isinstance(randomizer, NumericRandomizer):
        return "rounds its number at random to one of two neighbours on the public grid and sends that"
    return "sends its answer as it is"


def steps(evaluation: Evaluation, noise: Noise) -> tuple[dict[str, str], ...]:
    """The stages with their guarantees and theorems."""
    local, central, randomizer, trust = evaluation.local, evaluation.central, noise.randomizer, noise.trust
    bare = isinf(local.epsilon)
    alpha = evaluation.order.guarantee.alpha
    return (
        {
            "stage": "randomize",
            "what": f"Each device {noise.sends or _sends(randomizer)}, under the analyst's key."
            + (" By chance it sends a uniform symbol as a second message." if trust == "users" else "")
            if bare
            else f"Each device answers through {randomizer.label}, on its own, before anything is sent.",
            "guarantee": "no local promise"
            if bare
            else f"({upward(local.epsilon)}, {upward(local.delta)})-local differential privacy",
            "theorem": local.source,
        },
        {
            "stage": "shuffle",
            "what": f"The shuffler reorders the batch ({label_of(SHUFFLERS, evaluation.shuffler)}) "
            "and never looks at the reports."
            + noise.mixes,
            "guarantee": "no order promise" if alpha == float("inf") else f"order privacy alpha = {upward(alpha)}",
            "theorem": "; ".join(
                [evaluation.order.guarantee.source] + ([central.source] if isinstance(central, CentralDP) else [])
            ),
        },
        {
            "stage": "estimate",
            "what": "The analyst inverts the known randomization; intervals say how far off it may be.",
            "guarantee": "post-processing: costs no privacy",
            "theorem": "Dwork and Roth (2014), The Algorithmic Foundations of Differential Privacy, Proposition 2.1",
        },
    )  # fmt: skip


# What was bought: estimates over everybody and per public group, with intervals that admit what they cannot know.


LEVEL = 0.95

Truth = NDArray[Any] | None  # (n,) the private values, in rehearsals


def estimates(
    question: Question,
    noise: Noise,
    shuffler: Shuffler,
    people: People,
    reports: Reports,
    public: pl.DataFrame | Missing,
    *,
    wanted: EstimateSection,
    truth: Truth,
) -> Estimates:
    """Estimates from released reports; `public` stands beside them only where the shuffler keeps an order."""
    if not wanted.by and noise.hidden is None:
        public = NOT_GROUPED
    columns: Missing | list[Beside] = public if isinstance(public, Missing) else [
        beside_of(question, noise, shuffler, reports, public[name], truth=truth) for name in wanted.by
    ]  # fmt: skip
    known = None if truth is None else question.truth(truth)
    found = estimates_of(
        question, noise, people, noise.tally(reports), columns, n=people.n, wanted=wanted, truth=known
    )
    if noise.hidden is None and isinstance(noise.randomizer, NumericRandomizer):
        found = replace(found, estimator=chosen_mean(noise.randomizer, reports, wanted))
        if wanted.estimator == "best":
            best = best_mean(noise.randomizer, reports).estimate
            found = replace(found, overall=shares_of(best, question.labels, known, span=question.bounds))
    return found


NOT_GROUPED = Missing("no grouping column was asked for: list it in [estimate] by")


def estimates_of(
    question: Question,
    noise: Noise,
    people: People,
    tally: Tally,
    columns: Sequence[Beside] | Missing,
    *,
    n: int,
    wanted: EstimateSection,
    truth: list[float] | None,
) -> Estimates:
    """Estimates from the tally of the reports that these `people` of n have sent, and from those of public groups."""
    overall = of_everybody(question.learned(noise, tally, people), n)
    everybody = shares_of(overall, question.labels, truth, span=question.bounds)
    found = Estimates(
        question.measure, LEVEL, everybody, NOT_GROUPED, withheld=[], estimator=noise.estimator,
        curve=question.curve(noise, tally, people), beside=question.beside(noise, overall, truth),
    )  # fmt: skip
    if isinstance(columns, Missing):
        return replace(found, groups=columns)
    parts = [by_column(question, noise, people, one, fewest=wanted.min_group_size) for one in columns]
    return replace(
        found,
        groups=[entry for shares, _ in parts for entry in shares],
        withheld=[entry for _, small in parts for entry in small],
    )


def mean_estimator(wanted: EstimateSection) -> Callable[[NumericRandomizer, Reports], Estimate]:
    """The estimator of a mean that was asked for."""
    if wanted.estimator == "best":
        return lambda randomizer, reports: best_mean(randomizer, reports).estimate
    return estimate_mean


def chosen_mean(randomizer: NumericRandomizer, reports: Reports, wanted: EstimateSection) -> dict[str, str]:
    """Which estimator of the mean was used, and which one promises the smaller error, with the reason."""
    best = best_mean(randomizer, reports)
    unbiased = "rao-blackwell" if randomizer.memoryless else "mean"
    return {
        "name": best.name if wanted.estimator == "best" else unbiased,
        "best": best.name,
        "reason": best.reason,
    }


FEWEST = 2  # reports, from which a spread can be estimated


@mute
@dataclass(frozen=True, eq=False)
class Beside:
    """The groups of a public column beside released reports.

    Parameters
    ----------
    by : str
        The column.
    names, sizes : of each group, in order
        Sizes are of people, whether they answered or not.
    answers : int array (groups,)
        Reports of each.
    tally : function of rows (groups,)
        The tallies of reports, groups with one row together.
    mixing : function of rows (groups,)
        How reports moved between the rows; None where all of them stayed.
    truth : function of the number of a group
        What its people hold; None where it is not known.
    """

    by: str
    names: list[str]
    sizes: Labels
    answers: Labels
    tally: Callable[[Labels], Tally]
    mixing: Callable[[Labels], NDArray[np.float64] | None]
    truth: Callable[[int], list[float] | None]


def beside_of(
    question: Question,
    noise: Noise,
    shuffler: Shuffler,
    reports: Reports,
    column: pl.Series,
    *,
    truth: Truth,
    answered: NDArray[np.bool_] | None = None,
) -> Beside:
    """The groups of a column, where reports lie in memory; `answered` (n,) says which rows hold one."""
    names = column.unique().sort()
    codes = column.replace_strict(names, range(len(names)), return_dtype=pl.Int64).to_numpy()
    sent = codes if answered is None else codes[answered]
    return Beside(
        column.name, [str(name) for name in names], np.bincount(codes, minlength=len(names)),
        np.bincount(sent, minlength=len(names)),
        tally=lambda row: noise.tallies(reports, row[sent], int(row.max()) + 1),
        mixing=lambda row: mixing_of(shuffler, row[codes], column.name),
        truth=lambda group: None if truth is None else question.truth(truth[codes == group]),
    )  # fmt: skip


def by_column(
    question: Question, noise: Noise, people: People, beside: Beside, *, fewest: int
) -> tuple[list[IntervalEstimates], list[dict[str, Any]]]:
    """One entry for each group of at least `fewest` people; smaller ones are pooled and withheld."""
    sizes = beside.sizes
    kept = np.flatnonzero((sizes >= fewest) & (beside.answers >= FEWEST))
    small = sizes.size - kept.size
    withheld = (
        [{"by": beside.by, "groups": int(small), "people": int(sizes.sum() - sizes[kept].sum())}] if small else []
    )
    if kept.size == 0:
        return [], withheld
    row = np.full(sizes.size, kept.size, dtype=np.int64)
    row[kept] = np.arange(kept.size)
    tally = beside.tally(row)
    tally = Tally(tally.counts, np.maximum(tally.n, 1))  # of those that are withheld nobody may have answered
    within = question.within(noise, tally, beside.mixing(row), people)
    entries = [
        shares_of(
            of_everybody(within.group(place), int(sizes[group])), question.labels, beside.truth(group), by=beside.by,
            group=beside.names[group], span=question.bounds,
        )
        for place, group in enumerate(kept.tolist())
    ]  # fmt: skip
    return entries, withheld


def of_everybody(estimate: Estimate, n: int) -> Estimate:
    r"""An estimate from m of n people drawn by chance alone, as one for all n.

    .. math:: \mathrm{se}^2 + \frac{n - m}{n - 1}\, (\mathrm{pe}^2 - \mathrm{se}^2)

    Who draws a question is a uniform sample without replacement of the m who drew it, whatever m is: the estimate is
    unbiased for everybody given m, and the drawing adds the variance of the values, over m, in so far as people are
    left out (Cochran 1977, Sampling Techniques, Theorem 2.2). The error for a population, pe, has it already.
    """
    left = (n - estimate.n) / max(n - 1, 1)
    if left == 0.0:
        return estimate
    drawing = estimate.population_error**2 - estimate.standard_error**2
    spread = None if estimate.spread is None else estimate.spread.drawn(left / estimate.n)
    error = np.sqrt(estimate.standard_error**2 + left * drawing)
    return replace(estimate, standard_error=error, spread=spread)


def mixing_of(shuffler: Shuffler, places: Labels, name: str) -> NDArray[np.float64] | None:
    """How reports moved between groups; None where all of them stayed."""
    if isinstance(shuffler, Identity):
        return None
    try:
        mixing = shuffler.mixing(places)
    except UnsupportedError as error:
        raise UnsupportedError(
            f"estimates by {name!r}: {error} Raise min_group_size or take a coarser column."
        ) from None
    return None if np.all(1.0 - np.diag(mixing) < 1e-12) else mixing


def shares_of(
    estimate: Estimate,
    labels: list[str],
    truth: list[float] | None,
    by: str | None = None,
    group: str | None = None,
    *,
    span: tuple[Any, Any] | None = None,
) -> IntervalEstimates:
    """An estimate as the report holds it; `span` is the declared range of a mean, or of each number.

    Interval and `possible` value are what the truth can be; the interval reaches to the possible value where the
    projection moved it further than the noise does, and covers no less for it.
    """
    low, high = estimate.interval(LEVEL)
    possible = estimate.value
    if np.ndim(estimate.value) and span is not None:
        low, high, possible = (np.clip(one, *span) for one in (low, high, possible))
    elif len(labels) > 1:
        low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
        possible = project_to_simplex(estimate).value if np.isfinite(estimate.value).all() else possible
    elif span is not None:
        mean, (least, most) = in_range(float(estimate.value), (float(low), float(high)), span)
        low, high, possible = np.asarray(least), np.asarray(most), np.asarray(mean)
    low, high = np.minimum(low, possible), np.maximum(high, possible)
    return IntervalEstimates(
        labels=labels,
        value=_list(estimate.value),
        standard_error=_list(estimate.standard_error),
        population_error=_list(estimate.population_error),
        interval=list(zip(_list(low), _list(high), strict=True)),
        possible=_list(possible),
        bias_bound=float(np.max(estimate.bias_bound)),
        n=int(estimate.n),
        truth=None if truth is None else truth[: len(labels)],
        by=by,
        group=group,
    )


def span_of(randomizer: FrequencyRandomizer | NumericRandomizer) -> tuple[float, float] | None:
    """The declared range of a mean."""
    return (randomizer.lower, randomizer.upper) if isinstance(randomizer, NumericRandomizer) else None


def _list(values: Any) -> list[float]:
    return [float(value) for value in np.atleast_1d(values)]


NO_ORDER = "a uniform shuffle keeps no order, so no report belongs to a group"


def evaluate(
    collection: Collection, batch: Reports, *, estimate: EstimateSection, truth: Any, provenance: str
) -> Evaluation:
    """All metrics that do not need the truth; with it (n,), the estimates stand beside it."""
    shuffler = collection.shuffler
    public: pl.DataFrame | Missing = collection.survey.public if shuffler.keeps_places else Missing(NO_ORDER)
    asked, noise = collection.question, collection.noise
    found = estimates(asked, noise, shuffler, collection.people, batch, public, wanted=estimate, truth=truth)
    return evaluation_of(collection, found, provenance=provenance)


def evaluation_of(collection: Collection, found: Estimates, *, provenance: str) -> Evaluation:
    """Guarantees and leakage of a collection, beside what was learned."""
    randomizer, shuffler, hidden = collection.randomizer, collection.shuffler, collection.hidden
    known, central = found.overall.truth, collection.central
    shares = np.asarray(found.overall.possible if known is None else known)
    leakage = leakage_of(collection, shares, truth=known is not None)
    law = shares if collection.question.learns_shares else None
    return Evaluation(
        shuffler=shuffler.name,
        local=collection.local.drawn_from(provenance),
        central=central if isinstance(central, Missing) else central.drawn_from(provenance),
        order=order_evaluation(shuffler, provenance=provenance),
        leakage=leakage,
        linkage=collection.noise.linkage(shuffler, collection.people, law),
        estimates=replace(
            found, better=hidden or better_randomizer(randomizer, n=shuffler.n, delta=collection.delta)
        ),
    )

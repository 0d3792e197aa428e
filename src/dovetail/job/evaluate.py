"""From a batch to the privacy report: every metric that applies, from released reports and public data."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import replace
from math import isinf
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.account.amplify import amplify
from dovetail.account.dummies import dummies_guarantee, user_dummies_guarantee
from dovetail.core.channel import Channel, KRRChannel
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.core.estimate import Estimate
from dovetail.core.guarantee import CentralDP
from dovetail.core.stages import FrequencyRandomizer, Labels, NumericRandomizer, Randomizer, Reports, Shuffler
from dovetail.estimate.accuracy import predict_accuracy
from dovetail.estimate.classes import estimate_mixture
from dovetail.estimate.dummies import (
    estimate_with_dummies,
    estimate_with_user_dummies,
    mean_with_dummies,
    mean_with_user_dummies,
)
from dovetail.estimate.frequency import estimate_frequencies, project_to_simplex
from dovetail.estimate.grouped import estimate_group_means, estimate_groups
from dovetail.estimate.mean import estimate_mean, in_range
from dovetail.estimate.robust_mean import best_mean
from dovetail.job.collection import Collection, EpsilonClasses
from dovetail.job.config import EstimateSection
from dovetail.leak.query import listed_channel, people_in_reach
from dovetail.leak.vulnerability import Vulnerability, vulnerability
from dovetail.plan.families import select_families
from dovetail.plan.requirements import Requirements
from dovetail.randomize.krr import KRR
from dovetail.randomize.sampling.open_reports import OpenNumbers
from dovetail.report.document import (
    BayesLeakage,
    BetterRandomizer,
    Estimates,
    Evaluation,
    GuessAtHand,
    IntervalEstimates,
    Missing,
    OrderEvaluation,
)
from dovetail.report.number_format import upward
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.sampling.dummies import Dummies, UserDummies

# What applies to which shuffler, and what it says: the central guarantee and order privacy.
#
# Amplification holds inside blocks of people who can be relabelled without changing the law of the order, and
# shuffled leakage is exact for a uniform shuffle; neither is promised for anything else
# (docs/theory/bounds-on-attacks.md).


_NOT_SHUFFLED = "nothing is shuffled: the local guarantee is all there is"
_NOT_UNIFORM = "this order is released, and no people are known who could be exchanged in it unnoticed"
_NO_LEAKAGE = "the shuffled guess is computed for uniform shuffles only; this order is released"
_ALONE_IN_ORDER = (
    "this order is released, and for somebody nobody else could stand in it (in exactly the same groups, or at the "
    "same point), so she is in no uniform shuffle: for her the local guarantee is all that is proven"
)


def smallest_batch(shuffler: Shuffler) -> int | Missing:
    """Number of reports that are shuffled uniformly with each person's own, in the worst case."""
    block = shuffler.smallest_block
    if block is None or not shuffler.acting.moves_reports:
        return Missing(_NOT_UNIFORM if block is None else _NOT_SHUFFLED)
    if block == 1 and not _mixes_evenly(shuffler):
        return Missing(_ALONE_IN_ORDER)
    return block


def _mixes_evenly(shuffler: object) -> bool:
    """Whether places are mixed uniformly; the orders of releases in files are, and number no places."""
    return not isinstance(shuffler, Shuffler) or shuffler.uniform_blocks() is not None


def honest_batch(shuffler: Shuffler, honest: int | None) -> int | Missing:
    """Of a uniformly mixed batch, the honest people, if all the others sit in it."""
    batch = smallest_batch(shuffler) if _mixes_evenly(shuffler) else Missing(_NO_LEAKAGE)
    if isinstance(batch, Missing) or honest is None:
        return batch
    return max(1, batch - max(0, shuffler.n - honest))


def central_guarantee(
    randomizer: Randomizer, shuffler: Shuffler, *, delta: float, honest: int | None, provenance: str
) -> CentralDP | Missing:
    """(epsilon, delta) after shuffling; groups that are shuffled by themselves are quoted at the smallest one.

    With fewer honest people than reports, all the others are assumed to sit in the smallest group.
    """
    batch = smallest_batch(shuffler)
    if isinstance(batch, Missing):
        return batch
    trusted = batch if honest is None else max(1, batch - max(0, shuffler.n - honest))
    if batch == 1:
        return Missing("somebody is shuffled with nobody else: for that person the local guarantee is all there is")
    return amplify(randomizer, n=batch, delta=delta, honest=trusted).drawn_from(provenance)


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


_UNLISTED = (
    "Reports are too many kinds to be listed: no local randomizer of this epsilon gives more than k-ary randomized "
    "response in one report, and randomizing shuffled values gives no more than the values"
)
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
        return Missing("exact leakage is for categories; the private column is a number")
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
        curve=Missing("drawn where every number is exact"),
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


MIXES = {
    "shuffler": " It adds dummies of every answer.",
    "users": " It takes at most two messages of a person.",
}


def collection_document(collection: Collection) -> dict[str, Any]:
    """Who was asked what."""
    survey, randomizer = collection.survey, collection.randomizer
    beside = survey.public if collection.shuffler.keeps_places else survey.public.select([])
    base: dict[str, Any] = {
        "n": survey.n,
        "private": collection.private,
        "public": survey.public.columns,
        **published_document(beside, survey.n),
        "unconfirmed": list(collection.unconfirmed),
        "inferred": collection.inferred,
    }
    if isinstance(randomizer, NumericRandomizer):
        return {**base, "kind": "numeric", "lower": randomizer.lower, "upper": randomizer.upper}
    return {**base, "kind": "categorical", "categories": collection.categories}


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
    what = "bounds" if collection.categories is None else "categories"
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
    """What must be true for the numbers to mean what they say."""
    lines = [
        "Each person sends exactly one report, and everybody uses the same randomizer independently."
        if collection.classes is None
        else "Each person sends exactly one report, randomized independently with the epsilon of her class.",
        _known_beforehand(collection),
    ]
    if isinstance(collection.dummies, UserDummies):
        lines[0] = "Each person sends exactly one answer, and a dummy beside it by chance alone."
        lines.append(
            "People are trusted with the noise together: the promise counts on "
            f"{collection.honest or collection.n:,} honest ones whose answers and dummies arrive, each by itself; "
            "with fewer of them it is weaker. The shuffler takes at most two messages of a person, mixes them, and "
            "tells nobody whose they are."
        )
    elif collection.dummies is not None:
        lines[0] = "Each person sends exactly one report."
        lines.append(
            "The shuffler is trusted with the noise: it draws the dummies once, from the operating system, as "
            "specified, tells nobody their numbers, and the analyst sees the shuffled batch alone. A shuffler that "
            "adds none voids the promise."
        )
    elif isinstance(evaluation.central, CentralDP):
        central = evaluation.central
        lines.append(
            f"The shuffler keeps the order to itself, and {central.honest_n:,} of {central.n:,} people that are "
            "shuffled together follow the protocol; otherwise the local guarantee is all that remains."
        )
    lines += _classes(collection)
    lines += _loose(collection.randomizer)
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


def _classes(collection: Collection) -> list[str]:
    """What people with different epsilons are promised, class by class."""
    if collection.classes is None:
        return []
    each = [
        f"{people:,} people with epsilon0 {upward(own)} in their own report: central epsilon {upward(one.epsilon)}."
        for own, people, one in collection.class_promises
    ]
    return [
        f"The epsilon of a person is set by {collection.classes.column}, which does not depend on the answer; "
        "reports do not carry it. Quoted above is the largest; people with a large one hide behind the careful ones, "
        "who have to be honest and present.",
        *each,
        "Shares weigh people by how truthful they are: they are those of everybody only where class and answer are "
        "unrelated.",
    ]


def _sends(randomizer: FrequencyRandomizer | NumericRandomizer) -> str:
    """What leaves a device without local noise."""
    if isinstance(randomizer, NumericRandomizer):
        return "rounds its number at random to one of two neighbours on the public grid and sends that"
    return "sends its answer as it is"


def steps(evaluation: Evaluation, randomizer: FrequencyRandomizer | NumericRandomizer) -> tuple[dict[str, str], ...]:
    """The stages with their guarantees and theorems."""
    local, central = evaluation.local, evaluation.central
    trust = central.trust if isinstance(central, CentralDP) else "local"
    bare = isinf(local.epsilon)
    alpha = evaluation.order.guarantee.alpha
    return (
        {
            "stage": "randomize",
            "what": f"Each device {_sends(randomizer)}, under the analyst's key."
            + (" By chance it sends a uniform symbol as a second message." if trust == "users" else "")
            if bare
            else f"Each device answers through {randomizer.name}, on its own, before anything is sent.",
            "guarantee": "no local promise"
            if bare
            else f"({upward(local.epsilon)}, {upward(local.delta)})-local differential privacy",
            "theorem": local.source,
        },
        {
            "stage": "shuffle",
            "what": f"The batch is reordered by {evaluation.shuffler}; the shuffler never looks at the reports."
            + MIXES.get(trust, ""),
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
    randomizer: FrequencyRandomizer | NumericRandomizer,
    reports: Reports,
    public: pl.DataFrame | Missing,
    shuffler: Shuffler,
    *,
    wanted: EstimateSection,
    labels: list[str],
    truth: Truth,
) -> Estimates:
    """Estimates from released reports; `public` stands beside them only where the shuffler keeps an order."""
    numeric = isinstance(randomizer, NumericRandomizer)
    estimator: dict[str, str] | Missing = Missing("shares have one estimator")
    if isinstance(randomizer, NumericRandomizer):
        estimator = chosen_mean(randomizer, reports, wanted)
        overall = mean_estimator(wanted)(randomizer, reports)
    else:
        overall = estimate_frequencies(randomizer, reports)
    if not wanted.by:
        public = Missing("no grouping column was asked for: list it in [estimate] by")
    everybody = shares_of(overall, labels, _true(truth, randomizer), span=span_of(randomizer))
    if isinstance(public, Missing):
        return Estimates("mean" if numeric else "share", LEVEL, everybody, public, withheld=[], estimator=estimator)
    parts = [_by_column(randomizer, reports, public[name], shuffler, wanted, labels, truth) for name in wanted.by]
    return Estimates(
        measure="mean" if numeric else "share",
        level=LEVEL,
        overall=everybody,
        groups=[entry for shares, _ in parts for entry in shares],
        withheld=[entry for _, small in parts for entry in small],
        estimator=estimator,
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


def _by_column(
    randomizer: FrequencyRandomizer | NumericRandomizer,
    reports: Reports,
    column: pl.Series,
    shuffler: Shuffler,
    wanted: EstimateSection,
    labels: list[str],
    truth: Truth,
) -> tuple[list[IntervalEstimates], list[dict[str, Any]]]:
    """One entry per group of at least `min_group_size` people; smaller ones are pooled and withheld."""
    names = column.unique().sort()
    codes = column.replace_strict(names, range(len(names)), return_dtype=pl.Int64).to_numpy()
    sizes = np.bincount(codes, minlength=len(names))
    kept = np.flatnonzero(sizes >= wanted.min_group_size)
    small = sizes.size - kept.size
    withheld = (
        [{"by": column.name, "groups": int(small), "people": int(sizes.sum() - sizes[kept].sum())}] if small else []
    )
    if kept.size == 0:
        return [], withheld
    place = np.full(sizes.size, kept.size, dtype=np.int64)
    place[kept] = np.arange(kept.size)
    places = place[codes]
    mixing = mixing_of(shuffler, places, column.name)
    if isinstance(randomizer, NumericRandomizer):
        estimate = estimate_group_means(randomizer, reports, places, mixing=mixing)
    else:
        estimate = estimate_groups(randomizer, reports, places, mixing=mixing)
    entries = []
    for row, group in enumerate(kept):
        part = estimate.group(row)
        true = _true(None if truth is None else truth[places == row], randomizer)
        entries.append(
            shares_of(part, labels, true, by=column.name, group=str(names[int(group)]), span=span_of(randomizer))
        )
    return entries, withheld


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


def _true(truth: Truth, randomizer: FrequencyRandomizer | NumericRandomizer) -> list[float] | None:
    if truth is None:
        return None
    if isinstance(randomizer, NumericRandomizer):
        return [float(truth.mean())]
    return [float(share) for share in np.bincount(truth, minlength=randomizer.k) / len(truth)]


def shares_of(
    estimate: Estimate,
    labels: list[str],
    truth: list[float] | None,
    by: str | None = None,
    group: str | None = None,
    *,
    span: tuple[float, float] | None = None,
) -> IntervalEstimates:
    """An estimate as the report holds it; `span` is the declared range of a mean.

    Interval and `possible` value are what the truth can be; the interval reaches to the possible value where the
    projection moved it further than the noise does, and covers no less for it.
    """
    low, high = estimate.interval(LEVEL)
    possible = estimate.value
    if len(labels) > 1:
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
        truth=truth,
        by=by,
        group=group,
    )


def span_of(randomizer: FrequencyRandomizer | NumericRandomizer) -> tuple[float, float] | None:
    """The declared range of a mean."""
    return (randomizer.lower, randomizer.upper) if isinstance(randomizer, NumericRandomizer) else None


def _list(values: Any) -> list[float]:
    return [float(value) for value in np.atleast_1d(values)]


NOT_WITH_DUMMIES = Missing("the shuffler adds dummies, whose promise holds against any knowledge")
NOT_WITH_USER_DUMMIES = Missing("people send dummies, whose promise holds against any knowledge")
NOT_WITH_CLASSES = Missing("people have different epsilons")
WEIGHTED = {
    "name": "weighted",
    "best": "weighted",
    "reason": "reports carry no class: people with a larger epsilon weigh more, so these are the shares of everybody "
    "only where class and answer are unrelated",
}
ONE_WITH_DUMMIES = Missing("counts with dummies have one estimator")
NO_ORDER = "a uniform shuffle keeps no order, so no report belongs to a group"


def evaluate(
    collection: Collection, batch: Reports, *, estimate: EstimateSection, truth: Any, provenance: str
) -> Evaluation:
    """All metrics that do not need the truth; with it (n,), the estimates stand beside it."""
    randomizer, shuffler = collection.randomizer, collection.shuffler
    public: pl.DataFrame | Missing = collection.survey.public if shuffler.keeps_places else Missing(NO_ORDER)
    if collection.dummies is not None:
        return _with_dummies(collection, collection.dummies, batch, truth=truth, provenance=provenance)
    if collection.classes is not None:
        return _with_classes(collection, collection.classes, batch, truth=truth, provenance=provenance)
    found = estimates(
        randomizer, batch, public, shuffler, wanted=estimate, labels=collection.categories or ["mean"], truth=truth
    )
    known = found.overall.truth
    return Evaluation(
        shuffler=shuffler.name,
        local=randomizer.guarantee.drawn_from(provenance),
        central=central_guarantee(
            randomizer, shuffler, delta=collection.delta, honest=collection.honest, provenance=provenance
        ),
        order=order_evaluation(shuffler, provenance=provenance),
        leakage=bayes_leakage(
            randomizer,
            shuffler,
            honest=collection.honest,
            shares=np.asarray(found.overall.possible if known is None else known),
            law="estimated" if known is None else "empirical",
        ),
        estimates=replace(found, better=better_randomizer(randomizer, n=shuffler.n, delta=collection.delta)),
    )


def unmeasured_of(collection: Collection) -> Missing | None:
    """Why attacks and local estimates are not measured for a collection; None where they are."""
    if isinstance(collection.dummies, UserDummies):
        return NOT_WITH_USER_DUMMIES
    if collection.dummies is not None:
        return NOT_WITH_DUMMIES
    return None if collection.classes is None else NOT_WITH_CLASSES


def _with_classes(
    collection: Collection, classes: EpsilonClasses, batch: Reports, *, truth: Any, provenance: str
) -> Evaluation:
    """Of people with different epsilons: what the most exposed class is promised, and weighted shares."""
    randomizer, public = collection.randomizer, collection.survey.public
    _, _, worst = max(collection.class_promises, key=lambda one: one[2].epsilon)
    shares = estimate_mixture(classes.classes(public), batch)
    true = None if truth is None else [float(one) for one in np.bincount(truth, minlength=classes.k) / len(truth)]
    everybody = shares_of(shares, collection.categories or [], true)
    return Evaluation(
        shuffler=collection.shuffler.name,
        local=randomizer.guarantee.drawn_from(provenance),
        central=worst.drawn_from(provenance),
        order=order_evaluation(collection.shuffler, provenance=provenance),
        leakage=NOT_WITH_CLASSES,
        estimates=Estimates(
            "share", LEVEL, everybody, Missing(NO_ORDER), withheld=[], estimator=WEIGHTED, better=NOT_WITH_CLASSES
        ),
    )


def described_dummies(collection: Collection) -> dict[str, Any]:
    """What a later stage must know of dummies among the released reports."""
    dummies, classes = collection.dummies, collection.classes
    if classes is not None:
        return {"classes": {"by": classes.column, "epsilons": dict(classes.epsilons)}}
    if dummies is None:
        return {}
    if isinstance(dummies, UserDummies):
        return {"user_dummies": {"rate": dummies.rate, "people": collection.n, "honest": collection.honest}}
    return {"dummies": {"epsilon": dummies.epsilon, "delta": dummies.delta, "people": collection.n}}


def _with_dummies(
    collection: Collection, dummies: Dummies | UserDummies, batch: Reports, *, truth: Any, provenance: str
) -> Evaluation:
    """All that is known of a batch with dummies: who has to be trusted differs, and so do errors and promises."""
    promise, found = _dummies_promise(collection, dummies, batch)
    unmeasured = unmeasured_of(collection)
    assert unmeasured is not None
    if isinstance(collection.randomizer, OpenNumbers):
        true = None if truth is None else [float(np.mean(truth))]
        everybody, measure = shares_of(found, ["mean"], true, span=span_of(collection.randomizer)), "mean"
    else:
        true = None if truth is None else [float(one) for one in np.bincount(truth, minlength=dummies.k) / len(truth)]
        everybody, measure = shares_of(found, collection.categories or [], true), "share"
    return Evaluation(
        shuffler=collection.shuffler.name,
        local=collection.randomizer.guarantee.drawn_from(provenance),
        central=promise.drawn_from(provenance),
        order=order_evaluation(collection.shuffler, provenance=provenance),
        leakage=unmeasured,
        estimates=Estimates(
            measure, LEVEL, everybody, Missing(NO_ORDER), withheld=[], estimator=ONE_WITH_DUMMIES, better=unmeasured
        ),
    )


def _dummies_promise(
    collection: Collection, dummies: Dummies | UserDummies, batch: Reports
) -> tuple[CentralDP, Estimate]:
    """What a batch with dummies promises, and the shares or the mean behind it."""
    n, honest, delta = collection.n, collection.honest, collection.delta
    number = collection.randomizer if isinstance(collection.randomizer, OpenNumbers) else None
    if isinstance(dummies, UserDummies):
        promise = user_dummies_guarantee(dummies, n=n, delta=delta, honest=honest)
        if number is not None:
            span = {"lower": number.lower, "upper": number.upper}
            return promise, mean_with_user_dummies(dummies, batch, **span, n=n, honest=honest)
        return promise, estimate_with_user_dummies(dummies, batch, n=n, honest=honest)
    layer = collection.randomizer if isinstance(collection.randomizer, KRR) else None
    promise = dummies_guarantee(dummies, n=n, delta=delta, randomizer=layer, honest=honest)
    if number is not None:
        return promise, mean_with_dummies(dummies, batch, lower=number.lower, upper=number.upper, n=n)
    return promise, estimate_with_dummies(dummies, batch, n=n, randomizer=layer)

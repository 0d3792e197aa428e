"""Bayes leakage: exact wherever the sums are short, otherwise an upper bound that says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from dovetail.core.channel import Channel, KRRChannel
from dovetail.core.errors import UnsupportedError
from dovetail.core.stages import FrequencyRandomizer, Randomizer, Shuffler
from dovetail.leak.reach import listed_channel, people_in_reach
from dovetail.leak.vulnerability import Vulnerability, vulnerability
from dovetail.pipeline.evaluate.guarantees import honest_batch
from dovetail.pipeline.evaluate.guess_at_hand import Shares, guess_at_hand
from dovetail.randomize.krr import KRR
from dovetail.report.document import BayesLeakage, Missing

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

"""Linkage: the chance that somebody names which of the shuffled reports is a given person's."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.channel import MOST_CELLS, Channel
from dovetail.core.checks import not_negative_or_infinite, whole
from dovetail.core.display import Display, Grid, chance_in_words, displayed_by
from dovetail.core.errors import UnsupportedError
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer, Randomizer
from dovetail.leak.query import Query, parse_query

Law = NDArray[np.float64]  # (outputs,) or (rows, outputs)

SOURCE = "docs/theory/linkage.md: the best guess names the report of the largest likelihood ratio"
_UP = 1.0 + 1e-12
_MOST_PAIRS = 5_000_000  # cells of all pairs of values


def _show(found: Linkage) -> Display:
    shares, values, blind = (
        chance_in_words(found.shares_known),
        chance_in_words(found.values_known),
        f"1 in {found.n:,}",
    )
    return Display(
        brief=f"Linkage: a person's report is named with chance at most {values}; blind {blind}",
        title=f"How often a person's report is picked out of {found.n:,}: at most {values}",
        grid=Grid(
            ("somebody who knows", "names her report with chance at most"),
            [
                ("nothing: picks any report", blind),
                ("her value, and the shares of the others' values", shares),
                ("her value, and the value of everybody else", values),
            ],
        ),
        notes=(found.source,),
    )


@displayed_by(_show)
@dataclass(frozen=True)
class Linkage:
    """Chance of naming a person's report among n that are shuffled uniformly.

    Parameters
    ----------
    n : int
        People whose places the adversary does not know; who colludes knows his own.
    blind : float
        1 / n.
    shares_known : float
        Of an adversary who knows her value and of all others the law of their values; mean over her value.
    values_known : float
        Upper bound, whatever people hold, of an adversary who knows everybody's value.
    values_known_lower : float
        What such an adversary reaches where all others hold one value; no bound is smaller than this.
    method : str
        Of `shares_known`: "exact sum", or "bound" where it is `values_known`.
    source : str

    Raises
    ------
    UnsupportedError
        From `linkage`, which makes them, where one report promises no pure epsilon.

    Examples
    --------
    >>> from dovetail.randomize.krr import KRR
    >>> linkage(KRR(k=10, epsilon=4.0), n=1_000_000)
    Linkage: a person's report is named with chance at most 1 in 18,300; blind 1 in 1,000,000
    """

    n: int
    blind: float
    shares_known: float
    values_known: float
    values_known_lower: float
    method: str
    source: str = SOURCE


def linkage(
    channel: Channel | FrequencyRandomizer | NumericRandomizer, *, n: int, prior: ArrayLike | None = None
) -> Linkage:
    r"""The chance of naming a person's report among those of n people, shuffled uniformly.

    .. math:: \frac1n E_{y_1, \ldots, y_n \sim Q} \max_j \frac{W(y_j \mid x)}{Q(y_j)}, \qquad
              Q = \sum_v \pi_v W(\cdot \mid v)

    for an adversary who knows her value x and of the others only that their values have the law pi; and

    .. math:: \frac{e^{\epsilon_0}}{n} \left(1 - (1 - e^{-\epsilon_0})^n\right)

    at most for one who knows everybody's values. Somebody to whom her value is as uncertain as the others' does no
    better than 1 / n, whatever the channel.

    Parameters
    ----------
    channel : Channel, or a randomizer
        The law of the whole message: what is sent along with a report belongs to it.
    n : int, at least 1
        People; without those who collude.
    prior : float array (k,), optional
        Law of the others' values and of hers; default uniform.

    Raises
    ------
    UnsupportedError
        Where one report promises no pure epsilon.

    Notes
    -----
    Naming a report needs knowledge of the value, and says nothing about the value: where it is easy, whatever travels
    with the report, or comes later, can be tied to a person. O(k^2 log k), milliseconds for every n up to 1e12.

    Examples
    --------
    >>> from dovetail.core.channel import KRRChannel
    >>> found = linkage(KRRChannel.of(2, 0.75), n=1000)
    >>> round(found.blind, 6), round(found.shares_known, 6), round(found.values_known, 6)
    (0.001, 0.0015, 0.003)

    Source
    ------
    docs/theory/linkage.md
    """
    if isinstance(channel, NumericRandomizer):
        return linkage_bound(pure_epsilon(channel), n=n)
    epsilon = pure_epsilon(channel) if isinstance(channel, FrequencyRandomizer) else channel.epsilon
    try:
        query = parse_query(channel, n=n, prior=prior, tries=1, gain=None)
    except UnsupportedError:  # more kinds of report than can be listed
        return linkage_bound(epsilon, n=n)
    most = _bound(epsilon, query.n)
    lower = min(most, _beside_one_value(query))
    exact = _beside_the_law(query)
    shares = most if exact is None else min(most, exact * _UP)
    return Linkage(query.n, 1.0 / query.n, shares, most, lower, "bound" if exact is None else "exact sum")


def linkage_bound(epsilon: float, *, n: int) -> Linkage:
    """A bound for every randomizer of this pure local epsilon.

    >>> linkage_bound(1.0, n=1000).values_known < 2.7183 / 1000
    True
    """
    people = whole("n", n, least=1, most=10**12)
    most = _bound(not_negative_or_infinite("epsilon", epsilon), people)
    return Linkage(people, 1.0 / people, most, most, 1.0 / people, "bound")


def linkage_among_dummies(law: Law, *, n: int, epsilon: float = math.inf) -> Linkage:
    """Linkage beside dummies, against somebody who knows all; `law` (most + 1,): how many say what her report says.

    >>> linkage_among_dummies(np.array([0.5, 0.5]), n=100).values_known
    0.7500000000007501
    """
    found = linkage_bound(epsilon, n=n)
    most = min(found.values_known, float((law / (1.0 + np.arange(law.size))).sum()) * _UP)
    return replace(found, blind=min(found.blind, most), shares_known=most, values_known=most, values_known_lower=0.0)


def pure_epsilon(randomizer: Randomizer) -> float:
    """The pure local epsilon of one report, nats; UnsupportedError where its guarantee has a delta."""
    guarantee = randomizer.guarantee
    if guarantee.delta > 0.0:
        raise UnsupportedError(
            "the bound on naming a report needs a pure local guarantee, and one report here promises delta = "
            f"{guarantee.delta:g}: an event of that probability may point at her report."
        )
    return guarantee.epsilon


def _bound(epsilon: float, n: int) -> float:
    """E[1 / (1 + C)], C binomial of the n - 1 others with chance e^-epsilon each; rounded up."""
    coin = math.exp(-min(epsilon, 700.0))
    if n * coin < 1e-9 or epsilon == 0.0:
        return 1.0 if epsilon else 1.0 / n
    return min(1.0, -math.expm1(n * math.log1p(-coin)) / (n * coin) * _UP)


def most_linked(law: Law, others: Law, n: int) -> NDArray[np.float64]:
    """(1 / n) E max L for each law (rows, outputs) of her report beside n - 1 reports of the law `others`.

    Her own report is named for sure where it is one that others cannot send.
    """
    seen = others > 0.0
    alone, ratio = law[:, ~seen].sum(axis=1), law[:, seen] / others[seen]
    order = np.argsort(ratio, axis=1)
    line = np.take_along_axis(ratio, order, axis=1)
    tail = np.minimum(1.0, np.cumsum(others[seen][order][:, ::-1], axis=1)[:, ::-1])  # of a ratio at least as large
    with np.errstate(divide="ignore"):  # the least ratio is always reached
        reached = -np.expm1(n * np.log1p(-tail))
    step = np.diff(line, axis=1, prepend=0.0)
    return np.asarray(alone + (step * reached).sum(axis=1) / n)


def _beside_the_law(query: Query) -> float | None:
    """Mean over her value of the best guess, the others' values drawn from the prior; None where out of reach."""
    krr, n = query.krr, query.n
    if krr is not None and query.uniform:  # her own value, and any other
        q = 1.0 / query.k
        return float(most_linked(np.array([[krr.p, 1.0 - krr.p]]), np.array([q, 1.0 - q]), n)[0])
    if query.channel.shape[0] * query.channel.shape[1] > MOST_CELLS:
        return None
    law: Any = query.channel.matrix()
    return float(query.prior @ most_linked(law, query.prior @ law, n))


def _beside_one_value(query: Query) -> float:
    """The best guess where all others hold one value, for the worst pair of values; 1 / n where out of reach."""
    krr, n = query.krr, query.n
    if krr is not None:  # her value, theirs, and any third
        rest = max(0.0, 1.0 - krr.p - krr.s)
        return float(most_linked(np.array([[krr.p, krr.s, rest]]), np.array([krr.s, krr.p, rest]), n)[0])
    if query.k * query.channel.shape[0] * query.channel.shape[1] > _MOST_PAIRS:
        return 1.0 / n
    law: Any = query.channel.matrix()
    return max(float(most_linked(law, row, n).max()) for row in law)

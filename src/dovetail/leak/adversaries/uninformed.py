"""The adversary who knows the prior and nothing about anybody: which formula answers."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dovetail.core.channel import KRRChannel
from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.leak.additive_leakage import Excess
from dovetail.leak.adversaries.distance import distance_excess
from dovetail.leak.adversaries.iid import iid_excess
from dovetail.leak.exact.histograms import listable
from dovetail.leak.max_load.max_load_unequal import Bins, heaviest
from dovetail.leak.max_load.top_t_load import top_excess
from dovetail.leak.query import Question

MOST_GROUPS = 200  # distinct prior probabilities


def uninformed(question: Question, *, rng: Entropy | None) -> tuple[Excess, Excess]:
    """What shuffled values, and shuffled randomized reports, add to the expected gain."""
    law = question.response
    if law is not None and question.uniform and (question.by_tries or question.by_distance):
        return _uniform(question, law)
    return shuffled_excess(question, n=question.n, rng=rng), iid_excess(question.joint(), n=question.n, rng=rng)


def _uniform(question: Question, law: KRRChannel) -> tuple[Excess, Excess]:
    """Propositions 20 and 21, also for tries and distance; below 1/k the least reported values are guessed."""
    k, n, contrast = law.k, question.n, abs(law.contrast)
    if question.by_distance:
        return distance_excess(k, 1.0, n=n), distance_excess(k, law.contrast, n=n)
    alone = fullest(n, k, question.tries)
    if law.keep >= law.lie:
        return alone, alone.times(contrast)
    return alone, _emptiest(question).times(contrast)


def _emptiest(question: Question) -> Excess:
    """What the emptiest bins miss: what the others have in excess."""
    try:
        return fullest(question.n, question.k, question.k - question.tries)
    except UnsupportedError as error:
        raise UnsupportedError(f"p is below 1/k, so that the emptiest bins decide. {error}") from None


@lru_cache(maxsize=256)
def fullest(n: int, k: int, tries: int) -> Excess:
    """What so many tries at shuffled values gain, uniform prior; kept, since a plan asks again and again."""
    load = top_excess(n, k, tries)
    return Excess.around(load.value / n, load.error_bound / n, load.method)


def shuffled_excess(question: Question, *, n: int, rng: Entropy | None) -> Excess:
    """Shuffling alone, n people with the prior: the identity as channel, or the fullest of unequal bins."""
    if question.uniform and question.by_distance:
        return distance_excess(question.k, 1.0, n=n)
    if question.uniform and question.by_tries:
        return fullest(n, question.k, question.tries)
    kinds = int(np.count_nonzero(question.prior))
    if question.one_try and n > 1 and kinds > 3 and not listable(n, kinds, actions=kinds):
        shares, counts = np.unique(question.prior[question.prior > 0.0], return_counts=True)
        if shares.size <= MOST_GROUPS:
            load = heaviest(n, tuple(Bins(int(c), float(p)) for p, c in zip(shares, counts, strict=True)))
            return Excess.around(max(0.0, load.value / n - float(shares[-1])), load.error_bound / n, load.method)
    return iid_excess(question.told(), n=n, rng=rng)


def own_excess(question: Question) -> float:
    """What one's own randomized report adds: the others say nothing about her (Proposition 15)."""
    law = question.response
    if law is not None and question.uniform and question.by_tries:
        k, t = law.k, question.tries
        if law.keep >= law.lie:
            return law.contrast * ((k - t) / k)
        return -law.contrast * (t / k) if t < k else 0.0
    if law is not None and question.uniform and question.by_distance:
        return distance_excess(law.k, law.contrast, n=1).value
    try:
        return iid_excess(question.joint(), n=1).value
    except UnsupportedError as error:
        raise UnsupportedError(f"One report by itself is already too large: {error}") from None

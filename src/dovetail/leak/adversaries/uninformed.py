"""The uninformed adversary, who knows the prior and nobody's value: which formula answers."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dovetail.core.channel import KRRChannel
from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.leak.additive_leakage import AdditiveLeakage
from dovetail.leak.adversaries.distance import distance_leakage
from dovetail.leak.adversaries.iid import iid_leakage
from dovetail.leak.exact.histograms import is_enumerable
from dovetail.leak.max_load.max_load_unequal import Bins, max_load_unequal
from dovetail.leak.max_load.top_t_load import top_t_load_gap
from dovetail.leak.query import Query

MOST_GROUPS = 200  # distinct prior probabilities


def uninformed_leakage(query: Query, *, rng: Entropy | None) -> tuple[AdditiveLeakage, AdditiveLeakage]:
    """What shuffled values, and shuffled randomized reports, add to the expected gain."""
    krr = query.krr
    if krr is not None and query.uniform and (query.is_tries_gain or query.is_distance_gain):
        return _uniform_prior_leakage(query, krr)
    return shuffled_leakage(query, n=query.n, rng=rng), iid_leakage(query.joint(), n=query.n, rng=rng)


def _uniform_prior_leakage(query: Query, krr: KRRChannel) -> tuple[AdditiveLeakage, AdditiveLeakage]:
    """Propositions 20 and 21, also for tries and distance; below 1/k the least reported values are guessed."""
    k, n, contrast = krr.k, query.n, abs(krr.contrast)
    if query.is_distance_gain:
        return distance_leakage(k, 1.0, n=n), distance_leakage(k, krr.contrast, n=n)
    alone = top_t_leakage(n, k, query.tries)
    if krr.keep >= krr.lie:
        return alone, alone.scale(contrast)
    return alone, _least_loaded_leakage(query).scale(contrast)


def _least_loaded_leakage(query: Query) -> AdditiveLeakage:
    """What the least loaded bins miss: what the others hold beyond their share."""
    try:
        return top_t_leakage(query.n, query.k, query.k - query.tries)
    except UnsupportedError as error:
        raise UnsupportedError(f"p is below 1/k, so the least loaded bins decide. {error}") from None


@lru_cache(maxsize=256)
def top_t_leakage(n: int, k: int, tries: int) -> AdditiveLeakage:
    """Additive leakage of shuffled values in t tries, uniform prior; cached, since a plan asks again and again."""
    load = top_t_load_gap(n, k, tries)
    return AdditiveLeakage.from_error(load.value / n, load.error_bound / n, load.method)


def shuffled_leakage(query: Query, *, n: int, rng: Entropy | None) -> AdditiveLeakage:
    """Shuffling alone, n people with the prior: the identity as channel, or the maximum load of unequal bins."""
    if query.uniform and query.is_distance_gain:
        return distance_leakage(query.k, 1.0, n=n)
    if query.uniform and query.is_tries_gain:
        return top_t_leakage(n, query.k, query.tries)
    kinds = int(np.count_nonzero(query.prior))
    if query.is_bayes and n > 1 and kinds > 3 and not is_enumerable(n, kinds, actions=kinds):
        shares, counts = np.unique(query.prior[query.prior > 0.0], return_counts=True)
        if shares.size <= MOST_GROUPS:
            load = max_load_unequal(n, tuple(Bins(int(c), float(p)) for p, c in zip(shares, counts, strict=True)))
            return AdditiveLeakage.from_error(
                max(0.0, load.value / n - float(shares[-1])), load.error_bound / n, load.method
            )
    return iid_leakage(query.identity_joint(), n=n, rng=rng)


def single_report_leakage(query: Query) -> float:
    """Additive leakage of one's own randomized report: the others say nothing about her (Proposition 15)."""
    krr = query.krr
    if krr is not None and query.uniform and query.is_tries_gain:
        k, t = krr.k, query.tries
        if krr.keep >= krr.lie:
            return krr.contrast * ((k - t) / k)
        return -krr.contrast * (t / k) if t < k else 0.0
    if krr is not None and query.uniform and query.is_distance_gain:
        return distance_leakage(krr.k, krr.contrast, n=1).value
    try:
        return iid_leakage(query.joint(), n=1).value
    except UnsupportedError as error:
        raise UnsupportedError(f"One report by itself is already too large: {error}") from None

"""The strong adversary, who knows the values of some or all others: which formula answers."""

from __future__ import annotations

from contextlib import suppress

from dovetail.core.channel import KRRChannel
from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.leak.additive_leakage import AdditiveLeakage
from dovetail.leak.adversaries.known_others import (
    binary_known_others_leakage,
    identical_others_leakage,
    known_others_leakage,
)
from dovetail.leak.adversaries.strong_bounds import blanket_upper_bound, merged_outputs_lower_bound
from dovetail.leak.adversaries.uninformed import shuffled_leakage, uninformed_leakage
from dovetail.leak.exact.poisson_multinomial import MOST_CELLS, IndependentReports, cell_count
from dovetail.leak.qif.arithmetic import scientific
from dovetail.leak.query import Query

REACH = "Exact sums for known others reach about n = 1e5 at three kinds of report, 500 at four, 50 at five."
SOURCE_STRONG = (
    "Jurado, Gonze, Alvim, Palamidessi (2023), CSF, Definition 2 and equation 10 (with column maxima), for others of "
    "whom any number is known"
)


def strong_leakage(
    query: Query, known: tuple[int, ...] | None, *, rng: Entropy | None
) -> tuple[AdditiveLeakage, AdditiveLeakage]:
    """What shuffled values, and shuffled randomized reports, add beside the knowledge."""
    if known is None:
        upper = blanket_upper_bound(_require_uniform_krr(query, "A bracket for every knowledge"), n=query.n)
        lower = uninformed_leakage(query, rng=rng)[1].lower
        alone = shuffled_leakage(query, n=1, rng=rng)
        return alone, AdditiveLeakage.from_bracket(min(lower, upper), upper)
    unknown = query.n - 1 - sum(known)
    # the shuffled values of people she knows are subtracted: what is left is a smaller collection
    return shuffled_leakage(query, n=unknown + 1, rng=rng), _randomized_shuffled(query, known, unknown)


def _randomized_shuffled(query: Query, known: tuple[int, ...], unknown: int) -> AdditiveLeakage:
    if not any(known):
        with suppress(UnsupportedError):  # sums of positive terms, which keep the digits of a tiny leakage
            return uninformed_leakage(query, rng=None)[1]
    krr, plain = query.krr, query.uniform and query.is_bayes
    friendly = krr is not None and krr.keep >= krr.lie
    if krr is not None and friendly and plain and krr.k > 2 and max(known) == query.n - 1 > 0:
        with suppress(UnsupportedError):  # too many people: a bracket is left
            return identical_others_leakage(krr, n=query.n)
    matrix = query.channel.matrix()
    others = [IndependentReports(count, matrix[value]) for value, count in enumerate(known) if count]
    if unknown:
        others.append(IndependentReports(unknown, query.prior @ matrix))
    joint = query.joint()[:-1]
    if matrix.shape == (2, 2) and plain:
        return binary_known_others_leakage(float(matrix[0, 0] - matrix[1, 0]), others)
    if not others:
        others = [IndependentReports(0, matrix[0])]
    if cell_count(others) <= MOST_CELLS:
        return known_others_leakage(joint, others)
    upper = blanket_upper_bound(
        _require_uniform_krr(
            query,
            f"Distribution of the other reports too large ({scientific(cell_count(others))} cells); the bracket",
        ),
        n=query.n,
    )
    return AdditiveLeakage.from_bracket(min(upper, merged_outputs_lower_bound(joint, others, known=known)), upper)


def _require_uniform_krr(query: Query, what: str) -> KRRChannel:
    krr = query.krr
    if krr is None or not query.uniform or not query.is_bayes:
        raise UnsupportedError(f"{what} needs k-ary randomized response, the uniform prior and one try. {REACH}")
    return krr

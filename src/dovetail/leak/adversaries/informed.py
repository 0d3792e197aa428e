"""The adversary who knows some or all others: which formula answers."""

from __future__ import annotations

from contextlib import suppress

from dovetail.core.channel import KRRChannel
from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.leak.additive_leakage import Excess
from dovetail.leak.adversaries.revealed_or_merged import any_knowledge, merged_excess
from dovetail.leak.adversaries.strong import alike_excess, binary_excess, informed_excess
from dovetail.leak.adversaries.uninformed import shuffled_excess, uninformed
from dovetail.leak.exact.histogram_law import MOST_CELLS, Group, cells
from dovetail.leak.qif.arithmetic import in_powers
from dovetail.leak.query import Question

REACH = "Exact sums for known others reach about n = 1e5 at three kinds of report, 500 at four, 50 at five."
SOURCE_STRONG = (
    "Jurado, Gonze, Alvim, Palamidessi (2023), CSF, Definition 2 and equation 10 (with column maxima), for others of "
    "whom any number is known"
)


def informed(question: Question, known: tuple[int, ...] | None, *, rng: Entropy | None) -> tuple[Excess, Excess]:
    """What shuffled values, and shuffled randomized reports, add beside the knowledge."""
    if known is None:
        upper = any_knowledge(_plain(question, "A bracket for every knowledge"), n=question.n)
        lower = uninformed(question, rng=rng)[1].lower
        alone = shuffled_excess(question, n=1, rng=rng)
        return alone, Excess.between(min(lower, upper), upper)
    unknown = question.n - 1 - sum(known)
    # the shuffled values of people she knows are subtracted: what is left is a smaller collection
    return shuffled_excess(question, n=unknown + 1, rng=rng), _reports(question, known, unknown)


def _reports(question: Question, known: tuple[int, ...], unknown: int) -> Excess:
    if not any(known):
        with suppress(UnsupportedError):  # sums of positive terms, which keep the digits of a tiny leakage
            return uninformed(question, rng=None)[1]
    law, plain = question.response, question.uniform and question.one_try
    friendly = law is not None and law.keep >= law.lie
    if law is not None and friendly and plain and law.k > 2 and max(known) == question.n - 1 > 0:
        with suppress(UnsupportedError):  # too many people: ends are left
            return alike_excess(law, n=question.n)
    matrix = question.channel.matrix()
    others = [Group(count, matrix[value]) for value, count in enumerate(known) if count]
    if unknown:
        others.append(Group(unknown, question.prior @ matrix))
    joint = question.joint()[:-1]
    if matrix.shape == (2, 2) and plain:
        return binary_excess(float(matrix[0, 0] - matrix[1, 0]), others)
    if not others:
        others = [Group(0, matrix[0])]
    if cells(others) <= MOST_CELLS:
        return informed_excess(joint, others)
    upper = any_knowledge(
        _plain(question, f"{in_powers(cells(others))} cells of the others' law are too many, and the bracket"),
        n=question.n,
    )
    return Excess.between(min(upper, merged_excess(joint, others, known=known)), upper)


def _plain(question: Question, what: str) -> KRRChannel:
    law = question.response
    if law is None or not question.uniform or not question.one_try:
        raise UnsupportedError(f"{what} needs k-ary randomized response, the uniform prior and one try. {REACH}")
    return law

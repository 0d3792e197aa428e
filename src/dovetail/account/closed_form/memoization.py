"""The same question every round: a permanent random answer, drawn once and kept, for values that never change."""

from __future__ import annotations

from dataclasses import replace

from dovetail.account.amplify import amplify
from dovetail.core.channel import KRRChannel
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.core.guarantee import CentralDP
from dovetail.randomize.krr import KRR

SOURCE = "all rounds are post-processing of permanent answers (docs/theory/accuracy.md, section E)"
PATTERN = (
    "The pattern of changes is not protected: with two answers and both stages at epsilon 2, one change halfway is "
    "told from none with a loss of 11.7 after 12 rounds and 51.7 after 52, not 4."
)
WORD = "Say `constant_values=True`"
CHANGES = (
    f"Memoized answers promise nothing about values that change. {PATTERN} {WORD} if values cannot change; else "
    "freeze the first value, or compose fresh reports with dt.compose."
)


def memoized_guarantee(
    permanent: KRR, *, n: int, delta: float, constant_values: bool, honest: int | None = None
) -> CentralDP:
    """What all rounds together reveal of one person who keeps her permanent answer: that of a single round.

    Each person draws y = permanent(x) once and keeps it; in every round she sends y, or a fresh randomization of y.
    Even if her reports are linked over the rounds by a random pseudonym, all of them are post-processing of the
    shuffled y. Holds if values are constant, everybody takes part in the same rounds and no memory is lost: a new
    device draws a second answer, and the claim ends.

    Parameters
    ----------
    permanent : KRR
    n : int
        People who take part in the rounds that this person takes part in.
    constant_values : bool
        Your word that nobody's value changes over the rounds; without it nothing is promised.
    honest : int, optional
        As in `amplify`.

    Raises
    ------
    UnsupportedError
        For values that may change, with what would leak.

    Examples
    --------
    >>> promise = memoized_guarantee(KRR(k=4, epsilon=7.7), n=100_000, delta=1e-6, constant_values=True)
    >>> promise.epsilon < 1.0, promise.colluding
    (True, 7.7)

    Source
    ------
    docs/theory/accuracy.md, section E.
    """
    if constant_values is not True:
        raise UnsupportedError(CHANGES)
    once = amplify(permanent, n=n, delta=delta, honest=honest)
    return replace(once, source=f"{once.source}; {SOURCE}")


def chain_of(permanent: KRR, fresh: KRR | None = None) -> KRRChannel:
    """The law of one round's report given the value: both stages, in whole masses.

    Raises
    ------
    ParameterError
        For stages of different k.

    Examples
    --------
    >>> both = chain_of(KRR(k=2, epsilon=2.0), KRR(k=2, epsilon=2.0))
    >>> round(both.epsilon, 2)
    1.33
    """
    first = permanent.channel()
    if fresh is None:
        return first
    second = fresh.channel()
    if first.k != second.k:
        raise ParameterError(f"`fresh` must be of the {first.k:,} symbols of the permanent answer, got {second.k:,}.")
    keep = first.keep * second.keep + (first.k - 1) * first.lie * second.lie
    lie = first.keep * second.lie + first.lie * second.keep + (first.k - 2) * first.lie * second.lie
    return KRRChannel(first.k, keep, lie)

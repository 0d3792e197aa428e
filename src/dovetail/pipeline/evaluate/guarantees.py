"""What applies to which shuffler, and what it says: the central guarantee and order privacy.

Amplification holds inside blocks of people who can be relabelled without changing the law of the order, and shuffled
leakage is exact for a uniform shuffle; neither is promised for anything else (docs/theory/bounds-on-attacks.md).
"""

from __future__ import annotations

from dovetail.account.amplify import amplify
from dovetail.core.guarantee import CentralDP
from dovetail.core.stages import Randomizer, Shuffler
from dovetail.report.document import Missing, OrderEvaluation

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

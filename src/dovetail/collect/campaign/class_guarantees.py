"""What people of each class are promised where they have different epsilons behind one shuffle.

How many people of each class a batch holds is public, and signed by the shuffler. Which of them are honest, and whose
reports cannot be read, nobody knows: for each class the worst allocation is counted (`worst_others`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from dovetail.account.composition.mixture_rounds import MixtureRounds
from dovetail.account.mechanisms.mixture.krr_mixture import MixtureLaw, amplify_class, worst_others
from dovetail.core.bracket import Bracket
from dovetail.core.guarantee import CentralDP
from dovetail.core.numeric.rounding import round_up_to_double
from dovetail.randomize.krr import KRR
from dovetail.report.document import Missing
from dovetail_protocol.budget import cost
from dovetail_protocol.campaign import Campaign

ALONE = "somebody in it hides among nobody who is assumed honest: the local guarantee is all there is"
NOBODY = "nobody of this class has been in a batch yet"
MOST_COMPOSED = 10_000  # rounds that are composed before anybody takes part; more are told by their budgets alone
TOO_MANY = Missing(f"more than {MOST_COMPOSED:,} rounds: their budgets add")
WEIGHTED = (
    "Shares are weighted: reports do not say their sender's class, and people with a larger epsilon weigh more. They "
    "are the shares of everybody only where class and answer are unrelated."
)
Promise = CentralDP | Missing
Classes = tuple[KRR, ...]  # from the smallest epsilon on


class MixedBatch(NamedTuple):
    """A batch in the numbers that promises to classes depend on.

    sizes : people of each class who sent something; () where nobody knows, as before anybody takes part.
    crowd : valid reports that everybody's is hidden among. honest : of them, as far as assumed; may be negative.
    """

    sizes: tuple[int, ...]
    crowd: int
    honest: int

    def sizes_beside(self, place: int, classes: int) -> tuple[int, ...]:
        """The sizes; where nobody knows them, at worst: everybody else of the class with the largest epsilon."""
        return self.sizes or tuple((at == place) + self.crowd * (at == classes - 1) for at in range(classes))


@dataclass(frozen=True)
class ClassGuarantee:
    """What is promised to the people of one class.

    Parameters
    ----------
    local : float
        Epsilon of one report, whoever sees it.
    most_reports : int
        Of one device of the class in the counted rounds.
    all_local : float
        Epsilon of so many reports.
    people : int
        Of the class in the latest batch.
    latest : CentralDP, Missing or None
        Of the latest batch; None before the first.
    every : CentralDP, Missing or None
        Of each batch that holds people of the class.
    composed : CentralDP or Missing
        Of all batches together.
    """

    name: str
    local: float
    most_reports: int
    all_local: float
    people: int
    latest: Promise | None
    every: Promise | None
    composed: Promise


def class_guarantees(campaign: Campaign, batches: Sequence[MixedBatch]) -> tuple[ClassGuarantee, ...]:
    """Of every class, after these batches in the order of their rounds."""
    return tuple(_of_class(campaign, place, batches) for place in range(len(campaign.classes)))


def expected_class_guarantees(campaign: Campaign, batch: MixedBatch) -> tuple[ClassGuarantee, ...]:
    """Of every class, if it takes part in as many batches like this one as its budget and the campaign allow."""
    most = [min(campaign.schedule.count, campaign.of_class(at).affordable) for at in range(len(campaign.classes))]
    found = class_guarantees(campaign, [batch] * min(max(most, default=0), MOST_COMPOSED))
    return tuple(
        replace(each, most_reports=n, all_local=round_up_to_double(cost(n, each.local)), composed=TOO_MANY)
        if n > MOST_COMPOSED else each for n, each in zip(most, found, strict=True)
    )  # fmt: skip


def batch_promises(campaign: Campaign, batch: MixedBatch) -> tuple[Promise, ...]:
    """Of one batch, class by class."""
    return tuple(batch_promise(campaign, place, batch) for place in range(len(campaign.classes)))


def most_exposed(promises: Sequence[Promise]) -> Promise:
    """What everybody is promised who is in a batch: the largest epsilon, or why somebody has none."""
    kept = [each for each in promises if each != Missing(NOBODY)]
    for promise in kept:
        if isinstance(promise, Missing):
            return promise
    found = [each for each in kept if isinstance(each, CentralDP)]
    return max(found, key=lambda each: each.epsilon) if found else Missing(NOBODY)


def batch_promise(campaign: Campaign, place: int, batch: MixedBatch) -> Promise:
    """Of one batch, to a person of this class."""
    classes = _randomizers(campaign)
    sizes = batch.sizes_beside(place, len(classes))
    if not sizes[place]:
        return Missing(NOBODY)
    if batch.honest < 2:
        return Missing(ALONE)
    return _one(classes, place, sizes, batch.crowd, batch.honest, campaign.promise.delta)


def compose_promises(campaign: Campaign, place: int, batches: Sequence[MixedBatch], *, most: int) -> Promise:
    """Of all batches together, to a person of this class who is in at most so many of them.

    Every batch counts as one that has, of each class, only as many honest others as the one that has fewest: with
    more of any class delta is smaller, so this bounds every choice of batches that does not depend on her values.
    """
    classes = _randomizers(campaign)
    epsilons = [one.epsilon for one in classes]
    sized = [(batch.sizes_beside(place, len(classes)), batch) for batch in batches]
    hers = [(sizes, batch) for sizes, batch in sized if sizes[place]]
    rounds = min(most, len(hers))
    if not rounds:
        return Missing(NOBODY)
    each = [worst_others(sizes, epsilons, own=place, honest=max(1, batch.honest)) for sizes, batch in hers]
    fewest = tuple(min(counts) for counts in zip(*each, strict=True))
    return _together(classes, place, fewest, rounds, min(batch.crowd for _, batch in hers), campaign.promise.delta)


def _of_class(campaign: Campaign, place: int, batches: Sequence[MixedBatch]) -> ClassGuarantee:
    own = campaign.of_class(place)
    most = min(len(batches), own.affordable)
    return ClassGuarantee(
        name=campaign.classes[place].name,
        local=own.charged,
        most_reports=most,
        all_local=round_up_to_double(cost(most, own.charged)),
        people=batches[-1].sizes[place] if batches and batches[-1].sizes else 0,
        latest=batch_promise(campaign, place, batches[-1]) if batches else None,
        every=_every(campaign, place, batches) if batches else None,
        composed=compose_promises(campaign, place, batches, most=most),
    )


def _every(campaign: Campaign, place: int, batches: Sequence[MixedBatch]) -> Promise:
    """Of each batch so far that she can be in, whichever it is."""
    hers = [batch for batch in batches if batch.sizes_beside(place, len(campaign.classes))[place]]
    if any(batch.honest < 2 for batch in hers):
        return Missing(ALONE)
    return compose_promises(campaign, place, hers, most=1)


def _randomizers(campaign: Campaign) -> Classes:
    mechanism: Any = campaign.mechanism
    return tuple(KRR(mechanism.k, each.epsilon) for each in campaign.classes)


@lru_cache(maxsize=4096)
def _one(classes: Classes, place: int, sizes: tuple[int, ...], crowd: int, honest: int, delta: float) -> CentralDP:
    pairs = list(zip(sizes, classes, strict=True))
    return amplify_class(pairs, place, crowd=crowd, honest=honest, delta=delta)


@lru_cache(maxsize=256)
def _together(classes: Classes, place: int, others: tuple[int, ...], rounds: int, n: int, delta: float) -> CentralDP:
    own = classes[place]
    law = MixtureLaw(own, tuple((count, one) for count, one in zip(others, classes, strict=True) if count))
    epsilon, method, source = MixtureRounds(law, rounds).epsilon(delta)
    return CentralDP(
        all=epsilon, honest=epsilon, colluding=round_up_to_double(cost(rounds, own.epsilon)), delta=delta, n=n,
        honest_n=sum(others) + 1, method=method, source=source, numeric=Bracket(0.0, epsilon), attack_lower=0.0,
    )  # fmt: skip

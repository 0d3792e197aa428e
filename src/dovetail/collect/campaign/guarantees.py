"""What the counted batches promise to the people in them: for one report, for a batch, and for all of them.

Central guarantees count on n = min(assumed honest, valid reports of distinct devices - assumed dishonest) people of
the batch that was released, never on what was planned. Where reports name a public group, people hide among their
group only, and while keys are changed among the reports of their own version of the campaign, because the analyzer
sees which one opens a report: everybody who is not assumed honest is then assumed to sit in the smallest such crowd.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import inf, isfinite, log

from dovetail.account.amplify import amplify
from dovetail.account.compose import Composition, compose_upper
from dovetail.account.composition.shuffled_round import ShuffledRound
from dovetail.collect.campaign.class_guarantees import (
    ClassGuarantee,
    MixedBatch,
    batch_promises,
    class_guarantees,
    most_exposed,
)
from dovetail.collect.campaign.dummies_guarantees import guarantee_of_rounds, guarantee_with_dummies
from dovetail.core.guarantee import CentralDP, LocalDP
from dovetail.core.numeric.rounding import round_up_to_double
from dovetail.core.stages import Randomizer
from dovetail.core.verdict import Promise, Verdict, judge
from dovetail.randomize.sampling.from_device import from_device
from dovetail.report.document import Missing
from dovetail_protocol.budget import cost
from dovetail_protocol.campaign import Campaign

MIXED_VERSIONS = "a batch holds reports of two versions of the campaign, which tell their senders apart"
FEW = 8  # different batch sizes that are composed; more are rounded down to as many


@dataclass(frozen=True)
class ReleasedBatch:
    """A released batch, in the numbers that its guarantee depends on.

    Parameters
    ----------
    t : int
        Its round; the last one, if several were merged.
    sent : int
        Reports in the batch, of as many devices.
    n : int
        Valid ones.
    smallest : int
        Valid ones in the smallest crowd that has any: of one public group, under one version; n where all are one.
    block : int, optional
        Order-private batches: valid ones in the smallest set of roster slots that are mixed uniformly and have any;
        None where the order is not uniform inside such sets, or the public table is not at hand.
    own_alpha : float, optional
        What the order tells inside the public groups, where the shuffler's alpha is about others.
    followers : int, optional
        Where people send dummies and too few came: how many of the n can have sent theirs; None elsewhere.
    classes : tuple of int
        Where people have different epsilons: people of each class who sent one; () where nobody knows yet.
    """

    t: int
    sent: int
    n: int
    smallest: int
    block: int | None = None
    own_alpha: float | None = None
    followers: int | None = None
    classes: tuple[int, ...] = ()

    @property
    def crowd(self) -> int:
        """Valid reports that everybody's is hidden among, at worst."""
        return self.smallest if self.block is None else min(self.smallest, self.block)


@dataclass(frozen=True)
class BatchGuarantee:
    """The promise for one released batch."""

    released: ReleasedBatch
    honest: int  # of the smallest crowd, as far as assumed
    central: CentralDP | Missing  # where people have different epsilons, of the most exposed class
    by_class: tuple[CentralDP | Missing, ...] = ()


@dataclass(frozen=True)
class CampaignGuarantees:
    """Everything that is promised so far.

    Parameters
    ----------
    local : LocalDP
        For one report, whoever sees it; all that remains if the shuffler colludes with the analyzer.
    most_reports : int
        Reports of one device in the counted rounds, at most: its budget allows no more.
    all_local : float
        Local epsilon of so many reports.
    weakest, latest : BatchGuarantee or None
        Of the batch with the fewest honest people, and of the last one; None before the first. Where people have
        different epsilons none is the weakest: `every` of each class holds for all batches.
    composed : CentralDP, Composition or Missing
        All counted rounds together, for a device that took part in the weakest ones its budget allows.
    alpha : float or Missing
        What the order of one released batch may tell; `all_alpha` : of all that one device takes part in.
    """

    local: LocalDP
    most_reports: int
    all_local: float
    rounds: int
    weakest: BatchGuarantee | None
    latest: BatchGuarantee | None
    composed: CentralDP | Composition | Missing
    alpha: float | Missing
    all_alpha: float | Missing
    short: tuple[ReleasedBatch, ...]  # batches with fewer valid reports than the campaign's minimum
    doubtful: tuple[ReleasedBatch, ...]  # batches to which not everybody can have sent dummies
    classes: tuple[ClassGuarantee, ...] = ()  # where people have different epsilons; the rest is of the most exposed

    @property
    def verdict(self) -> Verdict:
        """How well one person is protected so far, by whom one has to trust."""
        batch = self.weakest or self.latest
        local = self.all_local if batch else self.local.epsilon
        return judge_batches(local, batch.central if batch else Missing("no batch so far"), self.composed)


def judge_batches(local: float, one: CentralDP | Missing, together: CentralDP | Composition | Missing) -> Verdict:
    """Judge what all batches of one device promise together, on the scale of plans and reports.

    `local` is what all its reports promise, `one` the guarantee of the weakest batch, which says who hides whom.
    """
    if isinstance(one, Missing) or isinstance(together, Missing) or together.epsilon is None:
        return judge(Promise(local), n=1, shuffled=False)
    promise = Promise(together.epsilon, together.delta)
    alone = one.trust == "shuffler" and one.honest_n == 1  # the shuffler's noise needs no other people
    return judge(
        Promise(local), shuffler=promise if alone else None, people=promise,
        n=one.n, honest=None if alone else one.honest_n,
    )  # fmt: skip


def campaign_guarantees(campaign: Campaign, released: Sequence[ReleasedBatch]) -> CampaignGuarantees:
    """What is promised after these batches, in order of their rounds."""
    local = _local(campaign)
    most = min(len(released), campaign.affordable)
    promised = [batch_guarantee(campaign, each) for each in weakest_and_latest(campaign, released)]
    alpha = order_alpha(campaign, released)
    classes = class_guarantees(campaign, [mixed_batch(campaign, each) for each in released])
    spent = max((each.all_local for each in classes), default=all_local(most, local.epsilon))
    return CampaignGuarantees(
        local=local,
        most_reports=max((each.most_reports for each in classes), default=most),
        all_local=spent,
        rounds=len(released),
        weakest=promised[0] if promised and not campaign.classes else None,
        latest=promised[1] if promised else None,
        composed=compose_batches(campaign, released, most=most),
        alpha=alpha,
        all_alpha=alpha if isinstance(alpha, Missing) else round_up_to_double(most * Fraction(alpha)),
        short=tuple(each for each in released if each.n < campaign.batch.minimum),
        doubtful=tuple(each for each in released if each.followers is not None),
        classes=classes,
    )


def _local(campaign: Campaign) -> LocalDP:
    """Of one report, which is the answer itself where only other people's dummies hide it."""
    if campaign.sent is not None:
        return LocalDP(inf, source="answers are sent as they are")
    return from_device(campaign.mechanism).guarantee


def all_local(reports: int, epsilon: float) -> float:
    """The local epsilon of so many reports."""
    return round_up_to_double(cost(reports, epsilon)) if isfinite(epsilon) else (inf if reports else 0.0)


def weakest_and_latest(campaign: Campaign, released: Sequence[ReleasedBatch]) -> list[ReleasedBatch]:
    """The weakest batch and the latest one; none of none."""
    if not released:
        return []
    return [min(released, key=lambda each: honest_people(campaign, each)), released[-1]]


def batch_guarantee(campaign: Campaign, released: ReleasedBatch) -> BatchGuarantee:
    """The central guarantee of one batch, or why there is none."""
    honest, why = honest_people(campaign, released), reason_without_central(campaign, [released])
    if campaign.classes:
        promised = batch_promises(campaign, mixed_batch(campaign, released))
        return BatchGuarantee(released, honest, most_exposed(promised), promised)
    trusting = campaign.promise.trust != "local"
    if why is None and honest < 2 and not trusting:
        why = "somebody in it hides among nobody who is assumed honest: the local guarantee is all there is"
    if why is not None:
        return BatchGuarantee(released, honest, Missing(why))
    if trusting:
        return BatchGuarantee(released, honest, guarantee_with_dummies(campaign, n=released.n, honest=honest))
    randomizer = from_device(campaign.mechanism)
    return BatchGuarantee(released, honest, _central(randomizer, released.crowd, honest, campaign.promise.delta))


def mixed_batch(campaign: Campaign, released: ReleasedBatch) -> MixedBatch:
    """The batch as promises to classes need it."""
    return MixedBatch(released.classes, released.crowd, honest_people(campaign, released))


def honest_people(campaign: Campaign, released: ReleasedBatch) -> int:
    """How many honest people everybody hides among, in the smallest crowd and at worst; may be negative."""
    promise, n = campaign.promise, released.n
    honest = min(n if promise.assumed_honest is None else promise.assumed_honest, n - promise.assumed_dishonest)
    if released.followers is not None:
        honest = min(honest, released.followers)
    return released.crowd - (n - honest)


def most_dishonest(campaign: Campaign) -> int:
    """Reports of the smallest batch that may be dishonest people's, or one person's several, as is promised."""
    n = campaign.batch.minimum
    return n - honest_people(campaign, ReleasedBatch(t=1, sent=n, n=n, smallest=n))


def reason_without_central(campaign: Campaign, released: Sequence[ReleasedBatch]) -> str | None:
    """Why these batches have no central guarantee; None where they have."""
    if campaign.order_private and any(each.block is None for each in released):
        return (
            "amplification is quoted for uniform shuffles of people who can stand for each other in the order, by an "
            "analyzer that has the public table and the released batch"
        )
    fixed = campaign.order_private or campaign.promise.trust != "local"
    if fixed and any(each.smallest < each.n for each in released):
        return MIXED_VERSIONS
    if campaign.promise.authentication == "none":
        return "anybody may send any number of reports, so that distinct people are not assured"
    return None


def compose_batches(
    campaign: Campaign, released: Sequence[ReleasedBatch], *, most: int
) -> CentralDP | Composition | Missing:
    """All rounds together, for a device in the `most` weakest ones.

    A batch of more honest people promises more, as theirs are reports that anybody could add; so this bounds every
    choice of rounds that does not depend on the device's values. A person whose batch holds nobody else who is honest
    still has her own randomizer: n = 1.
    """
    why = reason_without_central(campaign, released)
    if why is not None or not most:
        return Missing(why or "no batch has been counted yet")
    if campaign.classes:
        batches = [mixed_batch(campaign, each) for each in released]
        return most_exposed([each.composed for each in class_guarantees(campaign, batches)])
    sizes = sorted(max(1, honest_people(campaign, each)) for each in released)[:most]
    if most == 1:
        return batch_guarantee(campaign, weakest_and_latest(campaign, released)[0]).central
    if campaign.promise.trust != "local":
        weakest = honest_people(campaign, weakest_and_latest(campaign, released)[0])
        return guarantee_of_rounds(campaign, n=min(each.n for each in released), rounds=most, honest=weakest)
    if len(set(sizes)) > FEW:
        sizes = _fewer(sizes)
    times = tuple((size, sizes.count(size)) for size in sorted(set(sizes)))
    return _compose(from_device(campaign.mechanism), times, campaign.promise.delta)


def order_alpha(campaign: Campaign, released: Sequence[ReleasedBatch]) -> float | Missing:
    """What the order of one batch may tell about who in a public group sent which report."""
    if not campaign.order_private:
        return 0.0
    if any(each.smallest < each.n for each in released):
        return Missing(MIXED_VERSIONS)
    if "refine" in campaign.shuffle.settings:
        own = [each.own_alpha for each in released if each.own_alpha is not None]
        if own and len(own) == len(released):
            return max(own)
        return Missing("the campaign's alpha holds inside the refined groups only, not for the public ones")
    return campaign.shuffle.alpha or 0.0


@lru_cache(maxsize=4096)
def _central(randomizer: Randomizer, n: int, honest: int, delta: float) -> CentralDP:
    return amplify(randomizer, n=n, delta=delta, honest=honest)


@lru_cache(maxsize=256)
def _compose(randomizer: Randomizer, times: tuple[tuple[int, int], ...], delta: float) -> Composition:
    return compose_upper([ShuffledRound.of(randomizer, n, times=count) for n, count in times], delta=delta)


def _fewer(sizes: Sequence[int]) -> list[int]:
    """Ascending sizes, each rounded down to the smallest one of its class; `FEW` classes of equal ratio.

    >>> _fewer([100, 101, 102, 150, 151, 200])
    [100, 100, 100, 150, 150, 200]
    """
    width = log(sizes[-1] / sizes[0])
    least: dict[int, int] = {}
    return [least.setdefault(min(FEW - 1, int(FEW * log(size / sizes[0]) / width)), size) for size in sizes]

"""Guarantees of counted batches to the people in them: for one report, for a batch, and for all of them.

Central guarantees count on n = min(assumed honest, valid reports of distinct devices - assumed dishonest) people of
the batch that was released, never on what was planned. Where reports name a public group, people hide among their
group only, and while keys are changed among the reports of their own version of the campaign, because the analyzer
sees which one opens a report: everybody who is not assumed honest is then assumed to sit in the smallest such crowd.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import inf, isfinite, log
from typing import Any, NamedTuple

from dovetail.account.amplify import amplify
from dovetail.account.compose import NEIGHBOURS, Composition, compose_upper, local_guarantee
from dovetail.account.dummies import UserDummiesLaw, dummies_guarantee, sparse_guarantee, user_dummies_guarantee
from dovetail.account.gaussian_dummies import Message
from dovetail.account.mixture import MixtureLaw, amplify_class, worst_others
from dovetail.account.questions import JointReport, OneQuestion
from dovetail.account.rounds import MixtureRounds, ShuffledRound
from dovetail.collect.campaign.terms import ShufflerDummies, added_dummies, forms_of, people_dummies, subject_of
from dovetail.core.certified import Bracket, round_up_to_double
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.core.guarantee import CentralDP, LocalDP
from dovetail.core.missing import Missing
from dovetail.core.stages import Randomizer
from dovetail.core.verdict import Promise as Promise_
from dovetail.core.verdict import Verdict, judge
from dovetail.randomize.krr import KRR
from dovetail.randomize.sampling.open_reports import from_device
from dovetail.shuffle.sampling.dummies import Dummies, GaussianDummies, SeveralDummies, SparseDummies, UserDummies
from dovetail_protocol.budget import cost
from dovetail_protocol.campaign import Campaign

# What batches promise to which the shuffler adds dummies, or people: one, and all that a device takes part in.


UP = 1.0 + 1e-12  # far beyond the rounding of a handful of operations


def guarantee_with_dummies(campaign: Campaign, *, n: int, honest: int) -> CentralDP | Missing:
    """Of one batch of n people: the smaller promise of the dummies, and of the local noise under them.

    Where people send the dummies: of those of the honest ones.
    """
    sent = people_dummies(campaign)
    if sent is not None:
        return _of_people(campaign, sent, n=n, honest=honest, rounds=1)
    dummies = added_dummies(campaign)
    own: Any = None if campaign.open else from_device(campaign.mechanism)
    assert dummies is not None
    people = max(1, n)
    try:
        return _one(
            dummies, own, people, min(max(1, honest), people), campaign.promise.delta, _lists(campaign, dummies)
        )
    except UnsupportedError as error:
        return Missing(str(error).rstrip("."))


def guarantee_of_rounds(campaign: Campaign, *, n: int, rounds: int, honest: int = 1) -> CentralDP | Missing:
    """Of so many batches about the same people: of the dummies alone, which local noise can only help.

    honest : people in the weakest batch whose own dummies arrive, where people send them.
    """
    sent = people_dummies(campaign)
    if sent is not None:
        return _of_people(campaign, sent, n=n, honest=honest, rounds=rounds)
    dummies = added_dummies(campaign)
    assert dummies is not None
    try:
        found = _several(dummies, max(1, n), rounds * _lists(campaign, dummies), campaign.promise.delta)
    except (UnsupportedError, ParameterError) as error:  # also for more rounds than are accounted
        return Missing(str(error).rstrip("."))
    return replace(found, colluding=all_local(rounds, campaign.mechanism.epsilon))


def _lists(campaign: Campaign, dummies: ShufflerDummies) -> int:
    """How many symbols of a person are accounted each by itself: all, or one message of them together."""
    return campaign.symbols // dummies.messages


def _of_people(campaign: Campaign, sent: UserDummies, *, n: int, honest: int, rounds: int) -> CentralDP | Missing:
    if honest < 1:
        return Missing("nobody in it is assumed honest, and only the dummies of honest people hide anybody")
    try:
        return _together(sent, max(n, honest), honest, rounds, campaign.promise.delta, campaign.symbols)
    except UnsupportedError as error:
        return Missing(str(error).rstrip("."))


@lru_cache(maxsize=4096)
def _together(sent: UserDummies, n: int, honest: int, rounds: int, delta: float, symbols: int) -> CentralDP:
    r"""So many batches, each with the dummies of as many honest people: the smaller of two compositions.

    .. math:: T \epsilon(\delta / T), \qquad
              T \epsilon \tanh\frac{\epsilon}{2} + \epsilon \sqrt{2 T \log\frac{2}{\delta}},
              \quad \epsilon = \epsilon\Bigl(\frac{\delta}{2 T}\Bigr)

    Source: Dwork et al. (2006), Theorem 1; Kairouz, Oh, Viswanath (2015), Theorem 3.5.
    """
    one = user_dummies_guarantee(sent, n=n, delta=delta, honest=honest, symbols=symbols)
    if rounds == 1:
        return one
    some = _composed(UserDummiesLaw(sent.k, honest, sent.rate, symbols), rounds, delta)
    every = _composed(UserDummiesLaw(sent.k, n, sent.rate, symbols), rounds, delta)
    if math.isinf(some):
        raise UnsupportedError(f"the dummies of {honest:,} honest people keep no epsilon over {rounds:,} batches.")
    lower = min(one.numeric.lower, some)
    return replace(
        one, all=min(some, every), honest=some, numeric=Bracket(lower, some),
        method=f"composition of {rounds:,} batches with {one.method}",
        source=f"Dwork et al. (2006), Theorem 1; Kairouz, Oh, Viswanath (2015), Theorem 3.5; of [{one.source}]",
    )  # fmt: skip


def _composed(law: UserDummiesLaw, rounds: int, delta: float) -> float:
    basic, one = rounds * law.epsilon(delta / rounds), law.epsilon(0.5 * delta / rounds)
    if math.isinf(one):
        return basic * UP
    advanced = rounds * one * math.tanh(0.5 * one) + one * math.sqrt(2.0 * rounds * math.log(2.0 / delta))
    return min(basic, advanced) * UP


@lru_cache(maxsize=4096)
def _one(dummies: ShufflerDummies, own: KRR | None, n: int, honest: int, delta: float, symbols: int) -> CentralDP:
    if isinstance(dummies, SparseDummies):
        return sparse_guarantee(dummies, n=n, rounds=symbols, delta=delta)
    return dummies_guarantee(_law(dummies), n=n, delta=delta, randomizer=own, honest=honest, rounds=symbols)


@lru_cache(maxsize=256)
def _several(dummies: ShufflerDummies, n: int, rounds: int, delta: float) -> CentralDP:
    if isinstance(dummies, SparseDummies):
        return sparse_guarantee(dummies, n=n, rounds=rounds, delta=delta)
    return dummies_guarantee(_law(dummies), n=n, delta=delta, rounds=rounds)


def _law(dummies: Dummies | GaussianDummies | SeveralDummies) -> Dummies | GaussianDummies | Message:
    return Message.of(dummies.noises) if isinstance(dummies, SeveralDummies) else dummies


# What people of each class are promised where they have different epsilons behind one shuffle.
#
# How many people of each class a batch holds is public, and signed by the shuffler. Which of them are honest, and
# whose reports cannot be read, nobody knows: for each class the worst allocation is counted (`worst_others`).


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
    """Guarantee of the people of one class.

    Parameters
    ----------
    local : float
        Epsilon of one report, no matter who sees it.
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
    """Guarantee of everybody in a batch: the largest epsilon, or the reason why a person has none."""
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
    return _class_one(classes, place, sizes, batch.crowd, batch.honest, campaign.promise.delta)


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
    return _classes_together(
        classes, place, fewest, rounds, min(batch.crowd for _, batch in hers), campaign.promise.delta
    )


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
def _class_one(
    classes: Classes, place: int, sizes: tuple[int, ...], crowd: int, honest: int, delta: float
) -> CentralDP:
    pairs = list(zip(sizes, classes, strict=True))
    return amplify_class(pairs, place, crowd=crowd, honest=honest, delta=delta)


@lru_cache(maxsize=256)
def _classes_together(
    classes: Classes, place: int, others: tuple[int, ...], rounds: int, n: int, delta: float
) -> CentralDP:
    own = classes[place]
    those = tuple((count, one) for count, one in zip(others, classes, strict=True) if count)
    law = MixtureLaw(own, those, 1e-3 * delta / rounds)  # the masses that are cut off the losses of a round
    epsilon, method, source = MixtureRounds(law, rounds).epsilon(delta)
    return CentralDP(
        all=epsilon, honest=epsilon, colluding=round_up_to_double(cost(rounds, own.epsilon)), delta=delta, n=n,
        honest_n=sum(others) + 1, method=method, source=source, numeric=Bracket(0.0, epsilon), attack_lower=0.0,
    )  # fmt: skip


AGAIN = (
    "batches of the same reports promise together what one does to people who took part in the same rounds, and "
    "nobody knows how many those are"
)
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
        For one report, no matter who sees it; all that remains if the shuffler colludes with the analyzer.
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
        return judge(Promise_(local), n=1, shuffled=False)
    promise = Promise_(together.epsilon, together.delta)
    alone = one.trust == "shuffler" and one.honest_n == 1  # the shuffler's noise needs no other people
    return judge(
        Promise_(local), shuffler=promise if alone else None, people=promise,
        n=one.n, honest=None if alone else one.honest_n,
    )  # fmt: skip


def campaign_guarantees(campaign: Campaign, released: Sequence[ReleasedBatch]) -> CampaignGuarantees:
    """Guarantees after each of these batches, in order of their rounds."""
    local = _local(campaign)
    most = min(len(released), campaign.affordable)
    promised = [batch_guarantee(campaign, each) for each in weakest_and_latest(campaign, released)]
    alpha = order_alpha(campaign, released)
    classes = class_guarantees(campaign, [mixed_batch(campaign, each) for each in released])
    spent = max((each.all_local for each in classes), default=all_local(campaign.drawn(most), local.epsilon))
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
    if campaign.open:
        return LocalDP(inf, source="answers are sent as they are")
    subject = subject_of(campaign)
    if isinstance(subject, Randomizer):
        return subject.guarantee
    whole = local_guarantee(forms_of(campaign.mechanism), ask="joint" if isinstance(subject, JointReport) else "one")
    return replace(whole, epsilon=max(whole.epsilon, campaign.mechanism.epsilon))


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
    subject, delta = subject_of(campaign), campaign.promise.delta
    return BatchGuarantee(released, honest, _central(subject, released.crowd, honest, delta))


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
    if campaign.memoized:
        return Missing(AGAIN)
    if campaign.promise.trust != "local":
        weakest = honest_people(campaign, weakest_and_latest(campaign, released)[0])
        return guarantee_of_rounds(campaign, n=min(each.n for each in released), rounds=most, honest=weakest)
    if len(set(sizes)) > FEW:
        sizes = _fewer(sizes)
    times = tuple((size, sizes.count(size)) for size in sorted(set(sizes)))
    return _compose(subject_of(campaign), times, campaign.promise.delta)


def order_alpha(campaign: Campaign, released: Sequence[ReleasedBatch]) -> float | Missing:
    """The order privacy of one batch: how much it may tell about who in a public group sent which report."""
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
def _central(subject: Randomizer | JointReport | OneQuestion, n: int, honest: int, delta: float) -> CentralDP:
    found = amplify(subject, n=n, delta=delta, honest=honest)
    return found if isinstance(subject, Randomizer) else replace(found, neighbours=NEIGHBOURS)


@lru_cache(maxsize=256)
def _compose(
    subject: Randomizer | JointReport | OneQuestion, times: tuple[tuple[int, int], ...], delta: float
) -> Composition:
    found = compose_upper([ShuffledRound.of(subject, n, times=count) for n, count in times], delta=delta)
    return found if isinstance(subject, Randomizer) else replace(found, neighbours=NEIGHBOURS)


def _fewer(sizes: Sequence[int]) -> list[int]:
    """Ascending sizes, each rounded down to the smallest one of its class; `FEW` classes of equal ratio.

    >>> _fewer([100, 101, 102, 150, 151, 200])
    [100, 100, 100, 150, 150, 200]
    """
    width = log(sizes[-1] / sizes[0])
    least: dict[int, int] = {}
    return [least.setdefault(min(FEW - 1, int(FEW * log(size / sizes[0]) / width)), size) for size in sizes]

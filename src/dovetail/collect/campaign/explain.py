"""A campaign in plain words, before anybody takes part: what is asked, what it reveals, and who may read what."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING
from hashlib import sha256
from math import floor
from pathlib import Path
from typing import NamedTuple

from dovetail.account.compose import Composition
from dovetail.collect.campaign.guarantees import (
    MOST_COMPOSED,
    TOO_MANY,
    WEIGHTED,
    ClassGuarantee,
    MixedBatch,
    ReleasedBatch,
    all_local,
    batch_guarantee,
    compose_batches,
    expected_class_guarantees,
    judge_batches,
    mixed_batch,
    most_dishonest,
)
from dovetail.collect.campaign.roster import MappedRoster, Roster
from dovetail.collect.campaign.terms import added_dummies, noise_of_campaign, people_dummies, question_of, too_few
from dovetail.core.display import counted
from dovetail.core.estimate import Z95
from dovetail.core.guarantee import CentralDP
from dovetail.core.missing import Missing
from dovetail.core.noise import People
from dovetail.core.question import WEAK
from dovetail.core.verdict import Verdict, warnings_of, word_of
from dovetail.job.messages import Part
from dovetail.randomize.sampling.open_reports import randomizer_kind
from dovetail.report.number_format import Unit, odds, upward
from dovetail.shuffle.sampling.dummies import SeveralDummies, SparseDummies
from dovetail_protocol.asked import Asked, AskedTogether, Value
from dovetail_protocol.budget import QUESTION_TOTAL, affordable, cost, decimal_at_least
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.dummies import TRUSTED
from dovetail_protocol.endpoint import PLAIN, leaves_in_the_clear
from dovetail_protocol.joint import Drawn
from dovetail_protocol.messages import wire_bytes
from dovetail_protocol.ohttp import OVERHEAD

SMALL = 100  # below so many reports shuffling hides little, and an estimate says little


class CampaignFact(NamedTuple):
    """One fact about a campaign."""

    name: str
    words: str


@dataclass(frozen=True)
class CampaignExplanation:
    """Result of `explain`; every epsilon is an upper bound in nats, None with a reason where nothing is promised.

    Parameters
    ----------
    epsilon : float
        Of one report.
    reports : int
        That one device sends at most.
    all_epsilon : float
        Of all of them.
    central, together : CentralDP, Composition or Missing
        One batch of the minimum size, and as many as one device takes part in.
    classes : tuple of ClassGuarantee
        The same of each class, where people have different epsilons and everybody else the largest, as nobody knows
        yet; the above are of the most exposed class.
    """

    campaign: Campaign
    epsilon: float
    reports: int
    all_epsilon: float
    central: CentralDP | Missing
    together: CentralDP | Composition | Missing
    message_bytes: int
    lines: tuple[CampaignFact, ...]
    warnings: tuple[str, ...]
    classes: tuple[ClassGuarantee, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """How well one person is protected, by whom one has to trust."""
        return judge_batches(math.inf if self.campaign.open else self.all_epsilon, self.central, self.together)


def explain(
    campaign: Campaign, *, roster: Roster | MappedRoster | None = None, folder: Path | None = None
) -> CampaignExplanation:
    """Explain a campaign, signed or not.

    Parameters
    ----------
    roster : Roster, optional
        The devices that may send, to compare their number with the minimum batch.
    folder : Path, optional
        Where the file of public columns lies, to check it against its digest.
    """
    epsilon = campaign.mechanism.epsilon
    reports = min(campaign.schedule.count, campaign.of_class(0).affordable)
    central, together = _central(campaign, reports)
    classes = expected_class_guarantees(campaign, _unknown(campaign))
    found = CampaignExplanation(
        campaign=campaign,
        epsilon=epsilon,
        reports=reports,
        all_epsilon=max((each.all_local for each in classes), default=all_local(campaign.drawn(reports), epsilon)),
        central=central,
        together=together,
        message_bytes=wire_bytes(campaign),
        lines=(),
        warnings=tuple(_warnings(campaign, roster, folder)),
        classes=classes,
    )
    fact = None if roster is None else roster_fact(campaign, roster)
    return replace(found, lines=(*_lines(found), *([] if fact is None else [CampaignFact("roster", fact)])))


def roster_fact(campaign: Campaign, roster: Roster | MappedRoster) -> str | None:
    """How many devices in one hand break the promise of batches, and what share of the roster that is.

    None where nothing is promised of batches, where nobody else's reports count for it, or where too few devices may
    send for a batch.
    """
    central, _ = _central(campaign, 1)
    active, breaking = sum(not entry.revoked for entry in roster), most_dishonest(campaign) + 1
    if isinstance(central, Missing) or campaign.dummies or active < campaign.batch.minimum:
        return None
    share = floor(1e4 * breaking / active) / 100
    return (
        f"{active:,} devices may send. {breaking:,} of them in one dishonest hand "
        f"({f'{share:g}' if share else 'less than 0.01'} %) break what is promised of batches, and nobody but who "
        "admits devices limits how many a person registers"
    )


def _central(campaign: Campaign, reports: int) -> tuple[CentralDP | Missing, CentralDP | Composition | Missing]:
    """Of one batch and of all, with public groups of equal size, as nobody knows them yet."""
    n = campaign.batch.minimum
    smallest = n // max(1, len(campaign.groups))
    released = ReleasedBatch(t=1, sent=n, n=n, smallest=smallest)
    if smallest < 1:
        none = Missing("there are more public groups than reports")
        return none, none
    one = batch_guarantee(campaign, released).central
    if isinstance(one, Missing):
        return one, one
    if campaign.drawn(reports) > MOST_COMPOSED:
        return one, TOO_MANY
    composed = min(reports, MOST_COMPOSED)  # of a memoized campaign two say as much as all
    return one, compose_batches(campaign, [released] * composed, most=composed)


def _unknown(campaign: Campaign) -> MixedBatch:
    """A batch of the minimum size, before anybody has chosen a class."""
    n = campaign.batch.minimum
    return mixed_batch(campaign, ReleasedBatch(t=1, sent=n, n=n, smallest=n))


def _lines(found: CampaignExplanation) -> list[CampaignFact]:
    campaign = found.campaign
    return [
        CampaignFact("question", f"{campaign.question} ({campaign.id}, version {campaign.version})"),
        CampaignFact("answer", _answer(campaign)),
        CampaignFact("protection", f"{found.verdict.sentence()}; over all batches of one device"),
        *(_class_lines(found) if campaign.classes else _promise_lines(found)),
        *_dummies(campaign),
        CampaignFact("rounds", _rounds(campaign)),
        CampaignFact("batches", _batches(campaign)),
        *_error(campaign),
        CampaignFact("order", _order(campaign)),
        CampaignFact(
            "message",
            f"{found.message_bytes:,} bytes for every answer, sealed twice with {campaign.analyzer.suite}",
        ),
        *_readers(campaign),
    ]


def _promise_lines(found: CampaignExplanation) -> list[CampaignFact]:
    campaign = found.campaign
    return [
        CampaignFact("one report", _one_report(found)),
        CampaignFact("all reports", _all_reports(found)),
        CampaignFact(
            "one batch", _central_words(campaign, found.central, f"at least {campaign.batch.minimum:,} reports")
        ),
        CampaignFact("all batches", _central_words(campaign, found.together, _of_one_device(found.reports))),
    ]


def _class_lines(found: CampaignExplanation) -> list[CampaignFact]:
    """The same of each class, the most careful one first."""
    campaign = found.campaign
    named = ", ".join(f"{each.name} (epsilon {upward(each.local)})" for each in found.classes)
    words = (
        f"people choose one of {len(found.classes)}, once and by anything but their answer: {named}; a device that "
        f"is told nothing takes {found.classes[0].name}. Who is in which class is public: the shuffler reads it and "
        "signs how many of each a batch holds. The analyzer never sees whose report is whose, and reports of all "
        "classes look alike"
    )
    lines = [CampaignFact("classes", words)]
    for place, each in enumerate(found.classes):
        own = replace(
            found, campaign=campaign.of_class(place), epsilon=each.local, reports=each.most_reports,
            all_epsilon=each.all_local,
        )  # fmt: skip
        among = f"at least {campaign.batch.minimum:,} reports, whatever classes the others choose"
        one = each.latest or Missing("no batch yet")
        lines += [
            CampaignFact(f"{each.name}: one report", _one_report(own)),
            CampaignFact(f"{each.name}: all reports", _all_reports(own)),
            CampaignFact(f"{each.name}: one batch", _central_words(campaign, one, among)),
            CampaignFact(
                f"{each.name}: all batches",
                _central_words(campaign, each.composed, _of_one_device(each.most_reports)),
            ),
        ]
    return [*lines, CampaignFact("shares", WEIGHTED[:1].lower() + WEIGHTED[1:].rstrip("."))]


def _one_report(found: CampaignExplanation) -> str:
    if found.campaign.open:
        trust = found.campaign.promise.trust
        beside = ", and beside it a dummy or a blank" if trust == "users" else ""
        return (
            f"no promise, epsilon is infinite: the answer is sent as it is, sealed{beside}. "
            f"Only the dummies of {TRUSTED[trust]} hide it; a device answers with --trust {trust} alone"
        )
    return (
        f"epsilon {upward(found.epsilon)}: anybody who sees it, even with the sender's name, shifts the odds of any "
        f"two answers by a factor of at most {odds(found.epsilon)}"
    )


def _all_reports(found: CampaignExplanation) -> str:
    charged, paid = found.campaign.charged, found.campaign.drawn(found.reports)
    given, spent = affordable(QUESTION_TOTAL, charged), decimal_at_least(cost(paid, charged))
    kind = "epsilon" if not found.campaign.open else "the epsilons of their batches"
    words = (
        f"a device sends in at most {found.reports:,} of {found.campaign.schedule.count:,} rounds, {kind} "
        f"{upward(spent)} together, then stops; it counts by itself, over all campaigns, as far as it "
        "remembers: one that is installed anew begins again"
    )
    if found.campaign.memoized:
        words += ". It draws one report, in its first round, and sends it again in others, whatever its value is then"
    if given >= paid:
        return words
    return f"{words}. Until its user allows more, one question gets {QUESTION_TOTAL:g} nats: {given:,} reports"


def _answer(campaign: Campaign) -> str:
    if len(campaign.questions) > 1 and campaign.open:
        return f"{'; '.join(map(_one_answer, campaign.questions))}; {_together(campaign)}"
    if len(campaign.questions) > 1:
        each = "; ".join(f"{_one_answer(one)} at epsilon {upward(one.charged)}" for one in campaign.questions)
        if isinstance(campaign.mechanism, Drawn):
            most, how = upward(campaign.mechanism.epsilon), _odds(campaign.mechanism.weights)
            together = (
                f"a device draws one of them in each round, {how}, whatever is held, and its "
                f"report names the question and answers that one alone: epsilon {most} at most"
            )
        else:
            together = "all answers of a person stay together in one report, and their epsilons add"
        return f"{each}; {together}{_named(campaign)}"
    return _one_answer(campaign) + ("" if campaign.open else _named(campaign))


def _together(campaign: Campaign) -> str:
    """How all answers of a person stay together among dummies, or one of them is drawn."""
    if campaign.draws:
        return (
            f"a device draws one of them in each round, {_odds(campaign.draws)}, whatever is held, and answers that "
            "one alone, among dummies of every answer to every question"
        )
    return (
        f"all answers of a person stay together in one report, as one of {getattr(campaign.mechanism, 'k', 0):,} "
        "combinations, each with dummies of its own"
    )


def _odds(weights: Sequence[int]) -> str:
    """How often each question is drawn, against the others."""
    if len(set(weights)) == 1:
        return "all as often"
    return f"as often as {' to '.join(map(str, weights))}"


def _named(campaign: Campaign) -> str:
    """The public groups that a report names."""
    groups = ", ".join(campaign.groups[:20])
    return f"; with the sender's public group, in the clear for the analyzer: {groups}" if groups else ""


def _one_answer(campaign: Campaign) -> str:
    mechanism, named = campaign.mechanism, ", ".join(campaign.categories[:20])
    k = getattr(mechanism, "k", None)
    if campaign.asked is not None:
        kind = _asked(campaign.asked)
    elif k is None:
        kind = f"a number from {getattr(mechanism, 'lower', 0.0):g} to {getattr(mechanism, 'upper', 0.0):g}"
    else:
        kind = f"one of {k:,} answers" + (f": {named}" if named else "")
    if radius := getattr(mechanism, "radius", 0.0):
        kind += f", shortened to Euclidean length {radius:g} at most"
    if campaign.open:
        return f"{kind}, not randomized"
    return f"{kind}, randomized on the device by {randomizer_kind(mechanism.name).label}"


def _asked(asked: Asked | AskedTogether) -> str:
    """The values of a person, and how many of which symbols stand for them."""
    what = f"for {asked.question}: {' and '.join(f'{one.name} ({_held(one)})' for one in asked.values)}"
    if not asked.symbols:
        return what
    sent = "one symbol" if asked.sent == 1 else f"{asked.sent} symbols that nobody can link"
    return f"{what}, as {sent} of {asked.size:,}"


def _held(value: Value) -> str:
    if value.length:
        return f"{value.length:,} numbers"
    return ", ".join(value.categories[:20]) if value.categories else f"{value.lower:g} to {value.upper:g}"


def _of_one_device(count: int) -> str:
    return f"{counted(count, 'batch', 'batches')} of one device"


def _central_words(campaign: Campaign, central: CentralDP | Composition | Missing, of: str) -> str:
    if isinstance(central, Missing):
        return f"nothing beyond single reports: {central.reason}"
    if central.epsilon is None:
        return "nothing beyond single reports"
    groups = ", if public groups are of one size" if campaign.groups else ""
    groups = ", among the shuffler's dummies" if campaign.dummies else groups
    groups = ", among the dummies of people" if campaign.sent else groups
    return (
        f"epsilon {upward(central.epsilon)} at delta {upward(central.delta)} for {of}, shuffled{groups}: "
        f"the odds about one person shift by a factor of at most {odds(central.epsilon)}{_assumed(campaign)}"
    )


def _assumed(campaign: Campaign) -> str:
    """Whom the promise of a batch counts on; a batch that the shuffler's dummies hide counts on nobody else."""
    if campaign.dummies:
        return ""
    most = most_dishonest(campaign)
    return f", if {f'all but at most {most:,}' if most else 'all of them'} come from honest people, one each"


def _dummies(campaign: Campaign) -> list[CampaignFact]:
    """Who is trusted with what, where the shuffler makes the noise, or people do."""
    sent, dummies = people_dummies(campaign), added_dummies(campaign)
    combined = len(campaign.questions) > 1 and not campaign.draws
    answer, count = ("combination", "the count of a combination") if combined else ("answer", "a count")
    if sent is not None:
        minimum = campaign.batch.minimum
        words = (
            f"people add the noise: each sends a dummy with probability {sent.rate:.3g}, beside the answer in one "
            "message, and the shuffler takes one of each device and mixes. What is promised of batches holds against "
            f"everybody else if {campaign.promise.assumed_honest:,} people of a batch follow the protocol, and if "
            f"the shuffler tells nobody whose entries are whose. The dummies put {count} off by "
            f"{sent.variance(minimum) ** 0.5:.3g} (standard deviation) in a batch of {minimum:,}"
        )
        return [CampaignFact("trust", words)]
    if dummies is None:
        return []
    if isinstance(dummies, SparseDummies):
        none, many = (dummies.variance(held) ** 0.5 for held in (0, campaign.batch.minimum))
        words = (
            f"the shuffler makes the noise: it keeps each report with probability {float(dummies.kept):.3g}, and "
            f"adds about {dummies.mean:.2g} dummies of each {answer} to every batch. What is promised of batches "
            "holds against the analyzer, if it draws both once and as specified and keeps its randomness secret, and "
            f"how many reports it kept. They put {count} off by {none:.3g} (standard deviation) where nobody gives "
            f"the {answer}, and by {many:.3g} where {campaign.batch.minimum:,} people do"
        )
        return [CampaignFact("trust", words)]
    which, whose, others = f"{dummies.reach:,} dummies of each {answer}", count, ""
    if isinstance(dummies, SeveralDummies):
        which, whose = f"{dummies.total:,} dummies of all digits", "the counts of the last digit"
        others = ", and those of the others by less"
    words = (
        f"the shuffler adds the noise: about {which} to every batch. What is "
        "promised of batches holds against the analyzer, if it adds them once and as specified and keeps their "
        f"numbers and its randomness secret. They put {whose} off by {dummies.variance**0.5:.3g} (standard "
        f"deviation){others}"
    )
    return [CampaignFact("trust", words)]


def _error(campaign: Campaign) -> list[CampaignFact]:
    """The error that is to be expected; of classes nobody knows how many people choose which."""
    if campaign.classes:
        return []
    whole = campaign.batch.minimum
    each = [(one.asked.values[0].name if one.asked else "", _error_of(one, whole)) for one in campaign.questions]
    words = "; ".join(f"{name}: {error}" for name, error in each) if len(each) > 1 else each[0][1]
    return [CampaignFact("error", words)]


def _error_of(campaign: Campaign, whole: int) -> str:
    """Of a batch of so many people, of whom as many answer as `campaign` counts on."""
    question, n = question_of(campaign), campaign.batch.minimum
    noise, people = noise_of_campaign(campaign, question), People(n)
    known = question.error95(noise, people)
    if n < whole:
        from dovetail.job.questions_plan import planned_error  # devices and servers go without polars

        error, some = planned_error(Part(question, noise), whole, n / whole).error95, f", of whom about {n:,} answer"
    else:
        error, some = Z95 * question.error(noise, people) if known is None else known, ""
    within = Unit.of(question.planned_measure or question.measure)(error, error, ROUND_CEILING)
    length = " in Euclidean length" if question.of_arrays else ""
    return (
        f"of a batch of {whole:,}{some}: with probability 95 % an estimate lies within {within}{length} of the truth "
        f"about exactly its people, {question.planned_of}"
    )


def _rounds(campaign: Campaign) -> str:
    schedule = campaign.schedule
    if schedule.start is None or schedule.period is None:
        return f"{schedule.count:,}, each closed by the owner's signed word"
    grace = f", open {schedule.grace:g} seconds longer for the late" if schedule.grace else ""
    return (
        f"{schedule.count:,} of {schedule.period:g} seconds each, from {schedule.start:%Y-%m-%d %H:%M:%S} UTC{grace}"
    )


def _batches(campaign: Campaign) -> str:
    rule = campaign.batch
    small = {
        "wait": "a smaller round stays open until it has enough",
        "merge": "a smaller round joins the next one",
        "drop": "a smaller round is thrown away",
    }[rule.small]
    late = {"refuse": "late reports are refused", "next": "late reports count for the next round"}[rule.late]
    early = f"; closed early on {rule.close_at:,}" if rule.close_at else ""
    checked = "as the shuffler sees them; no estimate is shown of fewer that the analyzer finds valid"
    return f"at least {rule.minimum:,} reports of distinct devices, {checked}; {small}; {late}{early}"


def _order(campaign: Campaign) -> str:
    rule = campaign.shuffle
    if not campaign.order_private:
        return "a uniform shuffle: the order of a batch tells nothing about who sent which report"
    refined = "refine" in rule.settings
    inside = f"{rule.settings['k']:,} refined groups only, not the public ones" if refined else "the public groups"
    alpha = "" if rule.alpha is None else f" with alpha {upward(rule.alpha)} inside {inside}"
    return (
        f"{rule.shuffler}{alpha}: reports are released at public roster slots, near the device's own; "
        "amplification by shuffling is claimed of released batches alone, for people who can stand for each other"
    )


def _readers(campaign: Campaign) -> list[CampaignFact]:
    answers = "randomized answers" if not campaign.open else "answers among dummies"
    sizes = " and how many people of each class sent them" if campaign.classes else ""
    sizes = " and how many people drew each question" if campaign.draws else sizes
    known = {
        "roster": "the device's key, its roster slot",
        "token": "a one-time key, a token that names nobody",
        "none": "a key",
    }[campaign.promise.authentication]
    kind = ", its class" if campaign.classes else ", the question that it drew" if campaign.draws else ""
    known += f"{kind} and"
    route, shuffler = campaign.ohttp, "shuffler"
    way = [CampaignFact("network, broker", "sees addresses, times and this campaign's digest; cannot open anything")]
    if route is not None:
        shuffler = "shuffler (gateway)"
        way = [
            CampaignFact("network", "sees addresses and times of requests to the relay; cannot open anything"),
            CampaignFact(
                f"relay {route.relay}",
                f"sees addresses and times, {route.pad + OVERHEAD} bytes each, and who fetches the campaign; cannot "
                "open anything; with the shuffler it tells which address sent which report",
            ),
        ]
    return [
        *way,
        *_issuer(campaign),
        CampaignFact(
            shuffler,
            f"sees {known} the round and the time of each report; cannot read answers; forgets who sent what",
        ),
        CampaignFact("analyzer", f"sees {answers} in batches{sizes}; no device, address, time or order of arrival"),
        CampaignFact(
            "both together",
            "read every answer of every device"
            if campaign.open
            else f"can undo the shuffle: what remains is epsilon {upward(campaign.mechanism.epsilon)} a report"
            + (", or less by class" if campaign.classes else ""),
        ),
    ]


def _issuer(campaign: Campaign) -> list[CampaignFact]:
    if campaign.tokens is None:
        return []
    words = (
        "decides who counts as a person, with one token each a round, and can invent people; sees who asks, when and "
        "from which address, and not which report is whose. With the shuffler it can link by times, above all if it "
        "answers one person only"
    )
    return [CampaignFact(f"issuer {campaign.tokens.issuer}", words)]


def _warnings(campaign: Campaign, roster: Roster | MappedRoster | None, folder: Path | None) -> list[str]:
    promised, minimum, epsilon = campaign.promise, campaign.batch.minimum, campaign.mechanism.epsilon
    found = []
    if minimum < SMALL:
        found.append(f"a batch of {minimum:,} hides little and estimates little; take a minimum of {SMALL} or more")
    if campaign.sent is not None:
        found.append(
            "there is no local promise: shuffler and analyzer together read every answer, and people who drop out "
            "take noise away; who takes part trusts the shuffler and the other people"
        )
        if campaign.promise.assumed_honest == minimum:
            found.append("everybody in the smallest batch is assumed honest; count on fewer with `assumed_honest`")
    elif word_of(epsilon) == "none" and campaign.dummies:
        found.append(
            f"shuffler and analyzer together read nearly every answer: one report has epsilon {upward(epsilon)}; who "
            "takes part trusts the shuffler"
        )
    elif word_of(epsilon) == "none":
        found.append(
            f"one report at epsilon {upward(epsilon)} protects next to nothing if shuffler and analyzer collude"
        )
    found += warnings_of(promised.delta, minimum)
    few = (too_few(one, WEAK) for one in campaign.questions)
    found += [f"in a batch of the minimum {told}" for told in few if told is not None]
    if promised.authentication == "none":
        found.append("no roster: anybody may send any number of reports, so distinct people are not assured")
    if campaign.tokens is not None:
        found.append(
            "distinct people rest on the issuer of tokens alone, and tokens are experimental: nobody outside has "
            "reviewed how they are issued"
        )
    amplified = not campaign.order_private and promised.trust == "local"
    if promised.assumed_honest is None and not promised.assumed_dishonest and amplified:
        found.append(
            "everybody is assumed honest, and one person with two devices breaks what is promised of batches; state "
            "`assumed_dishonest` to promise less but surely"
        )
    if campaign.groups:
        found.append(
            "people hide among their own public group only: the numbers here are for groups of one size, and the "
            "smallest group that really comes gets less"
        )
    for place, named in enumerate([f" {each.name}" for each in campaign.classes] or [""]):
        paid = campaign.of_class(place).affordable
        if paid < campaign.schedule.count:
            found.append(
                f"the device budget pays for {paid:,} of {campaign.schedule.count:,} rounds; then a{named} device is "
                "silent"
            )
    if campaign.owner == campaign.shuffler_signing:
        found.append("owner and shuffler sign with one key: anybody who mixes could change the campaign")
    places = {f"endpoints.{name}": url for name, url in campaign.endpoints.items()}
    if campaign.ohttp is not None:
        places["ohttp.relay"] = campaign.ohttp.relay
    elif campaign.tokens is not None:
        found.append(
            "devices show the shuffler their addresses, which may name people as a roster would; add [ohttp]"
        )
    if campaign.tokens is not None:
        places["tokens.url"] = campaign.tokens.url
    for key in sorted(key for key, url in places.items() if leaves_in_the_clear(url)):
        name = places[key].partition(":")[0]
        found.append(
            f"`{key}` is plain {name.upper()}: devices refuse it without --insecure-{name}; use {PLAIN[name]}://"
        )
    if campaign.expires is None:
        found.append("the campaign never expires: devices take it for good for as long as they run")
    return [*found, *_roster_warnings(campaign, roster), *_public_warnings(campaign, folder)]


def _roster_warnings(campaign: Campaign, roster: Roster | MappedRoster | None) -> list[str]:
    if roster is None:
        return []
    active = sum(not entry.revoked for entry in roster)
    if active < campaign.batch.minimum:
        return [f"the roster admits {active:,} devices, below the minimum batch of {campaign.batch.minimum:,}"]
    return []


def _public_warnings(campaign: Campaign, folder: Path | None) -> list[str]:
    name = campaign.shuffle.public
    if name is None or folder is None:
        return []
    try:
        digest = sha256((folder / name).read_bytes()).hexdigest()
    except OSError:
        return [f"the public columns {name} are not beside the campaign"]
    return [] if digest == campaign.shuffle.public_digest else [f"{name} is not the file that `public_sha256` names"]

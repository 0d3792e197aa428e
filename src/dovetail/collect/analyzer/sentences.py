"""Guarantees in words: short sentences that a person who takes part can read, with every number rounded up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dovetail.collect.campaign.guarantees import (
    WEIGHTED,
    BatchGuarantee,
    CampaignGuarantees,
    ClassGuarantee,
    ReleasedBatch,
)
from dovetail.core.guarantee import CentralDP
from dovetail.core.missing import Missing
from dovetail.core.verdict import warnings_of
from dovetail.report.number_format import odds, upward
from dovetail_protocol.budget import cost, decimal_at_least
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.dummies import TRUSTED

# In words: what people of each class are promised where they have different epsilons, and what is estimated.


class GuaranteeSentence(NamedTuple):
    """One promise: what it is about, its number ("" where there is none), and what it means."""

    name: str
    figure: str
    meaning: str


def class_sentences(found: CampaignGuarantees) -> list[GuaranteeSentence]:
    """Say what is public about classes, what each of them is promised, and what shares mean."""
    t = found.latest.released.t if found.latest else None
    promises = [line for each in found.classes for line in _of_class(each, t)]
    return [_public(found), *promises, GuaranteeSentence("What is estimated", "", WEIGHTED)]


def _public(found: CampaignGuarantees) -> GuaranteeSentence:
    named = " or ".join(f"{each.name} (ε = {upward(each.local)})" for each in found.classes)
    here = ", ".join(f"{each.people:,} {each.name}" for each in found.classes)
    where = f" The latest batch: {here}." if found.latest else ""
    return GuaranteeSentence(
        "Classes",
        "",
        f"People choose how much noise their device adds: {named}, by anything but their answer. Who is in which "
        "class is public: the shuffler reads it and signs how many of each class a batch holds. Sealed reports of "
        f"all classes look alike, so that everybody hides among everybody.{where}",
    )


def _of_class(each: ClassGuarantee, t: int | None) -> list[GuaranteeSentence]:
    report = GuaranteeSentence(
        f"One report, {each.name}",
        f"ε = {upward(each.local)}",
        "Somebody who sees one report of this class, even with its sender's name on it, can shift the odds of any "
        f"two values behind it by a factor of at most {odds(each.local)}.",
    )
    if t is None or each.latest is None:
        return [report]
    latest = _class_central(f"Latest batch (round {t:,}), {each.name}", each.latest)
    every = _class_central(f"Each batch so far, {each.name}", each.every or each.latest)
    return [report, latest, *([every] if every.figure != latest.figure else []), _classes_together(each)]


def _class_central(name: str, central: CentralDP | Missing) -> GuaranteeSentence:
    if isinstance(central, Missing):
        return GuaranteeSentence(name, "", f"No promise beyond that of single reports: {central.reason}.")
    notes = "".join(f" But {note}." for note in warnings_of(central.delta, central.n))
    return GuaranteeSentence(
        name,
        f"ε = {upward(central.epsilon)}",
        f"Shuffled among {central.n:,} reports of all classes, with {central.honest_n:,} people assumed honest, "
        "no matter who: the batch shifts the odds about one person of this class by a factor of at "
        f"most {odds(central.epsilon)}, with slack δ = {upward(central.delta)}.{notes}",
    )


def _classes_together(each: ClassGuarantee) -> GuaranteeSentence:
    name = f"All batches together, {each.name}"
    if isinstance(each.composed, Missing):
        return GuaranteeSentence(name, "", f"No promise beyond that of single reports: {each.composed.reason}.")
    return GuaranteeSentence(
        name,
        f"ε = {upward(each.composed.epsilon)}",
        f"For a person of this class in at most {each.most_reports:,} of the batches so far, with slack δ = "
        f"{upward(each.composed.delta)} in total; all reports of her device together have local ε = "
        f"{upward(each.all_local)}. Neither her class nor whether she takes part must depend on her values.",
    )


def guarantee_sentences(campaign: Campaign, found: CampaignGuarantees) -> list[GuaranteeSentence]:
    """Say what is promised, and what is not."""
    if campaign.classes:
        parts = [_rounds(campaign, found), *class_sentences(found), _colluding(campaign, found)]
        return [*parts, *_shortfalls(campaign, found), *_people(campaign)]
    parts = [_report(campaign, found), _rounds(campaign, found), *_batch(campaign, found), _together(found)]
    if campaign.order_private:
        parts.append(_order(found))
    if campaign.memoized:
        parts.append(GuaranteeSentence("One report for all rounds", "", AGAIN))
    return [*parts, _colluding(campaign, found), *_shortfalls(campaign, found), *_doubts(found), *_people(campaign)]


AGAIN = (
    "A device draws one report, in its first round, and sends it again in every other: later values are not used. "
    "Whether somebody takes part must not depend on the values, and a device that loses its memory draws a second "
    "report, which costs its owner as much again. Errors do not fall with the number of rounds: all have one noise."
)


def _report(campaign: Campaign, found: CampaignGuarantees) -> GuaranteeSentence:
    epsilon = found.local.epsilon
    if campaign.open:
        them = "them, and in " if campaign.sent else ""
        return GuaranteeSentence(
            "One report",
            f"ε = {upward(epsilon)}",
            f"No promise: the answer is sent as it is, and only the dummies of {TRUSTED[campaign.promise.trust]} "
            f"hide it. The trust is in {them}a shuffler that tells nobody whose message is whose.",
        )
    return GuaranteeSentence(
        "One report",
        f"ε = {upward(epsilon)}",
        "Somebody who sees one report, even with its sender's name on it, can shift the odds of any two values "
        f"behind it by a factor of at most {odds(epsilon)}.",
    )


def _rounds(campaign: Campaign, found: CampaignGuarantees) -> GuaranteeSentence:
    return GuaranteeSentence(
        "All reports of one device",
        f"ε ≤ {upward(campaign.promise.device_budget)}",
        "At that its software stops, whatever became of its reports, or earlier where its user has said so. "
        "That is its own count: one that is reset or installed anew has no memory and begins again. "
        f"{_spent(campaign, found)}",
    )


def _spent(campaign: Campaign, found: CampaignGuarantees) -> str:
    if campaign.open and found.rounds:
        spent = decimal_at_least(cost(found.most_reports, campaign.charged))
        return (
            f"It counts the promises of batches, which rest on {TRUSTED[campaign.promise.trust]}. Spent so far: ε = "
            f"{upward(spent)}, in {_count(found.rounds, 'batch', 'batches')} with at most "
            f"{_count(found.most_reports, 'report')} of one device."
        )
    if found.rounds == 0:
        return "Nothing of it is spent in a released batch so far."
    return (
        f"Spent so far: ε = {upward(found.all_local)}, in {_count(found.rounds, 'batch', 'batches')} with at most "
        f"{_count(found.most_reports, 'report')} of one device; "
        f"{'one is drawn, and paid for' if campaign.memoized else 'their budgets add'}."
    )


def _batch(campaign: Campaign, found: CampaignGuarantees) -> list[GuaranteeSentence]:
    if found.weakest is None or found.latest is None or isinstance(found.composed, Missing):
        return []  # there is no promise for single batches either, for the same reason
    named = {"Latest batch": found.latest}
    if found.weakest.honest < found.latest.honest:
        named["Weakest batch"] = found.weakest
    return [_central(campaign, name, each) for name, each in named.items()]


def _central(campaign: Campaign, name: str, each: BatchGuarantee) -> GuaranteeSentence:
    released, central = each.released, each.central
    if isinstance(central, Missing):
        return GuaranteeSentence(
            f"{name} (round {released.t:,})", "", f"No promise beyond that of single reports: {central.reason}."
        )
    hidden = f"{released.n:,} valid reports of distinct devices"
    if released.crowd < released.n:
        hidden += (
            f", {released.crowd:,} of them in the smallest part that the analyzer can tell apart, by public group or "
            "by version of the campaign"
        )
    notes = "".join(f" But {note}." for note in warnings_of(central.delta, central.n))
    if central.trust == "shuffler":
        whom = "" if central.honest_n == 1 else f", {central.honest_n:,} of them assumed honest"
        makes, slack = f"adds the noise: dummies of every answer among {hidden}{whom}", upward(central.delta)
        chance = None if campaign.dummies is None else campaign.dummies.by_chance
        if chance is not None:
            makes = (
                f"makes the noise: it keeps each of {hidden} with probability {chance[0]:.3g}, and "
                "adds few dummies of every answer"
            )
        return GuaranteeSentence(
            f"{name} (round {released.t:,})",
            f"ε = {upward(central.epsilon)}",
            f"The shuffler {makes}. Anybody who sees the batch "
            f"shifts the odds about one person by a factor of at most {odds(central.epsilon)}, with slack δ = "
            f"{slack}, if the shuffler adds them once and as specified and keeps their numbers "
            f"and its randomness secret.{notes}",
        )
    if central.trust == "users":
        return GuaranteeSentence(
            f"{name} (round {released.t:,})",
            f"ε = {upward(central.epsilon)}",
            f"People add the noise: dummies among {hidden}, {central.honest_n:,} of them assumed honest. Anybody who "
            f"sees the batch shifts the odds about one person by a factor of at most {odds(central.epsilon)}, with "
            f"slack δ = {upward(central.delta)}, if so many follow the protocol and the shuffler tells nobody whose "
            f"entries are whose.{notes}",
        )
    checks = "roster" if campaign.tokens is None else "issuer of tokens"
    return GuaranteeSentence(
        f"{name} (round {released.t:,})",
        f"ε = {upward(central.epsilon)}",
        f"Shuffled among {hidden}, with {each.honest:,} assumed to come from honest people, one each, whom nobody "
        f"but the {checks} checks: anybody who sees the batch shifts the odds about one person by a factor of at "
        f"most {odds(central.epsilon)}, with slack δ = {upward(central.delta)} "
        f"({central.method}).{notes}",
    )


def _together(found: CampaignGuarantees) -> GuaranteeSentence:
    both, name = found.composed, "All batches together"
    if found.rounds == 0:
        return GuaranteeSentence(name, "", "No batch has been released so far.")
    if isinstance(both, Missing):
        return GuaranteeSentence(name, "", f"No promise beyond that of single reports: {both.reason}.")
    if both.epsilon is None:  # where rounds have slack of their own
        return GuaranteeSentence(
            name, "", f"No promise beyond that of single reports: {getattr(both, 'reason', '')}."
        )
    return GuaranteeSentence(
        name,
        f"ε = {upward(both.epsilon)}",
        f"For a person in at most {_count(found.most_reports, 'batch', 'batches')}, the weakest so far, with slack "
        f"δ = {upward(both.delta)} in total; whether somebody takes part must not depend on the values."
        + _rests_on(both),
    )


def _order(found: CampaignGuarantees) -> GuaranteeSentence:
    name = "Order of a batch"
    if isinstance(found.alpha, Missing) or isinstance(found.all_alpha, Missing):
        reason = getattr(found.alpha, "reason", "")
        return GuaranteeSentence(
            name,
            "",
            f"Reports are released at public places, and nothing is promised about who sent which: {reason}.",
        )
    return GuaranteeSentence(
        name,
        f"α = {upward(found.alpha)}",
        "Reports are released at public places, in an order that moves them among people of one public group: it "
        f"shifts the odds of who in a group sent which report by a factor of at most {odds(found.alpha)} in one "
        f"batch, and by {odds(found.all_alpha)} in all batches of one device.",
    )


def _colluding(campaign: Campaign, found: CampaignGuarantees) -> GuaranteeSentence:
    epsilon = found.local.epsilon
    most = "at most " if campaign.classes else ""
    words = (
        f"They can undo the shuffle. What remains is the promise for single reports: {most}ε = {upward(epsilon)} "
        f"each, and ε = {upward(campaign.promise.device_budget)} for everything that a device sends here, as it "
        "remembers."
    )
    if campaign.open:
        words = "They read the answer of every device: nothing is randomized, and there is no local promise."
    return GuaranteeSentence("If shuffler and analyzer collude", f"ε = {upward(epsilon)}", words)


def _shortfalls(campaign: Campaign, found: CampaignGuarantees) -> list[GuaranteeSentence]:
    if not found.short:
        return []
    worst = min(found.short, key=lambda each: each.n)
    return [
        GuaranteeSentence(
            "Fewer valid reports than planned",
            "",
            f"{_count(len(found.short), 'batch', 'batches')} held fewer valid reports than the minimum of "
            f"{campaign.batch.minimum:,}, such as that of round {worst.t:,} with {worst.n:,} of {worst.sent:,}: its "
            "estimates are withheld, and the promises above count the valid ones only.",
        )
    ]


def _doubts(found: CampaignGuarantees) -> list[GuaranteeSentence]:
    if not found.doubtful:
        return []
    worst = min(found.doubtful, key=lambda each: (each.followers or 0) / max(1, each.n))
    many = _count(len(found.doubtful), "batch", "batches")
    return [GuaranteeSentence("Dummies are missing", "", f"{many} in doubt. {doubt(worst)}")]


def doubt(released: ReleasedBatch) -> str:
    """A warning where not everybody in a batch can have sent dummies as the campaign says; empty elsewhere."""
    if released.followers is None:
        return ""
    return (
        f"Warning: too few messages came in round {released.t:,}. At most {released.followers:,} of its "
        f"{released.n:,} people can have followed the campaign's rule for dummies (wrong once in a billion batches). "
        "Its promise counts on no more of them, and holds only if as many as it counts on did; nobody can check that."
    )


def _people(campaign: Campaign) -> list[GuaranteeSentence]:
    """On whom it rests that reports come from distinct people, where that is not the shuffler's roster."""
    if campaign.promise.authentication == "roster":
        return []
    if campaign.tokens is not None:
        return [
            GuaranteeSentence(
                "Distinct people",
                "",
                f"They rest on the issuer {campaign.tokens.issuer}: it gives each person one token a round, and "
                "whoever has its keys can invent people. The shuffler takes one report for each token and learns no "
                "name. Tokens are experimental: nobody outside has reviewed them yet.",
            )
        ]
    return [
        GuaranteeSentence(
            "Anybody may send",
            "",
            "Devices are not checked against a roster, so nobody knows how many distinct people stand behind the "
            "reports: estimates can be flooded, and the promise is that of single reports.",
        )
    ]


_SHOWN = 5  # rounds of which the page tells how many tokens and reports there are


def token_sentence(
    campaign: Campaign, reports: Mapping[int, int], issued: Mapping[int, int] | None, *, why: str = ""
) -> GuaranteeSentence:
    """Tokens that the issuer says it gave, beside reports; both by round. why : what keeps its word from counting."""
    assert campaign.tokens is not None
    name = campaign.tokens.issuer
    if issued is None:
        reason = f" ({why})" if why else ""
        return GuaranteeSentence(
            "Tokens",
            "",
            f"How many tokens the issuer {name} gave is not known here{reason}: whether there are more reports than "
            "people who may take part cannot be seen.",
        )
    more = [number for number, count in sorted(reports.items()) if number in issued and count > issued[number]]
    alarm = "".join(
        f" In round {number:,} there are more reports than tokens: somebody else than the issuer has made people up, "
        "or it has lost count, as after a restore."
        for number in more[-_SHOWN:]
    )
    both = [number for number in sorted(reports) if number in issued][-_SHOWN:]
    told = "; ".join(f"round {n:,}: {issued[n]:,} tokens, {_count(reports[n], 'report')}" for n in both)
    later = len(reports.keys() - issued.keys())
    untold = f" Of {_count(later, 'round')} counted here it has told nothing yet." if later else ""
    return GuaranteeSentence(
        "Tokens",
        "",
        f"The issuer {name} signs how many it gave in rounds that are over: {told or 'none of those counted here'}."
        f"{untold}{alarm} As many or fewer reports prove nothing: the issuer may have made people up, and the "
        "shuffler may have sent reports in place of people who sent none.",
    )


_IF = {
    "shuffler": ", if the shuffler adds its dummies and keeps them secret",
    "users": ", if enough other people send their dummies and the shuffler keeps to itself whose they are",
}


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _trust(guarantee: object) -> str:
    """Whose noise a guarantee rests on."""
    return guarantee.trust if isinstance(guarantee, CentralDP) else "local"


def _rests_on(guarantee: object) -> str:
    known = {"shuffler": " It rests on the shuffler's dummies.", "users": " It rests on the dummies of other people."}
    return known.get(_trust(guarantee), "")


def summarize(found: CampaignGuarantees) -> str:
    """The promise to quote of batches there are, in one line."""
    both = found.composed
    if isinstance(both, CentralDP) or (not isinstance(both, Missing) and both.epsilon is not None):
        trusted = _IF.get(_trust(both), "")
        trusted += ", for the class that is most exposed" if found.classes else ""
        return f"ε = {upward(both.epsilon)} after shuffling, with slack δ = {upward(both.delta)}{trusted}"
    return f"ε = {upward(found.all_local)} for all reports of one device"

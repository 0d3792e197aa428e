"""In words: what people of each class are promised where they have different epsilons, and what is estimated."""

from __future__ import annotations

from typing import NamedTuple

from dovetail.collect.campaign.class_guarantees import WEIGHTED, ClassGuarantee
from dovetail.collect.campaign.guarantees import CampaignGuarantees
from dovetail.core.guarantee import CentralDP
from dovetail.core.verdict import warnings_of
from dovetail.report.document import Missing
from dovetail.report.number_format import odds, upward
from dovetail_protocol.campaign import Campaign


class GuaranteeSentence(NamedTuple):
    """One promise: what it is about, its number ("" where there is none), and what it means."""

    name: str
    figure: str
    meaning: str


def class_sentences(campaign: Campaign, found: CampaignGuarantees) -> list[GuaranteeSentence]:
    """What is public about classes, what each of them is promised, and what shares mean."""
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
        "Whoever sees a single report of this class, even with its sender's name on it, can shift the odds of any "
        f"two values behind it by a factor of at most {odds(each.local)}.",
    )
    if t is None or each.latest is None:
        return [report]
    latest = _central(f"Latest batch (round {t:,}), {each.name}", each.latest)
    every = _central(f"Each batch so far, {each.name}", each.every or each.latest)
    return [report, latest, *([every] if every.figure != latest.figure else []), _together(each)]


def _central(name: str, central: CentralDP | Missing) -> GuaranteeSentence:
    if isinstance(central, Missing):
        return GuaranteeSentence(name, "", f"No promise beyond that of single reports: {central.reason}.")
    notes = "".join(f" But {note}." for note in warnings_of(central.delta, central.n))
    return GuaranteeSentence(
        name,
        f"ε = {upward(central.epsilon)}",
        f"Shuffled among {central.n:,} reports of all classes, with {central.honest_n:,} people assumed honest, "
        "whoever they are: whoever sees the batch shifts the odds about one person of this class by a factor of at "
        f"most {odds(central.epsilon)}, with slack δ = {upward(central.delta)}.{notes}",
    )


def _together(each: ClassGuarantee) -> GuaranteeSentence:
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

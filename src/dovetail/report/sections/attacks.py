"""What attackers got and what can be learned about groups: the tables and the chart of a rehearsal."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR
from typing import Any

from dovetail.attack.experiment.result import ATTACK
from dovetail.report.number_format import ABSENT, Document, display_name, missing_reason, percent, percent_up
from dovetail.report.sections.released_people import copying_notes, label_notes
from dovetail.report.sections.sentences import attacks_of, learnability_of
from dovetail.report.sections.tables import Table
from dovetail.report.sections.uniform_instead import uniform_instead


def attack_table(document: Document) -> Table:
    """Every attack on the chosen shuffler beside the chance level; no rows where nothing was attacked."""
    attacks = attacks_of(document)
    if not attacks:
        why = f"No attack was mounted: {missing_reason(document['attacks'])}."
        return Table((), (), (why, *copying_notes(document), *label_notes(document)))
    known = [attack for attack in attacks if missing_reason(attack) is None]
    level = percent(known[0]["level"]) if known else ABSENT
    columns = ("attack", "right", "chance level", f"{level} interval", "bound", "nearly always right")
    rows = tuple((str(attack["name"]), *_cells(attack)) for attack in attacks)
    notes = [
        f"{attack['name']} does not apply: {missing_reason(attack)}."
        for attack in attacks
        if missing_reason(attack) is not None
    ]
    if known:
        first = known[0]
        notes.insert(
            0,
            f"{first['targets']:,} targets, {first['trials']:,} releases. Chance level: naming the commonest answer "
            "for everybody. Nearly always right: share of the targets whom the attack alone guessed right in at "
            f"least {percent(first['vulnerable_at'])} of the releases. A better attack may exist.",
        )
        notes += [f"{attack['name']}: {attack['remark']}." for attack in known if attack.get("remark")]
        notes += worse_than_blind(known)
        notes += bound_notes(known)
    return Table(columns, rows, (*notes, *copying_notes(document), *label_notes(document)))


def worse_than_blind(attacks: list[Document]) -> list[str]:
    """Which attacks nobody would mount, because naming the commonest answer does better."""
    return [
        f"{attack['name']} alone is right in {percent(attack['alone'])}: who attacks names the commonest answer "
        "instead, and is right as often as the chance level."
        for attack in attacks
        if attack.get("mounted", ATTACK) != ATTACK
    ]


def bound_notes(attacks: list[Document]) -> list[str]:
    """What the bound beside each attack is and rests on, and where an attack is above it; why there is none."""
    first = attacks[0].get("bound")
    if first is None:  # a report from before there were bounds
        return []
    if (none := missing_reason(first)) is not None:
        return [f"No bound on attacks is known: {none}."]
    notes = [
        "Bound: no attacker who knows these public columns and the shares of the answers given them is right more "
        "often on average, if answers are independent given these columns. It is the smallest that follows from the "
        f"{attacks[0]['bound_by']}."
    ]
    return notes + [
        f"{attack['name']} is above the bound beyond its interval: answers in this table depend on each other, given "
        "these columns."
        for attack in attacks
        if attack["interval"][0] > attack["bound"]
    ]


def _bound(attack: Document) -> str:
    bound = attack.get("bound")
    return ABSENT if bound is None else "none known" if missing_reason(bound) is not None else percent_up(bound)


def _cells(attack: Document) -> tuple[str, ...]:
    if missing_reason(attack) is not None:
        return (ABSENT,) * 5
    low, high = attack["interval"]
    interval = f"{percent(low, ROUND_FLOOR)} to {percent(high, ROUND_CEILING)}"
    right, chance = percent(attack["success"]), percent(attack["chance"])
    return right, chance, interval, _bound(attack), percent_up(attack["vulnerable"])


def learnability_table(document: Document) -> Table:
    """How far local estimates are off, between no shuffle and a full one; no rows where that does not apply."""
    learned = learnability_of(document)
    if not learned:
        return Table((), (), (f"Learnability by group does not apply: {missing_reason(document['learnability'])}.",))
    columns = ("by", "not shuffled", display_name(document["shuffler"]), "fully shuffled", "groups")
    rows = tuple(
        (str(each["by"]), *(f"{each[key]:.2f}" for key in ("identity", "error", "uniform")), f"{each['groups']:,}")
        for each in learned
    )
    note = (
        "λ: the error of estimates read off the order of the release, the noise taken away. 0 is perfect, 1 is no "
        "better than a uniform guess. Near the left end groups can be told apart, near the right end they cannot. "
        f"Means of {learned[0]['draws']:,} releases."
    )
    better = () if document.get("comparison") else uniform_instead(document)  # the comparison says so itself
    return Table(columns, rows, (note, *better))


def attack_rows(document: Document) -> list[tuple[str, Any]]:
    """Attacks with an interval that can be drawn, by shuffler and name; without a comparison by name."""
    entries = document.get("comparison") or [document]
    many = len(entries) > 1
    return [
        (f"{display_name(entry['shuffler'])}: {attack['name']}" if many else str(attack["name"]), attack)
        for entry in entries
        for attack in attacks_of(entry)
        if missing_reason(attack) is None and all(math.isfinite(float(end)) for end in attack["interval"])
    ]

"""The verdict that a report opens with: promised, leaks, risk for one person, what to do; on a scale."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from dovetail.report.number_format import Document, display_name, missing_reason, odds, upward
from dovetail.report.sections.questions import riskiest
from dovetail.report.sections.sentences import (
    adversary_of_dummies,
    amplifies,
    attack_sentence,
    guess_gain,
    guess_sentence,
    has_dummies,
    honesty_assumption,
    single_report,
)

STRONG, REASONABLE = 1.0, 10.0  # largest epsilon of each grade
SCALE = (
    "Scale for ε, a convention and no theorem: up to 1 strong, up to 10 moderate, above weak, after the three tiers "
    "that Ponomareva and others (2023, How to DP-fy ML, Journal of Artificial Intelligence Research 77, 1113-1201) "
    "propose for models trained with central differential privacy, strong formal guarantees up to 1, reasonable ones "
    "up to 10, formally weak or none above; we read ε of one report, and α, whose e^α bounds odds likewise, on the "
    "same scale. δ has to stay well below 1/n (Dwork and Roth, 2014, The Algorithmic Foundations of Differential "
    "Privacy, section 2.3). λ runs from 0, the order tells a group's share as if nothing were shuffled, to that of a "
    "uniform shuffle, which tells nothing. Risk is what a guess gains over naming the commonest answer: below 1 "
    "percentage point low, below 10 moderate, else high; these limits are our own."
)
_WORDS = {
    "Leaks": {"strong": "little", "moderate": "some", "weak": "much"},
    "Risk for one person": {"strong": "low", "moderate": "moderate", "weak": "high"},
}
_WORTH = 0.01  # probability: what a guess gains from here on is worth a word; ten times that is much


class VerdictLine(NamedTuple):
    """One line of the verdict; `grade` is "strong", "moderate", "weak" or "" where nothing is graded."""

    name: str
    grade: str
    text: str

    @property
    def word(self) -> str:
        """The grade in a word that fits the line."""
        return _WORDS.get(self.name, {}).get(self.grade, self.grade)


def verdict(document: Document) -> tuple[VerdictLine, ...]:
    """The four lines."""
    return (_promised(document), _leaks(document), _risk(document), VerdictLine("What to do", "", _advice(document)))


def grade(epsilon: float) -> str:
    """The word for an epsilon, or an alpha."""
    return "strong" if epsilon <= STRONG else "moderate" if epsilon <= REASONABLE else "weak"


def _promised(document: Document) -> VerdictLine:
    central, local = document["central"], _local(document)
    alone = f"ε = {upward(local)} for {single_report(document)}, whoever cheats"
    if has_dummies(central):
        return _promised_by_dummies(document, local)
    lead = "A release with these settings would promise " if document["mode"] == "rehearsal" else ""
    if missing_reason(central) is not None or not amplifies(central):
        return VerdictLine("Promised", grade(local), f"{lead}{alone}; shuffling adds nothing to that.")
    epsilon = float(central["epsilon"])
    small = float(central["delta"]) * central["n"] < 1.0
    text = (
        f"{lead}ε = {upward(epsilon)} with δ = {upward(central['delta'])} for the shuffled reports, if the shuffler "
        f"and {central['honest_n']:,} of {central['n']:,} people are honest; {alone}."
    )
    return VerdictLine("Promised", grade(epsilon) if small else "weak", text)


def _promised_by_dummies(document: Document, local: float) -> VerdictLine:
    central = document["central"]
    left = "read every answer: no local promise" if math.isinf(local) else f"are left with ε = {upward(local)}"
    would = " would hold" if document["mode"] == "rehearsal" else ""
    adds = "People add" if central["trust"] == "users" else "The shuffler adds"
    text = (
        f"{adds} the noise: ε = {upward(central['epsilon'])} with δ = {upward(central['delta'])}{would} "
        f"against {adversary_of_dummies(central)}, if {honesty_assumption(central)}. Shuffler and analyst together "
        f"{left}."
    )
    return VerdictLine("Promised", grade(float(central["epsilon"])), text)


def _local(document: Document) -> float:
    """Local epsilon; infinite where there is no such promise."""
    return math.inf if missing_reason(document["local"]) is not None else float(document["local"]["epsilon"])


def _leaks(document: Document) -> VerdictLine:
    order, alpha = document["order"], math.inf
    if missing_reason(order) is None:
        alpha = float(order["alpha"])
    if alpha == 0.0:
        text = "Among people who are shuffled together the order of the rows tells nothing about who sent which."
        return VerdictLine("Leaks", "strong", text)
    if math.isinf(alpha):
        return VerdictLine(
            "Leaks", "weak", "The order of the rows may tell who sent which: nothing is promised of it."
        )
    text = f"The order of the rows shifts the odds of who in a group sent which by a factor of at most {odds(alpha)}."
    return VerdictLine("Leaks", grade(alpha), text)


def _risk(document: Document) -> VerdictLine:
    document = riskiest(document)
    leakage, attack = document["leakage"], document["attack"]
    texts, gain = list[str](), 0.0
    if missing_reason(leakage) is None and missing_reason(leakage["at_hand"]) is None:
        hand = leakage["at_hand"]
        texts, gain = [guess_sentence(hand)], float(guess_gain(hand)) / 100.0
    if missing_reason(attack) is None:
        gain = max(gain, float(attack["success"]) - float(attack["chance"]))
        texts.append(f"{attack_sentence(attack)}; it knows public columns as well.")
    if not texts:
        return VerdictLine("Risk for one person", "", f"Not measured: {missing_reason(leakage)}.")
    word = "strong" if gain < _WORTH else "moderate" if gain < 10.0 * _WORTH else "weak"
    return VerdictLine("Risk for one person", word, " ".join(texts))


def _advice(document: Document) -> str:
    said = list(_steps(document))
    return " ".join(said) if said else "Nothing stands out. Read the assumptions before anything is released."


def _steps(document: Document) -> Iterator[str]:
    central, local, estimates = document["central"], _local(document), document["estimates"]
    if local > REASONABLE and not has_dummies(central):
        yield f"Lower the ε of one report: with {upward(local)} it is all but an open answer."
    if missing_reason(central) is None and float(central["delta"]) * central["n"] >= 1.0:
        yield f"Lower δ: it is not below 1/n = {upward(1.0 / central['n'])}."
    if missing_reason(central) is not None:
        yield f"There is no promise for the shuffled reports ({missing_reason(central)})."
    elif not amplifies(central):
        yield "More honest people, or larger groups, are needed for shuffling to protect anybody."
    better = estimates.get("better")
    if better is not None and missing_reason(better) is None:
        yield f"Take the randomizer {display_name(better['name'])}: it is more accurate for so many values."
    if document["mode"] == "rehearsal":
        yield (
            'This is a rehearsal: keep it in the house; when plan and promise are right, set mode = "release" and '
            "remove the seed."
        )

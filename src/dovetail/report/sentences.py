"""The metrics of the privacy report in plain words, shared by the page and the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR
from typing import Any, NamedTuple

from dovetail.attack.experiment.run_attack import ATTACK
from dovetail.core.display import chance_in_words, guess_in_words
from dovetail.core.stages import SHUFFLERS
from dovetail.report.number_format import (
    Document,
    display_name,
    downward,
    label_of,
    missing_reason,
    odds,
    percent,
    percent_up,
    upward,
)

SHUFFLER_FACTS = (  # what a reader wants to know of a fitted shuffler
    "groups", "largest_group", "ungrouped", "components", "sensitivity", "mean_displacement", "mean_distance",
    "retained_mean", "reason", "warning",
)  # fmt: skip


class MetricSummary(NamedTuple):
    """One of the five metrics in words; `headline` is its number, empty where it does not apply."""

    name: str
    question: str
    headline: str
    meaning: str
    lines: tuple[str, ...] = ()  # always printed with the meaning
    details: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    source: str = ""


def summarize_metrics(document: Document) -> tuple[MetricSummary, ...]:
    """The five metrics, always all five: one that does not apply says why."""
    return (_local(document), _central(document), _order(document), _leakage(document), _attack(document))


def _absent(name: str, question: str, block: Any) -> MetricSummary:
    return MetricSummary(name, question, "", f"Does not apply: {missing_reason(block)}")


def _local(document: Document) -> MetricSummary:
    what = single_report(document)
    name, question, block = "Local privacy", f"What can {what} give away, no matter who reads it?", document["local"]
    if missing_reason(block) is not None:
        return _absent(name, question, block)
    slack = f" (slack δ = {upward(block['delta'])})" if block.get("delta") else ""
    what = what if not is_stream(document) else f"{what}, over all rounds,"
    meaning = (
        f"Reading {what} shifts the odds between any two answers of its owner by a factor of at most "
        f"{odds(block['epsilon'])}{slack}, even if everybody else cheats."
        if math.isfinite(float(block["epsilon"]))
        else "Nothing is promised: one report may reveal its owner's answer."
    )
    lines = _round_lines(document, "local_of_a_round", "ε")
    return MetricSummary(name, question, f"ε = {upward(block['epsilon'])}", meaning, lines, (), *_fine_print(block))


def single_report(document: Document) -> str:
    """Say what one person sends in all, which the local guarantee is about."""
    if is_stream(document):
        return "all reports of one device"
    return "all reports of one person" if document["collection"].get("ask") == "all" else "one report"


def is_stream(document: Document) -> bool:
    """True if the report is about rounds of a stream."""
    return missing_reason(document.get("rounds")) is None


def _round_lines(document: Document, key: str, sign: str) -> tuple[str, ...]:
    """Say what a single round of a stream guarantees, beside all of them."""
    if not is_stream(document):
        return ()
    block = document["rounds"][key]
    if isinstance(block, dict) and missing_reason(block) is not None:
        return (f"one round: no bound, {missing_reason(block)}",)
    return (f"one round: {sign} = {upward(block['epsilon'] if isinstance(block, dict) else block)}",)


def _central(document: Document) -> MetricSummary:
    what = "all shuffled rounds together" if is_stream(document) else "the whole shuffled batch"
    name, question = "Central privacy", f"What can {what} give away about one person?"
    block = document["central"]
    if missing_reason(block) is not None:
        return _absent(name, question, block)
    slack = f"slack δ = {upward(block['delta'])}"
    if amplifies(block):
        what = (
            "shuffled batches of all rounds together shift the odds about one device's values"
            if is_stream(document)
            else "shuffled batches of all questions together shift the odds about one person"
            if document["collection"].get("ask") == "all"
            else "shuffled batch shifts the odds about one person"
        )
        meaning = (
            f"If {honesty_assumption(block)}, the {what} by a factor of at most {odds(block['epsilon'])} ({slack}), "
            "however much is known about everybody else."
        )
    else:
        meaning = (
            "Shuffling adds next to nothing to the promise for one report: "
            f"{block['honest_n']:,} of the {block['n']:,} people it mixes are assumed honest."
        )
    lines, details = tuple(str(line) for line in block.get("lines", ())), []
    lines += _round_lines(document, "central_of_a_round", "ε")
    if missing_reason(block.get("attack_lower")) is None and float(block["attack_lower"]) > 0.0:
        least = downward(block["attack_lower"])
        details.append(
            f"no proof from the local ε alone can promise less than ε = {least}: some randomizer gives that much away"
        )
    if missing_reason(block.get("numeric_lower")) is None:
        details.append(
            f"method: {block['method']}; its exact value lies between {downward(block['numeric_lower'])} "
            f"and {upward(block['epsilon'])}"
        )
    return MetricSummary(
        name, question, f"ε = {upward(block['epsilon'])}", meaning, lines, tuple(details), *_fine_print(block)
    )


def amplifies(block: Document) -> bool:
    """True if the shuffled batch promises more than one report does, in the digits that are shown."""
    return upward(block["epsilon"]) != upward(block["colluding"])


def has_dummies(block: Document) -> bool:
    """True if a central guarantee rests on dummies, of the shuffler or of people."""
    return missing_reason(block) is None and block.get("trust") in ("shuffler", "users")


def over_all_releases(document: Document) -> str:
    """Say what all releases about these people promise together; infinite totals are no numbers to quote."""
    total = float(document["release"]["total_epsilon"])
    if math.isfinite(total):
        return f"together ε = {upward(total)} for a person"
    if missing_reason(document["central"]) is None:
        return "the promise for the batch is of all of them"
    return "together they have no promise: epsilons of local noise add up, and not all have one"


def adversary_of_dummies(block: Document) -> str:
    """Against whom dummies protect."""
    if block.get("trust") == "users":
        return "the analyst and all others together"
    return "the analyst with any number of participants" if block["honest_n"] == 1 else "the analyst"


def honesty_assumption(block: Document) -> str:
    """Say who has to be honest for the central guarantee that is quoted."""
    n, honest = block["n"], block["honest_n"]
    if block.get("trust") == "shuffler":
        dummies = (
            "the shuffler adds its dummies once, as specified, and keeps their numbers and its randomness secret"
        )
        return dummies if honest == 1 else f"{dummies}, and {honest:,} of {n:,} people are honest"
    if block.get("trust") == "users":
        return (
            f"{honest:,} of {n:,} people are honest and their answers and dummies arrive, and the shuffler takes at "
            "most one message of a person beside her answers, mixes them and tells nobody whose they are"
        )
    whom = f"all {n:,} people" if honest == n else f"{honest:,} of the {n:,} people"
    return f"the shuffler and {whom} it mixes are honest"


def _order(document: Document) -> MetricSummary:
    name, question, block = "Order privacy", "What can the order of the released rows give away?", document["order"]
    if missing_reason(block) is not None:
        return _absent(name, question, block)
    alpha = float(block["alpha"])
    if math.isinf(alpha):
        meaning = "Nothing is promised about the order of the rows."
    elif alpha == 0.0:
        meaning = "Inside a group the order tells nobody which row is whose: every order is equally likely."
    else:
        meaning = (
            "Exchanging reports between people of one group changes the probability of any released order "
            f"by a factor of at most {odds(alpha)}."
        )
    details = [f"shuffler: {display_name(block['shuffler'])}"]
    if missing_reason(block.get("theta_n")) is None:
        details.append(f"θ·n = {upward(block['theta_n'])}: large means close to the reference order")
    summary = block.get("summary")
    if isinstance(summary, dict) and missing_reason(summary) is None:
        kept = [
            key for key in SHUFFLER_FACTS if key in summary and missing_reason(summary[key]) is None
        ]  # report.json has the rest
        details += [f"{display_name(key)}: {format_brief(summary[key])}" for key in kept]
    lines = _round_lines(document, "alpha_of_a_round", "α")
    return MetricSummary(name, question, f"α = {upward(alpha)}", meaning, lines, tuple(details), *_fine_print(block))


def _leakage(document: Document) -> MetricSummary:
    name, question = "Exact leakage", "What does the best possible guess gain from the data?"
    block, lines = document["leakage"], linkage_lines(document)
    if missing_reason(block) is not None:
        return _absent(name, question, block)._replace(lines=lines)
    shuffled = missing_reason(block["randomized_shuffled"]) is None
    guess = guess_in_words(_best_guess(block), block["prior"])
    best = guess.best
    most = "at most " if block["method"] == "bracket" else ""
    even = (
        "Somebody who finds every answer equally likely beforehand, sees "
        f"{'the shuffled batch' if shuffled else 'the report of one person'} and guesses "
        f"{'one' if shuffled else 'that'} person's answer in one try is right with probability {most}{best}; "
        f"without any data it is {guess.blind}."
    )
    hand = block["at_hand"]
    known = missing_reason(hand) is None
    meaning = f"{guess_sentence(hand)} {even}" if known else even
    headline = f"+{guess_gain(hand)} points" if known else best
    details = (
        [] if shuffled else [f"no number for the released order: {missing_reason(block['randomized_shuffled'])}"]
    )
    if shuffled:
        own = f"one report with its noise, not shuffled: {_alone(block)} if all are equally likely"
        details.append(f"{own}, {_alone(hand)} for the shares at hand" if known else own)
    if missing_reason(block["shuffled"]) is None:
        apart = guess_in_words(block["shuffled"], block["prior"]).best
        details.append(f"shuffled without noise: {apart} if all are equally likely")
    for key, label in (("method", "method"), ("error_bound", "error at most"), ("rounding", "rounding")):
        if missing_reason(block.get(key)) is None:
            details.append(f"{label}: {format_brief(block[key])}")
    return MetricSummary(name, question, headline, meaning, lines, tuple(details), *_fine_print(block))


def linkage_lines(document: Document) -> tuple[str, ...]:
    """Which report is hers: how often somebody names it; nothing where that is not known."""
    found = document.get("linkage")
    if found is None or missing_reason(found) is not None:
        return ()
    most, shares = (chance_in_words(found[key]) for key in ("values_known", "shares_known"))
    knows = f", and of the others' only the shares: {shares}" if found["method"] != "bound" else ""
    return (
        f"which report is hers, to somebody who knows her answer and everybody else's: named with chance {most} at "
        f"most{knows}; picked blindly {chance_in_words(found['blind'])}",
    )


def guess_sentence(hand: Document) -> str:
    """Say what the data add to the blind guess of the commonest answer, for the shares at hand."""
    best, blind, points, _ = guess_in_words(_best_guess(hand), hand["prior"])
    whose = (
        f"is right for {blind} of these people"
        if hand["prior_law"] == "empirical"
        else f"is right for {blind} of the people, by the estimate below"
    )
    shuffled = missing_reason(hand["randomized_shuffled"]) is None
    seen = "the shuffled batch" if shuffled else "the report of one person"
    most = "at most " if hand["method"] == "bracket" else ""
    return (
        f"Naming the commonest answer, without any data, {whose}; the best possible guess from {seen}, by somebody "
        f"who knows nothing else, is right with probability {most}{best}: a gain of "
        f"{most}{points} percentage points."
    )


def guess_sentences(document: Document) -> Iterator[str]:
    """How often guesses at one person's answer are right, and what attacks reached: three sentences, no names."""
    block = document["leakage"]
    hand = None if missing_reason(block) is not None else block["at_hand"]
    if hand is not None and missing_reason(hand) is None:
        yield f"Guessing the commonest answer for everybody is right in {percent(hand['prior'])}."
        told = f"at most {percent_up(hand['randomized'])}"
        if missing_reason(hand["randomized_shuffled"]) is None:
            more = percent_up(_best_guess(hand)) != percent_up(hand["prior"])
            better = f"is right in at most {percent_up(_best_guess(hand))}" if more else "does no better"
            yield f"Somebody who has only the released table {better}; if the shuffler tells who sent what: {told}."
        else:
            yield f"If it is known who sent what: {told}."
    known = [one for one in attacks_of(document) if missing_reason(one) is None]
    if known:
        first = max(known, key=lambda one: float(one["success"]))
        best, alone = float(first["success"]), "a guess from the public columns alone"
        what = f" on {first['guessed']}" if first.get("guessed") else ""
        tried = f"One attack{what} was tried" if len(known) == 1 else f"{len(known)} attacks{what} were tried"
        if all(float(one["success"]) <= float(one["chance"]) for one in known):
            yield f"{tried}; nothing beat {alone}."
        else:
            yield f"{tried}; the best was right in {percent(best)}, {alone} in {percent(first['chance'])}."


def guess_gain(hand: Document) -> str:
    """The gain over the blind guess in percentage points, rounded up."""
    return guess_in_words(_best_guess(hand), hand["prior"]).points


def _alone(leakage: Document) -> str:
    """The chance of the best guess from one report that was not shuffled."""
    return guess_in_words(leakage["randomized"], leakage["prior"]).best


def _best_guess(hand: Document) -> float:
    shuffled = missing_reason(hand["randomized_shuffled"]) is None
    return float(hand["randomized_shuffled"] if shuffled else hand["randomized"])


def _attack(document: Document) -> MetricSummary:
    name, question, block = "Measured attack", "How often was a real attack right?", document["attack"]
    if missing_reason(block) is not None:
        return _absent(name, question, block)
    low, high = block["interval"]
    meaning = (
        f"{attack_sentence(block)} ({percent(block['level'])} interval {percent(low, ROUND_FLOOR)} to "
        f"{percent(high, ROUND_CEILING)}); naming the commonest answer of people with the same "
        f"public columns is right in {percent(block['chance'])}. A better attack may exist."
    )
    details = []
    if missing_reason(block.get("vulnerable")) is None:
        details.append(
            f"the attack alone guessed {percent_up(block['vulnerable'])} of the targets right in at least "
            f"{percent(block['vulnerable_at'])} of the trials"
        )
    details += [
        f"{other['name']}: {percent(other['success'])} right, chance level {percent(other['chance'])}"
        for other in attacks_of(document)
        if missing_reason(other) is None and other["name"] != block["name"]
    ]
    counts = [
        f"{block[key]:,} {key}" for key in ("targets", "trials", "votes") if missing_reason(block.get(key)) is None
    ]
    details += [", ".join(counts)] if counts else []
    return MetricSummary(name, question, percent(block["success"]), meaning, (), tuple(details), *_fine_print(block))


def attack_sentence(block: Document) -> str:
    """Say how often the attack was right, or that it is worse than a blind guess."""
    if block.get("mounted", ATTACK) == ATTACK:
        return f"The attack “{block['name']}” guessed {percent(block['success'])} of the answers right"
    return (
        f"The attack “{block['name']}” alone guessed {percent(block['alone'])} of the answers right, so an attacker "
        f"names the commonest answer given the public columns instead and is right in {percent(block['success'])}"
    )


def attacks_of(entry: Document) -> list[Document]:
    """The attacks of a shuffler; none where they do not apply."""
    return [] if missing_reason(entry["attacks"]) is not None else list(entry["attacks"])


def learnability_of(entry: Document) -> list[Document]:
    """Learnability by column; nothing where it does not apply."""
    return [] if missing_reason(entry["learnability"]) is not None else list(entry["learnability"])


def _fine_print(block: Document) -> tuple[tuple[str, ...], str]:
    return tuple(str(caveat) for caveat in block.get("caveats", ())), str(block.get("source") or "")


def format_brief(value: Any) -> str:
    """Any entry of the document in few letters; a positive fraction is rounded up."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "∞" if value == "inf" else str(value)
    return f"{value:,}" if isinstance(value, int) else upward(value) if value >= 0.0 else f"{value:.3g}"


def mode_sentence(document: Document) -> str:
    """Say what kind of document this is."""
    if document["mode"] == "rehearsal":
        random = "simulated" if document["entropy"] == "simulation" else "the operating system's"
        return f"Rehearsal with {random} randomness: contains the truth and protects nobody."
    return "Release: randomized with the device's own entropy; contains no truth."


def banner(document: Document) -> str:
    """The line that keeps a rehearsal from being mistaken for a release; empty for a release."""
    mark = document.get("watermark")
    if isinstance(mark, str):
        return mark
    return mode_sentence(document) if document["mode"] == "rehearsal" else ""


# Where a uniform shuffle is the better choice: it promises more, and no less can be learned from it.


NO_LESS = 0.9  # of the error of a full shuffle; two means of ten releases differ by less
AS_GOOD = 1.05  # times the error of an order-private shuffle, inside disjoint groups


def uniform_instead(document: Document) -> Iterator[str]:
    """A sentence for each shuffler of a rehearsal whose order costs a promise and tells nothing for it."""
    entries = document.get("comparison") or [document]
    by_name = {str(entry["shuffler"]): entry for entry in entries}
    for name, entry in by_name.items():
        learned, alpha = learnability_of(entry), _alpha(entry)
        if not learned or alpha is None or alpha <= 0.0:
            continue
        shown = ", ".join(f"by {each['by']} {each['error']:.2f} against {each['uniform']:.2f}" for each in learned)
        if all(each["error"] >= NO_LESS * each["uniform"] for each in learned):
            central = _central_instead(by_name.get("uniform"))
            yield (
                f"Better than {label_of(SHUFFLERS, name)}: a uniform shuffle. The order tells hardly more about "
                f"groups (λ {shown}), and a uniform shuffle promises α = 0{central}. For an order "
                "that can be learned from, raise α or make the groups smaller."
            )
        elif _no_worse(by_name.get("within_groups"), learned):
            yield (
                f"Better than {label_of(SHUFFLERS, name)}: the shuffle within groups. Groups are estimated as well "
                f"from it, and it promises α = 0{_central_instead(by_name['within_groups'])}."
            )


def _alpha(entry: Document) -> float | None:
    """Alpha of the order; None where nothing is shuffled or nothing is guaranteed."""
    order = entry["order"]
    if missing_reason(order) is not None or missing_reason(order["alpha"]) is not None or order["alpha"] == "inf":
        return None
    return float(order["alpha"])


def _central_instead(entry: Document | None) -> str:
    """The central guarantee of a shuffle, where it was computed and hides more than the reports do."""
    if entry is None or missing_reason(entry["central"]) is not None:
        return " and a central ε" if entry is None else ""
    epsilon = entry["central"].get("epsilon")
    if missing_reason(epsilon) is not None or not float(epsilon) < float(entry["local"]["epsilon"]):
        return ""
    return f" and a central ε of {upward(epsilon)}"


def _no_worse(entry: Document | None, learned: list[Document]) -> bool:
    """True if every column's groups are estimated about as well from another shuffle."""
    other = {} if entry is None else {each["by"]: each["error"] for each in learnability_of(entry)}
    return bool(other) and all(other.get(each["by"], 2.0) <= AS_GOOD * each["error"] for each in learned)

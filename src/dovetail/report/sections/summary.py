"""The privacy report in a handful of sentences."""

import math
from collections.abc import Iterator

from dovetail.report.number_format import (
    Document,
    Unit,
    display_name,
    missing_reason,
    odds,
    percent,
    upward,
)
from dovetail.report.sections.questions import question_documents, setting
from dovetail.report.sections.sentences import (
    adversary_of_dummies,
    amplifies,
    has_dummies,
    honesty_assumption,
    is_stream,
    single_report,
)
from dovetail.report.sections.vectors import is_vector, vector_kind, vector_sentences


def summary(document: Document) -> tuple[str, ...]:
    """The report in a handful of sentences: who, how, what it promises, what it leaks, what was learned."""
    return (*_setting(document), *_promises(document), *_learned(document))


def _setting(document: Document) -> Iterator[str]:
    if document["collection"]["kind"] == "questions":
        yield from setting(document)
        return
    collection, randomizer = document["collection"], document["randomizer"]
    kind = (
        f"a number between {collection['lower']:g} and {collection['upper']:g}"
        if collection["kind"] == "numeric"
        else vector_kind(document)
        if is_vector(document)
        else f"one of {len(collection['categories'])} answers"
    )
    who = f"{collection['n']:,} people"
    if is_stream(document):
        rounds = document["rounds"]
        who = f"{rounds['reports']:,} reports of {rounds['devices']:,} devices in {rounds['rounds']:,} rounds"
    yield f"{who}, one private column: {collection['private']} ({kind})."
    if has_dummies(document["central"]) and not math.isfinite(float(document["local"]["epsilon"])):
        learned = "mean is" if document["estimates"]["measure"] == "mean" else "shares are"
        mixes = {
            "shuffler": "the shuffler mixes them, adds dummies of every answer",
            "users": "by chance with a dummy beside them, the shuffler mixes all messages",
        }[document["central"]["trust"]]
        yield (
            f"Answers leave their owners without noise; {mixes}, and the {learned} then estimated. Shuffler and "
            "analyst together read every answer."
        )
        return
    yield (
        "Every answer is randomized before it leaves its owner "
        f"({randomizer.get('label', display_name(randomizer['name']))}, ε = {upward(randomizer['epsilon'])}), "
        f"passes the shuffler ({display_name(document['shuffler'])}), and is then estimated."
    )


def _promises(document: Document) -> Iterator[str]:
    local, central = document["local"], document["central"]
    if missing_reason(local) is None and math.isfinite(float(local["epsilon"])):
        batch = ""
        if is_stream(document):
            total, alone = upward(local["epsilon"]), upward(document["rounds"]["local_of_a_round"]["epsilon"])
            batch = f" (ε = {alone}); the device that reports most often spends ε = {total} over all rounds"
        elif missing_reason(central) is None:
            batch = (
                f"; the shuffled batch by at most {odds(central['epsilon'])} (slack δ = {upward(central['delta'])}), "
                f"if {honesty_assumption(central)}"
                if amplifies(central)
                else "; under the assumptions below, shuffling adds next to nothing to that promise"
            )
        once = document["rounds"]["local_of_a_round"] if is_stream(document) else local
        yield f"{_sent(document)} the odds about its owner by a factor of at most {odds(once['epsilon'])}{batch}."
    elif has_dummies(central):
        yield (
            f"The batch shifts the odds about one person by a factor of at most {odds(central['epsilon'])}, against "
            f"{adversary_of_dummies(central)}, if {honesty_assumption(central)}."
        )
    release = document.get("release")
    if isinstance(release, dict) and release.get("releases", 1) > 1:
        yield (
            f"This is release {release['number']} of {release['releases']} about these people; "
            f"all of them together promise ε = {upward(release['total_epsilon'])} for one person's reports."
        )


def _sent(document: Document) -> str:
    what = single_report(document)
    return "All reports of one person together shift" if what.endswith("person") else "One report shifts"


def _learned(document: Document) -> Iterator[str]:
    for one in question_documents(document):
        if missing_reason(one["estimates"]) is None:
            yield from (f"{one['column']}: {line[0].lower()}{line[1:]}" for line in _estimated(one))
    yield from _estimated(document)


def _estimated(document: Document) -> Iterator[str]:
    overall, measure = document["estimates"]["overall"], document["estimates"]["measure"]
    if is_vector(document):
        yield from vector_sentences(document)
        return
    if missing_reason(overall) is None:
        unit, place = Unit.of(measure), _headline(document)
        error = overall["standard_error"][place]
        over = " over all rounds" if is_stream(document) else ""
        what = f"mean{over}" if measure == "mean" else f"share of “{overall['labels'][place]}”"
        yield (
            f"The estimated {what} is {unit(overall['possible'][place], error)}, with a "
            f"{percent(document['estimates']['level'])} interval from "
            f"{unit.interval(overall['interval'][place], error)}."
        )


def _headline(document: Document) -> int:
    """The component to quote: the second of two answers, else the largest."""
    values = document["estimates"]["overall"]["possible"]
    return 1 if len(values) == 2 else max(range(len(values)), key=lambda place: float(values[place]))

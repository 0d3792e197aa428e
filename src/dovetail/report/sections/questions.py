"""Several questions in one report: each as a document of its own, and the sentences about all of them."""

from collections.abc import Iterator
from typing import NamedTuple

from dovetail.report.number_format import Document, display_name, missing_reason, percent, upward
from dovetail.report.sections.sentences import MetricSummary, guess_gain, summarize_metrics
from dovetail.report.sections.tables import Table, estimate_table, group_table

HOW = {
    "all": "everybody answers all of them, and the reports on each are shuffled by themselves",
    "joint": "everybody answers all of them in one report",
    "one": "everybody answers one of them, drawn by chance",
}


class QuestionPart(NamedTuple):
    """A question: what is written about it alone, its tables, and in words what its answers tell."""

    name: str
    document: Document
    table: Table
    groups: Table
    lines: tuple[str, ...]


def question_documents(document: Document) -> list[Document]:
    """Each question as a report about it alone; none where there is one private column."""
    questions = document.get("questions")
    return [] if not isinstance(questions, list) else [{**document, **one} for one in questions]


def question_parts(document: Document) -> list[QuestionPart]:
    """Every question, in the order in which they are asked."""
    return [
        QuestionPart(str(one["column"]), one, _table(one), _groups(one), tuple(_lines(one)))
        for one in question_documents(document)
    ]


def asked_of(document: Document) -> str:
    """A question in brackets: what its answers are."""
    collection = document["collection"]
    if collection["kind"] == "numeric":
        return f"{collection['private']} (a number between {collection['lower']:g} and {collection['upper']:g})"
    return f"{collection['private']} (one of {len(collection['categories'])} answers)"


def setting(document: Document) -> Iterator[str]:
    """Who is asked what, and how reports are made."""
    parts = question_documents(document)
    collection = document["collection"]
    asked = ", ".join(asked_of(one) for one in parts)
    yield f"{collection['n']:,} people, {len(parts)} private columns: {asked}; {HOW[collection['ask']]}."
    made = ", ".join(
        f"{one['column']}: {one['randomizer']['label']}, ε = {upward(one['local']['epsilon'])}" for one in parts
    )
    yield (
        f"Every answer is randomized before it leaves its owner ({made}), passes the shuffler "
        f"({display_name(document['shuffler'])}), and is then estimated."
    )


def riskiest(document: Document) -> Document:
    """The question whose answers are guessed best, for the shares at hand; the report itself where none is."""
    guessed = [
        one
        for one in question_documents(document)
        if missing_reason(one["leakage"]) is None and missing_reason(one["leakage"]["at_hand"]) is None
    ]
    return max(guessed, key=lambda one: float(guess_gain(one["leakage"]["at_hand"])), default=document)


def _table(one: Document) -> Table:
    why = missing_reason(one["estimates"])
    return estimate_table(one) if why is None else Table((), (), (f"No estimate: {why}.",))


def _groups(one: Document) -> Table:
    """The estimates by group; nothing at all where none were asked for."""
    known = missing_reason(one["estimates"]) is None and missing_reason(one["estimates"]["groups"]) is None
    return group_table(one) if known else Table((), (), ())


def _lines(one: Document) -> Iterator[str]:
    n, answers = one["collection"]["n"], one["answers"]
    if one["chance"] < 1.0:
        yield (
            f"Answered by {answers:,} of {n:,} people: each draws this question with probability "
            f"{percent(one['chance'])}."
        )
    local, _, _, leakage, attack = summarize_metrics(one)
    randomizer = one["randomizer"]["label"]
    yield f"One answer: {local.headline} ({randomizer}), whoever reads it; it is part of the budget above."
    yield _said(leakage)
    yield _said(attack)


def _said(metric: MetricSummary) -> str:
    return (
        f"{metric.name}: {metric.headline}. {metric.meaning}"
        if metric.headline
        else f"{metric.name}: {metric.meaning}."
    )

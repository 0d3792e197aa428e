"""What a report on several questions says: who answers what, what is assumed, and what each step promises."""

from __future__ import annotations

from typing import Any

from dovetail.core.guarantee import CentralDP, LocalDP
from dovetail.pipeline.evaluate.sentences import collection_document, published_document, randomizer_document
from dovetail.pipeline.files.report_columns import describe_reports
from dovetail.pipeline.questions.collection import QuestionsCollection
from dovetail.pipeline.questions.config import QuestionsConfig
from dovetail.pipeline.questions.evaluate import NOT_ATTACKED, Answered
from dovetail.report.document import Missing, to_jsonable
from dovetail.report.number_format import upward

ANSWERS = {
    "all": "Each person answers every question once, each answer randomized by itself and sent as a report of its "
    "own; reports on different questions have nothing in common: no name, no id, no time.",
    "joint": "Each person sends exactly one report, with her answers to all questions, each randomized by itself.",
    "one": "Each person draws one question by chance alone, whatever her answers are, and sends exactly one report, "
    "which names the question and holds her randomized answer to it.",
}
RELEASED = {
    "all": "Released are the reports on each question, shuffled by themselves: no two answers of a person are "
    "linked. The central guarantee covers all of these batches together.",
    "joint": "Released are whole reports, shuffled: which answers are one person's is released and covered by the "
    "central guarantee; who she is, is not released.",
    "one": "Released are the reports and the question of each; how many people answered a question is covered by the "
    "central guarantee. Nobody answers twice, so there is no link to release.",
}
INSIDE = (
    "People are shuffled inside the groups of {name} alone: no report leaves its group, public columns stand beside "
    "the reports of their group, and the central guarantee is that of the smallest group."
)
MIXED = {
    "all": "The shuffler mixes the reports on each question by themselves, with randomness of its own.",
    "joint": "The shuffler mixes whole reports; the answers in a report stay together.",
    "one": "The shuffler mixes all reports, whatever question they are about.",
}


def questions_document(collection: QuestionsCollection, answered: tuple[Answered, ...]) -> list[dict[str, Any]]:
    """Each question with the keys that a report about it alone would have."""
    total = sum(collection.weights)
    return [
        {
            "column": column,
            "chance": weight / total if collection.ask == "one" else 1.0,
            "answers": one.reports,
            "collection": collection_document(one.part),
            "randomizer": to_jsonable(randomizer_document(one.part.randomizer)),
            "local": _local(one.local),
            "leakage": to_jsonable(one.leakage),
            "attack": to_jsonable(NOT_ATTACKED),
            "attacks": to_jsonable(NOT_ATTACKED),
            "estimates": to_jsonable(one.estimates),
        }
        for column, weight, one in zip(collection.columns, collection.weights, answered, strict=True)
    ]


def _local(local: LocalDP) -> dict[str, Any]:
    return {
        "epsilon": local.epsilon,
        "delta": local.delta,
        "source": local.source,
        "caveats": list(local.caveats),
    }


def collection_of(collection: QuestionsCollection) -> dict[str, Any]:
    """Who was asked what."""
    return {
        "n": collection.n, "private": ", ".join(collection.columns), "public": collection.public.columns,
        **published_document(collection.public.select(collection.released_columns), collection.n),
        "kind": "questions", "inferred": any(part.inferred for part in collection.parts),
        "ask": collection.ask, "questions": len(collection.columns),
    }  # fmt: skip


def randomizer_of(collection: QuestionsCollection) -> dict[str, Any]:
    """One for each question; epsilon is what a person spends."""
    each = {column: part.randomizer.label for column, part in zip(collection.columns, collection.parts, strict=True)}
    return {
        "name": "one for each question", "label": "a randomizer for each question",
        "epsilon": collection.local.epsilon, "parameters": each,
    }  # fmt: skip


def config_of(asked: QuestionsConfig) -> dict[str, Any]:
    """The configuration, without where the table is and how it is spelled."""
    grouped = asked.head.shuffle.groups is not None
    whole = asked.head.model_dump(mode="json", exclude={"seed", *(() if grouped else ("shuffle", "estimate"))})
    questions = []
    for question in asked.questions:
        data = question.settings.data.model_dump(
            mode="json", include={"categories", "lower", "upper", "grid", "missing"}, exclude_none=True
        )
        randomize = question.settings.randomize
        own = {} if randomize is None else randomize.model_dump(mode="json", exclude={"by", "epsilons"})
        drawn = {"weight": question.weight} if asked.head.ask == "one" else {}
        questions.append({"column": question.column, **data, **own, **drawn})
    data = {"person": asked.data.person, **({"public": asked.data.public} if grouped else {})}
    return {**whole, "data": data, "questions": questions}


def sanitized_of(collection: QuestionsCollection, provenance: str) -> dict[str, Any]:
    """What a later stage must know of the released table."""
    each = [
        {"column": column, **describe_reports(part.randomizer, part.categories, provenance)}
        for column, part in zip(collection.columns, collection.parts, strict=True)
    ]
    return {
        "schema_version": 1,
        "entropy": provenance,
        "ask": collection.ask,
        "people": collection.n,
        **({"public": collection.released_columns} if collection.released_columns else {}),
        "questions": each,
    }


def assumptions_of(collection: QuestionsCollection, *, mode: str) -> tuple[str, ...]:
    """What must be true for the numbers to mean what they say."""
    inferred = [column for column, part in zip(collection.columns, collection.parts, strict=True) if part.inferred]
    known = "Questions, categories, bounds and grids are public knowledge, not read off the private columns."
    if inferred:
        known = (
            f"The categories of {', '.join(inferred)} were inferred from the private column and may tell who is in "
            "it; the promises hold only if they are public knowledge too. A release must declare them."
        )
    groups, honest = collection.asked.head.shuffle.groups, collection.asked.head.promise.honest or collection.n
    lines = [
        ANSWERS[collection.ask],
        RELEASED[collection.ask],
        *([] if groups is None else [INSIDE.format(name=groups.labels)]),
        known,
        f"The shuffler keeps the order to itself, and {honest:,} of {collection.n:,} people follow the "
        "protocol; otherwise the local guarantee is all that remains.",
        "Vulnerability of a question is against somebody who holds every category equally likely beforehand and "
        "knows of no link between questions; the guarantees need no such assumption.",
    ]
    if mode == "release":
        lines += [
            "The number of people is no secret.",
            "A later release about the same people adds its budget to this one.",
        ]
    return tuple(lines)


def _promised(central: CentralDP | Missing) -> dict[str, str]:
    if isinstance(central, Missing):
        return {"guarantee": f"none: {central.reason}", "theorem": "docs/theory/several-questions.md"}
    return {
        "guarantee": f"({upward(central.epsilon)}, {upward(central.delta)}) for a person's answers to all questions",
        "theorem": f"{central.source}; docs/theory/several-questions.md",
    }


def steps_of(
    collection: QuestionsCollection, local: LocalDP, central: CentralDP | Missing
) -> tuple[dict[str, str], ...]:
    """The stages with their guarantees and theorems."""
    budgets = ", ".join(
        f"{column} {upward(part.randomizer.guarantee.epsilon)}"
        for column, part in zip(collection.columns, collection.parts, strict=True)
    )
    return (
        {
            "stage": "randomize",
            "what": f"Each device answers on its own, before anything is sent. Epsilon by question: {budgets}.",
            "guarantee": f"({upward(local.epsilon)}, {upward(local.delta)})-local differential privacy of everything "
            "that one person sends",
            "theorem": local.source,
        },
        {
            "stage": "shuffle",
            "what": MIXED[collection.ask] + ("" if not collection.released_columns else " Each group by itself."),
            **_promised(central),
        },
        {
            "stage": "estimate",
            "what": "The analyst inverts the known randomization, question by question; intervals say how far off it "
            "may be" + (", also because people drew their question." if collection.ask == "one" else "."),
            "guarantee": "post-processing: costs no privacy",
            "theorem": "Dwork and Roth (2014), The Algorithmic Foundations of Differential Privacy, Proposition 2.1",
        },
    )

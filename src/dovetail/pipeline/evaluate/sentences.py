"""The sentences of a report: what was collected, what is assumed, and what each step promises."""

from __future__ import annotations

import dataclasses
from math import isinf
from typing import Any

import polars as pl

from dovetail.core.guarantee import CentralDP
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer
from dovetail.pipeline.collection import Collection
from dovetail.report.document import BayesLeakage, Evaluation, Missing
from dovetail.report.number_format import upward
from dovetail.shuffle.dummies.user_dummies import UserDummies

MIXES = {
    "shuffler": " It adds dummies of every answer.",
    "users": " It takes at most two messages of a person.",
}


def collection_document(collection: Collection) -> dict[str, Any]:
    """Who was asked what."""
    survey, randomizer = collection.survey, collection.randomizer
    beside = survey.public if collection.shuffler.keeps_places else survey.public.select([])
    base: dict[str, Any] = {
        "n": survey.n,
        "private": collection.private,
        "public": survey.public.columns,
        **published_document(beside, survey.n),
        "unconfirmed": list(collection.unconfirmed),
        "inferred": collection.inferred,
    }
    if isinstance(randomizer, NumericRandomizer):
        return {**base, "kind": "numeric", "lower": randomizer.lower, "upper": randomizer.upper}
    return {**base, "kind": "categorical", "categories": collection.categories}


def published_document(public: pl.DataFrame, n: int) -> dict[str, Any]:
    """Which columns leave as they are beside the reports, and how many people are alone with their combination.

    What stands beside the reports is public, so counting it reveals nothing further.
    """
    alone: int | Missing = Missing("no column leaves beside the reports")
    if public.width:
        alone = Missing("public columns lie in files and are not counted together")
    if public.width and public.height == n:
        alone = int(public.is_unique().sum())
    return {"published": public.columns, "alone": alone}


def randomizer_document(randomizer: FrequencyRandomizer | NumericRandomizer) -> dict[str, Any]:
    """Name, epsilon and parameters."""
    names = [field.name for field in dataclasses.fields(randomizer)]  # type: ignore[arg-type]
    fields = {name: getattr(randomizer, name) for name in names}
    epsilon = fields.pop("epsilon", randomizer.guarantee.epsilon)
    return {
        "name": randomizer.name,
        "label": randomizer.label,
        "epsilon": epsilon,
        "parameters": fields,
        **randomizer.facts(),
    }


def _known_beforehand(collection: Collection) -> str:
    """Where categories or bounds come from: one sentence, that says of each part what is true of it."""
    if not collection.inferred:
        return "Categories, bounds, grids and groups are public knowledge, not read off the private column."
    what = "bounds" if collection.categories is None else "categories"
    return (
        f"Groups are public knowledge, but the {what} were {_read_off(collection)}; the promises hold only if they "
        "are public knowledge too. A release must declare them."
    )


def _read_off(collection: Collection) -> str:
    """Where categories or bounds come from that nobody has vouched for."""
    if collection.unconfirmed:
        return (
            "inferred from the private column by a check of the table, nobody has confirmed them since, and they may "
            "tell who is in it"
        )
    return "inferred from the private column and may tell who is in it"


def assumptions(collection: Collection, evaluation: Evaluation, *, mode: str) -> tuple[str, ...]:
    """What must be true for the numbers to mean what they say."""
    lines = [
        "Each person sends exactly one report, and everybody uses the same randomizer independently."
        if collection.classes is None
        else "Each person sends exactly one report, randomized independently with the epsilon of her class.",
        _known_beforehand(collection),
    ]
    if isinstance(collection.dummies, UserDummies):
        lines[0] = "Each person sends exactly one answer, and a dummy beside it by chance alone."
        lines.append(
            "People are trusted with the noise together: the promise counts on "
            f"{collection.honest or collection.n:,} honest ones whose answers and dummies arrive, each by itself; "
            "with fewer of them it is weaker. The shuffler takes at most two messages of a person, mixes them, and "
            "tells nobody whose they are."
        )
    elif collection.dummies is not None:
        lines[0] = "Each person sends exactly one report."
        lines.append(
            "The shuffler is trusted with the noise: it draws the dummies once, from the operating system, as "
            "specified, tells nobody their numbers, and the analyst sees the shuffled batch alone. A shuffler that "
            "adds none voids the promise."
        )
    elif isinstance(evaluation.central, CentralDP):
        central = evaluation.central
        lines.append(
            f"The shuffler keeps the order to itself, and {central.honest_n:,} of {central.n:,} people that are "
            "shuffled together follow the protocol; otherwise the local guarantee is all that remains."
        )
    lines += _classes(collection)
    alone = evaluation.order.summary.get("ungrouped", 0)
    if alone:
        lines.append(f"{alone:,} of {collection.n:,} people are in no group: their reports stay at their places.")
    if evaluation.order.guarantee.protects:
        lines.append("The order promise is about reorderings inside the fitted groups; it stands beside epsilon.")
    if isinstance(evaluation.leakage, BayesLeakage):
        lines.append("Vulnerability is against an adversary who holds every category equally likely beforehand.")
    if mode == "release":
        lines.append("The number of reports and the public columns are no secrets.")
        lines.append("A later release about the same people adds its budget to this one.")
    return tuple(lines)


def _classes(collection: Collection) -> list[str]:
    """What people with different epsilons are promised, class by class."""
    if collection.classes is None:
        return []
    each = [
        f"{people:,} people with epsilon0 {upward(own)} in their own report: central epsilon {upward(one.epsilon)}."
        for own, people, one in collection.class_promises
    ]
    return [
        f"The epsilon of a person is set by {collection.classes.column}, which does not depend on the answer; "
        "reports do not carry it. Quoted above is the largest; people with a large one hide behind the careful ones, "
        "who have to be honest and present.",
        *each,
        "Shares weigh people by how truthful they are: they are those of everybody only where class and answer are "
        "unrelated.",
    ]


def _sends(randomizer: FrequencyRandomizer | NumericRandomizer) -> str:
    """What leaves a device without local noise."""
    if isinstance(randomizer, NumericRandomizer):
        return "rounds its number at random to one of two neighbours on the public grid and sends that"
    return "sends its answer as it is"


def steps(evaluation: Evaluation, randomizer: FrequencyRandomizer | NumericRandomizer) -> tuple[dict[str, str], ...]:
    """The stages with their guarantees and theorems."""
    local, central = evaluation.local, evaluation.central
    trust = central.trust if isinstance(central, CentralDP) else "local"
    bare = isinf(local.epsilon)
    alpha = evaluation.order.guarantee.alpha
    return (
        {
            "stage": "randomize",
            "what": f"Each device {_sends(randomizer)}, under the analyst's key."
            + (" By chance it sends a uniform symbol as a second message." if trust == "users" else "")
            if bare
            else f"Each device answers through {randomizer.name}, on its own, before anything is sent.",
            "guarantee": "no local promise"
            if bare
            else f"({upward(local.epsilon)}, {upward(local.delta)})-local differential privacy",
            "theorem": local.source,
        },
        {
            "stage": "shuffle",
            "what": f"The batch is reordered by {evaluation.shuffler}; the shuffler never looks at the reports."
            + MIXES.get(trust, ""),
            "guarantee": "no order promise" if alpha == float("inf") else f"order privacy alpha = {upward(alpha)}",
            "theorem": "; ".join(
                [evaluation.order.guarantee.source] + ([central.source] if isinstance(central, CentralDP) else [])
            ),
        },
        {
            "stage": "estimate",
            "what": "The analyst inverts the known randomization; intervals say how far off it may be.",
            "guarantee": "post-processing: costs no privacy",
            "theorem": "Dwork and Roth (2014), The Algorithmic Foundations of Differential Privacy, Proposition 2.1",
        },
    )  # fmt: skip

"""What goes together: every question with every noise, order, engine and mode, and the reason where it does not.

One table for the configuration, the engines, the documentation and the tests. A reason is a theorem or a fact of one
of the choices, or what the code has no way for yet; what is not refused works.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from dovetail.core.noise import NOISES
from dovetail.core.question import QUESTIONS, Question
from dovetail.core.stages import SHUFFLERS

MEMORY, PROCESSES, SPARK, CAMPAIGN = ENGINES = ("memory", "processes", "spark", "campaign")
SEVERAL = {  # questions of one person at once, and how she answers
    "all": "several questions, each answer sent by itself",
    "joint": "several questions, all answers in one report",
    "one": "one of several questions, drawn by chance",
}
STRINGS = "strings"  # level by level: each group of people is asked another question
LABELS = {**SEVERAL, STRINGS: "strings that many people hold, without a list of them"}
REHEARSAL, RELEASE = MODES = ("rehearsal", "release")


@dataclass(frozen=True)
class Choices:
    """One cell of the table.

    Parameters
    ----------
    question, noise, order, engine, mode : str
        Names: of `QUESTIONS` or `LABELS`, `NOISES`, `SHUFFLERS`, `ENGINES` and `MODES`.
    """

    question: str
    noise: str
    order: str
    engine: str = MEMORY
    mode: str = REHEARSAL

    @property
    def refusal(self) -> str | None:
        """Why these choices do not go together; None where they do. A fact comes before what is not built."""
        return next((why for why, holds in (*self._facts(), *self._not_built()) if holds), None)

    @property
    def forbidden(self) -> bool:
        """True if a theorem or a fact of a choice is against it."""
        return any(holds for _, holds in self._facts())

    @property
    def _asked(self) -> type[Question] | None:
        """The one question; None where there are several, or one after the other."""
        return None if self.question in LABELS else QUESTIONS[self.question]

    def _facts(self) -> Iterator[tuple[str, bool]]:
        noise, order, asked = NOISES[self.noise], SHUFFLERS[self.order], self._asked
        campaign = self.engine == CAMPAIGN
        yield (
            f"{noise.label} goes with a uniform shuffle: {noise.everybody}",
            (bool(noise.everybody) and self.order != "uniform"),
        )
        searched = self.question == STRINGS
        needs = "frequency" if searched else "" if asked is None else asked.needs
        yield noise.unfit.get(needs, ""), needs in noise.unfit
        yield (
            f"{noise.label} goes with orders that mix evenly, as of shufflers without `alpha`: {noise.fresh_orders}",
            bool(noise.fresh_orders) and order.needs_alpha,
        )
        if asked is not None:
            yield (
                f"{asked.label} takes several symbols of a person, which go with dummies alone: of local noise each "
                "would cost a share of the budget",
                asked.several and noise.trust == "local",
            )
            yield f"{asked.label} is in no campaign: {asked.unsent}", campaign and bool(asked.unsent)
        yield f"{noise.label} hides one answer: {noise.apart}", self.question == "joint" and bool(noise.apart)
        yield f"{noise.label} hides no search for strings: {noise.unsearched}", searched and bool(noise.unsearched)
        yield (
            "strings are found by how often each answer comes from a group of people, which no order of the answers "
            "tells more of than a uniform one",
            searched and self.order != "uniform",
        )
        yield (
            "a release of strings needs dummies of the shuffler whose numbers have an end: behind other noise "
            "strings are found that nobody holds",
            searched and self.mode == RELEASE and not noise.bounded,
        )
        yield (
            f'a release must shuffle: `shuffler` "{self.order}" would publish who sent what',
            self.mode == RELEASE and not order.moves_reports,
        )
        yield (
            "a campaign has no rehearsal, as its analyzer never sees true answers; `dovetail collect simulate` draws "
            "some",
            campaign and self.mode == REHEARSAL,
        )
        yield (
            "answers that are sent by themselves are campaigns by themselves: write one for each question with "
            "`dovetail collect new`, for the same roster; devices add what they cost",
            campaign and self.question == "all",
        )
        yield (
            "the owner of a campaign names all answers and signs them before anybody reports, and a search for "
            "strings makes the answers of each group of people from the reports of the last one",
            campaign and searched,
        )
        yield (
            f"shuffler {self.order!r} needs everybody's place in one memory; others do not",
            self.engine in (PROCESSES, SPARK) and not order.drawn_by_labels,
        )

    def _not_built(self) -> Iterator[tuple[str, bool]]:
        noise, asked = NOISES[self.noise], self._asked
        campaign = self.engine == CAMPAIGN
        if asked is not None:
            yield (
                f"{noise.label} goes with one symbol of a person, and {asked.label} takes several",
                asked.several and not noise.several,
            )
        yield (
            f"{noise.label} hides no drawn question in a campaign: devices draw one behind one epsilon, or dummies",
            campaign and self.question == "one" and self.noise == "classes",
        )


def table() -> Iterator[tuple[Choices, str | None]]:
    """Every cell, and why it is refused."""
    for names in product((*QUESTIONS.names(), *LABELS), NOISES.names(), SHUFFLERS.names(), ENGINES, MODES):
        one = Choices(*names)
        yield one, one.refusal


def choices_of(config: Any, *, engine: str = MEMORY) -> Choices:
    """The cell of a configuration, of one question or of several."""
    question, noise, order = config.choices
    return Choices(question, noise, order, engine, config.mode)


def page() -> str:
    """The table as a page of the documentation: allowed cells counted, reasons listed once."""
    cells = list(table())
    allowed = [one for one, why in cells if why is None]
    forbidden = sum(one.forbidden for one, _ in cells)
    missing = len(cells) - len(allowed) - forbidden
    lines = [
        "# What goes together",
        "",
        "A collection is five choices: a question, a noise, an order, an engine, a view.",
        f"Of {len(cells):,} combinations {len(allowed):,} work. Views show all of them.",
        f"A theorem or a fact of a choice is against {forbidden:,}; not built yet: {missing:,}.",
        "Streams have a job of their own, and no line here.",
        "",
        "| question | noise | orders in memory | orders in files | orders in campaigns |",
        "| --- | --- | --- | --- | --- |",
    ]
    labels = {name: QUESTIONS[name].label for name in QUESTIONS.names()} | LABELS
    for question, noise in product(labels, NOISES.names()):
        own = [one for one in allowed if (one.question, one.noise) == (question, noise)]
        orders = [
            ", ".join(dict.fromkeys(f"`{one.order}`" for one in own if one.engine in engines)) or "none"
            for engines in ((MEMORY,), (PROCESSES, SPARK), (CAMPAIGN,))
        ]
        lines.append(f"| {labels[question]} | {NOISES[noise].label} | {' | '.join(orders)} |")
    for heading, fact in (("What does not go together", True), ("Not built yet", False)):
        reasons = dict.fromkeys(why for one, why in cells if why is not None and one.forbidden == fact)
        lines += ["", f"## {heading}", "", *(f"- {why[0].upper()}{why[1:]}." for why in reasons)]
    return "\n".join([*lines, ""])

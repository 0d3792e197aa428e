"""Two reports side by side: every fact of both, and which of them changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from dovetail.core.errors import DataError
from dovetail.report.number_format import ABSENT, Document, Unit, display_name, missing_reason, percent, upward
from dovetail.report.render.html import render_html
from dovetail.report.sections.questions import question_documents
from dovetail.report.sections.sentences import summarize_metrics
from dovetail.report.sections.verdict import verdict

MOST_ESTIMATES = 60
_NOISE = {"local": "every person alone", "shuffler": "the shuffler", "users": "people together"}


class Fact(NamedTuple):
    """One line of a comparison; texts are empty where a report has no such line."""

    name: str
    before: str
    after: str

    @property
    def changed(self) -> bool:
        """Whether the two differ."""
        return self.before != self.after


class Changes(NamedTuple):
    """What two reports say, line by line, and the settings that differ."""

    facts: tuple[Fact, ...]
    estimates: tuple[Fact, ...]
    settings: tuple[Fact, ...]


def read_report(text: bytes, name: str) -> Document:
    """The document of a report.json that this version can render.

    Raises
    ------
    DataError
        For anything else.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise DataError(f"{name}: is no JSON that can be read.") from None
    if not isinstance(document, dict) or document.get("mode") not in ("rehearsal", "release"):
        raise DataError(f"{name}: is no report.json of `dovetail run`.")
    try:
        render_html(document)
        compare(document, document)
    except Exception:  # whatever a stranger's file lacks, or holds instead
        raise DataError(f"{name}: is damaged, or a report of another version of dovetail.") from None
    return document


def compare(before: Document, after: Document) -> Changes:
    """What changed from one report to the other."""
    return Changes(
        _beside(dict(_facts(before)), dict(_facts(after))),
        _beside(dict(_estimates(before)), dict(_estimates(after))),
        tuple(
            fact
            for fact in _beside(dict(_settings(before.get("config"))), dict(_settings(after.get("config"))))
            if fact.changed
        ),
    )


def _beside(before: dict[str, str], after: dict[str, str]) -> tuple[Fact, ...]:
    return tuple(Fact(name, before.get(name, ""), after.get(name, "")) for name in {**before, **after})


def _facts(document: Document) -> Iterator[tuple[str, str]]:
    """Who, how, what is promised, what leaks."""
    collection, randomizer, central = document["collection"], document["randomizer"], document["central"]
    yield "mode", str(document["mode"])
    yield "people", f"{collection['n']:,}"
    yield "private column", str(collection["private"])
    yield "randomizer", display_name(str(randomizer["name"]))
    yield "shuffler", display_name(str(document["shuffler"]))
    local = document["local"]
    yield "local ε", ABSENT if missing_reason(local) is not None else upward(local["epsilon"])
    known = missing_reason(central) is None
    yield "central ε", upward(central["epsilon"]) if known else f"{ABSENT} ({missing_reason(central)})"
    yield "noise made by", _NOISE.get(str(central.get("trust")), ABSENT) if known else ABSENT
    yield "δ", upward(central["delta"]) if known else ABSENT
    yield "honest people", f"{central['honest_n']:,}" if known else ABSENT
    order = document["order"]
    yield "order privacy α", ABSENT if missing_reason(order) is not None else upward(order["alpha"])
    leakage = document["leakage"]
    guess = None if missing_reason(leakage) is not None else leakage["randomized_shuffled"]
    yield "best guess, uniform prior", ABSENT if guess is None else percent(guess, "ROUND_CEILING")
    attack = document["attack"]
    yield "strongest attack", ABSENT if missing_reason(attack) is not None else percent(attack["success"])
    for line in verdict(document):
        yield line.name, line.words
    for metric in summarize_metrics(document):
        yield metric.name, metric.headline or ABSENT


def _estimates(document: Document) -> Iterator[tuple[str, str]]:
    """The estimates for everybody, of several questions by question."""
    for one in question_documents(document):
        if missing_reason(one["estimates"]) is None:
            yield from (
                (f"{one['column']}: {label}", value) for label, value in _estimates({**one, "questions": None})
            )
    overall, unit = document["estimates"]["overall"], Unit.of(document["estimates"]["measure"])
    if missing_reason(overall) is not None:
        return
    for place, label in enumerate(overall["labels"][:MOST_ESTIMATES]):
        interval = overall["interval"][place]
        error = (float(interval[1]) - float(interval[0])) / 4.0
        yield str(label), f"{unit(overall['possible'][place], error)} ({unit.interval(interval, error)})"


def _settings(config: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """The leaves of the configuration, by their dotted names."""
    if isinstance(config, dict):
        for key, value in config.items():
            yield from _settings(value, f"{name}.{key}" if name else str(key))
    else:
        yield name or "configuration", json.dumps(config, ensure_ascii=False, default=str)

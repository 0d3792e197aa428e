"""The tables of the privacy report, shared by the page and the terminal."""

import math
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR
from itertools import chain
from statistics import median
from typing import Any, NamedTuple

from dovetail.core.display.losses import guess_in_words
from dovetail.report.number_format import (
    ABSENT,
    Document,
    Unit,
    display_name,
    missing_reason,
    percent,
    upward,
)
from dovetail.report.sections.sentences import attacks_of, learnability_of
from dovetail.report.sections.uniform_instead import uniform_instead
from dovetail.report.sections.vectors import is_vector


class Table(NamedTuple):
    """Words in rows and columns, with the notes below them."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def shows_truth(document: Document) -> bool:
    """Only a rehearsal shows the truth, whatever the document holds."""
    return bool(document["mode"] == "rehearsal")


def shown_components(labels: Sequence[str]) -> range:
    """Of two answers the second is shown: the first is what remains."""
    return range(1, 2) if len(labels) == 2 else range(len(labels))


def estimate_table(document: Document) -> Table:
    """What was learned about everybody."""
    estimates = document["estimates"]
    overall, level = estimates["overall"], percent(estimates["level"])
    truth = shows_truth(document) and "truth" in overall
    unit, error = Unit.of(estimates["measure"]), median_error([overall])
    columns: tuple[str, ...] = (
        "answer" if estimates["measure"] == "share" else "quantity",
        "estimate",
        f"{level} interval",
    )
    columns += ("noise error", "with sampling") + (("truth",) if truth else ())
    rows = tuple(
        (str(label), *_estimate_cells(overall, place, unit, error, truth=truth))
        for place, label in enumerate(overall["labels"])
    )
    notes = [
        f"n = {overall['n']:,}. {_whose_interval(document)}",
        *_moved_note([overall], unit, error),
        *_bias_note([overall], unit),
        *_estimator_note(estimates),
        *_better_note(estimates, unit),
        *_precision_note(document["randomizer"]),
    ]
    return Table(columns, rows, tuple(notes))


def _whose_interval(document: Document) -> str:
    if is_vector(document):
        return (
            "Intervals are of one coordinate each and for exactly these people, their vectors shortened; with "
            "sampling: at most so much for a population they are drawn from."
        )
    if document.get("config", {}).get("strings") is not None:
        return "The interval holds the noise and the drawing of the last group, which is asked for all bytes."
    if document["collection"].get("n", 0) > document.get("answers", math.inf):
        return (
            "The interval is for everybody who was asked: the noise and who drew this question are its sources of "
            "error (noise error: the standard error of both). With sampling: the standard error for a population."
        )
    return (
        "The interval is for exactly these people: the noise is its only source of error (noise error: standard "
        "error). With sampling: the standard error for a population they are drawn from."
    )


def group_table(document: Document) -> Table:
    """What was learned about the groups; no rows where the estimator gives none."""
    estimates, notes = document["estimates"], []
    level, groups = percent(estimates["level"]), estimates["groups"]
    if missing_reason(groups) is not None:
        return Table((), (), (f"Group estimates do not apply: {missing_reason(groups)}", *_withheld(estimates)))
    truth = shows_truth(document) and any("truth" in group for group in groups)
    unit, error = Unit.of(estimates["measure"]), median_error(groups)
    several = any(len(shown_components(group["labels"])) > 1 for group in groups)
    columns = ("by", "group") + (("answer",) if several else ()) + ("estimate", f"{level} interval")
    columns += (("truth",) if truth else ()) + ("n",)
    rows = []
    for group in groups:
        for place in shown_components(group["labels"]):
            cells = _estimate_cells(group, place, unit, error, truth=truth)
            answer = (str(group["labels"][place]),) if several else ()
            rows.append((str(group["by"]), str(group["group"]), *answer, *cells[:2], *cells[4:], f"{group['n']:,}"))
    if groups and len(groups[0]["labels"]) == 2:
        notes.append(f"Share of “{groups[0]['labels'][1]}”; “{groups[0]['labels'][0]}” is what remains.")
    notes += [*_moved_note(groups, unit, error), *_bias_note(groups, unit), *_withheld(estimates)]
    return Table(columns, tuple(rows), tuple(notes))


def median_error(blocks: Sequence[Document]) -> float:
    """The error that decides the decimals of a whole table: the median, so that its columns align."""
    errors = [float(error) for block in blocks for error in block["standard_error"] if missing_reason(error) is None]
    return float(median(error for error in errors if 0.0 < error < math.inf)) if any(errors) else 0.0


def _estimate_cells(block: Document, place: int, unit: Unit, error: float, *, truth: bool) -> tuple[str, ...]:
    known = block.get("truth")
    return (
        unit(block["possible"][place], error),
        unit.interval(block["interval"][place], error),
        unit(block["standard_error"][place], error, ROUND_CEILING),
        unit(block["population_error"][place], error, ROUND_CEILING),
        *((unit(known[place], error) if known else ABSENT,) if truth else ()),
    )


def _moved_note(blocks: Sequence[Document], unit: Unit, error: float) -> Iterator[str]:
    """Says that what is shown is not what was unbiased, where that can be seen."""
    pairs = [pair for block in blocks for pair in zip(block["value"], block["possible"], strict=True)]
    moved = [pair for pair in pairs if unit(pair[0], error) != unit(pair[1], error)]
    if moved:
        yield (
            "Shown is the nearest answer that is possible (shares are at least 0 and sum to 100%, a mean lies in "
            f"its range); the unbiased values, {unit(min(pair[0] for pair in pairs), error)} to "
            f"{unit(max(pair[0] for pair in pairs), error)}, stand as `value` in report.json."
        )


def _bias_note(blocks: Sequence[Document], unit: Unit) -> Iterator[str]:
    bounds = [block.get("bias_bound") or 0.0 for block in blocks]
    largest = max(chain.from_iterable(bound if isinstance(bound, list) else [bound] for bound in bounds), default=0.0)
    if largest > 0.0:
        reach = unit(largest, largest, ROUND_CEILING)
        yield f"Intervals are widened by up to {reach} for a bias that cannot be excluded."


def _estimator_note(estimates: Document) -> Iterator[str]:
    estimator: Any = estimates.get("estimator")
    if missing_reason(estimator) is None:
        yield (
            f"Estimator: {estimator['name']}. The smaller error is promised by: {estimator['best']} "
            f"({estimator['reason']})."
        )


def _better_note(estimates: Document, unit: Unit) -> Iterator[str]:
    better: Any = estimates.get("better")
    if better is not None and missing_reason(better) is None:
        error = float(better["standard_error"])
        yield (
            f"A better choice for so many values: with the same ε, {display_name(better['name'])} has a standard "
            f"error of {unit(error, error, ROUND_CEILING)} for a share among many, instead of "
            f"{unit(better['here'], better['here'], ROUND_CEILING)}."
        )


def _precision_note(randomizer: Document) -> Iterator[str]:
    """What single reports achieve, beside what was asked of them."""
    precision: Any = randomizer.get("precision")
    if missing_reason(precision) is None:
        (low, high), (first, last) = precision["values"], precision["achieved"]
        yield (
            f"Precision of one report, asked for: within {percent(precision['beta'])} of its value with probability "
            f"{percent(precision['rho'])}; achieved: {percent(first, ROUND_FLOOR)} at {low:g}, "
            f"{percent(last, ROUND_FLOOR)} at {high:g}. Every value has what was asked for from "
            f"ε = {upward(precision['guaranteed_threshold'])}; Lemma 1 as published says "
            f"{upward(precision['published_threshold'])}. Reports are {'' if precision['clamps'] else 'not '}clamped."
        )


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _withheld(estimates: Document) -> Iterator[str]:
    for item in estimates.get("withheld") or ():
        whom = f"{_count(item['groups'], 'group', 'groups')} with {_count(item['people'], 'person', 'people')}"
        yield f"Withheld because too small: by {item['by']}, {whom}."


def comparison_table(document: Document) -> Table:
    """Metrics in rows, shufflers in columns; what does not apply has a numbered reason."""
    entries = document.get("comparison") or ()
    reasons: dict[str, int] = {}

    def cell(block: Any, key: str, write: Any) -> str:
        why = missing_reason(block) if missing_reason(block) is not None else missing_reason(block.get(key))
        if why is None:
            return str(write(block[key]))
        return f"{ABSENT} [{reasons.setdefault(why, len(reasons) + 1)}]"

    lines = [
        ("local ε", "local", "epsilon", upward),
        ("central ε", "central", "epsilon", upward),
        ("order α", "order", "alpha", upward),
    ]
    rows = [(words, *(cell(entry[part], key, write) for entry in entries)) for words, part, key, write in lines]
    even = (cell(_guessed(entry["leakage"]), "randomized_shuffled", str) for entry in entries)
    rows.append(("best guess right, if all answers are equally likely", *even))
    for place, attack in enumerate(attacks_of(entries[0]) if entries else ()):
        found = (attacks_of(entry)[place] for entry in entries)
        rows.append((f"{attack['name']} right", *(cell(each, "success", percent) for each in found)))
    for words, part in (("± overall", "overall"), ("± widest group", "groups")):
        rows.append((words, *(cell({"reach": _reach(entry["estimates"], part)}, "reach", str) for entry in entries)))
    if shows_truth(document):
        errors = [_group_error(entry["estimates"]) for entry in entries]
        if any(error is not None for error in errors):
            rows.append(("group error, measured", *(error or ABSENT for error in errors)))
    for place, learned in enumerate(learnability_of(entries[0]) if entries else ()):
        rows.append(
            (f"λ by {learned['by']}", *(f"{learnability_of(entry)[place]['error']:.2f}" for entry in entries))
        )
    marks = (" (chosen)" if entry["shuffler"] == document["shuffler"] else "" for entry in entries)
    columns = (
        "metric",
        *(display_name(entry["shuffler"]) + mark for entry, mark in zip(entries, marks, strict=True)),
    )
    better = uniform_instead(document) if entries else ()
    return Table(columns, tuple(rows), (*better, *(f"[{number}] {why}" for why, number in reasons.items())))


def _blocks(estimates: Any, part: str) -> Any:
    if missing_reason(estimates) is not None:
        return estimates
    found = estimates.get(part)
    return [found] if isinstance(found, dict) and missing_reason(found) is None else found


def _reach(estimates: Any, part: str) -> Any:
    """Widest half interval, rounded up; or the null block that says why there is none."""
    blocks = _blocks(estimates, part)
    if missing_reason(blocks) is not None:
        return blocks
    reach = max((float(high) - float(low)) / 2 for block in blocks for low, high in block["interval"])
    if not blocks or not math.isfinite(reach):
        return None
    return Unit.of(estimates["measure"])(reach, reach, ROUND_CEILING)


def _group_error(estimates: Any) -> str | None:
    """Mean distance between estimate and truth over the groups."""
    blocks = _blocks(estimates, "groups")
    if missing_reason(blocks) is not None:
        return None
    gaps = [
        abs(float(value) - float(truth))
        for block in blocks
        if block.get("truth")
        for value, truth in zip(block["value"], block["truth"], strict=True)
    ]
    mean = sum(gaps) / len(gaps) if gaps else math.nan
    return Unit.of(estimates["measure"])(mean, mean) if gaps else None


def _guessed(leakage: Document) -> Document:
    """The chance of the best guess from the shuffled batch in words, or why there is none."""
    if missing_reason(leakage) is not None or missing_reason(leakage["randomized_shuffled"]) is not None:
        return leakage
    return {"randomized_shuffled": guess_in_words(leakage["randomized_shuffled"], leakage["prior"]).best}

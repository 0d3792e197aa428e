"""The privacy report as one HTML file that needs nothing else: no network, no script, no font."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dovetail.core.display import guess_in_words
from dovetail.core.verdict import percent_up, scale_sentences
from dovetail.estimate.tables import Pairs
from dovetail.report import sentences as words
from dovetail.report import tables
from dovetail.report.charts import (
    CUT,
    ChangeRow,
    IntervalRow,
    NamedCurve,
    ReferenceLine,
    TimePoint,
    chance_chart,
    change_chart,
    curve_chart,
    heat_chart,
    interval_chart,
    line_chart,
    time_series_chart,
)
from dovetail.report.number_format import Document, Unit, display_name, missing_reason, percent, plain_number, upward
from dovetail.report.pictures import common_frame, trace_map
from dovetail.report.rounds import MOST_POINTS, bin_rounds, budget_table, series_table, window_table
from dovetail.report.tables import (
    QuestionPart,
    Table,
    attack_rows,
    attack_table,
    is_vector,
    learnability_table,
    question_documents,
    question_parts,
    summary,
    vector_kind,
)
from dovetail.report.verdict import judged, text_verdict, verdict


class CaptionedChart(NamedTuple):
    """A chart with its caption."""

    caption: str
    chart: Markup


LONGEST_CHART = 24  # rows; the table below it shows all
MOST_SQUARES = 40  # of a row or column of a heat map
LONGEST_TABLE = 12  # rows; a longer one is folded


def render_html(document: Document) -> str:
    """The whole report as a page: everything inline, every word of the document escaped.

    Parameters
    ----------
    document : dict
        A privacy report as loaded from report.json.
    """
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            document=document,
            metrics=words.summarize_metrics(document),
            kind=vector_kind(document) if is_vector(document) else "",
            summary=summary(document),
            guesses=list(words.guess_sentences(document)),
            judged=judged(document),
            lines=[line for line in verdict(document) if line.name in ("Public", "What to do")],
            scale=scale_sentences(),
            banner=words.banner(document),
            mode_sentence=words.mode_sentence(document),
            estimates=None if question_documents(document) else tables.estimate_table(document),
            groups=tables.group_table(document),
            pairs=tables.pair_table(document),
            attacks=attack_table(document),
            learned=learnability_table(document),
            comparison=tables.comparison_table(document),
            stream=_stream_tables(document),
            charts=charts(document),
            questions=[(part, _question_chart(part)) for part in question_parts(document)],
            config=json.dumps(document["config"], indent=2, ensure_ascii=False, default=str),
            longest_chart=LONGEST_CHART,
            longest_table=LONGEST_TABLE,
        )
    )


def _question_chart(part: QuestionPart) -> CaptionedChart | None:
    return _overall(part.document) if part.table.rows else None


def _stream_tables(document: Document) -> dict[str, tables.Table]:
    """The tables of a stream; none for a single collection."""
    if not words.is_stream(document):
        return {}
    return {"series": series_table(document), "windows": window_table(document), "budget": budget_table(document)}


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("dovetail.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        display_name=display_name,
        upward=upward,
        percent_up=percent_up,
        missing_reason=missing_reason,
        format_brief=words.format_brief,
    )
    return environment


def charts(document: Document) -> dict[str, CaptionedChart]:
    """Every chart that this document has the numbers for, by name."""
    drawn = {
        "overall": _overall(document),
        "guesses": _guesses(document),
        "groups": _groups(document),
        "epsilon": _epsilon(document),
        "vulnerability": _vulnerability(document),
        "attack": _attack(document),
        "series": _series(document),
        "curve": _curve(document),
        "pairs": _pairs(document),
        "cells": _cells(document),
    }
    return {name: chart for name, chart in drawn.items() if chart}


def _overall(document: Document) -> CaptionedChart | None:
    overall = document["estimates"]["overall"]
    if missing_reason(overall) is not None:
        return None
    error = tables.median_error([overall])
    rows = [_row(document, overall, place, str(label), error) for place, label in enumerate(overall["labels"])]
    if document["estimates"]["measure"] != "share" or len(rows) <= LONGEST_CHART:
        return _intervals(document, rows, "Estimates for everybody")
    rows = sorted((row for row in rows if math.isfinite(row.value)), key=lambda row: -row.value)
    return _intervals(document, rows, "Estimates for everybody", which="largest")


def _curve(document: Document) -> CaptionedChart | None:
    estimates = document["estimates"]
    curve, axis = estimates.get("curve"), str(document["collection"]["private"])
    return None if missing_reason(curve) is not None else curve_of_shares(curve, level=estimates["level"], axis=axis)


def curve_of_shares(curve: Document, *, level: float, axis: str) -> CaptionedChart | None:
    """The share of people below each number, with a band; None of two-way tables, and of a single number."""
    if len(curve.get("place", ())) < 2:
        return None
    drawn = [
        NamedCurve(label, kind, curve["place"], curve[name])
        for label, kind, name in (
            ("share of people below", "curve-main", "share"),
            (f"{percent(level)} interval, each number by itself", "curve-other", "low"),
            ("", "curve-other", "high"),
        )
    ]
    title = "Share of people below a number"
    said = f"The estimate, made to rise, between the ends of its {percent(level)} intervals."
    chart = line_chart(drawn, title=title, description=said, axis=axis, tick=_share, across=_plain)
    return CaptionedChart(title, chart)


def _pairs(document: Document) -> CaptionedChart | None:
    curve = document["estimates"].get("curve")
    columns = document["collection"].get("columns", ())
    return None if missing_reason(curve) is not None else heat_of_pairs(curve, columns)


def heat_of_pairs(curve: Document, columns: Sequence[str]) -> CaptionedChart | None:
    """How much every two columns tell of one another; None of a distribution, and of a single pair."""
    if len(curve.get("pairs", ())) < 2:
        return None
    most = max(*map(float, curve["information"]), 1e-12)
    heat = {(j, i): float(one) / most for (i, j), one in zip(curve["pairs"], curve["information"], strict=True)}
    title = "How much two columns tell of one another"
    told = sorted(zip(map(float, curve["information"]), curve["pairs"], strict=True), reverse=True)[:3]
    named = "; ".join(f"{columns[i]} and {columns[j]} {tells:.3g} nats" for tells, (i, j) in told)
    said = f"Mutual information, the darker a square, the more. Most: {named}."
    return CaptionedChart(title, heat_chart(columns, heat, title=title, description=said))


def _cells(document: Document) -> CaptionedChart | None:
    """The table of the two columns that tell most of one another."""
    curve, overall = document["estimates"].get("curve"), document["estimates"]["overall"]
    if missing_reason(curve) is not None or "pairs" not in curve or missing_reason(overall) is not None:
        return None
    names, values = document["collection"]["columns"], document["collection"]["values"]
    found = Pairs(tuple(map(len, values))).split(np.array(overall["possible"], dtype=np.float64))
    _, (i, j) = max(zip(map(float, curve["information"]), map(tuple, curve["pairs"]), strict=True))
    if max(len(values[i]), len(values[j])) > MOST_SQUARES:
        return None
    most = max(float(found[i, j].max()), 1e-12)
    heat = {place: float(share) / most for place, share in np.ndenumerate(found[i, j])}
    title = f"People by {names[i]} and {names[j]}"
    chart = heat_chart(
        values[i], heat, columns=values[j], title=title,
        description=f"The darker a square, the more people, {percent(most)} at most. The table has the numbers.",
    )  # fmt: skip
    return CaptionedChart(title + (", which tell most of one another" if len(curve["pairs"]) > 1 else ""), chart)


def _guesses(document: Document) -> CaptionedChart:
    """How often a guess between two answers is right: blind, and by whom one trusts, from most trust to none."""
    found, rows = judged(document), [("blind, without the data", "50%", 0.5)]
    whom = {"nobody": "nobody", "shuffler": "the shuffler", "people": "shuffler and others"}
    for row in reversed(found.rows):
        if len(rows) > 1 and rows[-1][2] == row.guess:  # the same with less trust
            rows.pop()
        rows.append((f"trusting {whom[row.trusted]}", f"at most {percent_up(row.guess)}", row.guess))
    title = "How often a guess between two answers of one person is right"
    told = "; ".join(f"{label}: {text}" for label, text, _ in rows)
    return CaptionedChart(title, chance_chart(rows, title=title, description=f"{told}.", tick=_share))


def _groups(document: Document) -> CaptionedChart | None:
    """Drawn where each group is one number: two answers, or a mean."""
    groups = document["estimates"]["groups"]
    if missing_reason(groups) is not None or any(
        len(tables.shown_components(group["labels"])) != 1 for group in groups
    ):
        return None
    error = tables.median_error(groups)
    places = [tables.shown_components(group["labels"])[0] for group in groups]
    rows = [
        _row(document, group, place, f"{group['by']} {plain_number(group['group'])}", error)
        for group, place in zip(groups, places, strict=True)
    ]
    measure = document["estimates"]["measure"]
    what = f"share of “{groups[0]['labels'][places[0]]}”" if measure == "share" and groups else measure
    return _intervals(document, rows, f"Estimates by group: {what}")


def _row(document: Document, block: Document, place: int, label: str, error: float) -> IntervalRow:
    unit = Unit.of(document["estimates"]["measure"])
    low, high = (float(end) for end in block["interval"][place])
    truth = block.get("truth") if tables.shows_truth(document) else None
    value = float(block["possible"][place])
    text = f"{unit(value, error)} ({unit.interval(block['interval'][place], error)})"
    return IntervalRow(label, text, value, low, high, None if not truth else float(truth[place]))


def _intervals(
    document: Document, rows: Sequence[IntervalRow], title: str, *, which: str = "first"
) -> CaptionedChart | None:
    rows = [row for row in rows if math.isfinite(row.lower) and math.isfinite(row.upper) and math.isfinite(row.value)]
    shares = document["estimates"]["measure"] == "share"
    shown = [row.within_shares() if shares else row for row in rows[:LONGEST_CHART]]
    if not shown:
        return None
    remarks = [f"{which} {len(shown)} of {len(rows)}"] if len(shown) < len(rows) else []
    remarks += [CUT] if shown != rows[: len(shown)] else []
    title += f" ({'; '.join(remarks)})" if remarks else ""
    level = percent(document["estimates"]["level"])
    chart = interval_chart(
        shown,
        title=title,
        description=f"Each dot is an estimate, each line its {level} interval. The table has the numbers.",
        tick=_share if shares else _plain,
        names=(f"estimate with {level} interval", "truth (rehearsal only)"),
        least=0.0 if shares else None,
    )
    return CaptionedChart(title, chart)


def _epsilon(document: Document) -> CaptionedChart | None:
    rows = []
    for entry in document.get("comparison") or ():
        if missing_reason(entry["local"]) is not None or not math.isfinite(float(entry["local"]["epsilon"])):
            continue
        before, known = float(entry["local"]["epsilon"]), missing_reason(entry["central"]) is None
        after = float(entry["central"]["epsilon"]) if known else math.inf
        text = f"{upward(before)} → {upward(after)}" if known else f"{upward(before)} → no bound"
        rows.append(ChangeRow(display_name(entry["shuffler"]), text, before, after if math.isfinite(after) else None))
    if not rows:
        return None
    title = "Epsilon before and after shuffling"
    chart = change_chart(
        rows,
        title=title,
        description="For each shuffler: local epsilon of one report, central epsilon of the shuffled batch.",
        tick=_plain,
        names=("one report (local ε)", "shuffled batch (central ε)"),
    )
    return CaptionedChart(title, chart)


def _vulnerability(document: Document) -> CaptionedChart | None:
    block = document["leakage"]
    if missing_reason(block) is not None or missing_reason(block.get("curve")) is not None or not block["curve"]["n"]:
        return None
    curve = block["curve"]
    mixed, n = _mixed(document), document["collection"]["n"]
    guess = guess_in_words(block["randomized_shuffled"], block["prior"])
    label = f"n = {mixed:,}" if mixed == n else f"n = {mixed:,} honest people shuffled together"
    title = "How often the best guess is right, by number of people, if all answers are equally likely beforehand"
    chart = curve_chart(
        [
            NamedCurve(
                "noise and shuffle", "curve-main", curve["n"], [float(y) for y in curve["randomized_shuffled"]]
            ),
            NamedCurve("shuffle without noise", "curve-other", curve["n"], [float(y) for y in curve["shuffled"]]),
        ],
        title=title,
        description=f"It falls towards the blind guess, {guess.blind}, as more people take part; "
        f"at n = {mixed:,} it is {guess.best}.",
        tick=_share,
        levels=[
            ReferenceLine(
                f"noise, not shuffled: {guess_in_words(block['randomized'], block['prior']).best}",
                "level-other",
                float(block["randomized"]),
            ),
            ReferenceLine(f"without any data: {guess.blind}", "level-main", float(block["prior"])),
        ],
        mark=ReferenceLine(label, "mark", float(mixed)),
    )
    return CaptionedChart(title, chart)


def _mixed(document: Document) -> int:
    """Number of people for whom the leakage is quoted: the batch that is shuffled together."""
    block = document["leakage"]
    quoted = float(block["randomized_shuffled"])
    found = [
        n for n, y in zip(block["curve"]["n"], block["curve"]["randomized_shuffled"], strict=True) if y == quoted
    ]
    return int(found[-1] if found else document["collection"]["n"])


def _attack(document: Document) -> CaptionedChart | None:
    found = attack_rows(document)
    if not found:
        return None
    rows = [
        IntervalRow(
            label, percent(each["success"]), float(each["success"]), *(float(end) for end in each["interval"])
        )
        for label, each in found[:LONGEST_CHART]
    ]
    first = found[0][1]
    chance, title = float(first["chance"]), "How often each attack was right"
    chart = interval_chart(
        rows,
        title=title,
        description="Measured success with its interval, against the commonest answer given public columns.",
        tick=_share,
        reference=ReferenceLine(f"chance level: {percent(chance)}", "level-main", chance),
        names=(f"success with {percent(first['level'])} interval", ""),
    )
    return CaptionedChart(title, chart)


def _series(document: Document) -> CaptionedChart | None:
    if not words.is_stream(document):
        return None
    bins = bin_rounds(document, MOST_POINTS)
    points = [
        TimePoint(each.middle, each.value, *each.interval, each.truth) if each.known else TimePoint(each.middle, None)
        for each in bins
    ]
    if all(point.value is None for point in points):
        return None
    many, level = bins[0].rounds, percent(document["estimates"]["level"])
    title = "Estimates round by round" if many == 1 else f"Estimates, each the mean of {many:,} rounds"
    chart = time_series_chart(
        points,
        title=title,
        description=f"A line of estimates with their {level} intervals; gaps where no device had budget left.",
        tick=_plain,
        names=(f"estimate with {level} interval", "truth (rehearsal only)"),
    )
    return CaptionedChart(title, chart)


def _share(value: float) -> str:
    return f"{value * 100:g}%"


def _plain(value: Any) -> str:
    return f"{value:,.6g}"


# The result of a test as one HTML file that needs nothing else: the verdict first, what it does not show last.


@dataclass(frozen=True)
class Number:
    """One number with what it means, as a card at the top of a page."""

    name: str
    value: str
    meaning: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Picture:
    """A chart or an image with its caption; `wide` takes a whole row."""

    caption: str
    chart: Markup
    wide: bool = False


@dataclass(frozen=True)
class Section:
    """A heading with pictures, tables by caption, and notes below them; `words` names the columns of prose."""

    title: str
    notes: tuple[str, ...] = ()
    tables: tuple[tuple[str, Table], ...] = ()
    pictures: tuple[Picture, ...] = ()
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class ResultPage:
    """Contents of a page, in the order in which it is read.

    Attributes
    ----------
    kicker, title : str
        What was tested; `title` heads the page.
    verdict : str
        One sentence: what was found.
    found : "memorization", "nothing" or "unclear"
        Colours the verdict; the sentence says it too.
    summary : sentences below the verdict
    limits : what this does not show
    source : where the test comes from
    """

    kicker: str
    title: str
    verdict: str
    found: Literal["memorization", "nothing", "unclear"]
    summary: tuple[str, ...]
    numbers: tuple[Number, ...]
    sections: tuple[Section, ...]
    limits: tuple[str, ...]
    source: str


def render_result(page: ResultPage) -> str:
    """The page as HTML: no network, no script, no font."""
    environment = Environment(
        loader=PackageLoader("dovetail.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("result.html.j2").render(page=page)


# Documents under sentence privacy as one HTML file that needs nothing else: no network, no script, no font.


_KINDS = ("curve-main", "curve-other", "curve-third", "curve-fourth", "curve-fifth", "curve-sixth")
_MOST_CURVES = len(_KINDS)

Figure = tuple[str, Markup]  # caption and picture


def render_text(document: dict[str, Any]) -> str:
    """The page of a release, a rehearsal or an attack.

    Parameters
    ----------
    document : dict
        As `dovetail text protect`, `evaluate` or `attack` print it with --json.
    """
    environment = Environment(
        loader=PackageLoader("dovetail.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["up"] = upward
    charts = [made for made in (_scores(document.get("rows", [])), _attacks(document.get("attacks", []))) if made]
    return environment.get_template("text.html.j2").render(
        document=document, charts=charts, verdict=text_verdict(document)
    )


def _scores(rows: list[dict[str, Any]]) -> Figure | None:
    """Macro-F1 against epsilon of all documents; None for a single epsilon."""
    whole = [row for row in rows if row["sentences"] == "all"]
    flat = [row for row in whole if row["epsilon"] is None]
    levels = [
        ReferenceLine(f"{row['release']}: {row['score']['macro_f1']:.2f}", kind, row["score"]["macro_f1"])
        for row, kind in zip(flat, ("level-main", "level-other"), strict=False)
    ]
    points = {
        name: [(row["epsilon"], row["score"]["macro_f1"]) for row in whole if row["release"] == name]
        for name in dict.fromkeys(row["release"] for row in whole if row["epsilon"] is not None)
    }
    return _chart(points, levels, "Macro-F1 of a public classifier on released embeddings")


def _attacks(rows: list[dict[str, Any]]) -> Figure | None:
    points = {}
    for attack in dict.fromkeys(row["attack"] for row in rows):
        mine = [row for row in rows if row["attack"] == attack]
        points[f"{attack}, best"] = [(row["epsilon"], row["best"]) for row in mine]
        points[f"{attack}, bound"] = [(row["epsilon"], row["bound"]) for row in mine]
    return _chart(points, [], "Success at naming a sentence, and the bound that epsilon implies")


def _chart(points: dict[str, list[tuple[float, float]]], levels: list[ReferenceLine], title: str) -> Figure | None:
    shown = dict(list(points.items())[:_MOST_CURVES])
    if not shown or min(len({x for x, _ in line}) for line in shown.values()) < 2:
        return None
    curves = [
        NamedCurve(name, kind, *map(list, zip(*sorted(line), strict=True)))
        for (name, line), kind in zip(shown.items(), _KINDS, strict=False)
    ]
    chart = curve_chart(
        curves, title=title, description="The table below holds the same numbers.", tick=lambda value: f"{value:g}",
        levels=levels, axis="epsilon (logarithmic)",
    )  # fmt: skip
    return title, chart


# The rehearsal of a trace plan as one HTML file that needs nothing else: no network, no script, no font.


def render_traces(document: dict[str, Any], picture: dict[str, Any]) -> str:
    """The page of a rehearsal.

    Parameters
    ----------
    document : dict
        As `dovetail trace attack --json` prints it.
    picture : dict
        One trace with its releases, for the maps; nothing is drawn for traces of one coordinate.
    """
    environment = Environment(
        loader=PackageLoader("dovetail.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["up"] = upward
    return environment.get_template("trace.html.j2").render(document=document, maps=_maps(picture))


def _maps(picture: dict[str, Any]) -> list[tuple[str, Markup]]:
    if len(picture["true"][0]) != 2:
        return []
    panels = picture["panels"]
    frame = common_frame([picture["true"], *(each["released"] for each in panels.values())])
    return [
        (
            f"{name} noise",
            trace_map(
                picture["true"],
                panel["released"],
                secrets=picture["secrets"],
                centres=panel["centres"],
                deviations=panel["deviations"],
                axes=panel["axes"],
                frame=frame,
                title=f"True and released trace, {name} noise",
            ),
        )
        for name, panel in panels.items()
    ]

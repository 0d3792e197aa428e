"""The privacy report in a notebook: a short page, a data frame of the estimates, and a figure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dovetail.core.display import Display, Grid, Mark, draw_figure, draw_marks, height_of
from dovetail.core.errors import MissingExtraError, StorageError
from dovetail.ledger.files import publish
from dovetail.report.html import render_html
from dovetail.report.number_format import Document, display_name, missing_reason, percent
from dovetail.report.rounds import series_table
from dovetail.report.sentences import banner, is_stream, summarize_metrics
from dovetail.report.tables import (
    Table,
    attack_rows,
    estimate_table,
    pair_table,
    question_documents,
    question_parts,
    shows_truth,
    summary,
)
from dovetail.report.verdict import judged, verdict

if TYPE_CHECKING:
    import polars as pl

QUESTION = "question"  # what estimates of several columns are by
MOST_PAIRS = 12  # of columns that are told of
_COLUMNS = ("value", "standard_error", "population_error")


def show_report(report: Any) -> Display:
    """A `PrivacyReport` in words: what it promises, what leaks, what was learned."""
    document = report.document()
    metrics, pairs = summarize_metrics(document), pair_table(document)
    headlines = "; ".join(f"{one.name.lower()} {one.headline}" for one in metrics if one.headline)
    table = series_table(document) if is_stream(document) else _learned(document)
    return Display(
        brief=f"PrivacyReport of a {document['mode']}: {document['title']}, {document['collection']['n']:,} people\n"
        f"protection of one person: {judged(document).sentence()}\n{headlines or 'nothing is promised'}",
        title=document["title"],
        lead=summary(document),
        facts=[
            *((line.name, line.words) for line in verdict(document)),
            *((one.name, f"{one.headline}: {one.meaning}".removeprefix(": ")) for one in metrics),
            *((who, f"mutual information {told}, p of independence {p}") for who, told, p in pairs.rows[:MOST_PAIRS]),
        ],
        grid=Grid(table.columns, table.rows),
        warnings=(mark,) if (mark := banner(document)) else (),
    )


def _learned(document: Document) -> Table:
    """The estimates for everybody, question by question."""
    parts = [part for part in question_parts(document) if part.table.rows]
    if not question_documents(document):
        return estimate_table(document)
    columns = parts[0].table.columns[1:] if parts else ()
    rows = tuple((part.name, *row) for part in parts for row in part.table.rows)
    return Table(("question", "answer", *columns), rows)


def report_frame(report: Any) -> pl.DataFrame:
    """One row for each estimate, of everybody first; `truth` in rehearsals only."""
    import polars as pl

    document = report.document()
    truth = shows_truth(document)
    rows = list(_rows(document, truth=truth))
    schema = {"by": pl.String, "group": pl.String, "label": pl.String}
    return pl.DataFrame(rows, schema_overrides=schema)


def pandas_of(frame: pl.DataFrame) -> Any:
    """A data frame of pandas."""
    try:
        return frame.to_pandas()
    except ImportError as error:
        raise MissingExtraError(f"pandas cannot be used here ({error}): pip install pandas pyarrow.") from None


# The folder of a run: report.json, report.html and, for a release, the sanitized table; all of them or none.


def save_report(report: Any, target: Path, *, force: bool) -> Any:
    """Write the report into the folder `target`; what is returned names its files."""
    import polars as pl

    sanitized, released = report.sanitized, isinstance(report.sanitized, pl.DataFrame)
    files = {
        "report_json": "report.json",
        "report_html": "report.html",
        "sanitized": "sanitized.parquet" if released else sanitized,
    }
    report = replace(report, files=files)
    with publish(target, force=force) as folder:
        document = report.document()
        try:
            if released:
                description = {"dovetail": json.dumps(report.sanitized_description)}
                sanitized.write_parquet(folder / "sanitized.parquet", metadata=description)
        except pl.exceptions.PolarsError as error:
            raise StorageError(f"{target}: could not be written ({error}); nothing was left.") from None
        text = json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False)
        (folder / "report.json").write_text(f"{text}\n", encoding="utf-8")
        (folder / "report.html").write_text(render_html(document), encoding="utf-8")
    return report


def draw_report(report: Any) -> Any:
    """A figure of the estimates for everybody and, where it is known, how often guesses at one person are right."""
    document = report.document()
    estimates, guesses = list(_estimates(document)), list(_guesses(document))
    panels = [panel for panel in (estimates, guesses) if panel]
    level = percent(document["estimates"]["level"])

    def draw(pyplot: Any) -> Any:
        figure, axes = pyplot.subplots(
            len(panels), 1, squeeze=False, layout="constrained",
            figsize=(6.4, sum(height_of(len(panel)) for panel in panels)),
            height_ratios=[height_of(len(panel)) for panel in panels],
        )  # fmt: skip
        for axis, panel in zip(axes[:, 0], panels, strict=True):
            learned = panel is estimates
            title = "What was learned" if learned else "How often a guess at one person is right"
            draw_marks(axis, panel, title=title, what=f"estimate with {level} interval" if learned else "right")
            if document["estimates"]["measure"] == "share" or not learned:
                axis.xaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
                axis.set_xlim(left=0.0)
        figure.suptitle(banner(document).partition(":")[0], x=0.01, ha="left", color="#a33", fontsize="medium")
        return figure

    return draw_figure(draw)


def _rows(document: Document, *, truth: bool) -> Iterator[dict[str, Any]]:
    for block in _blocks(document):
        for place, label in enumerate(block["labels"]):
            low, high = block["interval"][place]
            numbers = {name: float(block[name][place]) for name in _COLUMNS}
            known = {"truth": float(block["truth"][place])} if truth and "truth" in block else {}
            yield {
                "by": block.get("by"), "group": block.get("group"), "label": str(label), **numbers,
                "low": float(low), "high": float(high), "n": block["n"], **known,
            }  # fmt: skip


def _blocks(document: Document) -> list[Document]:
    """Estimates for everybody, then by group; of several questions the name of each stands as its group."""
    several = question_documents(document)
    if several:
        known = [one for one in several if missing_reason(one["estimates"]) is None]
        whole = [{**one["estimates"]["overall"], "by": QUESTION, "group": one["column"]} for one in known]
        grouped = [one for one in known if missing_reason(one["estimates"]["groups"]) is None]
        return whole + [
            {**block, "by": f"{one['column']} by {block['by']}"}
            for one in grouped
            for block in one["estimates"]["groups"]
        ]
    overall, groups = document["estimates"]["overall"], document["estimates"]["groups"]
    return [overall, *(groups if missing_reason(groups) is None else ())]


def _estimates(document: Document) -> Iterator[Mark]:
    for row in _rows(document, truth=shows_truth(document)):
        if row["by"] in (None, QUESTION):
            name = row["label"] if row["by"] is None else f"{row['group']}: {row['label']}"
            yield Mark(name, row["value"], row["low"], row["high"], row.get("truth"))


def _guesses(document: Document) -> Iterator[Mark]:
    leakage = document["leakage"]
    if missing_reason(leakage) is None and missing_reason(leakage["randomized_shuffled"]) is None:
        for name, key in (("blind guess", "prior"), ("best guess after the shuffle", "randomized_shuffled")):
            value = float(leakage[key])
            yield Mark(f"{name}, uniform prior", value, value, value)
    found = attack_rows(document)
    for name, each in found:
        yield Mark(f"attack: {display_name(name)}", *(float(end) for end in (each["success"], *each["interval"])))
    if found:
        chance = float(found[0][1]["chance"])
        yield Mark("a guess from public columns alone", chance, chance, chance)

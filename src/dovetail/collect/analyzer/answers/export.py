"""Estimates as a table for other programs: one row for each round, group and component, as CSV or Parquet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import polars as pl

from dovetail.collect.analyzer.answers.queries import CampaignAnswers, Document
from dovetail_protocol.terminal_text import printable

SCHEMA: dict[str, Any] = {
    "round": pl.Int64,
    "group": pl.String,  # null for everybody
    "label": pl.String,
    "n": pl.Int64,
    "value": pl.Float64,
    "standard_error": pl.Float64,
    "population_error": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "bias_bound": pl.Float64,
}


_FORMULA = re.compile(r"\s*[=+\-@\t\r\n＝＋－＠]")  # also in full width
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")


def table(answers: CampaignAnswers) -> pl.DataFrame:
    """All estimates of a campaign, by round; the interval has the level of the documents."""
    rows = [
        (each.t, shares.get("group"), label, shares["n"], *map(float, numbers), float(shares["bias_bound"]))
        for each in answers.rounds()
        for shares in answers.document(each)["groups"]
        for label, numbers in _components(shares)
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _components(shares: Document) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Label, value, both errors and both ends of each component of an estimate."""
    columns = (shares[name] for name in ("labels", "value", "standard_error", "population_error", "interval"))
    for label, value, error, population, (low, high) in zip(*columns, strict=True):
        yield label, (value, error, population, low, high)


def as_csv(frame: pl.DataFrame) -> bytes:
    """The table as CSV with a header line.

    A text that a spreadsheet would run as a formula gets an apostrophe in front, and characters that a terminal would
    obey are written out; numbers stay as they are, and so do texts that are plain numbers.
    """
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    return frame.with_columns(pl.col(texts).map_elements(_tame, return_dtype=pl.String)).write_csv().encode()


def _tame(text: str) -> str:
    shown = printable(text)
    runs = _FORMULA.match(text) and not _NUMBER.fullmatch(text)
    return f"'{shown}" if runs else shown


def as_parquet(frame: pl.DataFrame) -> bytes:
    """The table as Parquet."""
    target = BytesIO()
    frame.write_parquet(target)
    return target.getvalue()

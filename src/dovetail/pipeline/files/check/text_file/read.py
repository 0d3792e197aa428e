"""Reading a file however it is written, and saying how that is."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import polars as pl

from dovetail.core.errors import DataError
from dovetail.pipeline.config.sections import FileFormat
from dovetail.pipeline.files.check.problem import Problem, Status, many, quoted
from dovetail.pipeline.files.check.text_file.encoding import find_encoding
from dovetail.pipeline.files.check.text_file.layout import Layout, find_layout
from dovetail.pipeline.files.csv_text import SEPARATORS, read_rows, refuse_packed, rows_of_text, too_long, utf8
from dovetail.pipeline.files.table import is_text_file, read_table


def read_as_found(place: Path, encoding: str | None) -> tuple[pl.DataFrame, FileFormat | None, list[Problem]]:
    """The table, how its text is written (None where it is none), and what to know about that."""
    if not is_text_file(str(place)):
        return read_table(str(place)), None, []
    refuse_packed(place)
    found, certain = (encoding, True) if encoding is not None else find_encoding(place)
    try:
        layout = find_layout(place, found)
        frame, long = read_rows(place, layout.written)
        rows = list(_rows(place, layout.written, frame, len(long)))
    except csv.Error:
        most = f"{csv.field_size_limit():,}"
        raise DataError(
            f"{place}: a field has more than {most} letters; a quote is missing, or this is no table."
        ) from None
    problems = [*_encoding(layout, certain=certain), *_layout(layout), *rows]
    if long:
        what, _, remedy = too_long(long, frame.width, layout.written).partition("; ")
        problems.append(Problem(what, "file", remedy.rstrip("."), Status.STOPS))
    return frame, layout.written, problems


def _encoding(layout: Layout, *, certain: bool) -> Iterator[Problem]:
    encoding = layout.written.encoding
    if encoding == "utf-8":
        return
    words = [name.strip() for name in layout.header if not name.isascii()]
    seen = f", so that names read {quoted(words)}" if words else ""
    yield Problem(
        f"the text is not UTF-8; it is read as {encoding}{seen}", "file",
        "the configuration says so" if certain else "see that marked letters are right; else name another `encoding`",
        Status.SETTLED if certain else Status.CONFIRM,
    )  # fmt: skip


def _layout(layout: Layout) -> Iterator[Problem]:
    said = layout.written
    if said.separator != ",":
        what = f"fields are separated by {SEPARATORS.get(said.separator, repr(said.separator))}"
        yield Problem(what, "file", "the configuration says so", Status.SETTLED)
    if said.quote != '"':
        yield Problem(f"texts are quoted by {said.quote}", "file", "the configuration says so", Status.SETTLED)
    if said.skip_rows:
        yield Problem(
            f"above the header: {many(said.skip_rows, 'row')}", "file",
            "left out by `skip_rows`; see that the columns have their names", Status.CONFIRM,
        )  # fmt: skip
    if said.header_rows > 1:
        yield Problem(
            f"below the names: {many(said.header_rows - 1, 'row')} of questions, units or codes", "file",
            "left out by `header_rows`; set it to 1 if that is a person", Status.CONFIRM,
        )  # fmt: skip
    if said.header_rows == 0:
        yield Problem(
            "the first row looks like a person: there is no header", "file",
            "name the columns in `columns`; set `header_rows` = 1 if the first row does", Status.CONFIRM,
        )  # fmt: skip
    if said.footer_rows:
        yield Problem(
            f"at the end: {many(said.footer_rows, 'row')} of totals or notes", "file",
            "left out by `footer_rows`; set it to 0 if they are people", Status.CONFIRM,
        )  # fmt: skip
    if said.columns is not None and said.header_rows:
        yield from _names(layout.header, said.columns)


def _names(header: list[str], columns: list[str]) -> Iterator[Problem]:
    bare = [name.strip() for name in header]
    remedy = "the configuration names them anew, in `columns`"
    if len(columns) > len(header):
        yield Problem("rows have one field more than the header, in front", "file", remedy, Status.SETTLED)
    twice = [name for name, count in Counter(bare).items() if name and count > 1]
    if twice:
        yield Problem(f"the header repeats the names {quoted(twice)}", "file", remedy, Status.SETTLED)
    if blank := bare.count(""):
        yield Problem(
            f"{many(blank, 'column')} {'has' if blank == 1 else 'have'} no name", "file", remedy, Status.SETTLED
        )
    if any(" ".join(name.split()) != name for name in header):
        yield Problem("names in the header have blanks or line ends to spare", "file", remedy, Status.SETTLED)


def _rows(place: Path, written: FileFormat, frame: pl.DataFrame, long: int) -> Iterator[Problem]:
    """Rows with fewer fields than the header, whose last columns count as missing, and rows without any value."""
    rows = rows_of_text(utf8(place, written.encoding), written)
    list(islice(rows, written.skip_rows + written.header_rows))
    lengths = Counter(map(len, rows))
    blank = lengths.total() - lengths[0] - frame.height - written.footer_rows - long
    if blank > 0 and frame.width > 1:
        yield Problem(
            f"{many(blank, 'row')} without any value", "file", "left out; rows are counted without them",
            Status.SETTLED,
        )  # fmt: skip
    short = sum(count for length, count in lengths.items() if 0 < length < frame.width)
    if short:
        yield Problem(
            f"{many(short, 'row')} with fewer fields than the {frame.width} of the header; the rest is missing",
            "file", "see whether a separator or a line end got lost", Status.NOTE,
        )  # fmt: skip

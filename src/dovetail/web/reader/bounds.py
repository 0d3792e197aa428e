"""How large a table may be once it is unpacked: few bytes of Parquet, or of short lines, can be very many rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import polars.selectors as cs

from dovetail.collect.http.problems import Refusal
from dovetail.pipeline.files.csv_text import SEPARATORS
from dovetail.pipeline.files.table import is_text_file

MOST_ROWS = 10_000_000
MOST_COLUMNS = 2_000
MOST_CELLS = 100_000_000
MOST_TEXT = 1 << 30  # bytes of all texts of a Parquet file, which may say once what stands in every row
_PIECE = 1 << 20


def refuse_too_large(place: Path) -> None:
    """Refusal for a table that would fill the memory, before it is read; what is no table is left to the reader."""
    rows, columns = _of_text(place) if is_text_file(str(place)) else _of_parquet(place)
    for count, most, things in (
        (columns, MOST_COLUMNS, "columns"),
        (rows, MOST_ROWS, "rows"),
        (rows * columns, MOST_CELLS, "values"),
    ):
        if count > most:
            raise Refusal("too_large", f"a table of at most {most:,} {things} is taken here, got {count:,}.")


def _of_text(place: Path) -> tuple[int, int]:
    """At most so many rows, and the fields of the first line."""
    with place.open("rb") as file:
        first = file.readline(_PIECE)
    rows = max(sum(piece.count(end) for piece in _pieces(place)) for end in (b"\n", b"\r"))
    return rows, 1 + max(first.count(mark.encode()) for mark in SEPARATORS)


def _pieces(place: Path) -> Iterator[bytes]:
    with place.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def _of_parquet(place: Path) -> tuple[int, int]:
    """Rows and columns as the file declares them; its texts are counted where they are few enough to be."""
    try:
        table = pl.scan_parquet(place)
        rows, columns = table.select(pl.len()).collect().item(), len(table.collect_schema())
        if rows <= MOST_ROWS and columns <= MOST_COLUMNS:
            texts = table.select(cs.string().str.len_bytes().sum()).collect().row(0)
            if sum(texts) > MOST_TEXT:
                raise Refusal("too_large", f"a table of at most {MOST_TEXT >> 20:,} MB of text is taken here.")
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return 0, 0
    return rows, columns

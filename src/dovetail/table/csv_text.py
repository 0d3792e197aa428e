"""Reading a text file as a table of texts, however it is written; what cannot be read is named by its line."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from dovetail.core.display import counted
from dovetail.core.errors import DataError
from dovetail.core.extras import pl
from dovetail.table.data_section import FileFormat

_SHOWN = 3
_BOMS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8"}
_PACKED = {  # how other files begin
    b"PK\x03\x04": "an Excel workbook or a zip archive, not text; save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an Excel workbook, not text; save the sheet as CSV",
    b"\x1f\x8b": "compressed by gzip; unpack it first",
    b"\x28\xb5\x2f\xfd": "compressed by zstd; unpack it first",
    b"PAR1\x15": "a Parquet file; name it .parquet",
}
ADVICE = "`dovetail check` finds out how it is written"
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


LongRows = list[tuple[int, int]]  # row, counted from 1 below the header; its number of fields


class WrittenOtherwise(DataError):
    """A file that is written otherwise than was said.

    `plain` is the line where nothing says how a file is written, `options` the line where options of the verb do
    instead of [data].
    """

    def __init__(self, line: str, plain: str, options: str | None = None) -> None:
        super().__init__(line)
        self.plain, self.options = plain, options or plain


def read_csv(place: Path, written: FileFormat, *, header: bool = True) -> pl.DataFrame:
    """Every column as text; rows without any value are nobody's and left out.

    Raises
    ------
    DataError
        Another encoding or separator than was said, repeated names, rows with more fields than the header.
    """
    frame, long = read_rows(place, written, header=header)
    if long:
        raise DataError(f"{place}: {too_long(long, frame.width, written)}")
    return frame


def too_long(long: LongRows, width: int, written: FileFormat) -> str:
    """Say what is wrong with rows that have more fields than the header, and what to do."""
    shown = ", ".join(f"{number:,} with {fields}" for number, fields in long[:_SHOWN])
    return (
        f"{counted(len(long), 'row has', 'rows have')} more fields than the {width} of the header (rows {shown}); "
        "put quotes around texts "
        f"that hold the separator {_toml(written.separator)}."
    )


def read_rows(place: Path, written: FileFormat, *, header: bool = True) -> tuple[pl.DataFrame, LongRows]:
    """As `read_csv`; fields beyond the header's are cut off, and the rows that lose a value by it are listed."""
    text = utf8(place, written.encoding, written.fallback_encoding)
    names, start = _names(text, place, written, header=header)
    body = b",".join(b"c%d" % number for number in range(len(names))).replace(b",", written.separator.encode())
    content = body + b"\n" + text[start:]
    frame, long = _parse(content, names, place, written, first_line=text[:start].count(b"\n"))
    frame.columns = names
    if frame.width > 1:
        frame = frame.filter(~pl.all_horizontal(pl.all().is_null() | (pl.all() == "")))
    return frame.head(max(frame.height - written.footer_rows, 0)), long


def utf8(place: Path, encoding: str = "utf-8", fallback: str | None = None) -> bytes:
    """The file as UTF-8 without a mark at its start, with lines that end in a line feed.

    Lines that are not UTF-8 are read in the `fallback` encoding, each by itself.
    """
    refuse_packed(place)
    content = place.read_bytes()
    marked = next((name for mark, name in _BOMS.items() if content.startswith(mark)), None)
    if marked == "utf-16" and not encoding.lower().replace("_", "-").startswith("utf-16"):
        raise WrittenOtherwise(
            f'{place}: is UTF-16 text: set encoding = "utf-16" in [data], or save it as UTF-8.',
            f"{place}: is UTF-16 text; save it as UTF-8.",
            f"{place}: is UTF-16 text: give --text-encoding utf-16, or save it as UTF-8.",
        )
    try:
        if encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig"):
            content = content.removeprefix(b"\xef\xbb\xbf")
            content = content if fallback is None else _line_by_line(content, fallback)
            content.decode()
        else:
            content = content.decode(encoding.replace("\0", "?")).removeprefix("\ufeff").encode()
    except LookupError:
        raise DataError(
            f"`encoding` must be a text encoding such as utf-8, utf-16 or windows-1252, got {encoding!r}."
        ) from None
    except UnicodeError as error:
        at = f" (byte {error.start:,})" if isinstance(error, UnicodeDecodeError) else ""
        raise WrittenOtherwise(
            f"{place}: is not {_called(encoding)} text{at}; save it as UTF-8, or name its `encoding` in [data] "
            f"({ADVICE}).",
            f"{place}: is not {_called(encoding)} text{at}; save it as UTF-8.",
            f"{place}: is not {_called(encoding)} text{at}; save it as UTF-8, or give its --text-encoding "
            f"({ADVICE}).",
        ) from None
    return content if b"\r" not in content else content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def stray_lines(content: bytes) -> list[tuple[int, bytes]]:
    """The lines that are not UTF-8, counted from 1."""
    try:
        content.decode()
        return []
    except UnicodeDecodeError:
        lines = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return [(number, line) for number, line in enumerate(lines, start=1) if not _is_utf8(line)]


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _line_by_line(content: bytes, fallback: str) -> bytes:
    stray = {line for _, line in stray_lines(content)}
    if not stray:
        return content
    lines = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return b"\n".join(line.decode(fallback).encode() if line in stray else line for line in lines)


def refuse_packed(place: Path) -> None:
    """DataError for what is named as text and is none."""
    with place.open("rb") as file:
        start = file.read(8)
    packed = next((what for mark, what in _PACKED.items() if start.startswith(mark)), None)
    if packed is not None:
        raise DataError(f"{place}: is {packed}.")


def rows_of_text(text: bytes, written: FileFormat) -> Iterator[list[str]]:
    """The fields of each row; forgiving of stray quotes."""
    lines = io.TextIOWrapper(io.BytesIO(text), encoding="utf-8", newline="\n")
    return csv.reader(lines, delimiter=written.separator, quotechar=written.quote)


def _called(encoding: str) -> str:
    return "UTF-8" if encoding.lower() == "utf-8" else encoding


def _names(text: bytes, place: Path, written: FileFormat, *, header: bool) -> tuple[list[str], int]:
    """The names of the columns, and where the rows of people begin."""
    lines = io.TextIOWrapper(io.BytesIO(text), encoding="utf-8", newline="\n")
    reader = csv.reader(lines, delimiter=written.separator, quotechar=written.quote)
    above = written.header_rows if header else 0
    try:
        list(islice(reader, written.skip_rows))
        rows = list(islice((row for row in reader if row), max(above, 1)))
    except csv.Error as error:
        raise DataError(f"{place}: line {reader.line_num:,} cannot be read ({error}).") from None
    if not rows or len(rows) < above:
        raise DataError(f"{place}: the table has no rows.")
    last = reader.line_num if above else _line_before(text, written)
    names = _named(rows[0], place, written, header=bool(above))
    return names, _offset(text, last)


def _line_before(text: bytes, written: FileFormat) -> int:
    """Lines of the rows that are skipped, where no header follows."""
    reader: Any = rows_of_text(text, written)
    list(islice(reader, written.skip_rows))
    return int(reader.line_num)


def _offset(text: bytes, lines: int) -> int:
    place = 0
    for _ in range(lines):
        place = text.find(b"\n", place) + 1 or len(text)
    return place


def _named(row: list[str], place: Path, written: FileFormat, *, header: bool) -> list[str]:
    if written.columns is not None:
        if len(written.columns) < len(row):
            raise DataError(
                f"{place}: has {len(row)} columns, and `columns` in [data] names {len(written.columns)}; name each."
            )
        return list(written.columns)
    if not header:
        return [f"column_{number}" for number in range(1, len(row) + 1)]
    other = next((mark for mark in SEPARATORS if len(row) == 1 and mark in row[0]), None)
    if other is not None:
        raise WrittenOtherwise(
            f"{place}: is separated by {SEPARATORS[other]}: set separator = {_toml(other)} in [data], or save it "
            f"with commas ({ADVICE}).",
            f"{place}: is separated by {SEPARATORS[other]}; save it with commas.",
            f"{place}: is separated by {SEPARATORS[other]}: give --separator {_typed(other)}, or save it with "
            "commas.",
        )
    names = [name or f"column_{number}" for number, name in enumerate(row, start=1)]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        twice = (
            f"{place}: the header names column {repeated[0]!r} {names.count(repeated[0])} times; name the columns "
        )
        raise WrittenOtherwise(
            f"{twice}anew with `columns` in [data] (`dovetail check` writes it).", f"{twice}differently."
        )
    return names


def _toml(letter: str) -> str:
    return '"\\t"' if letter == "\t" else f'"{letter}"'


def _typed(letter: str) -> str:
    """As a shell takes it."""
    return "tab" if letter == "\t" else f'"{letter}"'


def _parse(
    content: bytes, names: list[str], place: Path, written: FileFormat, *, first_line: int
) -> tuple[pl.DataFrame, LongRows]:
    """The rows below the synthetic header; carefully where they are not all alike."""
    try:
        return pl.read_csv(content, separator=written.separator, quote_char=written.quote, infer_schema=False), []
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return _parse_carefully(content, len(names), place, written, first_line=first_line)


def _parse_carefully(
    content: bytes, width: int, place: Path, written: FileFormat, *, first_line: int
) -> tuple[pl.DataFrame, LongRows]:
    """As `_parse`, for rows of different lengths and with stray quotes."""
    reader: Any = rows_of_text(content, written)
    next(reader)
    kept, long = [], []
    try:
        for number, row in enumerate((row for row in reader if row), start=1):
            if len(row) > width and any(field.strip() for field in row[width:]):
                long.append((number, len(row)))
                continue
            kept.append([*row[:width], *[""] * (width - len(row))])
    except csv.Error:
        line = first_line + reader.line_num - 1
        raise DataError(
            f"{place}: line {line:,} has a field that does not end; a quote is missing there or above."
        ) from None
    if kept and _ends_inside_quotes(kept[-1], content, written):
        raise DataError(f"{place}: a quote in row {len(kept):,} is never closed; add or remove it there.")
    columns = list(zip(*kept, strict=True)) or [()] * width
    made = {f"c{number}": pl.Series(column, dtype=pl.String) for number, column in enumerate(columns)}
    return pl.DataFrame(made), long


def _ends_inside_quotes(last: list[str], content: bytes, written: FileFormat) -> bool:
    """True if the last field has line ends and no quote after it: it swallowed the rows below its own."""
    held = [field for field in last if field]
    end = content.rstrip(b"\n\t " + written.separator.encode())
    return bool(held) and "\n" in held[-1] and not end.endswith(written.quote.encode())

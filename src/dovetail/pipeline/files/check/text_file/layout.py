"""How a text file holds its table: what separates fields, and which rows are people."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from dovetail.core.errors import DataError
from dovetail.pipeline.config.sections import FileFormat
from dovetail.pipeline.files.csv_text import SEPARATORS, utf8

Row = list[str]
_SAMPLE = 1 << 18  # bytes
_ABOVE, _BELOW = 20, 3  # rows that may stand above the header, or belong to it
_ENDS = re.compile(
    r"(grand )?total|sum(me|ma)?\b|gesamt|insgesamt|ensemble|somme|source|quelle|note|stand\b|©|\(c\)|\*|average|"
    r"mean\b|mittelwert|moyenne|generated|exported|erstellt",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\s*[-+\u2212]?\s*[^\w\s]?\s*\d[\d.,'’ \u00a0\u202f]*([eE][-+]?\d+)?\s*[^\W\d]{0,4}\s*[%\u20ac$]?\s*"
)


@dataclass(frozen=True)
class Layout:
    """How the file is written, and what its header says."""

    written: FileFormat
    header: Row
    below: list[Row]  # further rows of the header


def find_layout(place: Path, encoding: str) -> Layout:
    """The layout that makes most rows equally long and gives the columns names.

    Raises
    ------
    DataError
        When the file has no text.
    """
    text = utf8(place, encoding)
    start, end = _cut(text[:_SAMPLE].decode("utf-8", "ignore"), len(text) > _SAMPLE), text[-_SAMPLE // 4 :]
    if not start.strip():
        raise DataError(f"{place}: the table has no rows.")
    said = re.match(r"sep=(.)\n", start)
    quote = "'" if _single_quotes(start) else '"'
    separator = said.group(1) if said else max(SEPARATORS, key=lambda mark: _consistency(_rows(start, mark, quote)))
    rows = _rows(start, separator, quote)
    typical = median(_filled(row) for row in rows if row) if rows else 1
    above = next((i for i, row in enumerate(rows[:_ABOVE]) if _filled(row) >= max(1 + (typical > 1), typical / 2)), 0)
    above = max(above, 1) if said else above
    header, body = rows[above], [row for row in rows[above + 1 :] if row]
    deep = 0 if _is_data(header, body) else 1 + _questions(header, body)
    tail = _rows(end.decode("utf-8", "ignore").partition("\n")[2], separator, quote) if len(text) > _SAMPLE else body
    names = _anew(header, body, found=deep > 0)
    written = FileFormat(
        separator=separator, quote=quote, encoding=encoding, skip_rows=above, header_rows=deep,
        footer_rows=_footer(tail, typical), columns=names,
    )  # fmt: skip
    return Layout(written, header, body[: max(deep - 1, 0)])


def is_number(text: str) -> bool:
    """Whether a text looks like a number in some spelling: 12, -3.5, 1.234,5, 45 %, 12 EUR."""
    return _NUMBER.fullmatch(text) is not None


def _cut(text: str, partial: bool) -> str:
    return text.rpartition("\n")[0] + "\n" if partial else text


def _rows(text: str, separator: str, quote: str) -> list[Row]:
    try:
        return list(csv.reader(io.StringIO(text), delimiter=separator, quotechar=quote))
    except csv.Error:  # a field that does not end: reading the table will say where
        return list(csv.reader(io.StringIO(text), delimiter=separator, quoting=csv.QUOTE_NONE))


def _filled(row: Row) -> int:
    return sum(bool(field.strip()) for field in row)


def _single_quotes(text: str) -> bool:
    return len(re.findall(r"(?:^|[,;\t|])'[^'\n]*'(?=[,;\t|\n])", text)) > text.count('"')


def _consistency(rows: list[Row]) -> float:
    """The share of rows that are as long as most, times the share of the first such row's fields that are names."""
    lengths = Counter(len(row) for row in rows if row)
    usual = max(lengths, key=lambda length: (lengths[length], length), default=1)
    if usual < 2:
        return 0.0
    first = next(row for row in rows if len(row) == usual)
    names = sum(bool(re.search(r"[^\W\d_]", field)) and not _other_marks(field) for field in first) / usual
    return lengths[usual] / lengths.total() * (0.5 + names) + 1e-6 * usual


def _other_marks(field: str) -> bool:
    """Whether a name holds what separates fields in other files, and nothing that explains it."""
    return re.search(r"[;\t|]|\w,\w", field) is not None


def _numeric(body: list[Row]) -> list[int]:
    """Columns whose fields nearly all look like numbers, seen below what may still belong to the header."""
    sample, found = body[_BELOW:500], []
    for place in range(max((len(row) for row in sample), default=0)):
        fields = [row[place] for row in sample if place < len(row) and row[place].strip()]
        if len(fields) >= 3 and sum(map(is_number, fields)) >= 0.9 * len(fields):
            found.append(place)
    return found


def _at(row: Row, place: int) -> str:
    return row[place].strip() if place < len(row) else ""


def _is_data(header: Row, body: list[Row]) -> bool:
    """Whether the first row is a person: numbers where numbers are, and texts that come again."""
    numeric = _numeric(body)
    if not numeric or not all(is_number(_at(header, place)) for place in numeric):
        return False
    texts = [place for place in range(len(header)) if place not in numeric and _at(header, place)]
    if not texts:  # names such as 2019, 2020, .. are no numbers of a person
        return not all(re.fullmatch(r"(19|20)\d\d", _at(header, place)) for place in numeric)
    again = sum(any(_at(row, place) == _at(header, place) for row in body) for place in texts)
    return 2 * again >= len(texts)


def _questions(header: Row, body: list[Row]) -> int:
    """Rows below the names that hold questions, codes or units: texts above numbers, that never come again."""
    marked = [i for i, row in enumerate(body[:_BELOW]) if any("ImportId" in field for field in row)]
    if marked:
        return marked[-1] + 1
    numeric, count = _numeric(body), 0
    for i, row in enumerate(body[:_BELOW]):
        rest = body[i + 1 : 500]
        apart = bool(numeric) and not any(is_number(_at(row, place)) for place in numeric)
        texts = [place for place, field in enumerate(row) if field.strip()]
        asks = 2 * sum("?" in row[place] for place in texts) >= max(len(texts), 1)
        again = any(_at(other, place) == _at(row, place) for other in rest for place in texts)
        if not texts or again or not (apart or asks) or len(rest) < 2:
            break
        count = i + 1
    return count


def _footer(tail: list[Row], typical: float) -> int:
    """Rows at the end that are totals or notes; blank ones count for nothing."""
    count = 0
    for row in reversed([row for row in tail if _filled(row)]):
        first = next(field.strip() for field in row if field.strip())
        if not (_filled(row) < typical and _ENDS.match(first)) or count == 20:
            break
        count += 1
    return count


def _anew(header: Row, body: list[Row], *, found: bool) -> Row | None:
    """Names for the columns where the header lacks or repeats some; None where it does for itself."""
    if not found:
        return [f"column_{number}" for number in range(1, len(header) + 1)]
    longer = sum(len(row) == len(header) + 1 and bool(row[-1].strip()) for row in body)
    if body and longer > 0.9 * len(body):  # rows have a number in front that the header does not name
        return ["row", *header]
    used, names = Counter[str](), []
    for number, name in enumerate(header, start=1):
        plain = " ".join(name.split()) or f"column_{number}"
        used[plain] += 1
        names.append(plain if used[plain] == 1 else f"{plain}_{used[plain]}")
    as_read = [name or f"column_{number}" for number, name in enumerate(header, start=1)]
    return None if names == as_read else names

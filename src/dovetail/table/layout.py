"""Reading a file however it is written, and saying how that is."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from dovetail.core.display import counted
from dovetail.core.errors import DataError, MissingExtraError
from dovetail.core.extras import pl, require
from dovetail.table.columns import Problem, Status, choose, quoted
from dovetail.table.csv_text import SEPARATORS, read_rows, refuse_packed, rows_of_text, stray_lines, too_long, utf8
from dovetail.table.data_section import FileFormat, parse_section
from dovetail.table.reader import is_text_file, read_table

# How a text file holds its table: what separates fields, and which rows are people.


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
    """Layout of a text file, and its header."""

    written: FileFormat
    header: Row
    below: list[Row]  # further rows of the header


def find_layout(place: Path, encoding: str, fallback: str | None = None) -> Layout:
    """The layout that makes most rows equally long and gives the columns names.

    Raises
    ------
    DataError
        When the file has no text.
    """
    text = utf8(place, encoding, fallback)
    start, end = _cut(text[:_SAMPLE].decode("utf-8", "ignore"), len(text) > _SAMPLE), text[-_SAMPLE // 4 :]
    if not start.strip():
        raise DataError(f"{place}: the table has no rows.")
    said = re.match(r"sep=(.)\n", start)
    quote = "'" if _single_quotes(start) else '"'
    separator = (
        said.group(1) if said else max(SEPARATORS, key=lambda mark: _consistency(_layout_rows(start, mark, quote)))
    )
    rows = _layout_rows(start, separator, quote)
    typical = median(_filled(row) for row in rows if row) if rows else 1
    above = next((i for i, row in enumerate(rows[:_ABOVE]) if _filled(row) >= max(1 + (typical > 1), typical / 2)), 0)
    above = max(above, 1) if said else above
    header, body = rows[above], [row for row in rows[above + 1 :] if row]
    deep = 0 if _is_data(header, body) else 1 + _questions(body)
    tail = (
        _layout_rows(end.decode("utf-8", "ignore").partition("\n")[2], separator, quote)
        if len(text) > _SAMPLE
        else body
    )
    names = _anew(header, body, found=deep > 0)
    written = FileFormat(
        separator=separator, quote=quote, encoding=encoding, fallback_encoding=fallback, skip_rows=above,
        header_rows=deep, footer_rows=_footer(tail, typical), columns=names,
    )  # fmt: skip
    return Layout(written, header, body[: max(deep - 1, 0)])


def is_number(text: str) -> bool:
    """True if a text looks like a number in some spelling: 12, -3.5, 1.234,5, 45 %, 12 EUR."""
    return _NUMBER.fullmatch(text) is not None


def _cut(text: str, partial: bool) -> str:
    return text.rpartition("\n")[0] + "\n" if partial else text


def _layout_rows(text: str, separator: str, quote: str) -> list[Row]:
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
    """True if a name holds what separates fields in other files, and nothing that explains it."""
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
    """True if the first row is a person: numbers where numbers are, and texts that come again."""
    numeric = _numeric(body)
    if not numeric or not all(is_number(_at(header, place)) for place in numeric):
        return False
    texts = [place for place in range(len(header)) if place not in numeric and _at(header, place)]
    if not texts:  # names such as 2019, 2020, .. are no numbers of a person
        return not all(re.fullmatch(r"(19|20)\d\d", _at(header, place)) for place in numeric)
    again = sum(any(_at(row, place) == _at(header, place) for row in body) for place in texts)
    return 2 * again >= len(texts)


def _questions(body: list[Row]) -> int:
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


# Which encoding a text file has, and how sure that is.


_WESTERN = ("windows-1252", "windows-1250", "mac_roman", "cp850")  # the likelier ones first
_BY_CHANCE = 1 / 3  # of lines in another encoding fewer than this are UTF-8 by chance, even of Chinese
_FEW = 0.45  # in alphabets of Latin letters fewer of the letters than this have marks


def find_encoding(place: Path) -> tuple[str, bool]:
    """The encoding as [data] names it, and whether that is certain.

    Marks at the start and well-formed UTF-8 are certain. Where some lines are UTF-8 and others are not, see
    `find_fallback`. Otherwise the code page of Windows, Mac or DOS is taken in
    which marked letters stand where letters stand; other alphabets are guessed by charset-normalizer.

    Raises
    ------
    DataError
        When it is none that is known; the hint names the extra that knows more.
    """
    content = place.read_bytes()
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16", True
    if content[:4096].count(b"\0") > len(content[:4096]) // 4:
        return ("utf-16-le" if content[1:2] == b"\0" else "utf-16-be"), True
    try:
        content.decode("utf-8")
        return "utf-8", True
    except UnicodeDecodeError as error:
        first = error.start
    sample = _marked_lines(content[max(0, first - 200) :])
    if _is_mixed(content):
        return "utf-8", False
    if _share_of_marks(sample) < _FEW:
        western = _western(content, sample)
        if western is not None:
            return western, False
    return _guess(sample, place), False


def _is_mixed(content: bytes) -> bool:
    """True if so many lines with marked letters are UTF-8 that this is no chance, though others are not."""
    stray = stray_lines(content)
    marked = sum(not line.isascii() for line in content.splitlines())
    return bool(stray) and (content.startswith(b"\xef\xbb\xbf") or marked - len(stray) >= _BY_CHANCE * len(stray))


def find_fallback(place: Path) -> tuple[str, list[tuple[int, str]]] | None:
    """How the lines of a UTF-8 file that are not UTF-8 are read, and these lines; None where there are none."""
    stray = stray_lines(place.read_bytes())
    if not stray:
        return None
    content = b"\n".join(line for _, line in stray)
    found = _western(content, content[:_SAMPLE])
    assert found is not None  # code pages of DOS and Mac read any bytes
    return found, [(number, line.decode(found)) for number, line in stray]


def _western(content: bytes, sample: bytes) -> str | None:
    readable = [name for name in _WESTERN if _decodes(content, name)]
    return max(readable, key=lambda name: plausibility(sample.decode(name, "replace"))) if readable else None


def plausibility(text: str) -> float:
    """The share of letters beyond ASCII that are letters as the words around them have them: lower between lower."""
    beyond = re.findall(r"(?<!\w)[^\W\d_]*[^\x00-\x7f][^\W\d_]*", text)
    odd = len(re.findall(r"[^\W\d_][^\w\s.,;:!?'’\-()\"/%€£°\x00-\x7f]|[a-zà-ÿ][A-ZÀ-ÖØ-ÞŠŒŽŸ]", text))
    stray = len(re.findall(r"[ªº¹²³¼½¾µ¿¡¤¦§¨¬¯´¸¢¥®±÷×ƒˆ˜†‡‰]", text))
    return -(odd + stray) / max(len(beyond), 1)


def _marked_lines(content: bytes) -> bytes:
    lines = [line for line in content[: _SAMPLE * 8].splitlines() if not line.isascii()]
    return b"\n".join(lines)[:_SAMPLE]


def _share_of_marks(sample: bytes) -> float:
    beyond, letters = sum(byte > 127 for byte in sample), len(re.findall(rb"[A-Za-z]", sample))
    return beyond / max(beyond + letters, 1)


def _decodes(content: bytes, encoding: str) -> bool:
    try:
        content.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _guess(sample: bytes, place: Path) -> str:
    advice = f"{place}: is neither UTF-8 nor of a Western code page; save it as UTF-8, or name its `encoding`"
    try:
        found = require("charset_normalizer", extra="encodings").from_bytes(sample).best()
    except MissingExtraError as error:
        raise DataError(f"{advice} with --text-encoding. {error}") from None
    if found is None:
        raise DataError(f"{advice} with --text-encoding.")
    return str(found.encoding)


def read_as_found(
    place: Path, encoding: str | None, decided: Mapping[str, Any] | None = None
) -> tuple[pl.DataFrame, FileFormat | None, list[Problem]]:
    """The table, how its text is written (None where it is none), and what to know about that.

    Of the keys of [data] in `decided`, those about the file go before what is found.
    """
    said = {key: value for key, value in (decided or {}).items() if key in FileFormat.model_fields}
    encoding = said.get("encoding", encoding)
    if not is_text_file(str(place)):
        return read_table(str(place)), None, []
    refuse_packed(place)
    found, certain = (encoding, True) if encoding is not None else find_encoding(place)
    strange = find_fallback(place) if found == "utf-8" and encoding is None and not certain else None
    if strange is not None and "fallback_encoding" in said:
        strange = None  # a person has said how they read
    try:
        layout = find_layout(place, found, said.get("fallback_encoding", None if strange is None else strange[0]))
        written = parse_section(FileFormat, layout.written.model_dump() | said, name="decisions")
        layout = replace(layout, written=written)
        frame, long = read_rows(place, layout.written)
        rows = list(_rows(place, layout.written, frame, len(long)))
    except csv.Error:
        most = f"{csv.field_size_limit():,}"
        raise DataError(
            f"{place}: a field has more than {most} letters; a quote is missing, or this is no table."
        ) from None
    stray = [] if strange is None else [_stray(*strange)]
    problems = [*stray, *_encoding(layout, certain=certain), *_layout(layout), *rows]
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


def _stray(fallback: str, lines: list[tuple[int, str]]) -> Problem:
    numbers = ", ".join(f"{number:,}" for number, _ in lines[:3]) + (", .." if len(lines) > 3 else "")
    words = Counter(word for _, line in lines for word in re.findall(r"\w*[^\W\x00-\x7f]\w*", line))
    return Problem(
        f"{counted(len(lines), 'line of a UTF-8 file is', 'lines of a UTF-8 file are')} not UTF-8; read as "
        f"{fallback}, with words such as {quoted([word for word, _ in words.most_common()])}",
        f"file, line{'s' * (len(lines) > 1)} {numbers}",
        "see that these words are right; else name another `fallback_encoding`", Status.CONFIRM,
        tuple(
            choose(f"read these lines as {name}", fallback_encoding=name) for name in _WESTERN if name != fallback
        ),
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
            f"above the header: {counted(said.skip_rows, 'row')}", "file",
            "left out by `skip_rows`; see that the columns have their names", Status.CONFIRM,
        )  # fmt: skip
    if said.header_rows > 1:
        yield Problem(
            f"below the names: {counted(said.header_rows - 1, 'row')} of questions, units or codes", "file",
            "left out by `header_rows`; see that no person is among them", Status.CONFIRM,
            (choose("they are people", header_rows=1),),
        )  # fmt: skip
    if said.header_rows == 0:
        yield Problem(
            "the first row looks like a person: there is no header", "file",
            "name the columns in `columns`; set `header_rows` = 1 if the first row does", Status.CONFIRM,
        )  # fmt: skip
    if said.footer_rows:
        yield Problem(
            f"at the end: {counted(said.footer_rows, 'row')} of totals or notes", "file",
            "left out by `footer_rows`; see that no person is among them", Status.CONFIRM,
            (choose("they are people", footer_rows=0),),
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
        yield Problem(f"{counted(blank, 'column has', 'columns have')} no name", "file", remedy, Status.SETTLED)
    if any(" ".join(name.split()) != name for name in header):
        yield Problem("names in the header have blanks or line ends to spare", "file", remedy, Status.SETTLED)


def _rows(place: Path, written: FileFormat, frame: pl.DataFrame, long: int) -> Iterator[Problem]:
    """Rows with fewer fields than the header, whose last columns count as missing, and rows without any value."""
    rows = rows_of_text(utf8(place, written.encoding, written.fallback_encoding), written)
    list(islice(rows, written.skip_rows + written.header_rows))
    lengths = Counter(map(len, rows))
    blank = lengths.total() - lengths[0] - frame.height - written.footer_rows - long
    if blank > 0 and frame.width > 1:
        yield Problem(
            f"{counted(blank, 'row')} without any value", "file", "left out; rows are counted without them",
            Status.SETTLED,
        )  # fmt: skip
    short = sum(count for length, count in lengths.items() if 0 < length < frame.width)
    if short:
        yield Problem(
            f"{counted(short, 'row')} with fewer fields than the {frame.width} of the header; the rest is missing",
            "file", "see whether a separator or a line end got lost", Status.NOTE,
        )  # fmt: skip

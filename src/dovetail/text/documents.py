"""Documents as lists of sentences; public and private ones are different types, so that no fit sees a private one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from dovetail.core.checks import nearest, whole
from dovetail.core.display import counted, mute
from dovetail.core.errors import DataError, ParameterError
from dovetail.core.extras import require
from dovetail.table.csv_text import read_rows, too_long, utf8
from dovetail.table.data_section import FileFormat
from dovetail.table.layout import find_encoding, find_fallback, find_layout

MOST_CHARACTERS = 2000  # of one sentence; what is beyond is cut, whatever the sentence
MOST_SENTENCES = 10_000


def split_sentences(text: str, *, language: str = "en") -> tuple[str, ...]:
    """Sentences of a text, by the segmenter of the Wikimedia Foundation (sentencex), each at most 2,000 characters.

    Parameters
    ----------
    text : str
    language : str
        ISO code, public.

    Raises
    ------
    MissingExtraError
        Without the extra `text`.
    DataError
        Where the text holds characters that no text has (zero bytes).

    Notes
    -----
    Sentence privacy speaks of lists of sentences. A replacement that moves boundaries changes several of them and
    costs epsilon for each; anybody who has sentences already passes them as a list.
    """
    if "\0" in text:
        raise DataError("the text holds zero bytes; it is no text: name its file's right format.")
    found = require("sentencex", extra="text").segment(language, writable(text))
    return clean(found)


def clean(sentences: Iterable[str]) -> tuple[str, ...]:
    """Blanks as one, no empty sentences, none longer than 2,000 characters, no halves of characters."""
    tidy = (" ".join(writable(one).split())[:MOST_CHARACTERS] for one in sentences)
    return tuple(one for one in tidy if one)


def writable(text: str) -> str:
    """The text with a question mark for each half of a surrogate pair, which no file can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


@dataclass(frozen=True)
class Document:
    """A document of the person who wrote it.

    Parameters
    ----------
    name : str
        Public: what the release calls it.
    sentences : tuple of str
        Private unless the document is public.
    label : str, optional
        A class, where it is known; of private documents it serves evaluation only.
    """

    name: str
    sentences: tuple[str, ...] = field(repr=False)
    label: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or self.name != writable(self.name):
            raise ParameterError(f"`name` must be a text without halves of characters, got {self.name!r}.")
        if not isinstance(self.sentences, tuple) or not all(isinstance(one, str) for one in self.sentences):
            raise ParameterError("`sentences` must be a tuple of texts.")
        if len(self.sentences) > MOST_SENTENCES:
            raise DataError(
                f"document {self.name!r}: must have at most {MOST_SENTENCES:,} sentences, got "
                f"{len(self.sentences):,}; split it into several documents, each with a guarantee of its own."
            )

    def first(self, most: int | None) -> Document:
        """The document cut to its first `most` sentences, a public number; None for all of them."""
        if most is None:
            return self
        return Document(self.name, self.sentences[: whole("most", most, least=1)], self.label)


@mute
@dataclass(frozen=True)
class PublicDocuments:
    """Documents that anybody may read: the only ones that encoders, candidates and classifiers are fitted to.

    Parameters
    ----------
    documents : sequence of Document
    """

    documents: Sequence[Document]

    @property
    def labels(self) -> list[str]:
        """The class of each; DataError where one has none."""
        found = [one.label for one in self.documents]
        if any(one is None for one in found):
            raise DataError("every public document must have a label; name their column.")
        return [str(one) for one in found]

    @property
    def sentences(self) -> list[str]:
        """All sentences of all documents."""
        return [sentence for one in self.documents for sentence in one.sentences]


def refuse_private(documents: object) -> PublicDocuments:
    """`documents` where they are declared public; anything else is refused, because a fit would tell of it."""
    if not isinstance(documents, PublicDocuments):
        raise ParameterError(
            "`documents` must be PublicDocuments: what is fitted is public and would carry private sentences out; "
            f"got {type(documents).__name__}."
        )
    return documents


# Documents from files: JSON lines, CSV however it is written, or Parquet.


SUFFIXES = (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".pq")
_USUAL = ("text", "texts", "document", "content", "body", "message", "abstract", "review", "comment", "sentences")


@mute
@dataclass(frozen=True)
class DocumentTable:
    """Documents as a file holds them.

    Parameters
    ----------
    documents : tuple of Document
    notes : tuple of str
        How the file was read where that is not certain, and which rows were left out, and how many.
    """

    documents: tuple[Document, ...]
    notes: tuple[str, ...] = ()


def read_documents(
    place: str | Path,
    *,
    text: str | None = None,
    name: str | None = None,
    label: str | None = None,
    language: str = "en",
    most_sentences: int | None = None,
    drop_bad: bool = False,
) -> DocumentTable:
    """One document for each row.

    Parameters
    ----------
    place : path
        .jsonl, .csv (whatever separates its fields, in whatever encoding) or .parquet.
    text : str, optional
        Column of texts, which are split into sentences, or of lists of sentences, which are taken as they are; by
        default the one with a usual name, such as text or body.
    name, label : str, optional
        Columns of public names (row numbers if absent) and of classes.
    language : str
        ISO code for the splitter.
    most_sentences : int, optional
        A public limit; what is beyond is cut.
    drop_bad : bool
        Leave out rows that hold no document, and say how many.

    Raises
    ------
    DataError
        With all faults of rows in one line; for missing files and columns.
    """
    place = Path(place)
    frame, faults, notes = _read_frame(place)
    if not frame.height:
        raise DataError(f"{place}: {'; '.join(faults) or 'has no rows'}.")
    lower = {column.strip().lower(): column for column in reversed(frame.columns)}
    text = text or next((lower[one] for one in _USUAL if one in lower), _USUAL[0])
    for column, option in ((text, "text"), (name, "name"), (label, "label")):
        if column is not None and column not in frame.columns:
            hint = nearest(column, frame.columns)
            raise DataError(f"{place}: has no column {column!r}{hint}; name it with --{option}.")
    names = frame[name].to_list() if name else list(range(1, frame.height + 1))
    labels = frame[label].to_list() if label else [None] * frame.height
    found, wrong = list[Document](), dict[str, list[int]]()
    for row, (own, content, kind) in enumerate(zip(names, frame[text].to_list(), labels, strict=True), 1):
        try:
            if own is None:
                raise DataError(f"no name in column {name!r}")
            sentences = _sentences(content, language)[:most_sentences]
            if len(sentences) > MOST_SENTENCES:
                raise DataError(f"more than {MOST_SENTENCES:,} sentences")
            found.append(Document(writable(str(own)), sentences, None if kind is None else writable(str(kind))))
        except DataError as error:
            wrong.setdefault(str(error), []).append(row)
    faults += [f"{counted(len(rows), 'row')}: {what} ({_first(rows)})" for what, rows in wrong.items()]
    if faults and not drop_bad:
        raise DataError(f"{place}: {'; '.join(faults)}; --drop-bad leaves them out.")
    if not found:
        raise DataError(f"{place}: holds no document: {'; '.join(faults)}.")
    return DocumentTable(tuple(found), (*notes, *(f"left out: {one}" for one in faults)))


def _first(places: Sequence[int], thing: str = "row") -> str:
    return f"first at {thing}{'s' * (len(places) > 1)} {', '.join(f'{one:,}' for one in places[:3])}"


def _sentences(found: object, language: str) -> tuple[str, ...]:
    """Sentences of a row; a DataError says what such rows have in common."""
    if found is None:
        return ()
    if isinstance(found, str):
        if "\0" in found:
            raise DataError("zero bytes, which no text has")
        return split_sentences(found, language=language)
    if isinstance(found, list) and all(isinstance(one, str) for one in found):
        return clean(found)
    raise DataError("no text and no list of sentences, in the column that --text names")


def _read_frame(place: Path) -> tuple[pl.DataFrame, list[str], list[str]]:
    """The table of a file, whose CSV columns stay texts; rows that are none; and how its text was read."""
    suffix = place.suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(f"{place}: must be one of {', '.join(SUFFIXES)}, got {place.suffix or 'no suffix'!r}.")
    if not place.is_file():
        raise DataError(f"{place}: no such file.")
    try:
        if suffix in (".parquet", ".pq"):
            return pl.read_parquet(place), [], []
        encoding, certain = find_encoding(place)
        stray = find_fallback(place) if encoding == "utf-8" else None
        fallback = None if stray is None else stray[0]
        doubt = f"{place}: is no UTF-8 and was read as {encoding}; see that marked letters are right"
        if stray is not None:
            numbers = [number for number, _ in stray[1]]
            doubt = (
                f"{place}: {counted(len(numbers), 'line')} not UTF-8, read as {fallback} ({_first(numbers, 'line')})"
            )
        notes = [] if certain else [doubt]
        if "json" in suffix:
            return *_read_lines(utf8(place, encoding, fallback).decode()), notes
        # documents look like notes and totals: rows above, below and beside a header are taken as they stand
        found = find_layout(place, encoding, fallback).written
        written = FileFormat(
            separator=found.separator, quote=found.quote, encoding=encoding, fallback_encoding=fallback
        )
        frame, long = read_rows(place, written)
        return frame, [too_long(long, frame.width, written).rstrip(".")] if long else [], notes
    except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException):  # whose words may quote a document
        kind = place.suffix.lstrip(".")
        raise DataError(f"{place}: cannot be read as {kind}; look at its quotes, separators and encoding.") from None


def _read_lines(text: str) -> tuple[pl.DataFrame, list[str]]:
    """JSON lines with every value as it stands (table readers make texts of lists); and lines that are none."""
    rows, wrong = [], []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                found = json.loads(line)
            except ValueError:
                found = None
            if isinstance(found, dict):
                rows.append(found)
            else:
                wrong.append(number)
    names = dict.fromkeys(name for row in rows for name in row)
    frame = pl.DataFrame({name: pl.Series([row.get(name) for row in rows], dtype=pl.Object) for name in names})
    return frame, [f"{counted(len(wrong), 'line')}: no JSON object ({_first(wrong, 'line')})"] if wrong else []

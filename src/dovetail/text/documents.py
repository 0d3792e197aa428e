"""Documents as lists of sentences; public and private ones are different types, so that no fit sees a private one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from dovetail.core.checks import nearest, whole
from dovetail.core.display import mute
from dovetail.core.errors import DataError, ParameterError
from dovetail.core.extras import require

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
    costs epsilon for each; whoever has sentences already passes them as a list.
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
    """A document of whoever wrote it.

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


# Documents from files: JSON lines, CSV or Parquet, with a column of texts or of lists of sentences.


SUFFIXES = (".jsonl", ".ndjson", ".csv", ".parquet", ".pq")


def read_documents(
    place: str | Path,
    *,
    text: str = "text",
    name: str | None = None,
    label: str | None = None,
    language: str = "en",
    most_sentences: int | None = None,
) -> list[Document]:
    """One document for each row.

    Parameters
    ----------
    place : path
        .jsonl, .csv or .parquet.
    text : str
        Column of texts, which are split into sentences, or of lists of sentences, which are taken as they are.
    name, label : str, optional
        Columns of public names (row numbers if absent) and of classes.
    language : str
        ISO code for the splitter.
    most_sentences : int, optional
        A public limit; what is beyond is cut.

    Raises
    ------
    DataError
        With the row, for what is no text; for missing files and columns.
    """
    frame = read_frame(Path(place))
    for column in (text, name, label):
        if column is not None and column not in frame.columns:
            raise DataError(f"{place}: has no column {column!r}{nearest(column, frame.columns)}; name it.")
    if name is not None and frame[name].null_count():
        raise DataError(f"{place}: column {name!r} has no name in row {frame[name].is_null().arg_true()[0] + 1}.")
    names = [writable(str(one)) for one in (frame[name] if name else range(1, frame.height + 1))]
    labels = [
        None if one is None else writable(str(one)) for one in (frame[label] if label else [None] * frame.height)
    ]
    if not frame.height:
        raise DataError(f"{place}: has no rows.")
    found = enumerate(frame[text].to_list(), 1)
    sentences = [_sentences(one, place, row, language)[:most_sentences] for row, one in found]
    return [Document(*parts) for parts in zip(names, sentences, labels, strict=True)]


def _sentences(found: object, place: str | Path, row: int, language: str) -> tuple[str, ...]:
    if found is None:
        return ()
    try:
        if isinstance(found, str):
            return split_sentences(found, language=language)
        if isinstance(found, list) and all(isinstance(one, str) for one in found):
            return clean(found)
    except DataError as error:
        raise DataError(f"{place}: row {row}: {error}") from None
    raise DataError(f"{place}: row {row}: must be a text or a list of sentences; name their column with --text.")


def read_frame(place: Path) -> pl.DataFrame:
    """The table of a file; CSV columns stay texts."""
    if place.suffix.lower() not in SUFFIXES:
        raise DataError(f"{place}: must be one of {', '.join(SUFFIXES)}, got {place.suffix or 'no suffix'!r}.")
    if not place.is_file():
        raise DataError(f"{place}: no such file.")
    try:
        if place.suffix.lower() == ".csv":
            return pl.read_csv(place, infer_schema=False)
        return _read_lines(place) if "json" in place.suffix.lower() else pl.read_parquet(place)
    except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException):  # whose words may quote a document
        kind = place.suffix.lstrip(".")
        raise DataError(f"{place}: cannot be read as {kind}; look at its quotes, separators and encoding.") from None


def _read_lines(place: Path) -> pl.DataFrame:
    """JSON lines with every value as it stands: a table reader would make texts of lists."""
    rows = []
    for number, line in enumerate(place.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        if line.strip():
            try:
                found = json.loads(line)
            except ValueError:
                found = None
            if not isinstance(found, dict):
                raise DataError(f"{place}: line {number} is no JSON object.")
            rows.append(found)
    names = dict.fromkeys(name for row in rows for name in row)
    return pl.DataFrame({name: pl.Series([row.get(name) for row in rows], dtype=pl.Object) for name in names})

"""Documents from files: JSON lines, CSV or Parquet, with a column of texts or of lists of sentences."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from dovetail.core.checks import nearest
from dovetail.core.errors import DataError
from dovetail.text.documents import Document, clean, split_sentences, writable

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

"""Documents from files: JSON lines, CSV or Parquet, with a column of texts or of lists of sentences."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from dovetail.core.checks import nearest
from dovetail.core.errors import DataError
from dovetail.text.documents import Document, clean, split_sentences

SUFFIXES = (".jsonl", ".ndjson", ".csv", ".parquet", ".pq")


def read_documents(
    place: str | Path, *, text: str = "text", name: str | None = None, label: str | None = None, language: str = "en"
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

    Raises
    ------
    DataError
        With the row, for what is no text; for missing files and columns.
    """
    frame = read_frame(Path(place))
    for column in (text, name, label):
        if column is not None and column not in frame.columns:
            raise DataError(f"{place}: has no column {column!r}{nearest(column, frame.columns)}; name it.")
    names = [str(one) for one in (frame[name] if name else range(1, frame.height + 1))]
    labels = [None if one is None else str(one) for one in (frame[label] if label else [None] * frame.height)]
    if not frame.height:
        raise DataError(f"{place}: has no rows.")
    sentences = [_sentences(one, place, row, language) for row, one in enumerate(frame[text].to_list(), 1)]
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
        return pl.read_ndjson(place) if "json" in place.suffix.lower() else pl.read_parquet(place)
    except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException) as error:
        line = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise DataError(f"{place}: cannot be read as {place.suffix.lstrip('.')}: {line}.") from None

"""Abstracts of scientific papers with the archive that they were sent to."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from dovetail.core.errors import DataError
from dovetail.datasets.download import DataSource, locate, require_columns

SOURCE = DataSource(
    "arxiv_abstracts",
    "arXiv publishes its metadata under CC0 1.0 (https://info.arxiv.org/help/bulk_data.html); any Parquet file with "
    "the columns title, abstract and archive will do",
)
COLUMNS = ("title", "abstract", "archive")


def arxiv_abstracts(path: str | Path | None = None) -> pl.DataFrame:
    """2,000 papers of spring 2007, without their authors.

    Private: `abstract` (a document of 1 to 20 sentences). Public: `archive` (such as "math"), `title`.

    Parameters
    ----------
    path : str or Path, optional
        arxiv_2007_2000.parquet or its folder; $DOVETAIL_DATA/arxiv_abstracts if absent.

    Raises
    ------
    DataError
        When there is no such file, or it is not in this form; says where the data come from.

    Examples
    --------
    >>> arxiv_abstracts().columns[:3]  # doctest: +SKIP
    ['id', 'title', 'abstract']

    Source
    ------
    arXiv.org, metadata of submissions, CC0 1.0.
    """
    file = locate(SOURCE, "arxiv_2007_2000.parquet", path=path)
    try:
        table = pl.read_parquet(file)
    except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException):
        raise DataError(f"{file}: cannot be read as Parquet. {SOURCE.where}.") from None
    require_columns(file, table.columns, COLUMNS, source=SOURCE)
    return table

"""Adult: an extract of the census of the United States of 1994."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from dovetail.core.errors import DataError
from dovetail.datasets.download import DataSource, PublishedFile, locate

SOURCE = DataSource(
    "adult",
    "Adult (Becker, Kohavi 1996, CC BY 4.0) is published by the UCI Machine Learning Repository, "
    "doi:10.24432/C5XW20; take adult.data",
    {
        "adult.data": PublishedFile(
            "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data",
            "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        )
    },
)

COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship",
    "race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country", "income",
)  # fmt: skip
NUMBERS = ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")


def adult(path: str | Path | None = None) -> pl.DataFrame:
    """32,561 people: whether they earn more than 50,000 dollars a year, and what a census knows besides.

    Private: `income` ("<=50K" or ">50K").
    Public: `age` (years); `marital_status` is what the paper's attacker knows besides. The other twelve columns are
    the publisher's, with null where the census has no answer.

    Parameters
    ----------
    path : str or Path, optional
        adult.data or adult.test, or their folder; $DOVETAIL_DATA/adult if absent.

    Raises
    ------
    DataError
        When there is no such file, or it is not in this form; says where the data come from.

    Examples
    --------
    >>> adult()["income"].value_counts(sort=True).rows()  # doctest: +SKIP
    [('<=50K', 24720), ('>50K', 7841)]

    Source
    ------
    Becker, Kohavi (1996), Adult, UCI Machine Learning Repository.
    """
    file = locate(SOURCE, "adult.data", path=path)
    rows = [line.rstrip(".").split(", ") for line in _lines(file)]
    if not rows:
        raise DataError(f"{file}: has no records. {SOURCE.where}.")
    bad = next((number for number, row in enumerate(rows, 1) if len(row) != len(COLUMNS)), None)
    if bad is not None:
        raise DataError(
            f"{file}: must have {len(COLUMNS)} columns in every record (see record {bad}). {SOURCE.where}."
        )
    table = pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
    table = table.with_columns(pl.all().replace("?", None))
    try:
        table = table.with_columns(pl.col(NUMBERS).cast(pl.Int64))
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{file}: cannot be read as Adult; {str(error).splitlines()[0]}") from None
    strange = table["income"].filter(~table["income"].is_in(["<=50K", ">50K"]).fill_null(False))
    if strange.len():
        raise DataError(f"{file}: income must be <=50K or >50K, got {strange[0]!r}. {SOURCE.where}.")
    return table


def _lines(file: Path) -> list[str]:
    """Records; the publisher's test half opens with a comment, and both halves end with an empty line."""
    lines = (line.strip() for line in file.read_text(encoding="ascii", errors="replace").splitlines())
    return [line for line in lines if line and not line.startswith("|")]

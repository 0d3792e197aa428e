"""California housing: block groups of the census of 1990 and where they lie."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from dovetail.core.errors import DataError
from dovetail.datasets.download import DataSource, PublishedFile, locate, require_columns

SOURCE = DataSource(
    "california_housing",
    "California housing (Pace, Barry 1997, from public census aggregates) with the column ocean_proximity is "
    "published at https://github.com/ageron/handson-ml2/tree/master/datasets/housing; take housing.csv",
    {
        "housing.csv": PublishedFile(
            "https://raw.githubusercontent.com/ageron/handson-ml2/master/datasets/housing/housing.csv",
            "8a3727f4cf54ac1a327f69b1d5b4db54c5834ea81c6e4efc0d163300022a685e",
        )
    },
)

COLUMNS = (
    "longitude", "latitude", "housing_median_age", "total_rooms", "total_bedrooms", "population", "households",
    "median_income", "median_house_value", "ocean_proximity",
)  # fmt: skip


def california_housing(path: str | Path | None = None) -> pl.DataFrame:
    """20,640 block groups, each of 600 to 3,000 people.

    Private: `ocean_proximity` (five classes) or `median_house_value` (dollars, cut at 500,001), as a study chooses.
    Public: `latitude`, `longitude` (degrees). The other columns are the publisher's; `total_bedrooms` has nulls.

    Parameters
    ----------
    path : str or Path, optional
        housing.csv or its folder; $DOVETAIL_DATA/california_housing if absent.

    Raises
    ------
    DataError
        When there is no such file, or it is not in this form; says where the data come from.

    Examples
    --------
    >>> california_housing()["ocean_proximity"].value_counts(sort=True).rows()[:2]  # doctest: +SKIP
    [('<1H OCEAN', 9136), ('INLAND', 6551)]

    Source
    ------
    Pace, Barry (1997), Sparse Spatial Autoregressions, Statistics and Probability Letters 33(3).
    """
    file = locate(SOURCE, "housing.csv", path=path)
    try:
        table = pl.read_csv(file)
        require_columns(file, table.columns, COLUMNS, source=SOURCE)
        houses = table.select(pl.col(COLUMNS[:-1]).cast(pl.Float64), COLUMNS[-1])
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{file}: cannot be read as California housing; {str(error).splitlines()[0]}") from None
    lost = houses.select(pl.any_horizontal(pl.col("latitude", "longitude").is_null())).to_series()
    if lost.any() or not houses.height:
        what = f"row {int(lost.arg_true()[0]) + 1} has no place" if houses.height else "has no rows"
        raise DataError(f"{file}: {what}. {SOURCE.where}.")
    return houses

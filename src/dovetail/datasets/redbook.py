"""The 1974 Redbook survey on extramarital affairs, in the file beside this module."""

from pathlib import Path

import polars as pl

_CLASSES = ["none", "under 0.5", "0.5 to 2", "2 and more"]


def redbook() -> pl.DataFrame:
    """Load 6,366 married women: one sensitive answer, in two codings, and public columns.

    Private: `affair` (no, yes) and `affair_class` (the survey's measure of time spent in affairs, in four classes).
    Public: `age`, `years_married`, `education` (years) and `occupation` (code).

    Raises
    ------
    DataError
        Nowhere by itself: the rows ship with the package.

    Examples
    --------
    >>> redbook()["affair"].value_counts(sort=True).rows()
    [('no', 4313), ('yes', 2053)]

    Source
    ------
    Fair (1978), A Theory of Extramarital Affairs, Journal of Political Economy 86(1), 45-61. The author published the
    rows on his site and permitted others to pass them on, as `statsmodels.datasets.fair` (BSD-3-Clause) does; its
    columns affairs, age, yrs_married, educ and occupation are kept, in its order.
    """
    raw = pl.read_parquet(Path(__file__).with_suffix(".parquet"))
    time = raw["affairs"]
    codes = (time > 0).cast(pl.Int64) + (time >= 0.5).cast(pl.Int64) + (time >= 2).cast(pl.Int64)
    return pl.DataFrame(
        {
            "affair": ["yes" if value > 0 else "no" for value in time],
            "affair_class": [_CLASSES[code] for code in codes],
            "age": raw["age"],
            "years_married": raw["years_married"],
            "education": raw["education"].cast(pl.Int64),
            "occupation": raw["occupation"].cast(pl.Int64),
        }
    )

"""The 1974 Redbook survey on extramarital affairs, which ships inside statsmodels."""

import polars as pl

from dovetail.core.extras import require

_CLASSES = ["none", "under 0.5", "0.5 to 2", "2 and more"]


def redbook() -> pl.DataFrame:
    """6,366 married women: one sensitive answer, in two codings, and public columns.

    Private: `affair` (no, yes) and `affair_class` (the survey's measure of time spent in affairs, in four classes).
    Public: `age`, `years_married`, `education` (years) and `occupation` (code).

    Raises
    ------
    MissingExtraError
        When statsmodels is not installed.

    Examples
    --------
    >>> redbook()["affair"].value_counts(sort=True).rows()  # doctest: +SKIP
    [('no', 4313), ('yes', 2053)]

    Source
    ------
    Fair (1978), A Theory of Extramarital Affairs, Journal of Political Economy 86(1); `statsmodels.datasets.fair`.
    """
    raw = require("statsmodels.datasets", extra="demo").fair.load_pandas().data
    time = pl.Series(raw["affairs"].to_numpy())
    codes = (time > 0).cast(pl.Int64) + (time >= 0.5).cast(pl.Int64) + (time >= 2).cast(pl.Int64)
    return pl.DataFrame(
        {
            "affair": ["yes" if value > 0 else "no" for value in time],
            "affair_class": [_CLASSES[code] for code in codes],
            "age": raw["age"].to_numpy(),
            "years_married": raw["yrs_married"].to_numpy(),
            "education": raw["educ"].to_numpy().astype(int),
            "occupation": raw["occupation"].to_numpy().astype(int),
        }
    )

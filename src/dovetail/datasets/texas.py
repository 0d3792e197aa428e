"""Texas hospital discharges: the public use data file, for which one applies."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from dovetail.core.errors import DataError
from dovetail.datasets.download import DataSource, locate, require_columns

SOURCE = DataSource(
    "texas",
    "The inpatient public use data file is given out by the Texas Department of State Health Services under a data "
    "use agreement: apply at https://www.dshs.texas.gov/center-health-statistics/texas-health-care-information-"
    "collection, and take the tab-delimited base data file",
)

COLUMNS = {
    "THCIC_ID": "hospital",
    "PAT_ZIP": "zip_code",
    "FIRST_PAYMENT_SRC": "payment",
    "TOTAL_CHARGES": "charges",
}


def texas(path: str | Path) -> pl.DataFrame:
    """One row for each discharge that names its payer.

    Private: `payment` (code of the first source of payment).
    Public: `hospital` (code) and `zip_code` of the patient; `charges` (dollars) is what the paper's attacker knows
    besides. The file has no coordinates: join those of the hospitals.

    Parameters
    ----------
    path : str or Path
        A base data file, tab-delimited. The agreement forbids to pass it on, so it has no place at home.

    Raises
    ------
    DataError
        When there is no such file, or it is not in this form; says where to apply.

    Notes
    -----
    Written from the published list of columns and tested on rows of that form, not on the file itself.

    Examples
    --------
    >>> from dovetail.core.errors import DataError
    >>> try:
    ...     texas("nowhere.txt")
    ... except DataError as error:
    ...     print(str(error)[:26])
    nowhere.txt: no such file.

    Source
    ------
    Texas Health Care Information Collection, Inpatient Public Use Data File, base data; the paper uses about 29,000
    psychiatric patients of it, whose selection it does not describe.
    """
    file = locate(SOURCE, path=path)
    try:
        raw = pl.read_csv(file, separator="\t", infer_schema=False, encoding="utf8-lossy", quote_char=None)
        require_columns(file, raw.columns, COLUMNS, source=SOURCE)
        known = raw.select(pl.col(old).str.strip_chars().alias(new) for old, new in COLUMNS.items())
        table = known.with_columns(pl.col("charges").replace("", None).cast(pl.Float64))
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{file}: cannot be read as base data; {str(error).splitlines()[0]}") from None
    return table.filter(~pl.col("payment").is_in(["", "*", "`"]))

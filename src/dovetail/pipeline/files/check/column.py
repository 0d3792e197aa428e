"""What a column holds, read off its distinct values: numbers, dates, categories, free text, names of people."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import polars as pl

from dovetail.core.display.display import mute
from dovetail.pipeline.config.sections import Spellings
from dovetail.pipeline.files.spelling import read_numbers

EMAIL = r"^\s*[^@\s]+@[^@\s]+\.[a-zA-Z]{2,}\s*$"
PHONE = "|".join(
    (
        r"^\s*(?:\+|00)\d[\d\s()./-]{6,18}$",
        r"^\s*\(?0\d{2,5}\)?[\s/.-]+\d[\d\s.-]{4,14}$",
        r"^\s*\(?\d{3}\)?[\s.-]\d{3}[\s.-]\d{4}\s*$",
    )
)
DATES = {
    "YYYY-MM-DD": r"^\s*(?:19|20)\d\d-\d{1,2}-\d{1,2}(?:[T ]\d{1,2}:\d\d.*)?\s*$",
    "DD.MM.YYYY": r"^\s*\d{1,2}\.\d{1,2}\.(?:\d{4}|\d\d)(?: \d{1,2}:\d\d.*)?\s*$",
    "DD/MM/YYYY or MM/DD/YYYY": r"^\s*\d{1,2}/\d{1,2}/(?:\d{4}|\d\d)(?: \d{1,2}:\d\d.*)?\s*$",
    "YYYY/MM/DD": r"^\s*(?:19|20)\d\d/\d{1,2}/\d{1,2}(?: \d{1,2}:\d\d.*)?\s*$",
    "D Month YYYY": r"^\s*\d{1,2}\.?[ -]\p{L}{3,9}\.?[ -]\d{2,4}\s*$|^\s*\p{L}{3,9}\.? \d{1,2}, \d{4}\s*$",
}
# what columns are called that name people
IS_NAME = "(?i)" + "|".join(
    (
        r"^(?:id|nr|lfd\.? ?nr|no|number|key|uuid|guid|index|code|matricule|identifiant|kennung|chiffre)s?\.?$",
        r"^(?:nummer|num[eé]ro|person|participant|respondent|teilnehmer|proband|user|case|record|row)s?$",
        r"(?:^|[_\s-])(?:id|uuid|guid|nr)\.?$",
        r"^(?:respondent|participant|response|user|person|case|record|customer|patient|student)[ _]?(?:id|no|nr)",
        r"(?-i:[a-z]ID)$",
    )
)
_MOST = 0.8  # of the values make the kind of a column
_ENOUGH = 20  # values, before all being different means something
LONG = 30  # letters on average make free text


class Kind(StrEnum):
    """What most values of a column are."""

    EMPTY = "empty"
    NUMBER = "numbers"
    DATE = "dates"
    CATEGORY = "categories"
    TEXT = "free text"
    IDENTIFIER = "an identifier"
    EMAIL = "e-mail addresses"
    PHONE = "phone numbers"


@mute
@dataclass(frozen=True, eq=False)
class Column:
    """A column without its missing values.

    `values` has a row for each distinct value: `text`, its `count`, and the `number` that it spells (or null).
    """

    name: str
    n: int
    missing: int
    values: pl.DataFrame
    kind: Kind

    @property
    def present(self) -> int:
        """Values that are not missing."""
        return self.n - self.missing

    @property
    def distinct(self) -> int:
        """Different values."""
        return self.values.height

    @property
    def coded(self) -> bool:
        """Whether few whole numbers stand for categories, such as the answers 1 to 5."""
        return self.kind == Kind.NUMBER and self.distinct <= 10 and bool((self.numbers % 1 == 0).all())

    @property
    def numbers(self) -> pl.Series:
        """The different numbers."""
        return self.values["number"].drop_nulls()

    def count_of(self, pattern: str) -> int:
        """Values that match."""
        return int(self.values.filter(pl.col("text").str.contains(pattern))["count"].sum())


def describe_column(column: pl.Series, counts: pl.DataFrame | None, how: Spellings) -> Column:
    """The profile of a column whose missing values are null; `counts` of its texts, where they are texts."""
    kept = column.drop_nulls()
    if kept.dtype.is_float():
        kept = kept.filter(kept.is_not_nan())
    if counts is None:
        counts = kept.alias("text").value_counts(sort=True)
    numeric = counts["text"].dtype.is_numeric()
    texts = counts["text"].cast(pl.String)
    numbers = counts["text"].cast(pl.Float64) if numeric else read_numbers(texts, how)
    values = pl.DataFrame([texts, counts["count"].cast(pl.Int64), numbers.alias("number")])
    found = Column(column.name, len(column), len(column) - len(kept), values, Kind.CATEGORY)
    return replace(found, kind=_kind(found, column.dtype))


def _kind(column: Column, dtype: pl.DataType) -> Kind:
    present, named = column.present, pl.Series([column.name]).str.contains(IS_NAME).item()
    if not present:
        return Kind.EMPTY
    if dtype in (pl.Date, pl.Datetime):
        return Kind.DATE
    unique = present >= _ENOUGH and column.distinct >= 0.95 * present
    numeric = int(column.values.filter(pl.col("number").is_not_null())["count"].sum()) >= _MOST * present
    if numeric:
        whole = bool((column.numbers % 1 == 0).all())
        return Kind.IDENTIFIER if whole and (named and column.distinct >= 0.5 * present) else Kind.NUMBER
    for kind, pattern in ((Kind.EMAIL, EMAIL), (Kind.PHONE, PHONE), (Kind.DATE, "|".join(DATES.values()))):
        if column.count_of(pattern) >= (_MOST if kind == Kind.DATE else 0.5) * present:
            return kind
    letters = int((column.values["text"].str.len_chars() * column.values["count"]).sum()) / present
    words = int((column.values["text"].str.count_matches(r"\s+") * column.values["count"]).sum()) / present
    many = column.distinct > max(_ENOUGH, 0.1 * present)
    if many and (letters > LONG or words >= 4):
        return Kind.TEXT
    if unique or (named and column.distinct >= 0.5 * present and present >= _ENOUGH):
        return Kind.IDENTIFIER
    return Kind.TEXT if column.distinct > max(100, 0.3 * present) else Kind.CATEGORY

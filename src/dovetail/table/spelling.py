"""From what a table says to what it means: missing values, labels and numbers as [data] declares their spelling."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isfinite

from dovetail.core.display import counted
from dovetail.core.errors import DataError
from dovetail.core.extras import pl
from dovetail.table.data_section import DataSection, Spellings

_BLANKS = "[ \u00a0\u2009\u202f]"
_DIGITS = r"^[+-]?\d+(?:\.\d*)?$"
_MIDNIGHT = r"^(\d{4}-\d\d-\d\d)[T ]00:00:00(?:\.0+)?$"
_MARKS = {",": ",", ".": r"\.", "'": "['\u2019]", " ": _BLANKS}


def spelled(
    frame: pl.DataFrame, data: DataSection, *, numbers: Sequence[str] = (), answers: Sequence[str] = ()
) -> tuple[pl.DataFrame, pl.Series]:
    """The declared columns with missing values, labels and numbers read as declared; and which rows have an answer.

    Blank texts are missing values. Rows without an answer in one of the columns `answers` are left out, and of people
    who stand in two rows the first or last is kept, where that was asked.
    """
    columns = []
    for column in frame:
        column = with_labels(without_missing(column, data.missing_spellings), data.labels.get(column.name, {}))
        if column.name in data.ranges:
            column = in_ranges(column, data.ranges[column.name], data)
        columns.append(plain_numbers(column, data) if column.name in numbers else column)
    clean = pl.DataFrame(columns)
    answered = pl.Series([True]).new_from_index(0, clean.height)
    if data.missing == "drop":
        for name in answers:
            answered &= ~absent(clean[name])
        clean = clean.filter(answered)
    if data.duplicates != "refuse" and data.person is not None:
        named = clean[data.person].is_not_null()
        clean = clean.filter(~named | rows_kept(clean[data.person], data.duplicates))
    return clean, answered


def names_of(people: pl.Series) -> pl.Series:
    """One text for each person, however a file spells the name: `one_name`, of a whole column."""
    bare = bare_name(people.cast(pl.String))
    numbers = bare.cast(pl.Float64, strict=False)
    return one_name(bare, numbers=numbers.null_count() == bare.null_count())


def bare_name(text: pl.Series) -> pl.Series:
    """Names without blanks around them and signs that nobody sees, in one Unicode form; a day at midnight is the day.

    >>> bare_name(pl.Series(["Ann\u200b ", "\uff17", "2030-01-31T00:00:00"])).to_list()
    ['Ann', '7', '2030-01-31']
    """
    if text.str.contains(r"[^\x00-\x7f]").any():
        text = text.str.normalize("NFKC").str.replace_all(r"\p{Cf}", "")
    return text.str.strip_chars().str.replace(_MIDNIGHT, "$1")


def one_name(text: pl.Series, *, numbers: bool) -> pl.Series:
    """One text for each name, however it is spelled: `bare_name`, and digits are a number.

    With `numbers` exponents are numbers, too; among names "12e4" may be one.

    >>> one_name(pl.Series(["07", " 7.0", "12e4", "Ann "]), numbers=False).to_list()
    ['7.0', '7.0', '12e4', 'Ann']
    """
    bare = bare_name(text)
    plain = bare if numbers else bare.set(~bare.str.contains(_DIGITS).fill_null(True), None)
    return one_spelling(plain).fill_null(bare)


def one_spelling(text: pl.Series) -> pl.Series:
    """One text for each number, whatever digits, zeros and exponents spell it; null for a text that is no number.

    >>> one_spelling(pl.Series(["07", "9007199254740993", "9.007199254740994e15", "no"])).to_list()
    ['7.0', '9007199254740993', '9007199254740994', None]
    """
    numbers = text.cast(pl.Float64, strict=False)
    spelled = numbers.cast(pl.String)
    # from 2^53 on whole numbers share a double: their digits tell them apart
    large = (numbers.is_not_nan() & (numbers.abs() >= 2.0**53)).arg_true()
    if not len(large):
        return spelled
    digits = text.gather(large).str.replace(r"^\+?(-?)0*(\d+?)(?:\.0*)?$", "$1$2")
    others = (~digits.str.contains(r"^-?\d+$")).arg_true()
    exact = [str(int(one) if isfinite(one) else one) for one in numbers.gather(large).gather(others)]
    return spelled.scatter(large, digits.scatter(others, exact))


def rows_of(rows: pl.Series) -> str:
    """Data rows counted from 1, as a person counts them below the header."""
    return ", ".join(str(int(row) + 1) for row in rows[:3])


def at_rows(rows: pl.Series) -> str:
    """Say where these rows are, or the first of them.

    >>> at_rows(pl.Series([4])), at_rows(pl.Series([0, 4]))
    ('at row 5', 'first at rows 1, 5')
    """
    return f"{'at row' if len(rows) == 1 else 'first at rows'} {rows_of(rows)}"


def absent(column: pl.Series) -> pl.Series:
    """Mark the rows without a value."""
    return column.is_null() | column.is_nan() if column.dtype.is_float() else column.is_null()


def rows_kept(people: pl.Series, which: str) -> pl.Series:
    """Mark the first or the last row of each person."""
    names = names_of(people)
    return names.is_last_distinct() if which == "last" else names.is_first_distinct()


def without_missing(column: pl.Series, spellings: Sequence[str]) -> pl.Series:
    """The column with null where a text is blank or spells a missing value, whatever blanks are around it."""
    if column.dtype == pl.String:
        bare = column.str.strip_chars()
        gone = bare.is_in(["", *(spelling.strip() for spelling in spellings)])
    elif column.dtype.is_numeric():
        gone = column.cast(pl.Float64).is_in([value for one in spellings if (value := _number(one)) is not None])
    else:
        return column
    if not gone.any():
        return column
    return pl.select(pl.when(gone).then(None).otherwise(column).alias(column.name)).to_series()


def with_labels(column: pl.Series, labels: dict[str, str]) -> pl.Series:
    """The column with these spellings replaced by their labels, once; "" is a missing value on either side."""
    if not labels:
        return column
    text = column.cast(pl.String)
    given = {spelling: label or None for spelling, label in labels.items() if spelling}
    if given:
        old, new = list(given), pl.Series(list(given.values()), dtype=pl.String)
        text = text.replace(old, new)
    return text.fill_null(labels[""]) if labels.get("") else text


def plain_numbers(column: pl.Series, how: Spellings) -> pl.Series:
    """Texts that spell numbers as these numbers; DataError with the first places where they do not."""
    if column.dtype != pl.String or how.plain_numbers:
        return column
    numbers = read_numbers(column, how)
    bad = numbers.is_null() & column.is_not_null()
    if bad.any():
        raise DataError(
            f"column {column.name!r}: {counted(int(bad.sum()), 'value is no number', 'values are no numbers')} "
            f"({at_rows(bad.arg_true())}) as [data] "
            f"spells them, {spelling_of(how)}; correct that, or map them in [data.labels]."
        )
    return numbers


def in_ranges(column: pl.Series, width: float, how: Spellings) -> pl.Series:
    """Each number as the lower end of its range, as a text; what is no number stays.

    >>> in_ranges(pl.Series(["51", "49", "not stated"]), 10.0, Spellings()).to_list()
    ['50', '40', 'not stated']
    """
    text = column.cast(pl.String)
    numbers = read_numbers(text, how) if column.dtype == pl.String else column.cast(pl.Float64)
    low = (numbers / width).floor() * width
    whole = width.is_integer()
    shown = low.cast(pl.Int64, strict=False).cast(pl.String) if whole else low.cast(pl.String)
    return pl.select(pl.when(numbers.is_null()).then(text).otherwise(shown).alias(column.name)).to_series()


def spelling_of(how: Spellings) -> str:
    """Say how numbers are spelled, in words of the configuration."""
    said = [f"decimal = {how.decimal!r}", f"thousands = {how.thousands!r}"]
    return ", ".join([*said, *([f"units = {how.units}"] if how.units else [])]).replace("'", '"')


def read_numbers(column: pl.Series, how: Spellings) -> pl.Series:
    """Texts as numbers, null where they are none: groups of three digits, one decimal mark, units."""
    text = column.str.strip_chars().str.replace("\u2212", "-")
    units = "|".join(re.escape(unit.strip()) for unit in how.units)
    if units:
        text = text.str.replace(rf"\s*(?:{units})$", "").str.replace(rf"^([-+]?)(?:{units})\s*", "$1")
    whole = r"\d+" if not how.thousands else rf"(?:\d{{1,3}}(?:{_MARKS[how.thousands]}\d{{3}})+|\d+)"
    decimal = _MARKS[how.decimal]
    form = rf"^[-+]?(?:{whole}(?:{decimal}\d*)?|{decimal}\d+)(?:[eE][-+]?\d+)?$"
    bare = text.str.replace_all(_MARKS[how.thousands], "") if how.thousands else text
    bare = bare.str.replace(decimal, ".")
    known = pl.when(text.str.contains(form)).then(bare).alias(column.name)
    return pl.select(known).to_series().cast(pl.Float64, strict=False)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None

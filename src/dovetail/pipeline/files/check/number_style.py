"""How the numbers of a table are spelled: decimal mark, thousands, units; one way for all columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from dovetail.pipeline.config.sections import Spellings
from dovetail.pipeline.files.check.column import DATES, PHONE, Column
from dovetail.pipeline.files.check.problem import Problem, Status, column_called, quoted
from dovetail.pipeline.files.spelling import read_numbers, spelling_of

# the likelier ones first
STYLES = [
    (".", ""), (",", ""), (".", ","), (",", "."), (".", "'"), (",", " "), (".", " "), (",", "'")
]  # fmt: skip
_LOOSE = r"^\s*[-+\x{2212}]?\s*[^\w\s]?\s*\d[\d.,'\x{2019}\s]*(?:[eE][-+]?\d+)?\s*\p{L}{0,4}[%\p{Sc}]?\s*$"
_UNIT = r"(\p{Sc}|%|\p{L}{1,4}\.?)\s*$"
_SIGN = r"^\s*[-+]?\s*(\p{Sc})"
_MOST = 0.8
_BELIEVED = 1000

_ENOUGH = 20_000  # different texts of a column show how its numbers are spelled

Counts = pl.DataFrame  # text, count


def number_columns(columns: Mapping[str, Counts]) -> dict[str, Counts]:
    """The columns whose texts mostly look like numbers, in whatever spelling, with a sample of them."""
    dates, found = "|".join([*DATES.values(), PHONE]), {}
    for name, counts in columns.items():
        some = counts if counts.height <= _ENOUGH else counts.gather_every(counts.height // _ENOUGH + 1)
        looks = some["text"].str.contains(_LOOSE) & ~some["text"].str.contains(dates)
        if some.height and int(some["count"].filter(looks).sum()) >= _MOST * int(some["count"].sum()):
            found[name] = some
    return found


def find_number_style(columns: Mapping[str, Counts], *, believed: str | None = None) -> Spellings:
    """The spelling in which most texts of these columns are numbers; one column may be believed before all others."""
    if not columns:
        return Spellings()
    parts = [
        counts.select("text", weight=pl.col("count") * (_BELIEVED if name == believed else 1))
        for name, counts in columns.items()
    ]
    every = pl.concat(parts).group_by("text").agg(pl.col("weight").sum())
    units = _units(every["text"])
    styles = [Spellings(decimal=decimal, thousands=mark, units=units) for decimal, mark in STYLES]  # type: ignore[arg-type]
    read = [int(every["weight"].filter(_reads(every["text"], style)).sum()) for style in styles]
    if read[1] == read[2] > read[0] and not every["text"].str.contains(r"\d,(?:\d{1,2}|\d{4,})\D*$").any():
        return styles[2]  # 1,234 alone: three digits are a thousand
    return styles[max(range(len(styles)), key=lambda place: (read[place], -place))]


def style_problems(columns: dict[str, Counts], how: Spellings, *, private: str | None) -> Iterator[Problem]:
    """What to know about the spelling that was found, and columns that have another one."""
    if not how.plain_numbers:
        yield Problem(
            f"numbers are spelled with {spelling_of(how)}", "file",
            "the configuration says so; correct it there if that is not how they are meant", Status.SETTLED,
        )  # fmt: skip
    for name, counts in columns.items():
        grouped = r"^\s*[-+]?\d{1,3}[.,]\d{3}\s*$"
        comma = counts["text"].str.contains(r"[.,]")
        if comma.any() and counts["text"].filter(comma).str.contains(grouped).all() and not how.units:
            shown = counts["text"].filter(comma)[0] if name != private else "1.234"
            yield Problem(
                f"every fraction has three digits, such as {shown}: a thousand, or one and a bit?",
                column_called(name), "see that `decimal` and `thousands` in [data] are what is meant", Status.CONFIRM,
            )  # fmt: skip
        unread = counts["text"].filter(~_reads(counts["text"], how))
        if unread.is_empty():  # of most columns, where looking for another style would take all the time
            continue
        own = find_number_style({name: counts})
        otherwise = _reads(unread, own)
        if otherwise.any():
            yield Problem(
                f"numbers are spelled otherwise than in other columns, with {spelling_of(own)}", column_called(name),
                "spell the numbers of a table in one way, or map these in [data.labels]",
                Status.STOPS if name == private else Status.NOTE,
            )  # fmt: skip


def not_numbers(column: Column, *, where: str, private: bool, role: bool) -> Iterator[Problem]:
    """Texts in a column of numbers."""
    texts = column.values.filter(pl.col("number").is_null())
    if texts.height:
        shown = "" if private else f": {quoted(texts['text'].to_list())}"
        yield Problem(
            f"{int(texts['count'].sum()):,} values of a column of numbers are none{shown}", where,
            'map them in [data.labels], as in "95+" = "95", or "" where nothing was answered',
            Status.STOPS if role else Status.NOTE,
        )  # fmt: skip


def _reads(texts: pl.Series, how: Spellings) -> pl.Series:
    return read_numbers(texts, how).is_not_null()


def _units(texts: pl.Series) -> list[str]:
    """Units that follow (or, as signs of money, precede) numbers, the commonest first."""
    looks = texts.filter(texts.str.contains(_LOOSE) & ~texts.str.contains(r"(?i)\d[eE][-+]?\d+\s*$"))
    found = pl.concat([looks.str.extract(_UNIT), looks.str.extract(_SIGN)]).drop_nulls()
    return found.str.strip_chars().value_counts(sort=True).to_series().head(5).to_list()

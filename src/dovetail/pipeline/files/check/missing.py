"""Missing values, however they are spelled, and numbers that are codes for them."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from dovetail.pipeline.files.check.column import Column, Kind
from dovetail.pipeline.files.check.declared import Declared
from dovetail.pipeline.files.check.problem import Problem, Status, column_called, first_rows, quoted

# in small letters; words that may be an answer, such as "none" or "unknown", are not among them
SPELLINGS = frozenset(
    [
        "na",
        "n/a",
        "n.a.",
        "n.a",
        "#n/a",
        "#na",
        "#nv",
        "nan",
        "null",
        "nil",
        "<na>",
        "-",
        "--",
        "---",
        "–",
        "—",
        "?",
        "??",
        ".",
        "..",
        "…",
        "#value!",
        "#wert!",
        "#ref!",
        "#div/0!",
        "#null!",
        "\\n",
        "missing",
        "(blank)",
        "(leer)",
        "(empty)",
        "k.a.",
        "k.a",
        "k.\\u00a0a.",
        "k/a",
        "n.v.",
        "n/d",
        "s.d.",
        "s/d",
        "n.c.",
        "nsp",
        "no.data",
    ]
) | {"k. a.", "keine angabe", "not available", "no data", "n. a.", "n. v.", "non renseigné"}
CODES = (-9.0, -99.0, -999.0, -9999.0, -1.0, 99.0, 999.0, 9999.0, 99999.0, 88.0, 888.0, 77.0)
ABSENT = "no answer"


def missing_spellings(counts: pl.DataFrame) -> list[str]:
    """Texts of a column that stand for no value, without the blanks around them."""
    bare = counts.select(pl.col("text").str.strip_chars(), "count").filter(pl.col("text") != "")
    found = bare.filter(pl.col("text").str.to_lowercase().is_in(SPELLINGS))
    return found["text"].unique(maintain_order=True).to_list()


def missing_code(column: Column) -> float | None:
    """A number such as 999 that stands far from all others: no value, but a code for a missing one."""
    numbers = column.numbers
    if column.kind != Kind.NUMBER or numbers.len() < 5:
        return None
    for code in CODES:
        rest = numbers.filter(numbers != code)
        if rest.len() == numbers.len() or rest.len() < 4:
            continue
        low, high = float(rest.min()), float(rest.max())  # type: ignore[arg-type]
        gap = low - code if code < 0 else code - high
        if (code < 0 <= low) or gap > max(high - low, 1.0):
            return code
    return None


def missing_problems(column: Column, series: pl.Series, spelled: list[str], asked: Declared) -> Iterator[Problem]:
    """How many values are missing, and what becomes of these people."""
    if not column.missing or column.kind == Kind.EMPTY:
        return
    how = f" (blank, or {quoted(spelled)})" if spelled else ""
    what, where = f"{column.missing:,} of {column.n:,} values are missing{how}", column_called(column.name)
    where += f", {first_rows(series.is_null())}"
    yield Problem(what, where, *_remedy(column, asked))


def _remedy(column: Column, asked: Declared) -> tuple[str, Status]:
    name = column.name
    if name == asked.person:
        return "give each of these people a name of their own, or leave their rows out", Status.STOPS
    if name == asked.private and not asked.numeric(column):
        return (
            f"they become a category, `missing` = {ABSENT!r}: confirm it, or leave these people out",
            Status.CONFIRM,
        )
    if name == asked.private:
        remedy = f'a mean has no category for them: [data.labels.{name}] "" = "0" says what counts instead, or leave '
        return remedy + "these people out", Status.STOPS
    if name in asked.public:
        return 'the configuration calls them "not stated" in [data.labels]; rename that there', Status.SETTLED
    return f'if you make it public: [data.labels.{name}] "" = "not stated"', Status.NOTE


def code_problems(column: Column, code: float, asked: Declared) -> Iterator[Problem]:
    """A code for missing values, read as a number."""
    count = int(column.values.filter(pl.col("number") == code)["count"].sum())
    yield Problem(
        f"{count:,} values are {code:g}, far from all others: a code for a missing value?",
        column_called(column.name),
        f'if so, [data.labels.{column.name}] "{code:g}" = ""', Status.CONFIRM if asked.has_role(column.name) else
        Status.NOTE,
    )  # fmt: skip

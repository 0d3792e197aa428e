"""Labels that differ in blanks, case or Unicode form, or were not declared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from dovetail.pipeline.files.check.column import Column, Kind
from dovetail.pipeline.files.check.declared import Declared
from dovetail.pipeline.files.check.problem import Problem, Status, column_called, quoted

_INVISIBLE = r"[\x{200b}-\x{200f}\x{2060}\x{feff}\x{ad}\x{202a}-\x{202e}]"
MOST = 2000  # labels that are compared


def folded(texts: pl.Series) -> pl.Series:
    """What is the same whatever blanks, case and Unicode form: the key under which spellings meet."""
    plain = texts.str.normalize("NFKC").str.replace_all(_INVISIBLE, "").str.to_lowercase()
    return plain.str.replace_all(r"\s+", " ").str.strip_chars(" .")


def variants(column: Column, wanted: Sequence[str] = ()) -> dict[str, str]:
    """Spelling -> label for all that differ from a wanted one, or from the commonest spelling, in these ways only."""
    if column.kind != Kind.CATEGORY or column.distinct > MOST:
        return {}
    table = column.values.with_columns(key=folded(column.values["text"]))
    table = table.sort("count", "text", descending=[True, False])
    best = dict(zip(folded(pl.Series(wanted, dtype=pl.String)), wanted, strict=True))
    for key, text in table.select("key", "text").iter_rows():
        best.setdefault(key, " ".join(text.split()))
    return {text: best[key] for text, key in table.select("text", "key").iter_rows() if text != best[key]}


def spelling_problems(column: Column, found: dict[str, str], asked: Declared) -> Iterator[Problem]:
    """Which spellings mean one label."""
    if not found:
        return
    labels = list(dict.fromkeys(found.values()))
    people = int(column.values.filter(pl.col("text").is_in(list(found)))["count"].sum())
    role = asked.has_role(column.name)
    yield Problem(
        f"{people:,} values differ from {'a label' if len(labels) == 1 else 'labels'} only in blanks, case or "
        f"Unicode form: {quoted(list(found))}",
        column_called(column.name),
        f"the configuration reads them as {quoted(labels)}, in [data.labels]" if role else
        "spell each label in one way if you use this column",
        Status.SETTLED if role else Status.NOTE,
    )  # fmt: skip


def undeclared(column: Column, found: dict[str, str], asked: Declared) -> Iterator[Problem]:
    """Labels of the private column that are not among the declared categories."""
    if asked.categories is None:
        return
    text = column.values["text"]
    known = text.is_in([*asked.categories, *found])
    if not known.all():
        people = int(column.values.filter(~known)["count"].sum())
        yield Problem(
            f"{people:,} values are not among the declared categories: {quoted(text.filter(~known).to_list())}",
            column_called(column.name),
            f"declare them, or map them in [data.labels.{column.name}], such as to a category \"other\"",
            Status.STOPS,
        )  # fmt: skip

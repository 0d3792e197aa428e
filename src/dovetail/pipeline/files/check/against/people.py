"""People who stand in several rows, where a configuration already says what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from dovetail.pipeline.config.sections import DataSection
from dovetail.pipeline.files.check.problem import Problem, Status, column_called, first_rows
from dovetail.pipeline.files.table import in_several_rows


def person_found(frame: pl.DataFrame, data: DataSection) -> Iterator[Problem]:
    """People without a name, and people with several rows (in a stream: of one round)."""
    assert data.person is not None
    people, where = frame[data.person], column_called(data.person)
    nameless = people.is_null()
    if nameless.any():
        yield Problem(
            f"{int(nameless.sum()):,} of {frame.height:,} values are missing", f"{where}, {first_rows(nameless)}",
            "give each of these people a name of their own, or leave their rows out", Status.STOPS,
        )  # fmt: skip
    stream = data.time is not None and data.time in frame.columns
    if data.time is not None and not stream:
        return  # which rows are of one round is not known
    keys = [data.person, data.time] if stream else [data.person]
    repeated = frame.select(keys).is_duplicated() & ~nameless
    if not repeated.any():
        return
    many = people.filter(repeated).n_unique()
    what = f"{in_several_rows(many)}{' of a round' if stream else ''}"
    where = f"{where}, {first_rows(repeated)}"
    if data.duplicates != "refuse":
        yield Problem(what, where, f"the {data.duplicates} row of each is kept, as `duplicates` says", Status.SETTLED)
    elif stream:
        yield Problem(what, where, "keep one row of each person and round", Status.STOPS)
    else:
        same = bool((frame.is_duplicated() | ~repeated).all())
        yield Problem(
            f"{what}, with {'the same' if same else 'different'} values",
            where, 'keep one row each, or set `duplicates` = "first" or "last" in [data]', Status.STOPS,
        )  # fmt: skip


def without_repeats(columns: dict[str, pl.Series], data: DataSection) -> dict[str, pl.Series]:
    """The rows that `run` keeps."""
    assert data.person is not None
    people = columns[data.person]
    if data.duplicates == "refuse":
        return columns
    kept = people.is_last_distinct() if data.duplicates == "last" else people.is_first_distinct()
    return {name: column.filter(kept | people.is_null()) for name, column in columns.items()}

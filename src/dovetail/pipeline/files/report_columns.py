"""Reports as columns of a table, and back: what travels between the stages when they run on files."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from dovetail.core.errors import DataError
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer, Reports

PREFIX = "report"

Analyst = FrequencyRandomizer | NumericRandomizer


def to_columns(randomizer: Analyst, reports: Reports, categories: list[str] | None) -> pl.DataFrame:
    """Symbols by name, numbers on their own scale, anything wider as it is sent (report_0, report_1, ..)."""
    if isinstance(randomizer, NumericRandomizer):
        return pl.DataFrame({PREFIX: randomizer.lower + randomizer.step * reports})
    if isinstance(randomizer, FrequencyRandomizer) and randomizer.names_values and categories is not None:
        return pl.DataFrame({PREFIX: pl.Series(list(categories), dtype=pl.String).gather(pl.Series(reports))})
    if reports.ndim == 1:
        return pl.DataFrame({PREFIX: reports})
    return pl.DataFrame({f"{PREFIX}_{part}": reports[:, part] for part in range(reports.shape[1])})


def from_columns(randomizer: Analyst, table: pl.DataFrame, categories: list[str] | None) -> Reports:
    """The inverse of `to_columns`.

    Raises
    ------
    DataError
        When the report columns are missing or hold what this randomizer never sends.
    """
    names = report_columns(table)
    if not names:
        raise DataError(f"the table has no column {PREFIX!r} (nor {PREFIX}_0, {PREFIX}_1, ..).")
    if isinstance(randomizer, NumericRandomizer):
        return _steps(randomizer, table[names[0]])
    if isinstance(randomizer, FrequencyRandomizer) and randomizer.names_values and categories is not None:
        codes = table[names[0]].cast(pl.String).cast(pl.Enum(categories), strict=False).to_physical().cast(pl.Int64)
        if codes.null_count():
            raise DataError(f"column {names[0]!r}: {codes.null_count():,} reports are not among the categories.")
        return codes.to_numpy()
    columns = [_whole(table[name]) for name in names]
    return randomizer.check_reports(columns[0] if names == [PREFIX] else np.column_stack(columns))


def report_columns(table: pl.DataFrame) -> list[str]:
    """The columns that hold reports, in order."""
    if PREFIX in table.columns:
        return [PREFIX]
    parts = [name for name in table.columns if name.startswith(f"{PREFIX}_") and name[len(PREFIX) + 1 :].isdigit()]
    return sorted(parts, key=lambda name: int(name[len(PREFIX) + 1 :]))


def described_columns(table: pl.DataFrame, description: dict[str, Any]) -> list[str]:
    """The columns that hold reports: those that the file's description names, or those with their names."""
    named = description.get("columns")
    return list(named) if named and set(named) <= set(table.columns) else report_columns(table)


def describe_reports(randomizer: Analyst, categories: list[str] | None, entropy: str, **more: Any) -> dict[str, Any]:
    """What a later stage must know to read these reports; it travels inside the file."""
    if isinstance(randomizer, NumericRandomizer):
        domain: dict[str, Any] = {
            "lower": randomizer.lower,
            "upper": randomizer.upper,
            "grid": randomizer.step,
        }
    else:
        domain = {"categories": categories}
    own = {setting.name: getattr(randomizer, setting.name) for setting in randomizer.settings()}
    made = {"randomizer": randomizer.name, "epsilon": randomizer.guarantee.epsilon, **domain, **own}
    return {"schema_version": 1, "entropy": entropy, **made, **more}


def _steps(randomizer: NumericRandomizer, column: pl.Series) -> Reports:
    numbers = column.cast(pl.Float64, strict=False)
    if numbers.null_count() or not numbers.is_finite().all():
        raise DataError(f"column {column.name!r}: {numbers.null_count():,} reports are no numbers.")
    steps = (numbers.to_numpy() - randomizer.lower) / randomizer.step
    off = (np.abs(steps) > 2.0**52) | (np.abs(steps - np.rint(steps)) > 1e-3)
    if off.any():
        raise DataError(
            f"column {column.name!r}: {int(off.sum()):,} reports do not lie on the grid of this randomizer."
        )
    return np.rint(steps).astype(np.int64)


def _whole(column: pl.Series) -> Reports:
    numbers = column if column.dtype.is_integer() else column.cast(pl.UInt64, strict=False)
    if numbers.null_count():
        raise DataError(f"column {column.name!r}: {numbers.null_count():,} reports are no whole numbers.")
    return numbers.to_numpy()

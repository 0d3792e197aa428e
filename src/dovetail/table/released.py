"""Files that were released: reports as columns, read beside a table of the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.attack.experiment.reidentify import Records
from dovetail.core.checks import nearest
from dovetail.core.display import counted
from dovetail.core.errors import DataError
from dovetail.core.extras import pl
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer, Reports
from dovetail.randomize.sampling.vector_randomizer import VectorRandomizer
from dovetail.table.reader import READ_TABLE, Read, as_text, numeric, refuse_missing

# Files that were released, beside a table of the truth: whose place each report stands at.


def shared_columns(path: str, public: pl.DataFrame, truth: Sequence[str]) -> list[str]:
    """Public columns of a released file that the truth has too; a file without public columns was mixed evenly."""
    shared = [name for name in public.columns if name in truth]
    if public.width and not shared:
        raise DataError(
            f"{path}: shares no public column with the truth, so no report has a place; there: {public.columns}."
        )
    return shared


def rows_of_people(
    path: str, released: pl.DataFrame, people: pl.DataFrame, *, shared: Sequence[str]
) -> NDArray[np.int64]:
    """The row (n,) of the released file at which each person stands, by the columns that both tables have.

    People who are alike in these columns get the rows alike in the order of `people`: nobody can tell them apart.

    Raises
    ------
    DataError
        When the file does not hold exactly these people.
    """
    if released.height != people.height:
        raise DataError(f"{path}: must have a row for each of {people.height:,} people, got {released.height:,}.")
    if not shared:
        return np.arange(people.height)
    both = [pl.concat([as_text(table[name]) for table in (released, people)]) for name in shared]
    codes = pl.DataFrame(both).select(pl.struct(pl.all()).rank("dense")).to_series().to_numpy()
    file, table = np.split(codes.astype(np.int64), 2)
    strangers = np.bincount(file, minlength=codes.max() + 1) > np.bincount(table, minlength=codes.max() + 1)
    if strangers.any():
        row = int(np.flatnonzero(strangers[file])[0])
        shown = ", ".join(f"{name} {released[name][row]}" for name in shared[:3])
        raise DataError(f"{path}: holds somebody who is not in the truth, row {row + 1} ({shown}).")
    rows = np.empty(people.height, dtype=np.int64)
    rows[np.argsort(table, kind="stable")] = np.argsort(file, kind="stable")
    return rows


# What an attacker reads off files: a history of known senders, and releases to guess the senders of.


MOST_PARTS = 10  # into which a single release is cut
PLACE = "place"


def read_history(
    path: str, *, device: str, features: Sequence[str], batch: str | None, place: bool, read: Read = READ_TABLE,
) -> tuple[Records, tuple[str, ...]]:  # fmt: skip
    """The attacker's training records, and the names of the devices that it knows."""
    table = _checked(path, [device, *features, *([batch] if batch else [])], device, read)
    names = tuple(table[device].unique().sort().to_list())
    if len(names) < 2:
        raise DataError(f"{path}: an attacker chooses between at least two devices; found {len(names)}.")
    return _records(table, path, names, device=device, features=features, batch=batch, place=place), names


def read_releases(
    paths: Sequence[str], known: tuple[str, ...], *, device: str, features: Sequence[str], batch: str | None,
    place: bool, read: Read = READ_TABLE,
) -> list[Records]:  # fmt: skip
    """Releases to be attacked, one for each file; a single file is cut into parts of whole batches."""
    columns = [device, *features, *([batch] if batch else [])]
    found = [
        _records(_checked(path, columns, device, read), path, known, device=device, features=features, batch=batch,
                 place=place)
        for path in paths
    ]  # fmt: skip
    return _parts(found[0], paths[0]) if len(found) == 1 else found


def _checked(path: str, columns: Sequence[str], device: str, read: Read) -> pl.DataFrame:
    table = read(path)
    if table.height == 0:
        raise DataError(f"{path}: the table has no rows.")
    for name in columns:
        if name not in table.columns:
            raise DataError(f"{path}: has no column {name!r}{nearest(name, table.columns)}.")
    refuse_missing(table[device], f"{path}: device column {device!r}")
    return table.with_columns(pl.col(device).cast(pl.String))


def _records(
    table: pl.DataFrame, path: str, known: tuple[str, ...], *, device: str, features: Sequence[str],
    batch: str | None, place: bool,
) -> Records:  # fmt: skip
    codes = table[device].replace_strict(known, range(len(known)), default=None, return_dtype=pl.Int64)
    unknown = table[device].filter(codes.is_null())
    if len(unknown):
        raise DataError(
            f"{path}: {counted(unknown.n_unique(), 'device is', 'devices are')} not in the history, first "
            f"{unknown[0]!r}; the attacker "
            "can only name devices that it knows."
        )
    batches = np.zeros(table.height, np.int64) if batch is None else _codes(table[batch])
    try:
        columns = {name: numeric(table[name]) for name in features}
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    if place:
        columns[PLACE] = _places(batches)
    return Records(columns, codes.to_numpy(), batches)


def _codes(column: pl.Series) -> NDArray[np.int64]:
    """Batches numbered in order of appearance."""
    refuse_missing(column, f"batch column {column.name!r}")
    names = column.unique(maintain_order=True)
    return column.replace_strict(names, range(len(names)), return_dtype=pl.Int64).to_numpy()


def _places(batches: NDArray[np.int64]) -> NDArray[np.float64]:
    """Place of each record in its batch, in the order of the file."""
    return pl.DataFrame({"batch": batches}).select(pl.int_range(pl.len()).over("batch")).to_series().to_numpy() * 1.0


def _parts(release: Records, path: str) -> list[Records]:
    """As many parts of consecutive batches, at most MOST_PARTS, as still hold every device of the release."""
    devices, count = np.unique(release.devices), int(release.batches.max()) + 1
    for parts in range(min(MOST_PARTS, count), 1, -1):
        cut = release.batches * parts // count
        if all(np.unique(release.devices[cut == part]).size == devices.size for part in range(parts)):
            return [_taken(release, cut == part) for part in range(parts)]
    raise DataError(
        f"{path}: intervals need at least two releases, or one whose batches (--batch) can be cut into two parts "
        "that both hold every device; give more files, or name the column of rounds with --batch."
    )


def _taken(release: Records, here: NDArray[np.bool_]) -> Records:
    columns = {name: column[here] for name, column in release.features.items()}
    return Records(columns, release.devices[here], release.batches[here])


# Reports as columns of a table, and back: what travels between the stages when they run on files.


PREFIX = "report"

Analyst = FrequencyRandomizer | NumericRandomizer | VectorRandomizer


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
            raise DataError(
                f"column {names[0]!r}: {counted(codes.null_count(), 'report is', 'reports are')} not among the "
                "categories."
            )
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
    """Description that a later stage needs to read these reports; it travels inside the file."""
    if isinstance(randomizer, NumericRandomizer):
        domain: dict[str, Any] = {
            "lower": randomizer.lower,
            "upper": randomizer.upper,
            "grid": randomizer.step,
        }
    else:
        domain = {} if isinstance(randomizer, VectorRandomizer) else {"categories": categories}
    own = {setting.name: getattr(randomizer, setting.name) for setting in randomizer.settings()}
    made = {"randomizer": randomizer.name, "epsilon": randomizer.guarantee.epsilon, **domain, **own}
    return {"schema_version": 1, "entropy": entropy, **made, **more}


def _steps(randomizer: NumericRandomizer, column: pl.Series) -> Reports:
    numbers = column.cast(pl.Float64, strict=False)
    if numbers.null_count() or not numbers.is_finite().all():
        raise DataError(
            f"column {column.name!r}: "
            f"{counted(numbers.null_count(), 'report is no number', 'reports are no numbers')}."
        )
    steps = (numbers.to_numpy() - randomizer.lower) / randomizer.step
    off = (np.abs(steps) > 2.0**52) | (np.abs(steps - np.rint(steps)) > 1e-3)
    if off.any():
        raise DataError(
            f"column {column.name!r}: {counted(int(off.sum()), 'report does', 'reports do')} not lie on the grid "
            "of this randomizer."
        )
    return np.rint(steps).astype(np.int64)


def _whole(column: pl.Series) -> Reports:
    numbers = column if column.dtype.is_integer() else column.cast(pl.UInt64, strict=False)
    if numbers.null_count():
        raise DataError(
            f"column {column.name!r}: "
            f"{counted(numbers.null_count(), 'report is no whole number', 'reports are no whole numbers')}."
        )
    return numbers.to_numpy()

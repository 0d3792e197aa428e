"""What an attacker reads off files: a history of known senders, and releases to guess the senders of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.attack.reidentify.records import Records
from dovetail.core.checks import nearest
from dovetail.core.errors import DataError
from dovetail.pipeline.files.table import numeric, refuse_missing
from dovetail.pipeline.files.table_reader import READ_TABLE, Read

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
            f"{path}: {unknown.n_unique():,} devices are not in the history, first {unknown[0]!r}; the attacker "
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

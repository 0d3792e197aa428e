"""Reading a file as [data] says it is written; where that fails, as it is found to be, with the keys that say so."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from dovetail.core.errors import DataError
from dovetail.pipeline.config.sections import DataSection, FileFormat
from dovetail.pipeline.files.check.problem import Problem, Status
from dovetail.pipeline.files.check.text_file.read import read_as_found
from dovetail.pipeline.files.table import is_text_file, read_table


def read_as_said(data: DataSection) -> tuple[pl.DataFrame, list[Problem]]:
    """The table, and a problem where it is written otherwise than [data] says."""
    try:
        frame = read_table(data.path, written=data)
    except DataError as error:
        frame, found, _ = read_as_found(Path(str(data.path)), None)  # raises where there is no table
        return frame, [_otherwise(_shortly(error, data), data, found)]
    wanted = {data.private, *data.public, *(name for name in (data.person, data.time) if name)}
    if wanted <= set(frame.columns) or not is_text_file(str(data.path)):
        return frame, []
    other, found, _ = read_as_found(Path(str(data.path)), None)
    if len(wanted & set(other.columns)) <= len(wanted & set(frame.columns)):
        return frame, []
    return other, [_otherwise("its columns have other names as [data] reads it", data, found)]


def _otherwise(what: str, data: DataSection, found: FileFormat | None) -> Problem:
    keys = (
        [] if found is None else [key for key in FileFormat.model_fields if getattr(found, key) != getattr(data, key)]
    )
    said = ", ".join(f"{key} = {_toml(getattr(found, key))}" for key in keys)
    return Problem(what, "file", f"in [data]: {said}" if said else "correct the file", Status.STOPS)


def _shortly(error: DataError, data: DataSection) -> str:
    """What is wrong, without the remedy."""
    return re.split(r"; |: set ", str(error).removeprefix(f"{data.path}: "), maxsplit=1)[0].rstrip(".")


def _toml(value: object) -> str:
    return str(value) if isinstance(value, int) else str(value).join('""') if isinstance(value, str) else repr(value)

"""Public data, found at a path that is given, in the folder $DOVETAIL_DATA, or at the publisher's address."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import polars as pl

from dovetail.core.errors import DataError
from dovetail.core.extras import require

VARIABLE = "DOVETAIL_DATA"


@dataclass(frozen=True)
class PublishedFile:
    """One file as its publisher gives it.

    Parameters
    ----------
    address : str
        Where it is fetched.
    checksum : str
        SHA-256, in hexadecimal.
    """

    address: str
    checksum: str


@dataclass(frozen=True)
class DataSource:
    """A data set that somebody else publishes.

    Parameters
    ----------
    folder : str
        Its folder in $DOVETAIL_DATA.
    where : str
        Who publishes it, under which licence, where: the last sentence of every error.
    fixed : file name -> PublishedFile
        The files whose content is known; the others are checked by their columns alone.
    """

    folder: str
    where: str
    fixed: Mapping[str, PublishedFile] = field(default_factory=dict)


def data_folder(name: str, where: str) -> Path:
    """The folder `name` in $DOVETAIL_DATA, whether or not it is there."""
    root = os.environ.get(VARIABLE)
    if not root:
        raise DataError(f"{VARIABLE} must name the folder that holds {name}/. {where}.")
    return Path(root) / name


def locate(source: DataSource, *names: str, path: str | Path | None) -> Path:
    """The file called by the first of `names` that is there: at `path` (the file or its folder) or at home.

    Raises
    ------
    DataError
        When there is none, or when a file at home is not the published one; a `path` is taken as it is.
    """
    place = data_folder(source.folder, source.where) if path is None else Path(path)
    if path is not None and not place.is_dir():
        names, place = (place.name,), place.parent
    found = next((place / name for name in names if (place / name).is_file()), None)
    if found is None:
        raise DataError(f"{place / names[0]}: no such file. {source.where}.")
    if path is None and found.name in source.fixed:
        _check(found, source.fixed[found.name], source)
    return found


def download(source: DataSource, root: str | Path) -> Path:
    """Fetch the published files of a source into its folder in `root`; those that are there already are only checked.

    Raises
    ------
    DataError
        When the source can only be had by hand, cannot be reached, or gives another file than was published.
    MissingExtraError
        Without pooch.

    Examples
    --------
    ``download(adult.SOURCE, "data")``, then ``export DOVETAIL_DATA=data``.
    """
    if not source.fixed:
        raise DataError(f"{source.folder} must be fetched by hand. {source.where}.")
    pooch = require("pooch", extra="data")
    place = Path(root) / source.folder
    for name, file in source.fixed.items():
        try:
            pooch.retrieve(file.address, f"sha256:{file.checksum}", fname=name, path=place)
        except ValueError:  # what pooch raises when the checksum is wrong
            raise DataError(f"{file.address}: not the file with SHA-256 {file.checksum}. {source.where}.") from None
        except OSError as error:
            raise DataError(f"{file.address}: cannot be fetched to {place} ({type(error).__name__}).") from None
    return place


def require_columns(path: Path, present: Iterable[str], wanted: Iterable[str], *, source: DataSource) -> None:
    """DataError when a file lacks columns; names the first."""
    there = set(present)
    missing = [name for name in wanted if name not in there]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise DataError(f"{path}: has no column {missing[0]!r}{more}. {source.where}.")


@contextmanager
def parsed_as(form: str, file: Path) -> Iterator[None]:
    """Name the file and its form in one line where polars cannot read it."""
    try:
        yield
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{file}: cannot be read as {form}; {(str(error).splitlines() or [''])[0]}") from None


def _check(path: Path, file: PublishedFile, source: DataSource) -> None:
    seen = sha256(path.read_bytes()).hexdigest()
    if seen != file.checksum:
        raise DataError(
            f"{path}: is not the published file (SHA-256 {seen[:12]}.. instead of {file.checksum[:12]}..); get it "
            f"again, or give its path to read it all the same. {source.where}."
        )

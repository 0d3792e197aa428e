"""Fitted shufflers as files: one .npz with a JSON header, of public data only."""

from __future__ import annotations

import json
import zipfile
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.core.errors import DataError, StorageError, UnsupportedError
from dovetail.core.stages import Shuffler
from dovetail.shuffle.fitting.components import PartitionedOrder
from dovetail.shuffle.fitting.fit_provenance import FitProvenance
from dovetail.shuffle.groups.groups import Groups
from dovetail.shuffle.groups.ranges import Ranges
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.noisy_sort import NoisySort
from dovetail.shuffle.planar_laplace import PlanarLaplace
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups

FORMAT = "dovetail shuffler"
VERSION = 1

Arrays = dict[str, NDArray[Any]]
Header = dict[str, Any]

_KINDS: tuple[type[Shuffler], ...] = (Identity, Uniform, WithinGroups, Mallows, NoisySort, PlanarLaplace)
_BY_NAME = {kind.name: kind for kind in _KINDS}


def save(shuffler: Shuffler, path: str | Path) -> None:
    """Write a fitted shuffler to a .npz file: groups, reference order, noise, provenance.

    The file is public, as everything that shufflers are fitted to must be.
    """
    if type(shuffler) not in _KINDS:
        raise UnsupportedError(f"{type(shuffler).__name__} cannot be saved; {', '.join(_BY_NAME)} can.")
    header: Header = {"format": FORMAT, "version": VERSION, "shuffler": shuffler.name}
    arrays: Arrays = {}
    _pack(shuffler, "", header, arrays)
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    try:
        with Path(path).open("wb") as file:
            np.savez(file, header=text, **arrays)  # type: ignore[arg-type]
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror or error}.") from error


def load(path: str | Path) -> Shuffler:
    """The shuffler that `save` wrote; its promise is checked again from the groups in the file."""
    header, arrays = _read(path)
    if header.get("format") != FORMAT:
        raise DataError(f"{path}: not a saved shuffler.")
    version = header.get("version")
    if version != VERSION:
        raise UnsupportedError(f"{path}: written in version {version!r} of the format, this is version {VERSION}.")
    kind = _BY_NAME.get(str(header.get("shuffler")))
    if kind is None:
        raise UnsupportedError(f"{path}: holds a shuffler of the unknown kind {header.get('shuffler')!r}.")
    try:
        shuffler: Shuffler = _unpack(kind, "", header, arrays)
        return shuffler
    except (KeyError, TypeError, IndexError, OverflowError) as error:
        raise DataError(f"{path}: a damaged shuffler; {error!r}.") from error
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def _read(path: str | Path) -> tuple[Header, Arrays]:
    try:
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(bytes(arrays.pop("header")))
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or 'not a saved shuffler'}.") from error
    except (ValueError, KeyError, TypeError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: not a saved shuffler.") from error
    if not isinstance(header, dict):
        raise DataError(f"{path}: not a saved shuffler.")
    return header, arrays


def _pack(value: Any, prefix: str, header: Header, arrays: Arrays) -> None:
    """The constructor's fields of a value: arrays to `arrays`, plain ones to `header`, names joined by dots."""
    for field in fields(value):
        name, item = prefix + field.name, getattr(value, field.name)
        if not field.init:
            continue
        if isinstance(item, np.ndarray):
            arrays[name] = item
        elif isinstance(item, FitProvenance):
            header[name] = asdict(item)
        elif isinstance(item, (Groups, PartitionedOrder, Ranges)):
            _pack(item, f"{name}.", header, arrays)
        else:
            header[name] = item


def _unpack(kind: type[Any], prefix: str, header: Header, arrays: Arrays) -> Any:
    """The value that `_pack` took apart."""
    given: dict[str, Any] = {}
    for field in fields(kind):
        name = prefix + field.name
        if not field.init:
            continue
        inner = {"groups": Groups, "line": PartitionedOrder, "rows": Ranges, "owners": Ranges}.get(field.name)
        if inner is not None:
            given[field.name] = _unpack(inner, f"{name}.", header, arrays)
        elif field.name == "provenance":
            provenance = header[name]
            given[field.name] = FitProvenance(**{**provenance, "candidates": tuple(provenance["candidates"])})
        else:
            given[field.name] = arrays[name] if name in arrays else header[name]
    return kind(**given)

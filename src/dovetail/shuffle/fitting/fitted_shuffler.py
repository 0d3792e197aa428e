"""Fitted shufflers as files: one .npz with a JSON header, of public data only."""

from __future__ import annotations

import json
import zipfile
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Self, final, get_type_hints

import numpy as np
from numpy.typing import NDArray

from dovetail.core.errors import DataError, StorageError, UnsupportedError
from dovetail.core.stages import Shuffler
from dovetail.shuffle.fitting.fit_provenance import FitProvenance

FORMAT = "dovetail shuffler"
VERSION = 2  # 1 had other names of fields

Arrays = dict[str, NDArray[Any]]
Header = dict[str, Any]


class FittedShuffler(Shuffler):
    """A shuffler that can be saved and loaded: a frozen dataclass of numbers, arrays and further such dataclasses.

    Laws: what is loaded draws from the same distribution and gives the same guarantee as what was saved; loading
    builds the object anew, so the guarantee is checked again from the groups in the file.
    """

    @final
    def save(self, path: str | Path) -> None:
        """Write groups, reference order, noise and provenance to a .npz file; no report, no randomness.

        The file is public, as everything that shufflers are fitted to must be.
        """
        header: Header = {"format": FORMAT, "version": VERSION, "shuffler": self.name}
        arrays: Arrays = {}
        _pack(self, "", header, arrays)
        text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        try:
            with Path(path).open("wb") as file:
                np.savez(file, header=text, **arrays)  # type: ignore[arg-type]
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror or error}.") from error

    @final
    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The shuffler that `save` wrote, for example `Mallows.load(path)`; `load_shuffler` reads every kind."""
        header, arrays = read_archive(path)
        if header["shuffler"] != cls.name:
            raise UnsupportedError(f"{path}: holds a shuffler of the kind {header['shuffler']!r}, not {cls.name!r}.")
        return cls.from_archive(path, header, arrays)

    @final
    @classmethod
    def from_archive(cls, path: str | Path, header: Header, arrays: Arrays) -> Self:
        """The shuffler in the parts of a file; `path` is for errors."""
        try:
            shuffler: Self = _unpack(cls, "", header, arrays)
            return shuffler
        except (KeyError, TypeError, IndexError, OverflowError) as error:
            raise DataError(f"{path}: a damaged shuffler; {error!r}.") from error
        except DataError as error:
            raise DataError(f"{path}: {error}") from error


def read_archive(path: str | Path) -> tuple[Header, Arrays]:
    """Header, with format, version and kind checked, and arrays of a saved shuffler."""
    try:
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(bytes(arrays.pop("header")))
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or 'not a saved shuffler'}.") from error
    except (ValueError, KeyError, TypeError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: not a saved shuffler.") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT or "shuffler" not in header:
        raise DataError(f"{path}: not a saved shuffler.")
    version = header.get("version")
    if version != VERSION:
        raise UnsupportedError(
            f"{path}: written in version {version!r} of the format, this is version {VERSION}; fit and save it again."
        )
    return header, arrays


def _pack(value: Any, prefix: str, header: Header, arrays: Arrays) -> None:
    """The constructor's fields of a value: arrays to `arrays`, plain ones to `header`, names joined by dots."""
    for field in fields(value):
        name, item = prefix + field.name, getattr(value, field.name)
        if not field.init:
            continue
        if isinstance(item, np.ndarray):
            arrays[name] = item
        elif is_dataclass(item):
            _pack(item, f"{name}.", header, arrays)
        else:
            header[name] = item


def _unpack(kind: type[Any], prefix: str, header: Header, arrays: Arrays) -> Any:
    """The value that `_pack` took apart; the type of a field says what it is made of."""
    given: dict[str, Any] = {}
    types = get_type_hints(kind)
    for field in fields(kind):
        name = prefix + field.name
        if not field.init:
            continue
        if is_dataclass(types[field.name]):
            given[field.name] = _unpack(types[field.name], f"{name}.", header, arrays)
        elif kind is FitProvenance and name not in header:
            continue  # words about the fit that older files lack; they are no part of the law
        else:
            item = arrays[name] if name in arrays else header[name]
            given[field.name] = tuple(item) if isinstance(item, list) else item  # JSON knows no tuples
    return kind(**given)

"""Candidates and their encoder as one file without code in it."""

from __future__ import annotations

import io
import json
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from dovetail.core.errors import DataError, DovetailError, ParameterError
from dovetail.text.candidates.candidates import Candidates
from dovetail.text.encoders.encoder import SentenceEncoder
from dovetail.text.encoders.recoder import BASES, RecodedEncoder

VERSION = 1
ENCODERS: dict[str, type[SentenceEncoder]] = {**BASES, RecodedEncoder.name: RecodedEncoder}
_ARRAYS = ("rows", "centres", "clusters", "projections", "samples", "owners")


def candidates_bytes(candidates: Candidates, encoder: SentenceEncoder) -> bytes:
    """The content of a candidates file (.npz): arrays, and a description in JSON."""
    description = {
        "format": "dovetail text candidates",
        "schema_version": VERSION,
        "encoder": encoder.name,
        "names": candidates.names,
        "labels": candidates.labels,
        "half_range": candidates.half_range,
        "approved": candidates.approved,
        "digest": candidates.digest,
        "encoder_digest": _digest(encoder),
    }
    arrays = {name: getattr(candidates, name) for name in _ARRAYS}
    made = io.BytesIO()
    arrays |= {f"encoder_{name}": part for name, part in encoder.state().items()}
    np.savez_compressed(made, description=json.dumps(description), **arrays)
    return made.getvalue()


def read_candidates(place: str | Path) -> tuple[Candidates, SentenceEncoder]:
    """Candidates and encoder from such a file.

    Raises
    ------
    DataError
        Where the file is missing, is none of ours, is of another version, or was changed.
    """
    file = Path(place)
    try:
        with np.load(io.BytesIO(file.read_bytes()), allow_pickle=False) as found:
            content = {name: found[name] for name in found.files}
    except FileNotFoundError:
        raise DataError(f"{file}: no such file; make it with `dovetail text candidates`.") from None
    except (OSError, ValueError, EOFError, BadZipFile):
        raise DataError(f"{file}: is no candidates file; make it with `dovetail text candidates`.") from None
    try:
        return _restore(content, file)
    except DovetailError as error:
        raise DataError(f"{file}: {error}") from None
    except (KeyError, ValueError, TypeError):
        raise DataError(f"{file}: is damaged; make it again with `dovetail text candidates`.") from None


def _restore(content: dict[str, Any], file: Path) -> tuple[Candidates, SentenceEncoder]:
    description = json.loads(str(content["description"]))
    if description["schema_version"] != VERSION:
        raise ParameterError(f"is of version {description['schema_version']}, this program reads {VERSION}.")
    labels = description["labels"]
    candidates = Candidates(
        **{name: content[name] for name in _ARRAYS},
        names=tuple(description["names"]),
        labels=None if labels is None else tuple(labels),
        half_range=description["half_range"],
        approved=description["approved"],
    )
    if candidates.digest != description["digest"]:
        raise ParameterError("was changed after it was made; make it again.")
    state = {name.removeprefix("encoder_"): part for name, part in content.items() if name.startswith("encoder_")}
    encoder = ENCODERS[description["encoder"]].restore(state)
    if _digest(encoder) != description["encoder_digest"]:
        raise ParameterError("was changed after it was made; make it again.")
    return candidates, encoder


def _digest(encoder: SentenceEncoder) -> str:
    made = sha256(encoder.name.encode())
    for name, part in sorted(encoder.state().items()):
        content = np.ascontiguousarray(part)
        made.update(repr((name, content.shape, str(content.dtype))).encode() + content.tobytes())
    return made.hexdigest()[:16]

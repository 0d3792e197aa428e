"""Word-level metric privacy: every word is moved in its embedding space. Another unit than the sentence's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import privacy_budget
from dovetail.core.entropy import Entropy
from dovetail.text.baselines.uniforms import open_uniforms
from dovetail.text.encoders.svd import SVDEncoder, words_of


@dataclass(frozen=True, eq=False)
class WordMetricNoise:
    r"""Each known word becomes the vocabulary word nearest to its vector plus noise.

    .. math:: \Pr[z] \propto e^{-\epsilon |z|}, \qquad \text{guarantee: } \epsilon\, |\phi(w) - \phi(w')|
              \text{ for each word}

    Its epsilon is for each unit of distance between two words, with the number of words known: incomparable with
    sentence privacy at the same number, and weaker where words are close.

    Source
    ------
    Feyisetan, Balle, Drake, Diethe (2020), Privacy- and Utility-Preserving Textual Analysis via Calibrated
    Multivariate Perturbations, WSDM, Algorithm 1.
    """

    label: ClassVar[str] = "words moved by metric noise"
    unit: ClassVar[str] = "one word, epsilon times its distance to another: no sentence privacy, incomparable"

    encoder: SVDEncoder
    epsilon: float

    def __post_init__(self) -> None:
        privacy_budget("epsilon", self.epsilon)

    def release(self, sentence: str, rng: Entropy) -> str:
        """The sentence with every known word replaced, unknown words dropped; simulations only."""
        from scipy.special import gammaincinv, ndtri

        places = [place for word in words_of(sentence) if (place := self._places.get(word)) is not None]
        if not places:
            return ""
        d = self.encoder.dimension
        drawn = open_uniforms(rng, len(places) * (d + 1)).reshape(len(places), d + 1)
        directions = ndtri(drawn[:, :d])
        radii = gammaincinv(d, drawn[:, d:]) / self.epsilon
        noisy = self._vectors[places] + radii * directions / np.linalg.norm(directions, axis=1, keepdims=True)
        nearest = (noisy.astype(np.float32) @ self._vectors.T - self._halves).argmax(axis=1)
        return " ".join(self.encoder.vocabulary[one] for one in nearest)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.encoder.vocabulary)}

    @cached_property
    def _vectors(self) -> NDArray[np.float32]:
        """Unit vectors of all words, so that distances are at most 2."""
        vectors = self.encoder.components
        unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return np.asarray(unit, dtype=np.float32)

    @cached_property
    def _halves(self) -> NDArray[np.float32]:
        return np.asarray((self._vectors**2).sum(axis=1) / 2)

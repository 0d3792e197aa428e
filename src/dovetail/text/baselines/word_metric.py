"""Word-level metric privacy: every word is moved in its embedding space. Another unit than the sentence's."""

from __future__ import annotations

from dataclasses import dataclass

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

    encoder: SVDEncoder
    epsilon: float

    unit = "one word, by its distance to another"

    def release(self, sentence: str, rng: Entropy) -> str:
        """The sentence with every known word replaced, unknown words dropped; simulations only."""
        from scipy.special import gammaincinv, ndtri

        privacy_budget("epsilon", self.epsilon)
        places = {word: place for place, word in enumerate(self.encoder.vocabulary)}
        vectors, d = self._unit_vectors(), self.encoder.dimension
        moved = []
        for word in words_of(sentence):
            if word in places:
                drawn = open_uniforms(rng, d + 1)
                direction = ndtri(drawn[:d])
                radius = gammaincinv(d, drawn[d]) / self.epsilon
                noisy = vectors[places[word]] + radius * direction / np.linalg.norm(direction)
                moved.append(self.encoder.vocabulary[int(((vectors - noisy) ** 2).sum(axis=1).argmin())])
        return " ".join(moved)

    def _unit_vectors(self) -> NDArray[np.float64]:
        vectors = self.encoder.components
        return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12))

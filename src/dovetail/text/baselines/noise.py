"""Noise added to the mean embedding: box truncation with Laplace noise, and the L2 Laplace mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import privacy_budget
from dovetail.core.entropy import Entropy
from dovetail.text.baselines.uniforms import open_uniforms
from dovetail.text.candidates.candidates import Candidates
from dovetail.text.integer_rows import UNIT, Rows


@dataclass(frozen=True)
class TruncationLaplace:
    r"""Sentences clipped to a public box, averaged, with Laplace noise in every dimension.

    .. math:: \bar s_i + \mathrm{Lap}(d\, w_i / (k \epsilon))

    Parameters
    ----------
    candidates : Candidates
        The box: their central three quarters in each dimension.
    epsilon : float, nats
        For one replaced sentence; every dimension gets epsilon / d. k is public.

    Source
    ------
    Meehan, Mrini, Chaudhuri (2022), section 3.5.2.
    """

    label: ClassVar[str] = "clipped to a box, Laplace noise"

    candidates: Candidates
    epsilon: float

    def release(self, sentences: Rows, rng: Entropy) -> NDArray[np.float64]:
        """A noisy mean (d,), in whole numbers of 1/4096; simulations only."""
        epsilon = privacy_budget("epsilon", self.epsilon)
        low, high = np.quantile(self.candidates.rows, [0.125, 0.875], axis=0)
        mean = np.clip(sentences, low, high).mean(axis=0)
        scale = mean.size * (high - low) / (len(sentences) * epsilon)
        flat = 2.0 * open_uniforms(rng, mean.size) - 1.0
        return np.asarray(mean - scale * np.sign(flat) * np.log1p(-np.abs(flat)))


@dataclass(frozen=True)
class L2Laplace:
    r"""The mean of unit sentences with noise of density proportional to exp(-k epsilon |z| / 2).

    .. math:: |z| \sim \mathrm{Gamma}(d,\ 2/(k \epsilon)), \text{ direction uniform; sensitivity } 2/k

    Source
    ------
    Chaudhuri, Monteleoni, Sarwate (2011), Differentially Private Empirical Risk Minimization, section 3.2.
    """

    label: ClassVar[str] = "L2 Laplace noise"

    epsilon: float

    def release(self, sentences: Rows, rng: Entropy) -> NDArray[np.float64]:
        """A noisy mean (d,), in whole numbers of 1/4096; simulations only."""
        from scipy.special import gammaincinv, ndtri

        epsilon, d = privacy_budget("epsilon", self.epsilon), sentences.shape[1]
        drawn = open_uniforms(rng, d + 1)
        direction = ndtri(drawn[:d])
        radius = gammaincinv(d, drawn[d]) * 2.0 / (len(sentences) * epsilon)
        return np.asarray(sentences.mean(axis=0) + UNIT * radius * direction / np.linalg.norm(direction))

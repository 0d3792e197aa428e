r"""Mallows laws under Cayley's and Hamming's distance, for comparison studies only: nothing else may use them.

.. math:: \Pr[\kappa] \propto e^{-\theta d(\kappa)}

Their sensitivities g - 1 and g do not depend on a reference order, so nothing is gained from neighbours: to keep half
of 10,000 people in place at groups of 30, Hamming needs alpha of about 256.

Source
------
Irurozki, Calvo, Lozano (2016), PerMallows: An R Package for Mallows and Generalized Mallows Models, Journal of
Statistical Software 71(12).
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from dovetail.core.checks import not_negative_or_infinite, whole
from dovetail.core.entropy import Entropy, Permutation, entropy_or_system

Logs = NDArray[np.float64]


def cayley_mallows(n: int, theta: float, rng: Entropy | None = None) -> Permutation:
    """A draw by n - 1 independent choices: i stays with probability e^theta / (e^theta + i), else swaps with a j < i.

    Double precision: for studies, not for a promise.
    """
    rng = entropy_or_system(rng)
    n, theta = whole("n", n, least=1), not_negative_or_infinite("theta", theta)
    result = np.arange(n, dtype=np.int64)
    moves = _uniform(n, rng) * (1.0 + np.arange(n) * math.exp(-theta)) >= 1.0
    partners = (_uniform(n, rng) * np.arange(n)).astype(np.int64)
    for i in np.flatnonzero(moves):
        result[i], result[partners[i]] = result[partners[i]], result[i]
    return result


def hamming_mallows(n: int, theta: float, rng: Entropy | None = None) -> Permutation:
    """A draw by the number h of people who move, with weight C(n, h) D_h e^(-theta h), who they are, and how.

    Double precision: for studies, not for a promise.
    """
    rng = entropy_or_system(rng)
    n, theta = whole("n", n, least=1), not_negative_or_infinite("theta", theta)
    weights = hamming_weights(n, theta)
    total = np.cumsum(np.exp(weights - weights.max()))
    h = int(np.searchsorted(total, _uniform(1, rng)[0] * total[-1], side="right"))
    movers = np.sort(rng.permutation(n)[:h])
    result = np.arange(n, dtype=np.int64)
    while h:
        mixed = rng.permutation(h)  # a uniform derangement by rejection, after e attempts on average
        if (mixed != np.arange(h)).all():
            result[movers] = movers[mixed]
            break
    return result


def hamming_weights(n: int, theta: float) -> Logs:
    r"""log(C(n, h) D_h) - theta h for h = 0..n; D_h = h! sum (-1)^i / i! counts derangements."""
    h = np.arange(n + 1)
    signs = np.where(np.arange(n + 1) % 2, -1.0, 1.0) * np.exp(-gammaln(np.arange(n + 1) + 1.0))
    with np.errstate(divide="ignore"):
        derangements = np.log(np.maximum(np.cumsum(signs), 0.0))  # D_h / h!
    derangements[1:2] = -math.inf
    return np.asarray(gammaln(n + 1.0) - gammaln(n - h + 1.0) + derangements - theta * h)


def cayley_log_normalizer(n: int, theta: float) -> float:
    """log of the product of 1 + i e^-theta over i = 1..n-1."""
    return float(np.log1p(np.arange(1, n) * math.exp(-theta)).sum())


def hamming_log_normalizer(n: int, theta: float) -> float:
    """log of the sum of the weights."""
    return float(logsumexp(hamming_weights(n, theta)))


def _uniform(count: int, rng: Entropy) -> Logs:
    """Uniform doubles in [0, 1)."""
    return np.asarray((rng.words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53)

"""Which of these sentences was in the document? Embedding inversion beside chance and beside what epsilon allows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dovetail.core.errors import ParameterError
from dovetail.text.deep_candidate import DeepCandidate
from dovetail.text.integer_rows import Rows, inner_products


@dataclass(frozen=True)
class InversionSuccess:
    """How often an attacker who knows all sentences but one names that one, among L equally likely ones.

    Parameters
    ----------
    chance : float
        1/L.
    nearest : float
        Names the sentence nearest to the released candidate.
    best : float
        Bayes-optimal: knows the mechanism and the other sentences; exact up to the law's quadrature.
    bound : float
        e^epsilon / (e^epsilon + L - 1): nothing that keeps epsilon can be inverted more often.
    """

    chance: float
    nearest: float
    best: float
    bound: float


def inversion_success(mechanism: DeepCandidate, known: Rows, possible: Rows) -> InversionSuccess:
    r"""Success of naming one unknown sentence, exact over the mechanism's own randomness.

    .. math:: V = \frac{1}{L} \sum_o \max_{s} \Pr[M(x_{-1}, s) = o]

    Parameters
    ----------
    mechanism : DeepCandidate
    known : int16 array (k - 1, d)
        The sentences that the attacker knows.
    possible : int16 array (L, d)
        What the last one may be, L at least 2.

    Source
    ------
    Smith (2009), On the Foundations of Quantitative Information Flow, Definition 3; bound: the Bayes capacity of
    epsilon-private channels.
    """
    if len(possible) < 2:
        raise ParameterError(f"`possible` must hold at least 2 sentences, got {len(possible)}.")
    law = np.array([mechanism.probabilities(np.concatenate([known, one[None, :]])) for one in possible])
    size = len(possible)
    shape = mechanism.utility.candidates.rows
    if law.shape[1] == len(shape):
        nearest = inner_products(shape, possible).argmax(axis=1)
    else:  # clusters: the released candidate tells no more than its cluster
        nearest = inner_products(mechanism.utility.candidates.centres, possible).argmax(axis=1)
    return InversionSuccess(
        chance=1.0 / size,
        nearest=float(law[nearest, np.arange(law.shape[1])].sum() / size),
        best=float(law.max(axis=0).sum() / size),
        bound=1.0 / (1.0 + (size - 1) * math.exp(-mechanism.budget.epsilon)),
    )

r"""One of m drawn words or of their opposites, picked by k-ary response: only the word that was picked is sent.

Relative to uniform signed words the law of a report is, with f_x(w, s) the mean over places j of the probability that
x picks (j, s) given that word j is w,

.. math:: \frac{dR_x}{d\mu} = 1 + (p - 1) f_x(w, s), \qquad |\mu| = 2 m \cdot \mathrm{lie}

*Any* rule of picking has E[f_x; A] <= (1 - (1 - q)^m) / (2 m) for a set A of signed words, where q, at most twice the
share of A, is the probability that a word is in A with one of its signs: the picked word can be in A only if one of
the m is. Where f is 0 or U^(m-1), each with probability 1/2 and U uniform, the largest sets have exactly this. So f_x
is below that law in convex order, and Z_a - E Z_c is largest where both have it and one is 0 where the other is not.
"""

from __future__ import annotations

import math

import numpy as np

from dovetail.account.privacy_blanket import BlanketLaw, DeclaredLaw
from dovetail.account.questions import ChosenWord
from dovetail.core.special import Reals

CELLS = 256  # of the rank of the word that was picked
COARSE = 48  # of two independent ranks


def word_law(word: ChosenWord, *, cells: int = CELLS) -> BlanketLaw:
    r"""Upper law: the ranks of two opposite values.

    .. math:: (1 + (p - 1) V, 1), \; (1, 1 + (p - 1) V): \; m \cdot \mathrm{lie} \text{ each}, \qquad V = U^{m - 1}

    V is gathered in cells and moved to their two ends with the mean kept: above in convex order.

    Examples
    --------
    >>> from dovetail.randomize.krr import KRR
    >>> law = word_law(ChosenWord((KRR(18, 4.0),)))
    >>> round(law.epsilon0, 9), round(1.0 - law.remainder, 3)
    (4.0, 0.251)
    """
    p, lie = _ratio_and_lie(word)
    if word.words == 1:
        return _either_way(np.array([p]), np.array([lie]))
    edges = np.linspace(0.0, 1.0, cells + 1)
    held, mean = _ranks(word.words, edges)
    up = np.clip((mean - edges[:-1]) / np.diff(edges), 0.0, 1.0)
    masses = np.zeros(edges.size)
    masses[:-1] += held * (1.0 - up)
    masses[1:] += held * up
    return _either_way(1.0 + (p - 1.0) * edges, word.words * lie * masses)


def word_dataset(word: ChosenWord, *, cells: int = COARSE) -> BlanketLaw:
    """Law below a bad collection: two opposite values, everybody else at right angles to them, or on the second.

    For directions that look drawn from the normal law, as those of `ClosestDirection` do: then ranks are uniform, and
    those of values at right angles independent. Ranks are told apart by cells only (data processing).
    """
    p, lie = _ratio_and_lie(word)
    held, mean = _ranks(word.words, np.linspace(0.0, 1.0, cells + 1))
    ratio, mass = 1.0 + (p - 1.0) * mean, word.words * lie * held
    first, weight = np.concatenate([ratio, 1.0 / ratio]), np.concatenate([mass, mass * ratio])
    second = BlanketLaw(first, np.ones(first.size), weight)
    edges = np.expm1(np.linspace(0.0, math.log(p), cells // 2 + 1)) / (p - 1.0)  # the others count by 1 / ratio
    edges[-1] = 1.0
    their_held, their_mean = _ranks(word.words, edges)
    own = np.append(1.0 + (p - 1.0) * their_mean, 1.0)  # the sign that a word has for them, or the other one
    share = 0.5 * np.append(their_held, 1.0) * own
    larger, smaller = (ratio / own[:, None]).ravel(), np.repeat(1.0 / own, ratio.size)
    weight = np.tile((share[:, None] * mass).ravel(), 2)
    aside = BlanketLaw(np.concatenate([larger, smaller]), np.concatenate([smaller, larger]), weight)
    return max(second, aside, key=lambda law: law.spread)


def _ratio_and_lie(word: ChosenWord) -> tuple[float, float]:
    """p, and the probability of each symbol that is not held."""
    channel = word.response.channel()
    base = min(channel.keep, channel.lie)
    return max(channel.keep, channel.lie) / base, base / channel.total


def _ranks(m: int, edges: Reals) -> tuple[Reals, Reals]:
    """Probabilities and means of V = U^(m - 1) in cells with these edges, from 0 to 1; all of it is 1 for m = 1."""
    if m == 1:
        return np.ones(1), np.ones(1)
    u = edges ** (1.0 / (m - 1.0))
    held = np.diff(u)
    return held, np.diff(u * edges) / (m * held)


def _either_way(places: Reals, masses: Reals) -> BlanketLaw:
    """Atoms (place, 1) and (1, place), of equal mass."""
    ones, twice = np.ones_like(places), np.concatenate([masses, masses])
    return BlanketLaw(np.concatenate([places, ones]), np.concatenate([ones, places]), twice)


LAW = DeclaredLaw(
    ChosenWord, "one word of several, by k-ary randomized response", dataset=word_dataset, upper=word_law
)

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
from itertools import pairwise

import numpy as np

from dovetail.account.privacy_blanket import BlanketLaw, DeclaredLaw
from dovetail.account.questions import ChosenWord
from dovetail.core.special import Reals

CELLS = 256  # of the rank of the word that was picked
COARSE = 96  # of the logarithm of a ratio in an attack
TURNS = np.radians(np.arange(0.0, 50.0, 2.5)).tolist()  # of the two values away from the one of the others
PARTS, FEW_PARTS, NODES = 80, 24, 4  # cells of radii in a plane of words, and of its angles; nodes in each
FAR = 75.0  # e^(-FAR / 2) of the words are left out


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
    """Law below a bad collection: everybody else holds t, and the two values are at equal angles from it.

    For directions that look drawn from the normal law, as those of `ClosestDirection` do. The two values are nearly
    opposite, both turned away from t: the words that stand for one of them are then hardly picked by t. How far they
    are turned is tried (without `word.planar` they are opposite). Reports with about the same two ratios are not told
    apart (data processing).
    """
    p, lie = _ratio_and_lie(word)

    def rows(turn: float, parts: int) -> Reals:
        """Masses of the first value, the second one and t where words are on the first one's side, by cells."""
        held = 1.0 + (p - 1.0) * np.stack(_picked(word.words, turn, parts)[1:])
        mass = (_picked(word.words, turn, parts)[0] * held).sum(axis=2)
        return np.asarray(2.0 * word.words * lie * mass)

    def spread(turn: float) -> float:
        first, second, others = rows(turn, FEW_PARTS)
        return float(((first - second) ** 2 / others).sum())

    first, second, others = rows(max(TURNS, key=spread) if word.planar else 0.0, PARTS)
    step = math.log(p) / cells
    ratios = np.rint(np.log([first / others, second / others]) / step).astype(np.int64)
    kinds, kind = np.unique(ratios, axis=1, return_inverse=True)
    gathered = [np.bincount(kind.ravel(), row, kinds.shape[1]) for row in (first, second, others)]
    total = gathered[0].sum() + gathered[1].sum(), 2.0 * gathered[2].sum()  # both sides; 1 but for the quadrature
    z0, z1 = (row / gathered[2] * (total[1] / total[0]) for row in gathered[:2])
    return BlanketLaw(np.append(z0, z1), np.append(z1, z0), np.tile(gathered[2] / total[1], 2))


def _picked(m: int, turn: float, parts: int) -> tuple[Reals, Reals, Reals, Reals]:
    """In cells of the half plane of words nearer to the first value than to the second, by Gauss's rule in each.

    The plane is that of the values, words have two normal coordinates there, and t is (0, -1). Returns probabilities
    of words, and how likely a word with its sign is picked by the two values and by t, each (cells, nodes).
    """
    from scipy.special import log_ndtr

    half = 0.5 * math.pi
    corners = np.unique([-half, turn - half, 0.0, half - turn, half])  # where one of the three has a kink
    angles = np.unique(np.concatenate([np.linspace(a, b, parts // 4 + 1) for a, b in pairwise(corners)]))
    radii = np.linspace(0.0, math.sqrt(2.0 * math.log(m) + FAR), parts + 1)
    (angle, arc), (radius, width) = _gauss(angles), _gauss(radii)
    mass = (width * radius * np.exp(-0.5 * radius**2))[:, None, :, None] * (arc / (2.0 * math.pi))[None, :, None, :]

    def picks(towards: float) -> Reals:
        along = radius[:, None, :, None] * np.cos(angle - towards)[None, :, None, :]
        larger = 2.0 * np.exp(log_ndtr(-np.abs(along)))  # that another word is nearer, on either side
        return np.where(along > 0.0, np.exp((m - 1.0) * np.log1p(-np.minimum(larger, 1.0 - 1e-16))), 0.0)

    fields = (mass, picks(turn), picks(math.pi - turn), picks(-half))
    first, second, third, fourth = (np.asarray(field.reshape(mass.shape[0] * mass.shape[1], -1)) for field in fields)
    return first, second, third, fourth


def _gauss(edges: Reals) -> tuple[Reals, Reals]:
    """Nodes and weights of Gauss's rule between neighbouring edges, (cells, nodes)."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    width = 0.5 * np.diff(edges)[:, None]
    return edges[:-1, None] + width * (1.0 + nodes), width * weights


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

"""Subset selection: subsets that hold both of two values, or neither, say nothing about which of them it was."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import perm

import numpy as np

from dovetail.account.privacy_blanket import BlanketLaw, DeclaredLaw, Exposure
from dovetail.randomize.subset_selection import SubsetSelection
from dovetail_protocol.exact_thresholds import WORD


def subset_law(randomizer: SubsetSelection) -> BlanketLaw:
    r"""Upper law for two of k symbols, the rarer mass of every subset as mu.

    .. math:: (p, 1), (1, p): \tbinom{k-2}{d-1} b, \quad (p, p): \tbinom{k-2}{d-2} b, \quad
              (1, 1): \tbinom{k-2}{d} b, \qquad b = \frac{1}{p \binom{k-1}{d-1} + \binom{k-1}{d}}

    p is the realized ratio. All pairs of symbols are alike by symmetry. For d = 1 it is the law of k-ary randomized
    response.

    Examples
    --------
    >>> subset_law(SubsetSelection(k=9, epsilon=1.0)).mass.round(4).tolist()
    [0.1407, 0.1407, 0.0201, 0.4221]
    """
    k, d, ratio = randomizer.k, randomizer.size, float(randomizer.ratio)
    apart, both, neither = (_share(k - 2, d - taken, k, d) for taken in (1, 2, 0))
    base = _rarer(randomizer)
    masses = [apart * base, apart * base, both * base, neither * base]
    return BlanketLaw([ratio, 1.0, ratio, 1.0], [1.0, ratio, ratio, 1.0], masses)


def subset_dataset(randomizer: SubsetSelection) -> BlanketLaw:
    """Exact law of a bad collection: two symbols, and everybody else on a third one (on the second for k = 2)."""
    k, d, ratio = randomizer.k, randomizer.size, float(randomizer.ratio)
    base = _rarer(randomizer)
    first, second, masses = [], [], []
    for one, other, third in product((0, 1), repeat=3):
        if k == 2 and other != third:
            continue
        known = 2 if k == 2 else 3
        share = _share(k - known, d - one - other - (third if k > 2 else 0), k, d)
        own = ratio if third else 1.0
        first.append((ratio if one else 1.0) / own)
        second.append((ratio if other else 1.0) / own)
        masses.append(share * base * own)
    return BlanketLaw(first, second, masses)


def subset_exposures(randomizer: SubsetSelection) -> list[Exposure]:
    """All pairs are alike; others hold one of the two values or a third one."""
    k, d, ratio = randomizer.k, randomizer.size, float(randomizer.ratio)
    low = min(ratio, 1.0)
    patterns = np.array(list(product((0, 1), repeat=2 if k == 2 else 3)))
    shares = [_share(k - len(taken), d - int(taken.sum()), k, d) for taken in patterns]
    mu, z = low * _rarer(randomizer) * np.array(shares), np.where(patterns, ratio, 1.0) / low
    return [Exposure.of_ratios([(mu, z[:, 0], z[:, 1], z[:, t]) for t in range(patterns.shape[1])])]


def _rarer(randomizer: SubsetSelection) -> float:
    """Mass that all subsets would have at the rarer probability: (1 - p) k / (k - d)."""
    return float(Fraction((WORD - randomizer.device.mass) * randomizer.k, WORD * (randomizer.k - randomizer.size)))


def _share(rest: int, size: int, k: int, d: int) -> float:
    """Share of the subsets of d of k symbols whose members among k - rest of them are given, `size` being left."""
    known, taken = k - rest, d - size
    return perm(d, taken) * perm(k - d, known - taken) / perm(k, known) if 0 <= size <= rest else 0.0


LAW = DeclaredLaw(
    SubsetSelection, "subset selection", upper=subset_law, dataset=subset_dataset, exposures=subset_exposures
)

"""Local hashing: a report about another hash bucket says nothing about two given values."""

from __future__ import annotations

import numpy as np

from dovetail.account.privacy_blanket import BlanketLaw, DeclaredLaw, Exposure
from dovetail.randomize.local_hashing import LocalHashing

LEAST_AGREEMENT = 25.0 / 27.0  # times g^2, the least probability that three hashes agree
DOUBT = 2.0**-28  # what words of 32 bits may change in it


def hashing_law(randomizer: LocalHashing) -> BlanketLaw:
    r"""Upper law: the seeds are public, and two values collide with probability at least 1/g.

    .. math:: (p, 1), (1, p): \tfrac{g - 1}{g} b, \quad (p, p): \tfrac1g b, \quad
              (1, 1): \left( \tfrac{(g - 1)(g - 2)}{g} + \tfrac{g - 1}{g} \right) b, \qquad b = \frac{1}{p + g - 1}

    More collisions only move mass from (p, 1), (1, p) to (p, p), (1, 1), which lowers the convex order.
    """
    channel = randomizer.hash_channel()
    g, p, b = channel.k, channel.keep / channel.lie, channel.lie / channel.total
    apart = (g - 1) / g * b
    return BlanketLaw([p, 1.0, p, 1.0], [1.0, p, p, 1.0], [apart, apart, b / g, (g - 1) * apart])


def hashing_dataset(randomizer: LocalHashing) -> BlanketLaw:
    """Law below the worse of two collections: everybody else holds the second of two values, or a third one."""
    laws = [hashing_second_dataset(randomizer)]
    if randomizer.k > 2:
        laws.append(_third_dataset(randomizer))
    return max(laws, key=lambda law: law.spread)


def hashing_exposures(randomizer: LocalHashing) -> list[Exposure]:
    r"""Others hold one of the two values or a third one; which of the three hashes agree is public with the seeds.

    Two hashes agree with probability 1/g. With x for all three, two alone agree with probability 1/g - x each, and
    none do with 1 - 3/g + 2 x. A type's integral is convex in x, so the two ends of x stand for every three values.
    Let their distances be inversely as the coprime m1 and m2. Both seeds are uniform on a circle, so of the Fourier
    series of three arcs only the multiples of one character are left, a sum of sin(2 pi j v) / j^3:

    .. math:: x = \frac{1}{g^2} \left( 1 + \frac{B_3(\{\alpha\}) + B_3(\{\beta\}) - B_3(\{\alpha + \beta\})}
              {3 \alpha \beta (\alpha + \beta)} \right) \in \left[ \frac{25}{27 g^2}, \frac{1}{2 g} \right],
              \qquad \alpha = \frac{m_1}{g}, \; \beta = \frac{m_2}{g}

    The lower end is at alpha = beta = 3/5, the upper one at three values in a row. `DOUBT` is for words of 32 bits;
    that two hashes agree with probability up to g 2^-64 more changes nothing that a double would tell, since all
    patterns have the same mean.
    """
    g, p, b = _parameters(randomizer)
    same, apart = 1.0 / g, 1.0 - 1.0 / g
    together = [(same, p, p, p), (same * (g - 1.0), 1.0, 1.0, 1.0)]
    first, second = (apart, p, 1.0), (apart, 1.0, p)
    neither = (apart * (g - 2.0), 1.0, 1.0, 1.0)
    types: list[list[tuple[float, ...]]]
    types = [[*together, (*first, first[who]), (*second, second[who]), neither] for who in (1, 2)]
    if randomizer.k > 2:
        least, most = max(0.0, 1.5 / g - 0.5, LEAST_AGREEMENT / g**2 - DOUBT), 0.5 / g + DOUBT
        types += [_three(g, p, x) for x in ((least, most) if g > 2 else (0.25,))]
    return [Exposure.of_ratios([[b * column[0], *column[1:]] for column in (np.array(atoms).T for atoms in types)])]


def _three(g: int, p: float, x: float) -> list[tuple[float, ...]]:
    """Atoms (mass over b, ratios of both values and the third) where all three hashes agree with probability x."""
    pair, none = max(0.0, 1.0 / g - x), max(0.0, 1.0 - 3.0 / g + 2.0 * x)
    atoms: list[tuple[float, ...]] = [(x, p, p, p), (x * (g - 1.0), 1.0, 1.0, 1.0)]
    for alone in range(3):  # whose hash is not that of the other two
        own = [1.0 if who == alone else p for who in range(3)]
        atoms += [(pair, *own), (pair, *(p if z == 1.0 else 1.0 for z in own)), (pair * (g - 2.0), 1.0, 1.0, 1.0)]
    if g > 2:
        atoms += [(none, *(p if who == it else 1.0 for who in range(3))) for it in range(3)]
        atoms.append((none * (g - 3.0), 1.0, 1.0, 1.0))
    return atoms


def hashing_second_dataset(randomizer: LocalHashing) -> BlanketLaw:
    """Collisions have probability at most 1/g + g 2^-64, and a report with one says nothing."""
    g, p, b = _parameters(randomizer)
    apart = 1.0 - 1.0 / g - g * 2.0**-64
    rest = 1.0 - apart * (1.0 + p) * b
    return BlanketLaw([p, 1.0 / p, 1.0], [1.0, 1.0, 1.0], [apart * b, apart * p * b, rest])


def _third_dataset(randomizer: LocalHashing) -> BlanketLaw:
    """Values 0, 1 and 2, whose hashes all agree with probability 1/(2 g): as often as those of any three.

    What their probabilities are not known to is merged into one atom that says nothing, as seeds alone do.
    """
    g, p, b = _parameters(randomizer)
    atoms = np.array(_three(g, p, 0.5 / g)).T
    mass = np.maximum(0.0, atoms[0] - 4.0 * DOUBT * (atoms[0] > 0.0)) * b * atoms[3]
    z0, z1 = atoms[1] / atoms[3], atoms[2] / atoms[3]
    return BlanketLaw(np.append(z0, 1.0), np.append(z1, 1.0), np.append(mass, 1.0 - mass.sum()))


def _parameters(randomizer: LocalHashing) -> tuple[int, float, float]:
    """(g, p, b): buckets, likelihood ratio, mass of a lie."""
    channel = randomizer.hash_channel()
    return channel.k, channel.keep / channel.lie, channel.lie / channel.total


LAW = DeclaredLaw(
    LocalHashing,
    "local hashing",
    upper=hashing_law,
    dataset=hashing_dataset,
    exposures=hashing_exposures,
    second=hashing_second_dataset,
)

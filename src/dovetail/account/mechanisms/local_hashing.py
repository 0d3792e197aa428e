"""Local hashing: a report about another hash bucket says nothing about two given values."""

from __future__ import annotations

from dovetail.account.blanket.declared_law import DeclaredLaw
from dovetail.account.blanket.privacy_blanket import BlanketLaw
from dovetail.randomize.local_hashing import LocalHashing


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
    """Law below the collection in which everybody else holds the victim's second value.

    Collisions have probability at most 1/g + g 2^-64, and a report with one says nothing.
    """
    channel = randomizer.hash_channel()
    g, p, b = channel.k, channel.keep / channel.lie, channel.lie / channel.total
    apart = 1.0 - 1.0 / g - g * 2.0**-64
    rest = 1.0 - apart * (1.0 + p) * b
    return BlanketLaw([p, 1.0 / p, 1.0], [1.0, 1.0, 1.0], [apart * b, apart * p * b, rest])


LAW = DeclaredLaw(LocalHashing, "local hashing", upper=hashing_law, dataset=hashing_dataset)

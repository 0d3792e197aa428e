"""Unary encoding and local hashing: reports with parts that say nothing about two given values."""

from __future__ import annotations

from dovetail.account.blanket.privacy_blanket import BlanketLaw
from dovetail.account.mechanisms.finite_channel import worst_dataset
from dovetail.randomize.local_hashing import LocalHashing
from dovetail.randomize.unary import Unary
from dovetail_protocol.exact_thresholds import WORD


def unary_law(randomizer: Unary) -> BlanketLaw:
    r"""Upper law for two of k bits.

    .. math:: (P, P): g q^2, \quad (P, 1), (1, P): g q (1 - q), \quad (1, 1): g (1 - q)^2, \qquad
              P = \frac{p (1 - q)}{q (1 - p)}, \quad g = \frac{1 - p}{1 - q}

    Every value x has R_x(y) = base(y) p/q or base(y) (1 - p)/(1 - q), where base is all bits at q; so mu = g base is
    below every R_x. Only the two bits of the victim's two values enter the ratios.
    """
    own, other = (mass / WORD for mass in randomizer.masses)
    ratio = own * (1.0 - other) / (other * (1.0 - own))
    g = (1.0 - own) / (1.0 - other)
    mixed = g * other * (1.0 - other)
    return BlanketLaw(
        [ratio, ratio, 1.0, 1.0], [ratio, 1.0, ratio, 1.0], [g * other**2, mixed, mixed, g * (1.0 - other) ** 2]
    )


def unary_dataset(randomizer: Unary) -> BlanketLaw:
    """Exact law of a bad collection: everybody's value is one of the first three, so the other bits are noise."""
    few = Unary(min(randomizer.k, 3), randomizer.epsilon, randomizer.encoding)
    return worst_dataset(few.channel().matrix())


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

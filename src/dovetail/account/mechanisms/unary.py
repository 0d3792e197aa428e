"""Unary encoding: all bits but two say nothing about two given values."""

from __future__ import annotations

from itertools import product

import numpy as np

from dovetail.account.finite_channel import worst_dataset
from dovetail.account.privacy_blanket import BlanketLaw, DeclaredLaw, Exposure
from dovetail.randomize.unary import Unary
from dovetail_protocol.exact_thresholds import WORD


def unary_law(randomizer: Unary) -> BlanketLaw:
    r"""Upper law for two of k bits.

    .. math:: (P, P): g q^2, \quad (P, 1), (1, P): g q (1 - q), \quad (1, 1): g (1 - q)^2, \qquad
              P = \frac{p (1 - q)}{q (1 - p)}, \quad g = \frac{1 - p}{1 - q}

    Every value x has R_x(y) = base(y) p/q or base(y) (1 - p)/(1 - q), where base is all bits at q; so mu = g base is
    below every R_x. Only the two bits of the victim's two values enter the ratios.
    """
    other, ratio, g = _bits(randomizer)
    mixed = g * other * (1.0 - other)
    return BlanketLaw(
        [ratio, ratio, 1.0, 1.0], [ratio, 1.0, ratio, 1.0], [g * other**2, mixed, mixed, g * (1.0 - other) ** 2]
    )


def _bits(randomizer: Unary) -> tuple[float, float, float]:
    """q, P and g; from whole numbers, since p may be 1 to within a rounding."""
    own, other = randomizer.masses
    return other / WORD, own * (WORD - other) / (other * (WORD - own)), (WORD - own) / (WORD - other)


def unary_dataset(randomizer: Unary) -> BlanketLaw:
    """Exact law of a bad collection: everybody's value is one of the first three, so the other bits are noise."""
    few = Unary(min(randomizer.k, 3), randomizer.epsilon, randomizer.encoding)
    return worst_dataset(few.channel().matrix())


def unary_exposures(randomizer: Unary) -> list[Exposure]:
    """The bits of the two values and of a third one; mu is g times the law in which every bit is another's."""
    other, ratio, g = _bits(randomizer)
    patterns = np.array(list(product((0, 1), repeat=3)))
    mu = g * np.prod(np.where(patterns, other, 1.0 - other), axis=1)
    z = np.where(patterns, ratio, 1.0)
    return [Exposure.of_ratios([(mu, z[:, 0], z[:, 1], z[:, t]) for t in range(min(randomizer.k, 3))])]


LAW = DeclaredLaw(Unary, "unary encoding", upper=unary_law, dataset=unary_dataset, exposures=unary_exposures)

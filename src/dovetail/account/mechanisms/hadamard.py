"""Hadamard response: randomized response over half blocks."""

from __future__ import annotations

from itertools import product

import numpy as np

from dovetail.account.finite_channel import worst_dataset
from dovetail.account.mechanisms.krr import krr_law, krr_third_law
from dovetail.account.privacy_blanket import BlanketLaw, DeclaredLaw, Exposure, Type
from dovetail.core.channel import HadamardChannel, KRRChannel

Pattern = tuple[bool, bool, bool]


def hadamard_law(channel: HadamardChannel) -> BlanketLaw:
    r"""Upper law, the rarer mass at every report as mu.

    .. math:: \text{one block: } (p, p), (p, 1), (1, p), (1, 1): \tfrac{1}{2 (p + 1)} \text{ each}; \qquad
              B \ge 2: \text{ as } 2B\text{-ary randomized response}

    Two symbols of different blocks are the worst pair: symbols of one block share a quarter of it, and moving (p, p)
    and (1, 1) to (p, 1) and (1, p) keeps the mean and grows the convex order.

    Examples
    --------
    >>> hadamard_law(HadamardChannel(7, 1, 8, 3, 1)).mass.tolist()
    [0.125, 0.125, 0.125, 0.125]
    """
    if channel.blocks > 1:
        return krr_law(_halves(channel))
    base = min(channel.keep, channel.lie)
    keep, lie = channel.keep / base, channel.lie / base
    return BlanketLaw([keep, keep, lie, lie], [keep, lie, keep, lie], [0.5 * base / channel.total] * 4)


def hadamard_dataset(channel: HadamardChannel) -> BlanketLaw:
    """Exact law of a bad collection: two symbols, and everybody else on one of up to four."""
    if channel.blocks >= 4 and channel.k >= 3:
        return krr_third_law(_halves(channel))  # three different blocks
    if channel.blocks >= 4:
        halves = _halves(channel)  # the two symbols own one half block each, and the others hold the second
        p, b = channel.keep / channel.lie, channel.lie / halves.total
        return BlanketLaw([p, 1.0 / p, 1.0], [1.0, 1.0, 1.0], [b, p * b, (halves.k - 2) * b])
    symbols = min(channel.k, 4)  # of a narrower channel with the same marginal laws
    return worst_dataset(HadamardChannel(symbols, channel.blocks, 8, channel.keep, channel.lie).matrix())


def hadamard_exposures(channel: HadamardChannel) -> list[Exposure]:
    """Pairs of one block and of two; others in either block, on a third row or the sum of both, or elsewhere.

    A pattern tells for both values and the other's whether they own the report. Inside a block the rows of different
    values are independent, but for a third one that is the sum of the two.
    """
    base, rows = min(channel.keep, channel.lie), -(-channel.k // channel.blocks)
    keep, lie, b = channel.keep / base, channel.lie / base, base / channel.total

    def sent(*blocks: list[Pattern]) -> Type:
        """One type: equally likely patterns of some blocks, and all other blocks, where nobody owns anything."""
        rest = (2.0 * b * (channel.blocks - len(blocks)), lie, lie, lie)
        atoms = [(2.0 * b / len(block), *(keep if own else lie for own in it)) for block in blocks for it in block]
        mu, first, second, own = np.array([*atoms, rest]).T
        return mu, first, second, own

    half, quarters = (False, True), list(product((False, True), repeat=2))
    elsewhere: list[Pattern] = [(False, False, z) for z in half]
    found = []
    if rows > 1:
        types = [sent([(x, y, x) for x, y in quarters]), sent([(x, y, y) for x, y in quarters])]
        types += [sent([(x, y, x == y) for x, y in quarters])] if rows > 2 else []
        types += [sent([(x, y, z) for x, y in quarters for z in half])] if rows > 3 else []
        types += [sent([(x, y, False) for x, y in quarters], elsewhere)] if channel.blocks > 1 else []
        found.append(Exposure.of_ratios(types))
    if channel.blocks > 1:
        one: list[Pattern] = [(x, False, False) for x in half]
        two: list[Pattern] = [(False, y, False) for y in half]
        types = [sent([(x, False, x) for x in half], two), sent(one, [(False, y, y) for y in half])]
        types += [sent([(x, False, z) for x, z in quarters], two)] if rows > 1 else []
        types += [sent(one, [(False, y, z) for y, z in quarters])] if rows > 1 else []
        types += [sent(one, two, elsewhere)] if channel.k > 2 and channel.blocks > 2 else []
        found.append(Exposure.of_ratios(types))
    return found


def _halves(channel: HadamardChannel) -> KRRChannel:
    return KRRChannel(2 * channel.blocks, channel.keep, channel.lie)


LAW = DeclaredLaw(
    HadamardChannel,
    "Hadamard response",
    upper=hadamard_law,
    dataset=hadamard_dataset,
    exposures=hadamard_exposures,
)

"""Hadamard response: randomized response over half blocks."""

from __future__ import annotations

from dovetail.account.blanket.declared_law import DeclaredLaw
from dovetail.account.blanket.privacy_blanket import BlanketLaw
from dovetail.account.mechanisms.finite_channel import worst_dataset
from dovetail.account.mechanisms.krr import krr_law, krr_third_law
from dovetail.core.channel import HadamardChannel, KRRChannel


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


def _halves(channel: HadamardChannel) -> KRRChannel:
    return KRRChannel(2 * channel.blocks, channel.keep, channel.lie)


LAW = DeclaredLaw(HadamardChannel, "Hadamard response", upper=hadamard_law, dataset=hadamard_dataset)

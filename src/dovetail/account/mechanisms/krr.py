"""k-ary randomized response: every lie is a blanket."""

from __future__ import annotations

from dovetail.account.privacy_blanket import BlanketLaw, DeclaredLaw, Exposure
from dovetail.core.channel import KRRChannel


def krr_law(channel: KRRChannel) -> BlanketLaw:
    r"""Upper law: mu is the rarer of the two masses, at every symbol.

    .. math:: (p, 1): b, \quad (1, p): b, \quad (1, 1): (k - 2)\, b, \qquad b = \frac{1}{p + k - 1}

    Masses are the realized ones, p = keep / lie; the same mu serves the unusual channel with keep < lie.

    Examples
    --------
    >>> round(krr_law(KRRChannel(5, 3, 1)).remainder, 9)  # five reports of mass 1/7 are blanket
    0.285714286

    Source
    ------
    Balle, Bell, Gascon, Nissim (2019), The Privacy Blanket of the Shuffle Model, CRYPTO, section 3.
    """
    base, total = min(channel.keep, channel.lie), channel.total
    keep, lie = channel.keep / base, channel.lie / base
    return BlanketLaw(
        [keep, lie, lie], [lie, keep, lie], [base / total, base / total, (channel.k - 2) * base / total]
    )


def krr_third_law(channel: KRRChannel) -> BlanketLaw:
    r"""Exact law when everybody else holds one third symbol, for k at least 3.

    .. math:: (p, 1): b, \quad (1, p): b, \quad (\tfrac1p, \tfrac1p): p b, \quad (1, 1): (k - 3)\, b

    Merging all atoms but the first two into one is what three-category formulas do: data processing, hence a *lower*
    value. It must not be used as an upper law (for k = 4 and 3 people it is 1.7 % below the exact delta).
    """
    k, keep, lie, total = channel.k, channel.keep, channel.lie, channel.total
    p, inverse = keep / lie, lie / keep
    masses = [lie / total, lie / total, keep / total, (k - 3) * lie / total]
    return BlanketLaw([p, 1.0, inverse, 1.0], [1.0, p, inverse, 1.0], masses)


def krr_exposures(channel: KRRChannel) -> list[Exposure]:
    """All pairs are alike; others hold one of the two values or a third one."""
    base, k = min(channel.keep, channel.lie), channel.k
    keep, lie, b = channel.keep / base, channel.lie / base, base / channel.total

    def sender(own: int) -> list[float]:
        return [keep if symbol == own else lie for symbol in range(4)]

    mu = [b, b, b, (k - 3) * b] if k > 2 else [b, b]  # the two values, a third one, all others
    return [Exposure.of_ratios([(mu, *(sender(x)[: len(mu)] for x in (0, 1, t))) for t in range(min(k, 3))])]


LAW = DeclaredLaw(
    KRRChannel, "k-ary randomized response", upper=krr_law, dataset=krr_third_law, exposures=krr_exposures
)

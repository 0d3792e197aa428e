"""Exact vulnerability in fractions, for up to 200 people: the reference for every other method."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb

from dovetail.core.channel import KRRChannel
from dovetail.core.checks import refuse, whole
from dovetail.core.errors import UnsupportedError

MOST_PEOPLE = 200


@dataclass(frozen=True)
class ExactVulnerability:
    """The four vulnerabilities of `vulnerability` as fractions.

    Parameters
    ----------
    prior, randomized, shuffled, randomized_shuffled : Fraction
    """

    prior: Fraction
    randomized: Fraction
    shuffled: Fraction
    randomized_shuffled: Fraction


def exact_vulnerability(channel: KRRChannel, *, n: int) -> ExactVulnerability:
    r"""Uniform prior, one try, k-ary randomized response with p at least 1/k, up to 200 people.

    .. math:: V_S = \frac1n \sum_{m \ge 0} \left( 1 - \frac{w_m(n)}{k^n} \right), \qquad
              j \, w_m(j) = \sum_{i=1}^{m} (i (k + 1) - j) \binom ji w_m(j - i)

    with w_m(j) the number of ways to put j labelled balls into k bins, none with more than m.

    Raises
    ------
    UnsupportedError
        For p below 1/k.

    Notes
    -----
    About a second at n = 200.

    Examples
    --------
    >>> exact_vulnerability(KRRChannel(2, 3, 1), n=2).randomized_shuffled  # 1/4 + 1/2 * 3/4
    Fraction(5, 8)

    Source
    ------
    Jurado, Gonze, Alvim, Palamidessi (2023), CSF, equation 17 and Proposition 20; J. C. P. Miller's recurrence for
    powers of a series.
    """
    n = whole("n", n, least=1, most=MOST_PEOPLE)
    if not isinstance(channel, KRRChannel):
        raise refuse("channel", "k-ary randomized response", channel)
    if channel.keep < channel.lie:
        raise UnsupportedError("Equation 17 needs p >= 1/k; use `vulnerability`, which takes the emptiest bin.")
    k = channel.k
    shuffled = sum((_exceedance(n, k, m) for m in range(n)), Fraction(0)) / n
    lie = Fraction(channel.lie, channel.total)
    both = lie + Fraction(channel.keep - channel.lie, channel.total) * shuffled
    return ExactVulnerability(Fraction(1, k), Fraction(channel.keep, channel.total), shuffled, both)


def _exceedance(n: int, k: int, m: int) -> Fraction:
    """Chance that some bin holds more than m of n balls."""
    if m * k < n:
        return Fraction(1)
    if 2 * (m + 1) > n:  # no two bins can
        return Fraction(sum(comb(n, i) * (k - 1) ** (n - i) for i in range(m + 1, n + 1)), k ** (n - 1))
    ways = [1]
    for j in range(1, n + 1):
        terms = ((i * (k + 1) - j) * comb(j, i) * ways[j - i] for i in range(1, min(m, j) + 1))
        ways.append(sum(terms) // j)
    return 1 - Fraction(ways[n], k**n)

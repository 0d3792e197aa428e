r"""Vulnerability with every error proved: the sum of `load` in ball arithmetic (extra `certified`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from dovetail.core.errors import UnsupportedError
from dovetail.core.extras import require
from dovetail.leak.additive_leakage import NO_LEAKAGE, AdditiveLeakage
from dovetail.leak.max_load import Truncation, truncate_sum
from dovetail.leak.query import Query

BITS = 192
MOST_TERMS = 2_000_000  # about twenty seconds

Ball = Any  # flint.arb


def certified_leakage(query: Query) -> tuple[AdditiveLeakage, AdditiveLeakage]:
    """Leakage of shuffled values, and of shuffled randomized reports: certified intervals."""
    krr = query.krr
    if krr is None or not query.uniform or not query.is_bayes or krr.keep < krr.lie:
        raise UnsupportedError(
            "Certified mode covers k-ary randomized response with p >= 1/k, the uniform prior and one try; "
            "drop `certified`."
        )
    shuffled = scaled_gap(query.n, krr.k, Fraction(1, query.n))
    if krr.keep == krr.lie:
        return shuffled, NO_LEAKAGE
    return shuffled, scaled_gap(query.n, krr.k, Fraction(krr.keep - krr.lie, krr.total * query.n))


def scaled_gap(n: int, k: int, factor: Fraction) -> AdditiveLeakage:
    """`factor` times E[fullest of k bins with n balls] - n/k, between two proved ends.

    192 bits; the five cuts are evaluated in balls too. Rotations are roots of unity by index: a product of many
    rotations would blow the radius up. Source: `max_load_gap`; Johansson (2017), Arb.
    """
    flint = require("flint", extra="certified")
    with flint.ctx.workprec(BITS):
        low, high = _gap_ends(flint, n, k)
        scale = flint.arb(flint.fmpq(factor.numerator, factor.denominator))
        lower, upper = (low * scale).lower(), (high * scale).upper()
        ends = math.nextafter(float(lower), 0.0), math.nextafter(float(upper), math.inf)
    return AdditiveLeakage(0.5 * (ends[0] + ends[1]), *ends, "closed form" if k == 2 or n == 1 else "exact sum")


def _gap_ends(flint: Any, n: int, k: int) -> tuple[Ball, Ball]:
    """Balls around a lower and an upper end of the excess load."""
    if n == 1:
        value = flint.arb(flint.fmpq(k - 1, k))
        return value, value
    if k == 2:
        half = flint.arb(n // 2)
        value = n * ((2 * half + 1).lgamma() - 2 * (half + 1).lgamma() - 2 * half * flint.arb(2).log()).exp() / 2
        return value, value
    cut = truncate_sum(n, k)
    count = max(0, cut.last - cut.first + 1)
    base = flint.arb(flint.fmpq(k * cut.first - n, k))
    value = base + _sum(flint, cut, count) if count else base
    pmf = _BinomialTail(flint, n, k)
    nodes, beyond, below, window = (
        count * _aliasing(flint, cut),
        k * pmf.sum_above(cut.last),
        (cut.first - -(-n // k)) * (-k * pmf.at_least(cut.first - 1, cut.pmf.size)).exp(),
        count * k * pmf.above(cut.first + cut.pmf.size),
    )
    dropped = count * _dropped(flint, cut)
    return value - nodes - dropped - below, value + dropped + beyond + window


def _point(flint: Any, mean: Ball, i: int) -> Ball:
    """Pois(i; mean)."""
    return (i * mean.log() - mean - (flint.arb(i) + 1).lgamma()).exp()


def _sum(flint: Any, cut: Truncation, count: int) -> Ball:
    """Sum over m = first .. last of 1 - P_m, with phases e^{I theta i} by index into the roots of unity."""
    if cut.kept * cut.pmf.size > MOST_TERMS:
        raise UnsupportedError(
            f"The certified maximum load of n = {cut.n:,} balls in k = {cut.k} bins has "
            f"{cut.kept * cut.pmf.size:.1e} terms; the limit is {MOST_TERMS:.0e}. Drop `certified`."
        )
    mean = flint.arb(flint.fmpq(cut.n, cut.k))
    pmf = [_point(flint, mean, cut.first + 1)]
    for i in range(cut.first + 2, cut.first + 1 + cut.pmf.size):
        pmf.append(pmf[-1] * mean / i)
    turn = flint.arb(flint.fmpq(2, cut.nodes))
    roots = _RootsOfUnity(lambda i: flint.acb(turn * i).exp_pi_i())
    total = flint.arb(0)
    for j in range(cut.kept):
        weight = 1 if j == 0 or 2 * j == cut.nodes else 2
        total += weight * _node_term(flint, cut, roots, j, pmf, mean, count)
    return total / (cut.nodes * _point(flint, flint.arb(cut.n), cut.n))


class _RootsOfUnity(dict[int, Any]):
    """e^{2 pi I i / N} by index, computed when first needed."""

    def __init__(self, root: Callable[[int], Any]) -> None:
        self.root = root

    def __missing__(self, i: int) -> Any:
        self[i] = self.root(i)
        return self[i]


def _node_term(
    flint: Any, cut: Truncation, roots: _RootsOfUnity, j: int, pmf: list[Ball], mean: Ball, count: int
) -> Ball:
    psi = (mean * (roots[j % cut.nodes] - 1)).exp()
    back, full = roots[-cut.n * j % cut.nodes], psi**cut.k
    missing, total = flint.acb(0), flint.arb(0)
    for place in range(len(pmf) - 1, -1, -1):
        missing += pmf[place] * roots[j * (cut.first + 1 + place) % cut.nodes]
        if place < count:
            total += (back * (full - (psi - missing) ** cut.k)).real
    return total


def _aliasing(flint: Any, cut: Truncation) -> Ball:
    n, u = cut.n, flint.arb(flint.fmpq(cut.nodes, cut.n))
    r = (-n * ((1 + u) * (1 + u).log() - u)).exp()
    q = flint.arb(0) if cut.nodes > n else flint.arb(flint.fmpq(-cut.nodes * (cut.nodes - 1), 2 * n)).exp()
    return r / (1 - r) + q / (1 - q)


def _dropped(flint: Any, cut: Truncation) -> Ball:
    """b falls with the node: every dropped one is counted like the first."""
    left = cut.nodes - (2 * cut.kept - 1)  # of nodes 0 .. N-1
    if left <= 0:
        return flint.arb(0)
    mean = flint.arb(flint.fmpq(cut.n, cut.k))
    sine = flint.arb.sin_pi_fmpq(flint.fmpq(cut.kept, cut.nodes))
    b = _point(flint, mean, cut.n // cut.k) / sine
    return 2 * left * b**cut.k / (cut.nodes * _point(flint, flint.arb(cut.n), cut.n))


class _BinomialTail:
    """Bounds on the upper tail of X ~ Bin(n, 1/k) beyond its mean."""

    def __init__(self, flint: Any, n: int, k: int) -> None:
        self.flint, self.n, self.k = flint, n, k

    def pmf(self, m: int) -> Ball:
        n, k, arb = self.n, self.k, self.flint.arb
        if m > n:
            return arb(0)
        choices = arb(n + 1).lgamma() - arb(m + 1).lgamma() - arb(n - m + 1).lgamma()
        return (choices + (n - m) * arb(k - 1).log() - n * arb(k).log()).exp()

    def rho(self, m: int) -> Ball:
        """pmf(m + 2)/pmf(m + 1); falls with m."""
        return self.flint.arb(self.flint.fmpq(max(0, self.n - m - 1), (m + 2) * (self.k - 1)))

    def above(self, m: int) -> Ball:
        """Upper bound on Pr[X > m]."""
        return self.pmf(m + 1) / (1 - self.rho(m))

    def sum_above(self, m: int) -> Ball:
        """Upper bound on the sum of Pr[X > m'] over m' > m."""
        return self.pmf(m + 2) / (1 - self.rho(m + 1)) ** 2

    def at_least(self, m: int, terms: int) -> Ball:
        """Lower bound on Pr[X > m]: its first terms."""
        term = self.pmf(m + 1)
        total = term
        for i in range(m + 1, min(self.n, m + terms)):
            term = term * (self.n - i) / ((i + 1) * (self.k - 1))
            total += term
        return total

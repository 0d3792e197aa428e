r"""Vulnerability with every error proved: the sum of `load` in ball arithmetic (extra `certified`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from dovetail.core.bracket import Bracket
from dovetail.core.checks import whole
from dovetail.core.errors import UnsupportedError
from dovetail.core.extras import require
from dovetail.leak.additive_leakage import NOTHING, Excess
from dovetail.leak.max_load.max_load import MOST_BALLS, LoadPlan, plan_load
from dovetail.leak.query import Question

BITS = 192
MOST_TERMS = 2_000_000  # about twenty seconds

Ball = Any  # flint.arb


def certified_excess(question: Question) -> tuple[Excess, Excess]:
    """What shuffled values, and shuffled randomized reports, add: proved ends."""
    law = question.response
    if law is None or not question.uniform or not question.one_try or law.keep < law.lie:
        raise UnsupportedError(
            "Certified mode covers k-ary randomized response with p >= 1/k, the uniform prior and one try; "
            "drop `certified`."
        )
    shuffled = _scaled(question.n, law.k, Fraction(1, question.n))
    if law.keep == law.lie:
        return shuffled, NOTHING
    return shuffled, _scaled(question.n, law.k, Fraction(law.keep - law.lie, law.total * question.n))


def certified_load(n: int, k: int) -> Bracket:
    r"""E[fullest of k bins with n balls] - n/k between two proved ends.

    Parameters
    ----------
    n : int, at least 1
    k : int, at least 2

    Raises
    ------
    MissingExtraError
        Without python-flint.
    UnsupportedError
        When the sum has more than 2e6 terms: k from 3 to 9 with n above about 3e4.

    Notes
    -----
    192 bits; the five cuts are evaluated in balls too. Rotations are roots of unity by index: a product of many
    rotations would blow the radius up.

    Examples
    --------
    >>> certified_load(2, 4).contains(0.75)  # doctest: +SKIP
    True

    Source
    ------
    `expected_excess`; Johansson (2017), Arb.
    """
    found = _scaled(whole("n", n, least=1, most=MOST_BALLS), whole("k", k, least=2), Fraction(1))
    return Bracket(found.lower, found.upper)


def _scaled(n: int, k: int, factor: Fraction) -> Excess:
    flint = require("flint", extra="certified")
    with flint.ctx.workprec(BITS):
        low, high = _ends(flint, n, k)
        scale = flint.arb(flint.fmpq(factor.numerator, factor.denominator))
        lower, upper = (low * scale).lower(), (high * scale).upper()
        ends = math.nextafter(float(lower), 0.0), math.nextafter(float(upper), math.inf)
    return Excess(0.5 * (ends[0] + ends[1]), *ends, "closed form" if k == 2 or n == 1 else "exact sum")


def _ends(flint: Any, n: int, k: int) -> tuple[Ball, Ball]:
    """Balls around a lower and an upper end of the excess load."""
    if n == 1:
        value = flint.arb(flint.fmpq(k - 1, k))
        return value, value
    if k == 2:
        half = flint.arb(n // 2)
        value = n * ((2 * half + 1).lgamma() - 2 * (half + 1).lgamma() - 2 * half * flint.arb(2).log()).exp() / 2
        return value, value
    plan = plan_load(n, k)
    count = max(0, plan.last - plan.first + 1)
    base = flint.arb(flint.fmpq(k * plan.first - n, k))
    value = base + _sum(flint, plan, count) if count else base
    law = _Tail(flint, n, k)
    nodes, beyond, below, window = (
        count * _alias(flint, plan),
        k * law.sum_above(plan.last),
        (plan.first - -(-n // k)) * (-k * law.at_least(plan.first - 1, plan.law.size)).exp(),
        count * k * law.above(plan.first + plan.law.size),
    )
    dropped = count * _dropped(flint, plan)
    return value - nodes - dropped - below, value + dropped + beyond + window


def _point(flint: Any, mean: Ball, i: int) -> Ball:
    """Pois(i; mean)."""
    return (i * mean.log() - mean - (flint.arb(i) + 1).lgamma()).exp()


def _sum(flint: Any, plan: LoadPlan, count: int) -> Ball:
    """Sum over m = first .. last of 1 - P_m, with phases e^{I theta i} by index into the roots of unity."""
    if plan.kept * plan.law.size > MOST_TERMS:
        raise UnsupportedError(
            f"The certified maximum load of n = {plan.n:,} balls in k = {plan.k} bins has "
            f"{plan.kept * plan.law.size:.1e} terms; the limit is {MOST_TERMS:.0e}. Drop `certified`."
        )
    mean = flint.arb(flint.fmpq(plan.n, plan.k))
    law = [_point(flint, mean, plan.first + 1)]
    for i in range(plan.first + 2, plan.first + 1 + plan.law.size):
        law.append(law[-1] * mean / i)
    turn = flint.arb(flint.fmpq(2, plan.nodes))
    roots = _Roots(lambda i: flint.acb(turn * i).exp_pi_i())
    total = flint.arb(0)
    for j in range(plan.kept):
        weight = 1 if j == 0 or 2 * j == plan.nodes else 2
        total += weight * _node(flint, plan, roots, j, law, mean, count)
    return total / (plan.nodes * _point(flint, flint.arb(plan.n), plan.n))


class _Roots(dict[int, Any]):
    """e^{2 pi I i / N} by index, computed when first needed."""

    def __init__(self, root: Callable[[int], Any]) -> None:
        self.root = root

    def __missing__(self, i: int) -> Any:
        self[i] = self.root(i)
        return self[i]


def _node(flint: Any, plan: LoadPlan, roots: _Roots, j: int, law: list[Ball], mean: Ball, count: int) -> Ball:
    psi = (mean * (roots[j % plan.nodes] - 1)).exp()
    back, full = roots[-plan.n * j % plan.nodes], psi**plan.k
    missing, total = flint.acb(0), flint.arb(0)
    for place in range(len(law) - 1, -1, -1):
        missing += law[place] * roots[j * (plan.first + 1 + place) % plan.nodes]
        if place < count:
            total += (back * (full - (psi - missing) ** plan.k)).real
    return total


def _alias(flint: Any, plan: LoadPlan) -> Ball:
    n, u = plan.n, flint.arb(flint.fmpq(plan.nodes, plan.n))
    r = (-n * ((1 + u) * (1 + u).log() - u)).exp()
    q = flint.arb(0) if plan.nodes > n else flint.arb(flint.fmpq(-plan.nodes * (plan.nodes - 1), 2 * n)).exp()
    return r / (1 - r) + q / (1 - q)


def _dropped(flint: Any, plan: LoadPlan) -> Ball:
    """b falls with the node: every dropped one is counted like the first."""
    left = plan.nodes - (2 * plan.kept - 1)  # of nodes 0 .. N-1
    if left <= 0:
        return flint.arb(0)
    mean = flint.arb(flint.fmpq(plan.n, plan.k))
    sine = flint.arb.sin_pi_fmpq(flint.fmpq(plan.kept, plan.nodes))
    b = _point(flint, mean, plan.n // plan.k) / sine
    return 2 * left * b**plan.k / (plan.nodes * _point(flint, flint.arb(plan.n), plan.n))


class _Tail:
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

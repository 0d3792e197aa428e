"""Tails of fair coins against exact integers: the accuracy that the pairs allow for."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from dovetail.account.clones.binomial_tail import MILLS_ERROR, PMF_ERROR, symmetric_binomial_tail


def relative(got: float, truth: Fraction) -> float:
    return float(abs(Fraction(got) - truth) / truth)


@pytest.mark.parametrize("n", [*range(1, 60, 7), 1_000, 4_001, 20_000])
def test_both_parts_of_the_tail_are_as_exact_as_is_allowed_for(n: int) -> None:
    out = n // 2 + 1
    ks = range(out, n + 1) if n < 60 else [out + int(z * n**0.5 / 2) for z in (0.0, 0.5, 1.1, 1.3, 4.0, 8.0, 12.0)]
    head, mills = symmetric_binomial_tail(np.array(ks, dtype=float), np.full(len(ks), float(n)))
    for i, k in enumerate(ks):
        first, tail, term = Fraction(comb(n - 1, k - 1), 2 ** (n - 1)), 0, comb(n, k)
        for heads in range(k, n + 1):
            tail += term
            term = term * (n - heads) // (heads + 1)
        assert relative(float(head[i]), first) < PMF_ERROR
        assert relative(float(mills[i]), Fraction(tail, 2**n) / first) < MILLS_ERROR

"""Tails of fair coins against exact integers: the accuracy that the pairs allow for."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from dovetail.account.clones import (
    MILLS_ERROR,
    PMF_ERROR,
    symmetric_binomial_tail,
    weighted_positive_part,
    without_compiled_loops,
)


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


@pytest.mark.parametrize("n", [1, 2, 15, 16, 300, 2_000, 10**5, 10**9, 10**12])
def test_arrays_and_compiled_loops_agree(n: int) -> None:
    ks = np.unique(np.clip(np.ceil((n + 1) / 2 + np.linspace(0.0, 13.0, 400) * n**0.5 / 2), None, n))
    trials = np.full(ks.size, float(n))
    compiled = symmetric_binomial_tail(ks, trials)
    with without_compiled_loops():
        arrays = symmetric_binomial_tail(ks, trials)
    for one, other in zip(compiled, arrays, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)


@pytest.mark.parametrize(("epsilon", "epsilon0"), [(0.0, 1.0), (0.1, 2.0), (1.9, 2.0), (0.01, 0.011), (3.0, 8.0)])
@pytest.mark.parametrize("most", [1, 40, 2_000, 10**9])
def test_the_sums_of_arrays_and_of_compiled_loops_agree(epsilon: float, epsilon0: float, most: int) -> None:
    trials = np.unique(np.round(np.geomspace(1, most, 300)))
    weights = 1.0 / trials
    compiled = weighted_positive_part(trials, weights, epsilon, epsilon0)
    with without_compiled_loops():
        np.testing.assert_allclose(weighted_positive_part(trials, weights, epsilon, epsilon0), compiled, rtol=1e-12)

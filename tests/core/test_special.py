"""Binomial laws against exact integers: the accuracy that the docstrings state."""

from fractions import Fraction
from math import comb, factorial, log

import numpy as np
import pytest

from dovetail.core.special import (
    bernstein_reach,
    binomial_cdf,
    binomial_log_pmf,
    binomial_pmf,
    binomial_survival,
    deviance,
    stirling_remainder,
)

PROBABILITIES = [Fraction(1, 2), Fraction(3, 4), Fraction(1, 1024), Fraction(1023, 1024), Fraction(5, 16)]


def exact_pmf(n: int, p: Fraction) -> list[Fraction]:
    return [comb(n, x) * p**x * (1 - p) ** (n - x) for x in range(n + 1)]


def relative(got: float, truth: Fraction) -> float:
    return float(abs(Fraction(got) - truth) / truth)


@pytest.mark.parametrize("p", PROBABILITIES, ids=str)
@pytest.mark.parametrize("n", [1, 2, 17, 120])
def test_the_binomial_law_and_both_tails_equal_exact_fractions(n: int, p: Fraction) -> None:
    law = exact_pmf(n, p)
    x = np.arange(n + 1)
    q = 1 - p
    pmf = binomial_pmf(x, n, float(p), float(q))
    cdf = binomial_cdf(x, n, float(p), float(q))
    survival = binomial_survival(x, n, float(p), float(q))
    below, above = Fraction(0), Fraction(1)
    for i, mass in enumerate(law):
        below, above = below + mass, above - mass
        if mass > Fraction(1, 10**250):
            # an exponent of size 600 costs its last digits: 1e-13 is within 12 standard deviations
            assert relative(pmf[i], mass) < 2e-13
            assert relative(cdf[i], below) < 2e-13
        if above > Fraction(1, 10**250):
            assert relative(survival[i], above) < 2e-13
    assert cdf[n] == 1.0
    assert survival[n] == 0.0


@pytest.mark.exhaust
@pytest.mark.parametrize("n", [1_000, 4_001, 20_000])
def test_tails_of_fair_coins_keep_their_digits_at_large_counts(n: int) -> None:
    for z in (0.0, 1.0, 4.0, 8.0, 12.0):
        k = int(n / 2 + z * n**0.5 / 2)
        head, tail = comb(n, k), 0
        for i in range(k, n + 1):
            tail += head
            head = head * (n - i) // (i + 1)
        truth = Fraction(tail, 2**n)
        assert relative(float(binomial_survival(k - 1, n, 0.5)), truth) < 1e-13 + 2e-15 * n**0.5
        assert relative(float(binomial_cdf(n - k, n, 0.5)), truth) < 1e-13 + 2e-15 * n**0.5
        first = Fraction(comb(n - 1, k - 1), 2 ** (n - 1))
        assert relative(float(binomial_pmf(k - 1, n - 1, 0.5)), first) < 1e-13


@pytest.mark.exhaust
def test_arb_agrees_at_a_trillion() -> None:
    flint = pytest.importorskip("flint")
    saved, flint.ctx.prec = flint.ctx.prec, 300
    try:
        for n in (10**9, 10**12):
            for z in (0.5, 6.0):
                k = int(n / 2 + z * n**0.5 / 2)
                tail = flint.arb.beta_lower(flint.arb("0.5"), k, n - k + 1, regularized=True)
                got = float(binomial_survival(k - 1, n, 0.5))
                assert abs(float((flint.arb(got) / tail - 1).mid())) < 1e-13 + 2e-15 * n**0.5
    finally:
        flint.ctx.prec = saved


def test_outside_its_range_a_binomial_has_no_mass() -> None:
    assert binomial_log_pmf([-1, 5], 4, 0.3).tolist() == [-np.inf, -np.inf]
    assert binomial_cdf([-1, 4, 9], 4, 0.3).tolist() == [0.0, 1.0, 1.0]
    assert binomial_survival([-1, 4, 9], 4, 0.3).tolist() == [1.0, 0.0, 0.0]
    assert float(binomial_pmf(0, 0, 0.3)) == 1.0


def test_the_stirling_remainder_closes_the_formula() -> None:
    n = np.arange(1, 151)
    logs = np.array([log(factorial(i)) for i in n])  # below 606, so half a unit in the last place is 6e-14
    formula = (n + 0.5) * np.log(n) - n + 0.5 * log(2 * np.pi) + stirling_remainder(n)
    np.testing.assert_allclose(logs, formula, rtol=0, atol=5e-13)


def test_the_deviance_is_quadratic_near_its_zero_and_whole_at_zero_counts() -> None:
    assert float(deviance(0.0, 3.5)) == 3.5
    assert float(deviance(7.0, 7.0)) == 0.0
    assert float(deviance(1e12 + 1, 1e12)) == pytest.approx(5e-13, rel=1e-9)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 1_000])
@pytest.mark.parametrize("p", [0.0, 1.0])
def test_a_certain_coin_always_falls_the_same_way(n: int, p: float) -> None:
    x = np.arange(-1, n + 2)
    sure = (x == n * p).astype(float)
    assert binomial_pmf(x, n, p).tolist() == sure.tolist()
    assert binomial_cdf(x, n, p).tolist() == np.cumsum(sure).tolist()
    assert binomial_survival(x, n, p).tolist() == (1.0 - np.cumsum(sure)).tolist()
    assert deviance([0.0, 3.0], 0.0).tolist() == [0.0, np.inf]


@pytest.mark.parametrize("p", [0.02, 0.3, 0.5])
def test_a_sum_of_coins_strays_no_further_than_bernstein_says(p: float) -> None:
    n = 400
    for log_odds in (1.0, 10.0, 40.0):
        reach = bernstein_reach(n * p * (1 - p), log_odds)
        assert binomial_survival(np.ceil(n * p + reach) - 1, n, p) <= np.exp(-log_odds)
    assert binomial_survival(np.ceil(n * p + 0.3 * reach) - 1, n, p) > np.exp(-log_odds)

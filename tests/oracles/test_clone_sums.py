"""The clone pairs against sums in arbitrary precision, and the error allowances against what is measured.

The oracle sums every count of clones in 300 bits, with both tails of the coins carried along by exact steps:
E[(A/C - beta)_+] = Pr[Bin(C-1, 1/2) >= k-1] / 2 - beta Pr[Bin(C, 1/2) >= k].
"""

from math import ceil, floor, sqrt

import numpy as np
import pytest
from flint import arb, ctx
from tests.statistics import rng_of
from tests.tiers import one_in, tiered

from dovetail.account.clones import (
    MILLS_ERROR,
    PMF_ERROR,
    ClonePair,
    Kind,
    symmetric_binomial_tail,
    truncated_binomial,
)

BITS, REACH = 300, 30  # standard deviations of the clones that are summed; what lies beyond weighs below 1e-190


@pytest.fixture(autouse=True)
def precision():  # type: ignore[no-untyped-def]
    before, ctx.prec = ctx.prec, BITS
    yield
    ctx.prec = before


def binomial(n: int, x: int, q: arb) -> arb:
    logs = arb(n + 1).lgamma() - arb(x + 1).lgamma() - arb(n - x + 1).lgamma()
    return logs.exp() * q**x * (1 - q) ** (n - x)


def tail(n: int, k: int, q: arb) -> arb:
    """Pr[Bin(n, q) >= k]."""
    return q.beta_lower(k, n - k + 1, 1) if 0 < k <= n else arb(k <= 0)


def exact_delta(pair: ClonePair, epsilon: float) -> arb:
    p, e, half = arb(pair.epsilon0).exp(), arb(epsilon).exp(), arb(1) / 2
    q = 2 / (p + 1) if pair.kind == "stronger clones" else 1 / p
    beta = (p * e - 1) / ((p - 1) * (e + 1))
    mean, others = (pair.n - 1) * float(q), pair.n - 1
    reach = REACH * sqrt(mean) + 500
    first, last = max(0, floor(mean - reach)), min(others, ceil(mean + reach))
    weight, odds, total = binomial(others, first, q), q / (1 - q), arb(0)
    j = int((beta * (first + 1)).mid().floor().unique_fmpz())
    above, at = tail(first, j, half), binomial(first, j, half)  # of `clones` coins: at least j, exactly j
    for clones in range(first, last + 1):
        wanted = int((beta * (clones + 1)).mid().floor().unique_fmpz())
        while j < wanted:
            above, at, j = above - at, at * (clones - j) / (j + 1), j + 1
        total += weight * (above / 2 - beta * (above - at / 2))
        weight *= odds * (others - clones) / (clones + 1)
        above += at * j / (2 * (clones - j + 1))
        at *= arb(clones + 1) / (2 * (clones + 1 - j))
    return 2 * (p - 1) / (p + 1) * (1 + e) * total


CASES = [
    (1e-3, 10**5),
    (0.1, 10**4),
    (1.0, 10),
    (1.0, 10**4),
    (1.0, 10**6),
    (4.0, 10**6),
    (8.0, 10**6),
    (20.0, 10**6),
]


@pytest.mark.exhaust
@pytest.mark.parametrize("kind", ["stronger clones", "clones"])
@pytest.mark.parametrize(("epsilon0", "n"), one_in(4, CASES))
def test_sums_in_arbitrary_precision_lie_inside_the_bracket(epsilon0: float, n: int, kind: Kind) -> None:
    pair = ClonePair(epsilon0, n, kind)
    for delta in (1e-3, 1e-12):
        epsilon = min(pair.epsilon(delta).upper, 0.99 * epsilon0)
        exact = exact_delta(pair, epsilon)
        assert float(exact.rad()) <= 1e-20 * float(exact)
        assert float(exact) <= delta or epsilon == 0.99 * epsilon0
        for resolution in (1e-2, 1e-7):
            ends = pair.delta(epsilon, resolution=resolution)
            assert arb(ends.lower) <= exact <= arb(ends.upper)
        assert ends.gap <= 4.1e-9  # twice the 1e-9 that the masses are allowed, twice that near an empty left side
        assert 0.5 * (ends.lower + ends.upper) == pytest.approx(float(exact), rel=1e-9)


def relative(value: float, truth: arb) -> float:
    return abs(float((arb(float(value)) - truth) / truth))


@pytest.mark.exhaust
def test_the_coin_allowances_are_four_times_what_is_measured() -> None:
    worst = np.zeros(2)
    draws = iter(rng_of("coins").below(12_000, 6 * 15))
    for n in (1, 2, 3, 10, 17, 80, 300, 1000, 10**4, 10**5, 10**6, 10**7, 10**8, 10**9, 10**12):
        for z in (next(draws) / 1000 for _ in range(6)):
            k = int(min(n, max((n + 2) // 2, ceil(n / 2 + z * sqrt(n) / 2))))
            got = symmetric_binomial_tail(np.array([float(k)]), np.array([float(n)]))
            first = binomial(n - 1, k - 1, arb(1) / 2)
            truth = (first, tail(n, k, arb(1) / 2) / first)
            worst = np.maximum(worst, [relative(g[0], t) for g, t in zip(got, truth, strict=True)])
    assert np.all(4.0 * worst <= [PMF_ERROR, MILLS_ERROR]), worst


@pytest.mark.exhaust
@pytest.mark.parametrize("resolution", tiered([1e-7, 1e-4, 1e-1], first=lambda size: size == 1e-4))
@pytest.mark.parametrize(
    ("trials", "q"), [(900, 0.3), (10**5, 0.5), (10**6, 0.01), (10**9, 0.5), (10**9, 2.0**-14), (10**12, 0.25)]
)
def test_the_window_allowance_is_four_times_what_is_measured(trials: int, q: float, resolution: float) -> None:
    if trials > 10**8 and resolution < 1e-6:
        resolution = 1e-6
    blocks = truncated_binomial(trials, q, 1.0 - q, tail=1e-20, resolution=resolution)
    chance, edges = arb(q), blocks.edges.astype(int).tolist()
    below = 1 - tail(trials, edges[0], chance) if edges[0] > 0 else arb(0)
    beyond = tail(trials, edges[-1], chance)
    rising, falling = np.cumsum(blocks.masses), np.cumsum(blocks.masses[::-1])[::-1]
    for j in np.linspace(1, blocks.masses.size - 1, 7).astype(int).tolist():
        head = arb(1) - tail(trials, edges[j], chance) - below
        rest = tail(trials, edges[j], chance) - beyond
        assert 4.0 * min(relative(rising[j - 1], head), relative(falling[j], rest)) <= blocks.error
        near_left = edges[j] <= trials * q
        assert relative(rising[j - 1] if near_left else falling[j], head if near_left else rest) <= blocks.error

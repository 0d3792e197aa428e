"""Sums of few points for mixtures of many people: on the right side of the sums over everything, and close."""

from math import log

import numpy as np
import pytest
from scipy.stats import binom

from dovetail.account.mixture import Draws, MixtureLaw, amplify_mixture, binomial_window, uniform_count
from dovetail.randomize.krr import KRR


def every_cell(k: int, m: int, ratio: float, factor: float) -> float:
    """h(m), from the mean of A above a bar at every b."""
    b = np.arange(m + 1)
    n, q, bar = m - b, 1.0 / (k - 1), factor * b + (factor - 1.0) * m / (ratio - 1.0)
    above = n * q * binom.sf(np.floor(bar) - 1, np.maximum(n - 1, 0), q) - bar * binom.sf(np.floor(bar), n, q)
    gain = np.maximum(n - bar, 0.0) if k == 2 else np.where(n > bar, above, 0.0)
    return (ratio - 1.0) / m * float(binom.pmf(b, m, 1.0 / k) @ gain)


@pytest.mark.exhaust
@pytest.mark.parametrize("k", [2, 3, 4, 30])
@pytest.mark.parametrize("m", [1, 40, 20_000, 300_000])
def test_chords_through_few_points_enclose_the_sum_over_every_cell(k: int, m: int) -> None:
    ratio = 50.0
    typical = np.sqrt(2.0 / (k * m)) * (ratio - 1.0) * k / (ratio + k - 1.0)  # of the loss
    for epsilon in typical * np.array([0.0, 0.5, 2.0, 5.0, 8.0]):
        factor = float(np.exp(min(epsilon, log(ratio) - 0.01)))
        exact = every_cell(k, m, ratio, factor)
        [low], [high] = (Draws.among(k, [m]).gains(ratio, factor, side=side) for side in (-1.0, 1.0))
        assert low * (1.0 - 1e-9) <= exact <= high * (1.0 + 1e-9)
        assert high <= (1.0 + 1e-3) * exact + 1e-17 and low >= (1.0 - 5e-3) * exact - 1e-17


@pytest.mark.parametrize(("n", "q"), [(1, 0.3), (50, 0.999), (10**6, 0.01), (10**9, 0.7)])
def test_a_window_has_the_binomial_law(n: int, q: float) -> None:
    window = binomial_window(n, q)
    exact = binom.pmf(window.first + np.arange(window.masses.size), n, q)
    assert np.abs(window.masses - exact).max() <= 1e-9 * exact.max()
    assert window.masses.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(("n", "q"), [(50, 0.999), (10**4, 0.01), (10**6, 1e-6), (10**9, 0.7)])
def test_a_window_leaves_out_no_more_than_is_said(n: int, q: float) -> None:
    for left_out in (1e-20, 1e-60, 1e-200):
        window = binomial_window(n, q, left_out)
        first, last = window.first, window.first + window.masses.size - 1
        assert binom.cdf(first - 1, n, q) + binom.sf(last, n, q) <= left_out


@pytest.mark.exhaust
@pytest.mark.parametrize("sizes", [(30, 40), (3000, 500), (200_000, 100_000)])
def test_blocks_of_a_sum_hold_their_mass_up_to_the_noise(sizes: tuple[int, int]) -> None:
    parts = [(sizes[0], 0.3), (sizes[1], 0.6)]
    found, law = uniform_count(parts), np.ones(1)
    for n, q in parts:
        law = np.convolve(law, binom.pmf(np.arange(n + 1), n, q)) if n < 10**4 else law
    if law.size == 1:  # every number of the first one, against the law function of the second
        x = np.arange(binomial_window(*parts[0]).first - 1000, sizes[0] + 1)
        below = [float(binom.pmf(x, *parts[0]) @ binom.cdf(end - x, *parts[1])) for end in found.ends]
    else:
        below = [float(law[: end + 1].sum()) for end in found.ends]
    assert found.starts[1:] == tuple(end + 1 for end in found.ends[:-1])
    assert np.cumsum(found.masses) == pytest.approx(below, abs=1e-11)
    assert (found.noise > 0.0) == (min(sizes) > 10**4) and found.noise < 1e-10


@pytest.mark.exhaust
@pytest.mark.parametrize("delta", [1e-6, 1e-10])
def test_many_people_are_promised_nearly_what_the_theorem_gives(delta: float) -> None:
    for people in (10**4, 10**6, 10**7):
        for one in amplify_mixture(4, [(people, 1.0), (people, 4.0)], delta=delta):
            assert one.numeric is not None and one.numeric.gap <= 4e-3
    law = MixtureLaw(KRR(4, 4.0), ((10**7, KRR(4, 1.0)), (10**7, KRR(4, 4.0))))
    assert law.delta_lower(0.0026) <= law.delta(0.0026) <= (1.0 + 2e-3) * law.delta_lower(0.0026)

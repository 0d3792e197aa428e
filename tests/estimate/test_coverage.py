"""Intervals of shares cover, by exact enumeration of the report counts, where normal intervals do not."""

import numpy as np
import pytest
from scipy.stats import binom, norm
from tests.tiers import one_in

from dovetail.core.estimate import Tally
from dovetail.estimate.frequency import FrequencyEstimator
from dovetail.randomize.krr import KRR

CELLS = [(2, 0.5), (2, 8.0), (10, 2.0), (100, 2.0), (1000, 4.0)]


def coverage(k: int, epsilon: float, n: int, holders: int, *, score: bool = True, factor: float = 1.0) -> float:
    """Exact probability that the interval of symbol 0 covers holders / n, its standard error off by a factor."""
    randomizer = KRR(k=k, epsilon=epsilon)
    p, s = randomizer.channel().p, randomizer.channel().s
    law = np.convolve(
        binom.pmf(np.arange(holders + 1), holders, p), binom.pmf(np.arange(n - holders + 1), n - holders, s)
    )
    covered = 0.0
    for count in np.flatnonzero(law > 1e-12):
        rest = np.full(k - 1, (n - count) / (k - 1))
        estimate = FrequencyEstimator(randomizer).solve(Tally(np.concatenate([[count], rest]), n))
        if score:
            level = 1.0 - 2.0 * norm.sf(1.96 * factor)
            low, high = (ends[0] for ends in estimate.interval(level))
        else:
            reach = 1.96 * estimate.standard_error[0]
            low, high = estimate.value[0] - reach, estimate.value[0] + reach
        covered += law[count] * (low <= holders / n <= high)
    return covered


@pytest.mark.parametrize(("k", "epsilon"), one_in(4, CELLS))
@pytest.mark.parametrize("n", [20, 100, 500])
def test_intervals_cover_at_every_share(k: int, epsilon: float, n: int) -> None:
    for holders in {0, 1, n // 10, n // 2, n - 1, n}:
        assert coverage(k, epsilon, n, holders) > 0.93, holders


# with (2, 8.0) a count varies by 1.3: half a step of its lattice is no small part of that
@pytest.mark.exhaust
@pytest.mark.parametrize(("k", "epsilon"), one_in(4, [cell for cell in CELLS if cell != (2, 8.0)]))
def test_intervals_of_many_people_cover_at_their_level_and_no_more(k: int, epsilon: float) -> None:
    for holders in (1500, 2500):
        assert 0.945 < coverage(k, epsilon, 5000, holders) < 0.965, holders
        assert coverage(k, epsilon, 5000, holders, factor=0.9) < 0.945, "an error a tenth too small is seen"
        assert coverage(k, epsilon, 5000, holders, factor=1.1) > 0.965, "an error a tenth too large is seen"


def test_the_same_search_catches_normal_intervals() -> None:
    assert coverage(1000, 4.0, 20, 10, score=False) < 0.8
    assert coverage(2, 8.0, 500, 500, score=False) < 0.9

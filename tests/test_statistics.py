"""The statistical assertions see what they say that they see, and nothing else."""

import numpy as np
import pytest
from scipy.stats import binom
from tests.statistics import (
    FALSE_ALARM,
    LONG,
    POWER,
    SHORT,
    Contradiction,
    coverages,
    expect_at_least,
    expect_broken,
    expect_caught,
    expect_coverage,
    expect_law,
    expect_mean,
    expect_share,
    expect_standard_error,
)
from tests.tiers import tiered

DRAW = np.random.default_rng(1)
NORMAL = DRAW.normal(size=(1500, 3))


def hits(count: int, n: int) -> np.ndarray:
    return np.arange(n) < count


def test_a_right_standard_error_passes_and_one_a_fifth_too_small_or_a_quarter_too_large_does_not() -> None:
    claimed = np.array([0.1, 1.0, 30.0])
    expect_mean(claimed * NORMAL, 0.0)
    expect_standard_error(claimed * NORMAL, claimed)
    for factor in (SHORT, LONG):
        for off in range(3):  # in one column of three is enough
            expect_caught(expect_standard_error, claimed * NORMAL, claimed * np.where(np.arange(3) == off, factor, 1))


def test_a_bias_of_half_a_standard_deviation_is_seen() -> None:
    expect_caught(expect_mean, NORMAL[:250], [0.0, 0.0, 0.5])


@pytest.mark.exhaust
@pytest.mark.parametrize(
    ("level", "trials"), tiered([(0.8, 1000), (0.9, 1100), (0.95, 1500)], first=lambda case: case[0] == 0.9)
)
def test_intervals_that_are_too_narrow_or_too_wide_are_seen_with_the_stated_power(level: float, trials: int) -> None:
    """By exact sums over what may be counted."""
    passing = np.zeros(trials + 1, dtype=bool)
    for count in range(trials + 1):
        try:
            expect_coverage(hits(count, trials), level)
        except Contradiction:
            continue
        passing[count] = True
    law = binom.pmf(np.arange(trials + 1), trials, level)
    assert law[~passing].sum() <= FALSE_ALARM
    for broken in coverages(level):
        assert binom.pmf(np.arange(trials + 1), trials, broken)[~passing].sum() >= POWER
    assert passing[round(level * trials)] and not passing[trials] and not passing[0]


def test_a_derived_slack_is_granted_on_both_sides() -> None:
    for share in (0.92, 0.98):
        expect_coverage(hits(round(share * 40_000), 40_000), 0.95, 0.03)
        expect_caught(expect_coverage, hits(round(share * 40_000), 40_000), 0.95)


@pytest.mark.parametrize(
    ("test", "claim"),
    [
        (expect_coverage, (hits(380, 400), 0.95)),
        (expect_coverage, (hits(950, 1000), 0.95)),  # enough for narrow intervals, and not for wide ones
        (expect_at_least, (hits(285, 300), 0.95)),
        (expect_share, (hits(5, 10), 0.5, 0.5, [0.9])),
        (expect_mean, (NORMAL[:100], 0.0)),
        (expect_standard_error, (NORMAL[:400], 1.0)),
    ],
)
def test_too_few_trials_are_refused_and_count_as_no_catch(test: object, claim: tuple[object, ...]) -> None:
    with pytest.raises(AssertionError, match="more trials"):
        test(*claim)  # type: ignore[operator]
    with pytest.raises(AssertionError, match="more trials"):
        expect_caught(test, *claim)  # type: ignore[arg-type]


def test_wide_intervals_are_no_fault_where_at_least_is_asked() -> None:
    expect_at_least(hits(900, 900), 0.95)
    expect_caught(expect_at_least, hits(750, 900), 0.95)


def test_what_is_right_is_not_caught() -> None:
    with pytest.raises(AssertionError, match="was not caught"):
        expect_caught(expect_mean, NORMAL, 0.0)
    with pytest.raises(AssertionError, match="was not caught"):
        expect_broken([500, 500], [0.5, 0.5])
    expect_law([500, 500], [0.5, 0.5])
    expect_caught(expect_law, [600, 400], [0.5, 0.5])

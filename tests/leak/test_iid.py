"""Any i.i.d. prior: the same answer by window, enumeration, sampling and closed form; the tail keeps its digits."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from tests.statistics import expect_at_least, expect_caught, expect_mean
from tests.tiers import one_in

from dovetail.core.channel import DenseChannel, KRRChannel
from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.leak import additive_leakage as sampled
from dovetail.leak import exact as histograms_module
from dovetail.leak.additive_leakage import chernoff_bound
from dovetail.leak.adversaries import iid_leakage
from dovetail.leak.exact import enumerate_histograms, histogram_count, sum_window
from dovetail.leak.max_load import max_load_gap
from dovetail.leak.vulnerability import vulnerability

SKEWED = np.array([0.4, 0.35, 0.25])


def joint(channel: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """diag(prior) R with the law of a report below."""
    return np.vstack([prior[:, None] * channel, prior @ channel])


@pytest.mark.parametrize("n", [2, 17, 1_000, 10**5])
def test_the_uniform_prior_gives_the_fullest_bin(n: int) -> None:
    found = iid_leakage(joint(np.eye(3), np.full(3, 1 / 3)), n=n)
    plain = max_load_gap(n, 3)
    assert found.lower <= plain.value / n + plain.error_bound / n
    assert found.upper >= plain.value / n - plain.error_bound / n
    assert found.value == pytest.approx(plain.value / n, rel=1e-12)


@pytest.mark.parametrize("kinds", [2, 3])
@pytest.mark.parametrize("n", [1, 2, 9, 60])
def test_the_window_holds_what_all_histograms_hold(kinds: int, n: int) -> None:
    law = np.array([0.5, 0.3, 0.2])[:kinds]
    law = law / law.sum()
    edge = np.array([[-1.0, 0.5, 0.7], [-0.3, -0.1, 0.9]])[:, :kinds]
    everything = enumerate_histograms(edge, law, n)
    assert sum_window(edge, law, n, 1e-300) == pytest.approx(everything, rel=1e-12)
    for least in (1e-3, 1e-6):
        part = sum_window(edge, law, n, least)
        assert part <= everything * (1 + 1e-12)
        assert everything <= part + histogram_count(n, kinds) * least * n * edge.max()


@pytest.mark.parametrize("n", one_in(3, [20, 300, 3_000]))
def test_tiny_leakage_keeps_its_digits(n: int) -> None:
    # binary response with p = 3/4 and prior (3/4, 1/4): in exact integers
    found = iid_leakage(joint(np.array([[0.75, 0.25], [0.25, 0.75]]), np.array([0.75, 0.25])), n=n)
    total = Fraction(0)
    for ones in range(n + 1):  # a 1 has chance 6/16; it speaks 3/16 against 3/16, a 0 speaks 1/16 against 9/16
        edge = Fraction((n - ones) * (1 - 9), 10) + Fraction(ones * (3 - 3), 6)
        total += max(Fraction(0), edge) * comb(n, ones) * 6**ones * 10 ** (n - ones)
    assert total == 0 and found.value == 0.0  # no report can change this guess
    steep = iid_leakage(joint(np.array([[0.75, 0.25], [0.125, 0.875]]), np.array([0.75, 0.25])), n=n)
    exact = Fraction(0)
    for ones in range(n + 1):  # weights in 32nds: a 0 is 18 against 1, a 1 is 6 against 7
        edge = Fraction((n - ones) * (1 - 18), 19) + Fraction(ones, 13)
        exact += max(Fraction(0), edge) * comb(n, ones) * Fraction(13, 32) ** ones * Fraction(19, 32) ** (n - ones)
    exact /= n
    assert 0.0 < exact < Fraction(1, 1000)
    assert steep.value > 0.0 or exact < Fraction(1, 10**269)
    if exact > Fraction(1, 10**269):
        assert abs(Fraction(steep.value) / exact - 1) < Fraction(1, 10**11)
    assert Fraction(steep.lower) <= exact <= Fraction(steep.upper)


def test_the_excess_stays_below_its_chernoff_bound_and_falls_exponentially() -> None:
    channel, prior = KRRChannel.of(3, 0.7).matrix(), SKEWED
    rows = joint(channel, prior)
    edge = (rows[:-1] - rows[0])[1:] / rows[-1]
    seen = []
    for n in (10, 100, 1_000, 10**5):
        found = iid_leakage(rows, n=n)
        assert found.value <= chernoff_bound(edge, rows[-1], n)
        seen.append(-np.log(found.value) / n)
    rate = -np.log(chernoff_bound(edge, rows[-1], 10**5)) / 10**5
    assert rate <= seen[-1] <= 1.05 * rate  # a power of n in front of e^(-nI)


@pytest.mark.exhaust
def test_a_million_people_with_three_kinds_of_report_take_two_sums() -> None:
    for prior in ([0.4, 0.4, 0.2], [0.34, 0.33, 0.33]):
        seen = vulnerability(KRRChannel.of(3, 0.6), n=10**6, prior=prior)
        assert seen.method == "exact sum"
        assert seen.randomized_shuffled_leakage > 0.0


def test_reports_that_say_the_same_are_one_kind() -> None:
    # a coin that speaks for 1 only, printed on five kinds of paper
    coin = np.array([[0.75, 0.25], [0.25, 0.75]])
    paper = np.repeat(coin, 5, axis=1) * np.tile([0.1, 0.2, 0.3, 0.2, 0.2], 2)
    plain, many = (vulnerability(DenseChannel(rows), n=10**4).randomized_shuffled_leakage for rows in (coin, paper))
    assert many == pytest.approx(plain, rel=1e-9)


def test_nobody_gains_when_no_report_can_change_the_guess() -> None:
    assert vulnerability(KRRChannel.of(3, 0.4), n=50, prior=[0.8, 0.1, 0.1]).randomized_shuffled_leakage == 0.0


@pytest.mark.exhaust
def test_a_sampled_interval_covers_the_enumerated_value(rng: Entropy, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = joint(KRRChannel.of(4, 0.6).matrix(), np.array([0.3, 0.3, 0.2, 0.2]))
    truth = iid_leakage(rows, n=30)
    assert truth.method == "enumerated"
    monkeypatch.setattr(histograms_module, "MOST_SUMS", 10)
    monkeypatch.setattr(sampled, "LEVEL", 0.9)
    monkeypatch.setattr(sampled, "DRAWS", 1_000)
    found = [iid_leakage(rows, n=30, rng=rng) for _ in range(900)]
    assert {one.method for one in found} == {"sampled"}
    values = np.array([one.value for one in found])
    expect_mean(values, truth.value)
    expect_caught(expect_mean, values, 1.03 * truth.value)
    expect_at_least([one.lower <= truth.value <= one.upper for one in found], 0.9)  # Bernstein's: wide by design
    sixth = [(one.upper - one.value) / 6 for one in found]
    expect_caught(expect_at_least, np.abs(values - truth.value) <= sixth, 0.9)


@pytest.mark.exhaust
def test_without_randomness_nothing_is_sampled(rng: Entropy) -> None:
    prior = [0.21, 0.2, 0.2, 0.2, 0.19]
    with pytest.raises(UnsupportedError, match="Pass `rng` to sample"):
        vulnerability(KRRChannel.of(5, 0.7), n=1_000, prior=prior)
    seen = vulnerability(KRRChannel.of(5, 0.7), n=1_000, prior=prior, rng=rng)
    assert seen.method == "sampled" and seen.level == 1.0 - 1e-6
    assert seen.randomized_shuffled_bracket.contains(seen.randomized_shuffled)
    assert seen.shuffled_bracket.gap < 1e-12  # shuffling alone is still summed exactly


@pytest.mark.exhaust
def test_skewed_shares_in_a_large_crowd_are_bounded_where_they_cannot_be_summed(rng: Entropy) -> None:
    prior = [0.5, 0.2, 0.15, 0.1, 0.05]
    for chosen in (None, rng):
        seen = vulnerability(KRRChannel.of(5, 0.5), n=10**6, prior=prior, rng=chosen)
        assert seen.method == "bracket" and 0.0 <= seen.randomized_shuffled_leakage <= seen.shuffled_leakage + 1e-8
        assert seen.randomized_shuffled_bracket.contains(0.5) and seen.randomized_shuffled <= 0.5 + 1e-8
    close = joint(KRRChannel.of(4, 0.9).matrix(), np.array([0.31, 0.27, 0.22, 0.2]))
    advantage, law = ((close[:-1] - close[0]) / close[-1])[1:], close[-1]
    for n in (10, 40):  # where it can be summed, the bound is above
        assert iid_leakage(close, n=n).value <= sampled.chernoff_bound(advantage, law, n)


def test_draws_are_cut_where_the_bound_says_that_little_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = joint(KRRChannel.of(4, 0.6).matrix(), np.array([0.3, 0.3, 0.2, 0.2]))
    law, n = rows[-1], 30
    edge = ((rows[:-1] - rows[0]) / law)[1:]
    for tau in (0.3, 0.01, 1e-4):
        monkeypatch.setattr(sampled, "TAU", tau)
        most, missed = sampled.clipping_threshold(edge, n)
        # beyond the cut: the excess over an action that earns `most` whatever is reported
        beyond = enumerate_histograms(edge - most, law, n) / n
        assert 0.0 <= beyond <= missed or (most == edge.max() and beyond < 1e-15)
    assert enumerate_histograms(edge - 0.25 * most, law, n) / n > missed  # a cut four times too low is caught


def test_a_sampled_interval_narrows_with_the_crowd(rng: Entropy) -> None:
    prior = np.array([0.202, 0.2, 0.2, 0.199, 0.199])
    rows = joint(KRRChannel.of(5, 0.7).matrix(), prior)
    found = iid_leakage(rows, n=10**5, rng=rng)
    assert found.method == "sampled"
    assert found.upper - found.value < 1e-5  # the largest advantage alone would leave 1e-3


def test_the_upper_end_counts_what_is_lost_where_reports_that_differ_by_rounding_are_merged() -> None:
    tiny, law = 2.0**-50, np.array([0.25, 0.375, 0.375])
    edge = np.array([-tiny, tiny, -1.0])  # the first two speak for and against another guess, and count as one kind
    found = iid_leakage(np.vstack([np.zeros(3), edge * law, law]), n=2)
    assert found.upper >= tiny * law[1] ** 2, "two reports of the second kind earn that, and nothing else does"


def test_the_upper_end_of_a_sample_counts_what_its_cut_takes(rng: Entropy, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = joint(KRRChannel.of(2, 0.9).matrix(), np.array([0.5, 0.5]))
    truth, edge = iid_leakage(rows, n=400), (rows[1:2] - rows[0]) / rows[-1]
    monkeypatch.setattr(sampled, "TAU", 0.99)  # cut low, and often
    found = sampled.monte_carlo_leakage(edge, rows[-1], n=400, rng=rng)
    assert found.value < 0.97 * truth.value and found.upper >= truth.value

"""Adversaries who know others: exact sums agree with each other and stay between the two ends."""

from fractions import Fraction
from itertools import pairwise, product
from math import factorial

import numpy as np
import pytest
from tests.tiers import tiered

from dovetail.core.channel import DenseChannel, KRRChannel
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.leak import adversaries as known_others
from dovetail.leak import adversaries as strong
from dovetail.leak import adversaries as strong_bounds
from dovetail.leak import exact as poisson_multinomial
from dovetail.leak.additive_leakage import AdditiveLeakage
from dovetail.leak.adversaries import (
    binary_known_others_leakage,
    blanket_upper_bound,
    identical_others_leakage,
    iid_leakage,
    known_others_leakage,
    merged_outputs_lower_bound,
)
from dovetail.leak.exact import IndependentReports
from dovetail.leak.query import parse_query
from dovetail.leak.vulnerability import Vulnerability, vulnerability


def known(channel: KRRChannel, counts: tuple[int, ...], n: int) -> Vulnerability:
    return vulnerability(channel, n=n, adversary="strong", known=counts)


def histograms(n: int, k: int) -> list[tuple[int, ...]]:
    return [z for z in product(range(n + 1), repeat=k) if sum(z) == n]


def ways(z: tuple[int, ...]) -> float:
    total = float(factorial(sum(z)))
    for count in z:
        total /= factorial(count)
    return total


@pytest.mark.parametrize(("k", "n"), [(2, 6), (3, 5), (4, 4), (5, 3)])
@pytest.mark.parametrize("p", [0.55, 0.8, 0.98])
def test_what_is_known_of_others_helps_on_average_and_never_beyond_the_bound(k: int, n: int, p: float) -> None:
    channel = KRRChannel.of(k, p)
    plain = vulnerability(channel, n=n).randomized_shuffled
    worst = vulnerability(channel, n=n, adversary="strong")
    every = {z: known(channel, z, n) for z in histograms(n - 1, k)}
    assert all(one.randomized_shuffled <= worst.randomized_shuffled + one.error_bound for one in every.values())
    assert worst.randomized_shuffled_bracket.contains(max(one.randomized_shuffled for one in every.values()))
    mean = sum(ways(z) * one.randomized_shuffled for z, one in every.items()) / k ** (n - 1)
    assert mean >= plain - 1e-13
    assert all(one.shuffled == pytest.approx(1.0, abs=1e-12) for one in every.values())


def test_one_histogram_may_help_less_than_knowing_nothing() -> None:
    channel = KRRChannel.of(2, 0.65)
    assert known(channel, (2, 0), 3).randomized_shuffled == pytest.approx(0.56825, abs=1e-14)
    assert vulnerability(channel, n=3).randomized_shuffled == pytest.approx(0.575, abs=1e-14)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_knowing_nobody_is_being_uninformed(k: int) -> None:
    channel = KRRChannel.of(k, 0.8)
    none = known(channel, (0,) * k, 40)
    plain = vulnerability(channel, n=40)
    assert none.randomized_shuffled_leakage == pytest.approx(plain.randomized_shuffled_leakage, rel=1e-12)
    assert none.shuffled == plain.shuffled


@pytest.mark.parametrize(
    "counts", [(50, 49, 0), (3, 0, 96), (4_000, 5_999, 0), (0, 0, 9_999), (500, 0, 300), (499_999, 500_000, 0)]
)
def test_two_sums_of_coins_agree_with_the_transform(counts: tuple[int, int, int]) -> None:
    channel = KRRChannel.of(2, 0.8)
    rows = channel.matrix()
    laws = (*rows, rows.mean(axis=0))
    others = [IndependentReports(count, law) for count, law in zip(counts, laws, strict=True)]
    coins, grid = binary_known_others_leakage(channel.contrast, others), known_others_leakage(rows / 2, others)
    assert abs(coins.value - grid.value) <= coins.error + grid.error
    assert grid.error <= 1e-12 + 4e-16 * sum(counts)  # a phase of n reports is good to n ulps


@pytest.mark.exhaust
@pytest.mark.parametrize("counts", [(30, 41), (100, 7), (1, 600)])
def test_sums_of_coins_hold_the_exact_fraction(counts: tuple[int, int]) -> None:
    laws, sums = (Fraction(13, 16), Fraction(3, 32)), [Fraction(1)]
    for count, share in zip(counts, laws, strict=True):
        for _ in range(count):
            sums = [
                share * a + (1 - share) * b for a, b in zip([Fraction(0), *sums], [*sums, Fraction(0)], strict=True)
            ]
    others = [
        IndependentReports(count, np.array([float(share), float(1 - share)]))
        for count, share in zip(counts, laws, strict=True)
    ]
    found = binary_known_others_leakage(0.75, others)
    assert Fraction(found.lower) < Fraction(3, 8) * max(sums) < Fraction(found.upper)
    assert found.error < 1e-13 * found.value


def test_a_window_that_cuts_both_axes_counts_what_both_leave_out() -> None:
    crowd = [IndependentReports(10**6, np.array([0.3, 0.3, 0.4]))]
    assert poisson_multinomial.window_sizes(crowd)[2] == 2 * poisson_multinomial.TAIL


@pytest.mark.parametrize(("k", "n"), [(3, 2), (3, 200), (4, 40), (5, 12)])
def test_others_who_are_all_alike_need_no_transform(k: int, n: int) -> None:
    channel = KRRChannel.of(k, 0.7)
    fast = identical_others_leakage(channel, n=n)
    grid = known_others_leakage(channel.matrix() / k, [IndependentReports(n - 1, channel.matrix()[0])])
    assert abs(fast.value - grid.value) <= fast.error + grid.error
    assert known(channel, (n - 1, *[0] * (k - 1)), n).randomized_shuffled_leakage == fast.value


def test_a_narrower_window_keeps_the_truth_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = KRRChannel.of(3, 0.8)
    others = [IndependentReports(count, law) for count, law in zip((300, 200, 100), channel.matrix(), strict=True)]
    truth = known_others_leakage(channel.matrix() / 3, others)
    for tail in (1e-6, 1e-3, 1e-2):
        monkeypatch.setattr(poisson_multinomial, "TAIL", tail)
        found = known_others_leakage(channel.matrix() / 3, others)
        assert found.error > truth.error
        assert abs(found.value - truth.value) <= found.error


@pytest.mark.parametrize("counts", [(20, 15, 4), (39, 0, 0), (5, 5, 5)])
def test_merging_and_revealing_bracket_the_exact_sum(counts: tuple[int, ...]) -> None:
    channel = KRRChannel.of(3, 0.75)
    rows = channel.matrix()
    others = [IndependentReports(count, law) for count, law in zip(counts, rows, strict=True)]
    others.append(IndependentReports(39 - sum(counts), rows.mean(axis=0)))
    exact = known_others_leakage(rows / 3, others)
    assert merged_outputs_lower_bound(rows / 3, others, known=counts) <= exact.upper
    assert exact.lower <= blanket_upper_bound(channel, n=40)


def test_many_values_and_mixed_knowledge_give_a_bracket_and_say_so() -> None:
    channel = KRRChannel.of(20, 0.8)
    seen = known(channel, (500, 300, 199, *[0] * 17), 1_000)
    ends = seen.randomized_shuffled_bracket
    assert seen.method == "bracket"
    assert seen.prior < ends.lower < ends.upper
    assert seen.randomized_shuffled == pytest.approx(ends.upper, abs=1e-15)  # quoted against ourselves
    assert ends.upper < seen.randomized


@pytest.mark.exhaust
def test_more_is_hidden_behind_more_people_whatever_is_known() -> None:
    channel = KRRChannel.of(7, 0.8)
    bounds = [blanket_upper_bound(channel, n=n) for n in (1, 2, 10, 100, 1_000, 10**5)]
    assert all(a > b for a, b in pairwise(bounds))
    assert bounds[0] == pytest.approx(channel.p - 1 / 7, rel=1e-9)


def test_any_randomizer_and_gain_are_answered() -> None:
    channel = DenseChannel([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125]])
    for gain in (None, "distance", [[1.0, 0.0], [0.0, 3.0]]):
        seen = vulnerability(
            channel,
            n=50,
            adversary="strong",
            known=(20, 10),
            prior=[0.25, 0.75],
            gain=gain,  # type: ignore[arg-type]
        )
        assert seen.method == "exact sum"
        assert seen.prior <= seen.randomized_shuffled <= min(seen.randomized, seen.shuffled)


def test_knowledge_that_cannot_be_is_refused() -> None:
    channel = KRRChannel.of(3, 0.8)
    for counts in ((5, 5), (5, 5, 5), (4, 3, 3), (1.5, 0, 0), (-1, 0, 0), "1,2,3", (True, 0, 0)):
        with pytest.raises(ParameterError, match="`known`"):
            known(channel, counts, 10)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="goes with"):
        vulnerability(channel, n=10, known=(3, 3, 3))
    with pytest.raises(UnsupportedError, match="p >= 1/k"):
        vulnerability(KRRChannel(3, 1, 2), n=10, adversary="strong")
    with pytest.raises(UnsupportedError, match="uniform prior and one try"):
        vulnerability(channel, n=10, adversary="strong", tries=2)
    with pytest.raises(UnsupportedError, match="Certified mode"):
        vulnerability(channel, n=10, adversary="strong", certified=True)


def test_a_million_with_two_values_and_ten_thousand_with_three_are_exact() -> None:
    two = known(KRRChannel.of(2, 0.8), (300_000, 300_000), 10**6)
    three = known(KRRChannel.of(3, 0.8), (3_333, 3_333, 3_333), 10**4)
    assert two.method == three.method == "exact sum"
    # (2p - 1)/(2 sqrt(2 pi v)), v = Var(T): the limit of the strong adversary, within 1/n of it
    spread = 600_000 * 0.16 + 399_999 * 0.25
    assert two.randomized_shuffled_leakage == pytest.approx(0.3 / np.sqrt(2 * np.pi * spread), rel=1e-5)
    assert three.error_bound < 1e-10


@pytest.mark.exhaust
@pytest.mark.parametrize(
    ("k", "n"), tiered([(2, 10**5), (2, 10**6), (3, 10**4), (3, 10**5)], first=lambda case: case[0] == 2)
)
def test_the_transform_stays_within_its_bound_of_sums_of_positive_terms(k: int, n: int) -> None:
    for lean in (0.0, 1e-4, 1e-3, 5e-3, 0.05):
        prior = np.full(k, 1 / k) + lean * np.linspace(-1, 1, k)
        query = parse_query(KRRChannel(k, 3, 1), n=n, prior=prior, tries=1, gain=None)
        joint = query.joint()
        grid, sums = known_others_leakage(joint[:-1], [IndependentReports(n - 1, joint[-1])]), iid_leakage(joint, n=n)
        assert abs(grid.value - sums.value) <= grid.error + sums.error
        none = vulnerability(KRRChannel(k, 3, 1), n=n, prior=prior, adversary="strong", known=[0] * k)
        # also where the transform would be noise
        assert none.randomized_shuffled_leakage == pytest.approx(sums.value, rel=1e-12, abs=0.0)


def test_two_long_windows_are_summed_as_exactly_as_two_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = KRRChannel.of(2, 0.8).matrix()
    for counts in ((300, 40, 500), (20_000, 10_000, 30_000), (3, 50_000, 2)):
        others = [
            IndependentReports(count, law) for count, law in zip(counts, (*rows, rows.mean(axis=0)), strict=True)
        ]
        short = binary_known_others_leakage(0.6, others)
        monkeypatch.setattr(known_others, "DIRECT_PRODUCTS", 0)
        long = binary_known_others_leakage(0.6, others)
        monkeypatch.undo()
        assert abs(long.value - short.value) <= long.error + short.error
        assert long.value == pytest.approx(short.value, rel=1e-12)


def test_a_billion_people_of_two_values_do_not_hang() -> None:
    seen = known(KRRChannel.of(2, 0.75), (10**8, 10**8), 10**9)
    spread = 2e8 * 0.1875 + 8e8 * 0.25
    assert seen.randomized_shuffled_leakage == pytest.approx(0.25 / np.sqrt(2 * np.pi * spread), rel=1e-7)


def test_others_who_are_all_alike_are_strong_bounds_where_they_are_too_many_to_sum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*_: object, **__: object) -> AdditiveLeakage:
        raise UnsupportedError("too many")

    channel, counts = KRRChannel.of(20, 0.8), (999, *[0] * 19)
    exact = known(channel, counts, 1_000)
    monkeypatch.setattr(strong, "identical_others_leakage", refused)
    ends = known(channel, counts, 1_000)
    assert (exact.method, ends.method) == ("exact sum", "bracket")
    assert ends.randomized_shuffled_bracket.contains(exact.randomized_shuffled)


@pytest.mark.exhaust
def test_one_step_bounds_every_knowledge_almost_as_tightly(monkeypatch: pytest.MonkeyPatch) -> None:
    channel, n = KRRChannel.of(7, 0.8), 100_000
    fine = blanket_upper_bound(channel, n=n)
    monkeypatch.setattr(strong_bounds, "MANY", 0)
    assert fine < blanket_upper_bound(channel, n=n) < 1.03 * fine

"""The window mechanism has its law, is unbiased between grid points, and contains the mechanisms it is said to."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.device.words import ChosenBits
from tests.randomize.chosen import Chosen
from tests.statistics import expect_broken, expect_law

from dovetail.account.mechanism_law import law_epsilon
from dovetail.core.channel import KRRChannel
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.estimate.mean import estimate_quantile, estimate_sum
from dovetail.randomize.krr import KRR
from dovetail.randomize.window import Window
from dovetail_protocol.exact_thresholds import WORD, exp_bracket

EXAMPLES = list(Window.examples())
DRAWS = 30_000


def law(window: Window, value: float) -> np.ndarray:
    outputs = np.arange(window.outputs)
    return np.exp(window.log_density(outputs, np.full(outputs.size, value)))


def within(window: Window) -> list[float]:
    """Values on the grid and between its points."""
    return [window.lower + window.step * at for at in (0, 0.25, 0.5, 1, window.steps / 2, window.steps)]


@pytest.mark.parametrize("window", EXAMPLES, ids=repr)
def test_reports_are_unbiased_with_the_stated_variance_at_most(window: Window) -> None:
    decoded = window.decode(np.arange(window.outputs))
    variances = []
    for value in np.linspace(window.lower, window.upper, 8 * window.steps + 1):
        held = law(window, value)
        assert held.sum() == pytest.approx(1.0, abs=1e-12)
        assert held @ decoded == pytest.approx(value, abs=1e-9)
        variances.append(held @ (decoded - value) ** 2)
    assert max(variances) <= window.noise_variance * (1 + 1e-12)
    assert max(variances) == pytest.approx(
        window.noise_variance, rel=0.02
    )  # the worst value is near the grid of eighths


@pytest.mark.parametrize("window", EXAMPLES, ids=repr)
def test_the_variance_on_grid_points_is_the_formula(window: Window) -> None:
    decoded, gamma, m, w = window.decode(np.arange(window.outputs)), window.truthful, window.steps, window.width
    for v in range(m + 1):
        value = window.lower + v * window.step
        exact = law(window, value) @ (decoded - value) ** 2 / window.step**2
        noise = gamma * (w**2 - 1) / 12 + (1 - gamma) * ((m + w) ** 2 - 1) / 12
        assert exact == pytest.approx((gamma * (1 - gamma) * (v - m / 2) ** 2 + noise) / gamma**2, rel=1e-9)


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 7.7, 44.0, 700.0])
@pytest.mark.parametrize(("steps", "width"), [(1, 1), (5, 2), (11_000, 1000), (1 << 31, 1 << 31)])
def test_realized_ratios_stay_below_e_to_the_epsilon(epsilon: float, steps: int, width: int) -> None:
    inside, low = Window(0.0, float(steps), epsilon, width, grid=1.0).device.masses
    ratio = Fraction(inside, width * low)
    assert inside + steps * low == WORD and low >= 1
    assert 1 < ratio <= exp_bracket(Fraction(epsilon), digits=100)[0]
    if epsilon < 8:
        assert float(ratio) == pytest.approx(np.exp(epsilon), rel=1e-6)


@pytest.mark.parametrize("window", EXAMPLES, ids=repr)
def test_reports_have_the_law_of_the_log_density(window: Window, rng: Entropy) -> None:
    for value in within(window):
        counts = np.bincount(window.randomize(np.full(DRAWS, value), rng), minlength=window.outputs)
        expect_law(counts, law(window, value))
        other = window.lower if value > (window.lower + window.upper) / 2 else window.upper
        expect_broken(counts, law(window, other))


@pytest.mark.parametrize("window", EXAMPLES, ids=repr)
def test_both_ends_round_and_decide_the_edges_of_their_thresholds_alike(window: Window) -> None:
    inside, _ = window.device.masses
    for value in within(window):
        up = (value - window.lower) / (window.upper - window.lower) * window.steps % 1
        for coin in {0, max(0, int(up * WORD) - 1), min(WORD - 1, int(up * WORD)), WORD - 1}:
            for word in (0, WORD - inside - 1, WORD - inside, WORD - 1):
                last = min(1, window.width - 1)  # the second output of the window, where there is one
                there = window.device.randomize(value, ChosenBits([coin, word, last]))
                here = window.randomize([value], Chosen([coin, word, last]))
                assert here.tolist() == [there]


def test_few_levels_are_k_ary_randomized_response_to_the_last_bit() -> None:
    window = Window(0.0, 9.0, 2.0, window=1, grid=1.0)
    assert window.accounted == KRRChannel(10, *KRR(10, 2.0).device.masses)
    np.testing.assert_allclose([law(window, float(v)) for v in range(10)], window.accounted.matrix(), rtol=1e-12)
    bit = Window(0.0, 1.0, 1.0, window=1, grid=1.0)
    assert law(bit, 0.3)[1] == pytest.approx(0.3 * KRR(2, 1.0).channel().p + 0.7 * KRR(2, 1.0).channel().s)


def test_the_piecewise_mechanism_is_a_member_and_the_default_is_more_accurate() -> None:
    for epsilon in (0.5, 2.0, 4.0, 8.0):
        m, root = 1 << 16, np.exp(epsilon / 2)
        piecewise = Window(-1.0, 1.0, epsilon, window=round(m / root))
        c = (root + 1) / (root - 1)
        assert piecewise.width / piecewise.outputs == pytest.approx((c - 1) / (2 * c), rel=1e-3)
        # Wang et al. (2019), Lemma 1, at x = 1
        worst = 1 / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
        assert piecewise.noise_variance == pytest.approx(worst, rel=1e-3)
        assert Window(-1.0, 1.0, epsilon).noise_variance < piecewise.noise_variance


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 5.0, 12.0])
def test_no_width_is_clearly_more_accurate_than_the_default(epsilon: float) -> None:
    chosen = Window(0.0, 1.0, epsilon)
    widths = np.unique(np.geomspace(chosen.width / 2, min(chosen.width * 2, chosen.steps), 60).astype(int))
    others = [Window(0.0, 1.0, epsilon, int(width)).noise_variance for width in widths]
    assert chosen.noise_variance <= min(others) * 1.0008


@pytest.mark.parametrize("steps", [7, 12, 40])
def test_a_window_is_bounded_between_the_symbols_below_and_above_its_real_number(steps: int) -> None:
    window = Window(0.0, float(steps), 3.0, 5, grid=1.0)
    below = KRRChannel(1 + steps // 5, *KRR(1 + steps // 5, 3.0).device.masses)
    ends = [law_epsilon(channel, n=500, delta=1e-6) for channel in (below, KRR(2 + steps // 5, 3.0).channel())]
    own = law_epsilon(window, n=500, delta=1e-6)
    assert min(ends) * (1 - 1e-9) <= own <= max(ends) * (1 + 1e-3)
    if below.k > 2:  # of two symbols only the whole cover is counted
        assert ends[0] >= own * (1 - 1e-3) >= ends[1] * (1 - 2e-3)


def test_the_default_width_is_decided_exactly_and_is_1_where_windows_do_not_pay() -> None:
    assert [Window(0.0, 9.0, epsilon, grid=1.0).width for epsilon in (0.01, 2.0, 5.0, 8.0, 700.0)] == [9, 5, 2, 1, 1]
    assert Window(0.0, 1.0, 1e-3, grid=1.0).width == 1


def test_sums_of_whole_numbers_are_not_rounded(rng: Entropy) -> None:
    window = Window(0.0, 5.0, 8.0, 1, grid=1.0)
    values = np.arange(6.0).repeat(2000)
    estimate = estimate_sum(window, window.randomize(values, rng))
    assert abs(float(estimate.value) - values.sum()) < 6 * float(estimate.standard_error)


def test_what_needs_geometric_noise_is_refused_by_name(rng: Entropy) -> None:
    window = EXAMPLES[0]
    with pytest.raises(UnsupportedError, match="tell the mean and the sum only"):
        estimate_quantile(window, window.randomize([0.5] * 10, rng), share=0.5)


@pytest.mark.parametrize(
    "bad",
    [
        {"lower": 1.0},
        {"upper": float("nan")},
        {"epsilon": 0.0},
        {"epsilon": 1e-19},
        {"grid": 0.3},
        {"window": 0},
        {"window": 11},
        {"window": 2.5},
        {"window": True},
    ],
)
def test_parameters_outside_their_ranges_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=f"`{next(iter(bad)) if bad != {'lower': 1.0} else 'upper'}`"):
        Window(**{"lower": 0.0, "upper": 1.0, "epsilon": 1.0, "grid": 0.1, **bad})


@pytest.mark.parametrize("report", [-1, 11])
def test_reports_beyond_the_last_output_are_refused(report: int) -> None:
    window = EXAMPLES[0]
    with pytest.raises(DataError, match="the window mechanism sends"):
        estimate_sum(window, np.array([0, report]))
    with pytest.raises(DataError):
        window.device.encode(report)

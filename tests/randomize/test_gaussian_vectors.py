"""Discrete Gaussian noise: the sampler's law, the local guarantee by enumeration, the channel of an interval."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr
from tests.statistics import expect_broken, expect_law, rng_of

from dovetail.core.discrete_noise import _exp_minus, _exponents, discrete_gaussian
from dovetail.core.entropy import simulation
from dovetail.core.errors import ParameterError
from dovetail.core.special import Reals, gaussian_delta
from dovetail.randomize.vectors.gaussian import SMOOTH, Gaussian, gaussian_channel, largest_mu, shift_delta


def law(variance: float, reach: int) -> Reals:
    """Masses on -reach .. reach, what lies beyond at the ends."""
    z = np.arange(-60, 61)
    masses = np.exp(-0.5 * z**2 / variance)
    return np.asarray(np.bincount(np.clip(z, -reach, reach) + reach, masses / masses.sum()), dtype=np.float64)


@pytest.mark.parametrize("variance", [Fraction(9, 4), Fraction(1, 4), Fraction(30)], ids=str)
def test_noise_is_discrete_gaussian(variance: Fraction) -> None:
    drawn = discrete_gaussian(variance, 40_000, rng_of(f"discrete Gaussian {variance}"))
    seen = np.bincount(np.clip(drawn, -9, 9) + 9, minlength=19)
    expect_law(seen, law(float(variance), 9))
    expect_broken(seen, law(1.25 * float(variance), 9))


def test_exponents_are_exact_also_beyond_63_bits() -> None:
    a, t = 1 << 28, (1 << 14) + 1
    sizes = np.array([0, 1, t, 20 * t, 300_000, 400_000, 10**8])
    times, rest = _exponents(sizes, t, a, 2 * a * t * t)
    for size, whole, part in zip(sizes.tolist(), times.tolist(), rest.tolist(), strict=True):
        gamma = (size - Fraction(a, t)) ** 2 / (2 * a)
        assert whole + Fraction(part, 2 * a * t * t) == gamma


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_events_of_an_exponential_have_its_probability(share: float) -> None:
    whole = 10**12
    events = _exp_minus(np.full(40_000, round(share * whole)), whole, rng_of(f"exponential {share}"))
    p = math.exp(-share)
    expect_law([int(events.sum()), int((~events).sum())], [p, 1.0 - p])
    if share:
        expect_broken([int(events.sum()), int((~events).sum())], [1.0 - share, share])


def slack(epsilon: float, variance: float, apart: int) -> float:
    """delta of two numbers so many steps apart, exactly."""
    z = np.arange(-4000, 4001)
    masses = np.exp(-0.5 * z**2 / variance)
    masses /= masses.sum()
    return float(np.maximum(masses - math.exp(epsilon) * np.roll(masses, apart), 0.0)[apart:-apart].sum())


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0, 8.0])
def test_the_local_guarantee_holds_and_is_not_much_too_weak(epsilon: float) -> None:
    noise = Gaussian(1, 1.0, epsilon)
    assert max(slack(epsilon, float(noise.variance), apart) for apart in range(1, 9)) <= noise.guarantee.delta
    assert slack(epsilon, 0.995 * float(noise.variance), 8) > noise.guarantee.delta


@pytest.mark.parametrize("epsilon", [20.0, 60.0])
def test_of_little_noise_numbers_that_are_near_count_too(epsilon: float) -> None:
    noise = Gaussian(1, 1.0, epsilon)
    found = [slack(epsilon, float(noise.variance), apart) for apart in range(1, 9)]
    assert max(found) <= shift_delta(float(noise.variance), epsilon) <= max(found) * (1.0 + 1e-6) <= noise.delta0


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (4.0, 1e-9), (8.0, 1e-3)])
def test_the_largest_shift_keeps_delta_and_a_larger_one_does_not(epsilon: float, delta: float) -> None:
    mu = largest_mu(epsilon, delta)
    kept, most = (
        ndtr(0.5 * mu * far - epsilon / (mu * far)) - math.exp(epsilon) * ndtr(-0.5 * mu * far - epsilon / (mu * far))
        for far in (1.0, 1.0 + 1e-6)
    )
    assert kept <= delta < most


@pytest.mark.parametrize("shift", [(7, 0), (5, 5), (6, 3)])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_discrete_noise_tells_no_more_than_continuous_noise_of_nine_less_variance(
    shift: tuple[int, int], epsilon: float
) -> None:
    variance, z = 25.0, np.arange(-100, 101)
    one = np.exp(-0.5 * z**2 / variance)
    one /= one.sum()
    here = np.outer(one, one)
    there = np.outer(np.roll(one, shift[0]), np.roll(one, shift[1]))
    exact = float(
        np.maximum(here - math.exp(epsilon) * there, 0.0).sum()
    )  # all reports within 20 standard deviations
    said = gaussian_delta(epsilon, mu=math.hypot(*shift) / math.sqrt(variance - SMOOTH)).upper
    less = gaussian_delta(epsilon, mu=0.95 * math.hypot(*shift) / math.sqrt(variance)).upper
    assert less < exact <= said


def test_vectors_are_never_further_apart_than_is_charged() -> None:
    noise, rng = Gaussian(20, 1.0, 0.5), rng_of("never further apart")
    charged = noise.mu * math.sqrt(float(noise.variance))
    rows = np.sign((rng.words(4000) & np.uint64(1)).astype(float) - 0.5).reshape(200, 20) / math.sqrt(20)
    scaled = rows / noise.step
    worst = np.floor(scaled) - np.floor(-scaled + 1.0)  # x rounded down, -x rounded up
    assert np.linalg.norm(worst, axis=1).max() <= charged
    assert 2.0 / noise.step + 2.0 * math.sqrt(20) == pytest.approx(charged, rel=1e-7)


@pytest.mark.parametrize("radius", [1e-200, 0.1, 1e200])
@pytest.mark.parametrize("d", [1, 2])
def test_no_radius_spreads_reports_of_opposite_vectors_further(d: int, radius: float) -> None:
    noise, person = Gaussian(d, radius, 700.0), np.zeros((50, d))
    person[:, 0] = radius
    charged = 8.0 if d == 1 else noise.mu * math.sqrt(float(noise.variance))
    far, near = (noise.randomize(sign * person, simulation(3))[:, 0].mean() for sign in (1.0, -1.0))
    assert abs(far - near) <= charged + 6.0 * math.sqrt(2.0 * float(noise.variance) / 50)  # false alarm 2e-9


def test_long_vectors_are_shortened_as_a_whole() -> None:
    noise = Gaussian(4, 1.0, 4.0)
    found = noise.estimate(noise.randomize(np.full((2000, 4), 9.0), rng_of("shortened as a whole")))
    assert np.abs(found - 0.5).max() < 6.5 * noise.coordinate_error(2000) < 0.4


def test_reports_of_an_interval_come_from_the_channel_that_is_accounted() -> None:
    noise = Gaussian(1, 1.0, 8.0)
    held = noise.sampled
    assert held is not None
    rows = gaussian_channel(steps=held.steps, sigma=held.sigma).matrix()
    for value, mix in ((-1.0, rows[0]), (0.125, 0.5 * (rows[4] + rows[5]))):
        reports = noise.randomize(np.full((40_000, 1), value), rng_of(f"interval {value}"))[:, 0]
        seen = np.bincount(reports + 4 + noise.reach, minlength=rows.shape[1])
        expect_law(seen, mix)
        expect_broken(seen, rows[8])


def test_errors_are_those_of_the_noise() -> None:
    noise = Gaussian(50, 2.0, 4.0)
    vectors = np.full((500, 50), 0.2)
    off = np.array([noise.estimate(noise.randomize(vectors, simulation(seed))) - 0.2 for seed in range(4)])
    assert 0.8 < math.sqrt(float(np.mean(off**2))) / noise.coordinate_error(500) < 1.2  # 200 squares: 5 %


def test_a_budget_too_small_is_refused_before_noise_is_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "dovetail.randomize.vectors.gaussian.shift_delta", lambda *_: pytest.fail("half a minute of sums")
    )
    with pytest.raises(ParameterError, match="`epsilon` must be larger at delta0"):
        Gaussian(1, 1.0, 1e-3, delta0=1e-9)


def test_parameters_out_of_range_are_refused() -> None:
    for wrong, words in (
        ({"delta0": 0.0}, "`delta0` must be"),
        ({"delta0": 1.0}, "`delta0` must be"),
        ({"d": 5000}, "`d` must be"),
        ({"d": 4096, "epsilon": 0.01}, "`epsilon` must be larger"),
        ({"d": 1, "epsilon": 1e-3, "delta0": 1e-9}, "`epsilon` must be larger at delta0"),
        ({"d": 1, "radius": 2.5e-323}, "`radius` must be"),  # delta(4) was 3.6e-5 where 1e-6 was promised
        ({"radius": 1.7e308}, "`radius` must be"),
    ):
        with pytest.raises(ParameterError, match=words):
            Gaussian(**{"d": 3, "radius": 1.0, "epsilon": 1.0, **wrong})  # type: ignore[arg-type]
    for variance in (Fraction(0), Fraction(1 << 40), Fraction(-1)):
        with pytest.raises(ParameterError, match="`variance` must be"):
            discrete_gaussian(variance, 1, simulation(1))


def test_a_smaller_delta_or_epsilon_needs_more_noise() -> None:
    found = [largest_mu(epsilon, delta) for epsilon, delta in ((1.0, 1e-9), (1.0, 1e-6), (2.0, 1e-6), (300.0, 1e-6))]
    assert 0.0 < found[0] < found[1] < found[2] < found[3] < 25.0

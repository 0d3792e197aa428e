"""The closest of random directions: the law of a report, what it promises, and errors next to those of PrivUnit."""

import math

import numpy as np
import pytest
from scipy.stats import norm
from tests.oracles.test_several_questions import worst
from tests.statistics import expect_broken, expect_law, rng_of

from dovetail.account.mechanism_law import mechanism_law
from dovetail.account.questions import ChosenWord
from dovetail.core.entropy import simulation
from dovetail.core.errors import DataError, ParameterError
from dovetail.core.special import Reals
from dovetail.randomize.sampling.vector_randomizer import VECTOR_RANDOMIZERS, directions_of
from dovetail.randomize.vectors.closest_direction import ClosestDirection, largest_of

CELLS = np.array([-np.inf, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, np.inf])


def along_law(noise: ClosestDirection) -> Reals:
    """A report along the vector: the largest |N| of m with probability c, one of all the directions else."""
    c, m = noise.response.channel().contrast, noise.pairs
    inside = np.maximum(2.0 * norm.cdf(CELLS) - 1.0, 0.0) ** m
    return np.asarray(np.diff(c * inside + (1.0 - c) * norm.cdf(CELLS)))


def signed(reports: np.ndarray, d: int) -> Reals:
    """The direction of each report, the lifted coordinate last."""
    signs = 1.0 - 2.0 * (reports & np.uint64(1)).astype(float)
    return signs[:, None] * directions_of(reports & ~np.uint64(1), d + 1).astype(float)


@pytest.mark.parametrize(
    "noise", [ClosestDirection(2, 1.0, 3.0, axes=5), ClosestDirection(2, 4.0, 1.0, axes=1)], ids=str
)
def test_reports_come_from_the_law_along_the_vector_and_across_it(noise: ClosestDirection) -> None:
    vector = np.array([0.6, -0.5]) * noise.radius
    lifted = np.array([0.6, -0.5, math.sqrt(1.0 - 0.61)])
    made = signed(noise.randomize(np.tile(vector, (30_000, 1)), rng_of(f"along {noise}")), 2)
    seen = np.histogram(made @ lifted, CELLS)[0]
    expect_law(seen, along_law(noise))
    expect_broken(seen, along_law(ClosestDirection(2, 1.0, 1.25 * noise.epsilon, axes=noise.axes)))
    across = np.cross(lifted, [0.0, 0.0, 1.0])
    expect_law(np.histogram(made @ across / np.linalg.norm(across), CELLS)[0], np.diff(norm.cdf(CELLS)))


def test_long_vectors_are_shortened_and_short_ones_keep_their_length() -> None:
    noise = ClosestDirection(2, 0.5, 4.0)
    made = {
        length: signed(noise.randomize(np.tile([0.0, length], (20_000, 1)), rng_of(f"length {length}")), 2)
        for length in (7.0, 0.0)
    }
    expect_law(np.histogram(made[7.0][:, 1], CELLS)[0], along_law(noise))
    expect_law(np.histogram(made[0.0][:, 2], CELLS)[0], along_law(noise))
    expect_broken(np.histogram(made[0.0][:, 1], CELLS)[0], along_law(noise))


def test_whatever_the_vector_is_one_symbol_is_held_and_k_ary_response_reports_it() -> None:
    """All of the privacy proof: given the drawn words a report is k-ary response to a function of the vector."""
    noise, rng = ClosestDirection(3, 1.0, 2.0, axes=4), rng_of("one symbol is held")
    vectors = np.vstack([np.eye(3), -np.eye(3), np.zeros((1, 3)), np.full((1, 3), 1e300)])
    words = np.tile(rng.words(4) & ~np.uint64(1), (len(vectors), 1))
    held = noise._closest(words, noise._lifted(vectors))
    assert held.shape == (8,) and set(held) <= set(range(8)) and len(set(held)) > 2
    law = noise.response.channel().matrix()[held]
    assert np.log(law.max(axis=0) / law.min(axis=0)).max() <= noise.guarantee.epsilon <= 2.0
    inner = signed(np.concatenate([words[0], words[0] | np.uint64(1)]), 3) @ noise._lifted(vectors).T
    order = [2 * k + s for s in (0, 1) for k in range(4)]
    assert [order[j] for j in inner.argmax(axis=0)] == held.tolist()


def test_the_mean_is_unbiased_and_as_far_off_as_is_promised() -> None:
    noise, n = ClosestDirection(100, 2.0, 4.0), 3000
    vectors = np.outer(np.linspace(0.0, 2.0, n), np.full(100, 0.1))
    off = np.array([noise.estimate(noise.randomize(vectors, simulation(seed))) for seed in range(4)]) - vectors.mean(
        axis=0
    )
    # 400 squares: relative standard deviation of their mean .07; of the mean along the vectors, 1/2 standard error
    assert 0.7 < math.sqrt(float(np.mean(np.sum(off**2, axis=1)))) / noise.error(n) < 1.25
    assert abs(float(off.mean(axis=0).sum() / 10.0)) < 6.2 * noise.coordinate_error(n) / 2.0
    assert noise.coordinate_error(n) * 10.0 == pytest.approx(noise.error(n), rel=0.05)


@pytest.mark.parametrize("d", [1, 20])
def test_one_mean_in_twenty_is_further_off_than_is_said(d: int) -> None:
    noise, people, times = ClosestDirection(d, 1.0, 4.0), 100, 600
    vectors = np.tile(np.eye(d)[0], (people * times, 1))
    reports = noise.randomize(vectors, rng_of(f"one in twenty {d}")).reshape(times, people)
    off = [float(np.linalg.norm(noise.estimate(row) - np.eye(d)[0])) for row in reports]
    outside = int(np.count_nonzero(np.array(off) > noise.error95(people)))
    expect_law([times - outside, outside], [0.95, 0.05])
    expect_broken([times - outside, outside], [0.8, 0.2])
    if d == 1:
        assert noise.error95(7) == pytest.approx(1.95996 * noise.error(7), rel=1e-5)


@pytest.mark.parametrize("m", [1, 2, 7])
def test_errors_follow_from_the_law_of_a_report(m: int) -> None:
    noise = ClosestDirection(5, 3.0, 2.0, axes=m)
    c = noise.response.channel().contrast
    t = np.linspace(-12.0, 12.0, 400_001)
    density = np.gradient(c * np.maximum(2.0 * norm.cdf(t) - 1.0, 0.0) ** m + (1.0 - c) * norm.cdf(t), t)
    first, second = (float(np.sum(t**power * density)) * (t[1] - t[0]) for power in (1, 2))
    assert first == pytest.approx(c * largest_of(m)[0], rel=1e-4)
    assert noise.error(1) ** 2 == pytest.approx(9.0 * max(5.0 / first**2, (4.0 + second) / first**2 - 1.0), rel=1e-3)
    assert noise.coordinate_error(1) ** 2 == pytest.approx(9.0 * max(1.0, second - first**2) / first**2, rel=1e-3)
    assert noise.error(100) == pytest.approx(noise.error(1) / 10.0)


@pytest.mark.parametrize("epsilon", [0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0])
def test_the_number_of_axes_is_the_best_and_the_error_near_that_of_priv_unit(epsilon: float) -> None:
    noise = ClosestDirection(500, 1.0, epsilon)
    for axes in (noise.pairs - 1, noise.pairs + 1):
        if axes:
            assert ClosestDirection(500, 1.0, epsilon, axes=axes).error(1) >= (1.0 - 1e-6) * noise.error(1)
    p, cap = math.exp(epsilon), np.geomspace(1e-5, 0.5, 500)  # PrivUnit: with p on a cap, Gaussian coordinates
    optimum = float(np.max((p - 1.0) / (p * cap + 1.0 - cap) * norm.pdf(norm.isf(cap))))
    assert 1.0 <= optimum * noise.error(1) / math.sqrt(500.0) < 1.14


def test_no_collection_of_people_is_more_exposed_than_the_law_of_a_word_says() -> None:
    """Every released word of a world with three words, every set of two that can be drawn, every collection."""
    noise = ClosestDirection(1, 1.0, 1.5, axes=2)
    words = np.array([2, 4, 6], dtype=np.uint64)
    vectors = np.array([[-1.0], [-0.4], [0.3], [1.0]])
    law, response = np.zeros((4, 6)), noise.response.channel().matrix()
    for one in range(3):
        for two in range(3):
            drawn = np.tile(words[[one, two]], (4, 1))
            held = response[noise._closest(drawn, noise._lifted(vectors))] / 9.0
            for symbol in range(4):
                law[:, 2 * (one, two)[symbol >> 1] + (symbol & 1)] += held[:, symbol]
    assert law.sum(axis=1) == pytest.approx(np.ones(4)) and np.ptp(law, axis=0).max() > 0.1
    assert np.log(law.max(axis=0) / law.min(axis=0)).max() <= noise.guarantee.epsilon
    for n in (1, 2, 3):
        bound = mechanism_law(ChosenWord((noise.response,)), n=n)[1]
        for epsilon in (0.0, 0.4, 1.0):
            assert worst(law, n, math.exp(epsilon)) <= bound.delta(epsilon).upper * (1 + 1e-12)


@pytest.mark.parametrize("coordinate", [1e308, -1e308, 1e-320, 0.0])
def test_no_vector_gives_itself_away_by_a_warning(coordinate: float) -> None:
    noise = ClosestDirection(4, 1e-3, 1.0)
    assert noise.randomize([[coordinate] * 4] * 8, simulation(1)).dtype == np.uint64
    assert np.linalg.norm(noise.shortened(np.array([[coordinate] * 4]))) <= 1.0 + 1e-12


WRONG = [
    ({"d": 0}, "`d` must be"),
    ({"radius": 0.0}, "`radius` must be"),
    ({"epsilon": -1.0}, "`epsilon` must be"),
    ({"axes": 0}, "`axes` must be"),
    ({"axes": 5000}, "`axes` must be"),
]


@pytest.mark.parametrize(("wrong", "words"), WRONG, ids=str)
def test_parameters_out_of_range_are_refused(wrong: dict[str, float], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        ClosestDirection(**{"d": 3, "radius": 1.0, "epsilon": 1.0, **wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", VECTOR_RANDOMIZERS.names())
def test_what_is_no_vector_or_report_is_refused_by_every_randomizer(name: str) -> None:
    for noise in VECTOR_RANDOMIZERS[name].examples():
        for vectors, words in (
            (np.zeros(noise.d), "shape"),
            (np.zeros((2, noise.d + 1)), "shape"),
            (np.zeros((0, noise.d)), "n at least 1"),
            ([[0.0], [0.0, 1.0, 2.0, 3.0]], "different lengths"),
            (np.full((1, noise.d), np.nan), "finite"),
            (np.full((1, noise.d), "x"), "numbers"),
        ):
            with pytest.raises(DataError, match=words):
                noise.randomize(vectors)
        for reports in (np.zeros(0, int), np.zeros((1, noise.d + 3), int), [0.5], [-1]):
            with pytest.raises(DataError, match="`reports` must be"):
                noise.estimate(reports)


@pytest.mark.parametrize("name", VECTOR_RANDOMIZERS.names())
def test_every_randomizer_of_vectors_keeps_what_it_publishes(name: str) -> None:
    for noise in VECTOR_RANDOMIZERS[name].examples():
        vectors = np.full((2000, noise.d), 0.5 * noise.radius / math.sqrt(noise.d))
        reports = noise.randomize(vectors, rng_of(f"published by {noise}"))
        off = float(np.linalg.norm(noise.estimate(reports) - vectors[0]))
        assert off <= 7.0 * noise.error(2000) + noise.bias  # Gaussian tails: false alarm below 1e-9
        assert noise.error95(2000) >= noise.error(2000) and noise.report_bits >= 1
        assert noise.guarantee.epsilon <= noise.epsilon and (noise.guarantee.delta == 0.0) == noise.is_pure

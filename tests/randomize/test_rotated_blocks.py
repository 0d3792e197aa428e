"""A vector's mean from blocks of signs: exact expectation, the published law of a report, and the errors promised."""

import math

import numpy as np
import pytest
from tests.statistics import expect_broken, expect_law, rng_of

from dovetail.core.entropy import simulation
from dovetail.core.errors import DataError, ParameterError
from dovetail.core.special import Reals
from dovetail.randomize.vectors.rotated_blocks import RotatedBlocks


def report_law(noise: RotatedBlocks, vector: Reals) -> Reals:
    """Probability of each block and symbol, from the definition."""
    length = max(1.0, float(np.linalg.norm(vector)) / noise.radius)
    y = noise.rotate(np.asarray(vector) / length).reshape(noise.blocks, noise.size)
    high = 0.5 * (1.0 + np.clip(y / noise.bound, -1.0, 1.0))
    signs = (np.arange(noise.response.k)[:, None] >> np.arange(noise.size)) & 1
    held = np.prod(np.where(signs[None], high[:, None], 1.0 - high[:, None]), axis=2)
    return np.asarray(noise.response.channel().output_law(held) / noise.blocks)


CASES = [
    (RotatedBlocks(3, 1.0, 1.0), [0.3, -0.5, 0.1]),
    (RotatedBlocks(8, 2.0, 3.0, signs=4, seed=5), [5.0, 0.0, -1.0, 0.0, 2.0, 0.0, 0.0, 1.0]),
    (RotatedBlocks(1, 10.0, 2.0), [4.0]),
    (RotatedBlocks(30, 1.0, 6.0, signs=8), [0.1] * 30),
]


@pytest.mark.parametrize(("noise", "vector"), CASES, ids=str)
def test_the_expected_estimate_is_the_clipped_vector(noise: RotatedBlocks, vector: list[float]) -> None:
    law = report_law(noise, np.array(vector))
    mean = np.zeros(noise.d)
    second = 0.0
    for block in range(noise.blocks):
        for symbol in range(noise.response.k):
            value = noise.estimate([[block, symbol]])
            mean += law[block, symbol] * value
            second += law[block, symbol] * float(value @ value)
    clipped = np.array(vector) / max(1.0, float(np.linalg.norm(vector)) / noise.radius)
    assert mean == pytest.approx(clipped, abs=1e-12)
    assert second - float(clipped @ clipped) <= noise.error(1) ** 2 * (1 + 1e-12)


def test_reports_come_from_the_law_and_those_of_unclipped_vectors_do_not() -> None:
    noise, vector = RotatedBlocks(4, 1.0, 2.0, signs=2), np.array([3.0, 1.0, -2.0, 0.5])
    reports = noise.randomize(np.tile(vector, (40_000, 1)), rng_of("reports come from the law"))
    counts = np.zeros((noise.blocks, noise.response.k), dtype=np.int64)
    np.add.at(counts, (reports[:, 0], reports[:, 1]), 1)
    expect_law(counts.ravel(), report_law(noise, vector).ravel())
    expect_broken(counts.ravel(), report_law(RotatedBlocks(4, 10.0, 2.0, signs=2), vector).ravel())


@pytest.mark.exhaust
def test_the_error_of_the_mean_is_what_is_promised() -> None:
    noise = RotatedBlocks(200, 1.0, 4.0)
    vectors = np.outer(np.linspace(0.2, 1.0, 4000), np.full(200, 200**-0.5))
    squares = [
        float(np.sum((noise.estimate(noise.randomize(vectors, simulation(seed))) - vectors.mean(axis=0)) ** 2))
        for seed in range(6)
    ]
    # 6 draws of about 200 degrees of freedom each: relative standard deviation sqrt(2/1200) = 0.04 below the bound
    ratio = math.sqrt(float(np.mean(squares))) / noise.error(4000)
    assert 0.7 < ratio < 1.0 + 0.25


def test_the_local_guarantee_holds_between_any_two_vectors() -> None:
    noise = RotatedBlocks(8, 1.0, 1.5, signs=2)
    laws = np.array([report_law(noise, v).ravel() for v in (*np.eye(8), *-np.eye(8), np.zeros(8), np.full(8, 9.0))])
    ratios = laws.max(axis=0) / laws.min(axis=0)
    assert math.log(ratios.max()) <= noise.guarantee.epsilon <= 1.5


def test_the_bias_of_cutting_is_within_its_bound_on_average_over_signs() -> None:
    vector = np.eye(1024)[0] * 0.6 + np.eye(1024)[7] * 0.8
    lengths = []
    for seed in range(40):
        noise = RotatedBlocks(1024, 1.0, 1.0, seed=seed)
        y = noise.rotate(vector)
        lengths.append(float(np.linalg.norm(y - np.clip(y, -noise.bound, noise.bound))))
    assert np.mean(lengths) <= noise.bias < 0.003
    assert RotatedBlocks(8, 1.0, 1.0).bias == 0.0


def test_the_number_of_signs_is_the_best_one() -> None:
    for epsilon in (0.5, 2.0, 6.0):
        best = RotatedBlocks(500, 1.0, epsilon).error(1000)
        for signs in (1, 2, 4, 8, 16):
            assert best <= RotatedBlocks(500, 1.0, epsilon, signs=signs).error(1000)


WRONG = [
    ({"d": 0}, "`d` must be"),
    ({"radius": 0.0}, "`radius` must be"),
    ({"epsilon": -1.0}, "`epsilon` must be"),
    ({"signs": 3}, "`signs` must be one of 1, 2, 4"),
    ({"signs": 8}, "`signs` must be one of 1, 2, 4"),
    ({"seed": -1}, "`seed` must be"),
]


@pytest.mark.parametrize(("wrong", "words"), WRONG, ids=str)
def test_parameters_out_of_range_are_refused(wrong: dict[str, float], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        RotatedBlocks(**{"d": 3, "radius": 1.0, "epsilon": 1.0, **wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize("coordinate", [1e308, 1e-320, 0.0])
def test_no_vector_gives_itself_away_by_a_warning(coordinate: float) -> None:
    noise = RotatedBlocks(4, 1e-3, 1.0)
    reports = noise.randomize([[coordinate] * 4] * 8, simulation(1))
    assert reports.shape == (8, 2) and (reports[:, 0] < noise.blocks).all()


def test_what_is_no_vector_or_report_is_refused() -> None:
    noise = RotatedBlocks(2, 1.0, 1.0)
    for vectors, words in (
        ([1.0, 2.0], "shape"),
        ([[1.0]], "shape"),
        (np.zeros((0, 2)), "n at least 1"),
        ([[1, np.nan]], "finite"),
    ):
        with pytest.raises(DataError, match=words):
            noise.randomize(vectors)
    for reports in ([], [[0, 9]], [[9, 0]], [[-1, 0]], [[0.5, 0.0]]):
        with pytest.raises(DataError, match="`reports` must be"):
            noise.estimate(reports)

"""The paper's moons: the reference table, the copied cell that averages hide, and what changes no verdict."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.neighbors import KernelDensity

from dovetail.core.entropy import simulation
from dovetail.memorize.copying.cells import compare_cells, count_cells
from dovetail.memorize.copying.data_copying import CopyingTest
from dovetail.memorize.copying.search import TrainingIndex

TRAIN = make_moons(2000, noise=0.2, random_state=0)[0]
FRESH = make_moons(1000, noise=0.2, random_state=1)[0]


@pytest.fixture(scope="module")
def moons() -> CopyingTest:
    return CopyingTest.prepare(TRAIN, FRESH, cells=5)


def drawn(bandwidth: float, seed: int, count: int = 1000) -> np.ndarray:
    """A Gaussian kernel density on the training sample."""
    found: np.ndarray = KernelDensity(bandwidth=bandwidth).fit(TRAIN).sample(count, random_state=seed)
    return found


def masked(moons: CopyingTest, cell: int) -> np.ndarray:
    """One cell is copied, the others are under-fitted."""
    near, far = drawn(0.02, 7, 4000), drawn(0.3, 8, 4000)
    return np.concatenate([near[moons.cells_of(near) == cell][:200], far[moons.cells_of(far) != cell][:800]])


@pytest.mark.exhaust
@pytest.mark.parametrize(
    ("bandwidth", "c_t", "z", "frechet", "over", "under"),
    [
        (0.01, -11.75, -26.20, 0.0274, 0.06, 0.04),
        (0.10, -0.32, -0.71, 0.0270, 0.04, 0.06),
        (0.13, 0.31, 0.70, 0.0272, 0.04, 0.06),
        (1.0, 10.06, 22.87, 0.640, 0.24, 0.30),
    ],
)
def test_the_published_formulas_reproduce_the_reference_table(
    moons: CopyingTest, bandwidth: float, c_t: float, z: float, frechet: float, over: float, under: float
) -> None:
    found = [moons.reference(drawn(bandwidth, seed)) for seed in range(100, 110)]
    mean = np.mean([(one.c_t, one.z, one.frechet, one.bins_over, one.bins_under) for one in found], axis=0)
    assert mean[0] == pytest.approx(c_t, abs=0.3) and mean[1] == pytest.approx(z, abs=0.3)
    assert mean[2] == pytest.approx(frechet, abs=0.002)
    assert mean[3:] == pytest.approx([over, under], abs=0.02)


@pytest.mark.exhaust
def test_a_copied_cell_is_found_although_the_averages_say_the_opposite(moons: CopyingTest) -> None:
    found = moons.test(masked(moons, 0), baselines=False)
    assert found.overall.z > 0 and found.cells.c_t is not None and found.cells.c_t > 0
    assert found.cells.cells[0].p_holm < 1e-5
    assert all(cell.p_holm > 0.05 for cell in found.cells.cells[1:])
    assert found.verdict == "copying" and "holdout ratio of a cell" in found.fired


@pytest.mark.exhaust
def test_scaling_moving_and_permuting_the_data_change_no_verdict(moons: CopyingTest) -> None:
    generated, order = masked(moons, 0), np.random.default_rng(1).permutation
    plain = moons.test(generated, baselines=False)
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    prepared = CopyingTest.prepare(
        7.0 * TRAIN @ turn + 3.0, 7.0 * (FRESH @ turn)[order(1000)] + 3.0,
        cells=lambda points: moons.cells_of((points - 3.0) / 7.0 @ turn.T),
    )  # fmt: skip
    found = prepared.test(7.0 * (generated @ turn)[order(1000)] + 3.0, baselines=False)
    assert [cell.p_holm for cell in found.cells.cells] == pytest.approx([cell.p_holm for cell in plain.cells.cells])
    assert found.verdict == plain.verdict and found.overall.z == pytest.approx(plain.overall.z)


@pytest.mark.exhaust
def test_neighbours_in_the_cell_are_no_nearer_than_neighbours_anywhere(moons: CopyingTest) -> None:
    labels, cell = moons.cells_of(TRAIN), moons.cells_of(FRESH)
    for number in range(5):
        inside = TrainingIndex(TRAIN[labels == number]).nearest(FRESH[cell == number])[0]
        assert (inside >= moons.distances[cell == number]).all()


@pytest.mark.exhaust
@pytest.mark.parametrize("width", [3, 40])
def test_a_training_point_less_moves_no_point_nearer(width: int) -> None:
    draw = np.random.default_rng(2).standard_normal
    train, queries = draw((300, width)), draw((100, width))
    whole, less = (TrainingIndex(points).nearest(queries)[0] for points in (train, train[1:]))
    every = np.linalg.norm(queries[:, None] - train[None], axis=2)
    assert (less >= whole).all() and whole == pytest.approx(every.min(axis=1))


def test_copies_far_from_the_origin_are_at_distance_zero() -> None:
    train = 1e6 + np.random.default_rng(3).standard_normal((2000, 50))
    distances, rows = TrainingIndex(train).nearest(train[:200])
    assert (distances == 0.0).all() and (rows == np.arange(200)).all()


def test_the_nearest_other_point_of_a_twin_is_its_twin() -> None:
    train = np.random.default_rng(4).standard_normal((500, 20))
    train[7] = train[3]
    other = TrainingIndex(train).nearest_other(np.array([3, 7, 8]))
    assert other[0] == other[1] == 0.0 < other[2]


def test_a_cell_without_twenty_points_of_both_is_left_out_and_the_rest_covers_less() -> None:
    a, b = np.arange(100.0), np.arange(60.0)
    found = compare_cells((a, np.repeat([0, 1], [81, 19])), (b, np.repeat([0, 1], [30, 30])))
    assert [cell.cell for cell in found.cells] == [0] and found.left_out == 1
    assert (found.covered_fresh, found.covered_generated) == (0.81, 0.5)


def test_the_average_is_weighed_by_the_fresh_sample_and_standardized_by_its_weights() -> None:
    draw = np.random.default_rng(6)
    a, in_a = draw.random(400), np.repeat([0, 1], [300, 100])
    b, in_b = draw.random(200), np.repeat([0, 1], [100, 100])
    found = compare_cells((a, in_a), (b, in_b))
    z = [cell.test.z for cell in found.cells]
    assert found.c_t == pytest.approx(0.75 * z[0] + 0.25 * z[1])
    assert found.c_t_standardized == pytest.approx((0.75 * z[0] + 0.25 * z[1]) / np.hypot(0.75, 0.25))
    assert found.cells[0].representation < -5 < 5 < found.cells[1].representation


def test_the_number_of_cells_follows_the_smallest_sample() -> None:
    assert count_cells(2000, 1000, 1000) == 5 and count_cells(50_000, 10_000, 10_000) == 50
    assert count_cells(100, 10_000, 10_000) == 5 and count_cells(100, 30, 30) == 1


@pytest.mark.exhaust
def test_a_small_training_sample_is_cross_fitted_and_still_calibrated_in_sign() -> None:
    draw = np.random.default_rng(7).standard_normal
    prepared = CopyingTest.prepare(draw((120, 2)), draw((1000, 2)))
    assert len(prepared.folds) == 2
    found: Any = prepared.test(np.concatenate([prepared.train, draw((880, 2))]), baselines=False)
    assert found.cells.cross_fitted and len({cell.cell for cell in found.cells.cells}) == len(found.cells.cells)
    assert found.verdict == "copying"


@pytest.mark.exhaust
def test_the_smallest_share_that_a_cell_shows_follows_the_level_where_cells_are_cross_fitted() -> None:
    draw = np.random.default_rng(9).standard_normal
    train, fresh, made = draw((60, 2)), draw((120, 2)), draw((120, 2))
    shares = [
        CopyingTest.prepare(train, fresh, cells=2, cross_fit=True, level=level)
        .test(made, baselines=False)
        .cells.cells
        for level in (0.05, 0.001)
    ]
    assert all(strict.detectable > usual.detectable for usual, strict in zip(*shares, strict=True))


@pytest.mark.parametrize("powers", [(30.0, 3.0), (4.0, 0.25)], ids=["both move", "they cancel"])
def test_the_average_over_the_root_of_n_tends_to_its_limit(powers: tuple[float, float]) -> None:
    """Distances U and U^(1/a) in a cell have Delta = a / (a + 1); the shares of Q are not those of P."""
    n, m, p, q = 20_000, 10_000, np.array([0.3, 0.7]), np.array([0.5, 0.5])
    draw, r = np.random.default_rng(11), m / n
    in_p, in_q = (np.repeat([0, 1], np.rint(share * size).astype(int)) for share, size in ((p, n), (q, m)))
    generated = draw.random(m) ** (1 / np.array(powers)[in_q])
    found = compare_cells((draw.random(n), in_p), (generated, in_q), rng=simulation(1))
    delta, scale = np.array(powers) / (np.array(powers) + 1), np.sqrt(12 * r * p * q / (p + r * q))
    limit = float((p * (delta - 0.5) * scale).sum())
    # a cell's estimate misses Delta by t with a chance of at most 2 exp(-2 t^2 nm/(n+m)); 1e-10 for each of two cells
    missed = np.sqrt(np.log(2e10) / 2 * (p * n + q * m) / (p * n * q * m))
    assert found.c_t is not None
    assert abs(found.c_t / np.sqrt(n) - limit) <= float((p * missed * scale).sum()) + 1e-3 * abs(limit)
    assert abs(limit) > 3 * float((p * missed * scale).sum()) or powers[0] == 4.0

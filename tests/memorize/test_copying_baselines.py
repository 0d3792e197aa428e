"""Formulas of other measures, and where the paper prints them differently."""

from typing import Any

import numpy as np
import pytest

from dovetail.core.entropy import simulation
from dovetail.core.errors import DataError
from dovetail.memorize.copying.baselines import (
    authenticity,
    curve_of,
    different_bins,
    feature_likelihood,
    frechet_distance,
    likelihood_bandwidth,
    neighbour_accuracy,
    precision_recall,
    three_sample_mmd,
)
from dovetail.memorize.copying.search import TrainingIndex

DRAW = np.random.default_rng(1).standard_normal
TRAIN, OTHER = DRAW((400, 3)), 1.5 * DRAW((300, 3)) + 0.5


def test_frechet_is_zero_for_equal_samples_symmetric_and_that_of_the_gaussians() -> None:
    assert frechet_distance(TRAIN, TRAIN) == pytest.approx(0.0, abs=1e-12)
    assert frechet_distance(TRAIN, OTHER) == pytest.approx(frechet_distance(OTHER, TRAIN))
    line, wide = np.linspace(-1, 1, 101)[:, None], 3 * np.linspace(-1, 1, 101)[:, None] + 2
    assert frechet_distance(line, wide) == pytest.approx(4.0 + (wide.std(ddof=1) - line.std(ddof=1)) ** 2)


def test_frechet_as_printed_is_negative_for_equal_samples() -> None:
    s = np.cov(TRAIN, rowvar=False)
    assert np.trace(s - s - 2 * s) < 0.0


def test_bins_compare_p_values_and_not_z_with_the_level() -> None:
    z = np.random.default_rng(2).standard_normal(20_000)
    over, under = different_bins(z.tolist())
    assert over + under == pytest.approx(0.05, abs=0.01)
    assert (z > 0.05).mean() > 0.4, "as printed, nearly half of all cells differ"


@pytest.mark.parametrize("angles", [1, 101])
def test_equal_histograms_reach_precision_and_recall_one_at_an_odd_number_of_angles(angles: int) -> None:
    share = np.array([0.2, 0.3, 0.5])
    alpha, beta = curve_of(share, share, angles=angles)
    assert max(np.minimum(alpha, beta)) == pytest.approx(1.0, abs=1e-12)
    assert max(np.minimum(*curve_of(share, share, angles=angles + 1))) < 1.0


@pytest.mark.exhaust
def test_precision_and_recall_do_not_see_copies() -> None:
    found = precision_recall(TRAIN, TRAIN, repeats=2, rng=simulation(1))
    assert found.precision > 0.99 and found.recall > 0.99


def test_neighbours_of_copies_are_their_originals_whichever_comes_first() -> None:
    found = neighbour_accuracy(TRAIN, TRAIN, rng=simulation(1))
    assert found.train == found.generated == 0.0 == found.mean
    other = neighbour_accuracy(TRAIN, DRAW((400, 3)), rng=simulation(1))
    assert 0.4 < other.mean < 0.6


def test_the_three_sample_test_sees_which_of_two_samples_is_nearer() -> None:
    fresh = DRAW((400, 3))
    assert three_sample_mmd(TRAIN, fresh + 1.0, DRAW((400, 3)), rng=simulation(1)).p_copying < 1e-6
    assert three_sample_mmd(TRAIN, fresh, OTHER, rng=simulation(1)).p_copying > 0.99


def test_copies_are_not_authentic_and_far_points_are() -> None:
    index = TrainingIndex(TRAIN)
    assert authenticity(index, *index.nearest(TRAIN)) == 0.0
    assert authenticity(index, *index.nearest(TRAIN + 100.0)) == 1.0


def test_the_feature_likelihood_of_one_centre_is_that_of_a_gaussian() -> None:
    """Twenty generated points at one place: sigma^2 is the mean square of T around it, over d."""
    draw = np.random.default_rng(1).standard_normal
    train, fresh = draw((20, 3)), draw((40, 3))
    found, _ = feature_likelihood(train, fresh, np.zeros((20, 3)), rng=simulation(1))
    variance = (train**2).sum(axis=1).mean() / 3
    judged = fresh[simulation_order(train, fresh)]
    density = -1.5 * np.log(2 * np.pi * variance) - (judged**2).sum(axis=1) / (2 * variance)
    assert found.divergence == pytest.approx(-100 / 3 * density.mean())
    on_train = -1.5 * np.log(2 * np.pi * variance) - 1.5
    assert found.gap == pytest.approx(found.divergence + 100 / 3 * on_train)


def simulation_order(train: Any, fresh: Any) -> Any:
    """The fresh rows that are judged: the second half of the order drawn after that of the training rows."""
    rng = simulation(1)
    rng.permutation(len(train))
    return rng.permutation(len(fresh))[len(fresh) // 2 :]


@pytest.mark.exhaust
def test_feature_likelihood_has_a_larger_gap_for_copies_and_none_beyond_fresh_data_for_honest_points() -> None:
    draw = np.random.default_rng(1).standard_normal
    train, fresh, honest = draw((400, 4)), draw((800, 4)), draw((400, 4))
    copier = train + 0.01 * draw((400, 4))
    gaps = {}
    for name, made in (("honest", honest), ("copier", copier)):
        found, scale = feature_likelihood(train, fresh, made, rng=simulation(1))
        gaps[name] = found.gap - scale.gap
    assert gaps["copier"] > 100 > 20 > abs(gaps["honest"])


def kernel_density(x: np.ndarray, train: np.ndarray, sigma: float) -> np.ndarray:
    """The density (2.4) of points x (n, d), by its definition."""
    d = train.shape[1]
    far = ((x[:, None] - train) ** 2).sum(axis=2)
    return np.asarray(np.exp(-far / (2 * sigma**2)).sum(axis=1) / ((2 * np.pi) ** (d / 2) * len(train) * sigma**d))


@pytest.mark.exhaust
@pytest.mark.parametrize("d", [1, 3])
def test_the_likeliest_bandwidth_is_a_maximum_and_meets_the_identity_of_lemma_3(d: int) -> None:
    draw = np.random.default_rng(7)
    train, fresh = draw.normal(size=(60, d)), draw.normal(size=(40, d))
    sigma = likelihood_bandwidth(train, fresh)
    at = {s: np.log(kernel_density(fresh, train, s)).mean() for s in sigma * np.geomspace(0.3, 20, 41)}
    here = np.log(kernel_density(fresh, train, sigma)).mean()
    assert here >= max(at.values()) and here > at[min(at)] and here > at[max(at)]
    far = ((fresh[:, None] - train) ** 2).sum(axis=2)
    belief = np.exp(-far / (2 * sigma**2)) / np.exp(-far / (2 * sigma**2)).sum(axis=1, keepdims=True)
    on_fresh = float((belief * far).sum(axis=1).mean())
    assert on_fresh == pytest.approx(d * sigma**2, rel=1e-5)
    if d == 1:  # the right side of the lemma, by quadrature over draws of the density
        y = np.linspace(train.min() - 12 * sigma, train.max() + 12 * sigma, 40_001)[:, None]
        far = (y - train.T) ** 2
        belief = np.exp(-far / (2 * sigma**2))
        inner = (belief * far).sum(axis=1) / np.maximum(belief.sum(axis=1), 1e-300)
        assert np.trapezoid(inner * kernel_density(y, train, sigma), y[:, 0]) == pytest.approx(on_fresh, rel=2e-5)


def test_copies_alone_have_no_likeliest_bandwidth() -> None:
    train = np.array([[0.0, 1.0], [2.0, 5.0]])
    with pytest.raises(DataError, match="must hold a point that is no training point"):
        likelihood_bandwidth(train, train)

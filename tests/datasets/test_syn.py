"""Labels are nested: clusters hold crescents, crescents hold halves."""

from typing import Any

import numpy as np
import pytest
from studies.iclr_worlds import coarsen_labels

from dovetail.core.entropy import simulation
from dovetail.core.errors import DataError, ParameterError
from dovetail.datasets.nested_crescents import COLOURS, nested_crescents


def test_equal_seeds_give_equal_points() -> None:
    one = nested_crescents(500, rng=simulation(1))
    assert one.equals(nested_crescents(500, rng=simulation(1)))
    assert not one.equals(nested_crescents(500, rng=simulation(2)))


@pytest.mark.parametrize("n", [1, 7, 20_000])
def test_labels_are_equally_frequent_in_random_order(n: int) -> None:
    labels = nested_crescents(n, rng=simulation(n))["label"].to_numpy()
    counts = np.bincount(labels, minlength=8)
    assert counts.sum() == n and counts.max() - counts.min() <= 1
    if n == 20_000:  # the correlation of neighbours is normal with deviation 1 / sqrt(n)
        assert abs(np.corrcoef(labels[1:], labels[:-1])[0, 1]) < 6.1 / np.sqrt(n)


def test_points_lie_on_the_curve_of_their_label() -> None:
    """With next to no noise, the formula backwards gives the label."""
    x, y, label = nested_crescents(4000, noise=1e-9, rng=simulation(3)).to_numpy().T
    cluster = x > 3.0  # the cool cluster ends at 2, the warm one begins at 4
    x = x - 5.0 * cluster
    first = np.abs(np.hypot(x, y) - 1.0) < 1e-6
    second = np.abs(np.hypot(1.0 - x, 0.5 - y) - 1.0) < 1e-6
    second &= 0.5 - y > -1e-6
    first &= y > -1e-6
    assert (first ^ second).all()  # crescents do not cross
    half = np.where(first, x < 0.0, x > 1.0)
    np.testing.assert_array_equal(label, 4 * cluster + 2 * second + half)


def test_noise_is_what_is_asked_for() -> None:
    """Across the arc, at the middle of it, the distance to the circle is the noise."""
    table = nested_crescents(20_000, noise=0.05, rng=simulation(4)).filter(label=0)
    off = np.hypot(table["x"], table["y"]) - 1.0
    assert abs(off.std() - 0.05) < 6 * 0.05 / np.sqrt(2 * table.height)


def test_scales_are_nested() -> None:
    labels = np.arange(8)
    four, two = coarsen_labels(labels, ways=4), coarsen_labels(labels, ways=2)
    assert coarsen_labels(labels, ways=8).tolist() == labels.tolist()
    assert four.tolist() == [0, 0, 1, 1, 2, 2, 3, 3] and two.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert [COLOURS[label].split()[1] for label in labels[::2]] == ["blue", "green", "red", "orange"]


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        (lambda: nested_crescents(0, rng=simulation(1)), ParameterError, "`n`"),
        (lambda: nested_crescents(5, noise=0.0, rng=simulation(1)), ParameterError, "`noise`"),
        (lambda: nested_crescents(5, noise=np.nan, rng=simulation(1)), ParameterError, "`noise`"),
        (lambda: coarsen_labels([0], ways=3), ParameterError, "`ways`"),
        (lambda: coarsen_labels([8], ways=2), DataError, "`labels`"),
        (lambda: coarsen_labels([0.5], ways=2), DataError, "`labels`"),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=named):
        call()

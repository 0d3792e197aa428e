"""Trees of counts against dense least squares, and where distribution functions cross."""

import numpy as np
import pytest
from scipy.stats import binom

from dovetail.core.entropy import simulation
from dovetail.core.errors import ParameterError
from dovetail.estimate.distribution import (
    Crossings,
    Tree,
    monotone,
    people_below,
    quantiles,
    quantiles_of_window,
)
from dovetail.randomize.window import Window

TREES = [Tree(one) for one in ((4,), (2, 3), (3, 2), (2, 3, 4), (5, 2, 2), (2, 2, 2, 2))]


def dense(tree: Tree) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which node (nodes, bins) holds which bin, a basis of what sums to 0, and least squares (bins, nodes) of it."""
    holds = np.zeros((tree.size, tree.bins))
    for place, nodes in enumerate(tree.symbols(np.arange(tree.bins))):
        holds[nodes, place] = 1.0
    basis = np.linalg.svd(np.ones((1, tree.bins)))[2][1:].T
    return holds, basis, basis @ np.linalg.pinv(holds @ basis)


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_the_tree_is_solved_by_least_squares(tree: Tree) -> None:
    rng = np.random.default_rng(1)
    holds, _, solve = dense(tree)
    counts, even = rng.normal(10.0, 3.0, tree.size), np.full(tree.bins, 7.0 / tree.bins)
    found = tree.fitted(counts, 7.0)
    np.testing.assert_allclose(found, even + solve @ (counts - holds @ even), atol=1e-12)
    assert found.sum() == pytest.approx(7.0, abs=1e-12)
    people = rng.integers(0, 5, tree.bins).astype(float)  # without noise nothing is changed
    np.testing.assert_allclose(tree.fitted(holds @ people, people.sum()), people, atol=1e-12)


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_its_errors_are_known_before_any_data(tree: Tree) -> None:
    weights, sizes = tree.classes
    rows = np.tril(np.ones((tree.bins, tree.bins)))[:-1] @ dense(tree)[2]
    np.testing.assert_allclose((rows**2).sum(axis=1), tree.variance(), atol=1e-12)
    for row, weight, many in zip(rows, weights, sizes, strict=True):
        np.testing.assert_allclose(np.sort(row), np.sort(np.repeat(weight, many.astype(int))), atol=1e-12)


def test_the_shape_is_that_of_the_least_error() -> None:
    assert [Tree.of(128, levels=2).branching, Tree.of(1024, levels=2).branching] == [(16, 8), (32, 32)]
    two = [Tree((a, 24 // a)) for a in (2, 3, 4, 6, 8, 12)]
    assert Tree.of(24, levels=2) == min(two, key=lambda one: one.variance().sum())
    with pytest.raises(ParameterError, match="101 bins are no product of 2 numbers; take bins such as 100"):
        Tree.of(101, levels=2)


def test_a_node_of_each_level_is_in_the_list_of_all() -> None:
    tree = Tree((2, 3))
    assert tree.symbols(np.array([0, 2, 5])).tolist() == [[0, 2], [0, 4], [1, 7]]
    assert (tree.size, tree.starts, tree.nodes) == (8, (0, 2), (2, 6))


def test_a_distribution_function_rises() -> None:
    found = monotone([0.1, 0.3, 0.2, -0.1, 0.9, 1.2])
    assert (np.diff(found) >= 0).all() and found.min() >= 0.0 and found.max() <= 1.0
    assert monotone([0.1, 0.4, 0.7]).tolist() == [0.1, 0.4, 0.7]


def test_quantiles_lie_on_straight_lines_inside_bins() -> None:
    edges = np.linspace(0.0, 4.0, 5)
    assert quantiles(np.array([0.25, 0.5, 0.5]), edges, np.array([0.125, 0.5, 0.75, 1.0])).tolist() == [
        0.5,
        2.0,
        3.5,
        4.0,
    ]


@pytest.mark.parametrize(
    ("share", "n", "people"), [(0.5, 4, 2), (0.5, 5, 3), (0.1, 10, 1), (0.3, 10, 3), (1.0, 7, 7)]
)
def test_people_are_whole(share: float, n: int, people: int) -> None:
    assert people_below(share, n) == people


def test_without_noise_an_interval_is_the_bin_of_the_quantile() -> None:
    """Of every number of people and every share: floor and ceiling are never mixed up."""
    edges, shares = np.linspace(0.0, 4.0, 5), np.array([0.1, 0.25, 0.5, 0.75, 1.0])
    for n in range(1, 6):
        for counts in np.ndindex(n + 1, n + 1, n + 1):
            if sum(counts) > n:
                continue
            function = np.cumsum(counts) / n
            found = Crossings(function, edges, shares, n, lambda held, tail: (np.zeros(3), np.zeros(3)))
            low, high = found.interval(quantiles(function, edges, shares), 2.0)
            people = np.repeat(np.arange(4), [*counts, n - sum(counts)])
            true = np.quantile(people, shares, method="inverted_cdf")
            assert (low == true).all() and (high == true + 1).all()


@pytest.mark.parametrize(
    ("steps", "width"), [(steps, width) for steps in (2, 5, 9) for width in (1, 2, 4) if width <= steps]
)
def test_windows_that_tile_a_range_tell_its_share(steps: int, width: int) -> None:
    """On average, by the law of a report: exactly the distribution function, of every value alone."""
    window = Window(0.0, float(steps), epsilon=1.0, window=width, grid=1.0)
    inside, low = window.truthful / width, (1.0 - window.truthful) / window.outputs
    law = np.full((steps + 1, window.outputs), low)
    for value in range(steps + 1):
        law[value, value : value + width] += inside
    assert law.sum(axis=1) == pytest.approx(1.0)
    for v in range(steps):
        hits = law[:, v::-width].sum(axis=1)
        tiles = v // width + 1
        np.testing.assert_allclose((hits - tiles * low) / inside, np.arange(steps + 1) <= v, atol=1e-12)


@pytest.mark.exhaust
@pytest.mark.parametrize("width", [1, 3])
def test_quantiles_of_windows_cover(width: int) -> None:
    """A right implementation fails with a chance below 1e-8 in each of three tails."""
    window, rng = Window(0.0, 20.0, epsilon=5.0, window=width, grid=1.0), simulation(8)
    values = np.repeat(np.arange(21), np.random.default_rng(8).integers(10, 200, 21))
    true, covered, repeats = np.quantile(values, [0.25, 0.5, 0.75], method="inverted_cdf"), np.zeros(3), 40
    for _ in range(repeats):
        low, high = quantiles_of_window(window, window.randomize(values.astype(float), rng)).interval(0.95)
        covered += (low <= true) & (true <= high)
        assert (high - low < 20.0).all()
    assert (covered >= binom.ppf(1e-8, repeats, 0.95)).all()

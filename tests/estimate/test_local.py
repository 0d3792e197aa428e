"""Local estimates are laws, unbiased where they say so, and as good as the order of the batch allows."""

import sys
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from studies.iclr_worlds import coarsen_labels

from dovetail.core.channel import DenseChannel, KRRChannel
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import DataError, MissingExtraError, ParameterError, UnsupportedError
from dovetail.datasets.nested_crescents import nested_crescents
from dovetail.estimate.local import (
    CalibratedTrees,
    DebiasedEstimator,
    GroupShares,
    hit_rate,
    local_error,
    total_variation,
)
from dovetail.randomize.krr import KRR
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups

LINE = Groups.from_labels([1, 2, 3, 4], radius=1)
POINTS = np.random.default_rng(5).random((60, 2))


def crescents(n: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    table = nested_crescents(n, rng=simulation(seed))
    return table.select("x", "y").to_numpy(), table["label"].to_numpy()


@pytest.mark.parametrize("k", [2, 3, 8])
def test_the_truth_has_error_0_and_the_uniform_guess_1(k: int) -> None:
    truth = np.random.default_rng(k).dirichlet(np.ones(k), size=50)
    guess = np.full((50, k), 1.0 / k)
    assert local_error(truth, truth) == 0.0 and local_error(guess, truth) == 1.0
    assert local_error(0.25 * truth + 0.75 * guess, truth) == pytest.approx(0.75, rel=1e-12)


def test_the_error_is_a_ratio_of_averages() -> None:
    """TV 0.1 and 0.3 against 0.5 and 0.1 of the uniform guess; a place where that guess is right breaks nothing."""
    truth = [[1.0, 0.0], [0.6, 0.4], [0.5, 0.5]]
    assert local_error([[0.9, 0.1], [0.3, 0.7], [0.5, 0.5]], truth) == pytest.approx(0.4 / 0.6)
    assert total_variation(truth, [[0.0, 1.0], [0.6, 0.4], [0.25, 0.75]]).tolist() == [1.0, 0.0, 0.25]


def test_where_the_truth_is_uniform_there_is_no_error() -> None:
    with pytest.raises(UnsupportedError, match="uniform at every place"):
        local_error([[0.9, 0.1]], [[0.5, 0.5]])


@pytest.mark.parametrize(
    "groups",
    [
        Groups.within_radius(POINTS, 0.15),
        Groups.within_radius(POINTS, np.random.default_rng(1).uniform(0.0, 0.3, 60)),
        Groups.from_labels(np.arange(60) // 7),
        Groups.from_labels(np.arange(60) % 11, radius=2),
        Groups.from_graph([[i, i * i % 60] for i in range(1, 60)], n=60),
        Groups.nearest(POINTS, 4),
    ],
    ids=["radius", "own radius", "labels", "label radius", "graph", "nearest"],
)
def test_group_shares_count_each_persons_own_group(groups: Groups, rng: Entropy) -> None:
    reports = rng.below(3, 60)
    wanted = np.eye(3)[reports]
    for g in range(len(groups)):
        for person in groups.owners.row(g):
            wanted[person] = np.bincount(reports[groups.members(g)], minlength=3) / groups.members(g).size
    np.testing.assert_allclose(GroupShares(groups, 3).shares(reports, rng), wanted, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("channel", "values"),
    [
        (KRRChannel.of(2, 0.7), [0, 1, 1, 0]),
        (KRRChannel.of(3, 0.5), [2, 0, 2, 1]),
        (DenseChannel([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]), [1, 0, 0, 1]),
    ],
)
def test_taking_back_the_channel_is_unbiased(channel: Any, values: list[int]) -> None:
    """Over the exact law of all batches; without the inverse the same test sees the bias."""
    inputs, outputs = channel.shape
    rng, rows = simulation(1), channel.matrix()
    seen, mean = GroupShares(LINE, outputs), np.zeros((2, 4, max(inputs, outputs)))
    for reports in product(range(outputs), repeat=4):
        weight = np.prod([rows[value, report] for value, report in zip(values, reports, strict=True)])
        law = seen.shares(reports, rng)
        mean[0, :, :inputs] += weight * channel.invert(law)
        mean[1, :, :outputs] += weight * law
    truth = GroupShares(LINE, inputs).shares(values, rng)
    np.testing.assert_allclose(mean[0, :, :inputs], truth, atol=1e-12)
    assert np.abs(mean[1, :, :inputs] - truth).max() > 0.1


def test_the_nearest_law_is_nearer_to_the_truth(rng: Entropy) -> None:
    values, krr = rng.below(3, 60), KRR(k=3, epsilon=1.0)
    seen = GroupShares(Groups.within_radius(POINTS, 0.2), 3)
    truth, reports = seen.shares(values, rng), krr.randomize(values, rng)
    straight = krr.channel().invert(seen.shares(reports, rng))
    nearest = DebiasedEstimator(seen, krr.channel()).shares(reports, rng)
    assert straight.min() < 0.0 <= nearest.min()
    np.testing.assert_allclose(nearest.sum(axis=1), 1.0, atol=1e-12)
    assert (((nearest - truth) ** 2).sum(axis=1) <= ((straight - truth) ** 2).sum(axis=1) + 1e-12).all()


def test_what_stays_inside_groups_is_learned_all_the_same(rng: Entropy) -> None:
    """A shuffle within disjoint groups changes nothing; a uniform one leaves only what everybody shares."""
    groups = Groups.from_labels(np.arange(600) % 6)
    values = (np.arange(600) % 6 < 3).astype(np.int64)
    seen = GroupShares(groups, 2)
    truth = seen.shares(values, rng)
    assert local_error(seen.shares(WithinGroups.fit(groups).shuffle(values, rng), rng), truth) == 0.0
    assert local_error(seen.shares(Uniform(600).shuffle(values, rng), rng), truth) > 0.8


@pytest.fixture(scope="module")
def learned() -> dict[int, float]:
    """Lambda of trees on crescents without noise or shuffle, by n."""
    result = {}
    for n in (250, 1000, 4000):
        places, labels = crescents(n, n)
        truth = GroupShares(Groups.within_radius(places, 0.2), 8).shares(labels, simulation(1))
        result[n] = local_error(CalibratedTrees(places, 8, leaf=10).shares(labels, simulation(1)), truth)
    return result


@pytest.mark.exhaust
def test_more_people_teach_more(learned: dict[int, float]) -> None:
    assert 1.0 > learned[250] > learned[1000] > learned[4000]
    assert learned[4000] < 0.1


@pytest.mark.exhaust
def test_trees_answer_at_new_places_with_laws_that_depend_on_the_seed_alone() -> None:
    places, labels = crescents(1500, 1)
    others, truth = crescents(700, 2)
    trees = CalibratedTrees(places, 8, at=others)
    shares = trees.shares(labels, simulation(3))
    assert shares.shape == (700, 8) and shares.min() >= 0.0
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_array_equal(shares, trees.shares(labels, simulation(3)))
    assert (shares != trees.shares(labels, simulation(4))).any()
    assert hit_rate(shares, truth) > 0.9


@pytest.mark.exhaust
def test_trees_learn_each_scale_and_nothing_after_a_uniform_shuffle() -> None:
    """After a uniform shuffle the hit rate is that of a guess, up to the luck of large regions with one answer."""
    places, labels = crescents(3000, 1)
    others, truth = crescents(2000, 2)
    rng = simulation(5)
    for ways in (8, 2):
        trees = CalibratedTrees(places, ways, at=others)
        reports = coarsen_labels(KRR(k=8, epsilon=2.55).randomize(labels, rng), ways=ways)
        assert hit_rate(trees.shares(reports, rng), coarsen_labels(truth, ways=ways)) > 0.9
        mixed = trees.shares(Uniform(3000).shuffle(reports, rng), rng)
        assert hit_rate(mixed, coarsen_labels(truth, ways=ways)) < 0.75
        assert total_variation(mixed, np.full((2000, ways), 1 / ways)).mean() < 0.05


@pytest.mark.exhaust
def test_trees_are_calibrated() -> None:
    """In each of two regions the mean law is the share of the reports there, to 6.2 standard errors."""
    rng = simulation(7)
    places = (np.arange(6000) % 2)[:, None].astype(float)
    reports = (rng.below(100, 6000) < np.where(places[:, 0] == 0, 10, 70)).astype(np.int64)
    shares = CalibratedTrees(places, 2).shares(reports, rng)
    for side, wanted in ((0, 0.1), (1, 0.7)):
        here = shares[places[:, 0] == side, 1]
        slack = 6.2 * np.sqrt(wanted * (1 - wanted) / 3000)  # false alarm below 1e-9
        assert abs(here.mean() - wanted) < slack
        mixed = 0.8 * wanted + 0.2 * (0.8 - wanted)  # a fifth of the reports from the other side
        assert abs(here.mean() - mixed) > slack


@pytest.mark.exhaust
def test_the_channel_helps_the_trees(rng: Entropy) -> None:
    places, labels = crescents(3000, 3)
    krr = KRR(k=8, epsilon=2.5)
    trees = CalibratedTrees(places, 8)
    truth = GroupShares(Groups.within_radius(places, 0.2), 8).shares(labels, rng)
    reports = krr.randomize(labels, rng)
    noisy = local_error(trees.shares(reports, rng), truth)
    assert local_error(DebiasedEstimator(trees, krr.channel()).shares(reports, rng), truth) < 0.5 * noisy


def test_symbols_that_nobody_reports_get_nothing() -> None:
    places = np.arange(200.0)[:, None]
    shares = CalibratedTrees(places, 5, leaf=10).shares(np.where(places[:, 0] < 100, 1, 3), simulation(1))
    assert shares[:, [0, 2, 4]].max() == 0.0 and shares[:100, 1].min() > 0.9 and shares[100:, 3].min() > 0.9
    assert CalibratedTrees(places, 2).shares(np.ones(200, int), simulation(1))[:, 1].tolist() == [1.0] * 200


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        (lambda: GroupShares(LINE, True), ParameterError, "`k`"),
        (lambda: GroupShares(LINE, 2).shares([0, 1], simulation(1)), DataError, "each of 4 places"),
        (lambda: GroupShares(LINE, 2).shares([0, 1, 2, 0], simulation(1)), DataError, "`reports`"),
        (
            lambda: GroupShares(Groups.union(LINE, Groups.from_labels([1, 1, 1, 1])), 2),
            DataError,
            "several for 4 people",
        ),
        (lambda: CalibratedTrees(np.ones(3), 2), DataError, "`places`"),
        (lambda: CalibratedTrees([[0.0], [np.nan]], 2), DataError, "`places`"),
        (lambda: CalibratedTrees([[0.0]], 2, at=[[0.0, 1.0]]), DataError, "`at`"),
        (lambda: CalibratedTrees([[0.0]], 2, rounds=0), ParameterError, "`rounds`"),
        (
            lambda: CalibratedTrees([[0.0], [1.0], [2.0]], 2).shares([0, 0, 1], simulation(1)),
            DataError,
            "symbol 1 once",
        ),
        (
            lambda: DebiasedEstimator(GroupShares(LINE, 2), KRRChannel.of(3, 0.5)),
            DataError,
            "`channel` must have 2 outputs",
        ),
        (lambda: local_error([[0.5, 0.6]], [[1.0, 0.0]]), DataError, "`shares`"),
        (lambda: local_error([[0.5, 0.5]], [[1.0, 0.0], [1.0, 0.0]]), DataError, "`shares` must have the shape"),
        (lambda: total_variation([0.5, 0.5], [[0.5, 0.5]]), DataError, "`one`"),
        (lambda: hit_rate([[0.5, 0.5]], [2]), DataError, "`values`"),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, error: Any, named: str) -> None:
    with pytest.raises(error, match=named):
        call()


def test_without_scikit_learn_there_is_a_line_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "sklearn"] + ["sklearn"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[studies\]"):
        CalibratedTrees(POINTS, 2).shares(np.arange(60) % 2, simulation(1))

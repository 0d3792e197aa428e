"""The Gaussian-process attack is exact regression, reaches closed forms, and gets nothing from a uniform shuffle."""

import numpy as np
import pytest
from numpy.typing import NDArray
from studies.correlation_attack import Correlation, Smoothness, _few_at_a_place, learn_smoothness
from tests.attack.planted import planted
from tests.statistics import expect_caught, expect_mean
from tests.tiers import one_in

from dovetail.attack.experiment.run_attack import run_attack
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.core.stages import FrequencyRandomizer
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.local_hashing import LocalHashing
from dovetail.randomize.unary import Unary
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups

N = 240
EVERYBODY = np.arange(N)
PLANE = np.random.default_rng(0).random((N, 2))
QUARTER = (PLANE[:, 0] > 0.5) + 2 * (PLANE[:, 1] > 0.5)
ALL_FOUR = [KRR(4, 2.0), Hadamard(4, 2.0), Unary(4, 2.0), LocalHashing(4, 2.0)]


def attacker(
    randomizer: FrequencyRandomizer, smoothness: Smoothness, *, neighbours: int | None = None,
    targets: NDArray[np.int64] = EVERYBODY,
) -> Correlation:  # fmt: skip
    return Correlation.fit(randomizer, PLANE, targets=targets, smoothness=smoothness, neighbours=neighbours)


@pytest.mark.exhaust
def test_it_is_the_gaussian_process_regression_of_scikit_learn(rng: Entropy) -> None:
    process = pytest.importorskip("sklearn.gaussian_process")
    randomizer = KRR(4, 2.0)
    seen = randomizer.indicators(randomizer.randomize(QUARTER, rng))
    channel, k = randomizer.channel(), 4
    noise = k * float(channel.inverse_variance(np.full(k, 1 / k))[0]) / (1 - 1 / k)
    model = process.GaussianProcessRegressor(process.kernels.RBF(0.2), alpha=noise, optimizer=None)
    expected = model.fit(PLANE, seen - seen.mean(axis=0)).predict(PLANE)
    ours = attacker(randomizer, Smoothness(0.2)).weights @ (seen - seen.mean(axis=0))
    np.testing.assert_allclose(ours, expected, atol=1e-9)


@pytest.mark.exhaust
def test_it_guesses_like_the_gaussian_process_classifier(rng: Entropy) -> None:
    process = pytest.importorskip("sklearn.gaussian_process")
    randomizer, values = KRR(2, 2.0), (QUARTER > 1).astype(np.int64)
    reports = randomizer.randomize(values, rng)
    kernel = 2.0**2 * process.kernels.RBF(0.25)
    laplace = process.GaussianProcessClassifier(kernel, optimizer=None).fit(PLANE, reports).predict(PLANE)
    ours = attacker(randomizer, Smoothness(0.25, 0.95)).guess(reports, rng)
    assert (ours == laplace).mean() > 0.9 and (ours == values).mean() >= (laplace == values).mean() - 0.03


@pytest.mark.exhaust
@pytest.mark.parametrize("structure", [0.0, 0.6, 1.0])
def test_all_people_as_neighbours_are_everybody(structure: float) -> None:
    smoothness, some = Smoothness(0.15, structure), np.arange(0, N, 20)
    exact = attacker(KRR(4, 1.0), smoothness, targets=some).weights.toarray()
    local = attacker(KRR(4, 1.0), smoothness, neighbours=N, targets=some).weights.toarray()
    np.testing.assert_allclose(local, exact, atol=1e-9)
    near = attacker(KRR(4, 1.0), smoothness, neighbours=60, targets=some).weights.toarray()
    assert ((near != 0).sum(axis=1) <= 60).all() and np.abs(near - exact).sum(axis=1).mean() < 0.25


@pytest.mark.exhaust
@pytest.mark.parametrize("randomizer", ALL_FOUR, ids=lambda r: r.name)
def test_correlation_reveals_what_one_report_hides_and_a_uniform_shuffle_stops_it(
    randomizer: FrequencyRandomizer, rng: Entropy
) -> None:
    smooth = attacker(randomizer, Smoothness(0.2, 0.95), neighbours=50)
    alone = run_attack(smooth, randomizer, QUARTER, Identity(N), shuffles=5, randomizations=4, rng=rng)
    assert alone.success > 0.8 > KRR(4, 2.0).channel().p + 0.05  # more than the best single report tells
    shuffled = run_attack(smooth, randomizer, QUARTER, Uniform(N), shuffles=5, randomizations=4, rng=rng)
    assert shuffled.success < 0.5


@pytest.mark.exhaust
def test_without_noise_and_shuffle_every_guess_is_right(rng: Entropy) -> None:
    values = rng.below(4, N)
    found = run_attack(
        attacker(KRR(4, 40.0), Smoothness(0.05, 0.5)), KRR(4, 40.0), values, Identity(N), shuffles=2,
        randomizations=2, rng=rng,
    )  # fmt: skip
    assert found.success == found.vulnerable == 1.0 and (found.by_person == 1.0).all()


@pytest.mark.exhaust
def test_uniformly_shuffled_it_succeeds_by_chance_alone(rng: Entropy) -> None:
    """Every target's guess has the same law, so with equal shares it is right with probability 1/4."""
    smooth, values = attacker(KRR(4, 3.0), Smoothness(0.2, 0.95)), EVERYBODY % 4
    found = [run_attack(smooth, KRR(4, 3.0), values, Uniform(N), randomizations=1, rng=rng) for _ in range(250)]
    assert found[0].chance == 0.25
    expect_mean([each.success for each in found], 0.25)
    expect_caught(expect_mean, [each.success for each in found], 0.27)


@pytest.mark.parametrize("agree", [0.6, 0.9])
def test_a_planted_correlation_gives_its_closed_form(agree: float, rng: Entropy) -> None:
    """Far towns of one place each, as many of either type: the regression is then a vote of each town."""
    size, people = 9, np.arange(540)
    randomizer, kinds = KRR(k=2, epsilon=1.0), np.repeat(np.arange(60) % 2, size)
    smooth = Correlation.fit(
        randomizer, 100.0 * (people // size), targets=people, smoothness=Smoothness(1.0), neighbours=size
    )
    found = []
    for _ in range(250):
        values = kinds ^ (rng.below(1 << 20, people.size) >= agree * (1 << 20))
        found.append(
            run_attack(smooth, randomizer, values, Identity(540), shuffles=2, randomizations=1, rng=rng).success
        )
    expect_mean(found, planted(agree, randomizer.channel().p, town=size))


def test_without_structure_the_own_report_decides(rng: Entropy) -> None:
    randomizer = KRR(4, 3.0)
    reports = randomizer.randomize(EVERYBODY % 4, rng)
    np.testing.assert_array_equal(attacker(randomizer, Smoothness(0.2, 0.0)).guess(reports, rng), reports)


def test_the_own_report_counts_also_where_a_crowd_stands_at_one_place() -> None:
    found = Correlation.fit(
        KRR(4, 1.0), np.zeros((50, 1)), targets=np.arange(50), smoothness=Smoothness(1.0, 0.5), neighbours=5
    )
    weights = found.weights.toarray()
    assert (weights.argmax(axis=1) == np.arange(50)).all() and ((weights != 0).sum(axis=1) == 5).all()


@pytest.mark.exhaust
def test_shuffling_inside_small_groups_leaves_what_is_common_to_them(rng: Entropy) -> None:
    smooth = attacker(KRR(4, 2.0), Smoothness(0.2, 0.95))
    found = run_attack(smooth, KRR(4, 2.0), QUARTER, WithinGroups(Groups.from_labels(QUARTER)), shuffles=5, rng=rng)
    assert found.success > 0.8


@pytest.mark.exhaust
def test_structure_is_learned_where_there_is_some(rng: Entropy) -> None:
    randomizer = KRR(4, 2.0)
    reports = randomizer.randomize(QUARTER, rng)
    found = learn_smoothness(randomizer, PLANE, reports, rng=rng)
    assert found.structure >= 0.5 and 0.05 < found.scale < 0.8
    nothing = learn_smoothness(randomizer, PLANE, Uniform(N).shuffle(reports, rng), rng=rng)
    assert nothing.structure <= 0.25
    learned = run_attack(attacker(randomizer, found), randomizer, QUARTER, Identity(N), shuffles=5, rng=rng)
    blind = run_attack(attacker(randomizer, nothing), randomizer, QUARTER, Identity(N), shuffles=5, rng=rng)
    assert learned.interval[0] > blind.interval[1]


@pytest.mark.exhaust
@pytest.mark.parametrize("crowds", one_in(4, [[4000, 3, 3], [2000, 1], [1000] * 4, [61, 60]]))
def test_structure_is_learned_from_crowds_at_few_places(crowds: list[int], rng: Entropy) -> None:
    """However many stand at one place, a block has others: it never depends on luck whether this can be done."""
    place, krr = np.repeat(np.arange(len(crowds)), crowds), KRR(2, 2.0)
    for _ in range(6):
        reports = krr.randomize(place % 2, rng)
        found = learn_smoothness(krr, place, reports, rng=rng)
        mixed = learn_smoothness(krr, place, Uniform(place.size).shuffle(reports, rng), rng=rng)
        assert crowds[-1] < 60 or found.structure >= 0.5 >= mixed.structure


def test_points_that_differ_are_learned_from_as_they_are(rng: Entropy) -> None:
    order = rng.permutation(N)
    np.testing.assert_array_equal(_few_at_a_place(PLANE, order, most=1), order)
    thrice = _few_at_a_place(np.arange(N)[:, None] // 4.0, order, most=3)
    assert (np.bincount(thrice // 4) == 3).all() and (
        np.diff([np.flatnonzero(order == i)[0] for i in thrice]) > 0
    ).all()


@pytest.mark.exhaust
def test_what_cannot_be_attacked_this_way_is_refused(rng: Entropy) -> None:
    krr, smooth = KRR(4, 1.0), Smoothness(0.2)
    with pytest.raises(ParameterError, match="`scale`"):
        Smoothness(0.0)
    with pytest.raises(ParameterError, match="`structure` must be a number in"):
        Smoothness(1.0, 1.5)
    with pytest.raises(UnsupportedError, match="set `neighbours`"):
        Correlation.fit(krr, np.arange(4001.0), targets=[0], smoothness=smooth, neighbours=None)
    with pytest.raises(DataError, match="`points` must be finite numbers"):
        Correlation.fit(krr, np.array(["a", "b"]), targets=[0], smoothness=smooth)
    with pytest.raises(DataError, match="`targets` must be"):
        Correlation.fit(krr, PLANE, targets=[N], smoothness=smooth)
    with pytest.raises(ParameterError, match="`neighbours`"):
        Correlation.fit(krr, PLANE, targets=[0], smoothness=smooth, neighbours=0)
    with pytest.raises(DataError, match="`reports` must be 240"):
        attacker(krr, smooth).guess(np.zeros(3, dtype=np.int64), rng)
    with pytest.raises(DataError, match="`reports` must be 240"):
        learn_smoothness(krr, PLANE, np.zeros(3, dtype=np.int64), rng=rng)
    with pytest.raises(DataError, match="all stand at one place"):
        learn_smoothness(krr, np.zeros(3), np.zeros(3, dtype=np.int64), rng=rng)

"""The re-identification attack finds what was planted, finds nothing where nothing is, and says how sure it is."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import t as t_law
from tests.statistics import FALSE_ALARM, expect_caught, expect_share, rng_of
from tests.tiers import one_in

from dovetail.attack.experiment.reidentify import (
    ForestAttack,
    Records,
    ReidentificationResult,
    recall_precision,
    reidentify,
    release_rounds,
)
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import DataError, ParameterError
from dovetail.core.stages import Shuffler
from dovetail.randomize.laplace import Laplace
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups

N, ROUNDS = 8, 30


def signatures(rounds: int = ROUNDS, seed: int = 0) -> NDArray[np.float64]:
    """Device d draws 10 d watts, give or take 2."""
    return 10.0 * np.arange(N) + np.random.default_rng(seed).uniform(-2, 2, (rounds, N))


def where(values: NDArray[np.float64], devices: NDArray[np.int64]) -> Records:
    """Records of which the attacker sees the place alone."""
    places = np.tile(np.arange(N), len(values))
    return Records({"place": places.astype(float)}, devices.ravel(), np.repeat(np.arange(len(values)), N))


def attacked(
    shuffler: Shuffler, name: str, *, view: Callable[..., Records] = Records.of_rounds, epsilon: float | None = None
) -> ReidentificationResult:
    """History without protection; attack on other days, shuffled and randomized."""
    pytest.importorskip("sklearn")
    rng, history, today = rng_of(name), signatures(seed=1), signatures(seed=2)
    noise = None if epsilon is None else Laplace(lower=-2.0, upper=72.0, epsilon=epsilon)

    def release(rng: Entropy) -> Records:
        values, devices = release_rounds(today, shuffler, randomizer=noise, rng=rng)
        return view(values, devices=devices)

    attack = ForestAttack.learn(view(history, devices=np.tile(np.arange(N), (ROUNDS, 1))), trees=10, rng=rng)
    return reidentify(attack, release, trials=20, permutations=99, rng=rng)


@dataclass
class Naive:
    """A classifier that answers with its first column."""

    def predict(self, matrix: NDArray[np.float64]) -> NDArray[np.int64]:
        return matrix[:, 0].astype(np.int64)


@pytest.mark.exhaust
@pytest.mark.parametrize("shuffler", [Identity(N), Uniform(N)])
def test_distinct_signatures_without_noise_are_always_recognized(shuffler: Shuffler) -> None:
    found = attacked(shuffler, f"distinct {shuffler}")
    assert (found.recall, found.precision, found.recall_interval) == (1.0, 1.0, (1.0, 1.0))
    assert (found.recall_by_device == 1.0).all() and (found.recall_reach_by_device == 0.0).all()
    assert found.chance == 1 / N and found.p_value == 0.01
    assert (found.features, found.records, found.trials) == (("value",), 20 * N * ROUNDS, 20)


def test_a_uniform_shuffle_leaves_nothing_in_the_place() -> None:
    """Fixed points of a uniform permutation have mean 1 and variance 1, so the recall's law is known."""
    found = attacked(Uniform(N), "place", view=where)
    batches = 20 * ROUNDS
    z = (found.recall * N - 1.0) * math.sqrt(batches)
    assert abs(z) < 6.2  # false alarm below 1e-9
    assert found.recall_interval[0] <= found.chance <= found.recall_interval[1]  # seeded; coverage is tested below
    assert math.erfc(6.2 / math.sqrt(2)) < FALSE_ALARM


@pytest.mark.exhaust
def test_the_place_tells_everything_without_a_shuffle_and_half_inside_pairs() -> None:
    assert attacked(Identity(N), "unshuffled", view=where).recall == 1.0
    pairs = attacked(WithinGroups(Groups.from_labels(np.arange(N) // 2)), "pairs", view=where)
    # pairs stay or swap, so 2 of N are right with probability 1/2, N / 2 times in each of 600 rounds
    sigma = 0.5 / math.sqrt(600 * N / 2)
    assert abs(pairs.recall - 0.5) < 6.2 * sigma and pairs.p_value == 0.01


@pytest.mark.exhaust
def test_noise_lowers_what_the_attack_reaches() -> None:
    loud, quiet = (attacked(Identity(N), "noise", epsilon=epsilon).recall for epsilon in (0.5, 50.0))
    assert loud < 0.3 < 0.8 < quiet


def expect_valid(p_values: list[float]) -> None:
    """Small p-values are no more frequent than they say; a third of the right ones would be seen."""
    found = np.array(p_values)
    for level, broken in ((0.1, 0.3), (0.5, 1.0)):
        expect_share(found > level, 1.0 - level, 1.0, [1.0 - broken])
        expect_caught(expect_share, found / 3 > level, 1.0 - level, 1.0, [1.0 - broken])


def test_the_interval_is_students_over_trials(rng: Entropy) -> None:
    """Which covers exactly where the recalls of trials are normal."""
    attack, recalls = ForestAttack(("place",), N, Naive()), list[float]()

    def release(rng: Entropy) -> Records:
        records = where(*release_rounds(np.zeros((20, N)), Uniform(N), rng=rng))
        recalls.append(float((records.features["place"].astype(int) == records.devices).mean()))
        return records

    found = reidentify(attack, release, trials=10, permutations=1, rng=rng)
    wanted = t_law.interval(0.95, 9, np.mean(recalls), np.std(recalls, ddof=1) / 10**0.5)
    assert found.recall == pytest.approx(np.mean(recalls)) and found.recall_interval == pytest.approx(wanted)


@pytest.mark.exhaust
def test_the_p_value_is_calibrated(rng: Entropy) -> None:
    """200 attacks on shuffled places."""
    attack = ForestAttack(("place",), N, Naive())
    values = np.zeros((20, N))

    def release(rng: Entropy) -> Records:
        return where(*release_rounds(values, Uniform(N), rng=rng))

    results = [reidentify(attack, release, trials=10, permutations=19, rng=rng) for _ in range(200)]
    expect_valid([r.p_value for r in results])
    assert min(r.p_value for r in results) < 0.2  # and the test is not asleep


@dataclass
class Nearest:
    """A classifier that knows the mean value of each device."""

    means: NDArray[np.float64]

    def predict(self, matrix: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.asarray(np.abs(matrix[:, :1] - self.means).argmin(axis=1))


def held_values(epsilon: float, *, known: bool, rng: Entropy) -> ReidentificationResult:
    """Ten trials on devices that hold one value each, which the attacker knows or has in a wrong order."""
    values = (rng.below(1000, N) + 0.5) / 1000
    history = values if known else values[rng.permutation(N)]
    attack = ForestAttack(("value",), N, Nearest(history))
    noise = Laplace(lower=0.0, upper=1.0, epsilon=epsilon)

    def release(rng: Entropy) -> Records:
        return Records.of_rounds(release_rounds(np.tile(values, (6, 1)), Identity(N), randomizer=noise, rng=rng)[0])

    return reidentify(attack, release, trials=10, permutations=19, rng=rng)


@pytest.mark.exhaust
@pytest.mark.parametrize("epsilon", one_in(3, [3.0, 30.0, 700.0]))
def test_the_p_value_is_valid_where_rounds_and_trials_repeat_the_values(epsilon: float, rng: Entropy) -> None:
    """Exchangeable devices, values that stay over rounds and trials: false alarms are as rare as the level says."""
    results = [held_values(epsilon, known=False, rng=rng) for _ in range(250)]
    expect_valid([r.p_value for r in results])
    assert min(r.p_value for r in results) < 0.3 and held_values(epsilon, known=True, rng=rng).p_value == 0.05


def test_who_always_names_the_same_device_reaches_chance_and_no_more() -> None:
    """Also where that device sends most of the records."""
    attack = ForestAttack(("value",), 9, Naive())
    devices = np.array([0] * 80 + [1] * 10 + [2] * 10 + [3])
    records = Records({"value": np.zeros(devices.size)}, devices, np.zeros(devices.size, int))
    found = reidentify(attack, lambda rng: records, trials=2, permutations=99, rng=simulation(1))
    assert found.recall == found.chance == 0.25 and found.p_value == 1.0


def test_recall_and_precision_are_those_of_their_definitions(rng: Entropy) -> None:
    guesses, devices = rng.below(5, 300), rng.below(4, 300)
    recall, precision = recall_precision(guesses, devices, n=6)
    for d in range(6):
        true = ((guesses == d) & (devices == d)).sum()
        missed, false = ((guesses != d) & (devices == d)).sum(), ((guesses == d) & (devices != d)).sum()
        assert recall[d] == (true / (true + missed) if true + missed else 0.0)
        assert precision[d] == (true / (true + false) if true + false else 0.0)


def test_devices_that_send_nothing_do_not_lower_the_means() -> None:
    attack = ForestAttack(("value",), N, Naive())
    half = Records({"value": np.array([0.0, 1.0, 0.0, 1.0])}, np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]))
    found = reidentify(attack, lambda rng: half, trials=2, permutations=9, rng=simulation(1))
    assert found.recall == 1.0 and found.recall_by_device.sum() == 2.0


def test_a_release_is_a_shuffle_of_every_row(rng: Entropy) -> None:
    values = signatures()
    released, devices = release_rounds(values, Uniform(N), rng=rng)
    np.testing.assert_array_equal(released, np.take_along_axis(values, devices, axis=1))
    assert (np.sort(devices, axis=1) == np.arange(N)).all() and len(np.unique(devices, axis=0)) > 1


def test_the_caller_states_what_the_attacker_sees() -> None:
    plain = Records.of_rounds(signatures())
    rich = Records.of_rounds(signatures(), time_of_day=np.arange(ROUNDS), place=True)
    assert tuple(plain.features) == ("value",)
    assert tuple(rich.features) == ("value", "time_of_day", "place")
    np.testing.assert_array_equal(rich.matrix[N], [signatures()[1, 0], 1.0, 0.0])
    with pytest.raises(ParameterError, match="records with the features"):
        ForestAttack(("value",), N, Naive()).guess(rich)


@pytest.mark.parametrize(
    ("features", "devices", "wanted"),
    [
        ({}, [0, 1], "at least one column"),
        ({"value": [1.0]}, [0, 1], "must be one number for each record"),
        ({"value": [1.0, math.nan]}, [0, 1], "`value` must be finite numbers; 1 of 2 are not"),
        ({"value": ["a", "b"]}, [0, 1], "`value` must be finite numbers, got values of type"),
        ({"value": [1.0, 2.0]}, [0, -1], "`devices` must be whole numbers"),
        ({"value": [1.0, 2.0]}, [0.0, 1.0], "`devices` must be whole numbers"),
        ({"value": []}, [], "`value` must be one number for each record"),
    ],
)
def test_records_that_do_not_fit_are_refused(features: dict[str, list[Any]], devices: list[int], wanted: str) -> None:
    with pytest.raises(DataError, match=wanted):
        Records({k: np.array(v) for k, v in features.items()}, np.array(devices), np.zeros(len(devices), int))


def test_attacks_that_make_no_sense_are_refused() -> None:
    attack, records = ForestAttack(("value",), 2, Naive()), Records.of_rounds(signatures())
    with pytest.raises(DataError, match=r"devices 0\.\.1"):
        reidentify(attack, lambda rng: records, trials=2, rng=simulation(1))
    with pytest.raises(ParameterError, match="`trials`"):
        reidentify(attack, lambda rng: records, trials=1, rng=simulation(1))
    for bad in (np.zeros(4), np.zeros((0, 3)), [["a"]], [[1.0, 2.0], [1.0]], [[math.nan]]):
        with pytest.raises(DataError, match="`values` must"):
            Records.of_rounds(bad)
        with pytest.raises(DataError, match="`values` must"):
            release_rounds(bad, Identity(4), rng=simulation(1))
    with pytest.raises(DataError, match="`values` must have 3 devices, as the shuffler, got 4"):
        release_rounds(np.zeros((2, 4)), Identity(3), rng=simulation(1))


@pytest.mark.parametrize("devices", [np.zeros((2, 3), int), np.zeros((3, 2), int).T.ravel(), [[0, 1], [0, 1]]])
def test_senders_and_times_have_the_shape_of_the_rounds(devices: Any) -> None:
    values = np.zeros((3, 2))
    with pytest.raises(DataError, match=r"`devices` must have the shape of `values`, \(3, 2\), got"):
        Records.of_rounds(values, devices=devices)
    for times in (5.0, [1.0, 2.0]):
        with pytest.raises(DataError, match="`time_of_day` must be one number for each round"):
            Records.of_rounds(values, time_of_day=times)

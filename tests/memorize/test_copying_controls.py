"""Controls that shrinking does not trip, the smallest shares that are seen, and the bound of the copied share."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from tests.statistics import expect_at_least, expect_caught, expect_share

from dovetail.core.entropy import simulation
from dovetail.memorize.copying.controls import (
    holdout_ratio,
    holdout_share,
    membership,
    paired_tail,
    tail_test,
)
from dovetail.memorize.copying.data_copying import CopyingTest
from dovetail.memorize.copying.rank_test import clopper_pearson, copied_fraction, detectable_by_tail
from dovetail.memorize.copying.result import apart
from dovetail.memorize.copying.search import TrainingIndex, duplicates_of, row_keys

Neighbours = tuple[np.ndarray, np.ndarray]


def neighbours(sample: np.ndarray, queries: np.ndarray) -> Neighbours:
    return TrainingIndex(sample).nearest(queries)


def shrunk(
    seed: int, *, scale: float, copies: int = 0, size: int = 150, width: int = 5
) -> tuple[Neighbours, Neighbours]:
    """Neighbours in T and in V of a shrunk model that was fitted to T, with copies of training points."""
    draw = np.random.default_rng(seed).standard_normal
    train, holdout = draw((size, width)), draw((size, width))
    generated = train.mean(axis=0) + scale * draw((size, width))
    generated[:copies] = train[:copies]
    return neighbours(train, generated), neighbours(holdout, generated)


@pytest.mark.exhaust
@pytest.mark.parametrize(("scale", "width"), [(1.0, 5), (0.5, 5), (0.05, 2)])
def test_a_shrunk_or_collapsed_model_trips_no_control(scale: float, width: int) -> None:
    pairs = [shrunk(seed, scale=scale, width=width) for seed in range(300)]
    for test in (lambda t, v: holdout_ratio(t, v, size=150), paired_tail):
        fired = [test(*pair).p <= 0.05 for pair in pairs]
        expect_share(fired, 0.0, 0.05, [0.2])
        expect_caught(expect_share, [*fired, *[True] * 60], 0.0, 0.05, [0.2])


@pytest.mark.exhaust
def test_copies_in_a_shrunk_model_trip_them() -> None:
    pairs = [shrunk(seed, scale=0.9, copies=15, width=20) for seed in range(20)]
    assert all(holdout_ratio(*pair, size=150).p < 1e-3 and paired_tail(*pair).p < 0.002 for pair in pairs)


def test_counting_generated_points_instead_of_training_points_would_reject_collapsed_models() -> None:
    naive = []
    for seed in range(200):
        (d, _), (e, _) = shrunk(seed, scale=0.05, width=2)
        near, far = int((d < e / 2).sum()), int((e < d / 2).sum())
        naive.append(near > far + 1.6449 * np.sqrt(near + far))
    assert np.mean(naive) > 0.2


def test_the_error_of_the_holdout_share_is_that_of_all_ways_to_halve_the_pool() -> None:
    nearest, of_train = np.array([0, 0, 0, 1, 2, 3, 4, 4]), 3  # of six pool points, the first three in T
    in_train = nearest < of_train
    to_train = (np.where(in_train, 1.0, 2.0), np.where(in_train, nearest, 0))
    to_holdout = (np.where(in_train, 2.0, 1.0), np.where(in_train, 0, nearest - of_train))
    counts = np.bincount(nearest, minlength=6)
    shares = [counts[list(half)].sum() / nearest.size for half in combinations(range(6), 3)]
    found = holdout_share(to_train, to_holdout, size=3)
    assert found.share == 5 / 8 and found.standard_error == pytest.approx(np.std(shares), rel=1e-12)


@pytest.mark.exhaust
def test_the_error_of_the_holdout_share_counts_what_shares_a_neighbour() -> None:
    z = []
    for seed in range(400):
        pair = shrunk(seed, scale=0.3, width=2)
        found = holdout_share(*pair, size=150)
        z.append((found.share - 0.5) / found.standard_error)
    expect_share(np.abs(z) < 1.96, 0.90, 0.99, [0.75])
    naive = [(holdout_share(*shrunk(seed, scale=0.3, width=2), size=150).share - 0.5) / (0.5 / np.sqrt(150))
             for seed in range(400)]  # fmt: skip
    expect_caught(expect_share, np.abs(naive) < 1.96, 0.90, 0.99, [0.75])


def test_half_of_all_copies_have_a_share_of_one_and_ties_count_half() -> None:
    rows = np.arange(10)
    found = holdout_share((np.zeros(10), rows), (np.ones(10), rows), size=10)
    assert found.share == 1.0 and found.rho == 1.0
    assert holdout_share((np.ones(10), rows), (np.ones(10), rows), size=10).share == 0.5


def test_membership_is_seen_by_distances_to_the_generated_sample() -> None:
    members, strangers = np.linspace(0.0, 1.0, 200), np.linspace(0.5, 1.5, 200)
    found = membership(members, strangers)
    assert found.auc > 0.85 and found.p < 1e-10
    assert found.hits_at_one_percent == pytest.approx(0.5, abs=0.02)
    low, high = found.interval
    assert low < found.hits_at_one_percent < high


@pytest.mark.exhaust
def test_the_tail_test_sees_one_percent_of_copies_with_power_point_eight() -> None:
    assert detectable_by_tail(1000, 1000, 10) == pytest.approx(0.0096, abs=2e-4)
    fired = []
    for seed in range(600):
        draw = np.random.default_rng(seed)
        generated = np.where(draw.random(1000) < 0.01, 0.0, draw.random(1000))
        fired.append(tail_test(draw.random(1000), generated, rng=simulation(seed)).p <= 0.05)
    expect_share(fired, 0.79, 0.86, [0.65, 0.96])


def test_ties_at_the_last_place_are_broken_evenly() -> None:
    shares = [tail_test(np.zeros(500), np.zeros(500), rng=simulation(seed)).generated / 10 for seed in range(300)]
    assert np.mean(shares) == pytest.approx(0.5, abs=6 * 0.5 / np.sqrt(3000))


@pytest.mark.exhaust
def test_the_copied_share_is_bounded_from_below() -> None:
    held, naive = [], []
    for seed in range(1500):
        draw = np.random.default_rng(seed)
        generated = np.where(draw.random(400) < 0.2, 0.0, draw.random(400))
        fresh = draw.random(400)
        held.append(copied_fraction(fresh, generated, 0.05)[0] <= 0.2)
        naive.append((generated <= 0.05).mean() - (fresh <= 0.05).mean() <= 0.2)
    expect_at_least(held, 0.95)
    expect_caught(expect_at_least, naive, 0.95)
    assert copied_fraction(np.ones(100), np.zeros(100), 0.5)[0] > 0.9


def test_clopper_pearson_ends_are_those_of_the_binomial_tails() -> None:
    from scipy.stats import binom

    low, high = clopper_pearson(7, 40)
    assert binom.sf(6, 40, low) == pytest.approx(0.025) and binom.cdf(7, 40, high) == pytest.approx(0.025)


@pytest.mark.exhaust
def test_honest_rows_that_repeat_trip_no_control_where_more_are_held_out_than_trained_on() -> None:
    """Zipf's law over 3,000 kinds of rows; at level .05 more than 3 of 12 fire with a chance of .002, and all did."""
    kinds, weights = np.random.default_rng(5).standard_normal((3000, 3)).round(1), 1 / np.arange(1, 3001)
    fired = 0
    for seed in range(12):
        draw = np.random.default_rng(seed)
        train, fresh, made = (
            kinds[draw.choice(3000, count, p=weights / weights.sum())] for count in (300, 2000, 800)
        )
        test = CopyingTest.prepare(train, fresh, overlap="keep", cells=1, seed=seed)
        fired += any(p <= 0.05 for p in test.test(made, baselines=False).controls.values())
    assert fired <= 3


def placed(draw: np.random.Generator) -> list[np.ndarray]:
    """Three honest samples of places from one list of a million, by two coordinates of many digits."""
    first = np.random.default_rng(99).random(1_000_000)
    rows = [draw.integers(1_000_000, size=count) for count in (1000, 500, 500)]
    return [np.column_stack([first[row], (7 * first[row]) % 1, draw.random(len(row)) < 0.5]) for row in rows]


def answers(draw: np.random.Generator) -> list[np.ndarray]:
    """Three samples of twenty rounded answers, the third of a model that halves their spread."""
    return [np.clip(np.rint(s * draw.standard_normal((n, 20))), -2, 2) + 0.0
            for n, s in ((1500, 0.54), (500, 0.54), (500, 0.27))]  # fmt: skip


@pytest.mark.exhaust
@pytest.mark.parametrize("samples", [placed, answers])
def test_rows_that_coincide_in_honest_data_are_no_literal_copies(samples: Any) -> None:
    """Of 60 at most two: with level .01 three or more have a chance of .02; a rule that takes columns of many digits
    for independent calls 9 copied, one that does not look at twins among the generated 26."""
    called = met = 0
    for seed in range(60):
        train, fresh, made = samples(np.random.default_rng(seed))
        test = duplicates_of(*map(row_keys, (train, apart(train, fresh, overlap="refuse"), made)))
        met, called = met + (test.generated > 0), called + test.literal
    assert met > 10 and called <= 2


@pytest.mark.exhaust
def test_a_mean_of_few_rows_in_many_columns_is_not_said_to_repeat_them() -> None:
    draw = np.random.default_rng(0).standard_normal
    train, fresh = draw((200, 500)), draw((200, 500))
    found = CopyingTest.prepare(train, fresh).test(train.mean(axis=0) + 0.5 * draw((200, 500)), baselines=False)
    assert found.verdict == "copying" and "500 numbers in a row and 200 training rows" in found.sentence
    copied = CopyingTest.prepare(train, fresh).test(np.concatenate([train[:60], draw((140, 500))]), baselines=False)
    assert copied.sentence.startswith("The model repeats training data")


def test_equal_rows_are_literal_copies_from_six_on_where_the_samples_are_equally_large() -> None:
    train, fresh = np.arange(500), np.arange(500, 1000)
    called = [duplicates_of(train, fresh, np.arange(500 - copies, 1000 - copies) + 500 * (np.arange(500) >= copies))
              for copies in (1, 2, 5, 6)]  # fmt: skip
    assert [one.distinct for one in called] == [1, 2, 5, 6]
    assert [one.literal for one in called] == [False, False, False, True]


@pytest.mark.exhaust
def test_a_shrunk_model_is_called_closer_and_not_copying() -> None:
    draw = np.random.default_rng(8).standard_normal
    found = CopyingTest.prepare(draw((800, 10)), draw((600, 10))).test(0.8 * draw((600, 10)))
    assert found.verdict == "closer" and "shrinks" in found.sentence
    assert not any(name in found.fired for name in found.controls)


@pytest.mark.exhaust
def test_a_few_literal_copies_are_copying_and_a_single_one_is_told() -> None:
    draw = np.random.default_rng(9).standard_normal
    train, fresh, generated = draw((500, 4)), draw((500, 4)), draw((500, 4))
    generated[0] = train[17]
    found = CopyingTest.prepare(train, fresh).test(generated)
    assert found.verdict == "nothing found" and found.duplicates.generated == 1
    assert any("1 generated rows stand in the training sample" in line for line in found.warnings)
    assert (found.nearest[0].generated, found.nearest[0].train, found.nearest[0].distance) == (0, 17, 0.0)
    generated[1:6] = train[18:23]
    found = CopyingTest.prepare(train, fresh).test(generated)
    assert found.verdict == "copying" and "literal copies" in found.fired and found.duplicates.literal


@pytest.mark.exhaust
def test_what_found_nothing_says_what_it_would_have_found() -> None:
    draw = np.random.default_rng(10).standard_normal
    found = CopyingTest.prepare(draw((500, 4)), draw((400, 4))).test(draw((400, 4)))
    assert found.verdict == "nothing found" and "would have been found" in found.sentence
    assert found.document()["minimum_detectable_share"]["all_points"] == pytest.approx(
        2.4865 * np.sqrt(1 / 600), rel=1e-3
    )


@pytest.mark.exhaust
def test_a_single_coincidence_in_discrete_data_is_no_copy_and_many_are() -> None:
    draw = np.random.default_rng(11)
    train, fresh, generated = (draw.permutation(6000)[:200] for _ in range(3))  # rows are numbers of 6,000 kinds
    fresh, generated = np.setdiff1d(fresh, train), np.setdiff1d(generated, train)
    generated[:1] = train[:1]
    rows = [np.stack([one // 80, one % 80], axis=1).astype(float) for one in (train, fresh, generated)]
    assert "literal copies" not in CopyingTest.prepare(*rows[:2]).test(rows[2]).fired
    rows[2][:8] = rows[0][:8]
    assert "literal copies" in CopyingTest.prepare(*rows[:2]).test(rows[2]).fired


@pytest.mark.exhaust
def test_distinct_rows_keep_their_places_in_the_sample() -> None:
    draw = np.random.default_rng(12).standard_normal
    train, generated = draw((300, 3)), draw((300, 3))
    generated[:100], generated[200] = generated[100], train[5]
    found = CopyingTest.prepare(train, draw((300, 3)), deduplicate=True).test(generated)
    assert found.m == 200 and (found.nearest[0].generated, found.nearest[0].train) == (200, 5)


@pytest.mark.exhaust
def test_a_training_sample_that_dwarfs_the_held_out_one_is_warned_of() -> None:
    draw = np.random.default_rng(3).standard_normal
    few, many = (CopyingTest.prepare(draw((2_000, 2)), draw((n, 2))) for n in (200, 400))
    told = few.test(draw((200, 2)), baselines=False).warnings
    assert any("hold 200 of the 2,000 training rows" in line for line in told)
    assert not any("training rows against" in line for line in many.test(draw((400, 2)), baselines=False).warnings)

"""The majority vote attack succeeds exactly where it should and nowhere else."""

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.statistics import FALSE_ALARM, expect_coverage, expect_law

from dovetail.attack.majority import AttackResult, _vote, majority_vote, voters
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.randomize.krr import KRR
from dovetail.randomize.unary import Unary
from dovetail.shuffle.groups import Groups
from dovetail.shuffle.uniform import Identity, Uniform, WithinGroups

N = 1200
EVERYBODY = np.arange(N)
TOWN = np.repeat(np.arange(12), 100)
VALUE = TOWN % 3  # people of one town hold the same value


def mount(shuffler: object, rng: Entropy, *, epsilon: float = 1.0, values: NDArray[np.int64] = VALUE) -> AttackResult:
    places = voters(EVERYBODY, within=(TOWN[:, None].astype(float), 0.0), similar=None, votes=25, rng=rng)
    return majority_vote(
        KRR(k=3, epsilon=epsilon),
        values,
        places,
        shuffler,
        targets=EVERYBODY,
        trials=40,
        rng=rng,  # type: ignore[arg-type]
    )


def test_local_privacy_alone_does_not_stop_the_vote_and_a_uniform_shuffle_does(rng: Entropy) -> None:
    alone = mount(Identity(N), rng)
    assert alone.chance == pytest.approx(1 / 3)
    assert alone.success > 0.9 and alone.vulnerable > 0.7
    shuffled = mount(Uniform(N), rng)
    # votes of strangers: right with probability 1/3 over 48,000 correlated guesses; spread measured over trials
    assert abs(shuffled.success - 1 / 3) < 0.05 and shuffled.vulnerable == 0.0


def test_shuffling_inside_towns_of_one_value_does_not_stop_the_vote(rng: Entropy) -> None:
    assert mount(WithinGroups(Groups.from_labels(TOWN)), rng).success > 0.9


def test_values_without_pattern_are_guessed_by_the_own_report_at_most(rng: Entropy) -> None:
    scattered = rng.below(3, N)
    result = mount(Identity(N), rng, values=scattered)
    assert result.success < KRR(k=3, epsilon=1.0).channel().p + 0.03


def test_the_vote_follows_its_closed_form_and_its_interval_covers_it(rng: Entropy) -> None:
    # one voter, the target itself: success is the probability of keeping the value
    randomizer, people = KRR(k=4, epsilon=1.5), np.arange(300)
    values = rng.below(4, 300)
    hits = []
    for _ in range(300):
        result = majority_vote(randomizer, values, people[:, None], Identity(300), targets=people, trials=20, rng=rng)
        hits.append(result.interval[0] <= randomizer.channel().p <= result.interval[1])
    expect_coverage(hits, 0.93)  # Student interval of 20 nearly normal means: nominal 0.95


def test_ties_are_broken_evenly(rng: Entropy) -> None:
    count = 30_000
    places = np.tile(np.array([[0, 1, -1]]), (count, 1))
    winners = _vote(np.array([2, 0]), places, 3, rng.words(count))
    expect_law(np.bincount(winners, minlength=3), [0.5, 0.0, 0.5], FALSE_ALARM)


def test_voters_are_near_similar_and_include_the_target(rng: Entropy) -> None:
    near = np.repeat(np.arange(20.0), 30)[:, None]
    alike = rng.below(1000, 600).astype(float)[:, None]
    targets = np.array([5, 100, 599])
    places = voters(targets, within=(near, 1.0), similar=alike, votes=10, rng=rng)
    for row, person in zip(places, targets, strict=True):
        inside = np.flatnonzero(np.abs(near - near[person])[:, 0] <= 1.0)
        assert row[0] == person and set(row) <= set(inside) and len(set(row)) == 10
        farthest = np.abs(alike[row] - alike[person]).max()
        others = np.setdiff1d(inside, row)
        assert np.abs(alike[others] - alike[person]).min() >= farthest


def test_few_neighbours_leave_votes_empty(rng: Entropy) -> None:
    points = np.array([[0.0, 0.0], [0.1, 0.0], [9.0, 9.0]])
    places = voters(np.arange(3), within=(points, 0.5), similar=None, votes=4, rng=rng)
    assert sorted(places[0]) == [-1, -1, 0, 1] and sorted(places[2]) == [-1, -1, -1, 2]


def test_without_a_place_the_most_similar_of_all_vote(rng: Entropy) -> None:
    alike = np.array([0.0, 1.0, 2.0, 10.0, 11.0])[:, None]
    places = voters(np.array([0, 4]), within=None, similar=alike, votes=2, rng=rng)
    assert set(places[0]) == {0, 1} and set(places[1]) == {3, 4}
    same = voters(np.arange(50), within=None, similar=np.zeros((50, 1)), votes=3, rng=rng)
    assert all(person in row for person, row in enumerate(same))


def test_what_cannot_be_attacked_this_way_is_refused(rng: Entropy) -> None:
    with pytest.raises(DataError, match="public columns"):
        voters(EVERYBODY, within=None, similar=None, votes=5, rng=rng)
    with pytest.raises(UnsupportedError, match="needs randomizer krr"):
        majority_vote(
            Unary(k=3, epsilon=1.0), VALUE, EVERYBODY[:, None], Identity(N), targets=EVERYBODY, trials=2, rng=rng
        )

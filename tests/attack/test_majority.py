"""The majority vote attack succeeds exactly where it should and nowhere else."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import t as t_law
from tests.attack.planted import planted
from tests.statistics import FALSE_ALARM, expect_broken, expect_caught, expect_law, expect_mean

from dovetail.attack.experiment.run_attack import AttackResult, attack_released, run_attack
from dovetail.attack.experiment.voter_selection import select_voters
from dovetail.attack.majority import MajorityVote, _vote
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.core.stages import FrequencyRandomizer, Shuffler
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.local_hashing import LocalHashing
from dovetail.randomize.unary import Unary
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups

N = 1200
EVERYBODY = np.arange(N)
TOWN = np.repeat(np.arange(12), 100)
VALUE = TOWN % 3  # people of one town hold the same value
RANDOMIZERS: list[type[KRR] | type[Hadamard] | type[Unary] | type[LocalHashing]] = [
    KRR,
    Hadamard,
    Unary,
    LocalHashing,
]


def attacked(
    shuffler: Shuffler, rng: Entropy, *, randomizer: FrequencyRandomizer | None = None,
    values: NDArray[np.int64] = VALUE,
) -> AttackResult:  # fmt: skip
    chosen = KRR(k=3, epsilon=1.0) if randomizer is None else randomizer
    places = select_voters(EVERYBODY, within=(TOWN[:, None], 0.0), similar=None, votes=25, rng=rng)
    attacker = MajorityVote(chosen, EVERYBODY, places)
    return run_attack(attacker, chosen, values, shuffler, shuffles=8, randomizations=5, rng=rng)


@pytest.mark.exhaust
@pytest.mark.parametrize("kind", RANDOMIZERS)
def test_without_noise_and_shuffle_every_guess_is_right(kind: type[KRR], rng: Entropy) -> None:
    found = attacked(Identity(N), rng, randomizer=kind(k=3, epsilon=11.0))
    assert found.success == found.vulnerable == 1.0 and found.interval == (1.0, 1.0)
    assert (found.by_person == 1.0).all() and found.chance == pytest.approx(1 / 3)


@pytest.mark.exhaust
@pytest.mark.parametrize("kind", RANDOMIZERS)
def test_local_privacy_alone_does_not_stop_the_vote_and_a_uniform_shuffle_does(kind: type[KRR], rng: Entropy) -> None:
    """Of uniformly shuffled reports every guess has one law for all targets, so with equal shares it is 1/3 right.

    The share of right guesses of a town has a standard deviation below .5; six of those of 12 towns in 8 orders.
    """
    randomizer = kind(k=3, epsilon=1.0)
    alone = attacked(Identity(N), rng, randomizer=randomizer)
    assert alone.success > 0.8 and alone.vulnerable > 0.4
    shuffled = attacked(Uniform(N), rng, randomizer=randomizer)
    assert shuffled.success < 1 / 3 + 6 * 0.5 / 96**0.5 < 0.8 and shuffled.vulnerable < 0.4
    assert attacked(WithinGroups(Groups.from_labels(TOWN)), rng).success > 0.8  # towns of one value


def test_the_interval_is_students_over_shuffles(rng: Entropy) -> None:
    """Which covers exactly where the shares of shuffles are normal."""
    for shuffles in (2, 10, 20):
        rates = rng.below(1000, shuffles * 30).reshape(shuffles, 30) / 1000
        shares = rates.mean(axis=1)
        found = AttackResult.of("any", rates, chance=0.0, randomizations=1)
        wanted = t_law.interval(0.95, shuffles - 1, shares.mean(), shares.std(ddof=1) / shuffles**0.5)
        assert found.success == pytest.approx(shares.mean())
        assert found.interval == pytest.approx((max(0.0, wanted[0]), min(1.0, wanted[1])))


@pytest.mark.exhaust
def test_uniformly_shuffled_the_vote_succeeds_by_chance_alone(rng: Entropy) -> None:
    values, who = np.arange(90) % 3, np.arange(90)
    attacker = MajorityVote(KRR(k=3, epsilon=3.0), who, (who[:, None] // 9) * 9 + np.arange(9))
    found = [
        run_attack(attacker, attacker.randomizer, values, Uniform(90), randomizations=2, rng=rng) for _ in range(250)
    ]
    assert found[0].chance == pytest.approx(1 / 3)
    expect_mean([each.success for each in found], 1 / 3)
    expect_caught(expect_mean, [each.success for each in found], 0.35)


@pytest.mark.parametrize("kind", RANDOMIZERS)
def test_the_identity_equals_local_privacy_exactly(kind: type[KRR]) -> None:
    """Released in the order they came in, reports are attacked as if there were no shuffler."""
    randomizer = kind(k=3, epsilon=1.0)
    places = select_voters(EVERYBODY, within=(TOWN, 0.0), similar=None, votes=25, rng=simulation(1))
    attacker = MajorityVote(randomizer, EVERYBODY, places)
    found = run_attack(attacker, randomizer, VALUE, Identity(N), shuffles=2, randomizations=2, rng=simulation(7))
    rng, right = simulation(7), np.zeros(N)
    for _ in range(4):
        right += attacker.guess(randomizer.randomize(VALUE, rng), rng) == VALUE
    np.testing.assert_array_equal(found.by_person, right / 4)


@pytest.mark.parametrize("agree", [0.5, 0.75, 1.0])
def test_a_planted_correlation_gives_its_closed_form(agree: float, rng: Entropy) -> None:
    towns, size, people = 60, 9, np.arange(540)
    randomizer = KRR(k=2, epsilon=1.0)
    attacker = MajorityVote(randomizer, people, (people[:, None] // size) * size + np.arange(size))
    found = []
    for _ in range(250):
        kinds = np.repeat(rng.below(2, towns), size)
        values = kinds ^ (rng.below(1 << 20, people.size) >= agree * (1 << 20))
        found.append(
            run_attack(attacker, randomizer, values, Identity(540), shuffles=2, randomizations=1, rng=rng).success
        )
    expect_mean(found, planted(agree, randomizer.channel().p, town=size))
    expect_caught(expect_mean, found, planted(agree, randomizer.channel().p, town=size) + 0.02)


def test_values_without_pattern_are_guessed_by_the_own_report_at_most(rng: Entropy) -> None:
    scattered = rng.below(3, N)
    assert attacked(Identity(N), rng, values=scattered).success < KRR(k=3, epsilon=1.0).channel().p + 0.03


def test_the_vote_of_one_follows_its_closed_form(rng: Entropy) -> None:
    # one voter, the target itself: success is the probability of keeping the value
    randomizer, people = KRR(k=4, epsilon=1.5), np.arange(300)
    values = rng.below(4, 300)
    attacker = MajorityVote(randomizer, people, people[:, None])
    found = run_attack(attacker, randomizer, values, Identity(300), shuffles=200, randomizations=1, rng=rng)
    right, p = round(found.success * 60_000), randomizer.channel().p
    expect_law([right, 60_000 - right], [p, 1.0 - p])
    expect_broken([right, 60_000 - right], [p + 0.02, 0.98 - p])


def test_one_order_for_all_randomizations_shows_who_stays_vulnerable(rng: Entropy) -> None:
    """A pair swaps or not, for a whole shuffle: without noise half of the pairs are right every time."""
    values, people = np.arange(200) % 2, np.arange(200)
    attacker = MajorityVote(KRR(k=2, epsilon=40.0), people, people[:, None])
    pairs = WithinGroups(Groups.from_labels(people // 2))
    found = run_attack(attacker, attacker.randomizer, values, pairs, shuffles=100, randomizations=10, rng=rng)
    assert found.vulnerable == pytest.approx(found.success)  # all or nothing within a shuffle
    expect_law([round(found.success * 10_000), round((1 - found.success) * 10_000)], [0.5, 0.5])
    assert found.by_person.max() < 0.9  # a fresh order each time saves everybody


@pytest.mark.exhaust
def test_ties_are_broken_evenly(rng: Entropy) -> None:
    count = 30_000
    places = np.tile(np.array([[0, 1, -1]]), (count, 1))
    winners = _vote(np.array([2, 0]), places, 3, rng.words(count))
    expect_law(np.bincount(winners, minlength=3), [0.5, 0.0, 0.5], FALSE_ALARM)
    unary = Unary(k=3, epsilon=1.0)
    bits = np.packbits([[1, 0, 1], [0, 0, 0]], axis=1)
    winners = MajorityVote(unary, np.zeros(count, dtype=np.int64), places).guess(bits, rng)
    expect_law(np.bincount(winners, minlength=3), [0.5, 0.0, 0.5], FALSE_ALARM)


def test_voters_are_near_similar_and_include_the_target(rng: Entropy) -> None:
    near = np.repeat(np.arange(20.0), 30)[:, None]
    plane = np.column_stack((near, rng.below(7, 600)))
    alike = rng.below(1000, 600).astype(float)[:, None]
    targets = np.array([5, 100, 599])
    for points in (near, plane):
        places = select_voters(targets, within=(points, 1.0), similar=alike, votes=10, rng=rng)
        for row, person in zip(places, targets, strict=True):
            inside = np.flatnonzero(((points - points[person]) ** 2).sum(axis=1) <= 1.0)
            assert row[0] == person and set(row) - {-1} <= set(inside) and len(set(row)) == 10
            farthest = np.abs(alike[row] - alike[person]).max()
            others = np.setdiff1d(inside, row)
            assert np.abs(alike[others] - alike[person]).min() >= farthest


@pytest.mark.parametrize("similar", [None, np.zeros(12)])
def test_equally_similar_people_vote_equally_often(similar: NDArray[np.float64] | None, rng: Entropy) -> None:
    counts = np.zeros(12, dtype=np.int64)
    for _ in range(2000):
        counts += np.bincount(
            select_voters([4], within=(np.zeros(12), 0.0), similar=similar, votes=2, rng=rng)[0], minlength=12
        )
    assert counts[4] == 2000
    expect_law(np.delete(counts, 4), np.full(11, 1 / 11))
    expect_broken(counts, np.full(12, 1 / 12))


def test_the_edge_of_the_radius_is_inside(rng: Entropy) -> None:
    tenths = np.arange(400) / 10
    for radius, wanted in ((0.3000001, 7), (0.2999999, 5)):
        places = select_voters([200], within=(tenths, radius), similar=-tenths, votes=9, rng=rng)
        assert (places >= 0).sum() == wanted
    places = select_voters(np.arange(4), within=(np.array([0.0, 1.0, 2.0, 3.0]), 1.0), similar=None, votes=4, rng=rng)
    assert (places >= 0).sum(axis=1).tolist() == [2, 3, 3, 2]


def test_few_neighbours_leave_votes_empty(rng: Entropy) -> None:
    points = np.array([[0.0, 0.0], [0.1, 0.0], [9.0, 9.0]])
    places = select_voters(np.arange(3), within=(points, 0.5), similar=None, votes=4, rng=rng)
    assert sorted(places[0]) == [-1, -1, 0, 1] and sorted(places[2]) == [-1, -1, -1, 2]


def test_without_a_place_the_most_similar_of_all_vote(rng: Entropy) -> None:
    alike = np.array([0.0, 1.0, 2.0, 10.0, 11.0])[:, None]
    places = select_voters(np.array([0, 4]), within=None, similar=alike, votes=2, rng=rng)
    assert set(places[0]) == {0, 1} and set(places[1]) == {3, 4}
    same = select_voters(np.arange(50), within=None, similar=np.zeros((50, 1)), votes=3, rng=rng)
    assert all(person in row for person, row in enumerate(same))
    few = select_voters(np.arange(3), within=None, similar=np.arange(3.0), votes=5, rng=rng)
    assert ((few >= 0).sum(axis=1) == 3).all()


@pytest.mark.parametrize(
    ("within", "similar", "targets", "error", "wanted"),
    [
        (None, None, [0], DataError, "public columns"),
        ((np.arange(4.0), 0.5), None, [0, 3], UnsupportedError, r"Nobody is within 0\.5"),
        ((np.array(["a", "b"]), 1.0), None, [0], DataError, "`within` must be finite numbers"),
        ((np.array([0.0, np.nan]), 1.0), None, [0], DataError, "`within` must be finite numbers"),
        ((np.zeros((2, 2, 2)), 1.0), None, [0], DataError, "`within` must have one row"),
        ((np.zeros(3), 1.0), np.zeros(2), [0], DataError, "`similar` must have 3 rows"),
        (None, np.array(["single", "married"]), [0], DataError, "`similar` must be finite numbers"),
        ((np.zeros(3), -1.0), None, [0], ParameterError, "`radius` must be"),
        ((np.zeros(3), 1.0), None, [3], DataError, r"`targets` must be indices \(m,\) of people 0\.\.2"),
        ((np.zeros(3), 1.0), None, [], DataError, "`targets` must be"),
        ((np.zeros(3), 1.0), None, [0.0], DataError, "`targets` must be"),
    ],
)
def test_public_columns_that_do_not_serve_are_refused(
    within: tuple[NDArray[np.float64], float] | None, similar: NDArray[np.float64] | None, targets: list[int],
    error: type[Exception], wanted: str, rng: Entropy,
) -> None:  # fmt: skip
    with pytest.raises(error, match=wanted) as caught:
        select_voters(targets, within=within, similar=similar, votes=3, rng=rng)
    assert "\n" not in str(caught.value)


def test_what_cannot_be_attacked_this_way_is_refused(rng: Entropy) -> None:
    krr, own = KRR(k=3, epsilon=1.0), EVERYBODY[:, None]
    for places in (own[:5], own.astype(float), own - 2, np.full((N, 2), -1)):
        with pytest.raises(DataError, match="`places` must"):
            MajorityVote(krr, EVERYBODY, places)
    with pytest.raises(DataError, match="`reports` must have a row"):
        MajorityVote(krr, EVERYBODY, own).guess(np.zeros(3, dtype=np.int64), rng)
    attacker = MajorityVote(krr, EVERYBODY, own)
    with pytest.raises(DataError, match=r"`values` must be 1,200 codes"):
        run_attack(attacker, krr, VALUE[:-1], Identity(N), rng=rng)
    with pytest.raises(ParameterError, match="`shuffles`"):
        run_attack(attacker, krr, VALUE, Identity(N), shuffles=1, rng=rng)
    with pytest.raises(DataError, match="`targets` must be"):
        run_attack(MajorityVote(krr, EVERYBODY + 1, own), krr, VALUE, Identity(N), rng=rng)


def test_released_batches_are_scored_as_they_are(rng: Entropy) -> None:
    """Of four batches the first person is named in all, the second in three, the third in none."""
    krr, people, values = KRR(k=2, epsilon=1.0), np.arange(3), np.array([0, 1, 1])
    batches = [np.array([0, 1, 0]), np.array([0, 1, 0]), np.array([0, 1, 0]), np.array([0, 0, 0])]
    found = attack_released(MajorityVote(krr, people, people[:, None]), values, batches, rng=rng)
    assert found.by_person.tolist() == [1.0, 0.75, 0.0] and found.success == 7 / 12
    assert found.vulnerable == pytest.approx(1 / 3) and found.chance == pytest.approx(2 / 3)
    half = t_law.ppf(0.975, 3) * np.std([2 / 3, 2 / 3, 2 / 3, 1 / 3], ddof=1) / 2
    assert found.interval == pytest.approx((7 / 12 - half, 7 / 12 + half))
    alone = attack_released(MajorityVote(krr, people, people[:, None]), values, batches[:1], rng=rng)
    assert alone.interval == (0.0, 1.0) and alone.success == pytest.approx(2 / 3)
    with pytest.raises(ParameterError, match="`batches`"):
        attack_released(MajorityVote(krr, people, people[:, None]), values, [], rng=rng)


def test_the_summary_is_ready_for_a_file(rng: Entropy) -> None:
    summary = attacked(Identity(N), rng).summary()
    assert set(summary) == {
        "name", "success", "chance", "interval", "vulnerable", "shuffles", "randomizations", "level", "vulnerable_at",
        "targets", "mounted", "alone", "remark",
    }  # fmt: skip
    assert summary["targets"] == N and isinstance(summary["interval"], list)

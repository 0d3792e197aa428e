"""The de Finetti attack learns how values follow public data from shuffled reports alone."""

import numpy as np
import pytest
from tests.statistics import expect_caught, expect_mean

from dovetail.attack.definetti import DeFinetti
from dovetail.attack.experiment.run_attack import run_attack
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError
from dovetail.core.stages import FrequencyRandomizer
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.local_hashing import LocalHashing
from dovetail.randomize.unary import Unary
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups

N = 1500
EVERYBODY = np.arange(N)
FOUR = [KRR(2, 1.0), Hadamard(2, 1.0), Unary(2, 1.0), LocalHashing(2, 1.0)]


def drawn(shares: np.ndarray, rng: Entropy) -> np.ndarray:
    """Values 0 or 1; person i holds 1 with probability shares[i]."""
    return (rng.below(1 << 20, len(shares)) < shares * (1 << 20)).astype(np.int64)


def test_without_noise_and_shuffle_every_guess_is_right(rng: Entropy) -> None:
    values = rng.below(3, N)
    attacker = DeFinetti.of(KRR(3, 40.0), EVERYBODY % 5, blocks=EVERYBODY, targets=EVERYBODY)
    found = run_attack(attacker, KRR(3, 40.0), values, Identity(N), shuffles=2, randomizations=2, rng=rng)
    assert found.success == found.vulnerable == 1.0 and (found.by_person == 1.0).all()


@pytest.mark.parametrize("randomizer", FOUR, ids=lambda r: r.name)
def test_of_a_uniform_shuffle_it_learns_the_commonest_value_alone(
    randomizer: FrequencyRandomizer, rng: Entropy
) -> None:
    values = (EVERYBODY % 4 == 0).astype(np.int64)
    attacker = DeFinetti.of(randomizer, values, blocks=np.zeros(N), targets=EVERYBODY)  # even with t = x
    found = run_attack(attacker, randomizer, values, Uniform(N), shuffles=4, randomizations=2, rng=rng)
    assert found.success == found.chance == 0.75 and found.interval == (0.75, 0.75)


@pytest.mark.parametrize("randomizer", FOUR, ids=lambda r: r.name)
def test_a_planted_law_is_learned_from_mixed_blocks(randomizer: FrequencyRandomizer, rng: Entropy) -> None:
    """Blocks of ten of changing composition; nobody's own report is known, and the commonest value is right for 60%.

    The regression is unbiased and shrunk by one person in each class: among 150 blocks of variance 10 / 4 by 1%.
    """
    classes, blocks = rng.below(2, N), EVERYBODY // 10
    values = drawn(np.where(classes, 0.75, 0.25), rng)
    attacker = DeFinetti.of(randomizer, classes, blocks=blocks, targets=EVERYBODY)
    inside = WithinGroups(Groups.from_labels(blocks))
    models = [attacker.learn(inside.shuffle(randomizer.randomize(values, rng), rng))[0][:, 1] for _ in range(150)]
    share = np.bincount(blocks, classes) / 10
    told = np.linalg.lstsq(np.column_stack((1 - share, share)), np.bincount(blocks, values) / 10, rcond=None)[0]
    assert np.abs(np.mean(models, axis=0) - told).max() < 0.01 + 6 * np.std(models, axis=0).max() / 150**0.5
    found = run_attack(attacker, randomizer, values, inside, shuffles=4, randomizations=3, rng=rng)
    assert found.success > 0.7 > 0.6 > found.chance


def test_from_unshuffled_reports_the_guess_is_bayes_with_its_closed_form(rng: Entropy) -> None:
    r"""Success sum_c (1/3) sum_y max_v theta_cv W(y|v): strong classes decide, the even one asks the report."""
    randomizer, classes = KRR(2, 1.0), EVERYBODY % 3
    theta = np.array([0.05, 0.5, 0.95])
    joint = np.stack((1 - theta, theta), axis=1)[:, :, None] * randomizer.channel().matrix()
    closed = float(joint.max(axis=1).sum(axis=1).mean())
    assert closed == pytest.approx((0.95 + randomizer.channel().p + 0.95) / 3)
    attacker = DeFinetti.of(randomizer, classes, blocks=EVERYBODY, targets=EVERYBODY)
    found = []
    for _ in range(230):
        values = drawn(theta[classes], rng)
        found.append(
            run_attack(attacker, randomizer, values, Identity(N), shuffles=2, randomizations=1, rng=rng).success
        )
    expect_mean(found, closed)
    expect_caught(expect_mean, found, closed + 0.01)


def test_shuffled_in_pairs_the_planted_law_gives_its_closed_form(rng: Entropy) -> None:
    """Without noise: equal reports tell both values; unequal ones go the likely way round.

    A pair of one class with unequal values gets one of two right; a mixed pair both, unless it is the wrong way
    round, with probability .05^2.
    """
    pairs = np.array([[0, 0], [1, 1], [0, 1]])
    classes = np.tile(pairs.ravel(), 100)
    people = np.arange(classes.size)
    unequal = 2 * 0.95 * 0.05
    closed = (2 * (1 - unequal / 2) + 1 - 0.05**2) / 3
    attacker = DeFinetti.of(KRR(2, 40.0), classes, blocks=people // 2, targets=people)
    inside = WithinGroups(Groups.from_labels(people // 2))
    found = []
    for _ in range(230):
        values = drawn(np.where(classes, 0.95, 0.05), rng)
        found.append(
            run_attack(attacker, KRR(2, 40.0), values, inside, shuffles=2, randomizations=1, rng=rng).success
        )
    expect_mean(found, closed)


def test_the_order_inside_a_block_does_not_matter(rng: Entropy) -> None:
    blocks = EVERYBODY // 30
    attacker = DeFinetti.of(KRR(2, 1.0), rng.below(3, N), blocks=blocks, targets=EVERYBODY)
    reports = rng.below(2, N)
    model, weights = attacker.learn(reports)
    again, weighed = attacker.learn(WithinGroups(Groups.from_labels(blocks)).shuffle(reports, rng))
    np.testing.assert_allclose(again, model, atol=1e-9)
    np.testing.assert_allclose(weighed, weights, rtol=1e-9)


def test_labels_that_do_not_serve_are_refused(rng: Entropy) -> None:
    krr = KRR(2, 1.0)
    with pytest.raises(DataError, match="at least 2 people in each class; 1 have one, such as Paris"):
        DeFinetti.of(krr, ["Rome", "Paris", "Rome"], blocks=[0, 0, 0], targets=[0])
    with pytest.raises(DataError, match="`blocks` must be 4 labels"):
        DeFinetti.of(krr, [0, 0, 1, 1], blocks=[0, 0], targets=[0])
    with pytest.raises(DataError, match="`targets` must be"):
        DeFinetti.of(krr, [0, 0], blocks=[0, 0], targets=[2])
    with pytest.raises(DataError, match="`labels` must be present"):
        DeFinetti.of(krr, [0.0, np.nan], blocks=[0, 0], targets=[0])
    with pytest.raises(DataError, match="`reports` must be 2"):
        DeFinetti.of(krr, [0, 0], blocks=[0, 0], targets=[0]).guess(np.zeros(3, dtype=np.int64), rng)

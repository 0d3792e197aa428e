"""Every shuffler draws from its own published law, keeps its promise and never looks at the reports."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from tests.shuffle.symmetric import everything, index, largest_change, log_law
from tests.statistics import expect_broken, expect_law, rng_of

from dovetail.core.entropy import device, simulation
from dovetail.core.errors import DataError
from dovetail.core.stages import Shuffler
from dovetail.shuffle.groups import Groups
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.uniform import Identity, Uniform, WithinGroups

OVERLAPPING = Groups.from_lists([[0, 1, 3], [3, 2, 4]], 5)
SHUFFLERS: list[Shuffler] = [
    *Identity.examples(),
    *Uniform.examples(),
    *WithinGroups.examples(),
    *Mallows.examples(),
    *(
        Mallows.fit(OVERLAPPING, alpha=alpha, reference=[1, 2, 4, 0, 3])
        for alpha in (1e-11, 0.4, 2.5, 8.0, 20.0, 1e300)
    ),
    *(
        Mallows.fit(Groups.from_lists([[0, 2], [2, 3]], 4), alpha=alpha, reference=[2, 0, 3, 1])
        for alpha in (0.05, 3.0)
    ),
]
DRAWS = 20_000
over_all = pytest.mark.parametrize("shuffler", SHUFFLERS, ids=lambda s: f"{s!r:.90}")


def drawn(shuffler: Shuffler, name: str) -> np.ndarray:
    rng = rng_of(name)
    perms = np.array([shuffler.permutation(rng) for _ in range(DRAWS)])
    return np.bincount(index(perms), minlength=math.factorial(shuffler.n))


@over_all
def test_the_weights_of_all_permutations_sum_to_one(shuffler: Shuffler) -> None:
    assert math.fsum(np.exp(log_law(shuffler))) == pytest.approx(1.0, abs=1e-13)


@over_all
def test_draws_follow_the_published_law(shuffler: Shuffler, request: pytest.FixtureRequest) -> None:
    expect_law(drawn(shuffler, request.node.nodeid), np.exp(log_law(shuffler)))


def test_a_wrong_sign_of_theta_is_caught(request: pytest.FixtureRequest) -> None:
    shuffler = Mallows.fit(OVERLAPPING, alpha=2.5, reference=[1, 2, 4, 0, 3])
    law = np.exp(-log_law(shuffler))
    expect_broken(drawn(shuffler, request.node.nodeid), law / law.sum())


def test_a_theta_that_is_off_by_a_tenth_is_caught(request: pytest.FixtureRequest) -> None:
    shuffler = Mallows.fit(OVERLAPPING, alpha=8.0, reference=[1, 2, 4, 0, 3])
    law = np.exp(1.1 * log_law(shuffler))
    expect_broken(drawn(shuffler, request.node.nodeid), law / law.sum())


def test_the_inverse_permutation_is_caught(request: pytest.FixtureRequest) -> None:
    """Handing out s^-1 kappa s instead of s kappa s^-1 is another law when s is not its own inverse."""
    order = np.array([1, 2, 4, 0, 3])
    shuffler = Mallows.fit(OVERLAPPING, alpha=8.0, reference=order)
    law = np.exp(log_law(Mallows.fit(OVERLAPPING, alpha=8.0, reference=np.argsort(order))))
    expect_broken(drawn(shuffler, request.node.nodeid), law / law.sum())


@over_all
def test_the_promise_holds_for_every_reordering_inside_a_group(shuffler: Shuffler) -> None:
    promise, law = shuffler.guarantee, log_law(shuffler)
    groups = [np.arange(shuffler.n)] if promise.groups is None else promise.groups
    assert isinstance(groups, Groups | list)
    for group in groups:
        true = largest_change(law, tuple(group.tolist()), shuffler.n)
        assert true <= promise.alpha * (1 + 1e-12) + 1e-13  # rounding of the log weights themselves


@over_all
def test_mixing_equals_enumeration(shuffler: Shuffler) -> None:
    labels = np.arange(shuffler.n) % 3
    weights, perms = np.exp(log_law(shuffler)), everything(shuffler.n)
    size = int(labels.max()) + 1
    truth = np.zeros((size, size))
    for a in range(size):
        for b in range(size):
            truth[a, b] = weights @ (labels[perms[:, labels == a]] == b).mean(axis=1)
    got = shuffler.mixing(labels)
    np.testing.assert_allclose(got, truth, atol=1e-12)
    np.testing.assert_allclose(got.sum(axis=1), 1.0, atol=1e-12)


@over_all
def test_equal_seeds_give_equal_orders_and_others_do_not_matter(shuffler: Shuffler) -> None:
    first, second = simulation(7), simulation(7)
    for _ in range(3):
        np.testing.assert_array_equal(shuffler.permutation(first), shuffler.permutation(second))


@over_all
def test_a_shuffle_applies_the_permutation_that_it_draws(shuffler: Shuffler) -> None:
    reports = np.arange(2 * shuffler.n).reshape(shuffler.n, 2) + 100
    released = shuffler.shuffle(reports, simulation(3))
    np.testing.assert_array_equal(released, reports[shuffler.permutation(simulation(3))])
    assert sorted(shuffler.shuffle(np.arange(shuffler.n), device()).tolist()) == list(range(shuffler.n))


@over_all
@pytest.mark.parametrize("more", [-1, 1])
def test_a_batch_of_another_size_is_refused(shuffler: Shuffler, more: int) -> None:
    with pytest.raises(DataError, match="rows"):
        shuffler.shuffle(np.zeros(shuffler.n + more), simulation(0))


@over_all
def test_what_is_not_a_permutation_has_no_weight(shuffler: Shuffler) -> None:
    for wrong in ([0] * (shuffler.n + 1), np.arange(shuffler.n) + 1, np.arange(shuffler.n) * 1.0):
        with pytest.raises(DataError, match="permutation"):
            shuffler.log_weight(wrong)


@over_all
def test_summaries_hold_plain_values(shuffler: Shuffler) -> None:
    summary = shuffler.summary()
    assert {type(value) for value in summary.values()} <= {int, float, str, bool}
    assert summary["shuffler"] == type(shuffler).name and summary["n"] == shuffler.n
    assert summary["alpha"] == shuffler.guarantee.alpha
    json.dumps(summary)


@pytest.mark.parametrize("kind", [Identity, Uniform, WithinGroups, Mallows])
def test_all_shufflers_are_fitted_in_the_same_way(kind: type[Identity | Uniform | WithinGroups | Mallows]) -> None:
    groups = Groups.from_lists([[0, 1], [2, 3]], 5)
    shuffler = kind.fit(groups, alpha=2.0)
    assert shuffler.n == 5 and isinstance(shuffler, Shuffler)
    assert shuffler.guarantee.protects == (kind is not Identity)


def test_promises_imply_the_weaker_ones() -> None:
    groups = Groups.from_lists([[0, 1], [1, 2]], 4)
    ladder = [Uniform(4), *(Mallows.fit(groups, alpha=alpha) for alpha in (0.0, 1.0, 2.0, math.inf)), Identity(4)]
    for stronger, weaker in pairwise(ladder):
        assert stronger.guarantee.implies(weaker.guarantee)
    assert not Mallows.fit(groups, alpha=2.0).guarantee.implies(Mallows.fit(groups, alpha=1.0).guarantee)
    assert not WithinGroups.fit(Groups.from_lists([[0, 1]], 4)).guarantee.implies(ladder[2].guarantee)

"""Every shuffler draws from its own published law, keeps its promise and never looks at the reports."""

import json
import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binomtest
from tests.shuffle.symmetric import everything, index, largest_change, log_law, moved
from tests.statistics import expect_broken, expect_law, rng_of
from tests.tiers import one_in, tiered

from dovetail.core.entropy import simulation, system_entropy
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.core.stages import SHUFFLERS, Shuffler
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.noisy_sort import NoisySort
from dovetail.shuffle.planar import PlanarLaplace
from dovetail.shuffle.rase import Sattolo
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups

OVERLAPPING = Groups.from_lists([[0, 1, 3], [3, 2, 4]], 5)
PAIRS = Groups.from_lists([[0, 2], [2, 3], [1, 4]], 5)
REGISTERED: list[Shuffler] = [
    example for kind in SHUFFLERS if issubclass(kind, Shuffler) for example in kind.examples()
]


def has_log_weight(shuffler: Shuffler) -> bool:
    """Whether the law is known for each single permutation."""
    try:
        return shuffler.log_weight(np.arange(shuffler.n)) <= 0.0
    except UnsupportedError:
        return False


LAWFUL: list[Shuffler] = [
    *(shuffler for shuffler in REGISTERED if has_log_weight(shuffler)),
    *Sattolo.examples(),
    *(fit(OVERLAPPING, alpha=alpha) for fit in (Mallows.fit, NoisySort.fit) for alpha in (0.4, 3.0, 9.0)),
    *(Mallows.fit(PAIRS, alpha=alpha, reference=[2, 4, 3, 1, 0]) for alpha in (1e-11, 2.0, 1e300)),
    *(
        Mallows.single(OVERLAPPING, alpha=alpha, reference=[1, 2, 4, 0, 3])
        for alpha in (1e-11, 0.4, 2.5, 8.0, 20.0, 1e300)
    ),
    *(
        Mallows.single(Groups.from_lists([[0, 2], [2, 3]], 4), alpha=alpha, reference=[2, 0, 3, 1])
        for alpha in (0.05, 3.0)
    ),
    Mallows.fit(OVERLAPPING, alpha=3.0).restrict(np.array([True, False, True, True, True])),
    NoisySort.fit(PAIRS, alpha=3.0).restrict(np.array([True, True, True, False, True])),
]
ALL = [*LAWFUL, *(shuffler for shuffler in REGISTERED if not has_log_weight(shuffler))]
DRAWS = 20_000
ONE_OF_EACH = {id(shuffler) for shuffler in {type(each): each for each in LAWFUL}.values()}
over_laws = pytest.mark.parametrize("shuffler", LAWFUL, ids=lambda s: f"{s!r:.90}")
over_one_of_each = pytest.mark.parametrize(  # the others in the second tier
    "shuffler", tiered(LAWFUL, first=lambda s: id(s) in ONE_OF_EACH), ids=lambda s: f"{s!r:.90}"
)
over_all = pytest.mark.parametrize("shuffler", ALL, ids=lambda s: f"{s!r:.90}")


def drawn(shuffler: Shuffler, name: str, draws: int = DRAWS) -> np.ndarray:
    rng = rng_of(name)
    perms = np.array([shuffler.permutation(rng) for _ in range(draws)])
    return np.bincount(index(perms), minlength=math.factorial(shuffler.n))


@over_laws
def test_the_weights_of_all_permutations_sum_to_one(shuffler: Shuffler) -> None:
    assert math.fsum(np.exp(log_law(shuffler))) == pytest.approx(1.0, abs=1e-13)


@over_one_of_each
@pytest.mark.parametrize("draws", tiered([2_000, DRAWS], first=lambda draws: draws < DRAWS))
def test_draws_follow_the_published_law(shuffler: Shuffler, draws: int, request: pytest.FixtureRequest) -> None:
    expect_law(drawn(shuffler, request.node.nodeid, draws), np.exp(log_law(shuffler)))


@pytest.mark.exhaust
def test_a_wrong_sign_of_theta_is_caught(request: pytest.FixtureRequest) -> None:
    shuffler = Mallows.single(OVERLAPPING, alpha=2.5, reference=[1, 2, 4, 0, 3])
    law = np.exp(-log_law(shuffler))
    expect_broken(drawn(shuffler, request.node.nodeid), law / law.sum())


@pytest.mark.exhaust
def test_a_theta_that_is_off_by_a_tenth_is_caught(request: pytest.FixtureRequest) -> None:
    shuffler = Mallows.single(OVERLAPPING, alpha=8.0, reference=[1, 2, 4, 0, 3])
    law = np.exp(1.1 * log_law(shuffler))
    expect_broken(drawn(shuffler, request.node.nodeid), law / law.sum())


@pytest.mark.exhaust
def test_the_inverse_permutation_is_caught(request: pytest.FixtureRequest) -> None:
    """Handing out s^-1 kappa s instead of s kappa s^-1 is another law when s is not its own inverse."""
    order = np.array([1, 2, 4, 0, 3])
    shuffler = Mallows.single(OVERLAPPING, alpha=8.0, reference=order)
    law = np.exp(log_law(Mallows.single(OVERLAPPING, alpha=8.0, reference=np.argsort(order))))
    expect_broken(drawn(shuffler, request.node.nodeid), law / law.sum())


@pytest.mark.exhaust
@pytest.mark.parametrize("kind", one_in(2, [Mallows, NoisySort]))
def test_another_component_s_noise_is_caught(kind: type[Mallows | NoisySort], request: pytest.FixtureRequest) -> None:
    groups = Groups.from_lists([[0, 1], [1, 2], [3, 4]], 5)
    shuffler = kind.fit(groups, alpha=3.0)
    whole = Mallows.single(groups, alpha=3.0, reference=shuffler.order)
    expect_broken(drawn(shuffler, request.node.nodeid), np.exp(log_law(whole)))


@pytest.mark.exhaust
def test_the_order_inside_an_atom_must_be_uniform(request: pytest.FixtureRequest) -> None:
    """The law of atoms, drawn without the last permutation inside them, is caught."""
    groups = Groups.from_lists([[0, 1, 2], [2, 3]], 4)
    shuffler = Mallows.fit(groups, alpha=3.0)
    plain = Mallows.single(groups, alpha=100.0, reference=shuffler.order)
    broken = replace(plain, thetas=shuffler.thetas)
    expect_broken(drawn(broken, request.node.nodeid), np.exp(log_law(shuffler)))


@over_laws
def test_the_promise_holds_for_every_reordering_inside_a_group(shuffler: Shuffler) -> None:
    promise, law = shuffler.guarantee, log_law(shuffler)
    groups = [np.arange(shuffler.n)] if promise.groups is None else promise.groups
    assert isinstance(groups, Groups | list)
    for group in groups:
        true = largest_change(law, tuple(group.tolist()), shuffler.n)
        assert true <= promise.alpha * (1 + 1e-12) + 1e-13  # rounding of the log weights themselves


@over_laws
def test_mixing_equals_enumeration(shuffler: Shuffler) -> None:
    labels = np.arange(shuffler.n) % 3
    weights, perms = np.exp(log_law(shuffler)), everything(shuffler.n)
    size = int(labels.max()) + 1
    truth = np.zeros((size, size))
    for a in range(size):
        for b in range(size):
            truth[a, b] = weights @ (labels[perms[:, labels == a]] == b).mean(axis=1)
    got = shuffler.mixing(labels)
    error = 7 * 0.05 if isinstance(shuffler, NoisySort) else 1e-12  # at most .05 / sqrt(N), see average_mixing
    np.testing.assert_allclose(got, truth, atol=error)
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
    assert sorted(shuffler.shuffle(np.arange(shuffler.n), system_entropy()).tolist()) == list(range(shuffler.n))


@over_all
@pytest.mark.parametrize("more", [-1, 1])
def test_a_batch_of_another_size_is_refused(shuffler: Shuffler, more: int) -> None:
    with pytest.raises(DataError, match="rows"):
        shuffler.shuffle(np.zeros(shuffler.n + more), simulation(0))


@over_all
def test_what_is_not_a_permutation_has_no_weight(shuffler: Shuffler) -> None:
    if isinstance(shuffler, PlanarLaplace):
        with pytest.raises(UnsupportedError, match="no closed form"):
            shuffler.log_weight(np.arange(shuffler.n))
    for wrong in ([0] * (shuffler.n + 1), np.arange(shuffler.n) + 1, np.arange(shuffler.n) * 1.0):
        with pytest.raises(DataError, match="permutation"):
            shuffler.log_weight(wrong)


@over_all
def test_summaries_hold_plain_values(shuffler: Shuffler) -> None:
    summary = shuffler.summary()
    flat = [item for value in summary.values() for item in (value if isinstance(value, list) else [value])]
    assert {type(value) for value in flat} <= {int, float, str, bool}
    assert summary["shuffler"] == type(shuffler).name and summary["n"] == shuffler.n
    assert summary["alpha"] == shuffler.guarantee.alpha
    json.dumps(summary)


@over_all
def test_restricting_keeps_the_promise_and_everybody_present_is_everybody(shuffler: Shuffler) -> None:
    present = np.arange(shuffler.n) % 3 != 1
    if isinstance(shuffler, Sattolo) and present.sum() < 2:
        with pytest.raises(ParameterError, match="`n` must be"):
            shuffler.restrict(present)
        return
    fewer = shuffler.restrict(present)
    assert fewer.n == present.sum() and fewer.guarantee.alpha == shuffler.guarantee.alpha
    same = shuffler.restrict(np.ones(shuffler.n, dtype=bool))
    np.testing.assert_array_equal(same.permutation(simulation(5)), shuffler.permutation(simulation(5)))
    for wrong in (np.zeros(shuffler.n, dtype=bool), present[1:], present.astype(int)):
        with pytest.raises(DataError, match="`present`"):
            shuffler.restrict(wrong)


Kind = Identity | Uniform | WithinGroups | Mallows | NoisySort


@pytest.mark.parametrize("kind", [Identity, Uniform, WithinGroups, Mallows, NoisySort])
def test_all_shufflers_are_fitted_in_the_same_way(kind: type[Kind]) -> None:
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


@over_laws
def test_people_of_a_block_can_be_relabelled_without_changing_the_law(shuffler: Shuffler) -> None:
    blocks = shuffler.exchangeable_blocks()
    if blocks is None:
        return
    law = np.exp(log_law(shuffler))
    for block in np.unique(blocks):
        members = tuple(np.flatnonzero(blocks == block).tolist())
        assert largest_change(law, members, shuffler.n) < 1e-9, members  # noisy sorts are integrated
    alone = np.unique(blocks, return_counts=True)[1]
    assert shuffler.smallest_block == alone.min()


def test_blocks_are_as_large_as_can_be_told_from_groups_and_points() -> None:
    groups = Groups.from_labels([1, 1, 2, 2, 2, 3], radius=1)
    for alpha, wanted in ((3.0, [1, 1, 2, 2, 2, 3]), (0.0, [1] * 6)):
        points = [[float(each), 0.0] for each in (1, 1, 2, 2, 2, 3)]
        for shuffler in (
            Mallows.fit(groups, alpha=alpha),
            NoisySort.fit(groups, alpha=alpha),
            PlanarLaplace.fit(groups, alpha=alpha, points=points),
        ):
            blocks = shuffler.exchangeable_blocks()
            assert [(blocks == block).tolist() for block in blocks] == [
                [one == other for other in wanted] for one in wanted
            ], shuffler


@pytest.mark.exhaust
def test_people_at_one_point_of_the_plane_are_exchangeable_and_others_are_not() -> None:
    """Counts of an order and of the one with two people exchanged, of 4,000 draws each: binomial, below 1e-9."""
    points = [[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [5.0, 2.0]]
    shuffler = PlanarLaplace.fit(Groups.from_lists([[0, 1, 2, 3]], 4), alpha=6.0, points=points)
    rng = rng_of("planar blocks")
    seen = np.bincount(index(np.array([shuffler.permutation(rng) for _ in range(4000)])), minlength=24)
    for pair, alike in (((0, 1), True), ((1, 3), False)):
        swapped = seen[moved(pair, 4)[1]]
        least = min(binomtest(int(a), int(a + b)).pvalue for a, b in zip(seen, swapped, strict=True) if a + b)
        assert (least > 1e-9) == alike
    assert shuffler.smallest_block == 1 and shuffler.exchangeable_blocks()[0] == shuffler.exchangeable_blocks()[1]

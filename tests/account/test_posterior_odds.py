"""What an adversary learns from the order: each bound against the best adversary, by enumeration."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from tests.shuffle.symmetric import everybody, everything, groups_of, largest_change, log_law, moved

from dovetail.account.order_privacy import (
    compose_releases,
    definetti_interval,
    exact_alpha,
    exchange_epsilon,
    inferential_loss,
    informed_loss,
    mixture,
    posterior_interval,
    reidentification_bound,
    two_orders,
)
from dovetail.core.channel import Channel, DenseChannel, KRRChannel
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.core.guarantee import SIMULATED, OrderPrivacy
from dovetail.core.stages import Shuffler
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.rase import RASE, Sattolo
from dovetail.shuffle.sampling.permutations import inverse
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups

ORDER = np.array([1, 2, 3, 0])  # not its own inverse
SHUFFLERS: list[Shuffler] = [
    Mallows.single(Groups.from_lists([[0, 1, 2], [2, 3]], 4), alpha=1.5, reference=ORDER),
    Mallows.single(everybody(4), alpha=6.0, reference=ORDER),
    Uniform(4),
    WithinGroups(Groups.from_lists([[0, 2, 3]], 4)),
    Identity(4),
]
COMPONENTS = Mallows.fit(Groups.from_lists([[0, 3], [3, 4], [1, 2]], 5), alpha=1.5, reference=[2, 3, 0, 1, 4])
ATOMS = Mallows.fit(Groups.from_lists([[0, 1, 3], [3, 4, 2]], 5), alpha=2.0, reference=[4, 3, 0, 1, 2])


def seeded(name: str) -> np.random.Generator:
    return np.random.default_rng([len(name), *name.encode()])


# Theorem 4.1


@pytest.mark.parametrize("shuffler", SHUFFLERS, ids=repr)
@pytest.mark.parametrize("group", [(0, 1, 2), (2, 3), (0, 2, 3), (0, 1, 2, 3)])
def test_the_order_adds_at_most_alpha_for_every_prior(shuffler: Shuffler, group: tuple[int, ...]) -> None:
    alpha = exact_alpha(shuffler, Groups.from_lists([group], 4))
    draw = seeded(f"{shuffler!r} {group}")
    for concentration in (1.0, 0.05):  # smooth priors, and priors that know nearly everything
        prior = draw.dirichlet(np.full(16, concentration)).reshape((2,) * 4)
        loss = informed_loss(KRRChannel(2, 30, 1), prior=prior, shuffler=shuffler, group=group)
        assert loss <= alpha * (1 + 1e-12) + 1e-9


def test_an_adversary_who_is_sure_of_all_but_a_swap_reaches_alpha() -> None:
    shuffler = Mallows.single(Groups.from_lists([[0, 1]], 3), alpha=2.0, reference=[1, 2, 0])
    prior = np.zeros((3, 3, 3))
    prior[0, 1, 2] = prior[1, 0, 2] = 0.5  # which of the first two people sent which report
    loss = informed_loss(DenseChannel(np.eye(3)), prior=prior, shuffler=shuffler, group=[0, 1])
    assert loss == pytest.approx(2.0)  # so a theta that is a tenth larger breaks the promise


def test_the_posterior_stays_in_its_interval() -> None:
    shuffler = SHUFFLERS[0]
    law, draw = np.exp(log_law(shuffler)), seeded("posterior")
    group, n = (0, 1, 2), 4
    orders = np.array([pi for pi in everything(n) if pi[3] == 3])  # the adversary knows who is outside
    for belief in draw.dirichlet(np.full(len(orders), 0.3), size=20):
        # seen = order after permutation, so the permutation is inverse(order) after seen
        table = {tuple(pi): weight for pi, weight in zip(everything(n).tolist(), law, strict=True)}
        likelihood = np.array([[table[tuple(inverse(pi)[seen])] for seen in everything(n)] for pi in orders])
        joint = belief[:, None] * likelihood
        for i, j in product(group, group):
            event = orders[:, i] == j
            interval = posterior_interval(min(1.0, float(belief[event].sum())), alpha=shuffler.alpha)
            posterior = joint[event].sum(axis=0) / joint.sum(axis=0)
            assert interval.lower - 1e-15 <= posterior.min() and posterior.max() <= interval.upper + 1e-15


def test_intervals_are_rounded_outwards_and_certainty_stays() -> None:
    assert posterior_interval(0.0, alpha=math.inf) == posterior_interval(0.0, alpha=1.0)
    for prior in (0.0, 1.0):
        interval = posterior_interval(prior, alpha=math.inf)
        assert interval.lower == interval.upper == prior
    for alpha in (math.inf, 800.0):
        interval = posterior_interval(1e-9, alpha=alpha)
        assert (interval.lower, interval.upper) == (0.0, 1.0)
    for prior in (5e-324, 1e-300, 1e-12, 0.3, 0.5, 1 - 2**-53):
        for alpha in (0.0, 1e-17, 1e-3, 1.0, 30.0, 600.0):
            interval = posterior_interval(prior, alpha=alpha)
            with localcontext(prec=80):
                p, grow = Fraction(prior), Fraction(Decimal(alpha).exp())
            assert Fraction(interval.lower) <= p / (p + (1 - p) * grow)
            assert Fraction(interval.upper) >= p / (p + (1 - p) / grow)
            assert interval.contains(prior) and interval.lower >= 0.0 and interval.upper <= 1.0


@pytest.mark.parametrize("prior", [-0.1, 1.1, math.nan, "half"])
def test_a_prior_is_a_probability(prior: float) -> None:
    with pytest.raises(ParameterError, match="`prior` must be"):
        posterior_interval(prior, alpha=1.0)


# Definition A.1


def test_the_bag_alone_can_tell_more_than_alpha() -> None:
    prior = np.zeros((2, 2, 2))
    prior[0, 0, 0] = prior[1, 1, 1] = 0.5  # everybody has the same value
    channel = KRRChannel(2, 3, 1)
    loss = inferential_loss(channel, prior=prior, shuffler=Uniform(3))
    assert loss == pytest.approx(3 * math.log(3.0))  # all three reports speak about each person
    assert informed_loss(channel, prior=prior, shuffler=Uniform(3), group=[0, 1, 2]) == pytest.approx(0.0, abs=1e-12)


def test_people_who_are_independent_lose_at_most_epsilon_with_or_without_order() -> None:
    draw, channel = seeded("product"), KRRChannel(2, 3, 1)
    for shuffler in (Identity(3), Uniform(3), Mallows.single(everybody(3), alpha=1.0, reference=[1, 2, 0])):
        one, two, three = draw.dirichlet([1.0, 1.0], size=3)
        prior = one[:, None, None] * two[:, None] * three
        assert inferential_loss(channel, prior=prior, shuffler=shuffler) <= channel.epsilon + 1e-12


def test_without_a_shuffle_the_loss_is_the_one_of_the_reports() -> None:
    prior = np.full((3, 3), 1 / 9)
    channel = KRRChannel(3, 4, 1)
    assert inferential_loss(channel, prior=prior, shuffler=Identity(2)) == pytest.approx(channel.epsilon)
    assert inferential_loss(DenseChannel(np.eye(3)), prior=prior, shuffler=Identity(2)) == math.inf


def test_too_many_sequences_and_wrong_priors_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="Too many sequences"):
        inferential_loss(KRRChannel(9, 2, 1), prior=[1.0], shuffler=Uniform(8))
    with pytest.raises(DataError, match=r"`prior` must be probabilities of shape \(2, 2\)"):
        inferential_loss(KRRChannel(2, 2, 1), prior=[0.5, 0.5], shuffler=Uniform(2))
    with pytest.raises(UnsupportedError, match="at most 8 people"):
        two_orders(Uniform(9))


# Theorem 4.2


def best_adversary(
    channels: list[Channel], values: tuple[int, ...], shuffler: Shuffler, looked_for: tuple[int, ...]
) -> float:
    """Pr[wins] of the adversary who sees z and names the k places with the largest chance to win."""
    n, k, m = shuffler.n, len(looked_for), channels[0].shape[1]
    rows = [channel.matrix()[value] for channel, value in zip(channels, values, strict=True)]
    wins: dict[tuple[int, ...], np.ndarray] = {}
    choices = list(combinations(range(n), k))
    for pi, weight in zip(everything(n), np.exp(log_law(shuffler)), strict=True):
        hit = np.array([2 * np.isin(pi[list(places)], looked_for).sum() > k for places in choices])
        for reports in product(range(m), repeat=n):
            chance = weight * math.prod(row[y] for row, y in zip(rows, reports, strict=True))
            seen = tuple(reports[i] for i in pi)
            wins[seen] = wins.get(seen, np.zeros(len(choices))) + chance * hit
    return float(sum(chances.max() for chances in wins.values()))


@pytest.mark.exhaust
@pytest.mark.parametrize("alpha", [0.0, 0.7, 3.0])
@pytest.mark.parametrize("channel", [KRRChannel(2, 1, 1), KRRChannel(2, 2, 1), KRRChannel(3, 5, 1)], ids=repr)
@pytest.mark.parametrize("n", [3, 4])
def test_the_best_adversary_stays_below_the_reidentification_bound(n: int, channel: KRRChannel, alpha: float) -> None:
    order = np.roll(np.arange(n), 1)
    shuffler = Mallows.single(everybody(n), alpha=alpha, reference=order)
    bound = reidentification_bound(epsilon=channel.epsilon, alpha=alpha, r=n, k=1)
    for values in product(range(2), repeat=n):
        for person in range(n):
            assert best_adversary([channel] * n, values, shuffler, (person,)) <= bound + 1e-12


@pytest.mark.exhaust
def test_the_best_adversary_of_two_people_stays_below_the_bound() -> None:
    shuffler = Mallows.single(everybody(5), alpha=0.4, reference=[1, 2, 3, 4, 0])
    channel = KRRChannel(2, 5, 4)
    bound = reidentification_bound(epsilon=channel.epsilon, alpha=0.4, r=5, k=2)
    for values in ((0, 0, 0, 0, 0), (1, 1, 0, 0, 0)):
        assert best_adversary([channel] * 5, values, shuffler, (0, 1)) <= bound < 1.0


def test_a_bound_with_too_small_an_alpha_is_exceeded() -> None:
    shuffler = Mallows.single(everybody(3), alpha=3.0, reference=[1, 2, 0])
    wins = best_adversary([KRRChannel(2, 1, 1)] * 3, (0, 0, 0), shuffler, (0,))
    assert wins > reidentification_bound(epsilon=0.0, alpha=0.5, r=3, k=1)


def test_for_one_person_and_no_budget_the_bound_is_reached() -> None:
    for n in (3, 4):
        wins = best_adversary([KRRChannel(2, 1, 1)] * n, (0,) * n, Uniform(n), (0,))
        assert wins == pytest.approx(1 / n) and reidentification_bound(
            epsilon=0.0, alpha=0.0, r=n, k=1
        ) == pytest.approx(1 / n)


def test_different_randomizers_defeat_the_theorem_and_the_exchange_repairs_it() -> None:
    one, others = DenseChannel([[0.5, 0.5, 0, 0]]), DenseChannel([[0, 0, 0.5, 0.5]])
    assert one.epsilon == others.epsilon == 0.0
    wins = best_adversary([one, others, others], (0, 0, 0), Uniform(3), (0,))
    claimed = reidentification_bound(epsilon=0.0, alpha=0.0, r=3, k=1)
    assert wins == pytest.approx(1.0) and claimed < 0.34  # "M is epsilon-LDP" is not enough
    assert reidentification_bound(epsilon=exchange_epsilon([one, others]), alpha=0.0, r=3, k=1) == 1.0


def test_mild_differences_between_randomizers_are_covered_by_the_exchange() -> None:
    channels: list[Channel] = [KRRChannel(2, 3, 1), DenseChannel([[0.6, 0.4], [0.5, 0.5]])]
    epsilon = exchange_epsilon(channels)
    bound = reidentification_bound(epsilon=epsilon, alpha=0.5, r=3, k=1)
    shuffler = Mallows.single(everybody(3), alpha=0.5, reference=[1, 2, 0])
    for values in product(range(2), repeat=3):
        people = [channels[0], channels[1], channels[1]]
        assert all(best_adversary(people, values, shuffler, (i,)) <= bound + 1e-12 for i in range(3))


def test_for_a_common_randomizer_the_exchange_costs_at_most_its_epsilon() -> None:
    assert exchange_epsilon([KRRChannel(4, 7, 2)]) == pytest.approx(KRRChannel(4, 7, 2).epsilon)
    draw = seeded("exchange")
    for _ in range(20):
        channel = DenseChannel(draw.dirichlet(np.ones(4), size=3))
        assert exchange_epsilon([channel]) <= channel.epsilon + 1e-12
    with pytest.raises(DataError, match=r"numbers of reports \[2, 4\]"):
        exchange_epsilon([KRRChannel(4, 7, 2), KRRChannel(2, 7, 2)])


def test_the_reidentification_bound_says_nothing_from_half_the_group_on() -> None:
    for r, k in [(1, 1), (2, 1), (4, 2), (5, 3), (7, 7)]:
        assert reidentification_bound(epsilon=0.0, alpha=0.0, r=r, k=k) == 1.0
    assert reidentification_bound(epsilon=0.1, alpha=math.inf, r=50, k=1) == 1.0
    assert reidentification_bound(epsilon=500.0, alpha=1.0, r=50, k=5) == 1.0
    for bad in ({"r": 3, "k": 0}, {"r": 3, "k": 4}, {"r": 0, "k": 1}):
        with pytest.raises(ParameterError):
            reidentification_bound(epsilon=0.1, alpha=0.1, **bad)


def test_the_reidentification_bound_is_rounded_up() -> None:
    for r in (3, 10, 77, 10**6):
        for k in (1, 2, 5, 30):
            if 2 * k < r:
                exact = Fraction(1, 1 + (r - k) // k)
                found = reidentification_bound(epsilon=0.0, alpha=0.0, r=r, k=k)
                assert exact <= Fraction(found) <= exact * (1 + Fraction(1, 10**14))


# Theorem 4.4, composition, mixtures


@pytest.mark.parametrize("n", [3, 4])
def test_theorem_4_4_is_exact_for_every_group(n: int) -> None:
    for order in everything(n):
        shuffler = Mallows.single(Groups.from_lists([[0, n - 1]], n), alpha=1.3, reference=order)
        law = log_law(shuffler)
        for group in groups_of(n):
            claimed = exact_alpha(shuffler, Groups.from_lists([group], n))
            assert claimed == pytest.approx(largest_change(law, group, n), rel=1e-12)


@pytest.mark.parametrize("shuffler", SHUFFLERS, ids=repr)
def test_the_alpha_of_other_groups_equals_enumeration_for_every_shuffler(shuffler: Shuffler) -> None:
    law = log_law(shuffler)
    for group in groups_of(4):
        claimed = exact_alpha(shuffler, Groups.from_lists([group], 4))
        assert claimed == pytest.approx(largest_change(law, group, 4), rel=1e-12, abs=1e-12)


def test_with_components_and_atoms_alpha_is_exact_for_unions_of_atoms_and_otherwise_an_upper_bound() -> None:
    for shuffler, cells in ((COMPONENTS, [{0}, {1, 2}, {3}, {4}]), (ATOMS, [{0, 1}, {2, 4}, {3}])):
        law = log_law(shuffler)
        for group in groups_of(5):
            claimed, true = exact_alpha(shuffler, Groups.from_lists([group], 5)), largest_change(law, group, 5)
            assert true <= claimed * (1 + 1e-12) + 1e-12
            if all(cell <= set(group) or not cell & set(group) for cell in cells):
                assert claimed == pytest.approx(true, rel=1e-12, abs=1e-12)
    assert exact_alpha(COMPONENTS, Groups.from_lists([[0, 1]], 5)) == math.inf


@pytest.mark.exhaust
@pytest.mark.parametrize("shuffler", RASE.examples()[:3], ids=["own groups", "graph", "refined"])
def test_rase_promises_to_other_groups_what_the_shuffler_behind_it_does(shuffler: RASE) -> None:
    law = log_law(shuffler)
    for group in groups_of(shuffler.n):
        claimed = exact_alpha(shuffler, Groups.from_lists([group], shuffler.n))
        assert largest_change(law, group, shuffler.n) <= claimed * (1 + 1e-12) + 1e-12
        if shuffler.mechanism.name != "mallows":  # uniform inside groups: nothing is lost by the bound
            assert claimed == pytest.approx(largest_change(law, group, shuffler.n), abs=1e-12)


@pytest.mark.parametrize("shuffler", SHUFFLERS, ids=repr)
def test_groups_without_two_members_cost_nothing(shuffler: Shuffler) -> None:
    assert exact_alpha(shuffler, Groups.from_lists([[1], []], 4)) == 0.0
    for others in (3, 5):
        with pytest.raises(DataError, match=r"`groups` must be of 4 people"):
            exact_alpha(shuffler, everybody(others))


def test_a_fitted_shuffler_keeps_its_own_alpha() -> None:
    for alpha in (0.0, 0.1, 0.7, 3.0):
        groups = Groups.from_lists([[0, 1, 2], [2, 3]], 4)
        assert exact_alpha(Mallows.single(groups, alpha=alpha, reference=ORDER), groups) <= alpha


def test_a_shuffler_without_a_theorem_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"Theorem 4.4 .* sattolo is none"):
        exact_alpha(Sattolo(3), everybody(3))


def test_independent_releases_add_and_the_sum_is_exact_for_one_group() -> None:
    groups = Groups.from_lists([[0, 1, 3]], 4)
    releases = [SHUFFLERS[0], SHUFFLERS[1], SHUFFLERS[2]]
    promised = compose_releases(releases, groups)
    group = (0, 1, 3)
    single = [largest_change(log_law(shuffler), group, 4) for shuffler in releases]
    assert promised.groups == groups and promised.alpha == pytest.approx(sum(single))
    # one reordering acts on both releases; with one reference order the same one is worst for both
    laws = [log_law(shuffler) for shuffler in releases]
    both = sum((law - law[moved(group, 4)]).max(axis=1) for law in laws).max()
    assert both == pytest.approx(promised.alpha)
    assert compose_releases([], groups).alpha == 0.0


def test_the_promise_of_a_mixture_is_that_of_its_worst_part() -> None:
    groups = everybody(4)
    parts = [Mallows.single(groups, alpha=a, reference=ORDER) for a in (0.5, 2.0)]
    promised = mixture([part.guarantee for part in parts])
    assert promised.alpha == 2.0
    law = np.log(0.3 * np.exp(log_law(parts[0])) + 0.7 * np.exp(log_law(parts[1])))
    assert largest_change(law, (0, 1, 2, 3), 4) <= promised.alpha
    assert mixture([parts[0].guarantee, parts[0].guarantee.drawn_from("simulation")]).caveats == (SIMULATED,)
    for wrong in ([], [parts[0].guarantee, Uniform(4).guarantee]):
        with pytest.raises(UnsupportedError, match="Lemma 2"):
            mixture(wrong)


# De Finetti attacks: Properties 1 and 2, Lemma 1


def test_property_1_holds_for_every_shuffler_of_one_group_of_everybody() -> None:
    n, draw = 4, seeded("de finetti")
    shuffler = Mallows.single(everybody(n), alpha=1.5, reference=ORDER)
    law = {tuple(pi): w for pi, w in zip(everything(n).tolist(), np.exp(log_law(shuffler)), strict=True)}
    likelihood = np.array([[law[tuple(inverse(pi)[seen])] for seen in everything(n)] for pi in everything(n)])
    for belief in draw.dirichlet(np.full(24, 0.2), size=10):
        joint = belief[:, None] * likelihood
        for i, j in product(range(n), repeat=2):
            event = everything(n)[:, i] == j
            prior = min(1.0, float(belief[event].sum()))
            interval = definetti_interval(prior, guarantee=shuffler.guarantee)
            posterior = joint[event].sum(axis=0) / joint.sum(axis=0)
            assert interval.lower - 1e-15 <= posterior.min() and posterior.max() <= interval.upper + 1e-15
            assert prior * math.exp(-1.5) <= interval.lower * (1 + 1e-12)  # inside the property's own interval
            assert interval.upper <= prior * math.exp(1.5) * (1 + 1e-12)


def test_property_1_needs_one_group_of_everybody() -> None:
    with pytest.raises(UnsupportedError, match="one group of everybody"):
        definetti_interval(0.5, guarantee=SHUFFLERS[0].guarantee)
    simulated = Uniform(3).guarantee.drawn_from("simulation")
    interval = definetti_interval(0.5, guarantee=simulated)
    assert (interval.lower, interval.upper) == (0.0, 1.0)
    uniform = definetti_interval(0.5, guarantee=OrderPrivacy(0.0, everybody(3)))
    assert uniform.contains(0.5) and uniform.gap < 1e-14


def test_the_converse_of_lemma_1_is_false() -> None:
    # prior 1/2, likelihood ratio e^1.2, alpha = 1: equation (7) holds, equation (8) does not
    ratio, alpha = math.exp(1.2), 1.0
    factors = [2 / (1 + ratio), 2 * ratio / (1 + ratio)]
    assert [round(factor, 3) for factor in factors] == [0.463, 1.537]
    assert all(math.exp(-alpha) <= factor <= math.exp(alpha) for factor in factors) and ratio > math.exp(alpha)


def test_property_2_needs_a_prior_that_is_nearly_sure_of_one_order() -> None:
    shuffler = Mallows.single(everybody(4), alpha=1.2, reference=ORDER)
    pair = two_orders(shuffler)
    assert pair.log_ratio == pytest.approx(largest_change(log_law(shuffler), (0, 1, 2, 3), 4))
    likelihood = [shuffler.log_weight(inverse(order)[pair.seen]) for order in (pair.rare, pair.common)]
    assert likelihood[0] - likelihood[1] == pytest.approx(pair.log_ratio)
    alpha = 1.0  # the shuffler is not (1, everybody)-private
    assert pair.gain(0.5) < alpha  # the paper's prior does not show it
    assert pair.gain(0.01) > alpha  # a rarer order does
    gains = [pair.gain(t) for t in (0.5, 0.1, 0.01, 1e-9)]
    assert gains == sorted(gains) and gains[-1] == pytest.approx(1.2, abs=1e-8)


def test_an_order_that_is_ruled_out_gains_without_limit() -> None:
    pair = two_orders(Identity(3))
    assert math.isinf(pair.log_ratio) and pair.gain(1e-6) == pytest.approx(6 * math.log(10))
    assert two_orders(Uniform(3)).log_ratio == pytest.approx(0.0, abs=1e-12)

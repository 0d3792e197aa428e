"""Renyi divergences: against exact enumeration, their laws, and the conversion."""

from dataclasses import replace
from itertools import pairwise
from math import exp, log

import numpy as np
import pytest
from scipy.stats import binom

from dovetail.account.clones import ClonePair, Kind
from dovetail.account.compose import compose
from dovetail.account.mechanism_law import law_epsilon
from dovetail.account.privacy_loss import PrivacyLossDistribution, pessimistic_pld
from dovetail.account.renyi import add_divergences, basic, pld_divergence, renyi_divergence, renyi_epsilon
from dovetail.account.rounds import ShuffledRound
from dovetail.core.errors import ParameterError
from dovetail.randomize.krr import KRR

ORDERS = np.array([1.001, 1.5, 2.0, 8.0, 40.0, 300.0])


def exact(epsilon0: float, n: int, kind: Kind) -> np.ndarray:
    """Term by term in logs, from equation (2) of the notes."""
    p = exp(epsilon0)
    q = 2 / (p + 1) if kind == "stronger clones" else 1 / p
    logs, ratios = [], []
    for c in range(n):
        m, a = c + 1, np.arange(c + 2)
        ratios.append(np.log((p * a + m - a) / (a + p * (m - a))))
        logs.append(
            binom.logpmf(c, n - 1, q) + binom.logpmf(a, m, 0.5) + np.log(2 / ((p + 1) * m) * (a + p * (m - a)))
        )
    second, ratio = np.concatenate(logs), np.concatenate(ratios)
    return np.array([np.logaddexp.reduce(second + alpha * ratio) / (alpha - 1) for alpha in ORDERS])


@pytest.mark.parametrize("kind", ["stronger clones", "clones"])
@pytest.mark.parametrize(("epsilon0", "n"), [(0.2, 50), (1.0, 1), (1.0, 10), (1.0, 150), (4.0, 80)])
def test_divergences_are_just_above_the_exact_ones(epsilon0: float, n: int, kind: Kind) -> None:
    ours, truth = renyi_divergence(ClonePair(epsilon0, n, kind), ORDERS), exact(epsilon0, n, kind)
    assert np.all(ours >= truth * (1 - 1e-8))  # the oracle cancels at orders near 1
    assert np.all(ours <= np.minimum(truth * 1.01, epsilon0))


def test_losses_rounded_down_give_divergences_below_the_exact_ones() -> None:
    pair = ClonePair(1.0, 10)
    law = pessimistic_pld(pair, step=0.01, cut=1e-280)
    half = law.masses.size // 2
    down = np.concatenate([law.masses[:half], law.masses[half + 1 :], [0.0]])  # each loss one step too small
    wrong = pld_divergence(PrivacyLossDistribution(law.step, law.start, down, 0.0, law.error), ORDERS, worst=1.0)
    assert np.all(wrong[1:] < exact(1.0, 10, "stronger clones")[1:])


@pytest.mark.parametrize("order", [1.5, 2.0, 8.0])
def test_what_lies_at_infinity_counts_with_the_worst_loss(order: float) -> None:
    mirrored = np.array([0.75 * exp(-0.5), 0.0, 0.75]) / (1.0 + exp(-0.5))  # losses -1/2 and 1/2
    law = PrivacyLossDistribution(0.5, -1, mirrored, 0.25, 0.0)
    found = float(pld_divergence(law, np.array([order]), worst=2.0)[0])
    assert found >= (log(0.25) + (order - 1.0) * 2.0) / (order - 1.0)
    finite = float(pld_divergence(replace(law, infinity=0.0), np.array([order]), worst=2.0)[0])
    slipped = float(pld_divergence(replace(law, error=0.1), np.array([order]), worst=2.0)[0])
    assert finite < 0.5 < found < slipped


@pytest.mark.exhaust
def test_divergences_grow_with_the_order_and_local_epsilon_and_fall_with_people() -> None:
    by_order = renyi_divergence(ClonePair(1.0, 1_000), ORDERS)
    assert all(a < b for a, b in pairwise(by_order))
    by_local = [renyi_divergence(ClonePair(e, 1_000), [4.0])[0] for e in (0.1, 1.0, 3.0)]
    by_n = [renyi_divergence(ClonePair(1.0, n), [4.0])[0] for n in (10**9, 10**4, 10, 1)]
    assert all(a < b for values in (by_local, by_n) for a, b in pairwise(values))


def test_large_batches_approach_the_divergence_of_two_normals() -> None:
    pair = ClonePair(1.0, 10**8)
    assert renyi_divergence(pair, [2.0, 8.0]) == pytest.approx(
        np.array([2.0, 8.0]) * pair.gaussian_scale**2 / 2, rel=2e-3
    )


def test_divergences_of_rounds_add() -> None:
    one, other = ClonePair(1.0, 100), ClonePair(0.5, 40, "clones")
    added = add_divergences([(one, 3), (other, 2)], ORDERS)
    assert added == pytest.approx(3 * renyi_divergence(one, ORDERS) + 2 * renyi_divergence(other, ORDERS), rel=1e-14)


@pytest.mark.exhaust
@pytest.mark.parametrize(("epsilon0", "n"), [(0.1, 10**5), (1.0, 20), (1.0, 10**4), (5.0, 10**3)])
def test_privacy_loss_distributions_answer_no_more_than_the_divergences(epsilon0: float, n: int) -> None:
    orders = 1.0 + np.geomspace(0.02, 200.0 / epsilon0, 60)
    for T in (1, 1000):
        divergences = T * renyi_divergence(ClonePair(epsilon0, n), orders)
        found = compose(T, epsilon0=epsilon0, n=n, delta=1e-6).epsilon
        assert found is not None and found <= renyi_epsilon(orders, divergences, delta=1e-6)


def test_the_conversion_of_a_gaussian_is_valid_and_better_than_the_classical_one() -> None:
    from scipy.stats import norm

    orders, mu, delta = np.linspace(1.05, 60.0, 2_000), 0.8, 1e-6
    ours = renyi_epsilon(orders, 0.5 * orders * mu**2, delta=delta)
    classical = mu**2 / 2 + mu * (2 * log(1 / delta)) ** 0.5
    true_delta = norm.sf(ours / mu - mu / 2) - exp(ours) * norm.sf(ours / mu + mu / 2)
    assert true_delta <= delta
    assert ours < classical


@pytest.mark.parametrize(
    "call",
    [
        lambda: renyi_divergence(ClonePair(1.0, 10), [1.0]),
        lambda: renyi_divergence(ClonePair(1.0, 10), [np.nan]),
        lambda: renyi_divergence(ClonePair(1.0, 10), []),
        lambda: renyi_divergence(ClonePair(1.0, 10), [True]),
        lambda: renyi_divergence(ClonePair(1.0, 10), ["2"]),
        lambda: renyi_epsilon([2.0, 3.0], [0.1], delta=1e-6),
        lambda: renyi_epsilon([2.0], [-0.1], delta=1e-6),
        lambda: renyi_epsilon([2.0], [0.1], delta=0.0),
    ],
)
def test_arguments_outside_their_range_are_refused(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ParameterError):
        call()


@pytest.mark.parametrize("mechanism", [KRR(k=10, epsilon=3.0), KRR(k=2, epsilon=1.0)], ids=repr)
def test_basic_composition_adds_the_smaller_epsilon_of_pair_and_mechanism(mechanism: KRR) -> None:
    one = ShuffledRound(mechanism.epsilon, 1000, times=3, mechanism=mechanism.accounted)
    law, pair = law_epsilon(mechanism.accounted, n=1000, delta=1e-6), one.pair.epsilon(1e-6).upper
    assert law != pair
    assert basic([one], 3e-6).epsilon == pytest.approx(3 * min(law, pair), rel=1e-12)

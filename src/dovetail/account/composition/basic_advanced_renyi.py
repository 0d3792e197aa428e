"""What simpler composition theorems say about the same rounds: for comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dovetail.account.bound import Bound
from dovetail.account.clones.approximate import amplify_approximate
from dovetail.account.composition.renyi import add_divergences, renyi_epsilon
from dovetail.account.composition.shuffled_round import ShuffledRound, distinct_pairs, total_slack
from dovetail.account.mechanism_law import law_epsilon


def basic(parts: Sequence[ShuffledRound], delta: float) -> Bound:
    """Epsilons and deltas add; every round gets the same delta."""
    rounds = sum(part.times for part in parts)
    total = math.fsum(part.times * _single(part, delta / rounds) for part in parts)
    return _compared("basic composition", total, "Dwork, Kenthapadi, McSherry, Mironov, Naor (2006), Theorem 1")


def advanced(parts: Sequence[ShuffledRound], delta: float) -> Bound:
    r"""Half of delta for the rounds, half for the deviation of the sum.

    .. math:: \sum_t \epsilon_t \tanh(\epsilon_t / 2) + \sqrt{2 \log(2/\delta) \sum_t \epsilon_t^2}
    """
    source = "Kairouz, Oh, Viswanath (2015), The Composition Theorem for Differential Privacy, Theorem 3.5"
    if delta == 0.0:
        return Bound.inapplicable("advanced composition", "needs delta above 0", source=source)
    rounds = sum(part.times for part in parts)
    single = [(_single(part, 0.5 * delta / rounds), part.times) for part in parts]
    mean = math.fsum(times * e * math.tanh(0.5 * e) for e, times in single)
    square = math.fsum(times * e * e for e, times in single)
    return _compared("advanced composition", mean + math.sqrt(2.0 * math.log(2.0 / delta) * square), source)


def renyi(parts: Sequence[ShuffledRound], delta: float) -> Bound:
    """Divergences of the pairs add; orders around the best one for normal losses."""
    name, source = "Renyi", "Mironov (2017), Proposition 1; Canonne, Kamath, Steinke (2020), Proposition 12"
    if delta == 0.0 or total_slack(parts) > 0.0:
        return Bound.inapplicable(name, "needs delta above 0 and pure local privacy", source=source)
    pairs = distinct_pairs(parts)
    spread = math.sqrt(math.fsum(times * pair.gaussian_scale**2 for pair, times in pairs))
    best = math.sqrt(2.0 * math.log(1.0 / delta)) / spread
    orders = 1.0 + np.minimum(best * np.geomspace(0.25, 2.0, 16), 600.0 / max(pair.epsilon0 for pair, _ in pairs))
    return Bound(name, renyi_epsilon(orders, add_divergences(pairs, orders), delta=delta), source)


def _single(part: ShuffledRound, delta: float) -> float:
    """Central epsilon of one round, infinite where no theorem says anything."""
    if part.delta0 == 0.0:
        own = math.inf if part.mechanism is None else law_epsilon(part.mechanism, n=part.n, delta=delta)
        return min(part.pair.epsilon(delta).upper, own)
    found = amplify_approximate(part.epsilon0, part.delta0, n=part.n, delta=delta).epsilon
    return math.inf if found is None else found


def _compared(name: str, epsilon: float, source: str) -> Bound:
    if math.isfinite(epsilon):
        return Bound(name, epsilon, source)
    return Bound.inapplicable(name, "says nothing about one of the rounds at its share of delta", source=source)

"""Renyi divergences of the clone pairs, for accountants that add them up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dovetail.account.bound import Bound
from dovetail.account.clones import ClonePair, amplify_approximate
from dovetail.account.mechanism_law import law_epsilon
from dovetail.account.privacy_loss import PrivacyLossDistribution, pessimistic_pld
from dovetail.account.rounds import ShuffledRound, distinct_pairs, total_slack
from dovetail.core.certified import round_up_sum
from dovetail.core.checks import instance, positive, probability, rectangular, refuse
from dovetail.core.errors import UnsupportedError
from dovetail.core.extras import require
from dovetail.core.special import Reals

LEAST_CUT, CUT = 1e-280, 1e-20
POINTS, BLOCKS = 60, 1e-3  # grid points in one typical loss, relative width of the blocks of C


def renyi_divergence(pair: ClonePair, orders: ArrayLike) -> Reals:
    r"""Upper bounds on the Renyi divergence of the pair, one for each order.

    .. math:: D_\alpha = \frac{1}{\alpha - 1} \log E_Q\left[ (P/Q)^\alpha \right]

    Divergences of rounds add, also when later rounds depend on earlier outputs. For (epsilon, delta) use `compose`,
    which is never worse; this is for accountants that speak Renyi.

    Parameters
    ----------
    pair : ClonePair
    orders : float array (orders,), above 1

    Returns
    -------
    divergences : float array (orders,), nats
        Never above epsilon0.

    Notes
    -----
    About 3e-4 above the pair's own, relatively; more where (order - 1) epsilon0 is above 600.

    Examples
    --------
    >>> renyi_divergence(ClonePair(1.0, 10_000), [2.0, 32.0]).round(6).tolist()
    [0.000159, 0.002542]

    Source
    ------
    Mironov (2017), Renyi Differential Privacy, Definition 3 and Proposition 1; the pair dominates, and so do its
    divergences, by data processing.
    """
    alphas = check_orders(orders)
    cut = max(LEAST_CUT, CUT * math.exp(-min(600.0, float(alphas.max() - 1.0) * pair.epsilon0)))
    pld = pessimistic_pld(pair, step=min(pair.gaussian_scale, pair.epsilon0) / POINTS, cut=cut, width=BLOCKS)
    return pld_divergence(pld, alphas, worst=pair.epsilon0)


def pld_divergence(pld: PrivacyLossDistribution, alphas: Reals, *, worst: float) -> Reals:
    r"""Renyi divergences of a symmetric law of losses, what lies at infinity counted at the `worst` loss.

    .. math:: e^{(\alpha - 1) D_\alpha} = 1 + \sum_{l > 0} f(l)\, e^{(\alpha - 1) l}
              (1 - e^{-\alpha l})(1 - e^{-(\alpha - 1) l})

    A loss and its mirror image are taken together, f(-l) = e^{-l} f(l): nothing cancels.
    """
    from scipy.special import logsumexp

    half = pld.masses.size // 2
    losses, masses = pld.step * np.arange(1, half + 1), pld.masses[half + 1 :]
    top = max(worst, pld.step * (half + 1))
    a, b = np.multiply.outer(alphas, losses), np.multiply.outer(alphas - 1.0, losses)
    with np.errstate(divide="ignore"):
        logs = np.log(masses) + b + np.log1p(-np.exp(-a)) + np.log1p(-np.exp(-b))
        cut = math.log(max(pld.infinity, 1e-300)) + (alphas - 1.0) * top
    excess = np.logaddexp(logsumexp(logs, axis=1), cut) + math.log1p(pld.error)
    return np.asarray(np.minimum(np.logaddexp(0.0, excess) / (alphas - 1.0), worst))


def renyi_epsilon(orders: ArrayLike, divergences: ArrayLike, *, delta: float) -> float:
    r"""The central epsilon that Renyi divergences promise at `delta`: the best of the given orders.

    .. math:: \epsilon = \min_\alpha \left\{ D_\alpha + \log \frac{\alpha - 1}{\alpha}
              - \frac{\log \delta + \log \alpha}{\alpha - 1} \right\}

    Parameters
    ----------
    orders, divergences : float arrays (orders,)
    delta : float strictly between 0 and 1

    Examples
    --------
    >>> round(renyi_epsilon([10.0], [0.5], delta=1e-6), 4)
    1.6739

    Source
    ------
    Canonne, Kamath, Steinke (2020), The Discrete Gaussian for Differential Privacy, Proposition 12.
    """
    alphas, values = check_orders(orders), np.asarray(divergences, dtype=np.float64)
    if values.shape != alphas.shape or not np.all(values >= 0.0):
        raise refuse("divergences", f"{alphas.size} numbers, at least 0", divergences)
    log_delta = math.log(probability("delta", delta))
    epsilons = values + np.log1p(-1.0 / alphas) - (log_delta + np.log(alphas)) / (alphas - 1.0)
    return max(0.0, float(np.min(epsilons)))


def add_divergences(pairs: Sequence[tuple[ClonePair, int]], orders: ArrayLike) -> Reals:
    """Divergences of `times` rounds of each pair together, one for each order."""
    return np.asarray(np.sum([times * renyi_divergence(pair, orders) for pair, times in pairs], axis=0))


def check_orders(orders: ArrayLike) -> Reals:
    """Orders as a float array, each above 1 and finite."""
    alphas = rectangular("orders", orders)
    if alphas.dtype.kind not in "iuf" or alphas.ndim != 1 or alphas.size == 0:
        raise refuse("orders", "numbers above 1", orders)
    alphas = alphas.astype(np.float64)
    if not np.all(np.isfinite(alphas) & (alphas > 1.0)):
        raise refuse("orders", "numbers above 1", orders)
    return alphas


# Shuffled rounds for other accountants: privacy loss distributions and Renyi curves for dp-accounting.


CUT_MASS = 1e-18  # mass per round that goes to infinity
MOST_POINTS = 10**7


def to_dp_accounting(part: ShuffledRound, *, interval: float, neighboring_relation: Any) -> Any:
    r"""The privacy loss distribution of a round, pessimistic, as an object of the package dp-accounting.

    To compose with Gaussian or subsampled steps: `.compose(other)`, `.self_compose(times)` and
    `.get_epsilon_for_delta(delta)` are dp-accounting's. For shuffled rounds alone use `compose`, which certifies its
    answer.

    A shuffled round is accounted for people whose *value is replaced*; n is public. Build every other step for
    `NeighboringRelation.REPLACE_ONE` too: for a Gaussian sum
    `from_gaussian_mechanism(sd, sensitivity, neighboring_relation=NeighboringRelation.REPLACE_ONE)`, where
    `sensitivity` is what dp-accounting asks for under that relation. A distribution does not remember its relation,
    and dp-accounting composes different ones without a word; so it must be stated here.

    Parameters
    ----------
    part : Round
        With delta0 = 0. All its `times` are composed.
    interval : float, above 0, nats
        Grid of the losses, the same for everything that is composed; a hundredth of `part.pair.gaussian_scale` loses
        next to nothing. What is lost falls with its square.
    neighboring_relation : dp_accounting.NeighboringRelation
        Must be REPLACE_ONE.

    Returns
    -------
    distribution : dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        Its delta is never below the pair's, up to dp-accounting's own rounding (about 1e-15 a step).

    Raises
    ------
    UnsupportedError
        For another neighbouring relation or an approximate randomizer.
    MissingExtraError
        Without dp-accounting, which the extra `interop` brings.

    Examples
    --------
    >>> from dp_accounting import NeighboringRelation
    >>> relation = NeighboringRelation.REPLACE_ONE
    >>> one = to_dp_accounting(ShuffledRound(1.0, 10_000), interval=1e-3, neighboring_relation=relation)
    >>> one.self_compose(10).get_epsilon_for_delta(1e-6) < 1.0
    True

    Source
    ------
    `pessimistic_pld`, and dp-accounting 0.6, `pld_pmf.DensePLDPmf`.
    """
    accounting = require("dp_accounting", extra="interop")
    if neighboring_relation is not accounting.NeighboringRelation.REPLACE_ONE:
        raise UnsupportedError(
            f"A shuffled round is proved for REPLACE_ONE neighbours, got {neighboring_relation!r}: adding or "
            "removing a person changes n, which is public. State every step for REPLACE_ONE."
        )
    step, worst = positive("interval", interval), min(part.epsilon0, 40.0 * part.pair.gaussian_scale)
    if worst / step > MOST_POINTS:
        raise UnsupportedError(f"`interval` {step:g} needs more than {MOST_POINTS:,} grid points for this round.")
    pld = pessimistic_pld(_pure(part), step=step, cut=CUT_MASS)
    pmf = require("dp_accounting.pld.pld_pmf", extra="interop").DensePLDPmf(
        step, -(pld.masses.size // 2), pld.masses * (1.0 + pld.error), pld.infinity, True
    )
    made = require("dp_accounting.pld.privacy_loss_distribution", extra="interop").PrivacyLossDistribution(pmf)
    return made if part.times == 1 else made.self_compose(part.times)


@dataclass(frozen=True, eq=False)
class RenyiCurve:
    """Orders and Renyi divergences, for accountants that add them.

    Parameters
    ----------
    orders, divergences : float arrays (orders,)
        Upper bounds, nats.
    neighbours : str
    """

    orders: Reals
    divergences: Reals
    neighbours: str = "replace one person's value"


def renyi_curve(part: ShuffledRound, *, orders: ArrayLike) -> RenyiCurve:
    """Renyi divergences of all `times` of a round, to be added to other steps' for the same neighbours.

    With dp-accounting: `compute_epsilon(curve.orders, curve.divergences + others, delta)` of
    `dp_accounting.rdp.rdp_privacy_accountant`, where `others` come from an accountant for REPLACE_ONE.

    Raises
    ------
    ParameterError
        For orders that are not above 1.

    Examples
    --------
    >>> curve = renyi_curve(ShuffledRound(1.0, 10_000, times=100), orders=[8.0, 32.0])
    >>> curve.divergences.round(4).tolist()
    [0.0636, 0.2542]
    """
    alphas, part = check_orders(orders), instance("part", part, ShuffledRound)
    return RenyiCurve(alphas, part.times * renyi_divergence(_pure(part), alphas))


def _pure(part: ShuffledRound) -> ClonePair:
    if part.delta0 > 0.0:
        raise UnsupportedError("Approximate randomizers have no pair to export; use `compose` for them.")
    return part.pair


# What simpler composition theorems say about the same rounds: for comparison.


def basic(parts: Sequence[ShuffledRound], delta: float) -> Bound:
    """Epsilons and deltas add; every round gets the same delta."""
    rounds = sum(part.times for part in parts)
    single = (_single(part, delta / rounds) for part in parts)
    total = round_up_sum(single, times=[part.times for part in parts])
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
        clones = part.pair.epsilon(delta).upper
        if part.pair.kind == "clones":
            return clones
        return min(clones, law_epsilon(part.mechanism or part.epsilon0, n=part.n, delta=delta))
    found = amplify_approximate(part.epsilon0, part.delta0, n=part.n, delta=delta).epsilon
    return math.inf if found is None else found


def _compared(name: str, epsilon: float, source: str) -> Bound:
    if math.isfinite(epsilon):
        return Bound(name, epsilon, source)
    return Bound.inapplicable(name, "says nothing about one of the rounds at its share of delta", source=source)

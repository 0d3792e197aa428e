"""Renyi divergences of the clone pairs, for accountants that add them up."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dovetail.account.clones.stronger_clones import ClonePair
from dovetail.account.composition.privacy_loss import PrivacyLossDistribution, pessimistic_pld
from dovetail.core.checks import probability, rectangular, refuse
from dovetail.core.numeric.special import Reals

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

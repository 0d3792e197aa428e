r"""What releases of other windows tell about a secret: an upper bound, for noise that is independent between windows.

A long trace is cut into windows. The loss of a secret in the window at home is that of home and its neighbours
together, exactly, and of what all windows beyond add at most. With Z_1 the release at home and beside it, and Z_2 the
rest,

.. math:: J(Z_1, Z_2) - J(Z_1) = v' \, \mathrm{Cov}(Z_2 \mid Z_1, X_S)^{-1} v \le v' G_2^{-1} v, \qquad
          v = V_{2S} V_{SS}^{-1}, \quad V = \mathrm{Cov}(X \mid Z_1)

because the noise of Z_2 is independent of everything in Z_1. V_{2S} = Sigma_{21} (Sigma_{11} + G_1)^{-1} G_{1S} is
computed for the windows that are near enough to matter, and bounded through the kernel for all farther ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from dovetail.trace.kernels.kernel import Floats, Kernel
from dovetail.trace.loss.posterior import Posterior

_SLACK = 1.0 + 1e-6  # relative rounding of what is computed
_UNIT = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Elsewhere:
    """The windows beyond home and its neighbours.

    Parameters
    ----------
    beyond : sequence of (times (m,), noise (m, m))
        Windows that are computed; the noise of one is independent of all other noise.
    rest : int
        Points of farther windows, which are bounded.
    gap : float, seconds
        Between those and home with its neighbours, at least.
    white : float
        Least variance of all of this noise in any direction, in units of the prior's variance.
    crowd : float
        Upper bound on the sum of absolute correlations of one location with all others.
    """

    beyond: Sequence[tuple[Floats, Floats]]
    rest: int
    gap: float
    white: float
    crowd: float

    @property
    def points(self) -> int:
        """How many points lie beyond."""
        return self.rest + sum(len(times) for times, _ in self.beyond)


@dataclass(frozen=True, eq=False)
class FarTold:
    """What lies beyond, seen from home: everything that the bounds need.

    Parameters
    ----------
    forms : float array (n, n)
        V_21' G_2^-1 V_21 of the windows that are computed.
    spare : float
        Upper bound on the same form of the windows that are bounded, for each location.
    cross : float array (m + 1, n)
        |V_t1| for each location t that is computed, and a bound for all others.
    own : float array (m + 1,)
        V_tt of these, from below.
    crowd, white : float
    """

    forms: Floats
    spare: float
    cross: Floats
    own: Floats
    crowd: float
    white: float


def far_told(kernel: Kernel, times: Floats, noise: Floats, seen: Posterior, elsewhere: Elsewhere) -> FarTold:
    """What windows beyond tell, for a zone at `times` (n,) with its noise (n, n) and posterior."""
    n, weight = len(times), float(np.abs(seen.reader).sum(axis=0).max())
    factor = cho_factor(seen.prior + noise, lower=True)
    forms, crosses, owns, blur = np.zeros((n, n)), [], [], n * _UNIT * weight
    for stamps, own_noise in elsewhere.beyond:
        between = kernel.correlation(np.abs(stamps[:, None] - times[None, :]))
        cross = between @ seen.reader
        forms += cross.T @ cho_solve(cho_factor(own_noise, lower=True), cross)
        crosses.append(np.abs(cross) + blur)
        owns.append(1.0 - np.einsum("ij,ji->i", between, cho_solve(factor, between.T)) - n * _UNIT)
    faded = kernel.beyond(elsewhere.gap) if elsewhere.rest else 0.0
    computed = elsewhere.points - elsewhere.rest
    # (a + b)^2 <= (1 + e) a^2 + (1 + 1/e) b^2 with e = 1e-6 for what rounding moves
    spare = (elsewhere.rest * (faded * weight) ** 2 + computed * (2e3 * blur) ** 2) / elsewhere.white
    crosses.append(np.full((1, n), faded * weight))
    owns.append(np.array([1.0 - n * faded**2 / elsewhere.white]))
    cross, own = np.concatenate(crosses), np.concatenate(owns)
    return FarTold(forms * _SLACK, spare, cross, own, elsewhere.crowd, elsewhere.white)


def added(seen: Posterior, told: FarTold, rows: Sequence[int]) -> Floats:
    """Upper bound (S, S), in Loewner order, on what windows beyond add to J of a secret."""
    index = list(rows)
    inverse = np.linalg.inv(seen.covariance[np.ix_(index, index)])
    forms = told.forms[np.ix_(index, index)] + told.spare * len(index) * np.eye(len(index))
    return np.asarray(inverse @ forms @ inverse * _SLACK)


def added_beside_sighting(seen: Posterior, told: FarTold, rows: Sequence[int]) -> Floats:
    """Upper bound on what windows beyond add to maxeig J when the location at t of the zone is known, for each t.

    V and the forms of the other windows are those given X_t; 0 at the secret itself.
    """
    index = list(rows)
    share = seen.covariance[:, index] / np.diag(seen.covariance)[:, None]  # (n, S)
    inner = seen.covariance[np.ix_(index, index)]
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.linalg.eigvalsh(inner - share[:, :, None] * seen.covariance[:, None, index])[:, 0]
        own = np.diag(told.forms)
        forms = own[index] - 2.0 * told.forms[:, index] * share + own[:, None] * share**2
        size = (np.maximum(forms, 0.0) + told.spare * (1.0 + np.abs(share)) ** 2).sum(axis=1)
        found = np.where(left > 0.0, size / left**2 * _SLACK, np.inf)
    found[index] = 0.0
    return np.asarray(found)


def sighting_beyond(seen: Posterior, told: FarTold, rows: Sequence[int], loss: float) -> float:
    """Upper bound on maxeig J when the location at one time beyond the zone is known; `loss` is J of the zone itself.

    First what the sighting adds, then what the other windows add given it, whose cross covariance with it is at most
    that of the prior: its norm in G_2^-1 is at most crowd / white.
    """
    index = list(rows)
    inner = seen.covariance[np.ix_(index, index)]
    least = float(np.linalg.eigvalsh(inner)[0])
    squares = (told.cross[:, index] ** 2).sum(axis=1)
    size = float(np.diag(told.forms)[index].sum()) + told.spare * len(index)
    with np.errstate(divide="ignore", invalid="ignore"):
        alone = squares / least**2 / (told.own - squares / least)
        left = least - squares / told.own
        beside = 2.0 * (size + squares / told.own**2 * told.crowd / told.white) / left**2
    bad = (told.own <= 0.0) | (told.own - squares / least <= 0.0) | (left <= 0.0)
    return float(np.max(np.where(bad, np.inf, loss + alone + beside))) * _SLACK


def crowd_of(kernel: Kernel, times: Floats) -> float:
    """Upper bound on the sum of absolute correlations of one location with all at `times` (n,), itself included."""
    cell = max(float(np.median(np.diff(times))) * 20.0, 1e-12)
    most = int((np.searchsorted(times, times + cell, side="right") - np.arange(len(times))).max())
    total, step = 0.0, 0
    while 2.0 * most * (step + 1) < 2.0 * len(times) + 2.0 * most:
        total += 2.0 * most * kernel.beyond(step * cell)
        step += 1
    return min(float(len(times)), total)


def unknown_mean_added(prior: Floats, rows: Sequence[int]) -> Floats:
    r"""Upper bound (S, S) on what an unknown mean adds to J: as if the adversary were told it.

    .. math:: J_m = h h' / 1' h, \quad h = \Sigma_{ss}^{-1} 1
    """
    index = list(rows)
    weights = np.linalg.solve(prior[np.ix_(index, index)], np.ones(len(index)))
    return np.asarray(np.outer(weights, weights) / weights.sum() * _SLACK)

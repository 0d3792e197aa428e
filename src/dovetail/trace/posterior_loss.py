"""The loss of releases of whole traces: all secret times at once, windows, rounding, and several releases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.linalg import block_diag, cho_factor, cho_solve

from dovetail.core.certified import Bracket
from dovetail.core.errors import UnsupportedError
from dovetail.trace.kernels import Floats, Kernel
from dovetail.trace.loss import MOST_LOST, TOLD, Information, condition, information, positive_factor

# All single secret times at once: the posterior covariance of a trace given its release holds every loss.
#
# .. math:: V = \mathrm{Cov}(X \mid Z) = \Sigma (\Sigma + G)^{-1} G, \qquad J_s = 1 / V_{ss} - 1 / \Sigma_{ss}
#
# and, for an adversary who knows the true location at one other time t, the same with both covariances given it:
#
# .. math:: J_{s|t} = \frac{1}{V_{ss} - V_{st}^2 / V_{tt}} - \frac{1}{\Sigma_{ss} - \Sigma_{st}^2 / \Sigma_{tt}}
#
# One factorization for the whole trace instead of one for each secret.


_UNIT = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Covariance of a trace given its release.

    Parameters
    ----------
    prior, covariance : float array (n, n)
    reader : float array (n, n)
        (Sigma + G)^-1 G: what the smoother leaves of a location.
    error : float array (n, n)
        Upper bound on the absolute error of every number of `covariance`.
    """

    prior: Floats
    covariance: Floats
    reader: Floats
    error: Floats

    @classmethod
    def of(cls, prior: Floats, noise: Floats) -> Posterior:
        """From the prior and the noise covariance.

        The error is that of the residual, G - (Sigma + G) X, through the smoother's own gain, that of the product,
        and what the rounding of the prior itself moves: X' dSigma X.
        """
        middle, n = prior + noise, len(prior)
        factor = positive_factor(middle, "The covariance of the release")
        reader = np.asarray(cho_solve((factor, True), noise))
        covariance = prior @ reader
        rest = np.abs(noise - middle @ reader) + n * _UNIT * (np.abs(middle) @ np.abs(reader) + np.abs(noise))
        gain = np.linalg.norm(np.eye(n) - reader.T, axis=1)
        error = np.outer(gain, np.linalg.norm(rest, axis=0)) + n * _UNIT * (np.abs(prior) @ np.abs(reader))
        sums = np.abs(reader).sum(axis=0) * np.sqrt(np.diag(prior).max())
        error += 8.0 * _UNIT * np.outer(sums, sums)
        return cls(prior, 0.5 * (covariance + covariance.T), reader, 2.0 * np.maximum(error, error.T))

    def losses(self, places: Sequence[int], added: Floats | float = 0.0) -> list[Bracket]:
        """J of each place by itself; `added` is what other releases add at most."""
        rows = list(places)
        variance, error = np.diag(self.covariance)[rows], np.diag(self.error)[rows]
        if (error > MOST_LOST * variance).any():
            raise UnsupportedError(
                "The loss of this noise is not known to a hundredth in doubles: ask for a white floor (0.01 of the "
                "budget)."
            )
        before = 1.0 / np.diag(self.prior)[rows]
        low = np.maximum(0.0, 1.0 / (variance + error) - before)
        high = np.maximum(low, 1.0 / (variance - error) - before + added) * (1.0 + 4.0 * _UNIT)
        return [Bracket(float(a), float(b)) for a, b in zip(low, high, strict=True)]

    def sightings(self, places: Sequence[int]) -> Floats:
        """Upper bound on J of each place when the true location at one other time is known, for each time (k, n).

        Infinite where the sighting tells the secret, or where doubles know the loss worse than to a hundredth; 0 at
        the place itself.
        """
        rows = list(places)
        own, cross = np.diag(self.covariance), self.covariance[rows]
        left = own[rows, None] - cross**2 / own
        share = cross / own
        error = (
            np.diag(self.error)[rows, None] + 2.0 * np.abs(share) * self.error[rows] + share**2 * np.diag(self.error)
        )
        before = self.left_by_prior(rows)
        told = before[0] < TOLD * np.diag(self.prior)[rows, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = 1.0 / (left - error) - 1.0 / (before[0] + before[1])
            lost = error / left + before[1] / before[0] > MOST_LOST
        found = np.where(told | lost | (left <= error), np.inf, np.maximum(found, 0.0))
        found[np.arange(len(rows)), rows] = 0.0
        return np.asarray(found)

    def left_by_prior(self, rows: Sequence[int]) -> tuple[Floats, Floats]:
        """Prior variance of each place given each other location (k, n), and its error."""
        own, cross = np.diag(self.prior), self.prior[list(rows)]
        left = own[list(rows), None] - cross**2 / own
        return left, np.asarray(8.0 * _UNIT * (own[list(rows), None] + np.abs(left)))


# What rounding locations to the public grid before the noise may cost.
#
# Given the true trace, the release of the rounded trace and that of the trace itself are normal with means that
# differ by at most half a step in each number: \frac h2 \sqrt{n d / w}-Gaussian differential privacy, w the smallest
# variance of the noise in any direction. Two secret places are three hops apart (rounded, true, true, rounded), and
# hops add.
#
# Source
# ------
# Dong, Roth, Su (2022), Gaussian Differential Privacy, JRSS B 84(1), theorem 2.14 (groups).


MOST_CHARGE = 0.05  # of mu, beyond which a step is refused


def rounding_charge(step: float, coordinates: int, white: float) -> float:
    """Charge of two hops on mu, for a step in metres, n d numbers, and the least variance of the noise.

    >>> rounding_charge(0.5, 200, 2.0)
    5.0
    """
    return step * sqrt(coordinates / white)


def least_variance(noise: Floats) -> float:
    """Lower bound on the variance of noise with covariance `noise` (n, n) in any direction.

    Raises
    ------
    UnsupportedError
        Doubles cannot tell it from 0.
    """
    values = np.linalg.eigvalsh(noise)
    least = float(values[0]) - 4.0 * len(noise) * np.finfo(float).eps * float(values[-1])
    if least <= 0.0:
        raise UnsupportedError("The noise is nearly singular: ask for a white floor (0.01 of the budget).")
    return least


def check_charge(charge: float, mu: float, step: float) -> None:
    """Refuse a step whose rounding is more than a twentieth of mu."""
    if not charge <= MOST_CHARGE * mu:
        most = step * MOST_CHARGE / (1.0 - MOST_CHARGE) * (mu - charge) / charge
        raise UnsupportedError(
            f"`step` must be at most {most:.2g} m for this trace and guarantee, got {step:g}: rounding all of "
            f"its points adds {charge:.2g} to mu, {charge / mu:.0%} of it."
        )


# What releases of other windows tell about a secret: an upper bound, for noise that is independent between windows.
#
# A long trace is cut into windows. The loss of a secret in the window at home is that of home and its neighbours
# together, exactly, and of what all windows beyond add at most. With Z_1 the release at home and beside it, and Z_2
# the rest,
#
# .. math:: J(Z_1, Z_2) - J(Z_1) = v' \, \mathrm{Cov}(Z_2 \mid Z_1, X_S)^{-1} v \le v' G_2^{-1} v, \qquad
#           v = V_{2S} V_{SS}^{-1}, \quad V = \mathrm{Cov}(X \mid Z_1)
#
# because the noise of Z_2 is independent of everything in Z_1. V_{2S} = Sigma_{21} (Sigma_{11} + G_1)^{-1} G_{1S} is
# computed for the windows that are near enough to matter, and bounded through the kernel for all farther ones.


_SLACK = 1.0 + 1e-6  # relative rounding of what is computed


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
        """Number of points beyond."""
        return self.rest + sum(len(times) for times, _ in self.beyond)


@dataclass(frozen=True, eq=False)
class FarTold:
    """Windows beyond, seen from home: everything that the bounds need.

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
    """Loss of windows beyond, for a zone at `times` (n,) with its noise (n, n) and posterior."""
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


# Several releases about one person: stack the traces, take their joint prior, and the noise block by block.
#
# The information of all of them is J of the stack, exactly. Losses of two releases of one trace may exceed their sum:
# what one leaves open the other may tell, so nothing is added here.


@dataclass(frozen=True, eq=False)
class PastRelease:
    """Earlier release: its times and its noise.

    Parameters
    ----------
    times : float array (n,), seconds
    noise : float array (n, n)
        Covariance of the noise, in units of the prior's variance.
    """

    times: Floats
    noise: Floats


def composed(
    kernel: Kernel, times: Floats, noise: Floats, secret: Sequence[int], past: Sequence[PastRelease]
) -> Information:
    """Information of a release together with earlier ones of the same person, about a secret of the new one."""
    stamps = np.concatenate([times, *(one.times for one in past)])
    together = block_diag(noise, *(one.noise for one in past))
    return information(condition(kernel.matrix(stamps), secret), together)

r"""All single secret times at once: the posterior covariance of a trace given its release holds every loss.

.. math:: V = \mathrm{Cov}(X \mid Z) = \Sigma (\Sigma + G)^{-1} G, \qquad J_s = 1 / V_{ss} - 1 / \Sigma_{ss}

and, for an adversary who knows the true location at one other time t, the same with both covariances given it:

.. math:: J_{s|t} = \frac{1}{V_{ss} - V_{st}^2 / V_{tt}} - \frac{1}{\Sigma_{ss} - \Sigma_{st}^2 / \Sigma_{tt}}

One factorization for the whole trace instead of one for each secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve

from dovetail.core.bracket import Bracket
from dovetail.core.errors import UnsupportedError
from dovetail.trace.kernels.kernel import Floats
from dovetail.trace.loss.adversaries import MOST_LOST, TOLD
from dovetail.trace.loss.conditional import positive_factor

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

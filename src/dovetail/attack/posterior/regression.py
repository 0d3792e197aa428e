"""Regression of reports on who can have sent them, shrunk by as much as the reports themselves ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dovetail.core.display.display import mute
from dovetail.estimate.simplex import project_shares

Rows = NDArray[np.float64]

_SPREADS = np.concatenate(([0.0], np.geomspace(1e-7, 1e3, 41)))  # of the coefficients, in the noise's variance


@mute
@dataclass(frozen=True, eq=False)
class Regression:
    r"""Ridge regression on centred columns, its strength the likeliest one.

    .. math:: u_v = A \beta_v + \varepsilon, \qquad \beta_v \sim N(0, g \sigma_v^2 I),
              \quad \varepsilon \sim N(0, \sigma_v^2 I)

    g is common to all values and found on a grid by the marginal likelihood, sigma_v maximised out. Where the order
    tells nothing, g = 0 is likeliest: then everybody is average.

    Parameters
    ----------
    centre : float array (d,)
        Mean column of A.
    features : float array (n, d)
        A, centred.
    vectors : float array (d, d)
        Eigenvectors of A'A.
    values : float array (d,)
        Its eigenvalues.

    Source
    ------
    MacKay (1992), Bayesian interpolation, Neural Computation 4.
    """

    centre: NDArray[np.float64]
    features: Rows
    vectors: Rows
    values: NDArray[np.float64]

    @classmethod
    def on(cls, features: Rows) -> Self:
        """For the rows (n, d) of all places."""
        centre = features.mean(axis=0)
        centred = features - centre
        values, vectors = np.linalg.eigh(centred.T @ centred)
        return cls(centre, centred, vectors, np.maximum(values, 0.0))

    def evidence(self, seen: Rows) -> float:
        """The largest log likelihood of `seen` (n, k), up to a constant that is the same for all features."""
        return float(self._likelihoods(seen, self._along(seen)).max())

    def shares(self, seen: Rows, *rows: Rows) -> tuple[Rows, ...]:
        """Predicted shares (m, k) of the values at each of `rows` (m, d) of features, from one fit."""
        mean, along = seen.mean(axis=0), self._along(seen)
        strength = _SPREADS[int(self._likelihoods(seen, along).argmax())]
        pull = strength / (1.0 + strength * self.values)
        slope = self.vectors @ (pull[:, None] * along)
        return tuple(with_floor(project_shares(mean + (each - self.centre) @ slope), len(seen)) for each in rows)

    def _along(self, seen: Rows) -> Rows:
        return np.asarray(self.vectors.T @ (self.features.T @ (seen - seen.mean(axis=0))))

    def _likelihoods(self, seen: Rows, along: Rows) -> NDArray[np.float64]:
        n, squares = len(seen), (along**2)[None]  # (1, d, k)
        grown = 1.0 + _SPREADS[:, None] * self.values  # (spreads, d)
        told = (_SPREADS[:, None, None] / grown[:, :, None] * squares).sum(axis=1)  # (spreads, k)
        total = ((seen - seen.mean(axis=0)) ** 2).sum(axis=0)
        left = np.maximum(total - told, 1e-12 * np.maximum(total, 1e-300))
        return np.asarray(-0.5 * (n * np.log(left).sum(axis=1) + seen.shape[1] * np.log(grown).sum(axis=1)))


def with_floor(shares: Rows, n: int) -> Rows:
    """Shares of at least about 1 / n: nothing that was never seen is impossible."""
    k = shares.shape[-1]
    return np.asarray((n * shares + 1.0) / (n + k))

"""Shares that are shares: the nearest point of the probability simplex."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.display.display import displayed_by
from dovetail.core.display.estimates import draw_estimate, show_estimate, to_frame
from dovetail.core.errors import ParameterError
from dovetail.core.estimate import Estimate, Values

if TYPE_CHECKING:
    import polars as pl


@final
@displayed_by(show_estimate)
@dataclass(frozen=True)
class ProjectedEstimate:
    """Shares at least 0 that sum to 1, with the unbiased estimate they come from.

    Parameters
    ----------
    value : float array (.., k)
        Biased, but never further from the truth than the unbiased value (Euclidean distance).
    unbiased : Estimate
        Its standard errors are the honest ones; the projection has no simple ones of its own.
    """

    value: Values
    unbiased: Estimate

    @property
    def standard_error(self) -> Values:
        """Of the unbiased estimate."""
        return self.unbiased.standard_error

    @property
    def n(self) -> Any:
        """Reports behind it."""
        return self.unbiased.n

    @property
    def labels(self) -> tuple[str, ...] | None:
        """What the symbols are called."""
        return self.unbiased.labels

    @property
    def groups(self) -> tuple[str, ...] | None:
        """What the groups are called."""
        return self.unbiased.groups

    def to_polars(self, level: float = 0.95) -> pl.DataFrame:
        """One row for each share: names, value, standard error, interval `low` to `high` at `level`, and n."""
        return to_frame(self, level)

    def plot(self, level: float = 0.95) -> Any:
        """A matplotlib figure (extra `studies`) with intervals at `level`; save it with `.savefig(path)`."""
        return draw_estimate(self, level)

    def interval(self, level: float = 0.95) -> tuple[Values, Values]:
        """The unbiased estimate's interval cut to [0, 1]: it covers just as often, because the truth lies inside."""
        low, high = self.unbiased.interval(level)
        return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def project_to_simplex(estimate: Estimate) -> ProjectedEstimate:
    """The nearest shares (.., k), at least 0 with sum 1, to an estimate of shares.

    The projection onto a convex set that holds the truth brings every point closer to the truth. It is biased (up for
    rare symbols): use the unbiased value for sums over many collections, this one for tables and plots.

    Raises
    ------
    ParameterError
        For what is no estimate of shares.

    Examples
    --------
    >>> error = np.array([0.2, 0.2])
    >>> project_to_simplex(Estimate(np.array([-0.25, 1.25]), error, 20, error)).value.tolist()
    [0.0, 1.0]
    """
    if not isinstance(estimate, Estimate) or np.ndim(estimate.value) == np.ndim(estimate.n):
        raise ParameterError("`estimate` must be an Estimate of shares, such as one of estimate_frequencies.")
    return ProjectedEstimate(project_shares(estimate.value), estimate)


def project_shares(values: ArrayLike) -> NDArray[np.float64]:
    r"""Euclidean projection onto the simplex over the last axis: max(v - t, 0) with t such that the sum is 1.

    >>> project_shares([0.75, 0.5, -0.25]).tolist()
    [0.625, 0.375, 0.0]

    Source
    ------
    Held, Wolfe, Crowder (1974), Validation of Subgradient Optimization, Mathematical Programming 6.
    """
    v = np.asarray(values, dtype=np.float64)
    falling = -np.sort(-v, axis=-1)
    excess = np.cumsum(falling, axis=-1) - 1.0
    size = np.arange(1, v.shape[-1] + 1)
    support = np.count_nonzero(falling * size > excess, axis=-1)[..., None]
    threshold = np.take_along_axis(excess, support - 1, axis=-1) / support
    return np.asarray(np.maximum(v - threshold, 0.0))

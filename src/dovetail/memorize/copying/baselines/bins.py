"""Number of statistically different bins: is the share of Q in each cell that of P."""

from __future__ import annotations

from collections.abc import Sequence

from scipy.special import ndtri


def different_bins(z_scores: Sequence[float], *, level: float = 0.05) -> tuple[float, float]:
    """Share of cells that Q over- and under-represents, each cell at a two-sided level: level / 2 per side.

    Sees lost and inflated regions; blind to copying, which keeps the shares.

    >>> different_bins([2.5, 0.1, -3.0, 1.9])
    (0.25, 0.25)

    Source
    ------
    Richardson, Weiss (2018), On GANs and GMMs, NeurIPS; the paper compares z with 0.05.
    """
    limit = float(-ndtri(level / 2))
    return sum(z > limit for z in z_scores) / len(z_scores), sum(z < -limit for z in z_scores) / len(z_scores)

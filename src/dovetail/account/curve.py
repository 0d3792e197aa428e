"""The central epsilon along a grid of people, local epsilons or deltas."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dovetail.account.clones.stronger_clones import RESOLUTION, ClonePair, Kind
from dovetail.core.checks import refuse
from dovetail.core.numeric.special import Reals

MOST_POINTS = 100_000


@dataclass(frozen=True, eq=False)
class Curve:
    """Ends of epsilon at each point of a grid; all arrays have the grid's shape.

    Parameters
    ----------
    epsilon0, n, delta : float arrays
        The grid.
    lower, upper : float arrays
        `ClonePair.epsilon` at each point: delta(upper) <= delta was evaluated everywhere.
    """

    epsilon0: Reals
    n: Reals
    delta: Reals
    lower: Reals
    upper: Reals


def curve(
    *,
    epsilon0: ArrayLike,
    n: ArrayLike,
    delta: ArrayLike,
    adaptive: bool = False,
    resolution: float = RESOLUTION,
) -> Curve:
    """`ClonePair.epsilon` on a grid: whichever of the three is an array, or several that broadcast.

    Parameters
    ----------
    epsilon0 : float or array, above 0, at most 700, nats
    n : int or array, 1 .. 1e12
        Honest reports in the batch.
    delta : float or array, at least 0, below 1
    adaptive : bool
        Whether an answer's randomizer may depend on earlier reports; then the clone pair is used.
    resolution : float, 1e-7 .. 1
        Relative gap between both ends.

    Notes
    -----
    One to two milliseconds a point.

    Examples
    --------
    >>> curve(epsilon0=1.0, n=[100, 10_000, 1_000_000], delta=1e-6).upper.round(4).tolist()
    [0.5161, 0.0432, 0.0035]
    """
    axes = [np.asarray(axis) for axis in (epsilon0, n, delta)]
    try:
        e0, people, deltas = np.broadcast_arrays(*axes)
    except ValueError:
        shapes = ", ".join(str(axis.shape) for axis in axes)
        raise refuse("epsilon0, n and delta", "arrays that broadcast", f"shapes {shapes}") from None
    if not 1 <= e0.size <= MOST_POINTS:
        raise refuse("the grid", f"of 1 to {MOST_POINTS} points", e0.size)
    kind: Kind = "clones" if adaptive else "stronger clones"
    grid = zip(*(axis.ravel().tolist() for axis in (e0, people, deltas)), strict=True)
    ends = [ClonePair(e, m, kind).epsilon(d, resolution=resolution) for e, m, d in grid]
    lower, upper = (np.array([getattr(b, end) for b in ends]).reshape(e0.shape) for end in ("lower", "upper"))
    return Curve(e0.astype(np.float64), people.astype(np.float64), deltas.astype(np.float64), lower, upper)

"""One trace: when, and where in metres of a plane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core.display.display import mute
from dovetail.core.errors import DataError
from dovetail.trace.kernels.kernel import Floats, sorted_times


@mute
@dataclass(frozen=True, eq=False)
class Trace:
    """Locations at increasing times.

    Parameters
    ----------
    name : str
    times : float array (n,), seconds
    points : float array (n, d), metres; d is 1 or 2

    Raises
    ------
    DataError
        From `of`, for times that do not increase, and points that are no numbers or not one for each time.

    Examples
    --------
    >>> walk = Trace.of("a walk", [0.0, 60.0, 120.0], [[0.0, 0.0], [80.0, 0.0], [160.0, 5.0]])
    >>> walk.n
    3
    """

    name: str
    times: Floats
    points: Floats

    @classmethod
    def of(cls, name: str, times: ArrayLike, points: ArrayLike) -> Trace:
        """A checked trace; what is wrong with it is named with its name."""
        try:
            stamps = sorted_times(times)
        except DataError as error:
            raise DataError(f"trace {name!r}: {error}") from None
        places = np.asarray(points, dtype=np.float64)
        places = places[:, None] if places.ndim == 1 else places
        if len(places) != len(stamps):
            raise DataError(f"trace {name!r}: has {len(stamps)} time stamps and {len(places)} points.")
        bad = np.flatnonzero(~np.isfinite(places).all(axis=1))
        if bad.size:
            raise DataError(f"trace {name!r}: {bad.size:,} points are no numbers (first at point {bad[0] + 1}).")
        return cls(name, stamps, places)

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.times)

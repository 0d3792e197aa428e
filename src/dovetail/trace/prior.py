"""The prior of a trace: a kernel of time, a covariance of the coordinates in square metres, and a public origin.

A trace (n, d) has covariance kernel(times) x covariance: both coordinates move alike in time. Along the
principal axes of the covariance the coordinates are independent, and discs look the same, so correlated
coordinates cost nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

from dovetail.core.errors import DataError, UnsupportedError
from dovetail.trace.cells import moving_runs
from dovetail.trace.kernels import Floats, Kernel, kernel_from_dict
from dovetail.trace.trace import TangentPlane, Trace

SCHEMA_VERSION = 1
_SKETCH = 16  # points, and as many runs, of a fitted trace that are remembered
_RUN = 6  # points


@dataclass(frozen=True, eq=False)
class TracePrior:
    """What an adversary is assumed to know of how traces move; the mean may be anything.

    Parameters
    ----------
    kernel : Kernel
        Correlation of locations by the seconds between them.
    covariance : float array (d, d), square metres
        Of the coordinates at one time.
    plane : TangentPlane or None
        None where coordinates are metres already.
    salt : str
    fitted_on : frozenset of str
        Salted digests of the traces that the fit saw: none of them may be protected with it.
    fit : dict
        How it was fitted and how well it fits, for people.

    Raises
    ------
    DataError
        For a covariance that is not symmetric and positive definite, and a salt that is not hexadecimal.

    Examples
    --------
    >>> from dovetail.trace.kernels import Matern32
    >>> TracePrior(Matern32(length=600.0), np.array([[1e6]])).covariance.tolist()
    [[1000000.0]]
    """

    kernel: Kernel
    covariance: Floats
    plane: TangentPlane | None = None
    salt: str = ""
    fitted_on: frozenset[str] = frozenset()
    fit: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape = self.covariance.shape
        if shape not in ((1, 1), (2, 2)) or not np.allclose(self.covariance, self.covariance.T):
            raise DataError(f"`covariance` must be symmetric, 1 x 1 or 2 x 2 square metres, got shape {shape}.")
        try:
            bytes.fromhex(self.salt)
        except ValueError:
            raise DataError(f"`salt` must be hexadecimal digits, got {self.salt!r}.") from None
        if not np.isfinite(self.covariance).all() or np.linalg.eigvalsh(self.covariance)[0] <= 0.0:
            raise DataError("`covariance` must be positive definite: the traces do not move in some direction.")

    @property
    def dimensions(self) -> int:
        """Coordinates of a location, 1 or 2."""
        return len(self.covariance)

    def axes(self) -> tuple[Floats, Floats]:
        """Variances (d,) along the principal axes, and the axes as rows (d, d)."""
        values, vectors = np.linalg.eigh(self.covariance)
        if np.allclose(values, values[0], rtol=1e-9, atol=0.0):
            return np.full(len(values), float(values.mean())), np.eye(len(values))
        return values, vectors.T

    def digests(self, trace: Trace) -> frozenset[str]:
        """Salted digests of a fitted trace: of all of it on any clock, and sketches of its points and moving runs.

        A sketch keeps the sixteen least digests: half of a trace shares none of them with chance 2^-16.
        """
        sketches = (sorted(each)[:_SKETCH] for each in (self._point_digests(trace), self._run_digests(trace)))
        return frozenset([self._digest(trace)]).union(*sketches)

    def refuse_own(self, trace: Trace) -> None:
        """Refuse to protect a trace that the fit saw, or that shares points with one: the kernel tells about it."""
        mine = {self._digest(trace), *self._point_digests(trace), *self._run_digests(trace)}
        if self.salt and not self.fitted_on.isdisjoint(mine):
            raise UnsupportedError(
                f"trace {trace.name!r}: the kernel was fitted on this trace or on points of it; fit public or "
                "other people's traces."
            )

    def _run_digests(self, trace: Trace) -> list[str]:
        """One for each moving run of six points, on any clock: its gaps to a second, its places to ten metres."""
        key = bytes.fromhex(self.salt)
        return [blake2b(run, key=key, digest_size=12).hexdigest() for run in moving_runs(trace, _RUN)]

    def _digest(self, trace: Trace) -> str:
        content = np.column_stack([trace.times - trace.times[0], np.rint(trace.points * 10.0)]).tobytes()
        return blake2b(content, key=bytes.fromhex(self.salt), digest_size=16).hexdigest()

    def _point_digests(self, trace: Trace) -> list[str]:
        """One for each point: its time to a millisecond, its place to a decimetre."""
        rows = np.column_stack([np.rint(trace.times * 1e3), np.rint(trace.points * 10.0) + 0.0])
        key = bytes.fromhex(self.salt)
        return [blake2b(row.tobytes(), key=key, digest_size=8).hexdigest() for row in rows]

    def as_dict(self) -> dict[str, Any]:
        """Its form in files."""
        return {
            "schema_version": SCHEMA_VERSION,
            "kernel": self.kernel.as_dict(),
            "covariance": self.covariance.tolist(),
            "origin": None if self.plane is None else [self.plane.latitude, self.plane.longitude],
            "salt": self.salt,
            "fitted_on": sorted(self.fitted_on),
            "fit": self.fit,
        }

    @classmethod
    def from_dict(cls, form: Any) -> TracePrior:
        """The prior that `as_dict` described."""
        try:
            if form["schema_version"] != SCHEMA_VERSION:
                raise DataError(f"the prior is of version {form['schema_version']!r}; this program reads version 1.")
            origin = form["origin"]
            return cls(
                kernel_from_dict(form["kernel"]),
                np.array(form["covariance"], dtype=np.float64),
                None if origin is None else TangentPlane(float(origin[0]), float(origin[1])),
                str(form["salt"]),
                frozenset(form["fitted_on"]),
                dict(form["fit"]),
            )
        except (KeyError, TypeError, ValueError, IndexError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"is no prior as `dovetail trace fit` writes it ({type(error).__name__}).") from None

    def to_text(self) -> str:
        """JSON."""
        return json.dumps(self.as_dict(), indent=1)

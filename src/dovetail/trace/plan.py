"""A plan for traces: the prior, which times are secret, the budget, the noise; fixed before a trace is looked at."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from dovetail.core.checks import positive, whole
from dovetail.core.errors import DataError, ParameterError
from dovetail.trace.descent import FLOOR
from dovetail.trace.mechanisms import NOISES
from dovetail.trace.prior import TracePrior
from dovetail.trace.sampler import check_step, default_step
from dovetail.trace.trace import SecretTimes

LEAST_WINDOW, MOST_WINDOW = 10, 1000  # points
LEAST_ERROR = 1e-6  # of what traces move: below it doubles no longer know the loss
SCHEMA_VERSION = 1


@dataclass(frozen=True, eq=False)
class TracePlan:
    """Everything that shapes a release, fixed beforehand.

    Parameters
    ----------
    prior : TracePrior
    secrets : SecretTimes
    radius : float, above 0, metres
    error : float, above 0, metres
        Root of the mean squared distance between true and released points.
    noise : str
        A mechanism, or "" for the default.
    floor : float in [1e-6, 1)
        White part of the noise, as a share of the budget.
    step : float, metres
        The public grid; 0 for the default.
    window : int
        Points of a window of independent noise at most; 0 cuts a trace only where it is too long for matrices.

    Raises
    ------
    ParameterError
        For a radius, an error, a floor, a step or a window outside its range, and a noise that is not known.

    Examples
    --------
    >>> from dovetail.trace.kernels import Matern32
    >>> prior = TracePrior(Matern32(length=600.0), np.array([[1e6]]))
    >>> plan = TracePlan(prior, SecretTimes(), radius=100.0, error=300.0)
    >>> plan.radius, plan.error, plan.floor
    (100.0, 300.0, 0.01)
    """

    prior: TracePrior
    secrets: SecretTimes
    radius: float
    error: float
    noise: str = ""
    floor: float = FLOOR
    step: float = 0.0
    window: int = 0

    def __post_init__(self) -> None:
        positive("radius", self.radius)
        positive("error", self.error)
        scale = sqrt(float(np.trace(self.prior.covariance)))
        if not LEAST_ERROR * scale <= self.error <= 1e4 * scale:
            raise ParameterError(
                f"`error` must lie between {LEAST_ERROR * scale:.3g} and {1e4 * scale:.3g} m for traces that move by "
                f"{scale:.3g} m, got {self.error:g}."
            )
        if self.radius > 1e4 * scale:
            raise ParameterError(
                f"`radius` must be at most {1e4 * scale:.3g} m, ten thousand times what traces move."
            )
        if self.noise and self.noise not in NOISES:
            raise ParameterError(f"`noise` must be one of {', '.join(NOISES)}, got {self.noise!r}.")
        if self.window:
            whole("window", self.window, least=LEAST_WINDOW, most=MOST_WINDOW)
        check_step(self.grid, white=self.white, floor_share=self.floor)

    @property
    def white(self) -> float:
        """Variance of the white part of the noise on one coordinate, square metres."""
        return self.floor * self.error**2 / self.prior.dimensions

    @property
    def grid(self) -> float:
        """The public step, metres."""
        return self.step or default_step(self.white)

    def as_dict(self) -> dict[str, Any]:
        """Its form in files."""
        return {
            "schema_version": SCHEMA_VERSION,
            "prior": self.prior.as_dict(),
            "secrets": {
                "windows": [list(window) for window in self.secrets.windows],
                "from_start": self.secrets.from_start,
                "together": self.secrets.together,
            },
            "radius": self.radius,
            "error": self.error,
            "noise": self.noise,
            "floor": self.floor,
            "step": self.grid,
            "window": self.window,
        }

    def terms(self) -> str:
        """Everything that shapes a release, as one text."""
        return json.dumps(self.as_dict(), sort_keys=True)

    @classmethod
    def from_dict(cls, form: Any) -> TracePlan:
        """The plan that `as_dict` described."""
        try:
            if form["schema_version"] != SCHEMA_VERSION:
                raise DataError(f"the plan is of version {form['schema_version']!r}; this program reads version 1.")
            secrets = form["secrets"]
            windows = tuple((float(a), float(b)) for a, b in secrets["windows"])
            return cls(
                TracePrior.from_dict(form["prior"]),
                SecretTimes(windows, bool(secrets["from_start"]), bool(secrets["together"])),
                float(form["radius"]),
                float(form["error"]),
                str(form["noise"]),
                float(form["floor"]),
                float(form["step"]),
                int(form.get("window", 0)),
            )
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, DataError | ParameterError):
                raise
            raise DataError(f"is no plan as `dovetail trace plan` writes it ({type(error).__name__}).") from None

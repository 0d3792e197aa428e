"""Priors, plans and guarantees of traces: what is fixed before one is looked at, and what is promised of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import blake2b
from math import sqrt
from typing import Any

import numpy as np

from dovetail.core.checks import positive, whole
from dovetail.core.display import upward
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.core.guarantee import Caveated
from dovetail.trace.descent import FLOOR
from dovetail.trace.kernels import Floats, Kernel, kernel_from_dict
from dovetail.trace.loss import delta_of, epsilon_of, posterior_odds, renyi_loss
from dovetail.trace.mechanisms import NOISES, check_step, default_step
from dovetail.trace.trace import SecretTimes, TangentPlane, Trace, moving_runs

# The prior of a trace: a kernel of time, a covariance of the coordinates in square metres, and a public origin.
#
# A trace (n, d) has covariance kernel(times) x covariance: both coordinates move alike in time. Along the principal
# axes of the covariance the coordinates are independent, and discs look the same, so correlated coordinates cost
# nothing.

PRIOR_VERSION = 1
_SKETCH = 16  # points, and as many runs, of a fitted trace that are remembered
_RUN = 6  # points


@dataclass(frozen=True, eq=False)
class TracePrior:
    """Prior of traces that an adversary is assumed to know; the mean may be anything.

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
            "schema_version": PRIOR_VERSION,
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
            if form["schema_version"] != PRIOR_VERSION:
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


# The plan.

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
                **({"secret_of": list(self.secrets.secret_of)} if self.secrets.secret_of else {}),
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
            secret_of = tuple(int(number) for number in secrets.get("secret_of", ()))
            return cls(
                TracePrior.from_dict(form["prior"]),
                SecretTimes(windows, bool(secrets["from_start"]), bool(secrets["together"]), secret_of),
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


# What a protected trace promises: how much, about which times, against whom, and under which conditions.

SOURCE = (
    "conditional inferential privacy, Meehan, Chaudhuri (2021), Location Trace Privacy Under Conditional Priors, "
    "AISTATS, theorem 5.3.3 of the dissertation in its exact form: mu-Gaussian differential privacy of every pair"
)

# what the number takes for granted; code enforces what it can, the rest must be read
CONDITIONS = (
    "Nothing is said for one fixed trace: probabilities are over the prior draw of the other locations and the "
    "noise.",
    "The adversary knows how traces move by the stated kernel, with any mean, and knows no other true location "
    "except "
    "one where the line for one sighting is quoted.",
    "No other function of the trace (mean, length, bounding box, speed), exact or noisy, is released beside it.",
    "Time stamps, their gaps and their number, start and end are public; motion-triggered logging reveals stops.",
    "Which times are secret depends on times alone, never on where somebody was.",
    "Kernel, variance, noise, floor and steps come from public or other people's data; no length-scale of this "
    "trace is "
    "published.",
    "The promise is about the location including the kernel's nugget, what no neighbour tells (receiver error); "
    "the place without it may be told more of.",
    "Each secret location moves by at most the radius, in metres of a local tangent plane; an adversary who "
    "knows that "
    "only roads or buildings are possible holds another prior.",
    "A further release about the same person is a further release: its loss is computed for all of them together, a "
    "repeat replays the stored noise.",
    "Map matching, clipping or rounding may read the release and public data, never the trace, and nobody draws "
    "again "
    "until it looks plausible.",
    "Noise has the operating system's entropy and a public grid; this is not proved for floating-point Gaussian "
    "noise.",
)


@dataclass(frozen=True)
class SecretLoss:
    """mu of one secret, for the adversary who knows the kernel.

    Parameters
    ----------
    places : tuple of int
        Points of the trace, from 0.
    start, end : float, seconds from the first point
    mu : float
        Upper bound.
    width : float, metres
        Twice the smallest posterior standard deviation over all directions; 0 where it was not computed.
    other_release : bool
        Whether another release about the same person promised it, within the radius of its own plan.
    """

    places: tuple[int, ...]
    start: float
    end: float
    mu: float
    width: float
    other_release: bool = False


@dataclass(frozen=True)
class TraceGuarantee(Caveated):
    """mu-Gaussian differential privacy of every secret of one trace, for moves of at most `radius`.

    Parameters
    ----------
    mu : float
        The worst secret, for the adversary who knows the kernel; `math.inf` for none.
    radius : float, metres
    secrets : tuple of SecretLoss
    by_adversary : dict of str to float
        mu of the worst secret, for every adversary on the list.
    error : float, metres
        Root of the mean squared distance between true and released points.
    noise : str
        Name of the mechanism.
    releases : int
        How many releases about this person `mu` counts.

    Raises
    ------
    UnsupportedError
        Nowhere by itself; what has no guarantee is refused where the noise is designed.

    Examples
    --------
    >>> TraceGuarantee(mu=0.5, radius=100.0, secrets=(), by_adversary={}, error=300.0, noise="block").mu
    0.5
    """

    mu: float
    radius: float
    secrets: tuple[SecretLoss, ...]
    by_adversary: dict[str, float]
    error: float
    noise: str
    releases: int = 1
    conditions: tuple[str, ...] = CONDITIONS
    caveats: tuple[str, ...] = ()
    source: str = field(default=SOURCE)

    @property
    def strongest(self) -> float:
        """mu against the strongest adversary listed; of several releases, against who knows the kernel."""
        return self.mu if self.releases > 1 else max([self.mu, *self.by_adversary.values()])

    def epsilon(self, delta: float) -> float:
        """Epsilon of the pairs at this delta, nats."""
        return epsilon_of(delta, mu=self.mu)

    def delta(self, epsilon: float) -> float:
        """Delta of the pairs at this epsilon."""
        return delta_of(epsilon, mu=self.mu)

    def renyi(self, order: float) -> float:
        """The paper's loss of this order."""
        return renyi_loss(order, mu=self.mu)

    def odds(self, chance: float) -> float:
        """Posterior odds over prior odds of two places within the radius, exceeded with this chance."""
        return posterior_odds(chance, mu=self.mu)

    def lines(self) -> tuple[str, ...]:
        """Lines to print: the number, the list of adversaries, the conditions."""
        count = len(self.secrets)
        what = "the secret" if count == 1 else f"each of {count:,} secrets"
        return (
            f"{what}: {upward(self.mu)}-Gaussian differential privacy for places within {self.radius:g} m "
            f"({self.releases} release{'s' if self.releases > 1 else ''} counted)",
            *(f"{name}: mu {upward(value)}" for name, value in self.by_adversary.items()),
            *self.conditions,
            *self.caveats,
        )

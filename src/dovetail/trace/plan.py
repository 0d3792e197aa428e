"""A plan for traces, made before any of them is looked at, and the noise and guarantee of one trace under it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from math import inf, sqrt
from typing import Any

import numpy as np

from dovetail.core.checks import positive
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.trace.guarantee import SecretLoss, TraceGuarantee
from dovetail.trace.kernels.kernel import Floats, sorted_times
from dovetail.trace.loss.adversaries import Adversary, adversaries, sightings
from dovetail.trace.loss.conditional import condition
from dovetail.trace.loss.evaluate import SIGHTING
from dovetail.trace.loss.information import Information, information, posterior_width
from dovetail.trace.loss.moves import worst_move
from dovetail.trace.loss.rounding import check_charge, least_variance, rounding_charge
from dovetail.trace.mechanisms.choose import NOISES, default_noise, design_noise
from dovetail.trace.mechanisms.closed_form import full_loss
from dovetail.trace.mechanisms.design import FLOOR, Budget
from dovetail.trace.prior import TracePrior
from dovetail.trace.sampler import check_step, default_step
from dovetail.trace.secrets import SecretTimes

MOST_POINTS = 1000  # beyond it matrices are cut into windows
MOST_SECRETS_SEARCHED = 12  # robust noise searches over every secret and every sighting
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
    """

    prior: TracePrior
    secrets: SecretTimes
    radius: float
    error: float
    noise: str = ""
    floor: float = FLOOR
    step: float = 0.0

    def __post_init__(self) -> None:
        positive("radius", self.radius)
        positive("error", self.error)
        scale = sqrt(float(np.trace(self.prior.covariance)))
        if self.error > 1e4 * scale:
            raise ParameterError(f"`error` must be at most {1e4 * scale:.3g} m, ten thousand times what traces move.")
        if self.radius > 1e4 * scale:
            raise ParameterError(
                f"`radius` must be at most {1e4 * scale:.3g} m, ten thousand times what traces move."
            )
        if self.noise and self.noise not in NOISES:
            raise ParameterError(f"`noise` must be one of {', '.join(NOISES)}, got {self.noise!r}.")
        check_step(self.grid, white=self.white, floor_share=self.floor)

    @property
    def white(self) -> float:
        """Variance of the white part of the noise on one coordinate, square metres."""
        return self.floor * self.error**2 / self.prior.dimensions

    @property
    def grid(self) -> float:
        """The public step, metres."""
        return self.step or default_step(self.white)

    def mechanism(self, times: Floats) -> str:
        """The mechanism for these times."""
        if self.noise:
            return self.noise
        if self.secrets.every_time or len(self.secrets.places(times)) > MOST_SECRETS_SEARCHED:
            return "all" if self.secrets.every_time else "mixed"
        return default_noise(len(times))

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
            )
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, DataError | ParameterError):
                raise
            raise DataError(f"is no plan as `dovetail trace plan` writes it ({type(error).__name__}).") from None


@dataclass(frozen=True, eq=False)
class TraceDesign:
    """Noise of one trace along the principal axes, and what it promises.

    Parameters
    ----------
    times : float array (n,), seconds
    axes : float array (d, d)
        Principal axes as rows.
    variances : float array (d,), square metres
    noises : list of float array (n, n)
        Covariance along each axis, in units of its prior variance.
    guarantee : TraceGuarantee
    """

    times: Floats
    axes: Floats
    variances: Floats
    noises: tuple[Floats, ...]
    guarantee: TraceGuarantee


def joint_noise(design: TraceDesign) -> Floats:
    """Covariance (n d, n d) of a design's noise in square metres, coordinates of a point side by side."""
    parts = zip(design.noises, design.variances, design.axes, strict=True)
    return np.asarray(sum(np.kron(noise * variance, np.outer(axis, axis)) for noise, variance, axis in parts))


def design_trace(plan: TracePlan, times: Floats) -> TraceDesign:
    """The noise for a trace with these time stamps; it reads nothing else of the trace.

    Raises
    ------
    UnsupportedError
        More points than matrices can hold, a kernel that is singular at the secret, or a step that costs more than a
        twentieth of mu.
    """
    stamps = sorted_times(times)
    if len(stamps) > MOST_POINTS:
        raise UnsupportedError(
            f"a trace must have at most {MOST_POINTS:,} points here, got {len(stamps):,}; cut it into windows."
        )
    # clock windows depend on absolute times; everything else on gaps alone, so one design serves many traces
    shown = stamps - stamps[0] if plan.secrets.from_start else stamps
    return _design(plan, shown.tobytes())


@lru_cache(maxsize=64)
def _design(plan: TracePlan, stamps: bytes) -> TraceDesign:
    times = np.frombuffer(stamps)
    secrets = plan.secrets.places(times)
    variances, axes = plan.prior.axes()
    kernel, name = plan.prior.kernel, plan.mechanism(times)
    shares = _shares(plan, times, secrets, variances)
    noises: list[Floats] = []
    for k, (share, variance) in enumerate(zip(shares, variances, strict=True)):
        if k and np.isclose(share / variance, shares[0] / variances[0], rtol=1e-9, atol=0.0):
            noises.append(noises[0])
            continue
        budget = Budget(len(times), share * plan.error**2 / variance, plan.floor)
        noises.append(design_noise(name, kernel, times, secrets, budget).noise)
    guarantee = guarantee_of(plan, times, noises, name)
    return TraceDesign(times, axes, variances, tuple(noises), guarantee)


def _shares(plan: TracePlan, times: Floats, secrets: list[tuple[int, ...]], variances: Floats) -> Floats:
    """The share of the budget of each axis: equal losses, by the closed form of the first secret location."""
    if len(variances) == 1 or np.allclose(variances, variances[0], rtol=1e-9, atol=0.0):
        return np.full(len(variances), 1.0 / len(variances))
    from scipy.optimize import brentq

    prior, place = plan.prior.kernel.matrix(times), secrets[0][0]

    def loss(share: float, variance: float) -> float:
        return full_loss(prior, place, Budget(len(times), share * plan.error**2 / variance, plan.floor)) / variance

    first = brentq(lambda s: np.log(loss(s, variances[0]) / loss(1.0 - s, variances[1])), 1e-6, 1.0 - 1e-6)
    return np.array([first, 1.0 - first])


def guarantee_of(plan: TracePlan, times: Floats, noises: list[Floats], name: str) -> TraceGuarantee:
    """The guarantee of these covariances, each loss computed from the matrix that is sampled."""
    variances, _ = plan.prior.axes()
    white = min(least_variance(noise) * variance for noise, variance in zip(noises, variances, strict=True))
    charge = rounding_charge(plan.grid, plan.prior.dimensions * len(times), white)  # every point is rounded
    found: list[SecretLoss] = []
    worst: dict[str, float] = {}
    secrets = plan.secrets.places(times)
    known = adversaries(plan.prior.kernel, times)
    for place in secrets:
        moves = {}
        for one in known:
            told = _told(one, place, noises, variances)
            moves[one.name] = worst_move(told).upper
            if one is known[0]:
                mu = plan.radius * sqrt(moves[one.name]) + charge
                found.append(_secret_loss(one, place, told, times, variances, mu))
        moves[SIGHTING] = _sighted(known[0], place, noises, variances)
        for who, move in moves.items():
            worst[who] = max(worst.get(who, 0.0), plan.radius * sqrt(move) + charge)
    own = worst.pop(known[0].name)
    check_charge(charge, own, plan.grid)
    return TraceGuarantee(own, plan.radius, tuple(found), worst, plan.error, name)


def _told(one: Adversary, place: tuple[int, ...], noises: list[Floats], variances: Floats) -> list[Information]:
    """Information along each axis, per square metre."""
    seen = condition(one.prior, place)
    plain: dict[int, Information] = {}
    told = []
    for noise, variance in zip(noises, variances, strict=True):
        unit = plain.setdefault(id(noise), information(seen, noise))
        told.append(Information(unit.matrix / variance, unit.error))
    return told


def _secret_loss(
    one: Adversary, place: tuple[int, ...], told: list[Information], times: Floats, variances: Floats, mu: float
) -> SecretLoss:
    seen = condition(one.prior, place)
    widths = [posterior_width(each.posterior(seen.variance * v)) for each, v in zip(told, variances, strict=True)]
    return SecretLoss(place, float(times[place[0]] - times[0]), float(times[place[-1]] - times[0]), mu, min(widths))


def _sighted(own: Adversary, place: tuple[int, ...], noises: list[Floats], variances: Floats) -> float:
    """The worst move when one other true location is known, over all of them; infinite when it tells the secret."""
    seen = condition(own.prior, place)
    if len(seen.secret) == len(own.prior):
        return inf
    each = [
        sightings(seen, own.prior, noise).max() / variance for noise, variance in zip(noises, variances, strict=True)
    ]
    return float(max(each)) * len(place) * (1.0 + 1e-6)

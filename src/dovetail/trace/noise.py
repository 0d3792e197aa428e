"""The noise of one trace along its principal axes: as matrices, window by window, or as products for long traces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from math import inf, sqrt

import numpy as np
from scipy.linalg import block_diag
from scipy.optimize import brentq

from dovetail.core.certified import Bracket
from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.trace.closed_form import full_loss
from dovetail.trace.descent import Budget, Design
from dovetail.trace.kernels import Floats, Kernel, sorted_times
from dovetail.trace.loss import (
    NO_NUGGET,
    OWN,
    SIGHTING,
    UNKNOWN_MEAN,
    Information,
    adversary_kernels,
    condition,
    information,
    limit_of_mean,
    posterior_width,
    sightings,
    worst_move,
)
from dovetail.trace.mechanisms import correlated_noise, default_design, design_noise
from dovetail.trace.plan import SecretLoss, TraceGuarantee, TracePlan
from dovetail.trace.posterior_loss import (
    Elsewhere,
    FarTold,
    Posterior,
    added,
    added_beside_sighting,
    check_charge,
    far_told,
    least_variance,
    rounding_charge,
    sighting_beyond,
    unknown_mean_added,
)
from dovetail.trace.regular import RegularNoise

# Where a long trace is cut into windows of independent noise: a function of the number of points and the secrets.


Window = tuple[int, int]  # first point, and one beyond the last


def cut(n: int, secrets: Sequence[tuple[int, ...]], most: int) -> list[Window]:
    """Windows of at most `most` points; secrets lie in the middle of theirs, as far as there is room.

    Parameters
    ----------
    n : int
        Points of the trace.
    secrets : list of tuple of int
        Positions; those of one secret stay in one window.
    most : int, at least 2

    Examples
    --------
    >>> cut(100, [(50,)], 30)
    [(0, 18), (18, 36), (36, 66), (66, 83), (83, 100)]
    """
    homes = _homes(n, _groups(secrets, most), most)
    windows: list[Window] = []
    for (_, before), (start, end) in pairwise([(0, 0), *homes, (n, n)]):
        windows += _pieces(before, start, most)
        windows += [(start, end)] if end > start else []
    return _without_single_points(windows)


def _groups(secrets: Sequence[tuple[int, ...]], most: int) -> list[Window]:
    """First and last point of secrets that share a window: they overlap, or lie within half a window."""
    found: list[Window] = []
    for first, last in sorted((min(places), max(places)) for places in secrets):
        if last - first >= most:
            raise UnsupportedError(
                f"a secret of times that are secret together must fit into a window of {most:,} points, got "
                f"{last - first + 1:,}; choose larger windows or a shorter secret."
            )
        if found and (first <= found[-1][1] or last - found[-1][0] < most // 2):
            joined = (found[-1][0], max(last, found[-1][1]))
            if joined[1] - joined[0] >= most:
                raise UnsupportedError(f"secrets that overlap must fit into a window of {most:,} points.")
            found[-1] = joined
        else:
            found.append((first, last))
    return found


def _homes(n: int, groups: Sequence[Window], most: int) -> list[Window]:
    """A window around each group, which ends half way to the next."""
    homes: list[Window] = []
    for i, (first, last) in enumerate(groups):
        room = most - (last - first + 1)
        after_last = homes[-1][1] if homes else 0
        limit = n if i + 1 == len(groups) else (last + groups[i + 1][0] + 1) // 2
        start = max(after_last, first - room // 2)
        homes.append((start, max(last + 1, min(limit, start + most))))
    return homes


def _pieces(start: int, end: int, most: int) -> list[Window]:
    """Nearly equal pieces."""
    if end <= start:
        return []
    count = -(-(end - start) // most)
    ends = [start + (end - start) * i // count for i in range(count + 1)]
    return list(pairwise(ends))


def _without_single_points(windows: list[Window]) -> list[Window]:
    """A window of one point joins its neighbour."""
    found: list[Window] = []
    for start, end in windows:
        if found and (end - start == 1 or found[-1][1] - found[-1][0] == 1):
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


@dataclass(frozen=True, eq=False)
class TraceNoise(ABC):
    """Noise of one trace, and what it promises. Law: draws along axis k have covariance `axis_noise(k)`.

    Parameters
    ----------
    times : float array (n,), seconds
    axes : float array (d, d)
        Principal axes as rows.
    variances : float array (d,), square metres
        Prior variance along each axis, the unit of the noise along it.
    guarantee : TraceGuarantee
    """

    times: Floats
    axes: Floats
    variances: Floats
    guarantee: TraceGuarantee

    @abstractmethod
    def draw_axis(self, k: int, rng: Entropy) -> Floats:
        """One draw (n,) along axis k."""

    @abstractmethod
    def axis_noise(self, k: int) -> Floats:
        """Its covariance (n, n), in units of the axis's prior variance; wants memory for it."""

    @abstractmethod
    def axis_variances(self, k: int) -> Floats:
        """The diagonal of that covariance (n,)."""

    def worst_error(self) -> float:
        """Root mean squared distance between the true and the released place of the point that moves most, metres."""
        parts = [self.axis_variances(k) * variance for k, variance in enumerate(self.variances)]
        return float(np.sqrt(np.sum(parts, axis=0).max()))


@dataclass(frozen=True, eq=False)
class TraceDesign(TraceNoise):
    """Noise as one matrix for each axis.

    Parameters
    ----------
    noises : tuple of float array (n, n)
    """

    noises: tuple[Floats, ...]

    def draw_axis(self, k: int, rng: Entropy) -> Floats:
        return correlated_noise(self.noises[k], rng)

    def axis_noise(self, k: int) -> Floats:
        return self.noises[k]

    def axis_variances(self, k: int) -> Floats:
        return np.diag(self.noises[k])


@dataclass(frozen=True, eq=False)
class WindowedDesign(TraceNoise):
    """Noise that is independent between windows.

    Parameters
    ----------
    windows : tuple of (first, one beyond the last)
    blocks : tuple of tuple of float array (m, m)
        For each window, the covariance along each axis.
    """

    windows: tuple[Window, ...]
    blocks: tuple[tuple[Floats, ...], ...]

    def near(self, i: int) -> Window:
        """First point, and one beyond the last, of a window with its neighbours."""
        return self.windows[max(0, i - 1)][0], self.windows[min(len(self.windows), i + 2) - 1][1]

    def part(self, i: int) -> TraceDesign:
        """The noise of a window with its neighbours, under the guarantee of the whole."""
        start, end = self.near(i)
        beside = self.blocks[max(0, i - 1) : i + 2]
        noises = tuple(np.asarray(block_diag(*(block[k] for block in beside))) for k in range(len(self.variances)))
        return TraceDesign(self.times[start:end], self.axes, self.variances, self.guarantee, noises)

    def draw_axis(self, k: int, rng: Entropy) -> Floats:
        return np.concatenate([correlated_noise(block[k], rng) for block in self.blocks])

    def axis_noise(self, k: int) -> Floats:
        return np.asarray(block_diag(*(block[k] for block in self.blocks)))

    def axis_variances(self, k: int) -> Floats:
        return np.concatenate([np.diag(block[k]) for block in self.blocks])


@dataclass(frozen=True, eq=False)
class LongDesign(TraceNoise):
    """Noise for one secret location of a long trace at equal steps, never formed.

    Parameters
    ----------
    noises : tuple of RegularNoise
    """

    noises: tuple[RegularNoise, ...]

    def draw_axis(self, k: int, rng: Entropy) -> Floats:
        return self.noises[k].draw(rng)

    def axis_noise(self, k: int) -> Floats:
        return self.noises[k].matrix()

    def axis_variances(self, k: int) -> Floats:
        return self.noises[k].variances()


def joint_noise(design: TraceNoise) -> Floats:
    """Covariance (n d, n d) of a design's noise in square metres, coordinates of a point side by side."""
    parts = zip(range(len(design.variances)), design.variances, design.axes, strict=True)
    return np.asarray(sum(np.kron(design.axis_noise(k) * v, np.outer(axis, axis)) for k, v, axis in parts))


# What noise in matrices promises: the loss of every secret against every adversary, from what is sampled.
#
# A zone is a piece of a trace that is computed exactly: all of it, or a window with its neighbours, beside windows of
# independent noise whose part is bounded.


UNKNOWN = "unknown mean"
SIGHTING_NO_NUGGET = f"{SIGHTING}, {NO_NUGGET}"
Secret = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Zone:
    """A piece of a trace whose loss is computed exactly.

    Parameters
    ----------
    times : float array (n,), seconds
    noises : tuple of float array (n, n)
        Along each axis; the same object where two axes have the same noise.
    secrets : list of tuple of int
        Positions within the zone.
    elsewhere : dict of str to tuple of Elsewhere
        For each adversary's kernel, the windows beyond, for each axis; empty where there are none.
    """

    times: Floats
    noises: tuple[Floats, ...]
    secrets: Sequence[Secret]
    elsewhere: Mapping[str, tuple[Elsewhere, ...]]


@dataclass(frozen=True, eq=False)
class ZoneLoss:
    """Loss of a zone, as worst moves of one metre.

    Parameters
    ----------
    moves : dict of str to float array (k,)
        For each adversary, an upper bound for each secret, per square metre.
    alone : float array (k,)
        The same for the kernel itself, without the windows beyond.
    widths : float array (k,), metres
    """

    moves: dict[str, Floats]
    alone: Floats
    widths: Floats


def zone_loss(kernel: Kernel, zone: Zone, variances: Floats) -> ZoneLoss:
    """The loss of every secret of a zone against every adversary."""
    moves: dict[str, Floats] = {}
    last: dict[str, Floats] = {}
    for name, model in adversary_kernels(kernel).items():
        try:
            views = _views(model, zone, zone.elsewhere.get(name, ()))
            moves[name] = _moves([view.told for view in views], variances)
            if name == OWN:
                alone = _moves([view.alone for view in views], variances)
                widths = _widths(views, variances)
                last[UNKNOWN] = _moves([view.unknown_mean() for view in views], variances)
            if name in (OWN, NO_NUGGET):
                last[SIGHTING if name == OWN else SIGHTING_NO_NUGGET] = _sighted(views, variances)
        except UnsupportedError:
            if name == OWN:
                raise
            # too smooth for doubles: nothing is promised against this one
            moves[name] = np.full(len(zone.secrets), inf)
            last |= {SIGHTING_NO_NUGGET: moves[name]} if name == NO_NUGGET else {}
    return ZoneLoss({**moves, **last}, alone, widths)


def _moves(told: Sequence[list[Information]], variances: Floats) -> Floats:
    """Upper bound on the worst move of each secret, from its information along each axis."""
    found = []
    for each in zip(*told, strict=True):
        scaled = [Information(one.matrix / v, one.error) for one, v in zip(each, variances, strict=True)]
        found.append(worst_move(scaled).upper)
    return np.array(found)


def _views(model: Kernel, zone: Zone, elsewhere: tuple[Elsewhere, ...]) -> list[_View]:
    """One view for each axis; axes with the same noise share it."""
    prior, found = model.matrix(zone.times), dict[int, _View]()
    for k, noise in enumerate(zone.noises):
        if id(noise) not in found:
            seen = Posterior.of(prior, noise)
            far = far_told(model, zone.times, noise, seen, elsewhere[k]) if elsewhere else None
            found[id(noise)] = _View(noise, seen, far, zone.secrets)
    return [found[id(noise)] for noise in zone.noises]


@dataclass(frozen=True, eq=False)
class _View:
    """One axis of a zone, as one adversary sees it."""

    noise: Floats
    seen: Posterior
    far: FarTold | None
    secrets: Sequence[Secret]

    @property
    def single(self) -> list[int]:
        """Places that are secret by themselves."""
        return [secret[0] for secret in self.secrets if len(secret) == 1]

    @cached_property
    def alone(self) -> list[Information]:
        """The information of the zone itself about each secret."""
        basic = iter(self.seen.losses(self.single) if self.single else [])
        prior = self.seen.prior
        return [
            _scalar(next(basic)) if len(secret) == 1 else information(condition(prior, secret), self.noise)
            for secret in self.secrets
        ]

    @cached_property
    def told(self) -> list[Information]:
        """The same with an upper bound on what the windows beyond add."""
        if self.far is None:
            return self.alone
        return [
            Information(one.matrix + added(self.seen, self.far, secret), one.error)
            for one, secret in zip(self.alone, self.secrets, strict=True)
        ]

    def unknown_mean(self) -> list[Information]:
        """The same where the mean of the trace is unknown: exactly, or beside other windows as a bound."""
        if self.far is None:
            whole = Posterior.of(self.seen.prior + UNKNOWN_MEAN, self.noise)
            found = _View(self.noise, whole, None, self.secrets).alone
            return [
                Information(one.matrix + limit_of_mean(self.seen.prior, secret), one.error)
                for one, secret in zip(found, self.secrets, strict=True)
            ]
        return [
            Information(one.matrix + unknown_mean_added(self.seen.prior, secret), one.error)
            for one, secret in zip(self.told, self.secrets, strict=True)
        ]

    def sighted(self) -> Floats:
        """maxeig J of each secret when the location at the worst other time is known; infinite where that tells."""
        basic: Iterator[Floats] = iter(self.seen.sightings(self.single) if self.single else [])
        pairs = zip(self.secrets, self.told, strict=True)
        return np.array([self._sighted(secret, own, basic) for secret, own in pairs])

    def _sighted(self, secret: Secret, own: Information, basic: Iterator[Floats]) -> float:
        prior = self.seen.prior
        if len(secret) == len(prior):
            return inf
        values = next(basic) if len(secret) == 1 else sightings(condition(prior, secret), prior, self.noise)
        if self.far is not None:
            values = values + added_beside_sighting(self.seen, self.far, secret)
            values = np.append(values, sighting_beyond(self.seen, self.far, secret, own.largest.upper))
        return float(values.max())


def _scalar(loss: Bracket) -> Information:
    middle = 0.5 * (loss.lower + loss.upper)
    return Information(np.array([[middle]]), (loss.upper - middle) / middle if middle > 0.0 else 0.0)


def _sighted(views: Sequence[_View], variances: Floats) -> Floats:
    each = [view.sighted() / v for view, v in zip(views, variances, strict=True)]
    counts = [len(secret) for secret in views[0].secrets]
    return np.asarray(np.max(each, axis=0) * counts * (1.0 + 1e-6))


def _widths(views: Sequence[_View], variances: Floats) -> Floats:
    """Twice the least posterior standard deviation of each secret, over all axes."""
    found = []
    for view, variance in zip(views, variances, strict=True):
        blocks = [view.seen.prior[np.ix_(secret, secret)] for secret in view.secrets]
        told = zip(view.told, blocks, strict=True)
        found.append([posterior_width(one.posterior(block)) * sqrt(variance) for one, block in told])
    return np.asarray(np.min(found, axis=0))


def secret_losses(
    places: Sequence[Secret], times: Floats, moves: Floats, widths: Floats, radius: float, charge: float
) -> list[SecretLoss]:
    """The statement about each secret; `places` are positions in the whole trace."""
    return [
        SecretLoss(
            place,
            float(times[place[0]] - times[0]),
            float(times[place[-1]] - times[0]),
            radius * sqrt(move) + charge,
            float(width),
        )
        for place, move, width in zip(places, moves, widths, strict=True)
    ]


# The noise of one trace under a plan, from its time stamps alone, and its guarantee.


MOST_POINTS = 1000  # as one matrix
MOST_TO_SHARE = 300  # points around a secret that decide how axes share the budget


def design_trace(plan: TracePlan, times: Floats) -> TraceDesign:
    """The noise for a trace with these time stamps as one matrix; it reads nothing else of the trace.

    Raises
    ------
    UnsupportedError
        More points than one matrix can hold, a kernel that is singular at the secret, or a step that costs more than
        a twentieth of mu.
    """
    stamps = shown_times(plan, times)
    if len(stamps) > MOST_POINTS:
        raise UnsupportedError(
            f"a trace must have at most {MOST_POINTS:,} points here, got {len(stamps):,}; use design_release."
        )
    return _design(plan, stamps.tobytes())


def shown_times(plan: TracePlan, times: Floats) -> Floats:
    """Checked time stamps; from 0 unless secrets are named by the clock, so that one design serves many traces."""
    stamps = sorted_times(times)
    return stamps - stamps[0] if plan.secrets.from_start else stamps


@lru_cache(maxsize=64)
def _design(plan: TracePlan, stamps: bytes) -> TraceDesign:
    times = np.frombuffer(stamps)
    secrets = plan.secrets.places(times)
    variances, axes = plan.prior.axes()
    name, noises = axis_noises(plan, times, secrets)
    guarantee = _guarantee(plan, times, noises, secrets, name)
    return TraceDesign(times, axes, variances, guarantee, noises)


def axis_noises(plan: TracePlan, times: Floats, secrets: Sequence[Secret]) -> tuple[str, tuple[Floats, ...]]:
    """The mechanism, and its covariance along each axis; one object where two axes have the same."""
    variances, _ = plan.prior.axes()
    shares = axis_shares(plan, times, secrets[0][0], len(times) * plan.error**2)
    name, noises = plan.noise, list[Floats]()
    for share, variance in zip(shares, variances, strict=True):
        if noises and np.isclose(share / variance, shares[0] / variances[0], rtol=1e-9, atol=0.0):
            noises.append(noises[0])
            continue
        budget = Budget(len(times), share * plan.error**2 / variance, plan.floor)
        made = _axis(plan, name, times, secrets, budget)
        name = made.name
        noises.append(made.noise)
    return name, tuple(noises)


def _axis(plan: TracePlan, name: str, times: Floats, secrets: Sequence[Secret], budget: Budget) -> Design:
    if name:
        return design_noise(name, plan.prior.kernel, times, secrets, budget)
    return default_design(plan.prior.kernel, times, secrets, budget, every_time=plan.secrets.every_time)


def axis_shares(plan: TracePlan, times: Floats, place: int, total: float) -> Floats:
    """The share of a total budget of each axis: equal losses, by the closed form of one secret location.

    How the budget is shared changes no statement; far from the secret nothing matters for it.
    """
    variances, _ = plan.prior.axes()
    if len(variances) == 1 or np.allclose(variances, variances[0], rtol=1e-9, atol=0.0):
        return np.full(len(variances), 1.0 / len(variances))
    start = max(0, min(place - MOST_TO_SHARE // 2, len(times) - MOST_TO_SHARE))
    near = times[start : start + MOST_TO_SHARE]
    prior, here = plan.prior.kernel.matrix(near), place - start

    def loss(share: float, variance: float) -> float:
        budget = Budget(len(near), share * total / len(near) / variance, plan.floor)
        return full_loss(prior, here, budget) / variance

    first = brentq(lambda s: np.log(loss(s, variances[0]) / loss(1.0 - s, variances[1])), 1e-6, 1.0 - 1e-6)
    return np.array([first, 1.0 - first])


def _guarantee(
    plan: TracePlan, times: Floats, noises: tuple[Floats, ...], secrets: Sequence[Secret], name: str
) -> TraceGuarantee:
    """The guarantee of these covariances, each loss computed from the matrix that is sampled."""
    variances, _ = plan.prior.axes()
    white = min(least_variance(noise) * variance for noise, variance in zip(noises, variances, strict=True))
    charge = rounding_charge(plan.grid, plan.prior.dimensions * len(times), white)  # every point is rounded
    found = zone_loss(plan.prior.kernel, Zone(times, noises, secrets, {}), variances)
    return stated(plan, times, secrets, found.moves, found.widths, charge, name)


def stated(
    plan: TracePlan,
    times: Floats,
    secrets: Sequence[Secret],
    moves: dict[str, Floats],
    widths: Floats,
    charge: float,
    name: str,
) -> TraceGuarantee:
    """The guarantee of the worst moves (k,) of each secret for each adversary, the kernel itself first."""
    worst = {who: float(plan.radius * np.sqrt(each.max()) + charge) for who, each in moves.items()}
    own_name = next(iter(moves))
    losses = secret_losses(secrets, times, moves[own_name], widths, plan.radius, charge)
    own = worst.pop(own_name)
    check_charge(charge, own, plan.grid)
    return TraceGuarantee(own, plan.radius, tuple(losses), worst, plan.error, name)

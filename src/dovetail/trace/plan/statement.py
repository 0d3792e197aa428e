"""What noise in matrices promises: the loss of every secret against every adversary, from what is sampled.

A zone is a piece of a trace that is computed exactly: all of it, or a window with its neighbours, beside windows of
independent noise whose part is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, sqrt

import numpy as np

from dovetail.core.bracket import Bracket
from dovetail.core.errors import UnsupportedError
from dovetail.trace.guarantee import SecretLoss
from dovetail.trace.kernels.kernel import Floats, Kernel
from dovetail.trace.loss.adversaries import (
    NO_NUGGET,
    OWN,
    UNKNOWN_MEAN,
    adversary_kernels,
    limit_of_mean,
    sightings,
)
from dovetail.trace.loss.conditional import condition
from dovetail.trace.loss.evaluate import SIGHTING
from dovetail.trace.loss.information import Information, information, posterior_width
from dovetail.trace.loss.moves import worst_move
from dovetail.trace.loss.posterior import Posterior
from dovetail.trace.loss.windows import (
    Elsewhere,
    FarTold,
    added,
    added_beside_sighting,
    far_told,
    sighting_beyond,
    unknown_mean_added,
)

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
    """What a zone tells, as worst moves of one metre.

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

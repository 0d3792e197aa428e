"""Rehearse an attack: release known traces many times, and measure how near each adversary comes to a secret place.

Beside every measured number stands what the model predicts, and the same attack on independent noise of equal error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import ndtr

from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.trace.closed_form import uniform
from dovetail.trace.descent import Budget
from dovetail.trace.kernels import Floats, Kernel, scale_nugget
from dovetail.trace.loss import UNKNOWN_MEAN, condition, sightings
from dovetail.trace.mechanisms import correlated_noise
from dovetail.trace.noise import TraceDesign, WindowedDesign
from dovetail.trace.plan import TracePlan
from dovetail.trace.release_design import design_release, draw_noise
from dovetail.trace.trace import Trace

# The Gaussian smoother: the posterior of a trace given its release, for a prior that somebody holds.
#
# .. math:: E[X \mid Z] = m + \Sigma (\Sigma + G)^{-1} (Z - m), \quad
#           \mathrm{Cov}(X \mid Z) = \Sigma - \Sigma (\Sigma + G)^{-1} \Sigma
#
# The noise covariance G is public: every adversary here but the random walk uses it. The mean of the trace is unknown
# to them: a constant of large prior variance.


@dataclass(frozen=True, eq=False)
class Smoother:
    """Posterior mean and variance at some points, for one coordinate; linear in what is released.

    Parameters
    ----------
    gain : float array (k, n)
        Of the release.
    sighting : float array (k,)
        Of the one true location that is known; 0 without one.
    variance : float array (k,)
        Posterior variance, if the prior is right.
    """

    gain: Floats
    sighting: Floats
    variance: Floats

    def estimate(self, released: Floats, seen: Floats | float = 0.0) -> Floats:
        """Posterior means (k, ..) from releases (n, ..) and sightings (..)."""
        middle = released.mean(axis=0)
        return np.asarray(
            middle + self.gain @ (released - middle) + np.multiply.outer(self.sighting, np.asarray(seen) - middle)
        )


def smoother(prior: Floats, noise: Floats, places: list[int], *, known: int | None = None) -> Smoother:
    """The smoother of a prior (n, n) for noise (n, n) at `places`; `known` is a point whose location was seen."""
    whole = prior + UNKNOWN_MEAN * float(np.mean(np.diag(prior)))
    if known is None:
        solved = np.asarray(cho_solve(cho_factor(whole + noise, lower=True), whole[:, places]))
        variance = np.diag(whole)[places] - np.einsum("nk,nk->k", whole[:, places], solved)
        return Smoother(solved.T, np.zeros(len(places)), np.maximum(variance, 0.0))
    column = whole[:, known] / whole[known, known]
    rest = whole - np.outer(column, whole[known])
    solved = np.asarray(cho_solve(cho_factor(rest + noise, lower=True), rest[:, places]))
    variance = np.diag(rest)[places] - np.einsum("nk,nk->k", rest[:, places], solved)
    return Smoother(solved.T, column[places] - solved.T @ column, np.maximum(variance, 0.0))


RATIOS = np.geomspace(1e-4, 1e2, 25)  # variance of a step of the random walk over that of the noise


def random_walk_estimate(times: Floats, released: Floats, places: list[int]) -> Floats:
    """The Kalman smoother of a random walk in white noise, both fitted to the release: it knows no kernel and no G.

    Parameters
    ----------
    times : float array (n,)
    released : float array (n, d)

    Returns
    -------
    float array (k, d)
    """
    steps = (times - times[0]) / float(np.median(np.diff(times)))
    walk = np.minimum(steps[:, None], steps[None, :]) + 1e3 * len(times)  # started anywhere
    centred = released - released.mean(axis=0)
    best: tuple[float, Floats] | None = None
    for ratio in RATIOS:
        factor = cho_factor(ratio * walk + np.eye(len(times)), lower=True)
        solved = np.asarray(cho_solve(factor, centred))
        scale = float((centred * solved).sum()) / centred.size
        score = 0.5 * centred.size * np.log(scale) + centred.shape[1] * float(np.log(np.diag(factor[0])).sum())
        if best is None or score < best[0]:
            best = (score, ratio * walk[places] @ solved)
    assert best is not None
    return np.asarray(released.mean(axis=0) + best[1], dtype=np.float64)


RIGHT, WRONG, SMOOTH, WALK = "knows the kernel", "knows another kernel", "believes in no nugget", "random walk"
SEEN = " and one sighting"
WRONG_FACTOR = 2.0  # of the length-scale, what the second adversary believes


@dataclass(frozen=True)
class AttackResult:
    """One adversary against one mechanism, over traces and draws.

    Parameters
    ----------
    mechanism, adversary : str
    success : float
        Share of guesses within the radius of the true place.
    interval : (float, float)
        Two standard errors over traces.
    predicted : float or None
        Success if the adversary's prior is right.
    error : float, metres
        Root mean squared distance of the guess.
    width_ratio : float or None
        Measured over predicted posterior standard deviation; 1 where the adversary's prior is right.
    width_ratio_error : float or None
        Its standard error over traces.
    """

    mechanism: str
    adversary: str
    success: float
    interval: tuple[float, float]
    predicted: float | None
    error: float
    width_ratio: float | None
    width_ratio_error: float | None


@dataclass(frozen=True, eq=False)
class _Guesses:
    """Squared distances (draws, secrets) of one trace, and posterior variances (secrets, d) where there are some."""

    squares: Floats
    variances: Floats | None


def rehearse_attack(plan: TracePlan, traces: Sequence[Trace], *, draws: int, rng: Entropy) -> list[AttackResult]:
    """Attack `draws` releases of every trace, under the plan and under independent noise of the same error.

    Parameters
    ----------
    plan : TracePlan
    traces : list of Trace
        Their true locations are known: a rehearsal.
    draws : int
    rng : Entropy

    Raises
    ------
    UnsupportedError
        Where a trace is too long for the attack.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> from dovetail.trace.kernels import Matern32
    >>> from dovetail.trace.plan import TracePrior
    >>> from dovetail.trace.trace import SecretTimes
    >>> prior = TracePrior(Matern32(length=60.0), 1e4 * np.eye(2))
    >>> plan = TracePlan(prior, SecretTimes(((60.0, 60.0),)), radius=15.0, error=15.0)
    >>> trace = Trace.of("a", np.arange(0.0, 120.0, 10.0), np.random.default_rng(1).normal(size=(12, 2)))
    >>> rehearse_attack(plan, [trace], draws=20, rng=simulation(1))[0].mechanism
    'robust'
    """
    found: dict[tuple[str, str], list[_Guesses]] = {}
    for trace in traces:
        for scene in attacked_traces(plan, trace):
            ours = scene.design
            spot = _worst_sighting(plan.prior.kernel, ours, scene.places)  # the same one against both
            for name, design in ((ours.guarantee.noise, ours), ("uniform", independent_noise(plan, ours))):
                if name == "uniform" and ours.guarantee.noise == "uniform" and design is not ours:
                    continue  # the plan itself is the baseline
                noises = np.stack([draw_noise(design, rng=rng) for _ in range(draws)], axis=2)
                released = scene.trace.points[:, :, None] + noises
                for who, guesses in _attacks(plan.prior.kernel, design, scene, released, spot).items():
                    found.setdefault((name, who), []).append(guesses)
    return [_result(*key, guesses, plan.radius) for key, guesses in found.items()]


@dataclass(frozen=True, eq=False)
class AttackedTrace:
    """Reading of an adversary: a trace, or a window of it with its neighbours.

    Parameters
    ----------
    trace : Trace
    design : TraceDesign
        Its noise; the guarantee is that of the whole trace.
    places : list of int
        Secret points, from 0.
    """

    trace: Trace
    design: TraceDesign
    places: list[int]


def attacked_traces(plan: TracePlan, trace: Trace) -> list[AttackedTrace]:
    """The whole trace, or every window that holds a secret, with its neighbours.

    Raises
    ------
    UnsupportedError
        Noise that is never formed: too many points for smoothers of matrices.
    """
    design = design_release(plan, trace.times)
    places = sorted({place for secret in plan.secrets.places(trace.times) for place in secret})
    if isinstance(design, TraceDesign):
        return [AttackedTrace(trace, design, places)]
    if not isinstance(design, WindowedDesign):
        raise UnsupportedError(
            f"trace {trace.name!r}: {trace.n:,} points in one piece are too many for a rehearsal; use --window, "
            "or rehearse shorter traces."
        )
    found = []
    for i, (first, last) in enumerate(design.windows):
        inside = [place for place in places if first <= place < last]
        if inside:
            start, end = design.near(i)
            part = Trace(trace.name, trace.times[start:end], trace.points[start:end])
            found.append(AttackedTrace(part, design.part(i), [place - start for place in inside]))
    return found


def synthetic_traces(plan: TracePlan, like: Sequence[Trace], rng: Entropy) -> list[Trace]:
    """Traces drawn from the prior itself, with the time stamps of others: the kernel is right for them."""
    variances, axes = plan.prior.axes()
    made = []
    for trace in like:
        prior = plan.prior.kernel.matrix(trace.times) + 1e-9 * np.eye(trace.n)
        drawn = [np.sqrt(variance) * correlated_noise(prior, rng) for variance in variances]
        made.append(Trace(trace.name, trace.times, np.column_stack(drawn) @ axes))
    return made


def independent_noise(plan: TracePlan, design: TraceDesign) -> TraceDesign:
    """Independent noise of the same error on every point."""
    n, d = len(design.times), plan.prior.dimensions
    noises = [uniform(Budget(n, plan.error**2 / d / variance)).noise for variance in design.variances]
    return TraceDesign(design.times, design.axes, design.variances, design.guarantee, tuple(noises))


def _attacks(
    kernel: Kernel, design: TraceDesign, scene: AttackedTrace, released: Floats, spot: int
) -> dict[str, _Guesses]:
    """Every adversary's guesses at every secret of one scene; released (n, d, draws)."""
    trace, places = scene.trace, scene.places
    found = {}
    smooth = scale_nugget(kernel, 0.0)
    models = {RIGHT: kernel, WRONG: kernel.stretched(WRONG_FACTOR), **({SMOOTH: smooth} if smooth != kernel else {})}
    for name, model in models.items():
        for seen in (None, spot):
            guesses = _smoothed(model, design, trace, released, places, seen)
            found[name + (SEEN if seen is not None else "")] = guesses
    walked = np.stack(
        [random_walk_estimate(trace.times, released[:, :, i], places) for i in range(released.shape[2])], axis=2
    )
    found[WALK] = _Guesses(((walked - trace.points[places][:, :, None]) ** 2).sum(axis=1).T, None)
    return found


def _worst_sighting(kernel: Kernel, design: TraceDesign, places: list[int]) -> int:
    """The time, outside the secret, at which a sighting tells most about the first secret place."""
    prior = kernel.matrix(design.times)
    values = sightings(condition(prior, [places[0]]), prior, design.noises[0])
    values[places] = 0.0
    return int(np.argmax(values))


def _smoothed(
    kernel: Kernel, design: TraceDesign, trace: Trace, released: Floats, places: list[int], seen: int | None
) -> _Guesses:
    prior = kernel.matrix(trace.times)
    turned = np.einsum("ed,ndr->ner", design.axes, released)
    truth = trace.points @ design.axes.T
    squares, variances = np.zeros((len(places), released.shape[2])), []
    for k, (noise, variance) in enumerate(zip(design.noises, design.variances, strict=True)):
        reader = smoother(prior, noise, places, known=seen)
        guess = reader.estimate(turned[:, k], 0.0 if seen is None else float(truth[seen, k]))
        squares = squares + (guess - truth[places, k][:, None]) ** 2
        variances.append(variance * reader.variance)
    return _Guesses(squares.T, np.stack(variances, axis=1))


def _result(mechanism: str, adversary: str, guesses: list[_Guesses], radius: float) -> AttackResult:
    each = np.array([np.mean(one.squares <= radius**2) for one in guesses])
    spread = float(each.std(ddof=1) / np.sqrt(len(each))) if len(each) > 1 else 0.5
    success = float(each.mean())
    ends = max(0.0, success - 2 * spread), min(1.0, success + 2 * spread)
    error = float(np.sqrt(np.mean([one.squares.mean() for one in guesses])))
    known = [one.variances for one in guesses if one.variances is not None]
    if len(known) < len(guesses):
        return AttackResult(mechanism, adversary, success, ends, None, error, None, None)
    predicted = float(np.mean([np.mean([chance_within(radius, v) for v in one]) for one in known]))
    ratios = np.array(
        [np.mean(one.squares.mean(axis=0) / v.sum(axis=1)) for one, v in zip(guesses, known, strict=True)]
    )
    ratio = float(np.sqrt(ratios.mean()))
    ratio_error = float(ratios.std(ddof=1) / np.sqrt(len(ratios)) / (2.0 * ratio)) if len(ratios) > 1 else None
    return AttackResult(mechanism, adversary, success, ends, predicted, error, ratio, ratio_error)


def chance_within(radius: float, variances: Floats) -> float:
    """Chance that a centred Gaussian with these variances along its axes lies within a disc, by quadrature.

    >>> round(chance_within(1.0, np.array([1.0, 1.0])), 6)
    0.393469
    """
    if (variances <= 0.0).all():
        return 1.0
    if len(variances) == 1:
        return float(2.0 * ndtr(radius / np.sqrt(variances[0])) - 1.0)
    angles = (np.arange(64) + 0.5) * (np.pi / 128)  # a quarter turn; smooth and periodic: midpoints converge fast
    first, second = np.maximum(variances, 1e-12 * variances.max())
    rate = np.cos(angles) ** 2 / first + np.sin(angles) ** 2 / second
    inside = (1.0 - np.exp(-0.5 * radius**2 * rate)) / rate
    return float(inside.mean() / np.sqrt(first * second))


# What a released trace is still good for: distances, dwell time, trip length, heat maps.


SLOW = 1.0  # metres a second: slower is dwelling
CELLS = (100.0, 1000.0)  # metres


@dataclass(frozen=True)
class TraceUtility:
    """Errors of released traces.

    Parameters
    ----------
    error : float, metres
        Mean distance of a point.
    dwell : float, seconds
        Mean absolute error of the time spent slower than 1 m/s.
    length : float
        Mean error of the trip length, as a share of it; released trips are longer.
    heat : dict of float to float
        Half the absolute difference of the heat maps of all points, for each cell size in metres; 0 to 1.
    """

    error: float
    dwell: float
    length: float
    heat: dict[float, float]


def utility(times: Sequence[Floats], true: Sequence[Floats], released: Sequence[Floats]) -> TraceUtility:
    """Utility of released points (n, d) beside the true ones, for several traces.

    Raises
    ------
    ParameterError
        Nowhere; the arrays are those of checked traces and of their releases.

    Examples
    --------
    >>> times, true = np.array([0.0, 60.0]), np.array([[0.0, 0.0], [60.0, 0.0]])
    >>> utility([times], [true], [true + [3.0, 4.0]]).error
    5.0
    """
    pairs = list(zip(times, true, released, strict=True))
    distances = np.concatenate([np.linalg.norm(z - x, axis=1) for _, x, z in pairs])
    dwell = [abs(_dwell(t, z) - _dwell(t, x)) for t, x, z in pairs]
    length = [_length(z) / max(_length(x), 1e-9) - 1.0 for _, x, z in pairs]
    whole, shown = np.concatenate(list(true)), np.concatenate(list(released))
    heat = {cell: heat_distance(whole, shown, cell) for cell in CELLS}
    return TraceUtility(float(distances.mean()), float(np.mean(dwell)), float(np.mean(length)), heat)


def heat_distance(first: Floats, second: Floats, cell: float) -> float:
    """Half the absolute difference of two heat maps with square cells of this side.

    >>> heat_distance(np.array([[0.0, 0.0], [10.0, 0.0]]), np.array([[0.0, 0.0], [90.0, 0.0]]), 50.0)
    0.5
    """
    both = np.floor(np.concatenate([first, second]) / cell).astype(np.int64)
    _, where = np.unique(both, axis=0, return_inverse=True)
    where = where.ravel()
    size = int(where.max()) + 1
    shares = [np.bincount(part, minlength=size) / len(part) for part in (where[: len(first)], where[len(first) :])]
    return float(0.5 * np.abs(shares[0] - shares[1]).sum())


def _length(points: Floats) -> float:
    return float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())


def _dwell(times: Floats, points: Floats) -> float:
    gaps = np.diff(times)
    return float(gaps[np.linalg.norm(np.diff(points, axis=0), axis=1) < SLOW * gaps].sum())

"""The noise of any trace: one matrix where that fits, otherwise products for one secret, or windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf, log, sqrt
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from dovetail.core.checks import positive
from dovetail.core.display import upward
from dovetail.core.entropy import entropy_or_system
from dovetail.core.errors import UnsupportedError
from dovetail.trace.descent import Budget
from dovetail.trace.kernels import Floats, Kernel
from dovetail.trace.loss import NO_NUGGET, OWN, SIGHTING, adversary_kernels
from dovetail.trace.mechanisms import on_grid, step_for
from dovetail.trace.noise import (
    MOST_POINTS,
    SIGHTING_NO_NUGGET,
    UNKNOWN,
    LongDesign,
    Secret,
    TraceNoise,
    Window,
    WindowedDesign,
    Zone,
    ZoneLoss,
    axis_noises,
    axis_shares,
    cut,
    design_trace,
    shown_times,
    stated,
    zone_loss,
)
from dovetail.trace.plan import TraceGuarantee, TracePlan, TracePrior
from dovetail.trace.posterior_loss import MOST_CHARGE, Elsewhere, crowd_of, least_variance, rounding_charge
from dovetail.trace.regular import RegularNoise, RegularPrior, design_regular, regular_loss, regular_sighting
from dovetail.trace.trace import SecretTimes, Trace

# A long trace in windows of independent noise: designed one by one, stated together.


WINDOW = 100  # points, where none is named
FADED, MOST_COMPUTED = 1e-11, 20_000  # correlation and points up to which other windows are computed
MOST_FADED = 1e-6  # correlation beyond which windows cannot be cut

Block = tuple[Floats, ...]


def design_windows(plan: TracePlan, times: Floats) -> WindowedDesign:
    """Noise that is independent between windows; a function of the times alone.

    A window without a secret has noise from the prior, of the same error. The statement about each secret counts
    its window and both neighbours exactly, and all others by an upper bound.
    """
    secrets = plan.secrets.places(times)
    windows = cut(len(times), [] if plan.secrets.every_time else secrets, plan.window or WINDOW)
    variances, axes = plan.prior.axes()
    homes = [[s for s in secrets if start <= s[0] and s[-1] < end] for start, end in windows]
    name, blocks = _blocks(plan, times, windows, homes)
    white = np.min([[least_variance(noise) for noise in block] for block in _single(blocks)], axis=0)
    charge = rounding_charge(plan.grid, plan.prior.dimensions * len(times), float((white * variances).min()))
    whole = _Cut(plan.prior.kernel, times, windows, blocks, variances, white)
    found = dict(whole.losses(homes))
    order = [(i, secret) for i in found for secret in homes[i]]
    moves = {who: np.concatenate([found[i].moves[who] for i in found]) for who in next(iter(found.values())).moves}
    widths = np.concatenate([found[i].widths for i in found])
    guarantee = stated(plan, times, [secret for _, secret in order], moves, widths, charge, name)
    alone = np.sqrt(np.concatenate([found[i].alone for i in found]))
    added = plan.radius * float((np.sqrt(moves[OWN]) - alone).max())
    cut_in = (
        f"the trace is cut into {len(windows):,} windows of independent noise at public times; each secret's loss "
        f"counts the windows beside its own, and all others as adding at most {upward(max(0.0, added))} to mu"
    )
    guarantee = replace(guarantee, caveats=(*guarantee.caveats, cut_in))
    return WindowedDesign(times, axes, variances, guarantee, tuple(windows), tuple(blocks))


def _blocks(
    plan: TracePlan, times: Floats, windows: Sequence[Window], homes: Sequence[Sequence[Secret]]
) -> tuple[str, list[Block]]:
    """The mechanism of windows with secrets, and the noise of every window; the same gaps share one design."""
    made: dict[tuple[bytes, tuple[Secret, ...]], tuple[str, Block]] = {}
    others = replace(plan, noise="uniform" if plan.noise == "uniform" else "all", secrets=SecretTimes())
    names, blocks = [], []
    for (start, end), inside in zip(windows, homes, strict=True):
        part = times[start:end] - times[start]
        secrets = tuple(tuple(place - start for place in secret) for secret in inside)
        key = (part.tobytes(), secrets)
        if key not in made:
            made[key] = axis_noises(plan if secrets else others, part, secrets or ((len(part) // 2,),))
        if secrets:
            names.append(made[key][0])
        blocks.append(made[key][1])
    return " and ".join(dict.fromkeys(names)), blocks


@dataclass(frozen=True, eq=False)
class _Cut:
    """A trace in windows, from which zones are taken."""

    kernel: Kernel
    times: Floats
    windows: Sequence[Window]
    blocks: Sequence[Block]
    variances: Floats
    white: Floats  # least variance of all noise along each axis

    def losses(self, homes: Sequence[Sequence[Secret]]) -> Iterator[tuple[int, ZoneLoss]]:
        """The loss of every window that holds secrets; windows that look alike are computed once."""
        crowds = {name: crowd_of(model, self.times) for name, model in adversary_kernels(self.kernel).items()}
        known: dict[tuple[object, ...], ZoneLoss] = {}
        for i, inside in enumerate(homes):
            if not inside:
                continue
            spans = {name: self._span(model, i) for name, model in adversary_kernels(self.kernel).items()}
            key = self._looks(i, spans, inside)
            if key not in known:
                known[key] = zone_loss(self.kernel, self._zone(i, inside, spans, crowds), self.variances)
            yield i, known[key]

    def _near(self, i: int) -> Window:
        """Windows first and one beyond the last of home and its neighbours."""
        return max(0, i - 1), min(len(self.windows), i + 2)

    def _span(self, model: Kernel, i: int) -> Window:
        """Windows that are computed for a kernel: near ones, and on until it has faded."""
        first, last = self._near(i)
        start, end = self.times[self.windows[first][0]], self.times[self.windows[last - 1][1] - 1]
        low, high, count = first, last, 0
        while count < MOST_COMPUTED and (low > 0 or high < len(self.windows)):
            before = start - self.times[self.windows[low - 1][1] - 1] if low > 0 else np.inf
            after = self.times[self.windows[high][0]] - end if high < len(self.windows) else np.inf
            if model.beyond(float(min(before, after))) <= FADED:
                break
            low, high = (low - 1, high) if before <= after else (low, high + 1)
            added = self.windows[low] if before <= after else self.windows[high - 1]
            count += added[1] - added[0]
        return low, high

    def _gap(self, i: int, span: Window) -> float:
        """Seconds between the near windows and those that are not computed."""
        first, last = self._near(i)
        low, high = span
        before = self.times[self.windows[first][0]] - self.times[self.windows[low - 1][1] - 1] if low > 0 else np.inf
        after = np.inf
        if high < len(self.windows):
            after = self.times[self.windows[high][0]] - self.times[self.windows[last - 1][1] - 1]
        return float(min(before, after))

    def _looks(self, i: int, spans: dict[str, Window], inside: Sequence[Secret]) -> tuple[object, ...]:
        """Everything that the loss of a window depends on."""
        low = min(span[0] for span in spans.values())
        high = max(span[1] for span in spans.values())
        start, end, own = self.windows[low][0], self.windows[high - 1][1], self.windows[i][0]
        gaps = np.diff(self.times[start:end]).tobytes()
        beside = tuple(
            (span[0] > 0, span[1] < len(self.windows), round(self._gap(i, span), 9)) for span in spans.values()
        )
        noises = tuple(id(block) for block in self.blocks[low:high])
        shapes = tuple((a - i, b - i) for a, b in spans.values())
        return gaps, beside, noises, shapes, tuple(tuple(place - own for place in secret) for secret in inside)

    def _zone(self, i: int, inside: Sequence[Secret], spans: dict[str, Window], crowds: dict[str, float]) -> Zone:
        first, last = self._near(i)
        start, end = self.windows[first][0], self.windows[last - 1][1]
        places = [tuple(place - start for place in secret) for secret in inside]
        noises = tuple(_joined([block[k] for block in self.blocks[first:last]]) for k in range(len(self.variances)))
        if len(noises) == 2 and all(block[0] is block[1] for block in _single(self.blocks)):
            noises = (noises[0], noises[0])
        elsewhere = {}
        for name, (low, high) in spans.items():
            others = [j for j in range(low, high) if not first <= j < last]
            rest = len(self.times) - (self.windows[high - 1][1] - self.windows[low][0])
            gap = self._gap(i, (low, high))
            if name == OWN and rest and adversary_kernels(self.kernel)[name].beyond(gap) > MOST_FADED:
                raise UnsupportedError(
                    f"this kernel has not faded after {gap:,.0f} s, so windows of this trace cannot be cut apart; "
                    "use a kernel that fades, or a shorter trace."
                )
            if others or rest:
                elsewhere[name] = tuple(
                    Elsewhere(
                        [(self._times(j), self.blocks[j][k]) for j in others],
                        rest,
                        gap,
                        self.white[k],
                        crowds[name],
                    )
                    for k in range(len(self.variances))
                )
        return Zone(self.times[start:end], noises, places, elsewhere)

    def _times(self, j: int) -> Floats:
        start, end = self.windows[j]
        return self.times[start:end]


def _single(blocks: Sequence[Block]) -> list[Block]:
    """Every block once."""
    return list({id(block): block for block in blocks}.values())


def _joined(blocks: Sequence[Floats]) -> Floats:
    return np.asarray(block_diag(*blocks))


LONG_NOISES = ("", "mixed", "full")
_UNEVEN = 1e-6  # of a step, that time stamps may be off


def design_release(plan: TracePlan, times: Floats) -> TraceNoise:
    """The noise for a trace with these time stamps, however many; it reads nothing else of the trace.

    One matrix up to 1,000 points. Beyond, one secret location at equal steps has the optimum of the whole trace, by
    conjugate gradients; everything else is cut into windows of independent noise.

    Raises
    ------
    DataError
        For times that do not increase.
    UnsupportedError
        Where no noise of this plan protects these times: the message says what to change.

    Examples
    --------
    >>> from dovetail.trace.kernels import Matern32
    >>> from dovetail.trace.plan import TracePrior
    >>> from dovetail.trace.trace import SecretTimes
    >>> prior = TracePrior(Matern32(length=600.0), np.array([[1e6]]))
    >>> plan = TracePlan(prior, SecretTimes(), radius=100.0, error=300.0)
    >>> design = design_release(plan, np.arange(0.0, 600.0, 60.0))
    >>> design.guarantee.mu < 1.0
    True
    """
    stamps = shown_times(plan, times)
    if plan.window == 0 and len(stamps) <= MOST_POINTS:
        return design_trace(plan, times)
    secrets = plan.secrets.places(stamps)
    alone = len(secrets) == len(secrets[0]) == 1
    if plan.window == 0 and alone and plan.noise in LONG_NOISES and _equal_steps(stamps):
        return _long(plan, stamps.tobytes())
    return _windows(plan, stamps.tobytes())


def _equal_steps(times: Floats) -> bool:
    step = (times[-1] - times[0]) / (len(times) - 1)
    return bool(np.abs(times - times[0] - step * np.arange(len(times))).max() <= _UNEVEN * step)


@lru_cache(maxsize=8)
def _windows(plan: TracePlan, stamps: bytes) -> TraceNoise:
    return design_windows(plan, np.frombuffer(stamps))


@lru_cache(maxsize=8)
def _long(plan: TracePlan, stamps: bytes) -> LongDesign:
    times = np.frombuffer(stamps)
    ((place,),) = plan.secrets.places(times)
    variances, axes = plan.prior.axes()
    n, name = len(times), plan.noise or "mixed"
    prior = RegularPrior.of(plan.prior.kernel, n, step=float(times[-1] - times[0]) / (n - 1))
    if name == "mixed":
        prior.check_draw()
    noises: list[RegularNoise] = []
    shares = axis_shares(plan, times, place, n * plan.error**2)
    for share, variance in zip(shares, variances, strict=True):
        if noises and np.isclose(share / variance, shares[0] / variances[0], rtol=1e-9, atol=0.0):
            noises.append(noises[0])
            continue
        budget = Budget(n, share * plan.error**2 / variance, plan.floor)
        noises.append(design_regular(prior, place, budget, name=name).noise)
    guarantee = _long_guarantee(plan, times, noises, name)
    return LongDesign(times, axes, variances, guarantee, tuple(noises))


def _long_guarantee(plan: TracePlan, times: Floats, noises: Sequence[RegularNoise], name: str) -> TraceGuarantee:
    """The guarantee of noise that is never formed; an unknown mean adds at most what telling it would."""
    variances, _ = plan.prior.axes()
    n, step = len(times), float(times[-1] - times[0]) / (len(times) - 1)
    white = min(noise.white * variance for noise, variance in zip(noises, variances, strict=True))
    charge = rounding_charge(plan.grid, plan.prior.dimensions * n, white)
    single = {id(noise): noise for noise in noises}
    moves: dict[str, dict[int, float]] = {}
    for who, model in adversary_kernels(plan.prior.kernel).items():
        believed = RegularPrior.of(model, n, step=step)
        moves[who] = {key: regular_loss(believed, noise).upper for key, noise in single.items()}
    moves[UNKNOWN] = {key: value + 1.0 for key, value in moves[OWN].items()}
    moves[SIGHTING] = {key: regular_sighting(noise) for key, noise in single.items()}
    if NO_NUGGET in moves:  # not computed for a kernel that the noise was not made for
        moves[SIGHTING_NO_NUGGET] = dict.fromkeys(single, inf)
    worst = {
        who: np.array([max(each[id(noise)] / v for noise, v in zip(noises, variances, strict=True))])
        for who, each in moves.items()
    }
    width = min(2.0 * np.sqrt(v / (1.0 + moves[OWN][id(noise)])) for noise, v in zip(noises, variances, strict=True))
    secrets = plan.secrets.places(times)
    return stated(plan, times, secrets, worst, np.array([width]), charge, name)


# From a wanted guarantee to the smallest budget that reaches it.


MOST_AT_DEFAULT = 200  # points for which the default step is fine enough
_CLOSE, _STEPS, _FARTHEST = 0.005, 40, 1e4


def error_for(
    mu: float,
    prior: TracePrior,
    secrets: SecretTimes,
    times: Floats,
    *,
    radius: float,
    noise: str = "",
    floor: float = 0.01,
    step: float = 0.0,
    window: int = 0,
    tried: Callable[[int], None] = lambda count: None,
) -> TracePlan:
    """The plan of least error, within half a percent, whose worst secret keeps `mu`.

    `tried` is told how many budgets were designed so far.

    Raises
    ------
    UnsupportedError
        No budget up to ten thousand times what traces move reaches it.

    Examples
    --------
    >>> from dovetail.trace.kernels import Matern32
    >>> prior = TracePrior(Matern32(length=600.0), np.array([[1e6]]))
    >>> plan = error_for(0.5, prior, SecretTimes(), np.arange(0.0, 600.0, 60.0), radius=100.0)
    >>> 100.0 < plan.error < 1000.0
    True
    """
    positive("mu", mu)
    scale = sqrt(float(np.trace(prior.covariance)))

    numbers = len(times) * prior.dimensions
    if not step and rounding_charge(step_for(0.0, white=1.0, numbers=numbers), numbers, 1.0) > MOST_CHARGE * mu:
        raise UnsupportedError(
            f"`mu` {mu:g} is out of reach: rounding {len(times):,} points to the finest grid that doubles allow "
            "costs more than a twentieth of it; ask for a larger mu."
        )

    def plan(error: float) -> TracePlan:
        first = TracePlan(prior, secrets, radius, error, noise, floor, step, window)
        return first if step else replace(first, step=step_for(mu, white=first.white, numbers=numbers))

    count = 0

    def reached(error: float) -> float:
        nonlocal count
        found = design_release(plan(error), times).guarantee.mu
        tried(count := count + 1)
        return found

    # an error that is enough, and one that is not: up from below, then down by halves
    most = _FARTHEST * scale
    # white noise on one point alone would need sqrt(2) radius / mu
    low, high = None, min(0.5 * radius / mu, most)
    while (found := reached(high)) > mu:
        low, high = high, min(most, high * max(1.3, min(4.0, found / mu)))
        if low == most:
            raise UnsupportedError(
                f"`mu` {mu:g} within {radius:g} m is out of reach: even {_FARTHEST:g} times what traces move is not "
                "enough; ask for a larger mu or a smaller radius."
            )
    while low is None:
        smaller = high / 2.0
        if reached(smaller) > mu:
            low = smaller
        else:
            high = smaller
            if high < 1e-6 * scale:
                return plan(high)
    # bisect between them, by logarithms while they are far apart
    for _ in range(_STEPS):
        if high / low <= 1.0 + _CLOSE:
            break
        middle = low * (high / low) ** 0.5 if log(high / low) > 0.05 else (low + high) / 2.0
        low, high = (middle, high) if reached(middle) > mu else (low, middle)
    return plan(high)


def plan_for_error(plan: TracePlan, times: Floats) -> TracePlan:
    """A plan whose step is as coarse as its guarantee allows for traces of these times; a stated step is kept.

    The noise does not depend on the step, the charge for rounding does: the guarantee at the finest step tells mu.
    """
    if plan.step or len(times) <= MOST_AT_DEFAULT:
        return plan
    numbers = len(times) * plan.prior.dimensions
    finest = replace(plan, step=step_for(0.0, white=plan.white, numbers=numbers))
    mu = design_release(finest, times).guarantee.mu
    return replace(plan, step=step_for(mu, white=plan.white, numbers=numbers))


# Release one trace: rounded, noise added along the principal axes, rounded again.


def release_trace(trace: Trace, plan: TracePlan, design: TraceNoise, *, rng: Any = None) -> Floats:
    """Released points (n, d), metres, of a trace under a design for its times.

    Parameters
    ----------
    trace : Trace
    plan : TracePlan
    design : TraceNoise
        `design_release(plan, trace.times)`.
    rng : Entropy
        The operating system's by default.

    Raises
    ------
    UnsupportedError
        For a trace that the plan's kernel was fitted on.

    Examples
    --------
    >>> from dovetail.trace.kernels import Matern32
    >>> from dovetail.trace.release_design import design_release
    >>> from dovetail.trace.plan import TracePrior
    >>> from dovetail.trace.trace import SecretTimes
    >>> prior = TracePrior(Matern32(length=600.0), np.array([[1e6]]))
    >>> plan = TracePlan(prior, SecretTimes(), radius=100.0, error=300.0)
    >>> trace = Trace.of("a", np.arange(0.0, 600.0, 60.0), np.linspace(0.0, 900.0, 10))
    >>> release_trace(trace, plan, design_release(plan, trace.times)).shape
    (10, 1)
    """
    plan.prior.refuse_own(trace)
    return on_grid(on_grid(trace.points, plan.grid) + draw_noise(design, rng=rng), plan.grid)


def draw_noise(design: TraceNoise, *, rng: Any = None) -> Floats:
    """One draw of the noise (n, d), metres; every axis has its own stream of words."""
    entropy = entropy_or_system(rng)
    drawn = [np.sqrt(variance) * design.draw_axis(k, entropy) for k, variance in enumerate(design.variances)]
    return np.column_stack(drawn) @ design.axes

"""The tilted law of a sum of many independent copies, by Fourier transforms on grids that grow with the sum."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dovetail.account.blanket.exponential_tilt import ExponentialTilt, GridSteps
from dovetail.core.numeric.special import Reals

BASE = 128  # most copies that one transform adds
COARSE = 10.0  # splits may multiply the tilted mass by e^10
STEEPEST = 500.0  # the tilt may change by e^500 from one grid point to the next
TAIL = 1e-17  # tilted mass left outside all windows

Spectrum = NDArray[np.complex128]  # (2, points / 2 + 1): of masses and of means


class TiltedSum(NamedTuple):
    """A tilted law of a gridded sum S', with what the sum S itself is there."""

    places: Reals
    masses: Reals
    means: Reals  # tilted E[S; S' = place]


NOBODY: Spectrum = np.array([[1.0 + 0.0j], [0.0j]])  # of the sum of no copies


def convolve_copies(tilt: ExponentialTilt, true: Reals, n: int, points: int) -> tuple[TiltedSum, GridSteps] | None:
    """The sum of n copies and the splits that it went through; None where the grid is too coarse.

    On level i a block is the sum of r^i copies, the rest is the sum of n mod r^i others.
    """
    levels = max(1, math.ceil(math.log(n) / math.log(BASE) - 1e-9))
    base = max(2, math.ceil(n ** (1.0 / levels) - 1e-9))
    block = TiltedSum(tilt.values, tilt.masses, tilt.masses * true)
    rest = TiltedSum(np.zeros(1), np.ones(1), np.zeros(1))
    splits = GridSteps(base, ())
    for level in range(levels):
        held = n % base**level  # copies in the rest so far
        then = n if level == levels - 1 else n % base ** (level + 1)
        sizes = [then] if level == levels - 1 else [then, base ** (level + 1)]
        log_tail = math.log(4.0 * levels * max(1.0, n / base ** (level + 1)) / TAIL)
        windows = _grid_windows(tilt, sizes, log_tail, splits, points)
        if windows is None:
            return None
        step, firsts = windows
        splits = GridSteps(base, (*splits.steps, step))
        one = _spectrum(block, step, tilt.theta, points)
        other = _spectrum(rest, step, tilt.theta, points) if level else NOBODY
        rest = _convolve(one, other, (then - held) // base**level, firsts[0], step, points)
        if level < levels - 1:
            block = _convolve(one, NOBODY, base, firsts[1], step, points)
    return rest, splits


def _grid_windows(
    tilt: ExponentialTilt, sizes: list[int], log_tail: float, before: GridSteps, points: int
) -> tuple[float, list[int]] | None:
    """The step at which `points` cover every sum of the level, and the first grid number of each; None if coarse."""
    step = 0.0
    while True:
        guess = 1.01 * step
        splits = GridSteps(before.base, (*before.steps, guess))
        if tilt.growth(max(sizes), splits) > COARSE:
            return None
        spans = [tilt.reach(size, log_tail, splits) for size in sizes]
        step = max(high - low for low, high in spans) / (points - 4)
        if tilt.theta * step > STEEPEST:
            return None
        if step <= guess:
            return step, [math.floor(low / step) - 1 for low, _ in spans]


def _spectrum(law: TiltedSum, step: float, theta: float, points: int) -> Spectrum:
    """Transforms of masses and means, split onto multiples of the step; number j is in cell j mod points."""
    left = np.floor(law.places / step)
    share = law.places / step - left  # the untilted share that goes right
    cell = np.mod(left, points).astype(np.int64)
    cells = np.concatenate([cell, (cell + 1) % points])
    factors = np.append((1.0 - share) * np.exp(-theta * share * step), share * np.exp(theta * (1.0 - share) * step))
    parts = [np.bincount(cells, factors * np.tile(part, 2), points) for part in (law.masses, law.means)]
    return np.asarray(np.fft.rfft(parts))


def _convolve(one: Spectrum, other: NDArray[Any], copies: int, first: int, step: float, points: int) -> TiltedSum:
    """`copies` of the law `one` and one of the law `other`, from the grid number `first` on."""
    power = one[0] ** max(copies - 1, 0)
    full = power * one[0] if copies else power
    both = np.array([other[0] * full, other[1] * full + copies * other[0] * one[1] * power])
    masses, means = np.roll(np.fft.irfft(both, points), -(first % points), axis=1)
    places = step * (first + np.arange(points, dtype=np.float64))
    return TiltedSum(places, np.maximum(masses, 0.0), means)

"""The noise of one trace along its principal axes: as matrices, window by window, or as products for long traces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from dovetail.core.entropy import Entropy
from dovetail.trace.guarantee import TraceGuarantee
from dovetail.trace.kernels.kernel import Floats
from dovetail.trace.mechanisms.regular_noise import RegularNoise
from dovetail.trace.plan.windows import Window
from dovetail.trace.sampler import correlated_noise


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

r"""What a report stands for once it is clamped to the range: unbiased for every function of the value.

Laplace noise has no memory. Given that y = i + d is at or below the lower end of the grid, its distance beyond the
end is geometric whatever i is; so E[y | clamp(y)] is a known number, unbiased for i, and by Rao-Blackwell of smaller
variance than y. This holds for reports that the device has clamped and for reports that the analyst clamps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import positive, real, rectangular, refuse
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.estimate import Values
from dovetail.core.stages import NumericRandomizer
from dovetail.estimate.pairing import need_numbers
from dovetail.randomize.sampling.domain import numbers

Steps = NDArray[np.int64]  # (n,), grid steps

MOST_STEPS = 1 << 20  # of a histogram of reports


@final
@dataclass(frozen=True)
class ClampedGrid:
    r"""Geometric noise on the grid 0..m, reports clamped to it.

    .. math:: \Pr[z \mid i] = \Pr[\min(\max(i + d, 0), m) = z], \qquad
              \Pr[d] = \frac{1 - t}{1 + t} t^{|d|}, \qquad o = \frac{t}{1 - t}

    Parameters
    ----------
    steps : int, m, at least 1
    step : float, width of a grid step
    overshoot : float, o
        Mean distance, in steps, of y from the end of the grid that it was clamped to; its variance is o (o + 1),
        half the variance of the noise.
    """

    steps: int
    step: float
    overshoot: float

    @classmethod
    def of(cls, randomizer: NumericRandomizer) -> Self:
        """The grid and the noise of a randomizer with geometric noise."""
        need_numbers(randomizer, instead="estimate_frequencies")
        if not randomizer.memoryless:
            raise UnsupportedError(
                f"Reports of {randomizer.label} tell the mean and the sum only: this needs geometric noise; collect "
                "with laplace, or the shares of ranges with a frequency randomizer."
            )
        step = randomizer.step
        half = randomizer.noise_variance / (2.0 * step**2)  # o (o + 1)
        overshoot = 2.0 * half / (1.0 + np.sqrt(1.0 + 4.0 * half))
        return cls(round((randomizer.upper - randomizer.lower) / step), step, float(overshoot))

    @property
    def half(self) -> float:
        """o (o + 1), variance of y at an edge: half that of the noise, in squared steps."""
        return self.overshoot * (self.overshoot + 1.0)

    def unbiased(self, function: ArrayLike) -> Values:
        r"""h (m + 1,) with E[h(z) | i] = f(i) for every grid point i; `function` is f at 0..m, along the last axis.

        .. math:: h(z) = f(z) - o (o + 1) \bigl(f(z + 1) - 2 f(z) + f(z - 1)\bigr), \quad 0 < z < m, \qquad
                  h(0) = f(0) - o (f(1) - f(0)), \qquad h(m) = f(m) + o (f(m) - f(m - 1))

        Proof: the noise is the inverse of the operator 1 - o (o + 1) (S - 2 + 1/S), S the shift, as applying it to
        t^|d| shows. Continue f linearly beyond the ends: the operator applied there is f itself. So
        g(y) = h(y) inside and g(y) = f(0) - |y| (f(1) - f(0)) for y <= 0 has E[g(i + d)] = f(i); and E[g(y) | y <= 0]
        is h(0) for every i >= 0, because |y| is then geometric with mean o. The same at m.

        Examples
        --------
        The value itself: at the edges E[y | clamp(y)], inside y.

        >>> ClampedGrid(steps=4, step=1.0, overshoot=2.5).unbiased([0, 1, 2, 3, 4]).tolist()
        [-2.5, 1.0, 2.0, 3.0, 6.5]
        """
        f = np.asarray(function, dtype=np.float64)
        h = f.copy()
        h[..., 1:-1] -= self.half * np.diff(f, n=2, axis=-1)
        h[..., 0] -= self.overshoot * (f[..., 1] - f[..., 0])
        h[..., -1] += self.overshoot * (f[..., -1] - f[..., -2])
        return h

    def histogram(self, steps: Steps) -> NDArray[np.int64]:
        """How many reports (m + 1,) there are of each kind, once clamped: an order-free tally that adds."""
        if self.steps > MOST_STEPS:
            raise UnsupportedError(
                f"A histogram of reports needs at most {MOST_STEPS:,} grid steps, this grid has {self.steps:,}. "
                "Use a coarser grid: the noise hides the difference."
            )
        return np.bincount(self.clamp(steps), minlength=self.steps + 1)

    def clamp(self, steps: Steps) -> Steps:
        """Reports moved to the nearest point of the grid."""
        return np.clip(steps, 0, self.steps)


def whole_steps(randomizer: NumericRandomizer, reports: ArrayLike) -> Steps:
    """`reports` (n,) as grid steps that `randomizer` may send; DataError otherwise."""
    array = rectangular("reports", reports)
    if not isinstance(randomizer, NumericRandomizer):
        raise refuse("randomizer", "one of numbers", randomizer)
    if array.shape == (0,):
        return np.empty(0, dtype=np.int64)  # an empty list has no type
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.dtype == np.uint64:
        raise DataError(
            f"`reports` must be whole grid steps, one-dimensional and signed, got {array.dtype} {array.shape}."
        )
    steps = array.astype(np.int64, copy=False)
    ends = np.array([steps.min(), steps.max()]) if steps.size else steps
    if not np.isfinite(randomizer.log_density(ends, randomizer.lower)).all():
        raise DataError(f"`reports` must be what {randomizer.name} sends, got steps from {ends[0]:,} to {ends[1]:,}.")
    return steps


def rao_blackwell(reports: ArrayLike, *, lower: float, upper: float, scale: float) -> Values:
    r"""Unbiased values (n,) behind continuous Laplace reports that were clamped to [lower, upper].

    .. math:: r(z) = \mathbb E[y \mid \mathrm{clamp}(y) = z] = \begin{cases}
              \mathrm{lower} - \lambda & z = \mathrm{lower} \\ z & \text{inside} \\
              \mathrm{upper} + \lambda & z = \mathrm{upper} \end{cases}, \qquad \mathbb E[r(z) \mid x] = x

    Proof: given y < lower, the overshoot lower - y is exponential with mean lambda for every x >= lower. For reports
    of a device, which lie on a grid, `decode` of the randomizer does this with the discrete law.

    Parameters
    ----------
    reports : float array (n,) in [lower, upper]
    lower, upper : float, lower < upper
    scale : float above 0
        lambda of the Laplace noise.

    Examples
    --------
    >>> rao_blackwell([0.0, 3.0, 10.0], lower=0.0, upper=10.0, scale=4.0).tolist()
    [-4.0, 3.0, 14.0]
    """
    low, high, beyond = real("lower", lower), real("upper", upper), positive("scale", scale)
    if not low < high:
        raise refuse("upper", f"above `lower` = {low!r}", upper)
    z = numbers(reports, low, high, name="reports")
    return np.asarray(z + beyond * ((z == high) * 1.0 - (z == low)))

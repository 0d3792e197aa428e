r"""Likelihood of a kernel over many traces, with gradients; means and the covariance of the coordinates profiled out.

A trace X (n, d) is 1 m' plus a matrix normal with row covariance K (kernel and times) and column covariance C, common
to all traces. The mean m of each trace is arbitrary and is integrated out, which leaves n - 1 degrees of freedom:

.. math:: 2 \ell = -\sum_i \Big[ d \log |K_i| + d \log (1' K_i^{-1} 1) \Big] - N \log |\hat C|, \qquad
          \hat C = \frac1N \sum_i R_i' K_i^{-1} R_i, \quad N = \sum_i (n_i - 1)

with R the trace less its generalized least squares mean. Traces with the same gaps share one Cholesky factor.

Source
------
Patterson, Thompson (1971), Recovery of inter-block information when block sizes are unequal, Biometrika 58.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from dovetail.core.display.display import mute
from dovetail.trace.kernels.kernel import Floats, Kernel
from dovetail.trace.trace import Trace


@mute
@dataclass(frozen=True, eq=False)
class TraceGroup:
    """Traces with the same gaps between their times.

    Parameters
    ----------
    gaps : float array (n, n), seconds
    points : float array (n, m d), the traces side by side
    """

    gaps: Floats
    points: Floats


def grouped(traces: Sequence[Trace]) -> list[TraceGroup]:
    """Traces by their gaps, so that one factor serves many."""
    found: dict[bytes, list[Trace]] = {}
    for trace in traces:
        found.setdefault((trace.times - trace.times[0]).tobytes(), []).append(trace)
    return [
        TraceGroup(
            np.abs(group[0].times[:, None] - group[0].times[None, :]),
            np.concatenate([trace.points - trace.points.mean(axis=0) for trace in group], axis=1),
        )
        for group in found.values()
    ]


@mute
@dataclass(frozen=True, eq=False)
class Likelihood:
    """Log likelihood of a kernel at given traces.

    Parameters
    ----------
    groups : list of TraceGroup
    dimensions : int
    isotropic : bool
        Whether the coordinates have one variance and no correlation.
    """

    groups: Sequence[TraceGroup]
    dimensions: int
    isotropic: bool

    @property
    def freedom(self) -> int:
        """N d, numbers that are left after the means."""
        return sum((len(group.points) - 1) * group.points.shape[1] for group in self.groups)

    def value(self, kernel: Kernel) -> tuple[float, Floats, Floats]:
        """Log likelihood, its slopes by the logarithms of the parameters, and the covariance of the coordinates.

        Raises
        ------
        numpy.linalg.LinAlgError
            The kernel is singular at these times.
        """
        d = self.dimensions
        spread, slopes_of = np.zeros((d, d)), []
        logs = 0.0
        log_slopes = np.zeros(len(kernel.parameters))
        for group in self.groups:
            factor = np.linalg.cholesky(kernel.correlation(group.gaps))
            columns = group.points.shape[1]
            ones = np.asarray(cho_solve((factor, True), np.ones(len(factor))))
            total = float(ones.sum())
            rest = group.points - (ones @ group.points) / total
            solved = np.asarray(cho_solve((factor, True), rest))
            spread += _by_coordinate(rest, solved, d)
            logs += columns * (2.0 * float(np.log(np.diag(factor)).sum()) + float(np.log(total)))
            inverse = np.asarray(cho_solve((factor, True), np.eye(len(factor))))
            parts = []
            for j, slope in enumerate(kernel.gradients(group.gaps)):
                log_slopes[j] += columns * (float((inverse * slope).sum()) - float(ones @ slope @ ones) / total)
                parts.append(_by_coordinate(solved, slope @ solved, d))
            slopes_of.append(parts)
        covariance = self._profiled(spread)
        weight = np.linalg.inv(covariance)
        value = -0.5 * (logs + self.freedom / d * float(np.linalg.slogdet(covariance)[1]))
        pulls = np.array([sum(float((weight * part[j]).sum()) for part in slopes_of) for j in range(len(log_slopes))])
        constant = -0.5 * self.freedom * (1.0 + np.log(2.0 * np.pi))
        return value + constant, -0.5 * (log_slopes - pulls), covariance

    def held_out(self, kernel: Kernel, covariance: Floats) -> float:
        """Log likelihood per number of traces that the kernel has not seen, at a given covariance."""
        d, value = self.dimensions, 0.0
        weight, log_size = np.linalg.inv(covariance), float(np.linalg.slogdet(covariance)[1])
        for group in self.groups:
            factor = np.linalg.cholesky(kernel.correlation(group.gaps))
            ones = np.asarray(cho_solve((factor, True), np.ones(len(factor))))
            rest = group.points - (ones @ group.points) / ones.sum()
            spread = _by_coordinate(rest, np.asarray(cho_solve((factor, True), rest)), d)
            columns, free = group.points.shape[1], len(group.points) - 1
            value -= 0.5 * columns * (2.0 * float(np.log(np.diag(factor)).sum()) + float(np.log(ones.sum())))
            value -= 0.5 * (columns / d * free * log_size + float((weight * spread).sum()))
            value -= 0.5 * columns * free * float(np.log(2.0 * np.pi))
        return value / self.freedom

    def whitened(self, kernel: Kernel, covariance: Floats) -> list[Floats]:
        """Residuals of each group (n, m d), standard normal and independent where the model is right."""
        root = np.linalg.inv(np.linalg.cholesky(covariance))
        found = []
        for group in self.groups:
            factor = np.linalg.cholesky(kernel.correlation(group.gaps))
            ones = np.asarray(cho_solve((factor, True), np.ones(len(factor))))
            rest = solve_triangular(factor, group.points - (ones @ group.points) / ones.sum(), lower=True)
            found.append(
                np.einsum("nmd,ed->nme", rest.reshape(len(rest), -1, self.dimensions), root).reshape(rest.shape)
            )
        return found

    def _profiled(self, spread: Floats) -> Floats:
        free = self.freedom / self.dimensions
        if not self.isotropic:
            return spread / free
        return np.eye(self.dimensions) * float(np.trace(spread)) / self.dimensions / free


def _by_coordinate(left: Floats, right: Floats, d: int) -> Floats:
    """Sum over traces and times of left times right, for each pair of coordinates (d, d)."""
    a, b = (each.reshape(len(each), -1, d) for each in (left, right))
    return np.asarray(np.einsum("nmd,nme->de", a, b))

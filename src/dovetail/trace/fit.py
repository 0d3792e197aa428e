"""The kernel of largest likelihood: scipy's L-BFGS-B on the logarithms of its parameters, between stated bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import minimize
from scipy.stats import CensoredData, ecdf

from dovetail.core.display import mute
from dovetail.core.errors import DataError
from dovetail.trace.descent import one_thread
from dovetail.trace.kernels import Floats, Kernel, Sum, White
from dovetail.trace.trace import Trace

# Likelihood of a kernel over many traces, with gradients; means and the covariance of the coordinates profiled out.
#
# A trace X (n, d) is 1 m' plus a matrix normal with row covariance K (kernel and times) and column covariance C,
# common to all traces. The mean m of each trace is arbitrary and is integrated out, which leaves n - 1 degrees of
# freedom:
#
# .. math:: 2 \ell = -\sum_i \Big[ d \log |K_i| + d \log (1' K_i^{-1} 1) \Big] - N \log |\hat C|, \qquad
#           \hat C = \frac1N \sum_i R_i' K_i^{-1} R_i, \quad N = \sum_i (n_i - 1)
#
# with R the trace less its generalized least squares mean. Traces with the same gaps share one Cholesky factor.
#
# Source
# ------
# Patterson, Thompson (1971), Recovery of inter-block information when block sizes are unequal, Biometrika 58.


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


LEAST_NUGGET = 1e-6  # relative to the first part: a smooth kernel is singular in doubles without one
_AT_BOUND = 1e-3


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted kernel.

    Parameters
    ----------
    kernel : Kernel
    covariance : float array (d, d), square metres
    log_likelihood : float, nats
    values : int
        Numbers it was fitted to, less the means.
    at_bound : "lower", "upper" or ""
        Where the length-scale of the first part ended.
    """

    kernel: Kernel
    covariance: Floats
    log_likelihood: float
    values: int
    at_bound: str

    @property
    def length(self) -> float:
        """The length-scale of the first part, seconds."""
        return first_length(self.kernel)


def first_length(kernel: Kernel) -> float:
    """The first length-scale of a kernel, in seconds."""
    parts = getattr(kernel, "parts", None)
    return first_length(parts[0]) if parts else float(kernel.parameters[0])


def fit_kernel(start: Kernel, traces: Sequence[Trace], *, isotropic: bool = False) -> Fit:
    """The kernel of largest likelihood for all of these traces together.

    Parameters
    ----------
    start : Kernel
        Its form is kept, its parameters are where the search begins; a nugget is added where it has none.
    traces : list of Trace
    isotropic : bool
        One variance for both coordinates and no correlation.

    Raises
    ------
    DataError
        For traces that do not move or are too short, without any trace, and a kernel that is singular at their times.

    Notes
    -----
    Length-scales lie between a tenth of the smallest gap and ten times the longest trace.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> from dovetail.trace.kernels import Matern32
    >>> steps = np.cumsum(np.random.default_rng(1).normal(size=(200, 2)), axis=0)
    >>> found = fit_kernel(Matern32(length=10.0), [Trace.of("a", np.arange(200.0), steps)])
    >>> found.covariance.shape
    (2, 2)
    """
    dimensions = {trace.points.shape[1] for trace in traces}
    if not traces or len(dimensions) != 1:
        raise DataError("`traces` must be at least one trace, all with the same coordinates.")
    model = _with_white(start)
    if not _leaves(model):
        raise DataError("the kernel has no length-scale to fit: name one beside white.")
    likelihood = Likelihood(grouped(traces), dimensions.pop(), isotropic)
    if likelihood.freedom < 2 * likelihood.dimensions or not any(np.ptp(t.points) > 0.0 for t in traces):
        raise DataError("the traces do not move, or are too short: there is nothing to fit.")
    moves = np.concatenate([np.diff(trace.points, axis=0) for trace in traces])
    if not isotropic and np.linalg.matrix_rank(moves) < moves.shape[1]:
        raise DataError(
            "all traces lie on one line of the plane; use one variance for both coordinates (--isotropic)."
        )
    bounds = _bounds(model, traces)

    def cost(logs: Floats) -> tuple[float, Floats]:
        try:
            value, slopes, _ = likelihood.value(model.with_parameters(tuple(np.exp(logs).tolist())))
        except LinAlgError:
            return 1e15, np.zeros_like(logs)
        return -value / likelihood.freedom, -slopes / likelihood.freedom

    begin = np.clip(np.log(model.parameters), [low for low, _ in bounds], [high for _, high in bounds])
    with one_thread():
        found = minimize(cost, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 200})
    kernel = model.with_parameters(tuple(np.exp(found.x).tolist()))
    try:
        value, _, covariance = likelihood.value(kernel)
    except LinAlgError:
        raise DataError("the kernel is singular at these times: add a nugget or a rougher kernel.") from None
    place = len(model.weights)  # the first length-scale comes after the weights
    ends = [abs(found.x[place] - end) < _AT_BOUND for end in bounds[place]]
    return Fit(kernel, covariance, value, likelihood.freedom, "lower" if ends[0] else "upper" if ends[1] else "")


def _with_white(start: Kernel) -> Sum:
    """The kernel as a sum with a nugget."""
    if not isinstance(start, Sum):
        return Sum((start, White()), (1.0, 1e-3))
    if White() in start.parts:
        return start
    return Sum((*start.parts, White()), (*start.weights, 1e-3 * start.weights[0]))


def _bounds(model: Sum, traces: Sequence[Trace]) -> list[tuple[float, float]]:
    """Logarithms between which each parameter may lie; the first weight is fixed, for only ratios matter."""
    gap = min(float(np.diff(trace.times).min()) for trace in traces)
    longest = max(float(trace.times[-1] - trace.times[0]) for trace in traces)
    first = model.weights[0]
    weights = [(np.log(first), np.log(first))] + [(np.log(LEAST_NUGGET * first), np.log(1e3 * first))] * (
        len(model.weights) - 1
    )
    rest = len(model.parameters) - len(model.weights)
    seconds = (np.log(gap / 10.0), np.log(longest * 10.0))
    pure = (np.log(0.05), np.log(20.0))  # of a periodic kernel, without a unit
    kinds = [kernel for part in model.parts for kernel in _leaves(part)]
    return weights + [pure if "period" in kinds[i].as_dict() else seconds for i in range(rest)]


def _leaves(kernel: Kernel) -> list[Kernel]:
    """The kernels of one length-scale inside a kernel, in the order of its parameters."""
    parts = getattr(kernel, "parts", None)
    if parts is None:
        return [kernel] if kernel.parameters else []
    return [leaf for part in parts for leaf in _leaves(part)]


# How well a kernel fits: the guarantee rests on it, so it is measured on traces that the fit did not see.


@dataclass(frozen=True)
class Goodness:
    """Measured on held-out traces.

    Parameters
    ----------
    held_out : float, nats per number
        Mean log density; larger is better.
    variance : float
        Of the whitened residuals; 1 where the model is right.
    neighbours : float
        Correlation of whitened residuals at neighbouring times; 0 where it is right.
    beyond_three : float
        Share of whitened residuals beyond 3; .0027 where it is right.
    traces : int
        Held-out traces.
    """

    held_out: float
    variance: float
    neighbours: float
    beyond_three: float
    traces: int


def goodness(start: Kernel, traces: Sequence[Trace], *, isotropic: bool = False) -> Goodness | None:
    """Fit on every second trace, measured on the others; None with fewer than two traces."""
    if len(traces) < 2:
        return None
    fit = fit_kernel(start, traces[::2], isotropic=isotropic)
    unseen = Likelihood(grouped(traces[1::2]), traces[0].points.shape[1], isotropic)
    residuals = unseen.whitened(fit.kernel, fit.covariance)
    flat = np.concatenate([each.ravel() for each in residuals])
    before = np.concatenate([each[:-1].ravel() for each in residuals])
    after = np.concatenate([each[1:].ravel() for each in residuals])
    return Goodness(
        unseen.held_out(fit.kernel, fit.covariance),
        float(np.mean(flat**2)),
        float(np.mean(before * after) / np.mean(flat**2)),
        float(np.mean(np.abs(flat) > 3.0)),
        len(traces[1::2]),
    )


@dataclass(frozen=True)
class LengthQuantile:
    """A quantile of length-scales; `censored` where fits that ended at a bound leave it open.

    Parameters
    ----------
    level : float
    seconds : float
        The quantile, or, where censored, what it is at least.
    censored : bool
    """

    level: float
    seconds: float
    censored: bool


def censored_quantiles(
    fits: Sequence[Fit], levels: Sequence[float] = (0.25, 0.5, 0.75), *, periods: Sequence[float] | None = None
) -> list[LengthQuantile]:
    """Quantiles of length-scales when some fits ended at their upper bound: those are larger by an unknown amount.

    Kaplan and Meier's product-limit estimate (scipy's `ecdf`). Fits at the lower bound count as they stand. With
    sampling `periods`, seconds, one for each fit: of effective length-scales, in points instead of seconds.
    """
    lengths = np.array([fit.length for fit in fits]) / (1.0 if periods is None else np.asarray(periods))
    open_ended = np.array([fit.at_bound == "upper" for fit in fits])
    if open_ended.all():
        return [LengthQuantile(level, float(lengths.min()), True) for level in levels]
    found = ecdf(CensoredData(uncensored=lengths[~open_ended], right=lengths[open_ended])).cdf
    return [_quantile(found.quantiles, found.probabilities, level, lengths[open_ended]) for level in levels]


def _quantile(values: Floats, probabilities: Floats, level: float, open_ended: Floats) -> LengthQuantile:
    reached = np.flatnonzero(probabilities >= level - 1e-12)
    if reached.size:
        return LengthQuantile(level, float(values[reached[0]]), False)
    return LengthQuantile(level, float(max(values.max(), open_ended.min())), True)

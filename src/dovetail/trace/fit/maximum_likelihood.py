"""The kernel of largest likelihood: scipy's L-BFGS-B on the logarithms of its parameters, between stated bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.linalg import LinAlgError
from scipy.optimize import minimize

from dovetail.core.errors import DataError
from dovetail.trace.fit.likelihood import Likelihood, grouped
from dovetail.trace.kernels.combined import Sum
from dovetail.trace.kernels.kernel import Floats, Kernel
from dovetail.trace.kernels.stationary import White
from dovetail.trace.mechanisms.descent import one_thread
from dovetail.trace.trace import Trace

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
    >>> from dovetail.trace.kernels.stationary import Matern32
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

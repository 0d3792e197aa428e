"""How well a kernel fits: the guarantee rests on it, so it is measured on traces that the fit did not see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import CensoredData, ecdf

from dovetail.trace.fit.likelihood import Likelihood, grouped
from dovetail.trace.fit.maximum_likelihood import Fit, fit_kernel
from dovetail.trace.kernels.kernel import Floats, Kernel
from dovetail.trace.trace import Trace


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


def censored_quantiles(fits: Sequence[Fit], levels: Sequence[float] = (0.25, 0.5, 0.75)) -> list[LengthQuantile]:
    """Quantiles of length-scales when some fits ended at their upper bound: those are larger by an unknown amount.

    Kaplan and Meier's product-limit estimate (scipy's `ecdf`). Fits at the lower bound count as they stand.
    """
    lengths = np.array([fit.length for fit in fits])
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

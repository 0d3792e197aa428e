"""Losses of noise without a white floor, where doubles cannot factor D + G but a formula knows the answer."""

from __future__ import annotations

import numpy as np

from dovetail.core.bracket import Bracket
from dovetail.trace.kernels.kernel import Floats
from dovetail.trace.loss.conditional import condition
from dovetail.trace.loss.information import Information, information
from dovetail.trace.mechanisms.design import Budget, Design
from dovetail.trace.mechanisms.published import STABS, published_loss_without_floor, published_middle


def information_without_floor(prior: Floats, secret: tuple[int, ...], design: Design, budget: Budget) -> Information:
    """J of a design whose budget has no floor, as a formula gives it.

    Raises
    ------
    UnsupportedError
        For a mechanism without such a formula.
    """
    seen = condition(prior, secret)
    if design.name == "uniform":
        return information(seen, design.noise)
    if design.name == "all":  # J = Sss^-1 / c for G = c Sigma, because At' (D + c Sigma)^-1 At = Sss^-1 / c
        scale = budget.free / float(np.trace(prior))
        return Information(np.asarray(np.linalg.inv(seen.variance) / scale, dtype=np.float64), 1e-9)
    if len(secret) == 1 and design.optimum is not None:
        return _between(design.optimum)
    if design.name == "published":
        stab = next(one for one in STABS if np.linalg.eigvalsh(published_middle(seen, budget, one))[0] >= 0.0)
        return published_loss_without_floor(seen, budget, stab=stab)
    return information(seen, design.noise)


def _between(ends: Bracket) -> Information:
    middle = 0.5 * (ends.lower + ends.upper)
    return Information(np.array([[middle]]), 0.5 * (ends.upper - ends.lower) / middle)

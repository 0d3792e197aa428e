"""Noise for one secret location of a long trace: f I + p y y' + q Sigma, with y the optimal direction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.core.bracket import Bracket
from dovetail.core.errors import ParameterError
from dovetail.trace.mechanisms.design import Budget
from dovetail.trace.mechanisms.regular_noise import RegularNoise, regular_loss
from dovetail.trace.mechanisms.regular_prior import RegularPrior


@dataclass(frozen=True, eq=False)
class RegularDesign:
    """Noise for one secret location of a long trace, and its loss.

    Parameters
    ----------
    noise : RegularNoise
    loss : Bracket
        J, between what the conjugate gradients leave open.
    """

    noise: RegularNoise
    loss: Bracket


def design_regular(prior: RegularPrior, place: int, budget: Budget, *, name: str = "mixed") -> RegularDesign:
    """`full` or `mixed` noise for one secret location of a long trace.

    Parameters
    ----------
    prior : RegularPrior
    place : int
    budget : Budget
    name : "full" or "mixed"

    Notes
    -----
    O(n log n) for each step of conjugate gradients; a few dozen steps.
    """
    if name not in ("full", "mixed"):
        raise ParameterError(f"`noise` must be full or mixed for a trace of {prior.n:,} points, got {name!r}.")
    if not 0 <= place < prior.n:
        raise ParameterError(f"`secret` must lie inside the trace, points 0 to {prior.n - 1}, got {place}.")
    column = prior.row(place)
    ridge = budget.total - (budget.n - 1) * budget.white
    y, rest, left = prior.solve(column, ridge=ridge)
    direction = y / np.linalg.norm(y)
    if name == "mixed":
        half = 0.5 * budget.free
        noise = RegularNoise(prior, place, budget.white, half, half / budget.n, direction)
        return RegularDesign(noise, regular_loss(prior, noise))
    # J* = q / (1 - q), q = c' (Sigma + w I)^-1 c, between c'y + y'r and that and |r|^2 / w
    q = float(column @ y + y @ rest)
    open_end = left**2 / ridge + float(np.linalg.norm(y)) * (left - float(np.linalg.norm(rest))) + 1e-12
    low, high = max(0.0, q - open_end), min(1.0 - 1e-15, q + open_end)
    noise = RegularNoise(prior, place, budget.white, budget.free, 0.0, direction)
    return RegularDesign(noise, Bracket(low / (1.0 - low), high / (1.0 - high)))

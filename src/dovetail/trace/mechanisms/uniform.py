"""The baselines of geo-indistinguishability: independent noise on every point, or on the secret points alone."""

from __future__ import annotations

import numpy as np

from dovetail.trace.mechanisms.design import Budget, Design


def uniform(budget: Budget) -> Design:
    """Independent noise of the same variance on every point."""
    return Design("uniform", budget.mse * np.eye(budget.n), None, "none")


def concentrated(secret: tuple[int, ...], budget: Budget) -> Design:
    """Independent noise, all of the budget above the floor on the secret points."""
    variance = np.full(budget.n, budget.white)
    variance[list(secret)] += budget.free / len(secret)
    return Design("concentrated", np.diag(variance), None, "none")

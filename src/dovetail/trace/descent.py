r"""The best noise for a list of goals, by descent on a factor of G, with a certificate that trusts no solver.

Each goal k is a regression of a secret under some prior with a weight: make the largest of maxeig J_k(G) / w_k small
over G >= f I with tr G <= T. The problem is convex in G; G = f I + B B' with few columns has its optima
(Burer, Monteiro 2003), because an optimal G has the rank of the goals that bind. The lower end holds for any Y_k and
P_k >= 0 with sum of w_k tr P_k = 1, by weak duality:

.. math:: \mathrm{LB} = \sum_k 2 \langle P_k, \tilde A_k' Y_k \rangle - \langle P_k, Y_k' (D_k + f I) Y_k \rangle
          - (T - n f) \, \mathrm{maxeig} \sum_k Y_k P_k Y_k'

The gap between it and the value that is reached is published, and decides whether the descent may stop.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from scipy.optimize import minimize

from dovetail.core.certified import Bracket
from dovetail.core.checks import positive, real
from dovetail.core.errors import MissingExtraError, ParameterError, UnsupportedError
from dovetail.core.extras import require
from dovetail.trace.kernels import Floats
from dovetail.trace.loss import Conditional

# What a mechanism gives: the noise covariance that is sampled, and between what the best of its kind lies.


FLOOR = 0.01  # white part of the noise, as a share of the budget per point
LEAST_MSE = 1e-14  # below it doubles no longer tell the noise from the prior
LEAST_FLOOR = 1e-6  # of a release: below it rounding to doubles is no longer small beside the noise


@dataclass(frozen=True)
class Budget:
    """Total mean squared error that the noise may cost, tr G, and the white part of it.

    Parameters
    ----------
    n : int
        Points of the trace.
    mse : float, above 0
        Mean squared error per point, in units of the prior's variance.
    floor : float, at least 0 and below 1
        White noise on every point, as a share of `mse`.
    """

    n: int
    mse: float
    floor: float = FLOOR

    def __post_init__(self) -> None:
        positive("mse", self.mse)
        if not LEAST_MSE <= self.mse <= 1e12:
            raise ParameterError(
                f"`mse` must lie between {LEAST_MSE:g} and 1e12 prior variances, got {self.mse:g}: more hides all, "
                "less hides nothing."
            )
        if not 0.0 <= real("floor", self.floor) < 1.0:
            raise ParameterError(
                f"`floor` must be at least 0 and below 1 (a share of the budget), got {self.floor!r}."
            )

    @property
    def total(self) -> float:
        """T, the whole budget."""
        return self.n * self.mse

    @property
    def white(self) -> float:
        """f, variance of the white part."""
        return self.floor * self.mse

    @property
    def free(self) -> float:
        """Budget above the floor, T - n f."""
        return self.total - self.n * self.white


@dataclass(frozen=True, eq=False)
class Design:
    """A noise covariance and its provenance.

    Parameters
    ----------
    name : str
    noise : float array (n, n)
        G, exactly what is sampled.
    optimum : Bracket or None
        Between what the least value of the objective lies; its lower end trusts no solver.
    objective : str
        What was made small.
    """

    name: str
    noise: Floats
    optimum: Bracket | None
    objective: str


def repaired(noise: Floats, budget: Budget) -> Floats:
    """Symmetric, at least the floor in every direction, and of exactly the budget's trace."""
    values, vectors = np.linalg.eigh(0.5 * (noise + noise.T))
    above = np.maximum(values - budget.white, 0.0)
    scale = budget.free / above.sum() if above.sum() > 0.0 else 0.0
    found = (vectors * (above * scale)) @ vectors.T
    return np.asarray(0.5 * (found + found.T) + budget.white * np.eye(budget.n))


SHARPNESS = (5.0, 30.0, 200.0, 1e3, 1e4)  # of the smooth maximum, one stage after the other
RESTARTS = 6  # of the last stage, with a fresh memory, while the gap is too large


@dataclass(frozen=True, eq=False)
class Goal:
    """One secret under one prior.

    Parameters
    ----------
    weights : float array (n, S)
        Regression of the trace on the secret, or on one direction of it.
    residual : float array (n, n)
    weight : float, above 0
        The goal is to keep maxeig J below weight times the common level.
    """

    weights: Floats
    residual: Floats
    weight: float = 1.0

    @classmethod
    def of(cls, seen: Conditional, weight: float = 1.0) -> Goal:
        """A goal from a regression."""
        return cls(seen.weights, seen.residual, weight)

    def along(self, direction: Floats) -> Goal:
        """The same goal for one move of the secret."""
        return Goal(self.weights @ direction[:, None], self.residual, self.weight)


@dataclass(frozen=True, eq=False)
class _State:
    """Everything that the objective knows at one G; k goals, r columns."""

    solved: Floats  # (k, n, S), (D + G)^-1 A
    losses: Floats  # (k, S, S), J / w
    factor: Floats  # (n, r)
    squares: float

    @property
    def largest(self) -> float:
        """The level that is reached."""
        return float(np.linalg.eigvalsh(self.losses)[:, -1].max())


class Descent:
    """The problem: goals and a budget."""

    def __init__(self, goals: Sequence[Goal], budget: Budget) -> None:
        self._budget, self._evaluations = budget, 0
        widest = max(goal.weights.shape[1] for goal in goals)
        self._weights = np.zeros((len(goals), budget.n, widest))  # a column of zeros is a move that tells nothing
        for row, goal in zip(self._weights, goals, strict=True):
            row[:, : goal.weights.shape[1]] = goal.weights
        self._residuals = np.array([goal.residual for goal in goals])
        self._shares = np.array([goal.weight for goal in goals])
        self._directions = sum(goal.weights.shape[1] for goal in goals)

    def run(
        self, start: Floats, *, rank: int | None = None, gap: float = 1e-4, warm: bool = False, work: float = inf
    ) -> tuple[Floats, Bracket]:
        """A noise covariance and the bracket of the optimum.

        Parameters
        ----------
        start : float array (n, n)
            A covariance to begin with.
        rank : int
            Columns of the factor; by default two more than the directions of all goals, at most 14.
        gap : float
            Relative gap at which the descent stops.
        warm : bool
            Whether `start` is nearly the optimum.
        work : float
            About how many multiplications may be made, shared by the stages; then the best so far counts, whatever
            the gap.
        """
        n, white = self._budget.n, self._budget.white
        columns = min(n, rank or min(14, self._directions + 2))
        # the factor of what `start` has beyond white noise, in its widest directions
        values, vectors = np.linalg.eigh(start - white * np.eye(n))
        least = 1e-6 * self._budget.free / n
        point = (vectors[:, -columns:] * np.sqrt(np.maximum(values[-columns:], least))).ravel()
        # stages: a smooth maximum over the goals, sharper from one to the next
        best, lower = self._at(point), 0.0
        stages = SHARPNESS[2:] if warm else SHARPNESS
        stages = (*stages, *(SHARPNESS[-1],) * RESTARTS)
        left = work / (len(self._shares) * n**3)  # evaluations
        for done, sharpness in enumerate(stages):
            if (share := left / (len(stages) - done)) < 1.0:
                break
            before = self._evaluations
            with one_thread():
                point = minimize(
                    self._smooth,
                    point,
                    args=(sharpness,),
                    jac=True,
                    method="L-BFGS-B",
                    options={
                        "maxiter": 300,
                        "maxfun": min(share, 15_000.0),
                        "maxcor": 30,
                        "ftol": 1e-13,
                        "gtol": 1e-10,
                    },
                ).x
            left -= self._evaluations - before
            state = self._at(point)
            best = min(best, state, key=lambda one: one.largest)
            lower = max(lower, self._certificate(state, sharpness))
            if best.largest <= lower * (1.0 + gap):
                break
        if lower > best.largest * (1.0 + 1e-6):
            raise UnsupportedError("the certificate of this noise contradicts its loss: ask for a larger floor.")
        noise = best.factor @ best.factor.T + white * np.eye(n)
        return noise, Bracket(min(lower, best.largest) * (1.0 - 1e-9), best.largest * (1.0 + 1e-9))

    def _at(self, point: Floats) -> _State:
        self._evaluations += 1
        raw = point.reshape(self._budget.n, -1)
        squares = float((raw * raw).sum())
        factor = raw * np.sqrt(self._budget.free / squares)
        noise = factor @ factor.T + self._budget.white * np.eye(self._budget.n)
        solved = np.linalg.solve(self._residuals + noise, self._weights)
        matrices = np.swapaxes(self._weights, 1, 2) @ solved / self._shares[:, None, None]
        return _State(solved, 0.5 * (matrices + np.swapaxes(matrices, 1, 2)), factor, squares)

    def _pressures(self, losses: Floats, sharpness: float) -> tuple[float, Floats]:
        """Log of the smooth maximum of all eigenvalues, and its derivative by each J (k, S, S)."""
        values, vectors = np.linalg.eigh(losses)
        values = np.maximum(values, 1e-300)
        logs = np.log(values)
        top = float(logs.max())
        powers = np.exp(sharpness * (logs - top))
        total = float(powers.sum())
        slopes = (vectors * (powers / total / values)[:, None, :]) @ np.swapaxes(vectors, 1, 2)
        return top + float(np.log(total)) / sharpness, slopes / self._shares[:, None, None]

    def _smooth(self, point: Floats, sharpness: float) -> tuple[float, Floats]:
        state = self._at(point)
        value, slopes = self._pressures(state.losses, sharpness)
        # dJ/dG = - y . y': each goal pulls the noise towards its own smoother's weights
        inner = slopes @ (np.swapaxes(state.solved, 1, 2) @ state.factor)
        pull = -2.0 * np.einsum("kns,ksr->nr", state.solved, inner)
        raw = point.reshape(self._budget.n, -1)
        scale = np.sqrt(self._budget.free / state.squares)
        gradient = scale * (pull - float((pull * raw).sum()) / state.squares * raw)
        return value, gradient.ravel()

    def _certificate(self, state: _State, sharpness: float) -> float:
        """The lower end: weak duality at the multipliers that the smooth maximum names."""
        slopes = self._pressures(state.losses, sharpness)[1]
        p = slopes / float((self._shares * np.trace(slopes, axis1=1, axis2=2)).sum())
        y, turned = state.solved, np.swapaxes(state.solved, 1, 2)
        value = 2.0 * float((p * (np.swapaxes(self._weights, 1, 2) @ y)).sum())
        value -= float((p * (turned @ (self._residuals @ y) + self._budget.white * (turned @ y))).sum())
        spread = (y @ p @ turned).sum(axis=0)
        return value - self._budget.free * float(np.linalg.eigvalsh(spread)[-1])


def one_thread() -> AbstractContextManager[object]:
    """Small matrices are faster on one thread, ten times in processor time; without threadpoolctl as it comes."""
    try:
        limits: AbstractContextManager[object] = require("threadpoolctl", extra="trace").threadpool_limits(1)
    except MissingExtraError:
        return nullcontext()
    return limits


# The same problems as semidefinite programs, for a solver: exact by Schur complements, repaired before use.
#
# An optional extra (`trace`: cvxpy with Clarabel, SCS above 100 points). Nothing that a solver returns is trusted:
# noise is made symmetric, at least the floor and of the budget's trace, and its loss comes from the repaired matrix.


MOST_FOR_CLARABEL = 100


def solve(problem: Any, n: int, solver: str | None) -> None:
    """Solve a program of n points; `UnsupportedError` where the solver fails."""
    chosen = solver or ("CLARABEL" if n <= MOST_FOR_CLARABEL else "SCS")
    options = {"eps_abs": 1e-7, "eps_rel": 1e-7, "max_iters": 50_000} if chosen == "SCS" else {}
    cvxpy = require("cvxpy", extra="trace")
    try:
        problem.solve(solver=chosen, **options)
    except cvxpy.error.SolverError as error:
        raise UnsupportedError(f"The solver {chosen} gave up: {str(error).splitlines()[0]}") from None
    if problem.status not in ("optimal", "optimal_inaccurate"):
        raise UnsupportedError(f"The solver {chosen} found no noise of this budget: {problem.status}.")


def least_worst_loss(goals: Sequence[Goal], budget: Budget, *, solver: str | None = None) -> Floats:
    """Noise that makes the largest of maxeig J_k / w_k least: one linear matrix inequality for each goal."""
    cp = require("cvxpy", extra="trace")
    noise, level = cp.Variable((budget.n, budget.n), PSD=True), cp.Variable()
    limits = [cp.trace(noise) <= budget.free]
    for goal in goals:
        count = goal.weights.shape[1]
        middle = goal.residual + budget.white * np.eye(budget.n) + noise
        limits.append(cp.bmat([[goal.weight * level * np.eye(count), goal.weights.T], [goal.weights, middle]]) >> 0)
    solve(cp.Problem(cp.Minimize(level), limits), budget.n, solver)
    return repaired(noise.value + budget.white * np.eye(budget.n), budget)

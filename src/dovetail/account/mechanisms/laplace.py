r"""Laplace noise on a grid of an interval: the worst two values are the ends.

Let R_a be the law of a + noise for a in [0, m], and mu = inf_a R_a, which is e^(-lambda m / 2) times the law centred
at m/2, up to the grid. For a <= m/2, Z_a = min(e^(lambda a) Z_0, e^(lambda (m - a))). So Z_a and Z_0 have equal
mean and cross once, and Z_a <= Z_0 in convex order; m - a is the mirror image. For given marginals Z_a - E Z_c is
largest in convex order where Z_a falls while Z_c grows, as Z_0 and Z_m do; and sums of such pairs keep the order. So
the pair (0, m) is worst for every n and epsilon.

A value between two grid points is rounded to either at random: its report is a mixture of theirs. What a shuffled
batch tells of one person among others is jointly convex in the laws of all reports, so no collection of such values
exposes anybody more than the worst collection of grid points does.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from dovetail.account.finite_channel import base_law, channel_exposures
from dovetail.account.privacy_blanket import BlanketLaw, DeclaredLaw, Exposure
from dovetail.core.errors import UnsupportedError
from dovetail.core.special import Reals
from dovetail.randomize.laplace import Laplace

CELLS = 256
MOST_STEPS = 64  # grid steps up to which values of a person are compared with every value of the others
MOST_PAIRED = 32  # beside other questions
KNOTS, SKETCHED = 32, 8  # places that are all reports; and that tell which types are far from the worst


def grid_laplace_law(randomizer: Laplace, *, cells: int = CELLS) -> BlanketLaw:
    r"""Upper law of the geometric noise of `Laplace` with m grid steps, t = e^-lambda.

    .. math:: (p, 1): \frac{1}{p (1 + t)}, \qquad (e^{\lambda (m - 2 y)}, 1): \tanh(\tfrac\lambda2)\, t^{m - y},
              \quad 0 < y < \tfrac m2, \qquad \text{and mirrored}

    and (1, 1) at y = m/2 where m is even.

    A little above the law of continuous noise. Beyond about `cells` grid points, neighbours are gathered and moved to
    the two ends of their cell with the mean kept.

    Examples
    --------
    >>> coarse = grid_laplace_law(Laplace(lower=0.0, upper=1.0, epsilon=1.0, grid=0.5))
    >>> [round(float(mass), 4) for mass in coarse.mass]
    [0.229, 0.0743, 0.229, 0.0743]
    """
    m, rate = randomizer.steps, float(randomizer.rate)
    share, inner = 1.0 / (1.0 + math.exp(-rate)), (m - 1) // 2  # inner grid points lie strictly between 0 and m/2
    first = _cell_starts(inner, randomizer.epsilon, m, cells)
    last = np.append(first[1:], inner + 1.0)[: first.size] - 1.0
    held = share * -np.expm1(-rate * (last - first + 1.0))
    mass = held * np.exp(-rate * (m - last))  # tanh(rate / 2) t^(m - y), summed over the cell
    high, low = np.exp(rate * (m - 2.0 * first)), np.exp(rate * (m - 2.0 * last))
    up = 1.0 / (1.0 + np.exp(rate * (last - first)))  # keeps the mean, which is sqrt(low high)
    outer = share * math.exp(-randomizer.epsilon)
    places = np.concatenate([[math.exp(randomizer.epsilon)], high, low])
    masses = np.concatenate([[outer], mass * up, mass * (1.0 - up)])
    if m % 2 == 0:
        middle = math.tanh(0.5 * rate) * math.exp(-0.5 * randomizer.epsilon)
        places, masses = np.append(places, 1.0), np.append(masses, 0.5 * middle)
    return _two_sided(places, masses)


def grid_laplace_dataset(randomizer: Laplace, *, cells: int = CELLS) -> BlanketLaw:
    """Law below a bad collection: the ends as the two values, everybody else at one end or in the middle.

    Beyond about `cells` grid points, neighbouring reports count as one (data processing).
    """
    m, rate = randomizer.steps, float(randomizer.rate)
    share, middle = 1.0 / (1.0 + math.exp(-rate)), m // 2
    left = _cell_starts(max(middle - 1, 0), randomizer.epsilon, m, cells)
    right = np.unique(np.append(m - left, float(middle))) if middle > 0 else np.zeros(0)
    first = np.unique(np.concatenate([left, right[right < m]]))
    last = np.append(first[1:], float(m))[: first.size] - 1.0

    def row(centre: int) -> Reals:
        away = np.maximum(np.maximum(first - centre, centre - last), 0.0)
        cell = share * -np.expm1(-rate * (last - first + 1.0)) * np.exp(-rate * away)
        return np.concatenate([[share * math.exp(-rate * centre)], cell, [share * math.exp(-rate * (m - centre))]])

    laws = [base_law(row(others), row(0), row(m)) for others in (0, middle)]
    return max(laws, key=lambda law: law.spread)


def _two_sided(places: Reals, masses: Reals) -> BlanketLaw:
    """Atoms (place, 1) and (1, place), of equal mass."""
    ones, twice = np.ones_like(places), np.concatenate([masses, masses])
    return BlanketLaw(np.concatenate([places, ones]), np.concatenate([ones, places]), twice)


def _cell_starts(inner: int, epsilon: float, m: int, cells: int) -> Reals:
    """First grid points of at most `cells` cells of 1 .. inner, about even in exp(lambda (m - 2 y) / 2)."""
    if inner <= cells:
        return np.arange(1.0, inner + 1.0)
    v = np.linspace(math.exp(0.5 * epsilon * (1.0 - 2.0 * inner / m)), math.exp(0.5 * epsilon), cells, endpoint=False)
    starts = np.ceil(0.5 * m - np.log(v[::-1]) * m / epsilon)
    return np.unique(np.clip(np.append(1.0, starts), 1.0, float(inner)))


def grid_laplace_exposures(randomizer: Laplace) -> list[Exposure]:
    """All pairs of grid points, others on any of them; a mirrored pair is as exposed in its other order.

    Reports outside the grid say no more than its ends.
    """
    m, rate = _steps(randomizer, MOST_PAIRED), float(randomizer.rate)
    away = np.abs(np.subtract.outer(np.arange(m + 1), np.arange(m + 1)))
    rows = math.tanh(0.5 * rate) * np.exp(-rate * away)
    rows[:, [0, m]] = np.exp(-rate * away[:, [0, m]]) / (1.0 + math.exp(-rate))
    return channel_exposures(rows, combinations(range(m + 1), 2))


def grid_laplace_worst(randomizer: Laplace) -> list[Exposure]:
    r"""One pair of values for all: others between a person's two values count as if those were the ends, others
    beyond them as if the value that is farther away were.

    .. math:: (0, m \mid t), \qquad (a, m \mid t), \; t < a < m, \qquad (0, c \mid t), \; 0 < c < t

    Between neighbours of 0, m/2, m and the three values, all laws and mu solve f'' = lambda^2 f: a report there says
    what one at either neighbour does, at random. So six places are all reports.

    Source
    ------
    docs/theory/hidden-among-everybody.md, Laplace noise.
    """
    m, rate = _steps(randomizer, MOST_STEPS), float(randomizer.rate)
    near, far = np.array(list(combinations(range(m), 2)), dtype=np.float64).reshape(-1, 2).T  # t < a < m
    own = np.concatenate([np.arange(m + 1.0), near, m - near])
    none = np.zeros_like(own)
    first, second = none.copy(), none + m
    first[m + 1 : m + 1 + far.size], second[m + 1 + far.size :] = far, m - far

    def exposed(places: int, sketch: Exposure | None = None) -> Exposure:
        some = np.unique(np.round(np.linspace(0.0, m, min(m, places) + 1)))
        fixed = np.broadcast_to([*some, m // 2, (m + 1) // 2], (own.size, some.size + 2))
        knots = np.sort(np.column_stack([fixed, first, second, own]), axis=1)
        gaps = np.pad(np.tanh(0.5 * rate * np.diff(knots)), ((0, 0), (1, 1)), constant_values=1.0)
        weights = 0.5 * (gaps[:, :-1] + gaps[:, 1:])
        low, high, a, c, t = (
            weights * np.exp(-rate * np.abs(knots - x[:, None])) for x in (none, none + m, first, second, own)
        )
        return Exposure(np.minimum(low, high), a, c, t, most_lost=1.0, sketch=sketch)

    return [exposed(KNOTS, exposed(SKETCHED) if m > SKETCHED else None)]


def _steps(randomizer: Laplace, most: int) -> int:
    """Grid steps, if not too many to compare all that counts."""
    if randomizer.steps > most:
        raise UnsupportedError(
            f"Pairs of values of Laplace noise are compared up to {most} grid steps, got {randomizer.steps:,}; the "
            "bound by the blanket holds."
        )
    return randomizer.steps


LAW = DeclaredLaw(
    Laplace,
    "Laplace on a grid",
    upper=grid_laplace_law,
    dataset=grid_laplace_dataset,
    exposures=grid_laplace_exposures,
    worst=grid_laplace_worst,
)

"""The window mechanism: k-ary randomized response with a real number k = (m + W) / W of symbols."""

from __future__ import annotations

import numpy as np

from dovetail.account.finite_channel import base_law
from dovetail.account.privacy_blanket import BlanketLaw, DeclaredLaw, Exposure, Type
from dovetail.core.special import Reals
from dovetail.randomize.window import Window
from dovetail_protocol.exact_thresholds import WORD


def window_law(randomizer: Window) -> BlanketLaw:
    r"""Upper law: mu is the density outside the window, at every output.

    .. math:: (p, 1): b, \quad (1, p): b, \quad (1, 1): (k - 2)\, b, \qquad k = \frac{m + W}{W}, \quad
              b = \frac{1}{p + k - 1}

    Windows of two values that overlap have (p, p) and (1, 1) where these have (p, 1) and (1, p), with the same mean:
    lower in convex order. So have values that are rounded at random: they mix rows.

    Examples
    --------
    >>> law = window_law(Window(lower=0.0, upper=10.0, epsilon=2.0, grid=1.0, window=4))  # k = 3.5
    >>> [round(float(mass * (7.389056 + 2.5)), 5) for mass in law.mass]
    [1.0, 1.0, 1.5]

    Source
    ------
    docs/theory/accuracy.md, section A.
    """
    inside, low = randomizer.device.masses
    m, w = randomizer.steps, randomizer.width
    p, b = inside / (w * low), w * low / WORD
    return BlanketLaw([p, 1.0, 1.0], [1.0, p, 1.0], [b, b, (m - w) * low / WORD])


def window_dataset(randomizer: Window) -> BlanketLaw:
    """Exact law of a bad collection: the ends as the two values, everybody else at one end or beside it.

    There the window overlaps one of the two as little as it can, and the other one not at all. Outputs between two
    ends of windows count as one: the laws are the same there.
    """
    inside, low = randomizer.device.masses
    m, w = randomizer.steps, randomizer.width
    beside = m - w if 2 * w > m else w
    cuts = np.unique([0, w, beside, beside + w, m, m + w])
    sizes = np.diff(cuts)

    def row(start: int) -> Reals:
        held = (cuts[:-1] >= start) & (cuts[1:] <= start + w)
        return np.asarray(sizes * np.where(held, inside / w, float(low)) / WORD)

    laws = [base_law(row(others), row(0), row(m)) for others in (0, beside)]
    return max(laws, key=lambda law: law.spread)


def window_exposures(randomizer: Window) -> list[Exposure]:
    r"""Windows of the two values and the others', whatever else is in a report.

    .. math:: o, \; x, \; y, \; z \in [0, 1], \qquad x + y \le 1 - o, \; z \le o, \qquad
              x + y + z + o \ge L = \max(0, 2 - m / W)

    o is what the two windows share; the other's holds x of the first alone, y of the second alone and z of both.
    Laws are linear in these, so corners of what is possible are all that counts, in each slot for itself. The first
    kind is one of disjoint windows, which spread furthest.

    Source
    ------
    docs/theory/several-questions.md.
    """
    least = _least_held(randomizer)
    corners = [(0, 1, 0, 0), (0, 0, 1, 0), (0, least, 0, 0), (0, 0, least, 0), (1, 0, 0, 0), (1, 0, 0, 1)]
    kinds = dict.fromkeys([*corners, (least, 0, 0, 0)])
    return [Exposure.of_ratios([_sent(randomizer, *kind) for kind in kinds])]


def window_worst(randomizer: Window) -> list[Exposure]:
    r"""Disjoint windows of the two values; the others' window holds all of one, or as little of one as fits.

    .. math:: 0 \le x, y \le 1, \qquad x + y \ge \max(0, 2 - m / W)

    are the shares of the two windows that the other's may hold. Overlapping windows expose less where a report says
    nothing else, and every (x, y) no more than some corner of that region.

    Source
    ------
    docs/theory/hidden-among-everybody.md, which pairs and types.
    """
    least = _least_held(randomizer)
    corners = [(1.0, 0.0), (0.0, 1.0), (least, 0.0), (0.0, least)]
    return [Exposure.of_ratios([_sent(randomizer, 0.0, x, y, 0.0) for x, y in corners])]


def _least_held(randomizer: Window) -> float:
    """L, the least share of two windows that another one holds and that they share."""
    m, w = randomizer.steps, randomizer.width
    return max(0.0, (2 * w - m) / w)


def _sent(randomizer: Window, shared: float, x: float, y: float, z: float) -> Type:
    """Outputs in the first window alone, the second alone, both and neither: what the other's covers, and not."""
    inside, low = randomizer.device.masses
    m, w = randomizer.steps, randomizer.width
    p, b = inside / (w * low), w * low / WORD
    neither = (m - w) * low / WORD + b * shared
    rest = min(b * (1.0 - x - y - z), neither)
    alone = 1.0 - shared
    mu = np.array([b * x, b * (alone - x), b * y, b * (alone - y), b * z, b * (shared - z), rest, neither - rest])
    first, second, own = np.where(
        np.array([[1, 1, 0, 0, 1, 1, 0, 0], [0, 0, 1, 1, 1, 1, 0, 0], [1, 0, 1, 0, 1, 0, 1, 0]]), p, 1.0
    )
    return mu, first, second, own


LAW = DeclaredLaw(
    Window,
    "window mechanism",
    upper=window_law,
    dataset=window_dataset,
    exposures=window_exposures,
    worst=window_worst,
)

"""The window mechanism: k-ary randomized response with a real number k = (m + W) / W of symbols."""

from __future__ import annotations

import numpy as np

from dovetail.account.blanket.declared_law import DeclaredLaw
from dovetail.account.blanket.privacy_blanket import BlanketLaw
from dovetail.account.mechanisms.finite_channel import base_law
from dovetail.core.numeric.special import Reals
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
    """Exact law of a bad collection: the ends as the two values, everybody else in the middle or at one end.

    Outputs between two ends of windows count as one: the laws are the same there.
    """
    inside, low = randomizer.device.masses
    m, w = randomizer.steps, randomizer.width
    middle = m // 2
    cuts = np.unique([0, w, middle, middle + w, m, m + w])
    sizes = np.diff(cuts)

    def row(start: int) -> Reals:
        held = (cuts[:-1] >= start) & (cuts[1:] <= start + w)
        return np.asarray(sizes * np.where(held, inside / w, float(low)) / WORD)

    laws = [base_law(row(others), row(0), row(m)) for others in (0, middle)]
    return max(laws, key=lambda law: law.spread)


LAW = DeclaredLaw(Window, "window mechanism", upper=window_law, dataset=window_dataset)

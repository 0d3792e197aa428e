"""Several tests at once: adjusted p-values after Holm, and after Benjamini and Hochberg."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def holm(p_values: Sequence[float]) -> list[float]:
    """The smallest family-wise levels at which each hypothesis falls; valid under any dependence.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    steps = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return _in_place(steps, order)


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """The smallest false discovery rates at which each hypothesis falls; for independent or positive dependence.

    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    [0.03, 0.04, 0.04]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    steps = p[order] * len(p) / np.arange(1, len(p) + 1)
    return _in_place(np.minimum(1.0, np.minimum.accumulate(steps[::-1])[::-1]), order)


def _in_place(steps: NDArray[np.float64], order: NDArray[np.int64]) -> list[float]:
    adjusted = np.empty_like(steps)
    adjusted[order] = steps
    return [float(value) for value in adjusted]

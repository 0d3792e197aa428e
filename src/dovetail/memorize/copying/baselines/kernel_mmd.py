r"""Three samples and a kernel: is Q farther from T than P is, over the whole space.

.. math:: \widehat{MMD}^2(T, Q) - \widehat{MMD}^2(T, P), \quad
          \widehat{MMD}^2(X, Y) = \overline{k(x, x')} + \overline{k(y, y')} - 2 \overline{k(x, y)}

unbiased: means over distinct pairs within a sample; Gaussian kernel with the median distance as its width.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from dovetail.core.entropy import Entropy, entropy_or_system

Points = NDArray[np.float64]  # (n, d)

MOST = 1_000  # of each sample: the kernel matrices are dense


@dataclass(frozen=True)
class ThreeSampleMMD:
    """The difference, its standard error, and the one-sided p of "Q is nearer to T than P is"."""

    difference: float
    standard_error: float
    p_copying: float


def three_sample_mmd(
    train: Points, fresh: Points, generated: Points, *, rng: Entropy | None = None
) -> ThreeSampleMMD:
    """The relative test in equally many points of each sample, at most 1,000; global, blind to local copying.

    Where all three have one law the statistic is degenerate and the normal p-value rough.

    Source
    ------
    Bounliphone, Belilovsky, Blaschko, Antonoglou, Gretton (2016), A test of relative similarity, ICLR, section 3.
    """
    source = entropy_or_system(rng)
    size = min(len(train), len(fresh), len(generated), MOST)
    x, y, z = (points[source.permutation(len(points))[:size]] for points in (train, generated, fresh))
    width = _median_distance(np.concatenate([x, y, z])[:: max(1, 3 * size // 500)])
    inside_y, inside_z = (_inside(_kernel(one, one, width)) for one in (y, z))
    k_xy, k_xz = _kernel(x, y, width), _kernel(x, z, width)
    # one number per index: the mean over i of what the i-th points contribute
    difference = (inside_y.sum() - inside_z.sum()) / (size * (size - 1)) - 2 * (k_xy.mean() - k_xz.mean())
    each = (
        (inside_y.sum(axis=1) - inside_z.sum(axis=1)) / (size - 1)
        - (k_xy.mean(axis=0) - k_xz.mean(axis=0))
        - (k_xy.mean(axis=1) - k_xz.mean(axis=1))
    )
    error = 2 * sqrt(float(each.var(ddof=1)) / size)
    return ThreeSampleMMD(float(difference), error, float(ndtr(difference / error)) if error else 1.0)


def _kernel(x: Points, y: Points, width: float) -> Points:
    squares = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1) - 2 * x @ y.T
    return np.asarray(np.exp(-np.maximum(squares, 0.0) / (2 * width**2)))


def _inside(kernel: Points) -> Points:
    np.fill_diagonal(kernel, 0.0)
    return kernel


def _median_distance(points: Points) -> float:
    from scipy.spatial.distance import pdist

    return float(np.median(pdist(points))) or 1.0

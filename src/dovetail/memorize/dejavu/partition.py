"""Which images only the target guesses, and whether that is more than chance: partition, McNemar's test, the gap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm

from dovetail.core.checks import whole
from dovetail.memorize.dejavu.score import Attacked

_ROUND = 9  # decimals of counts in which ties enter as fractions


@dataclass(frozen=True)
class Partition:
    """Attacked images by who guesses them; whole numbers unless guesses tie to the end.

    Parameters
    ----------
    correlated, memorized, misrepresented, unassociated : float
        Both models right; only the target; only the reference; neither.
    """

    correlated: float
    memorized: float
    misrepresented: float
    unassociated: float

    @classmethod
    def of(cls, directions: Sequence[Attacked]) -> Partition:
        """Counts over all directions; an unresolved tie counts as often as a fair draw would be right."""
        t, r = (
            np.concatenate([getattr(each, name).correct for each in directions]) for name in ("target", "reference")
        )
        counts = (t * r, t * (1 - r), (1 - t) * r, (1 - t) * (1 - r))
        return cls(*(round(float(each.sum()), _ROUND) for each in counts))


@dataclass(frozen=True)
class McNemar:
    """Exact two-sided McNemar test of `memorized` against `misrepresented` images.

    Parameters
    ----------
    memorized, misrepresented : int
        Images on which the two models disagree; an image with an unresolved tie is left out, for both alike.
    p_value : float
        Never too small under the null, and usually too large: the counts are whole.
    mid_p : float
        Half of the observed table's chance is left out: near its level on average, not always below.
    """

    memorized: int
    misrepresented: int
    p_value: float
    mid_p: float


def mcnemar(memorized: int, misrepresented: int) -> McNemar:
    r"""Is one of two counts larger than a fair coin allows?

    .. math:: p = \min(1, 2 \Pr(\mathrm{Bin}(b + c, 1/2) \ge \max(b, c)))

    Examples
    --------
    >>> round(mcnemar(27, 9).p_value, 4), round(mcnemar(27, 9).mid_p, 4)
    (0.0039, 0.0026)
    """
    b, c = whole("memorized", memorized, least=0), whole("misrepresented", misrepresented, least=0)
    tail, own = float(binom.sf(max(b, c) - 1, b + c, 0.5)), float(binom.pmf(max(b, c), b + c, 0.5))
    return McNemar(b, c, min(1.0, 2.0 * tail), min(1.0, 2.0 * tail - own))


def mcnemar_of(directions: Sequence[Attacked]) -> McNemar:
    """McNemar's test of the images on which target and reference disagree, over all directions.

    Over both directions of a pair it cancels a model that is simply better only where both have equally many images.
    """
    advantages = np.concatenate([each.advantages for each in directions])
    return mcnemar(int((advantages == 1.0).sum()), int((advantages == -1.0).sum()))


@dataclass(frozen=True)
class Gap:
    """Accuracy of the target minus that of the reference, which is the memorized less the misrepresented share.

    Parameters
    ----------
    value, standard_error : float
        The mean over directions, each with equal weight, and its error over images given the models.
    interval : pair of floats
        95 %, paired.
    p_value : float
        Two-sided, normal: the directions' means cancel a model that is simply better.
    detectable : float
        The smallest true gap that is found at 5 % (two-sided) with probability .8.
    """

    value: float
    standard_error: float
    interval: tuple[float, float]
    p_value: float
    detectable: float


def gap(directions: Sequence[Attacked]) -> Gap:
    r"""The pooled gap G = mean of g over directions, with its paired error.

    .. math:: se = \frac{1}{D} \sqrt{\sum_d s_d^2 / n_d}

    The interval adds one image to each side of every direction before it computes them (Bonett and Price 2012), so it
    keeps its coverage with few disagreements and never has width 0.
    """
    samples = [each.advantages for each in directions]
    value = float(np.mean([each.mean() for each in samples]))
    plain = math.sqrt(sum(_variance(each, len(each)) for each in samples)) / len(samples)
    more = [np.concatenate([each, [1.0, -1.0]]) for each in samples]
    middle = float(np.mean([each.mean() for each in more]))
    wide = math.sqrt(sum(_variance(each, len(each)) for each in more)) / len(more)
    reach = float(norm.isf(0.025)) * wide
    interval = (max(-1.0, middle - reach), min(1.0, middle + reach))
    z = 0.0 if not value else value / plain if plain else math.inf
    detectable = (float(norm.isf(0.025)) + float(norm.ppf(0.8))) * wide
    return Gap(value, plain, interval, float(2.0 * norm.sf(abs(z))), detectable)


def _variance(sample: NDArray[np.float64], n: int) -> float:
    """Of the mean of a sample."""
    return float(sample.var(ddof=1)) / n if n > 1 else 0.0

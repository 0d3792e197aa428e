"""The deja vu score at a confidence level, its paired variant, intervals and a permutation test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # scipy.stats loads when it is first used: half a second
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from dovetail.core.checks import real, whole
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError, ParameterError
from dovetail.memorize.dejavu.inference import LabelInference

Weights = NDArray[np.float64]  # (draws, n), how often each image is in each draw
Draws = NDArray[np.float64]  # (draws,)

_BLOCK = 2_000_000  # weights held at a time


@dataclass(frozen=True)
class Attacked:
    """One direction of the test: images of one model's training set, attacked with both models.

    Parameters
    ----------
    target : LabelInference
        By the model that trained on these images.
    reference : LabelInference
        By the model that did not, for the same images in the same order.
    """

    target: LabelInference
    reference: LabelInference

    def __post_init__(self) -> None:
        if self.target.n != self.reference.n:
            raise DataError(f"`reference` must guess the {self.target.n} images of `target`, got {self.reference.n}.")

    @property
    def n(self) -> int:
        """Number of attacked images."""
        return self.target.n

    @property
    def advantages(self) -> NDArray[np.float64]:
        """For each image, how much more often the target is right: -1, 0 or 1 where no tie is left."""
        return self.target.correct - self.reference.correct

    @property
    def exchanged(self) -> Attacked:
        """With target and reference exchanged."""
        return Attacked(self.reference, self.target)


@dataclass(frozen=True)
class Score:
    """score(p) with 95 % bootstrap intervals and the p-value of exchanging the models image by image.

    Parameters
    ----------
    share : float
        p: of the images, the most confident.
    images : int
        How many that are, over all directions.
    value, paired : float
        Each model on its own most confident images; and both on those of the target.
    interval, paired_interval : pairs of floats
        Over images, given the models.
    p_value : float
        Two-sided, of `value`.
    """

    share: float
    images: int
    value: float
    interval: tuple[float, float]
    paired: float
    paired_interval: tuple[float, float]
    p_value: float


def images_at(share: float, n: int) -> int:
    """int(p n), at least one image.

    >>> images_at(0.2, 80), images_at(0.29, 100), images_at(1.0, 7)
    (16, 29, 7)
    """
    part = real("share", share)
    if not 0.0 < part <= 1.0:
        raise ParameterError(f"`share` must be above 0 and at most 1, got {share!r}.")
    taken = math.floor(part * n + 1e-9)
    if not taken:
        raise ParameterError(f"`share` must be at least 1/{n}, one of the attacked images, got {share!r}.")
    return taken


def confident_accuracy(
    correct: NDArray[np.float64], confidence: NDArray[np.float64], take: int, weights: Weights
) -> Draws:
    """Accuracy on the `take` most confident of weighted images; images tied at the threshold enter in expectation.

    Parameters
    ----------
    correct, confidence : float arrays (n,)
    take : int
        At most the sum of each row of weights.
    weights : float array (draws, n)
    """
    order = np.argsort(-confidence, kind="stable")
    sure = confidence[order]
    starts = np.flatnonzero(np.concatenate([[True], sure[1:] != sure[:-1]]))
    ordered = weights[:, order]
    group = np.add.reduceat(ordered, starts, axis=1)
    hits = np.add.reduceat(ordered * correct[order], starts, axis=1)
    taken = np.clip(take - (np.cumsum(group, axis=1) - group), 0.0, group)
    return np.asarray((taken * hits / np.maximum(group, 1.0)).sum(axis=1) / take)


def score(directions: Sequence[Attacked], share: float) -> float:
    r"""score(p): accuracy of the target on its own most confident images minus the reference's on its own.

    .. math::
        \frac{1}{|S_t|} \sum_{i \in S_t} t_i - \frac{1}{|S_r|} \sum_{i \in S_r} r_i, \quad |S| = \lfloor p n \rfloor

    The mean over directions, each with equal weight: a model that is simply better cancels, whatever their sizes.
    """
    return float(np.mean([_score(each, share, np.ones((1, each.n)))[0] for each in directions]))


def paired_score(directions: Sequence[Attacked], share: float) -> float:
    """Accuracy of target minus reference, both on the target's most confident images; the mean over directions."""
    return float(np.mean([_paired(each, share, np.ones((1, each.n)))[0] for each in directions]))


def measure_score(
    directions: Sequence[Attacked], share: float, *, draws: int = 2000, rng: Entropy | None = None
) -> Score:
    """score(p), its paired variant, percentile bootstrap intervals over images, and a permutation p-value.

    Images are drawn anew within each direction. The permutation exchanges target and reference of an image with its
    confidence, and selects anew: p = (1 + #{|s*| >= |s|}) / (draws + 1). Both take the two models as given; they say
    nothing of another training run.

    Parameters
    ----------
    directions : list of Attacked
    share : float
        p, above 0 and at most 1.
    draws : int, at least 100
        Of the bootstrap and of the permutation.
    """
    entropy, draws = entropy_or_system(rng), whole("draws", draws, least=100)
    value, paired = score(directions, share), paired_score(directions, share)
    own, both, null = (np.zeros(draws) for _ in range(3))
    for each in directions:
        step = max(1, _BLOCK // (2 * each.n))
        for at in range(0, draws, step):
            part = slice(at, min(at + step, draws))
            resampled = _resampled(each.n, part.stop - part.start, entropy)
            own[part] += _score(each, share, resampled)
            both[part] += _paired(each, share, resampled)
            null[part] += _permuted(each, share, part.stop - part.start, entropy)
    own, both, null = (each / len(directions) for each in (own, both, null))
    extreme = int((np.abs(null) >= abs(value) - 1e-12).sum())
    images = sum(images_at(share, each.n) for each in directions)
    return Score(share, images, value, _ends(own), paired, _ends(both), (1 + extreme) / (draws + 1))


def _score(each: Attacked, share: float, weights: Weights) -> Draws:
    take = images_at(share, each.n)
    one, two = each.target, each.reference
    return confident_accuracy(one.correct, one.confidence, take, weights) - confident_accuracy(
        two.correct, two.confidence, take, weights
    )


def _paired(each: Attacked, share: float, weights: Weights) -> Draws:
    return confident_accuracy(each.advantages, each.target.confidence, images_at(share, each.n), weights)


def _permuted(each: Attacked, share: float, draws: int, entropy: Entropy) -> Draws:
    """Scores after exchanging the models of each image by a fair coin.

    All 2 n guesses stand in one list; each draw's target has one of the two guesses of every image, the reference the
    other.
    """
    mine = entropy.below(2, draws * each.n).reshape(draws, each.n).astype(np.float64)
    correct = np.concatenate([each.target.correct, each.reference.correct])
    confidence = np.concatenate([each.target.confidence, each.reference.confidence])
    take = images_at(share, each.n)
    one, two = np.hstack([mine, 1.0 - mine]), np.hstack([1.0 - mine, mine])
    return confident_accuracy(correct, confidence, take, one) - confident_accuracy(correct, confidence, take, two)


def _resampled(n: int, draws: int, entropy: Entropy) -> Weights:
    """Count how often each of n images is among n drawn with replacement."""
    picked = entropy.below(n, draws * n) + n * np.repeat(np.arange(draws), n)
    return np.bincount(picked, minlength=draws * n).reshape(draws, n).astype(np.float64)


def _ends(samples: Draws) -> tuple[float, float]:
    low, high = np.quantile(samples, (0.025, 0.975))
    return float(low), float(high)


# Which images only the target guesses, and whether that is more than chance: partition, McNemar's test, the gap.


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
    tail, own = (
        float(scipy.stats.binom.sf(max(b, c) - 1, b + c, 0.5)),
        float(scipy.stats.binom.pmf(max(b, c), b + c, 0.5)),
    )
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
    reach = -float(ndtri(0.025)) * wide
    interval = (max(-1.0, middle - reach), min(1.0, middle + reach))
    z = 0.0 if not value else value / plain if plain else math.inf
    detectable = (float(ndtri(0.8)) - float(ndtri(0.025))) * wide
    return Gap(value, plain, interval, float(2.0 * ndtr(-abs(z))), detectable)


def _variance(sample: NDArray[np.float64], n: int) -> float:
    """Variance of the mean of a sample."""
    return float(sample.var(ddof=1)) / n if n > 1 else 0.0

"""The test with two models: both directions, several pairs, and what is said of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, gammaln, stdtr

from dovetail.core.checks import floats
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError
from dovetail.core.progress import Progress, silent
from dovetail.memorize.dejavu.inference import clean_labels
from dovetail.memorize.dejavu.score import (
    Attacked,
    Gap,
    McNemar,
    Partition,
    Score,
    gap,
    mcnemar_of,
    measure_score,
    score,
)

SHARES = (0.05, 0.2, 1.0)
LEVEL = 0.05
_EQUAL = 1e-12  # gaps this close are equal up to rounding


@dataclass(frozen=True)
class BetweenPairs:
    """Spread of the gap between pairs of models, which holds the randomness of training; needs three pairs.

    Parameters
    ----------
    gaps : tuple of float
        One for each pair.
    deviation : float
        Their standard deviation.
    p_value : float or None
        Student's t-test of their mean against 0, two-sided; None below three pairs, or where all are equal.
    """

    gaps: tuple[float, ...]
    deviation: float | None
    p_value: float | None


@dataclass(frozen=True)
class TwoModels:
    """Result of two models, or of several pairs of them.

    Parameters
    ----------
    images : int
        Attacked, over all directions of all pairs.
    target_accuracy, reference_accuracy : float
        Means over directions with equal weight.
    scores : tuple of Score
        One for each share asked for.
    partition : Partition
        Counts over all directions.
    mcnemar : McNemar
        Over all directions; only where `balanced`.
    balanced : bool
        Both directions of every pair have equally many images, so McNemar's test cancels a model that is better.
    gap : Gap
    pairs : BetweenPairs
    """

    images: int
    target_accuracy: float
    reference_accuracy: float
    scores: tuple[Score, ...]
    partition: Partition
    mcnemar: McNemar
    balanced: bool
    gap: Gap
    pairs: BetweenPairs

    @property
    def p_value(self) -> float:
        """The exact test where it cancels a model that is better, the pooled gap elsewhere."""
        return self.mcnemar.p_value if self.balanced else self.gap.p_value

    @property
    def found(self) -> str:
        """`memorization`, `nothing`, or `unclear` when the reference is significantly better."""
        if self.p_value >= LEVEL or not self.gap.value:
            return "nothing"
        return "memorization" if self.gap.value > 0.0 else "unclear"


def compare_models(
    pairs: Sequence[Sequence[Attacked]],
    *,
    shares: Sequence[float] = SHARES,
    draws: int = 2000,
    rng: Entropy | None = None,
    progress: Progress = silent,
) -> TwoModels:
    """Deja vu over pairs of models, each attacked in one direction or in both.

    Parameters
    ----------
    pairs : list of lists of Attacked
        For each pair of models its directions: images of A (the target is A's model) and images of B (it is B's).
        Give both: with one, memorization and a better model look alike.
    shares : list of float
        p of score(p).
    draws : int, at least 100
        Of bootstrap and permutation.
    progress : function
        Called with a step, how many are done, and of how many.

    Notes
    -----
    Tests over images take the models as given, and images of different pairs as different; `pairs` has the test that
    takes training into account.
    """
    if not pairs or not all(pairs):
        raise DataError("`pairs` must hold at least one attacked set of images.")
    if len({len(each) for each in pairs}) > 1:
        raise DataError("`pairs` must all be attacked in one direction or all in both.")
    directions = [each for pair in pairs for each in pair]
    gaps = tuple(gap(pair).value for pair in pairs)
    scores = []
    for number, share in enumerate(shares):
        progress("scores", number, len(shares))
        scores.append(measure_score(directions, share, draws=draws, rng=rng))
    progress("scores", len(shares), len(shares))
    return TwoModels(
        images=sum(each.n for each in directions),
        target_accuracy=float(np.mean([each.target.accuracy for each in directions])),
        reference_accuracy=float(np.mean([each.reference.accuracy for each in directions])),
        scores=tuple(scores),
        partition=Partition.of(directions),
        mcnemar=mcnemar_of(directions),
        balanced=all(len({each.n for each in pair}) == 1 for pair in pairs),
        gap=gap(directions),
        pairs=between(gaps),
    )


def between(gaps: tuple[float, ...]) -> BetweenPairs:
    """The t-test of the gaps of several pairs."""
    if len(gaps) < 2:
        return BetweenPairs(gaps, None, None)
    deviation = float(np.std(gaps, ddof=1))
    if len(gaps) < 3 or deviation < _EQUAL:
        return BetweenPairs(gaps, deviation, None)
    z = float(np.mean(gaps)) / (deviation / math.sqrt(len(gaps)))
    return BetweenPairs(gaps, deviation, float(2.0 * stdtr(len(gaps) - 1, -abs(z))))


def confidence_curve(directions: Sequence[Attacked], shares: Sequence[float]) -> list[tuple[float, float, float]]:
    """(p, accuracy of the target, of the reference), each on its own most confident images."""
    blank = [_silent(each) for each in directions]
    return [(p, score([one for one, _ in blank], p), score([two for _, two in blank], p)) for p in shares]


def _silent(each: Attacked) -> tuple[Attacked, Attacked]:
    """The same guesses beside one that is never right: its score is an accuracy."""
    from dovetail.memorize.dejavu.inference import LabelInference

    nothing = LabelInference(np.zeros(each.n), np.zeros(each.n))
    return Attacked(each.target, nothing), Attacked(each.reference, nothing)


# The test with one model: its training images beside control images that it never saw.


Right = NDArray[np.float64]  # (n,), chance that a guess is right

LEAST = 20  # images on a side
_POWER = (1.6448536 + 0.8416212) / 1.9599640  # found at 5 % in 8 of 10 tests, as a multiple of half a 95 % interval


@dataclass(frozen=True)
class Excess:
    """Excess of the target over a classifier of the correlation; no test of memorization.

    An encoder that is simply better than the classifier shows an excess without any memorization: with a classifier
    of 70 % of the encoder's own correlation, testing it against 0 rejects in 98 % of runs.

    Parameters
    ----------
    accuracy, classifier_accuracy, value : float
    """

    accuracy: float
    classifier_accuracy: float
    value: float


@dataclass(frozen=True)
class OneModel:
    """Training images against controls.

    Parameters
    ----------
    images, controls : int
    accuracy, control_accuracy : float
        Of the target on its training images A and on the controls C.
    difference : float
        D: accuracy on A minus accuracy on C, within classes where they are given, in shares of images.
    interval : pair of floats
        95 %, of D.
    p_value : float
        Exact and one-sided: small where training images are guessed better than controls.
    memorized_share : float or None
        rho = (acc_A - acc_C) / (1 - acc_C); None where the controls are all right.
    detectable : float
        About the smallest true D that is found at 5 % with probability .8.
    stratified : bool
        Compared within classes.
    """

    images: int
    controls: int
    accuracy: float
    control_accuracy: float
    difference: float
    interval: tuple[float, float]
    p_value: float
    memorized_share: float | None
    detectable: float
    stratified: bool

    @property
    def found(self) -> str:
        """`memorization` or `nothing`."""
        return "memorization" if self.p_value < 0.05 and self.difference > 0.0 else "nothing"


def excess(target: ArrayLike, classifier: ArrayLike) -> Excess:
    """The target's accuracy on its training images minus a classifier's: excess over it, not memorization.

    Parameters
    ----------
    target, classifier : float arrays (n,)
        Chance that the guess is right, for each training image.
    """
    t, r = _rights("target", target), _rights("classifier", classifier)
    if len(t) != len(r):
        raise DataError(f"`classifier` must guess the {len(t)} images of `target`, got {len(r)}.")
    return Excess(float(t.mean()), float(r.mean()), float(t.mean() - r.mean()))


def against_controls(
    target: ArrayLike,
    controls: ArrayLike,
    *,
    classifier: tuple[ArrayLike, ArrayLike] | None = None,
    labels: tuple[ArrayLike, ArrayLike] | None = None,
) -> OneModel:
    r"""Does one model guess its training images better than images of the same kind that it never saw?

    .. math::
        p = \Pr[T' \ge T], \qquad T = \sum_{i \in A} u_i, \qquad T' = \sum_s H_s

    with u whether an image is guessed (its chance is above the mean of all images; chances of 0 and 1 stay what they
    are), and H_s hypergeometric: how many of a stratum's guessed images fall to A when the names A and C are dealt
    anew. Strata are the classes, and whether the classifier is right. One stratum is Fisher's exact test. The level
    holds at every size and accuracy, however weak the classifier is; that only makes the comparison sharper.

    Parameters
    ----------
    target, controls : float arrays (n_A,), (n_C,), at least 20 each
        Chance that the target's guess is right, for its training images A and for the control images C.
    classifier : pair of float arrays, optional
        The same of a classifier that learned the correlation from other images, for A and for C.
    labels : pair of arrays, optional
        Classes of A and of C: compare within classes, weighted as in A; every class of A needs two images of both.

    Notes
    -----
    Assumes that A and C were drawn and cropped alike and are disjoint from each other, from the public set and from
    what the classifier learned from. Controls that are a fifth harder reject in half of all runs.

    The interval adds squares of the distances to Clopper and Pearson's limits of both accuracies (Newcombe's method
    10 with their limits for Wilson's). By enumeration it covers in at least 95 % of runs at all sizes and accuracies
    of the calibration test; that is no theorem.

    Source
    ------
    Fisher (1935); Newcombe (1998), Interval estimation for the difference between independent proportions, method 10.
    The gap without a control group is that of Kokhlikyan and others (2025), arXiv 2504.05651, as summarized.
    """
    t = [_rights("target", target, least=LEAST), _rights("controls", controls, least=LEAST)]
    r = (
        [np.zeros(len(each)) for each in t]
        if classifier is None
        else [_rights("classifier", one) for one in classifier]
    )
    if [len(each) for each in r] != [len(each) for each in t]:
        raise DataError(
            f"`classifier` must guess the {len(t[0])} images and {len(t[1])} controls that the target does."
        )
    classes = [np.zeros(len(each), dtype=np.int64) for each in t] if labels is None else _classes(t, labels)
    weights = _control_weights(classes)
    accuracy, control, alike = float(t[0].mean()), float(t[1].mean()), float(weights @ t[1])
    (low_a, high_a), (low_c, high_c) = _limits(accuracy, len(t[0])), _limits(alike, 1.0 / float(weights.max()))
    difference = accuracy - alike
    below, above = hypot(accuracy - low_a, high_c - alike), hypot(high_a - accuracy, alike - low_c)
    return OneModel(
        images=len(t[0]),
        controls=len(t[1]),
        accuracy=accuracy,
        control_accuracy=control,
        difference=difference,
        interval=(difference - below, difference + above),
        p_value=_exact_p(t, [2 * one + two for one, two in zip(classes, _above_mean(r), strict=True)]),
        memorized_share=(accuracy - control) / (1.0 - control) if control < 1.0 else None,
        detectable=_POWER * above,
        stratified=labels is not None,
    )


def _rights(name: str, values: ArrayLike, *, least: int = 2) -> Right:
    found = floats(name, np.asarray(values, dtype=np.float64) if np.asarray(values).dtype.kind == "b" else values)
    if found.ndim != 1 or (found < 0.0).any() or (found > 1.0).any():
        raise DataError(f"`{name}` must be chances of being right, one for each image, all from 0 to 1.")
    if len(found) < least:
        raise DataError(f"`{name}` must be at least {least} images, got {len(found)}.")
    return found


def _classes(t: list[Right], labels: tuple[ArrayLike, ArrayLike]) -> list[NDArray[np.int64]]:
    """The class of each image, as numbers; classes of the controls alone are left out by their weight."""
    names = [clean_labels("labels", one, len(two)) for one, two in zip(labels, t, strict=True)]
    classes, codes = np.unique(np.concatenate(names), return_inverse=True)
    parts = [codes[: len(t[0])], codes[len(t[0]) :]]
    mine, theirs = (np.bincount(part, minlength=len(classes)) for part in parts)
    thin = np.flatnonzero((mine > 0) & (np.minimum(mine, theirs) < 2))
    if thin.size:
        raise DataError(
            f"`labels` must give every class at least two images and two controls, got {mine[thin[0]]} and "
            f"{theirs[thin[0]]} of {classes[thin[0]]!s}; leave the class out, or compare without labels."
        )
    return parts


def _control_weights(classes: list[NDArray[np.int64]]) -> Right:
    """The weight of each control, so that classes count among controls as they do in A; they sum to 1."""
    most = int(max(part.max() for part in classes)) + 1
    mine, theirs = (np.bincount(part, minlength=most) for part in classes)
    return np.asarray((mine / mine.sum() / np.maximum(theirs, 1))[classes[1]])


def _limits(share: float, n: float) -> tuple[float, float]:
    """Clopper and Pearson's 95 % limits of a share among n."""
    x = share * n
    low = float(betaincinv(x, n - x + 1.0, 0.025)) if x > 0.0 else 0.0
    return low, float(betaincinv(x + 1.0, n - x, 0.975)) if x < n else 1.0


def _above_mean(values: list[Right]) -> list[NDArray[np.bool_]]:
    """Above the mean of both groups: a threshold that does not know who is in which group."""
    middle = np.concatenate(values).mean()
    return [each > middle for each in values]


def _exact_p(t: list[Right], strata: list[NDArray[np.int64]]) -> float:
    """Chance that A holds as many guessed images as it does, when names are dealt anew within each stratum."""
    most = int(max(part.max() for part in strata)) + 1
    sizes = [np.bincount(part, minlength=most) for part in strata]
    guessed = [
        np.bincount(s, u, minlength=most).astype(np.int64) for s, u in zip(strata, _above_mean(t), strict=True)
    ]
    tail, found = np.ones(1), int(guessed[0].sum())
    for mine, theirs, hits in zip(*sizes, guessed[0] + guessed[1], strict=True):
        low, masses = _hypergeometric(int(mine), int(theirs), int(hits))
        tail, found = np.convolve(tail, masses), found - low
    return min(1.0, float(tail[found:].sum()))


def _hypergeometric(mine: int, theirs: int, hits: int) -> tuple[int, Right]:
    """Least number of hits among mine of the mine + theirs images, and the chance of that and of each larger one."""
    low, high = max(0, hits - theirs), min(hits, mine)
    k = np.arange(low, high + 1)
    logs = -sum(gammaln(1.0 + part) for part in (k, mine - k, hits - k, theirs - hits + k))
    masses = np.exp(logs - logs.max())
    return low, np.asarray(masses / masses.sum())

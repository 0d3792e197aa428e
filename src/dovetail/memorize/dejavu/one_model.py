"""The test with one model: its training images beside control images that it never saw."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, gammaln

from dovetail.core.checks import floats
from dovetail.core.errors import DataError
from dovetail.memorize.dejavu.inference import clean_labels

Right = NDArray[np.float64]  # (n,), chance that a guess is right

LEAST = 20  # images on a side
_POWER = (1.6448536 + 0.8416212) / 1.9599640  # found at 5 % in 8 of 10 tests, as a multiple of half a 95 % interval


@dataclass(frozen=True)
class Excess:
    """How much more often the target is right than a classifier of the correlation; no test of memorization.

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

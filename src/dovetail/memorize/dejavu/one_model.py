"""The test with one model: its training images beside control images that it never saw."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm

from dovetail.core.checks import floats
from dovetail.core.errors import DataError
from dovetail.memorize.dejavu.inference import clean_labels

Right = NDArray[np.float64]  # (n,), chance that a guess is right


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
    slope : float
        beta: how much of the classifier's being right is taken off; 0 without a classifier.
    difference, standard_error : float
        D, in shares of images.
    interval : pair of floats
        95 %, of D.
    z, p_value : float
        One-sided: large where training images are guessed better than controls.
    memorized_share : float or None
        rho = (acc_A - acc_C) / (1 - acc_C); None where the controls are all right.
    detectable : float
        The smallest true D that is found at 5 % with probability .8.
    stratified : bool
        Compared within classes.
    """

    images: int
    controls: int
    accuracy: float
    control_accuracy: float
    slope: float
    difference: float
    standard_error: float
    interval: tuple[float, float]
    z: float
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
        x = t - \beta r, \qquad D = \bar x_A - \bar x_C, \qquad z = D / \sqrt{s_A^2 / n_A + s_C^2 / n_C}

    with t and r whether target and classifier are right, and beta from the regression of t on r within the groups.
    The classifier only makes the comparison sharper; however weak it is, the test keeps its level.

    Parameters
    ----------
    target, controls : float arrays (n_A,), (n_C,)
        Chance that the target's guess is right, for its training images A and for the control images C.
    classifier : pair of float arrays, optional
        The same of a classifier that learned the correlation from other images, for A and for C.
    labels : pair of arrays, optional
        Classes of A and of C: compare within classes, weighted as in A; every class of A needs two images of both.

    Notes
    -----
    Assumes that A and C were drawn and cropped alike and are disjoint from each other, from the public set and from
    what the classifier learned from. Controls that are a fifth harder reject in half of all runs.

    Source
    ------
    The control group of every experiment; the gap without one is that of Kokhlikyan and others (2025),
    arXiv 2504.05651, as summarized.
    """
    t = [_rights("target", target), _rights("controls", controls)]
    r = (
        [np.zeros(len(each)) for each in t]
        if classifier is None
        else [_rights("classifier", one) for one in classifier]
    )
    if [len(each) for each in r] != [len(each) for each in t]:
        raise DataError(
            f"`classifier` must guess the {len(t[0])} images and {len(t[1])} controls that the target does."
        )
    strata = [np.zeros(len(each), dtype=np.int64) for each in t] if labels is None else _strata(t, labels)
    slope = _slope(t, r, strata)
    x = [one - slope * two for one, two in zip(t, r, strict=True)]
    difference, error = _difference(x, strata)
    z = 0.0 if not difference else difference / error if error else math.copysign(math.inf, difference)
    reach = float(norm.isf(0.025)) * error
    accuracy, control = float(t[0].mean()), float(t[1].mean())
    return OneModel(
        images=len(t[0]),
        controls=len(t[1]),
        accuracy=accuracy,
        control_accuracy=control,
        slope=slope,
        difference=difference,
        standard_error=error,
        interval=(difference - reach, difference + reach),
        z=z,
        p_value=float(norm.sf(z)),
        memorized_share=(accuracy - control) / (1.0 - control) if control < 1.0 else None,
        detectable=(float(norm.isf(0.05)) + float(norm.ppf(0.8))) * error,
        stratified=labels is not None,
    )


def _rights(name: str, values: ArrayLike) -> Right:
    found = floats(name, np.asarray(values, dtype=np.float64) if np.asarray(values).dtype.kind == "b" else values)
    if found.ndim != 1 or len(found) < 2 or (found < 0.0).any() or (found > 1.0).any():
        raise DataError(f"`{name}` must be at least two chances of being right, one for each image, all from 0 to 1.")
    return found


def _strata(t: list[Right], labels: tuple[ArrayLike, ArrayLike]) -> list[NDArray[np.int64]]:
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


def _slope(t: list[Right], r: list[Right], strata: list[NDArray[np.int64]]) -> float:
    """Regression of t on r, both less their means within group and class."""
    groups = np.concatenate([strata[0], strata[1] + strata[0].max(initial=0) + strata[1].max(initial=0) + 1])
    t_, r_ = (_centred(np.concatenate(each), groups) for each in (t, r))
    spread = float(r_ @ r_)
    return float(t_ @ r_) / spread if spread > 1e-12 else 0.0


def _centred(values: Right, groups: NDArray[np.int64]) -> Right:
    counts = np.maximum(np.bincount(groups), 1)
    return np.asarray(values - (np.bincount(groups, values) / counts)[groups])


def _difference(x: list[Right], strata: list[NDArray[np.int64]]) -> tuple[float, float]:
    """D and its standard error: class means weighted as in A, variances pooled over classes within each group."""
    classes = int(max(part.max() for part in strata)) + 1
    counts = [np.bincount(part, minlength=classes) for part in strata]
    weight = counts[0] / counts[0].sum()
    means = [
        np.bincount(part, one, minlength=classes) / np.maximum(n, 1)
        for part, one, n in zip(strata, x, counts, strict=True)
    ]
    variances = [
        float(((one - mean[part]) ** 2).sum()) / (len(one) - int((n > 0).sum()))
        for part, one, mean, n in zip(strata, x, means, counts, strict=True)
    ]
    difference = float(weight @ (means[0] - means[1]))
    square = sum(v * float((weight**2 / np.maximum(n, 1)).sum()) for v, n in zip(variances, counts, strict=True))
    return difference, math.sqrt(square)

"""The test with two models: both directions, several pairs, and what is said of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError
from dovetail.memorize.dejavu.partition import Gap, McNemar, Partition, gap, mcnemar_of
from dovetail.memorize.dejavu.score import Attacked, Score, measure_score, score

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
    """What two models, or several pairs of them, tell.

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
    progress: Callable[[str, int, int], None] = lambda step, done, total: None,
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
    return BetweenPairs(gaps, deviation, float(2.0 * student.sf(abs(z), len(gaps) - 1)))


def confidence_curve(directions: Sequence[Attacked], shares: Sequence[float]) -> list[tuple[float, float, float]]:
    """(p, accuracy of the target, of the reference), each on its own most confident images."""
    blank = [_silent(each) for each in directions]
    return [(p, score([one for one, _ in blank], p), score([two for _, two in blank], p)) for p in shares]


def _silent(each: Attacked) -> tuple[Attacked, Attacked]:
    """The same guesses beside one that is never right: its score is an accuracy."""
    from dovetail.memorize.dejavu.inference import LabelInference

    nothing = LabelInference(np.zeros(each.n), np.zeros(each.n))
    return Attacked(each.target, nothing), Attacked(each.reference, nothing)

"""What released embeddings are still good for: a public classifier, tried on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.core.errors import DataError
from dovetail.core.extras import require
from dovetail.text.candidates.candidates import Candidates
from dovetail.text.deep_candidate import DeepCandidate
from dovetail.text.fitting import calm_fit
from dovetail.text.integer_rows import UNIT, Rows

_FIT_SEED = 0


@dataclass(frozen=True)
class ClassifierScore:
    """Macro-F1 and accuracy over repetitions of the mechanism's randomness: means and standard deviations."""

    macro_f1: float
    macro_f1_deviation: float
    accuracy: float
    accuracy_deviation: float
    repetitions: int


@dataclass(frozen=True)
class PublicClassifier:
    """Logistic regression fitted to the public candidates and their labels."""

    model: Any

    @classmethod
    def fit(cls, candidates: Candidates) -> PublicClassifier:
        """Fit to labelled candidates; DataError where they have no labels, or one class."""
        if candidates.labels is None or len(set(candidates.labels)) < 2:
            raise DataError("the candidates must have labels of at least 2 classes; make them with --label COLUMN.")
        logistic = require("sklearn.linear_model", extra="text").LogisticRegression(
            C=10.0, max_iter=1000, class_weight="balanced", random_state=_FIT_SEED
        )
        with calm_fit():
            return cls(logistic.fit(candidates.rows / UNIT, list(candidates.labels)))

    def predict(self, rows: NDArray[Any]) -> list[str]:
        """Classes of embeddings (n, d), in whole numbers of 1/4096."""
        return [str(one) for one in self.model.predict(np.asarray(rows) / UNIT)]


def score(truth: Sequence[str], rounds: Sequence[Sequence[str]]) -> ClassifierScore:
    """Scores of the classes that were predicted in each repetition, for documents whose classes are `truth`."""
    metrics = require("sklearn.metrics", extra="text")
    f1 = [metrics.f1_score(list(truth), list(one), average="macro", zero_division=0) for one in rounds]
    hits = [metrics.accuracy_score(list(truth), list(one)) for one in rounds]
    return ClassifierScore(float(np.mean(f1)), float(np.std(f1)), float(np.mean(hits)), float(np.std(hits)), len(f1))


def same_class_share(
    mechanism: DeepCandidate, documents: Sequence[Rows], truth: Sequence[str], *, best: int
) -> float:
    """Share of candidates of the document's own class among its `best` best ones by the utility, without privacy.

    The ceiling of a utility: what it would release without noise. Clusters count by the shares of their members.
    """
    public = mechanism.utility.candidates
    labels = np.array(public.labels)
    total = 0.0
    for rows, own in zip(documents, truth, strict=True):
        levels = mechanism.levels(rows)
        if len(levels) != public.m:
            levels = levels[public.clusters]
        last = np.partition(levels, min(best, public.m) - 1)[min(best, public.m) - 1]
        surely, tied = levels < last, levels == last  # of equal ones any may be among the best
        left = min(best, public.m) - int(surely.sum())
        mine = labels == own
        total += float((mine & surely).sum() + left * (mine & tied).sum() / tied.sum()) / min(best, public.m)
    return total / len(documents)


def random_guess(truth: Sequence[str]) -> tuple[float, float]:
    r"""Accuracy and macro-F1 in expectation of guessing classes by their shares.

    .. math:: \sum_i q_i^2 \quad \text{and about} \quad \frac{1}{c} \sum_i q_i

    The accuracy is what the paper draws beside macro-F1, another metric.
    """
    _, counts = np.unique(list(truth), return_counts=True)
    shares = counts / counts.sum()
    return float(shares @ shares), float(shares.mean())

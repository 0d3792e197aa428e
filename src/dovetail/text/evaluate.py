"""What released embeddings are still good for: a public classifier, tried on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import whole
from dovetail.core.errors import DataError
from dovetail.core.extras import require
from dovetail.text.candidates.candidates import Candidates
from dovetail.text.integer_rows import UNIT

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
        with require("threadpoolctl", extra="text").threadpool_limits(1):
            return cls(logistic.fit(candidates.rows / UNIT, list(candidates.labels)))

    def predict(self, rows: NDArray[Any]) -> list[str]:
        """Classes of embeddings (n, d), in whole numbers of 1/4096."""
        return [str(one) for one in self.model.predict(np.asarray(rows) / UNIT)]

    def score(
        self, release: Callable[[], NDArray[Any]], truth: Sequence[str], *, repetitions: int
    ) -> ClassifierScore:
        """Try the classifier on fresh releases (n, d) of documents whose classes are `truth`."""
        metrics = require("sklearn.metrics", extra="text")
        rounds = [self.predict(release()) for _ in range(whole("repetitions", repetitions, least=1))]
        f1 = [metrics.f1_score(list(truth), one, average="macro", zero_division=0) for one in rounds]
        hits = [metrics.accuracy_score(list(truth), one) for one in rounds]
        return ClassifierScore(
            float(np.mean(f1)), float(np.std(f1)), float(np.mean(hits)), float(np.std(hits)), len(rounds)
        )


def random_guess(truth: Sequence[str]) -> tuple[float, float]:
    r"""Accuracy and macro-F1 in expectation of guessing classes by their shares.

    .. math:: \sum_i q_i^2 \quad \text{and about} \quad \frac{1}{c} \sum_i q_i

    The accuracy is what the paper draws beside macro-F1, another metric.
    """
    _, counts = np.unique(list(truth), return_counts=True)
    shares = counts / counts.sum()
    return float(shares @ shares), float(shares.mean())

"""Budget classes count by their size; anything else is another question and has to be asked for by name."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.statistics import LONG, SHORT, expect_caught, expect_mean, expect_standard_error

from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.core.estimate import Estimate
from dovetail.estimate.classes import combine_classes, estimate_classes
from dovetail.estimate.mean import estimate_mean
from dovetail.randomize.laplace import Laplace

KINDS = {"open": Laplace(0.0, 10.0, epsilon=8.0), "shy": Laplace(0.0, 10.0, epsilon=1.0)}
LABELS = np.repeat(["open", "shy"], [150, 50])
VALUES = np.repeat([2.0, 8.0], [150, 50])


def collect(rng: Entropy) -> np.ndarray:
    return np.append(KINDS["open"].randomize(VALUES[:150], rng), KINDS["shy"].randomize(VALUES[150:], rng))


def two(n: int = 50) -> dict[str, Estimate]:
    made = {"open": (20.0, 10.0), "shy": (120.0, 100.0)}
    return {
        name: Estimate(np.array(value), np.array(scale), n, np.array(2 * scale), bias_bound=0.5)
        for name, (value, scale) in made.items()
    }


@pytest.mark.exhaust
def test_size_weights_estimate_the_mean_of_the_people(rng: Entropy) -> None:
    found = [estimate_classes(KINDS, collect(rng), LABELS).overall for _ in range(1000)]
    values, stated = np.array([e.value for e in found]), np.array([e.standard_error for e in found])
    expect_mean(values, VALUES.mean())
    expect_standard_error(values - 3.5, stated)
    for factor in (SHORT, LONG):
        expect_caught(expect_standard_error, values - 3.5, factor * stated)


@pytest.mark.exhaust
def test_inverse_variance_weights_estimate_another_number(rng: Entropy) -> None:
    found = [estimate_classes(KINDS, collect(rng), LABELS, weights="inverse_variance").overall for _ in range(300)]
    assert np.mean([e.value for e in found]) == pytest.approx(2.0, abs=0.2)
    expect_caught(expect_mean, [e.value for e in found], VALUES.mean())


def test_the_errors_add_as_squares() -> None:
    size, inverse = combine_classes(two()), combine_classes(two(), weights="inverse_variance")
    assert float(size.overall.value) == 70.0 and float(inverse.overall.value) == pytest.approx(20.99, abs=5e-3)
    assert float(size.overall.standard_error) == pytest.approx(np.hypot(5.0, 50.0))
    assert float(size.overall.population_error) == pytest.approx(np.hypot(10.0, 100.0))
    assert float(inverse.overall.standard_error) == pytest.approx((1 / 100 + 1 / 10_000) ** -0.5)
    assert size.overall.n == 100 and size.overall.bias_bound == 0.5
    assert sum(inverse.weights.values()) == pytest.approx(1.0)


def test_each_class_is_estimated_by_itself_whatever_the_order(rng: Entropy) -> None:
    reports, order = collect(rng), rng.permutation(200)
    plain, mixed = estimate_classes(KINDS, reports, LABELS), estimate_classes(KINDS, reports[order], LABELS[order])
    assert plain.overall == mixed.overall and plain.weights == {"open": 0.75, "shy": 0.25}
    assert plain.classes["shy"] == estimate_mean(KINDS["shy"], reports[150:])


def test_classes_that_nobody_knows_or_that_hide_nobody_are_refused(rng: Entropy) -> None:
    reports = collect(rng)
    with pytest.raises(DataError, match=r"must be among \['open', 'shy'\], got 'other'"):
        estimate_classes(KINDS, reports, ["other", *LABELS[1:]])
    with pytest.raises(UnsupportedError, match="'shy' has 1 members"):
        estimate_classes(KINDS, reports[:151], LABELS[:151])
    with pytest.raises(UnsupportedError, match="'shy' has 0 members"):
        estimate_classes(KINDS, reports[:150], LABELS[:150])
    with pytest.raises(UnsupportedError, match="'open' has 1 members"):
        combine_classes(two(n=1))


@pytest.mark.parametrize("labels", [LABELS, LABELS.tolist(), LABELS.astype(object), pl.Series(LABELS.tolist())])
def test_labels_are_text_in_any_array(labels: Any, rng: Entropy) -> None:
    assert estimate_classes(KINDS, collect(rng), labels).weights == {"open": 0.75, "shy": 0.25}


def test_names_that_are_no_text_are_refused() -> None:
    text, numbers = {"1": KINDS["shy"], "2": KINDS["open"]}, {1: KINDS["shy"], 2: KINDS["open"]}
    reports = np.array([1, 2, 3, 4])
    for randomizers, labels in ((text, [1, 1, 2, 2]), (numbers, [1, 1, 2, 2]), (numbers, ["1", "1", "2", "2"])):
        with pytest.raises(DataError, match="must name classes by text"):
            estimate_classes(randomizers, reports, labels)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="must name classes by text"):
        estimate_classes(text, reports, ["1", "1", None, "2"])  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="at least one class"):
        estimate_classes({}, np.array([], dtype=np.int64), [])


def test_bad_input_is_refused(rng: Entropy) -> None:
    with pytest.raises(DataError, match="`labels` must name a class for each report"):
        estimate_classes(KINDS, collect(rng), LABELS[:5])
    with pytest.raises(ParameterError, match="`weights` must be"):
        combine_classes(two(), weights="precision")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="at least one class"):
        combine_classes({})

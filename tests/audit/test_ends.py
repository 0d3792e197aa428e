"""The ends of an epsilon, against direct summation or integration of two laws: below `lower` no claim is true."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

from dovetail.audit.ends import (
    Ends,
    as_written,
    count_ends,
    discrete_gaussian_ends,
    gaussian_ends,
    geometric_ends,
    laplace_ends,
    report_ends,
    sampled_ends,
    sampled_noise_ends,
    split_ends,
)
from dovetail.randomize.krr import KRR
from dovetail.randomize.subset_selection import SubsetSelection

Law = dict[Any, float]
ROUNDED = 1e-12  # what direct summation of a few thousand terms may lose, relative to 1


def excess(first: Law, second: Law, epsilon: float) -> float:
    """The sum of what exceeds e^epsilon times the other law: the delta of this pair."""
    return math.fsum(max(0.0, mass - math.exp(epsilon) * second.get(y, 0.0)) for y, mass in first.items())


def binary(epsilon0: float, bit: int) -> Law:
    keep = math.exp(epsilon0) / (1.0 + math.exp(epsilon0))
    return {bit: keep, 1 - bit: 1.0 - keep}


def together(laws: list[Law]) -> Law:
    """The law of independent reports, in order."""
    return {ys: math.prod(law[y] for law, y in zip(laws, ys, strict=True)) for ys in product(*laws)}


def shuffled(laws: list[Law]) -> Law:
    found: Law = {}
    for ys, mass in together(laws).items():
        key = tuple(sorted(ys))
        found[key] = found.get(key, 0.0) + mass
    return found


def holds(ends: Ends, pairs: list[tuple[Law, Law]], delta: float) -> None:
    """Some pair breaks every claim below `lower`; no pair breaks `upper`."""
    assert ends.upper is not None and 0.0 <= ends.lower <= ends.upper
    below = ends.lower * (1.0 - 1e-9)
    assert ends.lower == 0.0 or max(excess(*pair, below) for pair in pairs) > delta - ROUNDED
    assert all(excess(*pair, ends.upper) <= delta + ROUNDED for pair in pairs)


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.05])
@pytest.mark.parametrize("promises", [[1.0], [3.0], [0.5, 0.5, 0.5], [0.3, 1.1]])
def test_reports_in_the_open_lie_between_the_ends(promises: list[float], delta: float) -> None:
    ends = report_ends(promises, n=1, honest=None, rounds=1, delta=delta)
    worst = together([binary(one, 1) for one in promises]), together([binary(one, 0) for one in promises])
    holds(ends, [worst], delta)
    assert ends.upper is not None and ends.upper <= 1.04 * ends.lower  # few claims lie between


@pytest.mark.parametrize("delta", [0.0, 1e-2])
def test_rounds_are_as_many_questions_of_one_kind(delta: float) -> None:
    many = report_ends([0.7], n=1, honest=None, rounds=3, delta=delta)
    each = report_ends([0.7] * 3, n=1, honest=None, rounds=1, delta=delta)
    assert (many.lower, many.upper) == pytest.approx((each.lower, each.upper), rel=1e-6)


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.05])
@pytest.mark.parametrize("n", [2, 5])
def test_a_shuffled_batch_lies_between_the_ends(n: int, delta: float) -> None:
    pairs = [
        (shuffled([binary(1.5, 1), *others]), shuffled([binary(1.5, 0), *others]))
        for ones in range(n)
        for others in [[binary(1.5, 1)] * ones + [binary(1.5, 0)] * (n - 1 - ones)]
    ]
    pairs += [(second, first) for first, second in pairs]
    for subject in (KRR(k=2, epsilon=1.5), 1.5):
        ends = report_ends([subject], n=n, honest=None, rounds=1, delta=delta)
        assert ends.upper is not None
        assert all(excess(*pair, ends.upper) <= delta + ROUNDED for pair in pairs)
        if isinstance(subject, KRR):
            holds(ends, pairs, delta)


def test_without_delta_shuffling_hides_nothing() -> None:
    ends = report_ends([0.1], n=1000, honest=10, rounds=3, delta=0.0)
    assert ends.lower == ends.upper == 0.3
    named = report_ends([SubsetSelection(k=4, epsilon=1.0)], n=50, honest=None, rounds=2, delta=0.0)
    assert named.upper is not None and named.upper <= 2.0 and named.lower == pytest.approx(named.upper)


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.02])
@pytest.mark.parametrize(("epsilon0", "rate"), [(1.0, 0.1), (3.0, 0.5), (0.2, 0.9)])
def test_a_sample_lies_between_the_ends(epsilon0: float, rate: float, delta: float) -> None:
    ends = sampled_ends(epsilon0, rate=rate, delta=delta)
    seen, unseen = binary(epsilon0, 1), binary(epsilon0, 0)
    mixed: Law = {y: rate * seen[y] + (1.0 - rate) * unseen[y] for y in (0, 1)}
    holds(ends, [(mixed, unseen)], delta)
    assert ends.upper == pytest.approx(ends.lower, rel=1e-9)


@pytest.mark.parametrize("rounds", [1, 4])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
@pytest.mark.parametrize("ratio", [0.05, 1.0, 4.0])
def test_gaussian_noise_lies_between_the_ends(ratio: float, delta: float, rounds: int) -> None:
    ends, mu = gaussian_ends(ratio, rounds=rounds, delta=delta), math.sqrt(rounds) * ratio

    def exact(epsilon: float) -> float:
        near, far = (0.5 * math.erfc((epsilon / mu + side * mu / 2) / math.sqrt(2.0)) for side in (-1, 1))
        return near - math.exp(epsilon) * far

    assert ends.upper is not None and ends.lower <= ends.upper <= ends.lower * (1.0 + 1e-6)
    assert exact(ends.lower * (1.0 - 1e-5)) > delta > exact(ends.upper * (1.0 + 1e-5)) or ends.upper == 0.0


def test_gaussian_noise_is_never_pure() -> None:
    ends = gaussian_ends(0.001, rounds=1, delta=0.0)
    assert ends.lower == math.inf and ends.upper is None


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.1])
def test_laplace_noise_lies_between_the_ends(delta: float) -> None:
    distance, scale = 3.0, 2.0
    ends = laplace_ends(distance, scale, rounds=1, delta=delta)

    def exact(epsilon: float) -> float:
        def gap(y: float) -> float:
            first, second = (math.exp(-abs(y - mean) / scale) / (2 * scale) for mean in (0.0, distance))
            return max(0.0, first - math.exp(epsilon) * second)

        meets = (distance - epsilon * scale) / 2.0  # where the densities are apart by e^epsilon
        return math.fsum(float(quad(gap, *part)[0]) for part in ((-80.0, 0.0), (0.0, meets)))

    assert ends.upper is not None and ends.lower <= ends.upper
    assert exact(ends.upper) == pytest.approx(delta, abs=1e-9) and exact(ends.lower * 0.99) > delta


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.05])
@pytest.mark.parametrize("distance", [1, 3])
def test_geometric_noise_lies_between_the_ends(distance: int, delta: float) -> None:
    scale, span = 1.5, range(-120, 125)
    mass = (1.0 - math.exp(-1 / scale)) / (1.0 + math.exp(-1 / scale))
    first, second = ({y: mass * math.exp(-abs(y - mean) / scale) for y in span} for mean in (0, distance))
    ends = geometric_ends(distance, scale, rounds=1, delta=delta)
    holds(ends, [(first, second)], delta)
    assert distance != 1 or ends.upper == pytest.approx(ends.lower, rel=1e-9)


@pytest.mark.parametrize("delta", [1e-6, 1e-3, 0.05])
@pytest.mark.parametrize(("distance", "deviation"), [(1, 0.4), (1, 3.0), (4, 0.7), (5, 6.0)])
def test_discrete_gaussian_noise_lies_between_the_ends(distance: int, deviation: float, delta: float) -> None:
    span = range(-150, 150)
    total = math.fsum(math.exp(-y * y / (2 * deviation**2)) for y in span)
    laws = [
        {y: math.exp(-((y - mean) ** 2) / (2 * deviation**2)) / total for y in span} for mean in range(distance + 1)
    ]
    ends = discrete_gaussian_ends(distance, deviation, rounds=1, delta=delta)
    assert ends.upper is not None and ends.lower <= ends.upper <= ends.lower + 1e-5
    deltas = [max(excess(laws[0], law, at) for law in laws[1:]) for at in (ends.lower - 1e-5, ends.upper + 1e-5)]
    assert deltas[0] > delta > deltas[1] or ends.upper == 0.0


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.02])
def test_noise_on_a_sample_lies_between_the_ends(delta: float) -> None:
    scale, span, rate = 1.5, range(-120, 125), 0.3
    mass = (1.0 - math.exp(-1 / scale)) / (1.0 + math.exp(-1 / scale))
    without, added = ({y: mass * math.exp(-abs(y - mean) / scale) for y in span} for mean in (0, 1))
    mixed = {y: rate * added[y] + (1.0 - rate) * without[y] for y in span}
    ends = sampled_noise_ends(lambda delta: geometric_ends(1, scale, rounds=1, delta=delta), rate=rate, delta=delta)
    holds(ends, [(mixed, without), (without, mixed)], delta)
    assert ends.upper == pytest.approx(ends.lower, rel=1e-9)


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_a_value_that_changes_its_cell_is_in_two_parts(delta: float) -> None:
    cells = [binary(1.0, 1), binary(0.5, 0)], [binary(1.0, 0), binary(0.5, 1)]
    holds(split_ends([0.5, 0.2, 1.0], moves=True, delta=delta), [(together(cells[0]), together(cells[1]))], delta)
    holds(split_ends([0.5, 1.0], moves=False, delta=delta), [(binary(1.0, 1), binary(1.0, 0))], delta)


@pytest.mark.exhaust
@pytest.mark.parametrize("ends_of", [laplace_ends, geometric_ends])
def test_several_releases_of_pure_noise_compose(ends_of: object) -> None:
    assert callable(ends_of)
    once, many, pure = (
        ends_of(1.0, 10.0, rounds=rounds, delta=delta) for rounds, delta in ((1, 1e-6), (100, 1e-6), (3, 0.0))
    )
    assert pure.lower == pure.upper == 0.3
    assert once.lower <= many.lower < many.upper < 10.0  # below the sum of all


def test_the_bound_on_an_unbiased_count_is_met_by_one_report() -> None:
    for epsilon in np.geomspace(0.01, 20.0, 9).tolist():
        keep = 1.0 / (1.0 + math.exp(-epsilon))
        deviation = math.sqrt(keep * (1.0 - keep)) / (2.0 * keep - 1.0)
        ends = count_ends(1.0, deviation, delta=0.0)
        assert ends.upper is None and ends.lower == pytest.approx(epsilon, rel=1e-6)


def test_numbers_are_taken_as_they_are_written() -> None:
    assert as_written(0.1, times=3) == as_written(0.1, 0.2) == 0.3
    assert laplace_ends(3.0, 10.0, rounds=1, delta=0.0).upper == 0.3

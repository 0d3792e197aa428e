"""What rehearsals in files count of the truth: whole numbers that add, and give what everybody's answers give."""

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.statistics import rng_of

from dovetail.core import question as contract
from dovetail.core.errors import UnsupportedError
from dovetail.core.estimate import UNIT, exact_sum
from dovetail.core.question import Question
from dovetail.question.covariance import Covariance
from dovetail.question.number import Number
from dovetail.question.shares import Shares

N = 1000
COINS = np.random.default_rng(7)
NUMBERS = COINS.normal(40.0, 12.0, N)
PAIRS = np.column_stack([NUMBERS, 1e6 + NUMBERS * COINS.random(N)])


class Median(Shares):  # type: ignore[misc]
    """A question of another distribution that says nothing of how its truth adds."""

    known = Question.known
    recalled = Question.recalled

    def truth(self, values: Any) -> list[float]:
        return [float(np.median(values))]


CASES: list[tuple[Question, Any]] = [
    (Shares(("a", "b", "c")), COINS.integers(0, 2, N)),
    (Number(-100.0, 200.0), NUMBERS),
    (Covariance(-100.0, 200.0, "other", 0.0, 2e6), PAIRS),
    (Median(("a", "b", "c")), COINS.integers(0, 3, N)),
    (Median(("a", "b")), NUMBERS),
]


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("asked", "values"), CASES, ids=[f"{type(one).__name__}{i}" for i, (one, _) in enumerate(CASES)]
)
def test_any_split_and_order_of_people_counts_the_same_truth(asked: Question, values: Any) -> None:
    whole = asked.known(values)
    order = rng_of("truth").permutation(N)
    parts = [asked.known(values[piece]) for piece in np.split(order, [1, 10, 500])]
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    assert total == whole and all(isinstance(count, int) for count in whole.values())
    assert asked.recalled(total) == asked.truth(values) == asked.truth(values[order])


def test_truths_are_what_the_textbook_says() -> None:
    assert CASES[0][0].truth(CASES[0][1])[2] == 0.0
    assert CASES[1][0].truth(NUMBERS)[0] == pytest.approx(NUMBERS.mean(), rel=1e-14)
    expected = np.cov(PAIRS.T, bias=True)[0, 1]
    assert CASES[2][0].truth(PAIRS)[0] == pytest.approx(expected, rel=1e-9)


def test_sums_are_exact_for_every_double() -> None:
    values = np.array([5e-324, -1.7e308, 0.1, 1e-310, 3.0, -0.0, 1.7e308])
    assert Fraction(exact_sum(values), 1 << UNIT) == sum(map(Fraction, values.tolist()))
    many = np.full(1 << 12, 2.0**52 - 1.0)
    assert Fraction(exact_sum(many), 1 << UNIT) == (1 << 12) * (2**52 - 1)


def test_answers_of_too_many_kinds_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "MOST_KINDS", 100)
    with pytest.raises(UnsupportedError, match="all of 1,000 different answers at once"):
        Median(("a", "b")).known(NUMBERS)

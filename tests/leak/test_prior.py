"""Priors are laws on datasets in order; what is no law is refused with the place."""

from fractions import Fraction
from itertools import product as pairs

import numpy as np
import pytest

from dovetail.core.errors import DataError, DovetailError, ParameterError, UnsupportedError
from dovetail.leak.qif import inputs as prior
from dovetail.leak.qif.inputs import normalize
from dovetail.leak.qif.vulnerability import prior_vulnerability


def test_every_dataset_has_the_product_of_its_people() -> None:
    people = [normalize([1, 3]), normalize([2, 5]), normalize([1, 1])]
    law = prior.product(people)
    for dataset, chance in zip(pairs(range(2), repeat=3), law, strict=True):
        assert chance == people[0][dataset[0]] * people[1][dataset[1]] * people[2][dataset[2]]
    assert law.sum() == 1


def test_people_may_have_domains_of_different_size() -> None:
    assert prior.product([normalize([1, 1]), normalize([1, 1, 1])]).tolist() == [Fraction(1, 6)] * 6


def test_the_same_law_for_everybody_is_a_product_and_uniform_stays_uniform() -> None:
    assert (prior.iid(normalize([1, 2, 4]), n=3) == prior.product([normalize([1, 2, 4])] * 3)).all()
    np.testing.assert_allclose(prior.iid(prior.uniform(3), n=4), 1 / 81)


def test_known_values_leave_only_the_target_open() -> None:
    strong = prior.product([normalize([1, 1]), prior.point(2, secret=0), prior.point(2, secret=1)])
    assert np.flatnonzero(strong).tolist() == [0b001, 0b101]
    assert strong[1] == strong[5] == Fraction(1, 2)


def test_a_known_secret_is_fully_vulnerable() -> None:
    assert prior_vulnerability(prior.point(5, secret=3)) == 1.0


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([0.5, 0.4], "`prior` must sum to 1; it sums to 0.9"),
        ([Fraction(1, 3), Fraction(1, 3)], "it sums to 2/3"),
        ([1.5, -0.5], r"entry \(1,\) is -0.5"),
        ([0.5, float("nan")], r"entry \(1,\) is nan"),
        ([float("inf"), 0.5], "finite"),
        ([[0.5, 0.5]], "vector of probabilities"),
        ([], "vector of probabilities"),
        (["a", "b"], "array of numbers"),
        ([True, False], "array of numbers"),
        ([Fraction(1, 2), None], "array of numbers"),
        ([Fraction(1, 2), True], "array of numbers"),
        ([[0.5], [0.25, 0.25]], "rows of one length"),
        (0.5, "vector of probabilities"),
        (None, "array of numbers"),
    ],
    ids=repr,
)
def test_what_is_no_law_is_refused(bad: object, message: str) -> None:
    with pytest.raises((ParameterError, DataError), match=message):
        prior_vulnerability(bad)  # type: ignore[arg-type]


def test_sizes_and_places_are_checked() -> None:
    for call in (
        lambda: prior.uniform(0),
        lambda: prior.uniform(True),
        lambda: prior.point(3, secret=3),
        lambda: prior.iid([0.5, 0.5], n=0),
    ):
        with pytest.raises(DovetailError, match="must be a whole number"):
            call()
    for people in ([], "ab", iter([[1.0]]), 3):
        with pytest.raises(DovetailError, match="`people` must be"):
            prior.product(people)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match=r"1.3e\+30 cells"):
        prior.iid([0.5, 0.5], n=100)

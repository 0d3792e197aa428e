"""Data outside the declared domain are refused with a count and the first offenders."""

import numpy as np
import pytest

from dovetail.core.errors import DataError
from dovetail.randomize.sampling.domain import numbers, symbols


def test_the_refusal_counts_offenders_and_shows_three() -> None:
    with pytest.raises(DataError) as refused:
        symbols([0, 9, -1, 3, 4, 2], 3)
    assert str(refused.value) == "`values` must be whole numbers in 0..2; 4 of 6 are not, 1: 9, 2: -1, 3: 3, ..."


def test_fractions_and_missing_values_are_shown_as_they_are() -> None:
    with pytest.raises(DataError, match=r"2 of 3 are not, 1: 0\.5, 2: nan\."):
        symbols([1.0, 0.5, np.nan], 3)


def test_booleans_stand_for_two_symbols_only() -> None:
    assert symbols([True, False], 2).tolist() == [1, 0]
    with pytest.raises(DataError, match="type bool"):
        symbols([True, False], 3)


def test_floats_beyond_int64_are_refused_before_they_wrap() -> None:
    with pytest.raises(DataError, match="1 of 1 are not, 0: 1e\\+30"):
        symbols([1e30], 3)


def test_the_callers_array_is_never_changed() -> None:
    values = np.array([0, 1, 2])
    assert symbols(values, 3) is values
    values.setflags(write=False)
    symbols(values, 3)


def test_numbers_outside_the_range_are_refused() -> None:
    assert numbers([0, 1], 0.0, 1.0).dtype == np.float64
    for bad in ([np.nan], [np.inf], [1.1], [-0.1], [[0.5]], 0.5, ["a"], [True], [1j]):
        with pytest.raises(DataError, match="`values` must be"):
            numbers(bad, 0.0, 1.0)


@pytest.mark.parametrize("narrow", [np.float16, np.float32])
def test_numbers_of_a_narrower_type_are_compared_as_the_doubles_they_are(narrow: type) -> None:
    upper = 0.1
    above = narrow(upper) if float(narrow(upper)) > upper else np.nextafter(narrow(upper), narrow(1.0))
    with pytest.raises(DataError, match="`values` must be"):
        numbers(np.array([above]), 0.0, upper)

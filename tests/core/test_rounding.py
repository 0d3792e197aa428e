"""A loss that becomes a double is never smaller than the exact one, and never by more than one step larger."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.certified import Bracket, round_up_largest_product, round_up_to_double
from dovetail.core.errors import ParameterError


@given(value=st.fractions(min_value=0, max_value=10**12))
def test_the_double_above_is_the_smallest_one_that_is_not_below(value: Fraction) -> None:
    above = round_up_to_double(value)
    assert Fraction(above) >= value and (above == 0.0 or Fraction(math.nextafter(above, 0.0)) < value)


@given(pairs=st.lists(st.tuples(st.floats(0.0, 1e6), st.integers(0, 10**6)), max_size=8))
def test_the_largest_product_is_rounded_up(pairs: list[tuple[float, int]]) -> None:
    left, right = np.array([a for a, _ in pairs]), np.array([b for _, b in pairs], dtype=np.int64)
    exact = max((Fraction(a) * b for a, b in pairs), default=Fraction(0)) * Fraction(1, 7)
    assert round_up_largest_product(left, right, unit=Fraction(1, 7)) == round_up_to_double(exact)


@pytest.mark.parametrize(("lower", "upper"), [(1.0, 0.5), (math.nan, 1.0), (0.0, math.nan), (math.inf, 0.0)])
def test_a_bracket_has_two_ends_that_are_numbers_in_order(lower: float, upper: float) -> None:
    with pytest.raises(ParameterError, match="`lower` must be at most `upper`"):
        Bracket(lower, upper)
    assert Bracket(0.5, 0.5).contains(0.5) and not Bracket(0.5, 1.0).contains(math.nan)

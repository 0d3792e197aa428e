"""Range checks refuse every value outside their range with one kind of error."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from dovetail.core.checks import not_negative_or_infinite, positive, privacy_budget, probability, real, share, whole
from dovetail.core.errors import ParameterError

HUGE = 10**400  # no double


@pytest.mark.parametrize("check", [real, positive, probability, share, privacy_budget])
@pytest.mark.parametrize("bad", [HUGE, -HUGE, float("nan"), float("inf"), True, np.bool_(True), "0.5", None, 1j])
def test_what_is_no_finite_number_is_refused(check: Callable[[str, object], float], bad: object) -> None:
    with pytest.raises(ParameterError, match="`x` must be"):
        check("x", bad)


@pytest.mark.parametrize(
    "bad", [HUGE, -HUGE, 0, 11, 2.5, float("nan"), float("inf"), True, np.bool_(True), "3", None]
)
def test_what_is_no_whole_number_in_the_range_is_refused(bad: object) -> None:
    with pytest.raises(ParameterError, match="`n` must be a whole number, at least 1 and at most 10"):
        whole("n", bad, least=1, most=10)


@pytest.mark.parametrize("good", [3, 3.0, np.int32(3), np.float64(3.0), Fraction(3)])
def test_whole_numbers_of_every_type_are_read(good: object) -> None:
    assert whole("n", good, least=1) == 3


def test_a_whole_number_beyond_the_doubles_is_kept_where_nothing_bounds_it() -> None:
    assert whole("n", HUGE, least=1) == HUGE


@pytest.mark.parametrize(("value", "allowed"), [(0.0, True), (0.5, True), (1.0, False), (-1e-300, False)])
def test_a_share_may_be_0_but_not_1(value: float, allowed: bool) -> None:
    if allowed:
        assert share("x", value) == value
        return
    with pytest.raises(ParameterError, match="at least 0 and below 1"):
        share("x", value)


@pytest.mark.parametrize("check", [positive, privacy_budget, probability])
def test_what_must_be_above_0_is_not_0(check: Callable[[str, object], float]) -> None:
    for bad in (0.0, -1e-300):
        with pytest.raises(ParameterError, match="`x` must be"):
            check("x", bad)
    assert check("x", 1e-300) == 1e-300


def test_a_local_epsilon_has_a_largest_value_and_may_be_it() -> None:
    assert privacy_budget("x", 700.0) == 700.0 and privacy_budget("x", 11.0, most=11.0) == 11.0
    for bad, most in ((math.nextafter(700.0, 701.0), 700.0), (11.5, 11.0)):
        with pytest.raises(ParameterError, match="at most"):
            privacy_budget("x", bad, most=most)


@pytest.mark.parametrize("good", [0, 0.0, 2, np.int32(2), np.float32(0.5), 1e308, float("inf")])
def test_what_may_be_infinite_may_be_zero_too(good: float) -> None:
    assert not_negative_or_infinite("alpha", good) == float(good)


@pytest.mark.parametrize("bad", [-1e-300, -1, float("nan"), float("-inf"), HUGE, True, "0.5", None, 1j])
def test_what_is_below_zero_or_no_number_is_refused_where_infinity_is_not(bad: object) -> None:
    with pytest.raises(ParameterError, match="`alpha` must be a number, at least 0"):
        not_negative_or_infinite("alpha", bad)

"""Promised numbers are rounded up, intervals outwards."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.written import read

from dovetail.report.number_format import (
    ABSENT,
    Unit,
    downward,
    missing_reason,
    odds,
    percent,
    percent_up,
    upward,
)


@given(st.floats(0.0, 1e300))
def test_the_written_loss_is_at_least_the_loss_and_at_most_a_hundredth_more(value: float) -> None:
    shown = read(upward(value))
    assert value <= shown <= value * 1.0100001


@given(st.floats(1e-300, 1e300))
def test_what_nothing_can_beat_is_written_no_larger(value: float) -> None:
    assert value * 0.9899999 <= read(downward(value)) <= value


@given(st.floats(0.0, 1.0))
def test_a_written_probability_is_no_smaller_than_the_loss(value: float) -> None:
    assert float(percent_up(value).rstrip("%")) >= value * 100 * (1 - 1e-15)


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.0, "2"), (0.07351, "0.0736"), (14.21, "14.3"), (1e-6, "10⁻⁶"), (9.999e-7, "10⁻⁶"), (0.0, "0"), ("inf", "∞")],
)
def test_losses_have_three_significant_digits(value: object, text: str) -> None:
    assert upward(value) == text


def test_the_odds_of_zero_are_one_and_those_of_a_huge_epsilon_infinite() -> None:
    assert (odds(0.0), odds(2.0), odds("inf"), odds(1e4)) == ("1", "7.39", "∞", "∞")


@given(st.floats(-2.0, 2.0), st.floats(1e-6, 1.0), st.sampled_from(["share", "mean"]))
def test_a_written_interval_holds_the_interval(value: float, error: float, measure: str) -> None:
    low, high = value - 2 * error, value + 2 * error
    scale = 100.0 if measure == "share" else 1.0
    ends = [
        float(end.rstrip("%").replace(",", "")) for end in Unit.of(measure).interval([low, high], error).split(" to ")
    ]
    assert ends[0] <= low * scale + 1e-12
    assert ends[1] >= high * scale - 1e-12


def test_what_does_not_apply_is_a_dash_and_has_a_reason() -> None:
    null = {"value": None, "reason": "nothing to say"}
    assert (upward(null), percent(null), missing_reason(null), missing_reason(1.0)) == (
        ABSENT,
        ABSENT,
        "nothing to say",
        None,
    )

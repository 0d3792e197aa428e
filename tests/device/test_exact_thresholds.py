"""Thresholds are rounded towards more privacy: exact arithmetic sees one unit the wrong way."""

from fractions import Fraction

import flint
import pytest

from dovetail_protocol.errors import ParameterError
from dovetail_protocol.exact_thresholds import (
    WORD,
    GeometricLaw,
    as_written,
    exp_bracket,
    exp_floor,
    geometric_digits,
    krr_masses,
    unary_masses,
)
from dovetail_protocol.mechanisms.subset_selection import SubsetSelection

EXPONENTS = [Fraction(1), Fraction(-1), Fraction(1, 3), Fraction(-700), Fraction(700), Fraction(1e-9), Fraction(12.5)]
EPSILONS = [1e-6, 0.1, 0.5, 1.0, 2.0, 3.7, 11.0, 40.0]


def exponential(x: Fraction) -> tuple[Fraction, Fraction]:
    """Ends of e^x from Arb, which knows nothing of `decimal`; relative width below 2^-900."""
    before, flint.ctx.prec = flint.ctx.prec, 1000
    try:
        ball = flint.arb(flint.fmpq(x.numerator, x.denominator)).exp()
        return _fraction(ball.lower()), _fraction(ball.upper())
    finally:
        flint.ctx.prec = before


def _fraction(point: flint.arb) -> Fraction:
    mantissa, exponent = (int(part) for part in point.man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent


@pytest.mark.parametrize("x", EXPONENTS, ids=str)
@pytest.mark.parametrize("digits", [20, 60, 200])
def test_the_bracket_of_an_exponential_holds_it_and_is_as_narrow_as_stated(x: Fraction, digits: int) -> None:
    (low, high), (least, most) = exp_bracket(x, digits), exponential(x)
    assert low < least and most < high, "e^x is never rational here, so neither end can be it"
    assert (high - low) * 10 ** (digits - 2) < high


def test_the_exponential_of_nothing_is_one() -> None:
    assert exp_bracket(Fraction(0)) == (1, 1) and exp_floor(1e-300) == 1


@pytest.mark.parametrize("x", [1e-9, 0.5, 1.0, 2.0, 11.0, 45.0])
@pytest.mark.parametrize("scale", [1, 2, 1000])
def test_the_floor_of_an_exponential_is_exact(x: float, scale: int) -> None:
    low, high = exponential(Fraction(x))
    assert int(scale * low) == int(scale * high) == exp_floor(x, scale=scale)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("k", [2, 3, 16, 5000])
@pytest.mark.parametrize("total", [WORD, 1 << 80])
def test_one_lie_less_would_break_the_promise_and_the_lies_told_keep_it(k: int, epsilon: float, total: int) -> None:
    keep, lie = krr_masses(k, epsilon, total)
    low, high = exponential(Fraction(epsilon))
    assert keep + (k - 1) * lie == total and keep > lie
    assert keep <= low * lie, "the likelihood ratio of a report stays below e^epsilon"
    assert keep + (k - 1) > high * (lie - 1), "and no larger share of the truth does"


@pytest.mark.parametrize("k", [2, 16])
def test_no_precision_of_the_probabilities_lets_a_report_tell_more_than_promised(k: int) -> None:
    for epsilon in EPSILONS:  # finer than the bracket of e^epsilon: its lower end is what counts
        keep, lie = krr_masses(k, epsilon, 1 << 400)
        assert keep <= exponential(Fraction(epsilon))[0] * lie


def test_masses_that_cannot_tell_the_truth_from_a_lie_are_refused() -> None:
    assert krr_masses(2, 0.0041, 1000) == (501, 499)
    for epsilon in (1e-9, 0.001):  # 500 each
        with pytest.raises(ParameterError, match="too small"):
            krr_masses(2, epsilon, 1000)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("symmetric", [False, True])
def test_the_bits_of_unary_encoding_keep_the_promise_and_hardly_more(epsilon: float, symmetric: bool) -> None:
    own, other = unary_masses(epsilon, symmetric=symmetric)
    odds = Fraction(own * (WORD - other), (WORD - own) * other)
    low, _ = exponential(Fraction(epsilon))
    assert low * (1 - Fraction(WORD, 2**40 * min(other, WORD - own))) < odds <= low
    assert (own + other == WORD) if symmetric else (2 * own == WORD)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("k", [2, 4, 9, 100])
def test_one_word_more_for_subsets_with_the_value_would_break_the_promise(k: int, epsilon: float) -> None:
    mechanism = SubsetSelection(k, epsilon)
    low, high = exponential(Fraction(epsilon))

    def ratio(mass: int) -> Fraction:
        return Fraction(mass * (k - mechanism.size), (WORD - mass) * mechanism.size)

    assert ratio(mechanism.mass) <= low and ratio(mechanism.mass + 1) > high


def test_subsets_that_say_nothing_are_refused() -> None:
    with pytest.raises(ParameterError, match="too small"):
        SubsetSelection(2, 1e-20)
    assert SubsetSelection(2, 1e-18).mass > WORD // 2


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(1, 100), Fraction(2), Fraction(30), Fraction(63)])
@pytest.mark.parametrize("size", [None, 2, 7])
def test_a_threshold_is_the_last_word_that_certainly_means_so(rate: Fraction, size: int | None) -> None:
    law = GeometricLaw(rate, size)
    count = 5 if size is None else size - 1
    end = Fraction(0) if size is None else exponential(-rate * size)[0]
    for k, threshold in enumerate(law.thresholds(count)):
        chance = (1 - exponential(-rate * (k + 1))[0]) / (1 - end)
        assert threshold <= WORD * chance < threshold + 1 + Fraction(1, 2**200)


@pytest.mark.parametrize("bits", [13, 24, 40])
def test_digits_carry_the_rate_of_their_place(bits: int) -> None:
    rate = Fraction(1, 10**6)
    digits = geometric_digits(rate, bits)
    assert len(digits) > 1 and all(law.rate == rate * 2**shift for law, shift in digits)


@pytest.mark.parametrize("budget", ["0.1", "0.3", "1.1", "2.675", "1e-07", "700.0"])
def test_a_budget_is_the_decimal_that_was_written(budget: str) -> None:
    assert as_written(float(budget)) == Fraction(budget) and sum([as_written(0.1)] * 10) == 1

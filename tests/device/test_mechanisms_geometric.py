"""Uniform numbers next to a step of a geometric law are resolved as exact arithmetic says."""

from fractions import Fraction

import pytest
from tests.tiers import one_in

from dovetail_protocol.exact_thresholds import GeometricLaw, exp_bracket, geometric_digits

LAWS = [
    GeometricLaw(Fraction(rate), size)
    for rate, size in (
        (Fraction(1, 2), None),
        (Fraction(1, 2), 5),
        (Fraction(1, 2), 1),
        (Fraction(1, 1000), None),
        (Fraction(1, 10**9), 4096),
        (Fraction(1, 10**30), 64),
        (Fraction(20), None),
        (Fraction(20), 3),
        (Fraction(0), 4096),
        (Fraction(0), 7),
    )
]


def step(law: GeometricLaw, k: int, bits: int) -> tuple[int, bool]:
    """floor(2^bits F(k)), and whether that is exact, by the definition: from a bracket too narrow to matter."""
    if law.rate == 0:
        assert law.size is not None
        floor, rest = divmod((k + 1) << bits, law.size)
        return floor, rest == 0
    if k + 1 == law.size:
        return 1 << bits, True
    ends = []
    for end in (0, 1):
        whole = 0 if law.size is None else exp_bracket(-law.rate * law.size, digits=400)[0]
        ends.append(int((1 - exp_bracket(-law.rate * (k + 1), digits=400)[end]) / (1 - whole) * (1 << bits)))
    assert ends[0] == ends[1]
    return ends[0], False


@pytest.mark.parametrize("bits", [64, 128, 192])
@pytest.mark.parametrize("law", one_in(4, LAWS), ids=repr)
def test_a_uniform_number_next_to_a_step_is_resolved(law: GeometricLaw, bits: int) -> None:
    for k in range(min(law.size or 40, 40) - (law.size is not None)):
        at, exact = step(law, k, bits)
        if at + 1 >= 1 << bits:
            break  # no number is left beyond this step
        assert law.resolve(at - 1, bits) == k
        assert law.resolve(at, bits) == (k + 1 if exact else None)
        if step(law, k + 1, bits)[0] > at + 1:
            assert law.resolve(at + 1, bits) == k + 1


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_the_ends_of_the_uniform_numbers_are_resolved(law: GeometricLaw) -> None:
    assert law.resolve(0, 64) == 0
    assert law.resolve((1 << 64) - 1, 64) == (None if law.size is None else law.size - 1)


def test_a_tail_without_end_is_settled_by_a_further_word() -> None:
    law, more = GeometricLaw(Fraction(1)), iter([0])
    assert law.settle((1 << 64) - 1, lambda: next(more)) == 44  # e^-44 > 2^-64 > e^-45
    assert list(more) == []


@pytest.mark.parametrize("bits", [None, 0, 5, 30])
@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(1, 10**5), Fraction(1, 10**9)], ids=str)
def test_digits_cover_the_range_once(rate: Fraction, bits: int | None) -> None:
    digits, total = geometric_digits(rate, bits), 1
    for law, shift in digits:
        assert total == 1 << shift and law.rate == rate * (1 << shift)
        total *= law.size or 0
    assert total == (0 if bits is None else 1 << bits)

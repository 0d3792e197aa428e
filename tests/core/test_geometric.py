"""Geometric numbers have exactly their law: in tables, in split digits, at steps and in the tail."""

from fractions import Fraction

import numpy as np
import pytest
from tests.randomize.chosen import Chosen
from tests.statistics import expect_broken, expect_law

from dovetail.core.discrete_noise import discrete_laplace, geometric
from dovetail.core.entropy import Entropy
from dovetail_protocol.exact_thresholds import WORD, GeometricLaw, exp_bracket

DRAWS = 200_000
HALF = Fraction(1, 2)


def steps_of(rate: Fraction, bits: int) -> int:
    """floor(2^bits (1 - e^-rate)), from a bracket too narrow to matter."""
    low, high = exp_bracket(-rate, digits=100)
    floors = {int((1 - end) * (1 << bits)) for end in (low, high)}
    assert len(floors) == 1
    return floors.pop()


@pytest.mark.parametrize("rate", [Fraction(3), HALF, Fraction(1, 7), Fraction(1, 1000), Fraction(1, 30_000)], ids=str)
def test_the_law_is_geometric(rate: Fraction, rng: Entropy) -> None:
    drawn = geometric(rate, DRAWS, rng)
    width = max(1, round(0.1 / float(rate)))  # cells of about a tenth of the mean
    cells = np.arange(40)
    law = np.exp(-float(rate) * width * cells) * -np.expm1(-float(rate) * width)
    counts = np.bincount(np.minimum(drawn // width, 40), minlength=41)
    expect_law(counts, [*law, 1 - law.sum()])


@pytest.mark.parametrize("rate", [Fraction(1, 30_000), Fraction(1, 10**9)], ids=str)
def test_split_digits_are_geometric_and_independent(rate: Fraction, rng: Entropy) -> None:
    drawn = geometric(rate, DRAWS, rng)
    low, high = drawn & 4095, np.minimum(drawn >> 12, 1) if rate > Fraction(1, 10**6) else (drawn >> 40 & 1)
    quarter = low >> 10
    fourth = np.exp(-float(rate) * 1024 * np.arange(4))
    first = fourth / fourth.sum()
    if rate > Fraction(1, 10**6):
        other = np.array([-np.expm1(-float(rate) * 4096), np.exp(-float(rate) * 4096)])
        expect_law(np.bincount(quarter * 2 + high, minlength=8), np.outer(first, other).ravel())
    else:
        expect_law(np.bincount(quarter, minlength=4), first)


@pytest.mark.parametrize(
    ("rate", "bits"),
    [(Fraction(0), 3), (HALF, 3), (HALF, 1), (Fraction(1, 4000), 13), (Fraction(1, 5000), 16)],
    ids=str,
)
def test_bounded_laws_are_truncated_geometric(rate: Fraction, bits: int, rng: Entropy) -> None:
    drawn, cut = geometric(rate, DRAWS, rng, bits=bits), max(0, bits - 3)
    mass = np.exp(-float(rate) * np.arange(1 << bits)).reshape(-1, 1 << cut).sum(axis=1)
    expect_law(np.bincount(drawn >> cut, minlength=mass.size), mass / mass.sum())


def test_no_bits_are_always_zero() -> None:
    assert geometric(HALF, 3, Chosen([]), bits=0).tolist() == [0, 0, 0]


def test_words_at_a_step_are_settled_by_further_words() -> None:
    first = steps_of(HALF, 64)
    second = steps_of(HALF, 128) - first * WORD
    third = steps_of(HALF, 192) - (first * WORD + second) * WORD
    for words, expected in (
        ([first - 1], 0),
        ([first + 1], 1),
        ([first, second - 1], 0),
        ([first, second + 1], 1),
        ([first, second, third - 1], 0),
        ([first, second, third + 1], 1),
        ([first, 0], 0),
        ([first, WORD - 1], 1),
    ):
        rng = Chosen(words)
        assert geometric(HALF, 1, rng).tolist() == [expected], words
        assert not rng.left


@pytest.mark.parametrize("extra", [[0], [WORD - 1, 0], [WORD // 2]])
def test_words_in_the_far_tail_are_settled_exactly(extra: list[int]) -> None:
    words = [WORD - 1, *extra, 12345]
    rng = Chosen(words)
    (cell,) = geometric(HALF, 1, rng).tolist()
    used = words[: len(words) - len(rng.left)]
    uniform = Fraction(sum(word * WORD ** (len(used) - 1 - i) for i, word in enumerate(used)), WORD ** len(used))
    below, above = (1 - exp_bracket(-HALF * k, digits=100)[0] for k in (cell, cell + 1))
    assert below <= uniform < above
    assert cell > 80


def test_a_uniform_law_needs_no_second_word_at_its_steps() -> None:
    for word, expected in ((0, 0), (WORD // 8 - 1, 0), (WORD // 8, 1), (WORD - 1, 7)):
        assert geometric(Fraction(0), 1, Chosen([word]), bits=3).tolist() == [expected]


@pytest.mark.parametrize("rate", [Fraction(2), HALF, Fraction(1, 10**4)], ids=str)
@pytest.mark.parametrize("size", [None, 5, 4096])
def test_thresholds_are_the_floors_of_the_distribution(rate: Fraction, size: int | None) -> None:
    count = 4 if size == 5 else 60
    for k, floor in enumerate(GeometricLaw(rate, size).thresholds(count)):
        low, high = exp_bracket(-rate * (k + 1), digits=120)
        end_low, end_high = (0, 0) if size is None else exp_bracket(-rate * size, digits=120)
        assert int((1 - high) / (1 - end_low) * WORD) == floor == int((1 - low) / (1 - end_high) * WORD)


@pytest.mark.parametrize("rate", [Fraction(2), Fraction(1, 5)], ids=str)
def test_the_difference_is_discrete_laplace(rate: Fraction, rng: Entropy) -> None:
    drawn = discrete_laplace(rate, DRAWS, rng)
    cells = np.arange(-20, 21)
    law = np.tanh(float(rate) / 2) * np.exp(-float(rate) * np.abs(cells))
    counts = [np.count_nonzero(drawn == cell) for cell in cells]
    rest = 1 - law.sum()
    expect_law([np.count_nonzero(drawn < -20), *counts, np.count_nonzero(drawn > 20)], [rest / 2, *law, rest / 2])


def test_a_rate_off_by_a_tenth_is_caught(rng: Entropy) -> None:
    counts = np.bincount(np.minimum(geometric(HALF * 11 / 10, DRAWS, rng), 20), minlength=21)
    law = np.exp(-0.5 * np.arange(20)) * -np.expm1(-0.5)
    expect_broken(counts, [*law, 1 - law.sum()])

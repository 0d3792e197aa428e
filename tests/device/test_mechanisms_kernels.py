"""A device's sampler and the analyst's kernel make the same report of the same random words."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.device.words import ChosenBits
from tests.randomize.chosen import Chosen

from dovetail.core.discrete_noise import geometric as kernel_geometric
from dovetail.core.entropy import Entropy
from dovetail.randomize.budget_laplace import BudgetLaplace
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.laplace import Laplace
from dovetail.randomize.local_hashing import LocalHashing
from dovetail.randomize.sampling.pure_protocol import MOST_TABLED, UNSURE, offsets
from dovetail.randomize.unary import Unary
from dovetail_protocol.exact_thresholds import WORD, geometric_digits
from dovetail_protocol.mechanisms.laplace import geometric

TIMES = 50  # random words per value
LARGE = 1 << 31

KRRS = [*KRR.examples(), KRR(300, 5.0), KRR(MOST_TABLED + 1, 8.0), KRR(LARGE, 20.0), KRR(3, 700.0)]
HADAMARDS = [*Hadamard.examples(), Hadamard(1000, 2.0), Hadamard(10**6, 20.0), Hadamard(LARGE, 0.1)]
UNARIES = [*Unary.examples(), Unary(100, 2.0)]
HASHINGS = [*LocalHashing.examples(), LocalHashing(LARGE, 10.0)]
LAPLACES = [
    *Laplace.examples(),
    Laplace(0.0, 1.0, 1.0),
    Laplace(-1.0, 1.0, 0.5, 2.0**-30),
    Laplace(0.0, 1.0, 700.0, 1.0),
]
NUMERIC = [*LAPLACES, *BudgetLaplace.examples()]


def some(k: int) -> list[int]:
    """A few symbols, the last among them."""
    return sorted({0, 1, k // 2, k - 1})


def words_at_steps(masses: tuple[int, int], rng: Entropy) -> list[int]:
    """Random words, and the words around the steps of a randomized response."""
    keep, lie = masses
    near = {step + d for step in (keep, keep + lie, keep + 2 * lie, WORD) for d in (-1, 0, 1)}
    return [*sorted(word for word in near if word < WORD), *(int(word) for word in rng.words(TIMES))]


def as_kernel(word: int, channel: Any) -> list[int]:
    """The words from which the kernel of this randomized response makes up `word`."""
    if channel.k > MOST_TABLED:
        return [word]
    half, rest = word >> 48, word << 16 & WORD - 1
    return [half, rest] if offsets(channel)[half] == UNSURE else [half]


def respond_without_offset(value: int, word: int, randomizer: KRR) -> int:
    """A broken sampler, whose lie may be the truth."""
    keep, lie = randomizer.device.masses
    return value if word < keep else (value + (word - keep) // lie) % randomizer.k


@pytest.mark.parametrize("randomizer", KRRS, ids=repr)
def test_randomized_response_is_that_of_the_kernel(randomizer: KRR, rng: Entropy) -> None:
    broken = 0
    for word in words_at_steps(randomizer.device.masses, rng):
        for value in some(randomizer.k):
            kernel = randomizer.randomize([value], Chosen(as_kernel(word, randomizer.channel())))
            assert randomizer.device.randomize(value, ChosenBits([word])) == kernel[0]
            broken += respond_without_offset(value, word, randomizer) != kernel[0]
    assert broken


@pytest.mark.parametrize("randomizer", HADAMARDS, ids=repr)
def test_hadamard_response_is_that_of_the_kernel(randomizer: Hadamard, rng: Entropy) -> None:
    masses = randomizer.device.masses
    for word in words_at_steps(masses, rng):
        for value in some(randomizer.k):
            halves = KRR(2 * randomizer.blocks, randomizer.epsilon).channel()
            place = int(rng.words(1)[0])
            kernel = randomizer.randomize([value], Chosen([*as_kernel(word, halves), place]))
            assert randomizer.device.randomize(value, ChosenBits([word, place])) == kernel[0]


@pytest.mark.parametrize("randomizer", HASHINGS, ids=repr)
def test_local_hashing_is_that_of_the_kernel(randomizer: LocalHashing, rng: Entropy) -> None:
    for word in words_at_steps(randomizer.device.masses, rng):
        for value in some(randomizer.k):
            a, b = rng.words(2).tolist()
            kernel = randomizer.randomize([value], Chosen([a, b, *as_kernel(word, randomizer.hash_channel())]))
            assert randomizer.device.randomize(value, ChosenBits([a, b, word])) == tuple(kernel[0].tolist())


def kernel_coins(numbers: list[int], mass: int) -> list[int]:
    """The words from which the kernel makes up coins with these uniform numbers: first bytes, then ties."""
    first = bytes(number >> 56 for number in numbers)
    ties = [number << 8 & WORD - 1 for number in numbers if number >> 56 == mass >> 56]
    whole = -(-len(first) // 8) * 8
    return [
        *np.frombuffer(first.ljust(whole, b"\0"), dtype=np.uint64).tolist(),
        *(ties if mass << 8 & WORD - 1 else []),
    ]


def device_coins(numbers: list[int]) -> list[int]:
    """The same coins as the device draws them: for each binary place from the lowest, which numbers have a 0."""
    return [int("".join(str(1 - (number >> place & 1)) for number in numbers), 2) for place in range(64)]


@pytest.mark.parametrize("randomizer", UNARIES, ids=repr)
def test_unary_encoding_is_that_of_the_kernel(randomizer: Unary, rng: Entropy) -> None:
    k, (p, q) = randomizer.k, randomizer.device.masses
    padding = [(q ^ 1 << 63)] * randomizer.device.padding  # coins that the kernel throws and drops
    for _ in range(TIMES):
        near = [q - 1, q, q + 1, q ^ 1 << 20, *(int(word) for word in rng.words(k))]
        numbers = [near[i] for i in rng.below(len(near), k)]
        for own in (p - 1, p, p + 1, int(rng.words(1)[0])):
            value = int(rng.below(k, 1)[0])
            words = [*kernel_coins(numbers + padding, q), *kernel_coins([own], p)]
            kernel = randomizer.randomize([value], Chosen(words))
            report = randomizer.device.randomize(value, ChosenBits([*device_coins(numbers), *device_coins([own])]))
            assert report == kernel.tobytes()


@pytest.mark.parametrize("randomizer", NUMERIC, ids=repr)
def test_numeric_noise_is_that_of_the_kernel(randomizer: Any, rng: Entropy) -> None:
    for _ in range(TIMES):
        words = rng.words(20).tolist()
        value = randomizer.lower + float(rng.below(1 << 20, 1)[0]) / 2**20 * (randomizer.upper - randomizer.lower)
        kernel, device = Chosen(words), ChosenBits(words)
        assert randomizer.device.randomize(value, device) == randomizer.randomize([value], kernel)[0]
        assert device.left == kernel.left


@pytest.mark.parametrize("rate", [Fraction(80), Fraction(1, 2), Fraction(1, 1000), Fraction(1, 10**6)], ids=str)
def test_words_at_a_step_are_settled_as_in_the_kernel(rate: Fraction, rng: Entropy) -> None:
    law = geometric_digits(rate)[0][0]
    for step in law.thresholds(8):
        for first in (step - 1, step, min(step + 1, WORD - 1)):
            words = [first, *rng.words(9).tolist()]
            kernel, device = Chosen(words), ChosenBits(words)
            assert geometric(rate, device) == kernel_geometric(rate, 1, kernel)[0]
            assert device.left == kernel.left


def values_of(randomizer: Any, rng: Entropy) -> np.ndarray:
    """Anywhere in the range, half way between grid points, and on them, each with the doubles beside it."""
    steps = randomizer.steps
    half = rng.below(2 * steps + 1, 500) / (2 * steps)
    shares = np.concatenate([rng.below(1 << 62, 2000) / 2.0**62, half])
    values = randomizer.lower + shares * (randomizer.upper - randomizer.lower)
    values = np.concatenate([values, np.nextafter(values, -np.inf), np.nextafter(values, np.inf)])
    return np.clip(values, randomizer.lower, randomizer.upper)


@pytest.mark.exhaust
@pytest.mark.parametrize("randomizer", BudgetLaplace.examples(), ids=repr)
def test_values_are_rounded_to_the_same_nearest_grid_point(randomizer: Any, rng: Entropy) -> None:
    inside = values_of(randomizer, rng)
    assert [randomizer.device.nearest(value) for value in inside.tolist()] == randomizer.nearest(inside).tolist()


@pytest.mark.exhaust
@pytest.mark.parametrize("randomizer", LAPLACES, ids=repr)
def test_values_are_rounded_at_random_to_the_same_grid_point(randomizer: Laplace, rng: Entropy) -> None:
    """By words around the one that decides."""
    inside = values_of(randomizer, rng)
    up = [int(place % 1 * WORD) for place in randomizer.scaled(inside).tolist()]
    for shift in (-1, 0, 1):
        words = [min(max(word + shift, 0), WORD - 1) for word in up]
        points = [randomizer.device.point(value, word) for value, word in zip(inside.tolist(), words, strict=True)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Laplace, "noise", lambda self, count, rng: np.zeros(count, dtype=np.int64))
            assert points == randomizer.randomize(inside, Chosen(words)).tolist()

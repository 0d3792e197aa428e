"""Appendix B and the proofs of Jurado, Gonze, Alvim, Palamidessi (2023), CSF, where they can be computed."""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from math import comb, factorial, prod

import pytest

from dovetail.core.channel import KRRChannel
from dovetail.leak.exact import exact_vulnerability, histogram_count

Partition = tuple[int, ...]


def partitions(n: int, k: int, most: int) -> Iterator[Partition]:
    """All ways to write n as at most k parts, none above `most`, the largest first."""
    if n == 0:
        yield ()
        return
    if k == 0:
        return
    for first in range(min(n, most), 0, -1):
        for rest in partitions(n - first, k - 1, first):
            yield (first, *rest)


def ways(parts: Partition, k: int) -> int:
    """How many bins may take the parts: k! over the multiplicities, of the empty bins too."""
    sizes = Counter(parts)
    return factorial(k) // (prod(factorial(count) for count in sizes.values()) * factorial(k - len(parts)))


def brown(parts: Partition, k: int) -> int:
    """The same in equation 24."""
    sizes = Counter(parts)
    return factorial(len(parts)) * comb(k, len(parts)) // prod(factorial(count) for count in sizes.values())


@pytest.mark.parametrize(("n", "k"), [(1, 3), (4, 2), (6, 3), (9, 5), (5, 8)])
def test_integer_partitions_give_the_same_sum(n: int, k: int) -> None:
    every = list(partitions(n, k, n))
    assert sum(ways(parts, k) for parts in every) == histogram_count(n, k)
    for count in (ways, brown):  # equation 22, and 24 by proposition 29
        load = sum(
            Fraction(factorial(n), prod(factorial(part) for part in parts)) * count(parts, k) * parts[0]
            for parts in every
        )
        assert load / (n * k**n) == exact_vulnerability(KRRChannel(k, 2, 1), n=n).shuffled


def test_the_printed_example_is_no_partition_into_four_parts() -> None:
    assert len(list(partitions(6, 3, 6))) == 7 and histogram_count(6, 3) == 28  # as printed
    printed = (8, 8, 1, 1, 1, 1)
    assert sum(printed) == 20
    assert printed in set(partitions(20, 6, 20)) and printed not in set(partitions(20, 4, 20))


def test_multisets_are_not_linear_in_people_beyond_two_values() -> None:
    for k in (2, 3, 5):
        growth = Fraction(histogram_count(2_000, k), histogram_count(1_000, k))
        assert abs(growth - 2 ** (k - 1)) < Fraction(k**2, 100)


@pytest.mark.parametrize(("n", "k"), [(2, 2), (2, 3), (5, 4)])
def test_the_sum_in_the_proofs_of_propositions_15_and_21_needs_the_choice_of_the_wrong_values(n: int, k: int) -> None:
    p = Fraction(3, 4)
    s = (1 - p) / (k - 1)
    printed = sum(comb(n - 1, i) * p**i * s ** (n - 1 - i) for i in range(n))
    right = sum(comb(n - 1, i) * p**i * (k - 1) ** (n - 1 - i) * s ** (n - 1 - i) for i in range(n))
    assert right == 1 and (printed == 1) == (k == 2)

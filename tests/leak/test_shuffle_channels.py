"""Full and reduced shuffle channels equal their definitions and commute as they should."""

from collections import Counter
from fractions import Fraction
from itertools import pairwise, product
from math import factorial

import numpy as np
import pytest
from studies.qif_tables.run import format_fractions, format_polynomials
from tests.leak.exact_examples import channel

from dovetail.core.channel import DenseChannel, KRRChannel
from dovetail.core.errors import DovetailError, ParameterError, UnsupportedError
from dovetail.leak.qif import shuffle_channels as small
from dovetail.leak.qif.channels import cascade, equivalent
from dovetail.leak.qif.inputs import normalize
from dovetail.leak.qif.vulnerability import posterior_vulnerability
from dovetail.randomize.krr import KRR

SHAPES = [(2, 2, 1), (2, 2, 3), (2, 2, 5), (3, 3, 3), (2, 3, 3), (3, 2, 4)]  # values, reports, people


def title(values: tuple[str, ...], k: int) -> str:
    counts = Counter(values)
    return ",".join(f"{letter}:{counts[letter]}" for letter in "abc"[:k])


@pytest.mark.parametrize(("k", "r", "n"), SHAPES)
def test_every_cell_equals_its_definition(k: int, r: int, n: int) -> None:
    person = channel(n, k, r)
    full = small.full_randomizer(person, n=n)
    assert full.inputs == tuple("".join(x) for x in product("abc"[:k], repeat=n))
    for x, row in zip(product(range(k), repeat=n), full.cells, strict=True):
        for y, cell in zip(product(range(r), repeat=n), row, strict=True):
            assert cell == np.prod([person[a, b] for a, b in zip(x, y, strict=True)])
    shuffle, count = small.full_shuffle(k, n=n), small.reduced_shuffle(k, n=n)
    for x, row, counts in zip(shuffle.inputs, shuffle.cells, count.cells, strict=True):
        alike = [y for y in shuffle.outputs if sorted(y) == sorted(x)]
        assert row.tolist() == [Fraction(y in alike, len(alike)) for y in shuffle.outputs]
        assert (max(row) == Fraction(1, factorial(n))) == (len(set(x)) == n)  # as printed: where no value repeats
        assert counts.tolist() == [int(title(tuple(x), k) == z) for z in count.outputs]


@pytest.mark.parametrize(("k", "r", "n"), SHAPES)
def test_the_reduced_randomization_is_definition_23(k: int, r: int, n: int) -> None:
    person = channel(n, k, r)
    full, found = small.full_randomizer(person, n=n), small.reduced_randomizer(person, n=n)
    assert (found.cells.sum(axis=1) == 1).all()
    size = Counter(title(tuple(x), k) for x in full.inputs)
    expected: Counter[tuple[str, str]] = Counter()
    for x, row in zip(full.inputs, full.cells, strict=True):
        for y, cell in zip(full.outputs, row, strict=True):
            ends = title(tuple(x), k), title(tuple(y), r)
            expected[ends] += cell * Fraction(1, size[ends[0]])
    assert found.cells.tolist() == [[expected[a, b] for b in found.outputs] for a in found.inputs]


@pytest.mark.exhaust
@pytest.mark.parametrize(("k", "r", "n"), SHAPES)
def test_shuffling_commutes_with_any_randomizer_that_everybody_shares(k: int, r: int, n: int) -> None:
    person = channel(n, k, r)
    full = small.full_randomizer(person, n=n)
    before, after = small.full_shuffle(k, n=n).then(full), full.then(small.full_shuffle(r, n=n))
    assert (before.cells == after.cells).all()
    left = full.then(small.reduced_shuffle(r, n=n))
    right = small.reduced_shuffle(k, n=n).then(small.reduced_randomizer(person, n=n))
    assert (left.cells == right.cells).all() and (left.inputs, left.outputs) == (right.inputs, right.outputs)


def test_shuffling_does_not_commute_when_people_randomize_differently() -> None:
    full = small.full_randomizer_each([normalize([[3, 1], [1, 3]]), normalize([[9, 1], [1, 9]])])
    before, after = small.full_shuffle(2, n=2).then(full), full.then(small.full_shuffle(2, n=2))
    assert not (before.cells == after.cells).all()
    assert not equivalent(before, after)


def test_a_table_is_a_channel_and_knows_what_fits() -> None:
    krr = KRRChannel(2, 3, 1)
    table = small.full_randomizer(krr, n=2)
    assert isinstance(posterior_vulnerability(normalize([1] * 4), table), Fraction)
    assert DenseChannel(table).epsilon == pytest.approx(2 * krr.epsilon)
    assert (cascade(table, small.reduced_shuffle(2, n=2)) == table.then(small.reduced_shuffle(2, n=2)).cells).all()
    with pytest.raises(ParameterError, match="such as a:2,b:0, got inputs such as aa"):
        small.reduced_shuffle(2, n=2).then(table)
    with pytest.raises(ParameterError, match="got the histogram a:2,b:0: it has no person 0"):
        small.target_gain(small.reduced_randomizer(krr, n=2))


def test_more_noise_never_helps_in_full_channels_either() -> None:
    prior = normalize([1] * 8)
    values = []
    for keep in (1, 2, 5, 50):
        table = small.full_randomizer(KRRChannel(2, keep, 1), n=3).then(small.reduced_shuffle(2, n=3))
        values.append(posterior_vulnerability(prior, table, gain=small.target_gain(table)))
    assert all(a < b for a, b in pairwise(values))


def test_what_is_too_large_or_not_exact_is_refused_with_the_way_out() -> None:
    krr = KRRChannel(2, 3, 1)
    for call in (
        lambda: small.full_randomizer(krr, n=10),
        lambda: small.full_shuffle(3, n=6),
        lambda: small.reduced_shuffle(2, n=40),
        lambda: small.reduced_randomizer(krr, n=10_000),
    ):
        with pytest.raises(
            UnsupportedError, match=r"the limit is 300,000; for more people use dovetail\.vulnerability"
        ):
            call()
    for bad in ([[0.75, 0.25], [0.25, 0.75]], DenseChannel([[0.5, 0.5]]), KRR(k=2, epsilon=1.0).channel().matrix()):
        with pytest.raises(ParameterError, match="must be a KRRChannel or hold Fractions"):
            small.exact_channel(bad)
    for wrong in (
        lambda: small.full_randomizer(krr, n=0),
        lambda: small.full_shuffle(0, n=2),
        lambda: small.reduced_shuffle(27, n=1),
        lambda: small.full_randomizer_each([]),
        lambda: small.full_randomizer_each([krr, KRRChannel(3, 3, 1)]),
        lambda: small.full_randomizer([["1/2", "1/2"]], n=1),
    ):
        with pytest.raises(DovetailError, match="must be"):
            wrong()


def test_tables_print_as_polynomials_that_have_the_right_values() -> None:
    text = format_polynomials(lambda krr: small.reduced_randomizer(krr, n=3), k=3, n=3)
    cells = [line.split("  ") for line in text.splitlines()[1:]]
    krr = KRRChannel(3, 5, 2)
    p, q = Fraction(krr.keep, krr.total), Fraction(krr.lie, krr.total)
    exact = small.reduced_randomizer(krr, n=3).cells
    for line, row in zip(cells, exact, strict=True):
        written = [cell.strip() for cell in line[1:] if cell.strip()]
        assert [value(cell, p, q) for cell in written] == row.tolist()
    assert format_fractions(small.full_shuffle(2, n=2)).splitlines()[2].split() == ["ab", "0", "1/2", "1/2", "0"]


def value(text: str, p: Fraction, q: Fraction) -> Fraction:
    """Read a cell such as 2 p^2q + q^3 at p and q."""
    total = Fraction(0)
    for term in text.split(" + "):
        number, _, letters = term.rpartition(" ")
        product_ = Fraction(number or 1)
        for letter, at in (("p", p), ("q", q)):
            if letter in letters:
                power = letters.split(letter)[1]
                product_ *= at ** int(power[1] if power.startswith("^") else 1)
        total += product_
    return total

"""Small channels as tables of text, in numbers or in letters, as a paper prints them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import factorial, gcd

from dovetail.core.channel import KRRChannel
from dovetail.core.checks import whole
from dovetail.leak.qif.shuffle_channels import LabelledChannel

BASE = 10**12  # above every coefficient of a table that fits


def format_fractions(table: LabelledChannel) -> str:
    """The table with its fractions.

    >>> from dovetail.leak.qif.shuffle_channels import reduced_shuffle
    >>> print(format_fractions(reduced_shuffle(2, n=2)))
        a:2,b:0  a:1,b:1  a:0,b:2
    aa        1        0        0
    ab        0        1        0
    ba        0        1        0
    bb        0        0        1
    """
    return _layout(table, [[str(cell) for cell in row] for row in table.cells])


def format_polynomials(build: Callable[[KRRChannel], LabelledChannel], *, k: int, n: int) -> str:
    """The table that `build` makes from k-RR for n people, in p (the truth) and q (each other value).

    Every cell is a homogeneous polynomial in p and q. It is read off the exact table for p : q = 1e12 : 1, whose
    digits in base 1e12 are the coefficients.

    >>> from dovetail.leak.qif.shuffle_channels import reduced_randomizer
    >>> print(format_polynomials(lambda krr: reduced_randomizer(krr, n=2), k=2, n=2))
             a:2,b:0    a:1,b:1  a:0,b:2
    a:2,b:0      p^2       2 pq      q^2
    a:1,b:1       pq  p^2 + q^2       pq
    a:0,b:2      q^2       2 pq      p^2
    """
    people = whole("n", n, least=1)
    krr = KRRChannel(k, BASE, 1)
    table = build(krr)
    return _layout(table, [[_polynomial(cell * krr.total**people, people) for cell in row] for row in table.cells])


def _polynomial(value: Fraction, degree: int) -> str:
    """A polynomial from its value at p = BASE, q = 1; shuffling divides by a divisor of degree! at most."""
    whole_value, divisor = int(value * factorial(degree)), factorial(degree)
    digits = [whole_value // BASE ** (degree - lies) % BASE for lies in range(degree + 1)]
    shared = gcd(divisor, *digits)
    terms = [
        (f"{digit // shared} " if digit > shared else "") + _power("p", degree - lies) + _power("q", lies)
        for lies, digit in enumerate(digits)
        if digit
    ]
    text = " + ".join(terms)
    if divisor == shared:
        return text
    return f"({text})/{divisor // shared}" if len(terms) > 1 else f"{text}/{divisor // shared}"


def _power(letter: str, power: int) -> str:
    return "" if power == 0 else letter if power == 1 else f"{letter}^{power}"


def _layout(table: LabelledChannel, cells: list[list[str]]) -> str:
    lines = [["", *table.outputs], *([name, *row] for name, row in zip(table.inputs, cells, strict=True))]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            text.ljust(width) if place == 0 else text.rjust(width)
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )

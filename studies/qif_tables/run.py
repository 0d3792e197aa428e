r"""Tables I to V, corrected, in exact fractions.

Everything is built from the definitions, for three people with two values. p is the chance of the true value, q that
of the other one. `chance` is the cell at p = 3/4, by which the paper shades its tables.
"""

import re
import tomllib
from collections.abc import Callable
from fractions import Fraction
from math import factorial, gcd
from pathlib import Path
from typing import Any

import polars as pl
from studies.qif import save
from studies.record import command

from dovetail.core.channel import KRRChannel
from dovetail.core.checks import whole
from dovetail.leak.qif.shuffle_channels import (
    LabelledChannel,
    full_randomizer,
    full_shuffle,
    reduced_randomizer,
    reduced_shuffle,
)

# Small channels as tables of text, in numbers or in letters, as a paper prints them.

BASE = 10**12  # above every coefficient of a table that fits


def format_fractions(table: LabelledChannel) -> str:
    """The table with its fractions.

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


N = 3
SHADE = KRRChannel(2, 3, 1)  # p = 3/4

Build = Callable[[KRRChannel], LabelledChannel]


RANDOM: dict[str, Build] = {
    "Ia: N": lambda krr: full_randomizer(krr, n=N),
    "II: NS": lambda krr: full_randomizer(krr, n=N).then(full_shuffle(2, n=N)),
    "II: SN": lambda krr: full_shuffle(2, n=N).then(full_randomizer(krr, n=N)),
    "III: NS^r": lambda krr: full_randomizer(krr, n=N).then(reduced_shuffle(2, n=N)),
    "IV: N^r": lambda krr: reduced_randomizer(krr, n=N),
    "V: S^r N^r": lambda krr: reduced_shuffle(2, n=N).then(reduced_randomizer(krr, n=N)),
}
FIXED = {"Ib: S": full_shuffle(2, n=N), "Ic: S^r": reduced_shuffle(2, n=N)}
ORDER = ("Ia: N", "Ib: S", "Ic: S^r", "II: NS", "III: NS^r", "IV: N^r", "V: S^r N^r", "II: SN")


def texts() -> dict[str, str]:
    """Every table as it is printed."""
    letters = {name: format_polynomials(build, k=2, n=N) for name, build in RANDOM.items()}
    every = {**letters, **{name: format_fractions(table) for name, table in FIXED.items()}}
    return {name: every[name] for name in ORDER}


def cells(name: str, text: str) -> list[dict[str, Any]]:
    """A row for each cell."""
    table = FIXED[name] if name in FIXED else RANDOM[name](SHADE)
    body = [re.split(r"\s{2,}", line.strip())[1:] for line in text.splitlines()[1:]]
    return [
        {"table": name, "input": x, "output": y, "cell": body[i][j], "chance": float(table.cells[i, j])}
        for i, x in enumerate(table.inputs)
        for j, y in enumerate(table.outputs)
    ]


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write tables.txt and one row per cell; there is only one size."""
    written = texts()
    (out / "tables.txt").write_text("\n\n".join(f"{name}\n\n{text}" for name, text in written.items()) + "\n")
    table = pl.DataFrame([row for name, text in written.items() for row in cells(name, text)])
    return save(table, out, __file__, full=full, draw=drawn)


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What the tables should say (expected.toml keeps what is printed instead), and what holds between them."""
    parts = {str(name): rows for (name,), rows in table.group_by("table", maintain_order=True)}
    expected = tomllib.loads((Path(__file__).parent / "expected.toml").read_text())["row"]
    sums = table.group_by("table", "input").agg(pl.col("chance").sum())["chance"]
    return {
        **{
            f"table {row['table']}, row {row['input']}, {row['note']}": parts[row["table"]]
            .filter(input=row["input"])["cell"]
            .to_list()
            == row["cells"]
            for row in expected
        },
        "every row of every table sums to 1": bool(((sums - 1.0).abs() < 1e-15).all()),
        "NS = SN, cell by cell": same(parts["II: NS"], parts["II: SN"]),
        "NS^r = S^r N^r, cell by cell": same(parts["III: NS^r"], parts["V: S^r N^r"]),
    }


def same(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    """Whether two tables are the same matrix."""
    return one.drop("table").equals(other.drop("table"))


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """The tables, shaded by their cells at p = 3/4."""
    figure, axes = pyplot.subplots(2, 4, figsize=(14, 7), layout="constrained")
    for axis, name in zip(axes.flat, ORDER[:-1], strict=False):
        part = table.filter(table=name).pivot(on="output", index="input", values="chance")
        shades = axis.imshow(part.drop("input").to_numpy(), cmap="viridis", vmin=0.0, vmax=1.0, aspect="auto")
        axis.set_xticks(range(part.width - 1), part.columns[1:], rotation=90, fontsize="x-small")
        axis.set_yticks(range(part.height), part["input"].to_list(), fontsize="x-small")
        axis.set_title(name)
        axis.grid(visible=False)
    axes.flat[-1].set_axis_off()
    figure.colorbar(shades, ax=axes, label="cell at p = 3/4", shrink=0.6)
    return figure


if __name__ == "__main__":
    command(main, __doc__)

r"""Tables I to V, corrected, in exact fractions.

Everything is built from the definitions, for three people with two values. p is the chance of the true value, q that
of the other one. `chance` is the cell at p = 3/4, by which the paper shades its tables.
"""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
from studies.qif import save
from studies.record import command

from dovetail.core.channel import KRRChannel
from dovetail.leak.qif.shuffle_channels import (
    LabelledChannel,
    format_fractions,
    format_polynomials,
    full_randomizer,
    full_shuffle,
    reduced_randomizer,
    reduced_shuffle,
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

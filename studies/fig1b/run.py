"""Figure 1 (b) of Hiding Among the Clones: bounds on the central epsilon against n for epsilon0 = 6."""

from pathlib import Path

import polars as pl
from studies import amplification
from studies.record import command

EPSILON0 = 6.0


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write fig1b.csv and fig1b.png."""
    return amplification.main("fig1b", EPSILON0, full, out)


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What the figure claims, seen in this table."""
    return amplification.verdict(table, EPSILON0)


if __name__ == "__main__":
    command(main, __doc__)

"""What the studies of Jurado, Gonze, Alvim, Palamidessi (2023), CSF, share: rows, grids, numbers known beforehand."""

import math
import tomllib
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
from studies.record import picture, record

from dovetail.core.channel import KRRChannel
from dovetail.leak.additive_leakage import normal_maximum
from dovetail.leak.vulnerability import vulnerability

ANY = 0.9  # what shuffled true values tell does not depend on how reports would be randomized


def case(k: int, p: float, n: int) -> dict[str, Any]:
    """Uniform prior, one try: noise alone (N), noise and shuffle (NS), and the two asymptotic forms.

    p = 1 is shuffling alone. `paper` is equations 15 and 16 with f = 1, `limit` the same with the right constant.
    """
    seen = vulnerability(KRRChannel.of(k, p if p < 1.0 else ANY), n=n)
    contrast = (k * p - 1.0) / (k - 1.0)
    leak = seen.shuffled_leakage if p == 1.0 else seen.randomized_shuffled_leakage
    paper = contrast * math.sqrt(math.log(k) / (k * n))
    limit = contrast * normal_maximum(k) / math.sqrt(k * n)
    return {
        "k": k,
        "p": p,
        "n": n,
        "noise": p,
        "noise_and_shuffle": 1.0 / k + leak,
        "leakage": leak,
        "error_bound": seen.error_bound,
        "paper": 1.0 / k + paper,
        "limit": 1.0 / k + limit,
        "leakage_over_paper": leak / paper,
        "leakage_over_limit": leak / limit,
    }


def grid(ks: Iterable[int], ps: Iterable[float], ns: Iterable[int]) -> pl.DataFrame:
    """A row for each combination."""
    return pl.DataFrame([case(k, p, n) for k, p, n in product(ks, ps, ns)])


def save(
    table: pl.DataFrame, out: Path, study: str, *, full: bool, draw: Callable[[Any, pl.DataFrame], Any]
) -> pl.DataFrame:
    """Leave the table, the picture and the record; `study` is the file of the study, whose folder names them."""
    name = Path(study).parent.name
    table.write_csv(out / f"{name}.csv")
    picture(out / f"{name}.png", lambda pyplot: draw(pyplot, table))
    record(out, seed=0, full=full)  # nothing is drawn at random
    return table


def expected(table: pl.DataFrame, study: str) -> dict[str, bool]:
    """The numbers of expected.toml, each against its row of the table, to the last digit that is given."""
    rows = tomllib.loads((Path(study).parent / "expected.toml").read_text())["row"]
    return {f"{row['column']} at {row['where']} is {row['value']}, as expected": _agrees(table, row) for row in rows}


def _agrees(table: pl.DataFrame, row: dict[str, Any]) -> bool:
    found = table.filter(**row["where"])[row["column"]]
    half = 0.5 * 10.0 ** -row["decimals"]
    return len(found) == 1 and abs(found[0] - row["value"]) <= half


def lines(axis: Any, table: pl.DataFrame, *, by: str, y: str, x: str = "n", label: str = "{}", **style: Any) -> None:
    """One line for each value of `by`, in the colours of the cycle."""
    for number, ((value,), rows) in enumerate(table.group_by(by, maintain_order=True)):
        axis.plot(rows[x], rows[y], label=label.format(value), color=f"C{number}", **style)

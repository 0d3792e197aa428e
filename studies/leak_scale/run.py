"""Time and error of the exact vulnerability of shuffling, against the people n and the values k.

Seconds are processor seconds of one call, the best of several for short ones. `error_bound` is what the call itself
promises, `true_error` its distance from the exact fraction where there are at most 200 people; both as a share of the
leakage V - 1/k, which is much smaller than V.
"""

from fractions import Fraction
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

import polars as pl
from studies.qif import lines, save
from studies.record import command

from dovetail.core.channel import KRRChannel
from dovetail.leak.exact import exact_vulnerability
from dovetail.leak.max_load import max_load_gap

FULL = [
    (n, k)
    for k, n in product((2, 3, 10, 100, 10**4, 10**6), (10, 100, *(10**power for power in range(3, 10))))
    if (n, k) != (10**9, 3)  # refused: too long
]
TOY = [(n, k) for k, n in product((2, 3, 100, 10**6), (10, 100, 10**4))]
SHORT = 0.05  # seconds


def timed(n: int, k: int) -> tuple[Any, float]:
    """The answer, and the seconds of the best of ten calls, of one if that is long."""
    times: list[float] = []
    while len(times) < 10 and (not times or times[-1] < SHORT):
        start = process_time()
        found = max_load_gap(n, k)
        times.append(process_time() - start)
    return found, min(times)


def case(n: int, k: int) -> dict[str, Any]:
    """One cell of the grid."""
    found, seconds = timed(n, k)
    truth = exact_vulnerability(KRRChannel(k, 2, 1), n=n).shuffled - Fraction(1, k) if n <= 200 else None
    off = None if truth is None else float(abs(Fraction(found.value) / n - truth) / truth)
    return {
        "n": n,
        "k": k,
        "leakage": found.value / n,
        "error_bound": found.error_bound / found.value,
        "true_error": off,
        "seconds": seconds,
        "method": found.method,
    }


def main(full: bool, out: Path) -> pl.DataFrame:
    """n to 1e9 and k to 1e6 in full, n to 1e4 as a toy."""
    max_load_gap(10, 3)  # compiles, or reads what was compiled
    table = pl.DataFrame([case(*cell) for cell in (FULL if full else TOY)], infer_schema_length=None)
    return save(table, out, __file__, full=full, draw=drawn)


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What the claim says, seen in this table."""
    known = table.filter(pl.col("true_error").is_not_null())
    return {
        "the leakage is known to 13 digits everywhere": bool((table["error_bound"] <= 1e-13).all()),
        "no error exceeds its bound": bool((known["true_error"] <= known["error_bound"]).all()),
        "two values take less than a millisecond": bool((table.filter(k=2)["seconds"] < 1e-3).all()),
        "a million people and a hundred values or more take less than half a second": bool(
            (table.filter((pl.col("k") >= 100) & (pl.col("n") <= 10**6))["seconds"] < 0.5).all()
        ),
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """Seconds and relative error bound against n, one line for each k."""
    figure, (clock, error) = pyplot.subplots(1, 2, figsize=(11, 4.2))
    lines(clock, table, by="k", y="seconds", label="k = {:,}", marker="o", markersize=3)
    lines(error, table, by="k", y="error_bound", label="k = {:,}", marker="o", markersize=3)
    known = table.filter(pl.col("true_error") > 0.0)
    error.scatter(known["n"], known["true_error"], color="black", marker="x", label="true error")
    clock.set(xscale="log", yscale="log", xlabel="people n", ylabel="processor seconds")
    error.set(xscale="log", yscale="log", xlabel="people n", ylabel="error as a share of V - 1/k")
    clock.legend(fontsize="x-small")
    error.legend(fontsize="x-small")
    return figure


if __name__ == "__main__":
    command(main, __doc__)

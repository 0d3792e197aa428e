"""The tables of docs/theory/several-symbols.md: by the package to the digits that are printed, and simulated.

Standard deviations of a count for people who are asked T times, root mean squared errors of a mean by digits, and
standard deviations behind sparse dummies, all at delta = 1e-6 (sparse ones have none).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from studies.record import command, picture, record

from dovetail.account.dummies import dummies_for_rounds
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.noise import People
from dovetail.noise.digits import DigitNoise
from dovetail.plan.dummies import digit_dummies, plan_mean_with_dummies
from dovetail.randomize.sampling.open_reports import OpenNumbers
from dovetail.shuffle.sampling.dummies import SparseDummies

SEED, DELTA = 43, 1e-6
TIMES = (1, 2, 3, 4, 5, 9, 12, 45, 52)
GAUSSIAN = {
    1.0: "5.98 8.45 10.4 12.0 13.4 17.9 20.7 40.1 43.1",
    0.5: "11.4 16.1 19.7 22.8 25.5 34.2 39.5 76.5 82.2",
}
GEOMETRIC = {
    1.0: "2.80 5.64 8.48 11.3 14.1 22.6 27.6 56.0 60.3",
    0.5: "5.64 11.3 17.0 22.6 28.2 44.6 52.7 107 115",
}
DIGITS = {(10_000, 1.0): "4.27e-4", (100_000, 0.5): "8.30e-5", (100_000, 1.0): "4.28e-5", (1_000_000, 1.0): "4.28e-6"}
HELD = (0, 10, 100, 10_000)
SPARSE = {0.5: "0.78 5.3 8.0 20 188", 1.0: "0.61 2.5 4.7 13 124", 2.0: "0.37 1.1 2.7 7.7 76"}


@dataclass(frozen=True)
class Cell:
    """A printed number, the package's, and errors that are simulated beside it."""

    kind: str
    epsilon: float
    what: str
    printed: str
    found: float
    draw: Callable[[Entropy, int], np.ndarray] | None = None


def counts(times: tuple[int, ...]) -> Iterator[Cell]:
    """Standard deviations of a count of people who are asked so many times."""
    for kind, table in (("gaussian", GAUSSIAN), ("geometric", GEOMETRIC)):
        for epsilon, printed in table.items():
            for asked, text in zip(TIMES, printed.split(), strict=True):
                if asked in times:
                    one = dummies_for_rounds(k=2, epsilon=epsilon, delta=DELTA, rounds=asked, law=kind)
                    yield Cell(
                        kind, epsilon, f"asked {asked} times", text, sqrt(one.variance),
                        lambda rng, many, law=one.noise: law.sample(many, rng) - float(law.reach),  # type: ignore[misc]
                    )  # fmt: skip


def means(largest: int) -> Iterator[Cell]:
    """Errors of a mean by digits, as part of the range; simulated with everybody halfway between two points."""
    for (n, epsilon), printed in DIGITS.items():
        if n <= largest:
            plan = plan_mean_with_dummies(
                trust="shuffler", n=n, lower=0.0, upper=1.0, epsilon=epsilon, delta=DELTA, dummies="digits"
            )
            draw = _by_digits(n, epsilon) if n == 10_000 else None
            yield Cell("digits", epsilon, f"mean of {n:,}", printed, plan.accuracy.standard_error, draw)


def _by_digits(n: int, epsilon: float) -> Callable[[Entropy, int], np.ndarray]:
    message = digit_dummies(n, epsilon=epsilon, delta=DELTA)
    own = OpenNumbers(0.0, 1.0, 3 ** len(message.weights))
    noise, people = DigitNoise(message, own), People(n, pl.DataFrame())
    values = np.full(n, 0.5 + 0.5 * own.step)

    def draw(rng: Entropy, many: int) -> np.ndarray:
        found = []
        for _ in range(many):
            batch = noise.complete(noise.randomize(values, people, rng), rng)
            found.append(float(noise.mean(noise.tally(batch), people).value) - float(values[0]))
        return np.array(found)

    return draw


def sparse() -> Iterator[Cell]:
    """Dummies of an answer, and standard deviations of a count of so many people."""
    for epsilon, text_ in SPARSE.items():
        mean, *printed = text_.split()
        dummies = SparseDummies(2, epsilon)
        yield Cell("sparse", epsilon, "dummies of an answer", mean, dummies.mean)
        for held, text in zip(HELD, printed, strict=True):
            yield Cell(
                "sparse", epsilon, f"count of {held:,}", text, sqrt(float(dummies.variance(held))),
                _of_kept(dummies, held),
            )  # fmt: skip


def _of_kept(dummies: SparseDummies, held: int) -> Callable[[Entropy, int], np.ndarray]:
    def draw(rng: Entropy, many: int) -> np.ndarray:
        wide = SparseDummies(many, dummies.epsilon)  # a symbol for each collection
        own = np.repeat(np.arange(many), held)
        return wide.counts(wide.add(own, rng)) - held

    return draw


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write shuffler_noises.csv and .png: all cells and 1,500 collections in full, some cells and 400 as a toy."""
    cells = [*counts(TIMES if full else (1, 5, 12)), *means(10**6 if full else 10**5), *sparse()]
    rng, trials, rows = simulation(SEED), 1500 if full else 400, []
    for cell in cells:
        errors = None if cell.draw is None else cell.draw(rng, trials)
        seen = None if errors is None else float(np.sqrt(np.mean(errors**2)))
        rows.append(
            {"kind": cell.kind, "epsilon": cell.epsilon, "what": cell.what, "printed": cell.printed,
             "found": cell.found, "simulated": seen, "trials": 0 if errors is None else trials}
        )  # fmt: skip
    table = pl.DataFrame(rows)
    table.write_csv(out / "shuffler_noises.csv")
    picture(out / "shuffler_noises.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=SEED, full=full)
    return table


def unit(text: str) -> float:
    """Of the last digit of a printed number."""
    digits, _, power = text.partition("e")
    return float(10.0 ** (int(power or 0) - len(digits.partition(".")[2])))


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What is claimed, seen in this table."""
    seen = table.filter(pl.col("trials") > 0)
    close = 5.0 / np.sqrt(2.0 * seen["trials"].to_numpy()) * 1.5  # of a law with heavier tails than a normal one
    off = [abs(one - float(text)) / unit(text) for one, text in table.select("found", "printed").iter_rows()]
    means_ = table.filter((pl.col("kind") == "digits") & (pl.col("what") == "mean of 100,000"))
    return {
        "every cell is the printed one within a unit of its last digit": max(off) <= 1.0,
        "simulated deviations are those of the formulas": bool(
            (np.abs(seen["simulated"].to_numpy() / seen["found"].to_numpy() - 1.0) <= close).all()
        ),
        "a mean of 100,000 people is off by at most 4.3e-5 of the range at epsilon 1": bool(
            (means_.filter(pl.col("epsilon") == 1.0)["found"] <= 4.3e-5).all()
        ),
    }  # fmt: skip


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """Standard deviation of a count against how often people are asked."""
    figure, axis = pyplot.subplots(figsize=(7, 4.5))
    for (kind, epsilon), rows in table.filter(pl.col("what").str.starts_with("asked")).group_by(
        ["kind", "epsilon"], maintain_order=True
    ):
        times = rows["what"].str.extract(r"(\d+)").cast(pl.Int64)
        [line] = axis.plot(times, rows["found"], label=f"{kind}, epsilon {epsilon:g}")
        axis.plot(times, rows["simulated"], "o", color=line.get_color())
    axis.set(xscale="log", yscale="log", xlabel="how often each person is asked")
    axis.set(ylabel="standard deviation of a count")
    axis.set(xticks=[1, 2, 5, 12, 52], xticklabels=["1", "2", "5", "12", "52"])
    axis.legend()
    return figure


if __name__ == "__main__":
    command(main, __doc__)

"""Standard deviations that better protocols promise at the same central epsilon, simulated beside the theory.

Everything at delta = 1e-6: means by the window mechanism at the planner's member, counts by dummies of the shuffler,
and shares of people with different epsilons. `theory` is what docs/theory/accuracy.md and the packages' formulas say,
`simulated` the standard deviation of the estimate over many collections.
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
from dovetail.estimate.classes import estimate_mixture
from dovetail.estimate.dummies import estimate_with_dummies
from dovetail.estimate.frequency import estimate_frequencies
from dovetail.estimate.mean import estimate_mean
from dovetail.plan.planner import plan_collection
from dovetail.randomize.krr import KRR
from dovetail.randomize.laplace import Laplace
from dovetail.randomize.window import Window
from dovetail.shuffle.sampling.dummies import Dummies

SEED, DELTA, CLOSE = 22, 1e-6, 0.05


@dataclass(frozen=True)
class Case:
    """One row: what is estimated how, what the theory says, and one simulated estimate less the truth."""

    protocol: str
    what: str
    n: int
    theory: float
    draw: Callable[[Entropy], float]
    trials: int


def worst_value(window: Window) -> float:
    """Where the window mechanism on [0, 1] is least accurate."""
    gamma, m = window.truthful, window.steps
    return min(max((1.0 - (1.0 - gamma) * m) / (2.0 * gamma), 0.0), 0.5) / m


def means(sizes: list[int], trials: int) -> Iterator[Case]:
    """The planner's window at epsilon = 1, and Laplace noise of about the same central epsilon beside it."""
    for n in sizes:
        plan = plan_collection(
            question="mean", n=n, lower=0.0, upper=1.0, epsilon=1.0, delta=DELTA, randomizer="window"
        )
        window: Any = plan.randomizer
        values = np.full(n, worst_value(window))
        yield Case("window", "mean, worst value", n, plan.standard_error, _mean(window, values), trials)
        loud = plan_collection(
            question="mean", n=n, lower=0.0, upper=1.0, epsilon=1.0, delta=DELTA, randomizer="laplace"
        )
        assert isinstance(loud.randomizer, Laplace)
        half = np.full(n, 0.5 + loud.randomizer.step / 2.0)  # between two grid points, where rounding adds most
        share = _unclamped(loud.randomizer)
        yield Case("Laplace", "mean", n, loud.standard_error * share, _mean(loud.randomizer, half), trials)


def _mean(randomizer: Any, values: np.ndarray) -> Callable[[Entropy], float]:
    return lambda rng: float(estimate_mean(randomizer, randomizer.randomize(values, rng)).value - values[0])


def _unclamped(laplace: Laplace) -> float:
    """Factor of the standard error that is left in the middle: clamping takes half the variance at an end away."""
    at_an_end = np.exp(-laplace.epsilon / 2.0) / (1.0 + np.exp(-float(laplace.rate)))
    return sqrt(1.0 - 2.0 * at_an_end / 2.0)


def counts(n: int, trials: int) -> Iterator[Case]:
    """A symbol that nobody holds and one that a tenth does: 16 symbols, epsilon = 1."""
    k, often = 16, n // 10
    values = np.concatenate([np.ones(often, dtype=np.int64), 2 + np.arange(n - often) % (k - 2)])
    dummies = Dummies(k, 1.0, DELTA)
    krr = KRR(k, plan_collection(question="frequency", k=k, n=n, epsilon=1.0, delta=DELTA, randomizer="krr").epsilon0)
    truth = np.bincount(values, minlength=k) / n
    yearly = dummies_for_rounds(k=k, epsilon=1.0, delta=DELTA, rounds=12, law="geometric")
    for symbol, what in ((0, "count 0"), (1, f"count {often:,}")):
        sd = float(np.sqrt(krr.variance(truth)[symbol] * n))

        def by_krr(rng: Entropy, symbol: int = symbol) -> float:
            return float(estimate_frequencies(krr, krr.randomize(values, rng)).value[symbol] - truth[symbol]) * n

        def by_dummies(rng: Entropy, symbol: int = symbol, added: Dummies = dummies) -> float:
            estimate = estimate_with_dummies(added, added.add(values, rng), n=n)
            return float(estimate.value[symbol] - truth[symbol]) * n

        yield Case("k-RR", what, n, sd, by_krr, trials)
        yield Case("dummies", what, n, sqrt(dummies.variance), by_dummies, trials)
    yield Case(
        "dummies, a round of 12", "count 0", n, sqrt(yearly.variance), lambda rng: by_dummies(rng, 0, yearly), trials
    )


def mixtures(n: int, trials: int) -> Iterator[Case]:
    """One percent of careful people, a value that nobody holds, four symbols."""
    classes = [(n // 100, KRR(4, 1.0)), (n - n // 100, KRR(4, 12.0))]
    held = [np.arange(count) % 3 for count, _ in classes]

    def draw(rng: Entropy) -> float:
        sent = [one.randomize(values, rng) for (_, one), values in zip(classes, held, strict=True)]
        return float(estimate_mixture(classes, np.concatenate(sent)).value[3])

    noise = sum(count * one.channel().s * (1.0 - one.channel().s) for count, one in classes)
    weight = sum(count * one.channel().contrast for count, one in classes)
    yield Case("1 % at epsilon0 1, others 12", "share 0", n, sqrt(noise) / weight, draw, trials)


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write accuracy.csv and .png: up to 100,000 people in full, 1,000 as a toy."""
    sizes = [10**3, 10**4, 10**5] if full else [10**3]
    trials = 2500 if full else 6000
    cases = [*means(sizes, trials), *counts(sizes[-1], trials), *mixtures(sizes[-1], trials)]
    rng, rows = simulation(SEED), []
    for case in cases:
        errors = np.array([case.draw(rng) for _ in range(case.trials)])
        rows.append(
            {
                "protocol": case.protocol, "what": case.what, "n": case.n, "theory": case.theory,
                "simulated": float(np.sqrt(np.mean(errors**2))), "trials": case.trials,
            }
        )  # fmt: skip
    table = pl.DataFrame(rows).with_columns((pl.col("simulated") / pl.col("theory")).alias("ratio"))
    table.write_csv(out / "accuracy.csv")
    picture(out / "accuracy.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=SEED, full=full)
    return table


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What is claimed, seen in this table."""
    means_of = {name: table.filter(pl.col("protocol") == name).sort("n") for name in ("window", "Laplace")}
    counted = {name: table.filter(pl.col("protocol") == name)["simulated"] for name in ("dummies", "k-RR")}
    dummies = table.filter(pl.col("protocol") == "dummies")["simulated"]
    return {
        "simulations are within 5 % of the theory": bool(((table["ratio"] - 1.0).abs() <= CLOSE).all()),
        "the window is more accurate than Laplace noise for every n": bool(
            (means_of["window"]["simulated"] < 0.8 * means_of["Laplace"]["simulated"]).all()
        ),
        "a count hidden by dummies is off by 2.8, frequent or rare": bool(dummies.is_between(2.66, 2.94).all()),
        "dummies are more accurate than local noise": bool((counted["dummies"] < 0.6 * counted["k-RR"]).all()),
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """Means: root mean squared error against n; simulated points on the lines of the theory."""
    figure, axis = pyplot.subplots(figsize=(7, 4.5))
    for name in ("Laplace", "window"):
        line = table.filter(pl.col("protocol") == name).sort("n")
        axis.plot(line["n"], line["theory"], label=f"{name}, theory")
        axis.plot(line["n"], line["simulated"], "o", label=f"{name}, simulated")
    axis.plot([1e3, 1e5], [0.5 / sqrt(1e3), 0.5 / sqrt(1e5)], color="grey", linestyle=":", label="sampling, at most")
    axis.set(xscale="log", yscale="log", xlabel="n", ylabel="error of a mean on [0, 1] at epsilon = 1")
    axis.legend()
    return figure


if __name__ == "__main__":
    command(main, __doc__)

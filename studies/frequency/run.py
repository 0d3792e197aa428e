r"""Theorem 2.3 measured: Hadamard response, shuffled, at the largest epsilon0 that (epsilon, delta) allows.

The error is the largest over all symbols, |share - estimate|. Beside it: its Bernstein bound from the exact variance,
the discrete Laplace mechanism of a trusted curator at the same epsilon (two-sided geometric noise on the counts,
which change by one in two places), and the same response with the local epsilon alone, not shuffled.
Light data spread evenly over the symbols; in heavy data half of the people hold one symbol.
"""

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from studies.record import command, picture, record

from dovetail.account.calibrate import max_epsilon
from dovetail.core.entropy import Entropy, simulation
from dovetail.estimate.frequency import FrequencyEstimator
from dovetail.randomize.hadamard import Hadamard

SEED, DELTA, ETA = 23, 1e-6, 1e-9
CHUNK = 1_000_000

Shares = NDArray[np.float64]  # (k,)


def people(data: str, n: int, k: int) -> NDArray[np.int64]:
    """Values (n,) of the two kinds of data."""
    values = np.arange(n) % k
    if data == "heavy":
        values[: n // 2] = 0
    return values


def measured(randomizer: Hadamard, values: NDArray[np.int64], truth: Shares, rng: Entropy) -> float:
    """The largest error of one collection."""
    estimator = FrequencyEstimator(randomizer)
    parts = [values[start : start + CHUNK] for start in range(0, len(values), CHUNK)]
    tally = estimator.tally(randomizer.randomize(parts[0], rng))
    for part in parts[1:]:
        tally = tally + estimator.tally(randomizer.randomize(part, rng))
    return float(np.abs(estimator.solve(tally).value - truth).max())


def bernstein(randomizer: Hadamard, truth: Shares, n: int) -> float:
    r"""sqrt(2 V L / n) + (M + 1) L / (3 n): exceeded by some symbol with probability at most ETA."""
    level = math.log(2 * randomizer.k / ETA)
    largest = 1.0 / randomizer.channel().contrast
    variance = float(randomizer.variance(truth).max())
    return math.sqrt(2.0 * variance * level / n) + (largest + 1.0) * level / (3.0 * n)


def central(truth: Shares, n: int, epsilon: float, rng: np.random.Generator) -> float:
    """The largest error of a trusted curator's two-sided geometric noise, epsilon / 2 per count."""
    stay = -math.expm1(-epsilon / 2.0)
    noise = rng.geometric(stay, len(truth)) - rng.geometric(stay, len(truth))
    return float(np.abs(noise).max()) / n


def case(data: str, k: int, n: int, epsilon: float, trials: int, seed: int) -> dict[str, Any]:
    """One row: errors are medians over the trials."""
    rng, noise = simulation(seed), np.random.default_rng(seed)
    values = people(data, n, k)
    truth = np.bincount(values, minlength=k) / n
    epsilon0 = max_epsilon(epsilon=epsilon, n=n, delta=DELTA)
    shuffled, local = Hadamard(k=k, epsilon=epsilon0), Hadamard(k=k, epsilon=epsilon)
    errors = [measured(shuffled, values, truth, rng) for _ in range(trials)]
    rate = math.sqrt(math.log(k) * math.log(1.0 / DELTA)) / (epsilon * n)
    return {
        "data": data,
        "k": k,
        "n": n,
        "epsilon": epsilon,
        "epsilon0": epsilon0,
        "bits": math.log2(shuffled.blocks * shuffled.width),
        "error": float(np.median(errors)),
        "largest_error": max(errors),
        "bernstein": bernstein(shuffled, truth, n),
        "central": float(np.median([central(truth, n, epsilon, noise) for _ in range(trials)])),
        "local": float(np.median([measured(local, values, truth, rng) for _ in range(trials)])),
        "error_over_rate": float(np.median(errors)) / rate,
        "trials": trials,
    }


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write frequency.csv and .png: k to 2^20, n to 1e7, 5 trials in full; k to 2^10, n to 1e5, 3 trials as a toy."""
    sizes, counts, trials = (
        ((2**4, 2**10, 2**20), (10**4, 10**5, 10**6, 10**7), 5) if full else ((2**4, 2**10), (10**4, 10**5), 3)
    )
    grid = product(("light", "heavy"), sizes, counts, (0.25, 1.0))
    table = pl.DataFrame([case(*cell, trials, SEED + number) for number, cell in enumerate(grid)])
    table.write_csv(out / "frequency.csv")
    picture(out / "frequency.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=SEED, full=full)
    return table


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What the claim says, seen in this table."""
    both = table.pivot(on="data", index=["k", "n", "epsilon"], values="error")
    rich = both.filter((pl.col("k") == both["k"].max()) & (pl.col("n") == both["n"].max()))
    return {
        "no error exceeds the Bernstein bound": bool((table["largest_error"] <= table["bernstein"]).all()),
        "a report has at most log2(k) + 2 bits": bool((table["bits"] <= table["k"].log(2) + 2).all()),
        "shuffling beats the local epsilon alone": bool((table["error"] < table["local"]).all()),
        "a trusted curator is better still": bool((table["central"] < table["error"]).all()),
        "one heavy symbol costs more than light data": bool((rich["heavy"] > rich["light"]).all()),
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """Error against n at epsilon = 1, one panel for each k."""
    sizes = table["k"].unique(maintain_order=True).to_list()
    figure, axes = pyplot.subplots(1, len(sizes), figsize=(4.5 * len(sizes), 4), sharey=True, squeeze=False)
    for axis, k in zip(axes[0], sizes, strict=True):
        rows = table.filter((pl.col("k") == k) & (pl.col("epsilon") == 1.0))
        for data in ("light", "heavy"):
            line = rows.filter(pl.col("data") == data)
            axis.plot(line["n"], line["error"], marker="o", label=f"shuffled, {data} data")
        light = rows.filter(pl.col("data") == "light")
        axis.plot(light["n"], light["local"], marker="s", label="local epsilon alone")
        axis.plot(light["n"], light["central"], marker="^", label="trusted curator")
        axis.plot(light["n"], light["bernstein"], label="bound, light data")
        axis.set(xscale="log", yscale="log", xlabel="n", title=f"k = {k:,}, epsilon = 1")
    axes[0][0].set_ylabel("largest error of a share")
    axes[0][0].legend(fontsize="small")
    return figure


if __name__ == "__main__":
    command(main, __doc__)

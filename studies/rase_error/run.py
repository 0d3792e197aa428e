r"""How far off is the mean: every estimator of the RASE paper and ours, against epsilon and n (figures 7 and 8).

n readings of appliances are drawn once and stay as they are; the noise is drawn anew in every trial. The noise and
the clamping are those of BR with beta = .5, rho = .9 and the published threshold, which clamps below epsilon = 4.6.

.. math:: \mathrm{error} = \hat\mu - \bar x, \qquad
          \mathrm{RMSE}^2 = \mathrm{bias}^2 + \mathrm{deviation}^2
"""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from studies.rase_metrics import maximum_squared_error
from studies.record import command, picture, record
from studies.table1.loads import PAPER, SOCKET, refit, synthetic

from dovetail.cli.progress import each
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.estimate import Estimate
from dovetail.core.stages import Reports
from dovetail.estimate.mean import estimate_mean, sample_mean
from dovetail.estimate.robust_mean import best_mean, bootstrap_mean, estimate_median
from dovetail.randomize.budget_laplace import BudgetLaplace

SEED = 78
BETA, RHO = 0.5, 0.9  # the paper's
EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 9.0)  # figure 7 and 8: .1 to 9
GRIDS = {"REFIT": (SOCKET, 1.0), "synthetic": (PAPER, 0.1)}  # range and grid step, watts
SPREADS = {"REFIT": 200.0, "synthetic": 60.0}  # public guesses of the values' standard deviation, for best_mean
RESAMPLES = 50

Values = NDArray[np.float64]
Method = Callable[[BudgetLaplace, Reports], Estimate]


def methods(spread: float, rng: Entropy) -> dict[str, Method]:
    """The estimators: those of the paper, then ours."""
    return {
        "sample mean": sample_mean,
        "median": lambda device, reports: estimate_median(device, reports, spread=spread),
        "published bootstrap": lambda device, reports: resampled(device, reports, rng),
        "Rao-Blackwell": estimate_mean,
        "bootstrap": lambda device, reports: bootstrap_mean(device, reports, resamples=RESAMPLES, rng=rng).estimate,
        "best mean": lambda device, reports: best_mean(device, reports).estimate,
        "best mean, spread known": lambda device, reports: best_mean(device, reports, spread=spread).estimate,
    }


def resampled(device: BudgetLaplace, reports: Reports, rng: Entropy) -> Estimate:
    """BS as printed: resamples of the reports as they were sent; the error of the plain mean."""
    values, counts = np.unique(reports, return_counts=True)
    draw = np.random.default_rng(rng.words(1))
    means = draw.multinomial(len(reports), counts / len(reports), size=RESAMPLES) @ values / len(reports)
    plain = sample_mean(device, reports)
    return Estimate(np.asarray(device.lower + device.step * means.mean()), plain.standard_error, plain.n,
                    plain.population_error, bias_bound=plain.bias_bound)  # fmt: skip


def pools(full: bool) -> dict[str, Values]:
    """Readings to draw from: ten-minute means of REFIT where it is at hand, and the synthetic fleet."""
    made = synthetic(64, 30 if full else 4, minutes=10.0, seed=SEED)
    table = refit("10m") if full else None
    real = {} if table is None else {"REFIT": table["watts"].to_numpy()}
    return real | {"synthetic": made.watts.ravel()}


def cell(pool: str, values: Values, epsilon: float, *, trials: int, rng: Entropy) -> list[dict[str, Any]]:
    """One row for each estimator."""
    (lower, upper), grid = GRIDS[pool]
    device = BudgetLaplace(lower, upper, epsilon, beta=BETA, rho=RHO, precision="published", grid=grid)
    truth, used = float(values.mean()), methods(SPREADS[pool], rng)
    errors, inside = np.empty((trials, len(used))), np.empty((trials, len(used)))
    worst = np.empty(trials)
    for trial in range(trials):
        reports = device.randomize(values, rng)
        worst[trial] = maximum_squared_error(values, device.lower + device.step * reports)
        for column, method in enumerate(used.values()):
            estimate = method(device, reports)
            low, high = estimate.interval()
            errors[trial, column] = estimate.value - truth
            inside[trial, column] = low <= truth <= high
    return [
        {
            "pool": pool, "n": values.size, "epsilon": epsilon, "n_epsilon2": values.size * epsilon**2,
            "clamps": device.clamps, "estimator": name, "truth": truth, "bias": off.mean(),
            "bias_error": off.std(ddof=1) / trials**0.5, "deviation": off.std(ddof=1),
            "rmse": np.sqrt((off**2).mean()), "aae": np.abs(off).mean(), "aae_least": np.abs(off).min(),
            "aae_most": np.abs(off).max(), "covered": inside[:, column].mean(), "rounding": device.rounding,
            "maximum_squared_error": worst.mean(), "maximum_squared_error_least": worst.min(),
            "maximum_squared_error_most": worst.max(), "trials": trials,
        }
        for column, (name, off) in enumerate(zip(used, errors.T, strict=True))
    ]  # fmt: skip


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write rase_error.csv and .png: in full n to 50,000 and 100 trials, as a toy n to 500 and 50 trials."""
    sizes, trials = ((50, 500, 5000, 50_000), 100) if full else ((50, 500), 50)
    rng = simulation(SEED)
    rows = []
    for (pool, readings), n in each(product(pools(full).items(), sizes), "estimate means"):
        values = readings[rng.permutation(readings.size)[:n]]
        for epsilon in EPSILONS:
            rows += cell(pool, values, epsilon, trials=trials, rng=rng)
    table = pl.DataFrame(rows)
    table.write_csv(out / "rase_error.csv")
    picture(out / "rase_error.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=SEED, full=full)
    return table


def by_estimator(table: pl.DataFrame, column: str) -> pl.DataFrame:
    """One row for each pool, n and epsilon, one column for each estimator."""
    return table.pivot("estimator", index=["pool", "n", "epsilon", "n_epsilon2", "clamps"], values=column)


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What is claimed, seen in this table."""
    ours = table.filter(pl.col("estimator") == "Rao-Blackwell")
    plain = table.filter(pl.col("estimator") == "sample mean")
    error = by_estimator(table, "rmse")
    clamped = error.filter(pl.col("clamps"))
    tiny, large = (clamped.filter(part) for part in (pl.col("n_epsilon2") <= 1, pl.col("n_epsilon2") >= 50))
    most = error.filter((pl.col("n") == pl.col("n").max()) & (pl.col("epsilon") >= 4))
    slack = 5 * (0.95 * 0.05 / ours["trials"]).sqrt()  # of a share over so many trials
    return {
        "the Rao-Blackwell mean is unbiased, clamped or not": bool(
            (ours["bias"].abs() <= 5 * ours["bias_error"] + ours["rounding"]).all()
        ),
        "its 95 % intervals cover": bool((ours["covered"] >= 0.95 - slack).all()),
        "the sample mean of clamped reports is biased everywhere": bool(
            (plain["bias"].abs() > 5 * plain["bias_error"]).filter(plain["clamps"]).all()
        ),
        "resampling changes the sample mean's error by less than a tenth": bool(
            ((error["published bootstrap"] / error["sample mean"] - 1).abs() < 0.1).all()
        ),
        "clamped, the sample mean wins at n epsilon^2 below 1": bool(
            (tiny["sample mean"] < tiny["Rao-Blackwell"]).all()
        ),
        "clamped, the Rao-Blackwell mean beats it and its bootstrap from n epsilon^2 = 50": bool(
            (large["Rao-Blackwell"] < large["sample mean"]).all()
            and (large["Rao-Blackwell"] < large["published bootstrap"]).all()
        ),
        "the median beats the Rao-Blackwell mean somewhere": bool((error["median"] < error["Rao-Blackwell"]).any()),
        "the median loses to it at the largest n from epsilon = 4": bool(
            (most["median"] > most["Rao-Blackwell"]).all()
        ),
        "the best mean is never more than 5 % worse than the Rao-Blackwell mean": bool(
            (error["best mean"] <= 1.05 * error["Rao-Blackwell"]).all()
            and (error["best mean, spread known"] <= 1.05 * error["Rao-Blackwell"]).all()
        ),
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """Bias and RMSE against epsilon at the smallest n, RMSE against n at epsilon = 1; a row for each pool."""
    names = table["pool"].unique(maintain_order=True).to_list()
    figure, axes = pyplot.subplots(len(names), 3, figsize=(14, 4.2 * len(names)), squeeze=False)
    least = table["n"].to_numpy().min()
    for line, pool in zip(axes, names, strict=True):
        here = table.filter(pl.col("pool") == pool)
        small, unit = here.filter(pl.col("n") == least), here.filter(pl.col("epsilon") == 1.0)
        for axis, rows, x, y in ((line[0], small, "epsilon", "bias"), (line[1], small, "epsilon", "rmse"),
                                 (line[2], unit, "n", "rmse")):  # fmt: skip
            for name, marker in (("sample mean", "o"), ("median", "s"), ("Rao-Blackwell", "^"),
                                 ("best mean, spread known", "x")):  # fmt: skip
                part = rows.filter(pl.col("estimator") == name).sort(x)
                axis.errorbar(part[x], part[y], 2 * part["bias_error"] if y == "bias" else None,
                              marker=marker, markerfacecolor="none", label=name)  # fmt: skip
            at = f"n = {least}" if x == "epsilon" else "epsilon = 1"
            axis.set(xscale="log", xlabel=x, ylabel=f"{y}, watts", title=f"{pool}, {at}")
            axis.set_yscale("linear" if y == "bias" else "log")
            ticks = rows[x].unique().sort().to_list()
            axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axis.minorticks_off()
    axes[0, 1].legend(fontsize="small")
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    command(main, __doc__)

r"""True and estimated daily means of a fleet over 25 days: figure 9 of the RASE paper, with standard errors.

Every ten minutes each device reports once through BR and RASE; the fusion center estimates the mean of the round, and
a day is the window query over its 144 rounds:

.. math:: \mathrm{Win}(t, 144) = \frac{1}{144} \sum_{s = t - 143}^{t} \hat\mu_s

Every estimator sees the same reports.
"""

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from studies.record import command, picture, record
from studies.table1.loads import SOCKET, pivot_rounds, refit, synthetic

from dovetail.core.entropy import simulation
from dovetail.core.errors import DataError
from dovetail.core.estimate import Estimate
from dovetail.estimate.mean import estimate_mean, sample_mean
from dovetail.estimate.robust_mean import bootstrap_mean, estimate_median
from dovetail.job.fleet import Fleet, FleetRun
from dovetail.randomize.budget_laplace import BudgetLaplace
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.rase import RASE

SEED = 9
BETA, RHO = 0.5, 0.9  # the paper's
EPSILONS = (1.0, 4.0, 9.0)  # of one report; BR clamps below 4.6
DAY = 144  # rounds
FIRST = datetime(2014, 10, 1)  # the month that the paper shows
RESAMPLES = 20


def estimators() -> dict[str, Callable[..., Estimate]]:
    """Those of the paper, then ours."""
    rng = simulation(SEED)
    return {
        "sample mean": sample_mean,
        "median": estimate_median,
        "Rao-Blackwell": estimate_mean,
        "bootstrap": lambda device, reports: bootstrap_mean(device, reports, resamples=RESAMPLES, rng=rng).estimate,
    }


def trace(days: int, *, real: bool) -> tuple[str, tuple[float, float], pl.DataFrame]:
    """Name, public range and readings (t, device columns) of a fleet over so many whole days."""
    table = refit("10m") if real else None
    if table is None:
        fleet = synthetic(64, days, minutes=10.0, seed=SEED)
        wide = pl.DataFrame(fleet.watts, schema=[f"device {d}" for d in range(64)])
        return fleet.name, fleet.bounds, wide.select(pl.int_range(1, pl.len() + 1).alias("t"), pl.all())
    last = FIRST + timedelta(days=days)
    wide, _ = pivot_rounds(table.filter(pl.col("time").is_between(FIRST, last, closed="left")))
    if len(wide) < DAY * days:
        raise DataError(f"REFIT must hold readings of all its devices for {days} days from {FIRST:%Y-%m-%d} on.")
    return "REFIT", SOCKET, wide.drop("time")


def run(fleet: str, bounds: tuple[float, float], wide: pl.DataFrame, epsilon: float) -> list[dict[str, Any]]:
    """One row for each day and estimator."""
    devices = tuple(wide.columns[1:])
    long = wide.unpivot(index="t", variable_name="device", value_name="value").rename({"t": "time"})
    truths = wide.drop("t").to_numpy().reshape(-1, DAY * len(devices)).mean(axis=1)
    device = BudgetLaplace(
        *bounds, epsilon, beta=BETA, rho=RHO, precision="published", grid=(bounds[1] - bounds[0]) / 3000
    )
    shuffler = RASE.fit(Groups.from_labels(np.arange(len(devices)) // 4))
    rows = []
    for name, estimate in estimators().items():
        run = FleetRun(Fleet(devices, device, shuffler, cap=math.inf, estimate=estimate))
        run.submit_table(long, rng=simulation(SEED))
        for day, truth in enumerate(truths.tolist(), start=1):
            answer = run.time_window(day * DAY, width=DAY).estimate
            low, high = answer.interval()
            rows.append(
                {
                    "fleet": fleet, "devices": len(devices), "epsilon": epsilon, "clamps": device.clamps, "day": day,
                    "estimator": name, "truth": truth, "estimate": float(answer.value),
                    "standard_error": float(answer.standard_error), "low": float(low), "high": float(high),
                    "spent": run.guarantee.epsilon,
                }
            )  # fmt: skip
    return rows


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write rase_traces.csv and .png: 25 days in full, of REFIT where it is at hand; 2 synthetic days as a toy."""
    fleets = [trace(25 if full else 2, real=real) for real in ((False, True) if full else (False,))]
    distinct = {fleet[0]: fleet for fleet in fleets}.values()
    table = pl.DataFrame([row for fleet in distinct for epsilon in EPSILONS for row in run(*fleet, epsilon)])
    table.write_csv(out / "rase_traces.csv")
    picture(out / "rase_traces.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=SEED, full=full)
    return table


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What is claimed, seen in this table."""
    clamped = table.filter("clamps")
    plain, ours = (clamped.filter(estimator=name) for name in ("sample mean", "Rao-Blackwell"))
    every = table.filter(estimator="Rao-Blackwell")
    error = (every["estimate"] - every["truth"]) / every["standard_error"]
    pooled = (
        every.with_columns(error=error).group_by("fleet", "epsilon").agg(pl.col("error").mean() * pl.len().sqrt())
    )
    return {
        "clamped, the sample mean is above the truth on every day": bool((plain["estimate"] > plain["truth"]).all()),
        "clamped, the Rao-Blackwell mean is nearer on average": bool(
            (ours["estimate"] - ours["truth"]).abs().to_numpy().mean()
            < (plain["estimate"] - plain["truth"]).abs().to_numpy().mean()
        ),
        "the Rao-Blackwell mean is within five standard errors every day": bool((error.abs() < 5).all()),
        "and has no bias over all days": bool((pooled["error"].abs() < 5).all()),
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """Daily means: a row for each fleet, a column for each epsilon."""
    fleets, epsilons = (table[name].unique(maintain_order=True).to_list() for name in ("fleet", "epsilon"))
    figure, axes = pyplot.subplots(len(fleets), len(epsilons), figsize=(15, 4.2 * len(fleets)), squeeze=False)
    for line, fleet in zip(axes, fleets, strict=True):
        for axis, epsilon in zip(line, epsilons, strict=True):
            here = table.filter(fleet=fleet, epsilon=epsilon)
            for name, marker in (("sample mean", "o"), ("median", "s"), ("Rao-Blackwell", "^")):
                rows = here.filter(estimator=name)
                reach = 2 * rows["standard_error"] if name == "Rao-Blackwell" else None
                axis.errorbar(rows["day"], rows["estimate"], reach, marker=marker, markersize=4, label=name)
            axis.plot(rows["day"], rows["truth"], color="black", linestyle="-", linewidth=2, label="truth")
            axis.set(title=f"{fleet}, {here['devices'][0]} devices, epsilon = {epsilon:g}", xlabel="day")
        line[0].set_ylabel("daily mean, watts")
    axes[0, -1].legend(fontsize="small")
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    command(main, __doc__)

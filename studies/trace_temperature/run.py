"""Room temperatures of SML2010: a smoother's success at finding the temperature at noon, for several noises.

Days are traces of 48 half hours. Every second day fits the kernel; the others are released and attacked at noon, with
noises of equal root mean squared error.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from studies.record import command, picture, record

from dovetail.core.errors import DataError
from dovetail.trace.descent import Budget
from dovetail.trace.fit import Fit, fit_kernel
from dovetail.trace.kernels import Floats, Matern52
from dovetail.trace.mechanisms import design_noise
from dovetail.trace.rehearsal import smoother
from dovetail.trace.trace import Trace

SEED, STEP, POINTS, NOON = 1, 1800.0, 48, 24
ERRORS = (0.25, 0.5, 1.0)  # degrees Celsius
RADIUS = 0.5
NOISES = ("uniform", "published", "full", "mixed", "robust")
DRAWS = 50
FILES = ("NEW-DATA-1.T15.txt", "NEW-DATA-2.T15.txt")


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write trace_temperature.csv and its picture: 50 releases of each day in full, 5 as a toy."""
    days = whole_days()
    fit = fit_kernel(Matern52(7200.0), days[::2])
    errors = ERRORS if full else ERRORS[2:]
    table = pl.DataFrame([row for e in errors for row in rows(fit, days[1::2], e, DRAWS if full else 5)])
    table.write_csv(out / "trace_temperature.csv")
    picture(out / "trace_temperature.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=SEED, full=full)
    return table


def whole_days(folder: Path | None = None) -> list[Trace]:
    """The temperature of the dining room, every half hour, on every day without a gap."""
    home = (folder or Path(os.environ.get("DOVETAIL_DATA", "."))) / "sml2010"
    days: dict[str, list[float]] = {}
    for name in FILES:
        if not (home / name).exists():
            raise DataError(f"{home / name}: not there; SML2010 is UCI data set 274 (CC BY 4.0).")
        for line in (home / name).read_text().splitlines():
            if not line.startswith("#"):
                date, _, value, *_ = line.split()
                days.setdefault(date, []).append(float(value))
    times = np.arange(float(POINTS)) * STEP
    return [Trace.of(date, times, values[::2]) for date, values in days.items() if len(values) == 2 * POINTS]


def rows(fit: Fit, days: list[Trace], error: float, draws: int) -> Iterator[dict[str, Any]]:
    """One row for each noise: success of the smoother that knows the kernel, and of one that believes in twice it."""
    times, variance = days[0].times, float(fit.covariance[0, 0])
    prior, wrong = (fit.kernel.stretched(factor).matrix(times) for factor in (1.0, 2.0))
    budget, rng = Budget(POINTS, error**2 / variance), np.random.default_rng(SEED)
    true = np.repeat(np.stack([day.points[:, 0] for day in days], axis=1), draws, axis=1)
    for name in NOISES:
        noise = design_noise(name, fit.kernel, times, [(NOON,)], budget).noise
        released = true + np.linalg.cholesky(noise * variance) @ rng.standard_normal(true.shape)
        row: dict[str, Any] = {"error": error, "noise": name, "days": len(days), "draws": draws}
        for label, believed in (("right", prior), ("twice", wrong)):
            away, predicted = attacked(believed, noise, released, true)
            row[f"success_{label}"] = float(np.mean(away <= RADIUS))
            row[f"rmse_{label}"] = float(np.sqrt(np.mean(away**2)))
            row[f"predicted_{label}"] = float(np.sqrt(variance) * predicted)
        yield row


def attacked(believed: Floats, noise: Floats, released: Floats, true: Floats) -> tuple[Floats, float]:
    """How far each guess is off, and the posterior standard deviation in units of the prior's."""
    reader = smoother(believed, noise, [NOON])
    return np.abs(reader.estimate(released)[0] - true[NOON]), float(np.sqrt(reader.variance[0]))


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """Success of the smoother for each noise and error."""
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), sharey=True)
    for axis, label in zip(axes, ("right", "twice"), strict=True):
        for (name,), part in table.group_by("noise", maintain_order=True):
            axis.plot(part["error"], part[f"success_{label}"], marker="o", label=name)
        axis.set_title(f"length-scale: {label}")
        axis.set_xlabel("root mean squared error, degrees")
    axes[0].set_ylabel(f"guesses within {RADIUS:g} degrees")
    axes[1].legend()
    return figure


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """The claims of the title."""
    part = table.filter(pl.col("error") == ERRORS[2])
    success = dict(part.select("noise", "success_right").rows())
    return {
        "robust noise at least halves the success at one degree of error": success["robust"]
        <= success["uniform"] / 2,
        "and leaves less than SDP_A": success["robust"] <= success["published"],
        "the smoother errs at most a quarter more than predicted": bool(
            (part["rmse_right"] / part["predicted_right"] <= 1.25).all()
        ),
    }


if __name__ == "__main__":
    command(main, __doc__)

"""Taxi traces of Porto: a smoother's success at finding one place, for several noises of equal error in metres.

Public trips fit the kernel; other trips are released and attacked at the point in the middle of the trip. Planar
Laplace noise on each point (geo-indistinguishability) stands beside with the same root mean squared error.
"""

import csv
import gzip
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from studies.record import command, picture, record

from dovetail.core.errors import DataError
from dovetail.trace.descent import Budget
from dovetail.trace.fit import Fit, fit_kernel
from dovetail.trace.kernels import Matern32
from dovetail.trace.mechanisms import design_noise
from dovetail.trace.rehearsal import smoother
from dovetail.trace.trace import TangentPlane, Trace

SEED, STEP, RADIUS = 1, 15.0, 100.0
ERRORS = (50.0, 100.0, 200.0)
POINTS = 40
NOISES = ("uniform", "planar laplace", "published", "full", "mixed", "robust")
CENTRE = TangentPlane(41.15, -8.62)
FASTEST = 160 / 3.6  # metres a second; faster hops are errors of the receiver


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write trace_taxi.csv and its picture: 150 public and 150 attacked trips in full, 30 and 20 as a toy."""
    trips = taxi_trips()
    public, attacked = (trips[:150], trips[150:300]) if full else (trips[:30], trips[30:50])
    fit = fit_kernel(Matern32(300.0), public, isotropic=True)
    table = pl.DataFrame([row for error in ERRORS for row in rows(fit, attacked, error)])
    table.write_csv(out / "trace_taxi.csv")
    picture(out / "trace_taxi.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=SEED, full=full)
    return table


def taxi_trips(folder: Path | None = None) -> list[Trace]:
    """The first 40 points of every whole trip without a hop above 160 km/h, in metres."""
    place = (folder or Path(os.environ.get("DOVETAIL_DATA", "."))) / "porto_taxi" / "train_first_1264.csv.gz"
    if not place.exists():
        raise DataError(
            f"{place}: not there; Porto taxi trips are UCI data set 339, doi 10.24432/C55W25 (CC BY 4.0)."
        )
    found = []
    with gzip.open(place, "rb") as file:
        for row in csv.DictReader(io.TextIOWrapper(file)):
            line = json.loads(row["POLYLINE"])[:POINTS]
            if len(line) < POINTS:
                continue
            points = CENTRE.to_metres([p[1] for p in line], [p[0] for p in line])
            if np.linalg.norm(np.diff(points, axis=0), axis=1).max() <= FASTEST * STEP:
                found.append(Trace.of(row["TRIP_ID"], np.arange(POINTS) * STEP, points))
    return found


def rows(fit: Fit, trips: list[Trace], error: float) -> list[dict[str, Any]]:
    """One row for each noise: success of the smoother, with and without one sighting two points before."""
    times, spot = trips[0].times, POINTS // 2
    scale2 = float(fit.covariance[0, 0])
    prior, budget = fit.kernel.matrix(times), Budget(POINTS, error**2 / 2 / scale2)
    rng, found = np.random.default_rng(SEED), []
    true = np.stack([trip.points for trip in trips], axis=2)  # (n, 2, trips)
    for name in NOISES:
        model = "uniform" if name == "planar laplace" else name
        noise = design_noise(model, fit.kernel, times, [(spot,)], budget).noise
        if name == "planar laplace":
            drawn_noise = planar_laplace(rng, true.shape, error)
        else:
            root = np.linalg.cholesky(noise * scale2)
            drawn_noise = np.einsum("ij,jkl->ikl", root, rng.standard_normal(true.shape))
        released = true + drawn_noise
        row: dict[str, Any] = {"error": error, "noise": name}
        for label, known in (("alone", None), ("sighting", spot - 2)):
            reader = smoother(prior, noise, [spot], known=known)
            seen = 0.0 if known is None else true[known]
            guess = np.stack(
                [reader.estimate(released[:, k], seen if known is None else true[known, k])[0] for k in (0, 1)]
            )
            away = np.linalg.norm(guess - true[spot], axis=0)
            row[f"success_{label}"] = float(np.mean(away <= RADIUS))
            row[f"rmse_{label}"] = float(np.sqrt(np.mean(away**2)))
            row[f"predicted_{label}"] = float(np.sqrt(2 * scale2 * reader.variance[0]))
        row["measured_error"] = float(np.sqrt((drawn_noise**2).sum(axis=1).mean()))
        row["trips"] = len(trips)
        found.append(row)
    return found


def planar_laplace(rng: np.random.Generator, shape: tuple[int, ...], error: float) -> np.ndarray:
    """Polar Laplace noise of this root mean squared distance: radius Gamma(2, b), E r^2 = 6 b^2."""
    n, _, trips = shape
    radius, angle = rng.gamma(2.0, error / np.sqrt(6.0), (n, trips)), rng.uniform(0, 2 * np.pi, (n, trips))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """Success of the smoother for each noise and error."""
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), sharey=True)
    for axis, column in zip(axes, ("success_alone", "success_sighting"), strict=True):
        for (name,), part in table.group_by("noise", maintain_order=True):
            axis.plot(part["error"], part[column], marker="o", label=name)
        axis.set_title(column.replace("_", ", "))
        axis.set_xlabel("root mean squared error, m")
    axes[0].set_ylabel(f"guesses within {RADIUS:g} m")
    axes[1].legend()
    return figure


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """The claims of the title."""
    wide = table.pivot(on="noise", index="error", values="success_alone")
    best = table.filter(pl.col("noise") == "robust")
    return {
        "robust noise at least halves the success at 100 m of error": bool(
            wide.filter(pl.col("error") == 100.0).select((pl.col("robust") <= pl.col("uniform") / 2).all()).item()
        ),
        "planar Laplace noise hides no more than uniform noise, within a tenth": bool(
            (wide["planar laplace"] >= wide["uniform"] - 0.1).all()
        ),
        "the smoother's error is within a quarter of the predicted one": bool(
            ((best["rmse_alone"] / best["predicted_alone"] - 1).abs() <= 0.25).all()
        ),
    }


if __name__ == "__main__":
    command(main, __doc__)

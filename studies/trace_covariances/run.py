"""Section E.1.1 of the dissertation: noise covariances as heat maps, and samples of the noise, for both priors."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from studies.record import command, picture, record

from dovetail.core.entropy import simulation
from dovetail.trace.closed_form import concentrated, from_prior, full, published_sdp_a, uniform
from dovetail.trace.descent import Budget
from dovetail.trace.kernels import RBF, Floats, Kernel, Periodic
from dovetail.trace.loss import condition, information
from dovetail.trace.mechanisms import correlated_noise

SEED, MSE = 1, 0.02
Case = tuple[str, str, tuple[int, ...], Floats]  # prior, name, secret, covariance


def cases(n: int) -> list[Case]:
    """The noises of the three figures, all with the same trace; compound secrets as there."""
    found: list[Case] = []
    for name, kernel in _kernels(n).items():
        prior, budget, middle = kernel.matrix(np.arange(float(n))), Budget(n, MSE), n // 2 - 1
        pair = (middle, middle + (1 if name == "RBF" else n // 3))
        ours, both = full(prior, middle, budget).noise, condition(prior, pair)
        found += [
            (name, "uniform", (middle,), uniform(budget).noise),
            (name, "concentrated", (middle,), concentrated((middle,), budget).noise),
            (name, "published, basic", (middle,), published_sdp_a(condition(prior, [middle]), budget).noise),
            (name, "ours, basic", (middle,), ours),
            (name, "published, compound", pair, published_sdp_a(both, budget).noise),
            (name, "all basic: from the prior", (middle,), from_prior(prior, budget).noise),
        ]
    return found


def _kernels(n: int) -> dict[str, Kernel]:
    return {"RBF": RBF(6.103), "periodic": Periodic(1.0968, n / 2)}


def main(full_size: bool, out: Path) -> pl.DataFrame:
    """Write trace_covariances.csv and its picture: 48 points in full, 12 as a toy; seconds."""
    n = 48 if full_size else 12
    made = cases(n)
    table = pl.DataFrame([row(n, *case) for case in made])
    table.write_csv(out / "trace_covariances.csv")
    picture(out / "trace_covariances.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=SEED, full=full_size)
    return table


def row(n: int, name: str, noise: str, secret: tuple[int, ...], covariance: Floats) -> dict[str, Any]:
    """What a covariance looks like in numbers, and what it leaves to be inferred about its secret."""
    variances, middle = np.diag(covariance), secret[0]
    prior = _kernels(n)[name].matrix(np.arange(float(n)))
    spread = np.sqrt(np.outer(variances, variances))
    others = ~np.eye(n, dtype=bool)
    return {
        "prior": name,
        "noise": noise,
        "secret": " ".join(map(str, secret)),
        "mse": float(variances.mean()),
        "at_secret": float(variances[middle] / variances.sum()),
        "mean_correlation": float((np.abs(covariance) / spread)[others].mean()),
        "loss": float(information(condition(prior, secret), covariance).largest.upper),
    }


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What the text says of the figures, and that all noises cost the same."""
    found = {(one["prior"], one["noise"]): one for one in table.iter_rows(named=True)}
    both = ("RBF", "periodic")
    return {
        "all noises cost the same": bool(((table["mse"] / MSE - 1).abs() < 1e-9).all()),
        "uniform and concentrated noise are uncorrelated": all(
            found[prior, noise]["mean_correlation"] < 1e-12 for prior in both for noise in ("uniform", "concentrated")
        ),
        "noise for a secret is correlated with its neighbours": all(
            found[prior, noise]["mean_correlation"] > 0.1
            for prior in both
            for noise in ("published, basic", "ours, basic")
        ),
        "ours leaves the least to be inferred of one place, and concentrated noise the most": all(
            found[prior, "ours, basic"]["loss"]
            < found[prior, "published, basic"]["loss"]
            < found[prior, "uniform"]["loss"]
            < found[prior, "concentrated"]["loss"]
            for prior in both
        ),
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """Heat maps, each with three samples below it; one row of both for each prior."""
    n = 48 if table["secret"].str.split(" ").list.first().cast(int).max() > 20 else 12
    made = cases(n)
    columns = len(made) // 2
    figure, axes = pyplot.subplots(4, columns, figsize=(2.4 * columns, 8.6), height_ratios=(3, 1.5, 3, 1.5))
    for number, (name, noise, _, covariance) in enumerate(made):
        line, column = divmod(number, columns)
        above, below = axes[2 * line, column], axes[2 * line + 1, column]
        above.imshow(covariance, cmap="magma")
        above.set_title(f"{name}: {noise}", fontsize=8)
        above.set_axis_off()
        rng = simulation(SEED + number)
        for _ in range(3):
            below.plot(correlated_noise(covariance, rng), linewidth=0.9)
        below.tick_params(labelsize=6)
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    command(main, __doc__)

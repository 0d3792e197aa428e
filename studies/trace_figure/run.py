"""Figure 5.2: posterior width of an adversary who knows the kernel, over length-scales, with our noise beside.

Panels a to d: RBF, n = 50; e to h: periodic, n = 48, period 24. Basic secret 24 (a, e), compound secret (b: 24, 25;
f: 16, 32), all basic secrets (c, g; the mean width), a wrong length-scale (d, h). Budget .02 a point, prior variance
1; every noise has a white floor of 1 % of it, so nothing rests on jitter.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from studies.record import command, picture, record

from dovetail.trace.descent import Budget
from dovetail.trace.kernels import RBF, Kernel, Periodic
from dovetail.trace.loss import condition, information, posterior_width
from dovetail.trace.mechanisms import design_noise

MSE = 0.02
RBF_MEDIAN, PERIODIC_MEDIAN = 6.103, 1.0968
FULL = {"rbf": (0.5, 1.0, 2.0, 3.0, 4.0, 6.103, 8.0, 10.0), "periodic": (0.3, 0.5, 0.8, 1.0968, 1.3, 1.6, 2.0)}
TOY = {"rbf": (2.0, 6.103), "periodic": (0.5, 1.0968)}
BASIC = ("uniform", "concentrated", "published", "block", "full", "mixed", "robust")
COMPOUND = ("uniform", "concentrated", "published", "full", "mixed")
WRONG = (0.5, 1.0, 1.5)
SMOOTH = 1.0  # RBF length-scale from which neighbours are correlated by more than .6
# panel -> kernel, secrets, mechanisms
PANELS: dict[str, tuple[str, tuple[int, ...], tuple[str, ...]]] = {
    "a": ("rbf", (24,), BASIC),
    "b": ("rbf", (24, 25), COMPOUND),
    "c": ("rbf", (), ("uniform", "all")),
    "d": ("rbf", (24,), ("uniform", "published", "full", "mixed", "robust")),
    "e": ("periodic", (24,), BASIC),
    "f": ("periodic", (16, 32), COMPOUND),
    "g": ("periodic", (), ("uniform", "all")),
    "h": ("periodic", (24,), ("uniform", "published", "full", "mixed", "robust")),
}


def main(full: bool, out: Path, panel: str | None = None) -> pl.DataFrame:
    """Write trace_figure.csv and its picture: two length-scales as a toy."""
    panels = [panel] if panel else list(PANELS)
    table = pl.DataFrame([row for name in panels for row in rows(name, FULL if full else TOY)])
    table.write_csv(out / "trace_figure.csv")
    picture(out / "trace_figure.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=0, full=full)
    return table


def rows(panel: str, lengths: dict[str, tuple[float, ...]]) -> Iterator[dict[str, Any]]:
    """One row for each length-scale, mechanism and adversary of a panel."""
    kind, secret, mechanisms = PANELS[panel]
    n = 50 if kind == "rbf" else 48
    times, budget = np.arange(float(n)), Budget(n, MSE)
    wrong = WRONG if panel in "dh" else (1.0,)
    for length in lengths[kind]:
        kernel: Kernel = RBF(length) if kind == "rbf" else Periodic(length, 24.0)
        secrets = [secret] if secret else [(place,) for place in range(n)]
        for name in mechanisms:
            noise = design_noise(name, kernel, times, secrets, budget).noise
            for factor in wrong:
                prior = kernel.stretched(factor).matrix(times)
                yield {
                    "panel": panel,
                    "length": length,
                    "noise": name,
                    "adversary": factor,
                    "width": float(np.mean([width(prior, each, noise) for each in secrets])),
                    "loss": max(float(information(condition(prior, s), noise).largest.upper) for s in secrets),
                }


def width(prior: np.ndarray, secret: tuple[int, ...], noise: np.ndarray) -> float:
    """Posterior width of one secret."""
    seen = condition(prior, secret)
    return posterior_width(information(seen, noise).posterior(seen.variance))


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """One panel each; the adversary with the design's own kernel, and dashes for longer ones."""
    names = table["panel"].unique(maintain_order=True).to_list()
    figure, axes = pyplot.subplots(2, -(-len(names) // 2), figsize=(14, 6), squeeze=False)
    for axis, panel in zip(axes.ravel(), names, strict=False):
        part = table.filter(pl.col("panel") == panel)
        for (noise, factor), line in part.group_by("noise", "adversary", maintain_order=True):
            style = {1.0: "-", 0.5: ":", 1.5: "--"}[factor]  # type: ignore[index]
            axis.plot(line["length"], line["width"], style, marker=".", label=noise if factor == 1.0 else None)
        axis.set_title(panel)
        axis.set_xlabel("length-scale")
        axis.legend(fontsize=6)
    axes[0, 0].set_ylabel("posterior width")
    return figure


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """The claims, as far as the table's panels show them."""
    own = table.filter(pl.col("adversary") == 1.0)
    wide = own.pivot(on="noise", index=["panel", "length"], values="width", aggregate_function="first")
    found: dict[str, bool] = {}
    if {"full", "published"} <= set(wide.columns):
        both = wide.filter(pl.col("full").is_not_null() & pl.col("published").is_not_null())
        found["the optimum is wider than SDP_A everywhere"] = bool((both["full"] >= both["published"] - 1e-6).all())
    if "all" in wide.columns:
        every = wide.filter(pl.col("all").is_not_null())
        found["noise from the prior is wider than uniform noise"] = bool(
            (every["all"] >= every["uniform"] - 1e-6).all()
        )
    wrong = table.filter(
        pl.col("panel").is_in(["d", "h"]) & ((pl.col("panel") == "h") | (pl.col("length") >= SMOOTH))
    )
    if len(wrong):
        worst = wrong.group_by("panel", "length", "noise").agg(pl.col("width").min())
        pair = worst.pivot(on="noise", index=["panel", "length"], values="width")
        found["robust noise is wider than SDP_A where the length-scale is wrong and the trace smooth"] = bool(
            (pair["robust"] >= pair["published"]).all()
        )
        found["a wrong length-scale costs robust noise no more than the optimum, where the trace is smooth"] = bool(
            (pair["robust"] >= pair["full"] - 1e-3).all()
        )
    return found


if __name__ == "__main__":
    command(main, __doc__)

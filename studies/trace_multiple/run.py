"""Panels c and g of figure 5.2: all basic secrets at once, Multiple Secrets beside noise from the prior.

Multiple Secrets is SDP_A for every point and then SDP_B, the least trace above all of them, by SCS with what it
violates repaired. Its trace over n is the budget c that uniform noise and noise from the prior get as well.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from studies.record import command, picture, record
from studies.trace_programs import published_sdp_b

from dovetail.trace.closed_form import from_prior, published_sdp_a, uniform
from dovetail.trace.descent import Budget
from dovetail.trace.kernels import RBF, Floats, Kernel, Periodic
from dovetail.trace.loss import condition
from dovetail.trace.posterior_loss import Posterior

MSE = 0.02
FULL = {"c": (1.0, 2.0, 4.0, 6.103, 8.0), "g": (0.5, 0.8, 1.0968, 1.3, 1.6)}
POINTS = {"c": 50, "g": 48}


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write trace_multiple.csv and its picture: 14 points and one length-scale as a toy."""
    cases = [(panel, length) for panel in FULL for length in (FULL[panel] if full else FULL[panel][2:3])]
    points = POINTS if full else dict.fromkeys(POINTS, 14)
    table = pl.DataFrame([row for panel, length in cases for row in rows(panel, length, points[panel])])
    table.write_csv(out / "trace_multiple.csv")
    picture(out / "trace_multiple.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=0, full=full)
    return table


def rows(panel: str, length: float, n: int) -> Iterator[dict[str, Any]]:
    """One row for each noise of a panel's length-scale, all of the budget that Multiple Secrets takes."""
    kernel: Kernel = RBF(length) if panel == "c" else Periodic(length, 24.0)
    prior = kernel.matrix(np.arange(float(n)))
    each = [published_sdp_a(condition(prior, [place]), Budget(n, MSE)).noise for place in range(n)]
    multiple = published_sdp_b(each, solver="SCS")
    budget = Budget(n, float(np.trace(multiple)) / n)
    noises = {"uniform": uniform(budget).noise, "multiple": multiple, "all": from_prior(prior, budget).noise}
    for name, noise in noises.items():
        mean, least = widths(prior, noise)
        yield {"panel": panel, "length": length, "noise": name, "c": budget.mse, "width": mean, "least": least}


def widths(prior: Floats, noise: Floats) -> tuple[float, float]:
    """2 sqrt of the mean and of the least posterior variance."""
    variances = np.diag(Posterior.of(prior, noise).covariance)
    return 2.0 * float(np.sqrt(variances.mean())), 2.0 * float(np.sqrt(variances.min()))


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """Mean widths over length-scales."""
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), sharey=True)
    for axis, panel in zip(axes, FULL, strict=True):
        for (name,), part in table.filter(pl.col("panel") == panel).group_by("noise", maintain_order=True):
            axis.plot(part["length"], part["width"], marker="o", label=name)
        axis.set_title(panel)
        axis.set_xlabel("length-scale")
    axes[0].set_ylabel("posterior width")
    axes[1].legend()
    return figure


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """The claims of the title."""
    wide = table.pivot(on="noise", index=["panel", "length"], values="width")
    least = table.pivot(on="noise", index=["panel", "length"], values="least")
    return {
        "noise from the prior is the widest on average": bool(
            ((wide["all"] >= wide["multiple"]) & (wide["all"] >= wide["uniform"])).all()
        ),
        "and at the worst point": bool(
            ((least["all"] >= least["multiple"]) & (least["all"] >= least["uniform"])).all()
        ),
        "Multiple Secrets is wider than uniform noise": bool((wide["multiple"] >= wide["uniform"] - 1e-6).all()),
    }


if __name__ == "__main__":
    command(main, __doc__)

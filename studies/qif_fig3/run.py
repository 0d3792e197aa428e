r"""Figure 3: the adversary who knows everybody but one, among 201 people with binary values.

`as_printed` is equation 10 with the maximum of each row, `column_maxima` the same with the maximum of each column,
both from the two rows of the target's channel written out.
"""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import binom
from studies.qif import ANY, expected, lines, save
from studies.record import command

from dovetail.core.channel import KRRChannel
from dovetail.leak.vulnerability import vulnerability

N = 201


def two_rows(p: float, ones: int) -> np.ndarray:
    """Law of the number of reports of the first value when the target holds it, and when not; (2, N + 1)."""
    likely, unlikely = (binom.pmf(np.arange(m + 1), m, share) for m, share in ((ones, p), (N - 1 - ones, 1.0 - p)))
    others = np.convolve(likely, unlikely)
    return np.stack([np.convolve(others, [1.0 - q, q]) for q in (p, 1.0 - p)])


def case(p: float, ones: int) -> dict[str, Any]:
    """One adversary, who knows `ones` people with the first value and the others with the second."""
    channel = KRRChannel.of(2, p if p < 1.0 else ANY)
    seen = vulnerability(channel, n=N, adversary="strong", known=(ones, N - 1 - ones))
    rows = two_rows(p, ones)
    return {
        "p": p,
        "known_percent": 100.0 * ones / (N - 1),
        "vulnerability": seen.shuffled if p == 1.0 else seen.randomized_shuffled,
        "error_bound": seen.error_bound,
        "column_maxima": 0.5 * float(rows.max(axis=0).sum()),
        "as_printed": 0.5 * float(rows.max(axis=1).sum()),
    }


def main(full: bool, out: Path) -> pl.DataFrame:
    """Every histogram of the 200 known people for six p in full, five of them for three p as a toy."""
    ps, step = ((1.0, 0.995, 0.9, 0.8, 0.7, 0.6), 1) if full else ((1.0, 0.995, 0.8), 50)
    table = pl.DataFrame([case(p, ones) for p in ps for ones in range(0, N, step)])
    return save(table, out, __file__, full=full, draw=drawn)


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What is printed, and what the claim adds."""
    spread = table.group_by("p").agg(pl.col("vulnerability").max() - pl.col("vulnerability").min())
    near, far = (spread.filter(part)["vulnerability"] for part in (pl.col("p") == 0.995, pl.col("p") <= 0.9))
    return {
        **expected(table, __file__),
        "shuffling alone hides nothing from who knows all others": bool(
            (table.filter(p=1.0)["vulnerability"] == 1.0).all()
        ),
        "equation 10 holds with the maximum of each column": bool(
            ((table["vulnerability"] - table["column_maxima"]).abs() <= table["error_bound"] + 1e-12).all()
        ),
        "with the maximum of each row it does not": bool(
            ((table["vulnerability"] - table["as_printed"]).abs() > 0.1).filter(table["p"] < 1.0).all()
        ),
        "the known values matter marginally up to p = .9": bool((far < 4e-4).all()),
        "near p = 1 they matter": bool((near > 0.03).all()),
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """The paper's picture, and what little the known values change up to p = .9."""
    figure, (axis, close) = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    missing = (pl.col("vulnerability").max().over("p") - pl.col("vulnerability")) * 1e4
    near = table.with_columns(missing=pl.when(pl.col("p") <= 0.9).then(missing))
    lines(axis, table, by="p", x="known_percent", y="vulnerability", label="p = {}")
    lines(close, near, by="p", x="known_percent", y="missing", linestyle="-", linewidth=0.8)
    for panel in (axis, close):
        panel.set_xlabel("known people with value a, %")
    axis.set(ylabel="vulnerability of the target", title=f"k = 2, n = {N}, {N - 1} known")
    close.set(ylabel="below the largest, in 1/10,000", title="p up to .9")
    axis.legend(fontsize="small", loc="upper right", bbox_to_anchor=(1.0, 0.95))
    return figure


if __name__ == "__main__":
    command(main, __doc__)

"""One number, four ways: V of k-ary randomized response and a uniform shuffle, uniform prior.

dense, numpy    the channel from all k^n datasets to histograms, evaluated in numpy
dense, libqif   the same channel, evaluated by libqif
expert, libqif  somebody who derived that the target's channel to histograms has k rows gives libqif that one
ours            dovetail.vulnerability

The channel is built from scratch each time, because somebody has to. A way is left out where its channel would exceed
a billion bytes, and libqif (`pip install qif`) where it is not installed. Seconds are processor seconds.
"""

import sys
from collections.abc import Callable
from functools import reduce
from itertools import combinations_with_replacement
from math import lgamma, log
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy
from studies.qif import save
from studies.record import command

from dovetail.cli.progress import each
from dovetail.core.channel import KRRChannel
from dovetail.core.errors import MissingExtraError
from dovetail.core.extras import require
from dovetail.leak.adversaries import top_t_leakage
from dovetail.leak.vulnerability import vulnerability

KEEP, MEMORY, SHORT = 0.75, 1e9, 0.2
FULL = [(2, 6), (2, 8), (2, 10), (2, 12), (2, 13), (2, 100), (2, 10**4), (2, 10**6), (2, 10**8),
        (3, 4), (3, 6), (3, 8), (3, 100), (3, 1000), (3, 10**5),
        (10, 4), (10, 8), (10, 100), (10, 10**4), (100, 10**6)]  # fmt: skip
TOY = [(2, 6), (2, 10), (2, 10**4), (3, 6), (3, 50), (10, 3), (100, 10**4)]

Matrix = NDArray[np.float64]
Situation = tuple[Matrix, Matrix, Matrix]  # gain (actions, secrets), prior (secrets,), channel (secrets, outputs)


def dense(k: int, n: int) -> Situation:
    """Everybody's values to everybody's histogram; who guesses, guesses the first person."""
    values = np.indices((k,) * n).reshape(n, -1).T
    codes = np.stack([(values == v).sum(axis=1) for v in range(k)], axis=1) @ (n + 1) ** np.arange(k)
    _, column = np.unique(codes, return_inverse=True)
    noise: Matrix = reduce(np.kron, [KRRChannel.of(k, KEEP).matrix()] * n)  # type: ignore[arg-type]
    channel = np.stack([noise[:, column == z].sum(axis=1) for z in range(column.max() + 1)], axis=1)
    gain = (values[:, 0] == np.arange(k)[:, None]).astype(float)
    return gain, np.full(k**n, float(k) ** -n), channel


def expert(k: int, n: int) -> Situation:
    """One value to everybody's histogram: Pr(z | value) = k Pr(z) Pr(value | z), the last = s + (p - s) z/n."""
    krr, z = KRRChannel.of(k, KEEP), histograms(k, n)
    law = np.exp(gammaln(n + 1) - gammaln(z + 1).sum(axis=1) - xlogy(n, k))
    return np.eye(k), np.full(k, 1.0 / k), k * law * (krr.s + krr.contrast * z.T / n)


def histograms(k: int, n: int) -> NDArray[np.int64]:
    """All of them, (histograms, k)."""
    if k == 2:
        return np.stack([np.arange(n + 1), n - np.arange(n + 1)], axis=1)
    if k == 3:
        first, second = np.triu_indices(n + 1)
        return np.stack([first, second - first, n - second], axis=1)
    return np.array([np.bincount(z, minlength=k) for z in combinations_with_replacement(range(k), n)])


def by_numpy(gain: Matrix, prior: Matrix, channel: Matrix) -> float:
    """Posterior vulnerability by its definition."""
    return float((gain @ (prior[:, None] * channel)).max(axis=0).sum())


def ours(k: int, n: int) -> float:
    """The same number with nothing to build."""
    top_t_leakage.cache_clear()  # no answer is remembered
    return vulnerability(KRRChannel.of(k, KEEP), n=n).randomized_shuffled


def ways() -> dict[str, tuple[Callable[[int, int], float], Callable[[int, int], float]]]:
    """For each way the function, and the logarithm of the bytes that it needs at once."""

    def squared(k: int, n: int) -> float:
        return log(8) + 2 * n * log(k)  # the noise, (k^n, k^n)

    def thin(k: int, n: int) -> float:
        return log(32 * k) + lgamma(n + k) - lgamma(k) - lgamma(n + 1)  # a few arrays (histograms, k)

    known: dict[str, tuple[Callable[[int, int], float], Callable[[int, int], float]]] = {
        "ours": (ours, lambda k, n: 0.0),
        "dense, numpy": (lambda k, n: by_numpy(*dense(k, n)), squared),
    }
    try:
        with np.printoptions():  # importing qif changes them for everybody
            posterior = require("qif", extra="bench").measure.g_vuln.posterior
    except MissingExtraError as missing:
        print(f"libqif is left out. {missing}", file=sys.stderr)
        return known
    known["dense, libqif"] = (lambda k, n: float(posterior(*dense(k, n))), squared)
    known["expert, libqif"] = (lambda k, n: float(posterior(*expert(k, n))), thin)
    return known


def timed(way: Callable[[int, int], float], k: int, n: int) -> tuple[float, float]:
    """The number, and the seconds of the best of five calls, of one if that is long."""
    times: list[float] = []
    while len(times) < 5 and (not times or times[-1] < SHORT):
        start = process_time()
        value = way(k, n)
        times.append(process_time() - start)
    return value, min(times)


def main(full: bool, out: Path) -> pl.DataFrame:
    """20 sizes up to 1e8 people in full, 7 as a toy; null where a channel does not fit."""
    ours(3, 10)  # compiles, or reads what was compiled
    rows = []
    for k, n in each(FULL if full else TOY, "ask every library"):
        truth = ours(k, n)
        for name, (way, size) in ways().items():
            value, seconds = timed(way, k, n) if size(k, n) <= log(MEMORY) else (None, None)
            off = None if value is None else abs(value - truth)
            rows.append({"k": k, "n": n, "way": name, "seconds": seconds, "off": off})
    return save(pl.DataFrame(rows, infer_schema_length=None), out, __file__, full=full, draw=drawn)


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What the claim says, seen in this table; the row of ours is there with or without libqif."""
    wide = table.pivot(on="way", index=["k", "n"], values="seconds")
    channels = [name for name in wide.columns if name not in ("k", "n", "ours")]
    most = wide.filter(pl.col("dense, numpy").is_not_null())
    return {
        "wherever a channel fits all ways give the same number": bool((table["off"].drop_nulls() < 1e-9).all()),
        "ours answers every size": wide["ours"].null_count() == 0,
        "some sizes fit no channel": bool(
            wide.select(pl.all_horizontal(pl.col(channels).is_null())).to_series().any()
        ),
        "where the dense channel is largest ours is at least ten times faster": bool(
            (10.0 * most["ours"] < most["dense, numpy"])
            .filter(most["dense, numpy"] == most["dense, numpy"].max())
            .all()
        ),
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """Seconds against n, one panel for k = 2 and one for k = 3; a line ends where its channel no longer fits."""
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.2), sharey=True)
    for axis, k in zip(axes, (2, 3), strict=True):
        rows = table.filter(pl.col("k") == k, pl.col("seconds").is_not_null())
        for number, way in enumerate(rows["way"].unique(maintain_order=True)):
            line = rows.filter(way=way)
            axis.plot(line["n"], line["seconds"], label=way, color=f"C{number}", marker="o", markersize=3)
        axis.set(xscale="log", yscale="log", xlabel="people n", title=f"k = {k}")
    axes[0].set_ylabel("processor seconds")
    axes[0].legend(fontsize="small")
    return figure


if __name__ == "__main__":
    command(main, __doc__)

"""How far distributions and quantiles are off behind dummies, beside central noise, k-ary reports and local noise.

House values of California in 1,024 even bins, drawn again for n people. Errors are against exactly these people:
`w1`, the mean distance between the curves, in parts of the range; `quantile`, the mean error of the five quantiles 5,
25, 50, 75 and 95 %; `width` and `covered`, of their 95 % intervals. `sampling` is what drawing n people costs.
"""

import sys
from collections.abc import Callable
from functools import cache
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import ndtri
from studies.record import command, picture, record

from dovetail.account.dummies import dummies_for_rounds
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import DataError
from dovetail.core.noise import Noise, People
from dovetail.datasets.people import california_housing
from dovetail.estimate.distribution import Tree, monotone, quantiles
from dovetail.job.question_plan import plan_question
from dovetail.noise.local import Local
from dovetail.noise.shuffler import ShufflerNoise
from dovetail.question.distribution import Distribution
from dovetail.randomize.krr import KRR
from dovetail.randomize.sampling.open_reports import OpenAnswers

SEED, DELTA, BINS = 43, 1e-6, 1024
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
Values = NDArray[np.float64]  # (n,), parts of the range
Drawn = Callable[[Values, Entropy], tuple[Values, Values, Values | None]]  # places, curve and intervals of quantiles


@cache
def _bins() -> NDArray[np.int64]:
    try:
        found = california_housing()["median_house_value"].to_numpy()
    except DataError as missing:  # a toy takes made-up ones of about the same shape
        print(
            f"House values are not at hand: these are made up, and no figure is of them. {missing}", file=sys.stderr
        )
        found = np.clip(np.exp(0.57 * ndtri((np.arange(20_000) + 0.5) / 20_000) + 12.08), 15_000, 500_001)
    part = (found - found.min()) / (found.max() - found.min())
    return np.minimum((part * BINS).astype(np.int64), BINS - 1)


def house_values(n: int, rng: Entropy) -> Values:
    """n people's house values in even bins of the range, each in the middle of its bin."""
    bins = _bins()
    return np.asarray((bins[rng.below(bins.size, n)] + 0.5) / BINS)


def asked(bins: int, levels: int, noise: Noise) -> Drawn:
    """What `run` does."""
    question = Distribution(0.0, 1.0, bins=bins, levels=levels, quantiles=SHARES)

    def draw(values: Values, rng: Entropy) -> tuple[Values, Values, Values | None]:
        people = People(values.size, pl.DataFrame())
        batch = noise.complete(noise.randomize(question.answer(values, rng), people, rng), rng)
        tally = noise.tally(batch)
        intervals = np.array(question.learned(noise, tally, people).interval(0.95))
        return question.edges, _whole(question.function(noise, tally, people)), intervals

    return draw


def dummies(epsilon: float) -> Drawn:
    """Two levels of 32 nodes each, behind dummies of the shuffler."""
    k = Tree.of(BINS, levels=2).size
    made = dummies_for_rounds(k=k, epsilon=epsilon, delta=DELTA, rounds=2)
    return asked(BINS, 2, ShufflerNoise(made, OpenAnswers(k), 2))


def reports(epsilon: float, n: int) -> Drawn:
    """k-ary randomized response, shuffled: nobody is trusted with noise."""
    bins = 64 if n < 100_000 else 128
    data = {"lower": 0.0, "upper": 1.0}
    plan = plan_question("distribution", settings={"bins": bins}, data=data, n=n, epsilon=epsilon, delta=DELTA)
    return asked(bins, 1, Local(KRR(bins, plan.noise.local.epsilon)))


def central(epsilon: float) -> Drawn:
    """Five levels of four with Laplace noise of one who reads everything: replacing a person moves two of each."""
    tree, scale = Tree((4,) * 5), 2 * 5 / epsilon

    def draw(values: Values, rng: Entropy) -> tuple[Values, Values, Values | None]:
        bins = np.minimum((values * BINS).astype(np.int64), BINS - 1)
        counts = np.bincount(tree.symbols(bins).ravel(), minlength=tree.size).astype(float)
        uniform = (rng.words(2 * tree.size) >> np.uint64(11)).astype(float).reshape(2, -1) * 2.0**-53
        noise = scale * (np.log1p(-uniform[0]) - np.log1p(-uniform[1]))
        curve = np.cumsum(tree.fitted(counts + noise, values.size))[:-1] / values.size
        return np.linspace(0.0, 1.0, BINS + 1), _whole(curve), None

    return draw


def square_wave(epsilon: float) -> Drawn:
    """Local noise alone: square wave with smoothed expectation maximization (Li et al. 2020, SIGMOD)."""
    e, cells = exp(epsilon), 256
    half = (epsilon * e - e + 1.0) / (2.0 * e * (e - 1.0 - epsilon))
    far = 1.0 / (2.0 * half * e + 1.0)
    ends, middles = np.linspace(-half, 1.0 + half, cells + 1), (np.arange(cells) + 0.5) / cells
    near = np.minimum(ends[1:, None], middles + half) - np.maximum(ends[:-1, None], middles - half)
    channel = far * (ends[1] - ends[0]) + far * (e - 1.0) * np.maximum(near, 0.0)  # (outputs, cells)

    def draw(values: Values, rng: Entropy) -> tuple[Values, Values, Values | None]:
        uniform = (rng.words(2 * values.size) >> np.uint64(11)).astype(float).reshape(2, -1) * 2.0**-53
        close = uniform[0] < 2.0 * half * far * e
        spread = uniform[1]  # outside: what is left of both sides, end to end
        out = np.where(spread < values, spread - half, spread + half)
        sent = np.where(close, values + half * (2.0 * spread - 1.0), out)
        counts = np.histogram(sent, ends)[0]
        shares = np.full(cells, 1.0 / cells)
        for _ in range(300):
            shares = shares * (channel.T @ (counts / (channel @ shares)))
            shares = np.convolve(np.pad(shares, 1, mode="edge"), [0.25, 0.5, 0.25], mode="valid")
            shares /= shares.sum()
        return np.linspace(0.0, 1.0, cells + 1), _whole(np.cumsum(shares)[:-1]), None

    return draw


def _whole(curve: Values) -> Values:
    return np.concatenate([[0.0], monotone(curve), [1.0]])


def errors(draw: Drawn, n: int, rng: Entropy) -> dict[str, float]:
    """Of one collection, against the people who took part."""
    values = house_values(n, rng)
    places, curve, intervals = draw(values, rng)
    fine = np.arange(1, BINS) / BINS
    true = np.searchsorted(np.sort(values), fine, side="right") / n
    found = {"w1": float(np.abs(np.interp(fine, places, curve) - true).mean())}
    exact = np.quantile(values, SHARES, method="inverted_cdf")
    told = quantiles(curve[1:-1], places, np.array(SHARES))
    found["quantile"] = float(np.abs(told - exact).mean())
    if intervals is not None:
        found["width"] = float((intervals[1] - intervals[0]).mean())
        found["covered"] = float(((intervals[0] <= exact) & (exact <= intervals[1])).mean())
    return found


def sampling(n: int, rng: Entropy) -> float:
    """W1 of n people who are drawn, from all."""
    fine = np.arange(1, BINS) / BINS
    curves = [np.searchsorted(np.sort(house_values(size, rng)), fine, side="right") / size for size in (n, 2_000_000)]
    return float(np.abs(curves[0] - curves[1]).mean())


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write distribution.csv: 10,000 and 100,000 people at two epsilons in full, 10,000 at one as a toy."""
    if full:
        california_housing()  # in full no made-up houses
    rng, rows, runs = simulation(SEED), [], 20 if full else 8
    for n in (10_000, 100_000) if full else (10_000,):
        for epsilon in (0.5, 1.0) if full else (1.0,):
            protocols = {
                "tree of dummies": dummies(epsilon), "central Laplace tree": central(epsilon),
                "shuffled k-RR": reports(epsilon, n), "square wave, local": square_wave(epsilon),
            }  # fmt: skip
            sampled = float(np.mean([sampling(n, rng) for _ in range(3)]))
            for name, draw in protocols.items():
                found = [errors(draw, n, rng) for _ in range(runs)]
                mean = {what: float(np.mean([one[what] for one in found])) for what in found[0]}
                rows.append({"protocol": name, "n": n, "epsilon": epsilon, **mean, "sampling": sampled, "runs": runs})
    table = pl.DataFrame(rows)
    table.write_csv(out / "distribution.csv")
    picture(out / "distribution.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=SEED, full=full)
    return table


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """How far curves are off, in parts of the range."""
    figure, axis = pyplot.subplots(figsize=(7, 4))
    for (name,), rows in table.group_by(["protocol"], maintain_order=True):
        cells = [f"{n:,}, {epsilon:g}" for n, epsilon in rows.select("n", "epsilon").iter_rows()]
        axis.plot(cells, rows["w1"], "o-", label=name)
    axis.plot(cells, rows["sampling"], "k:", label="drawing the people")
    axis.set(yscale="log", xlabel="people, epsilon", ylabel="W1, in parts of the range")
    axis.legend()
    return figure


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What is claimed, seen in this table."""
    w1 = {name: table.filter(pl.col("protocol") == name).sort("n", "epsilon")["w1"] for name in table["protocol"]}
    tree = table.filter(pl.col("protocol") == "tree of dummies")
    known = table.filter(pl.col("covered").is_not_null())
    error = np.sqrt(0.95 * 0.05 / int(known["runs"].to_numpy().min()))  # the five of a run counted as one
    large = tree.filter((pl.col("n") == 100_000) & (pl.col("epsilon") == 1.0))["w1"]
    quiet = tree.filter((pl.col("epsilon") == 1.0) | (pl.col("n") >= 100_000))
    return {
        "a tree of dummies is no further off than a central Laplace tree": bool(
            (w1["tree of dummies"] < 1.2 * w1["central Laplace tree"]).all()
        ),
        "at 100,000 people and epsilon 1 it is off by 1.6e-4 of the range at most": bool((large <= 1.6e-4).all()),
        "at epsilon 1, or for 100,000 people, noise is below what sampling costs": bool(
            (quiet["w1"] < quiet["sampling"]).all()
        ),
        "reports without dummies are less accurate, local noise far less": bool(
            (w1["shuffled k-RR"] > w1["tree of dummies"]).all()
            and (w1["square wave, local"] > 2.5 * w1["shuffled k-RR"]).all()
        ),
        "95 % intervals cover": bool((known["covered"] >= 0.95 - 3.0 * error).all()),
    }


if __name__ == "__main__":
    command(main, __doc__)

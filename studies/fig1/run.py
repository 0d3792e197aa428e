"""What a map of reports tells, unshuffled, after order-private shuffles at two scales, and after a uniform one."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from studies.correlation_attack import Correlation, learn_smoothness
from studies.iclr import Points, published, settings, theta_n
from studies.iclr_worlds import coarsen_labels
from studies.record import command, picture, record

from dovetail.cli.progress import each
from dovetail.core.entropy import simulation
from dovetail.core.stages import Shuffler
from dovetail.datasets.nested_crescents import nested_crescents
from dovetail.estimate.local import CalibratedTrees, DebiasedEstimator, GroupShares, local_error
from dovetail.randomize.krr import KRR
from dovetail.shuffle.best import best_shuffler
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.uniform import Uniform

WAYS = (8, 4, 2)
SHOWN = ("labels", "LDP", "best, r1", "best, r2", "uniform")
# light and dark tints of the blue, bluish green, vermilion and orange of Okabe and Ito: safe for the colour-blind
PAINT = ("#A6CFEE", "#0A4C8B", "#9FE0CF", "#00705A", "#F7B59A", "#B33C00", "#F7E08A", "#B58900")


def shufflers(points: Points, given: dict[str, Any]) -> dict[str, Shuffler]:
    """By name, from the least to the most that is hidden."""
    result: dict[str, Shuffler] = {"LDP": Identity(len(points))}
    for name, radius in given["radii"].items():
        groups = Groups.within_radius(
            points, radius * (given["dense"] / len(points)) ** 0.5
        )  # groups keep their size
        result[f"published, {name}"] = published(groups, alpha=given["alpha"])
        result[f"best, {name}"] = best_shuffler(groups, alpha=given["alpha"], points=points)
    return {**result, "uniform": Uniform(len(points))}


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write fig1.csv and .png: 4,000 points in full, 800 as a toy."""
    given = settings(__file__, full=full)
    n, rng = given["people"], simulation(given["seed"])
    people = nested_crescents(n, rng=rng)
    points, labels = people.select("x", "y").to_numpy(), people["label"].to_numpy()
    krr = KRR(k=8, epsilon=given["epsilon"])
    reports = krr.randomize(labels, rng)
    truth = GroupShares(Groups.within_radius(points, given["near"]), 8).shares(labels, rng)
    trees = DebiasedEstimator(CalibratedTrees(points, 8), krr.channel())
    rows, maps = [], dict[str, Any](labels=(labels, None))
    for name, shuffler in each(shufflers(points, given).items(), "shuffle and attack"):
        batch = shuffler.shuffle(reports, rng)
        smooth = learn_smoothness(krr, points, batch, rng=rng)
        guesses = Correlation.fit(krr, points, targets=np.arange(n), smoothness=smooth).guess(batch, rng)
        right = {f"attack_{ways}": agreement(guesses, labels, ways) for ways in WAYS}
        error = local_error(trees.shares(batch, rng), truth)
        about = {"shuffler": name, "mechanism": shuffler.name, "n": n, "theta_n": theta_n(shuffler)}
        rows.append({**about, **right, "lambda": error})
        maps[name] = (batch, guesses)
    table = pl.DataFrame(rows)
    table.write_csv(out / "fig1.csv")
    picture(out / "fig1.png", lambda pyplot: drawn(pyplot, points, maps, table))
    record(out, seed=given["seed"], full=full)
    return table


def agreement(guesses: Any, labels: Any, ways: int) -> float:
    """Share of people whose label the attacker guesses at this scale."""
    return float((coarsen_labels(guesses, ways=ways) == coarsen_labels(labels, ways=ways)).mean())


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What is claimed, seen in this table."""
    rows = {row["shuffler"]: row for row in table.iter_rows(named=True)}
    ldp, small, large, none = (rows[name] for name in SHOWN[1:])
    return {
        "without a shuffle nearly everything is revealed": ldp["attack_8"] > 0.9,
        "after a uniform shuffle nothing is": none["attack_8"] < 0.25 and none["lambda"] > 0.9,
        "the small radius hides halves a little": large["attack_8"] < small["attack_8"] < ldp["attack_8"] - 0.03,
        "the small radius leaves more of the crescents than the large one": small["attack_4"]
        > large["attack_4"] + 0.1,
        "the large radius hides crescents and leaves clusters": large["attack_4"] < 0.7 < large["attack_2"],
        "as printed, the mechanism leaves hardly more than a uniform shuffle": all(
            rows[f"published, {name}"]["lambda"] > 0.9 for name in ("r1", "r2")
        ),
    }


def drawn(pyplot: Any, points: Points, maps: dict[str, Any], table: pl.DataFrame) -> Any:
    """Left: what is released at each place. Right: what Gaussian-process classification makes of it."""
    figure, axes = pyplot.subplots(len(SHOWN), 2, figsize=(12, 9.5), sharex=True, sharey=True)
    axes[0, 1].text(0.5, 0.5, "left: released\nright: attack by a Gaussian process", transform=axes[0, 1].transAxes,
                    ha="center", va="center", fontsize="large")  # fmt: skip
    phases = {
        name: rf", $\theta n$ = {theta:.2g}"
        for name, theta in table.select("shuffler", "theta_n").iter_rows()
        if theta
    }
    for row, name in zip(axes, SHOWN, strict=True):
        row[0].set_title(name + phases.get(name, ""), loc="left")
        for axis, codes in zip(row, maps[name], strict=True):
            axis.set(aspect="equal")
            axis.set_axis_off()
            if codes is not None:
                axis.scatter(*points.T, s=6, c=np.array(PAINT)[codes], linewidths=0)
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    command(main, __doc__)

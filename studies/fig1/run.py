"""What a map of reports tells, unshuffled, after order-private shuffles at two scales, and after a uniform one."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from studies.iclr import published
from studies.record import command, picture, record

from dovetail.attack.correlation import Correlation, learn_smoothness
from dovetail.core.entropy import simulation
from dovetail.core.stages import Shuffler
from dovetail.datasets.syn import coarse, nested_crescents
from dovetail.estimate.local import CalibratedTrees, Debiased, GroupShares, local_error
from dovetail.randomize.krr import KRR
from dovetail.shuffle.best import best_shuffler
from dovetail.shuffle.groups import Groups
from dovetail.shuffle.uniform import Identity, Uniform

SEED = 1
EPSILON, ALPHA = 2.55, 1.0  # the figure's
PEOPLE = 4000
RADII = {"r1": 0.08, "r2": 0.3}  # for this many people, in radii of a crescent
NEAR = 0.2  # the truth at a place is the share of labels this near
WAYS = (8, 4, 2)
SHOWN = ("labels", "LDP", "best, r1", "best, r2", "uniform")
# light and dark tints of the blue, bluish green, vermilion and orange of Okabe and Ito: safe for the colour-blind
PAINT = ("#A6CFEE", "#0A4C8B", "#9FE0CF", "#00705A", "#F7B59A", "#B33C00", "#F7E08A", "#B58900")


def shufflers(points: Any) -> dict[str, Shuffler]:
    """By name, from the least to the most that is hidden."""
    result: dict[str, Shuffler] = {"LDP": Identity(len(points))}
    for name, radius in RADII.items():
        groups = Groups.within_radius(points, radius * (PEOPLE / len(points)) ** 0.5)  # groups keep their size
        result[f"published, {name}"] = published(groups, alpha=ALPHA)
        result[f"best, {name}"] = best_shuffler(groups, alpha=ALPHA, points=points)
    return {**result, "uniform": Uniform(len(points))}


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write fig1.csv and .png: 4,000 points in full, 800 as a toy."""
    n, rng = (PEOPLE if full else 800), simulation(SEED)
    people = nested_crescents(n, rng=rng)
    points, labels = people.select("x", "y").to_numpy(), people["label"].to_numpy()
    krr = KRR(k=8, epsilon=EPSILON)
    reports = krr.randomize(labels, rng)
    truth = GroupShares(Groups.within_radius(points, NEAR), 8).shares(labels, rng)
    trees = Debiased(CalibratedTrees(points, 8), krr.channel())
    rows, maps = [], dict[str, Any](labels=(labels, None))
    for name, shuffler in shufflers(points).items():
        batch = shuffler.shuffle(reports, rng)
        smooth = learn_smoothness(krr, points, batch, rng=rng)
        guesses = Correlation.fit(krr, points, targets=np.arange(n), smoothness=smooth).guess(batch, rng)
        right = {f"attack_{ways}": agreement(guesses, labels, ways) for ways in WAYS}
        error = local_error(trees.shares(batch, rng), truth)
        rows.append({"shuffler": name, "mechanism": shuffler.name, "n": n, **right, "lambda": error})
        maps[name] = (batch, guesses)
    table = pl.DataFrame(rows)
    table.write_csv(out / "fig1.csv")
    picture(out / "fig1.png", lambda pyplot: drawn(pyplot, points, maps))
    record(out, seed=SEED, full=full)
    return table


def agreement(guesses: Any, labels: Any, ways: int) -> float:
    """Share of people whose label the attacker guesses at this scale."""
    return float((coarse(guesses, ways=ways) == coarse(labels, ways=ways)).mean())


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
            rows[f"published, {name}"]["lambda"] > 0.9 for name in RADII
        ),
    }


def drawn(pyplot: Any, points: Any, maps: dict[str, Any]) -> Any:
    """Above: what is released at each place. Below: what Gaussian-process classification makes of it."""
    figure, axes = pyplot.subplots(2, len(SHOWN), figsize=(12, 2.4), sharex=True, sharey=True)
    for column, name in zip(axes.T, SHOWN, strict=True):
        for axis, codes in zip(column, maps[name], strict=True):
            axis.set(aspect="equal")
            axis.set_axis_off()
            if codes is not None:
                axis.scatter(*points.T, s=1, c=np.array(PAINT)[codes])
        column[0].set_title(name)
    axes[1, 0].text(0.5, 0.5, "attack:\nGaussian process", transform=axes[1, 0].transAxes, ha="center")
    return figure


if __name__ == "__main__":
    command(main, __doc__)

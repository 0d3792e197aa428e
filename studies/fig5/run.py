"""Figure 5: the scale at which labels can be told apart, against the size of groups, on nested crescents."""

from pathlib import Path
from typing import Any

import polars as pl
from studies.iclr import Shares, World, derived, experiment, settings
from studies.iclr_claims import between, compared, ends
from studies.iclr_draw import CURVES, curves, finished, row_of
from studies.iclr_worlds import coarsen_labels, syn
from studies.record import command, picture, record

from dovetail.core.entropy import Entropy
from dovetail.datasets.nested_crescents import nested_crescents
from dovetail.estimate.local import CalibratedTrees, hit_rate

WAYS = (8, 4, 2)


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write fig5.csv and .png, and cells.jsonl, from which an interrupted run goes on."""
    given = settings(__file__, full=full)
    n, rng = given["people"], derived(given["seed"], "syn", "world")
    people, strangers = nested_crescents(n, rng=rng), nested_crescents(n, rng=rng)
    places, test = (table.select("x", "y").to_numpy() for table in (people, strangers))
    labels = strangers["label"].to_numpy()

    def world() -> World:
        return syn(people, given, rng, test=test)

    def accuracies(laws: Shares, batch: Any, rng: Entropy) -> dict[str, Any]:
        """Trees of the reports as they are, at the places of people who did not take part: three models."""
        found = {"accuracy_8": hit_rate(laws[n:], labels)}
        for ways in WAYS[1:]:
            trees = CalibratedTrees(places, ways, at=test)
            found[f"accuracy_{ways}"] = hit_rate(
                trees.shares(coarsen_labels(batch, ways=ways), rng), coarsen_labels(labels, ways=ways)
            )
        return found

    sweep = [(given["alpha"], float(size)) for size in given["syn"]["sizes"]]
    table = experiment({"syn": world}, {"syn": sweep}, given, out=out, also=accuracies)
    table.write_csv(out / "fig5.csv")
    picture(out / "fig5.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=given["seed"], full=full)
    return table


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """Above the three accuracies, below rho, lambda and theta n."""
    figure, axes = pyplot.subplots(2, 3, figsize=(13, 7.5))
    for axis, ways in zip(axes[0], WAYS, strict=True):
        curves(axis, table, "group_size", f"accuracy_{ways}")
        axis.set(title=f"{ways}-way", ylabel="accuracy", ylim=(0.0, 1.03))
    row_of(axes[1], table, "syn", "")
    return finished(figure, axes[0, 0])


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What is claimed, seen in this table."""
    held = ends(table, "syn") | compared(table, "syn") | between(table, "syn")
    lost = {mechanism: lost_at(table.filter(mechanism=mechanism)) for mechanism in CURVES}
    return {
        **held,
        "syn: the best mechanism loses the finer labels before the coarser ones": lost["best"]
        == sorted(lost["best"]),
        "syn: it keeps every scale at least as long as the published one": all(
            ours >= theirs for ours, theirs in zip(lost["best"], lost["published"], strict=True)
        ),
    }


def lost_at(rows: pl.DataFrame) -> list[float]:
    """The size of groups from which on accuracy is nearer to chance than to 1, for 8, 4 and 2 ways."""
    sizes = [rows.filter(pl.col(f"accuracy_{ways}") < (1.0 + 1.0 / ways) / 2.0)["group_size"].min() for ways in WAYS]
    return [float("inf") if size is None else float(str(size)) for size in sizes]


if __name__ == "__main__":
    command(main, __doc__)

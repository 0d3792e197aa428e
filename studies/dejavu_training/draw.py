"""Figures 1.3 to 1.6 of the dissertation in the shape that a small training gives."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from studies.dejavu_training.images import CORNER, SIDE
from studies.dejavu_training.pairs import Pair, data, place

from dovetail.memorize.dejavu.pairs import read_pair

GROUPS = ("correlated", "memorized", "misrepresented", "unassociated")
NEAREST = 4


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """Four panels: accuracy by confidence, score over visits with the probe's gap, partition over visits, losses."""
    figure, panels = pyplot.subplots(2, 2, figsize=(11, 8))
    projector = table.filter(layer="projector")
    least = projector["images"].min()
    main = projector.filter(loss="vicreg", images=least)
    by_confidence(panels[0, 0], projector.filter(images=least))
    over_visits(panels[0, 1], projector, table.filter(layer="backbone", loss="vicreg", images=least))
    partition(panels[1, 0], main)
    losses(panels[1, 1], table.filter(images=least, visits=table["visits"].max()))
    figure.tight_layout()
    return figure


def by_confidence(axis: Any, rows: pl.DataFrame) -> None:
    """Figure 1.3: each model on its own most confident images."""
    last = rows.filter(visits=rows["visits"].max())
    for (loss,), part in last.filter(pl.col("loss").is_in(["vicreg", "supervised"])).group_by(
        "loss", maintain_order=True
    ):
        shares = [10, 20, 50, 100]
        colour = {"vicreg": "tab:red", "supervised": "0.4"}[str(loss)]
        for who, style in (("target", "-"), ("reference", "--")):
            columns = [f"{who}_{share}%" if share < 100 else who for share in shares]
            axis.plot(shares, [part[column].mean() for column in columns], style, color=colour, marker="o", ms=3,
                      label=f"{loss}, {who} model")  # fmt: skip
    axis.axhline(0.1, color="0.7", lw=0.8)
    axis.set(title="1.3: accuracy on the most confident", xlabel="% most confident", ylabel="accuracy", ylim=(0, 0.9))
    axis.legend(fontsize="x-small")


def over_visits(axis: Any, rows: pl.DataFrame, backbone: pl.DataFrame) -> None:
    """Figure 1.4: gap and score over visits, and the gap of a linear probe, which does not follow."""
    for (n,), part in rows.filter(loss="vicreg").group_by("images", maintain_order=True):
        mean = part.group_by("visits", maintain_order=True).agg(
            (pl.col("target") - pl.col("reference")).mean().alias("gap"), pl.col("score_20").mean()
        )
        style = "-" if n == rows["images"].min() else "--"
        axis.plot(
            mean["visits"],
            mean["score_20"],
            style,
            color="tab:red",
            marker="o",
            ms=3,
            label=f"score(20 %), {n} images",
        )
        axis.plot(mean["visits"], mean["gap"], style, color="tab:orange", marker="o", ms=3, label=f"gap, {n} images")
    mean = backbone.group_by("visits", maintain_order=True).agg(
        (pl.col("probe_train") - pl.col("probe_public")).mean().alias("probe")
    )
    axis.plot(
        mean["visits"], mean["probe"], color="tab:blue", marker="s", ms=3, label="linear probe, train less public"
    )
    axis.axhline(0.0, color="0.7", lw=0.8)
    axis.set(title="1.4: over training, projector", xlabel="visits of each image", ylabel="difference of accuracies")
    axis.legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(0.0, 0.91))


def partition(axis: Any, rows: pl.DataFrame) -> None:
    """Figure 1.5: shares of the attacked images over visits."""
    mean = rows.group_by("visits", maintain_order=True).agg(*(pl.col(name).sum() for name in (*GROUPS, "attacked")))
    floor = np.zeros(mean.height)
    colours = {"correlated": "tab:blue", "memorized": "tab:red", "misrepresented": "0.6"}
    for name, colour in colours.items():
        share = (mean[name] / mean["attacked"]).to_numpy()
        axis.bar([str(one) for one in mean["visits"]], share, bottom=floor, color=colour, label=name)
        floor += share
    axis.set(
        title="1.5: who guesses them (the rest: nobody)", xlabel="visits of each image", ylabel="share of images"
    )
    axis.legend(fontsize="x-small", loc="upper left")


def losses(axis: Any, rows: pl.DataFrame) -> None:
    """The shape of table 1.9b and figure 1.8: gap by loss and layer, each pair a dot."""
    names = rows["loss"].unique(maintain_order=True).to_list()
    for shift, layer in ((-0.15, "projector"), (0.15, "backbone")):
        for spot, loss in enumerate(names):
            gaps = rows.filter(loss=loss, layer=layer).select(pl.col("target") - pl.col("reference")).to_series()
            colour = "tab:orange" if layer == "projector" else "tab:blue"
            axis.bar(
                spot + shift, gaps.mean(), width=0.28, color=colour, alpha=0.6, label=layer if not spot else None
            )
            axis.plot([spot + shift] * len(gaps), gaps, "k.", ms=5)
    axis.axhline(0.0, color="0.7", lw=0.8)
    axis.set(title="gap by loss and layer (dots: pairs)", xticks=range(len(names)), xticklabels=names)
    axis.legend(fontsize="x-small")


def examples(pyplot: Any, pair: Pair, recipe: dict[str, Any], folder: Path) -> Any:
    """Figure 1.6 without reconstructions: images with their crop, and the nearest public images by both models."""
    file = place(folder, pair, recipe["visits"][-1], "projector")
    found, shown = read_pair(file), np.load(file)
    images, _ = data(pair, recipe["public"])
    target, reference = (found.infer("a", model, neighbours=recipe["neighbours"]) for model in "ab")
    both = np.minimum(target.confidence, reference.confidence)
    apart = target.confidence - reference.confidence
    wanted = {
        "correlated": np.flatnonzero((target.correct == 1) & (reference.correct == 1))[:, None],
        "memorized": np.flatnonzero((target.correct == 1) & (reference.correct == 0))[:, None],
    }
    chosen = [(name, int(one)) for name, rank in (("correlated", both), ("memorized", apart))
              for one in sorted(wanted[name][:, 0], key=lambda place, rank=rank: -rank[place])[:3]]  # fmt: skip
    figure, panels = pyplot.subplots(
        max(1, len(chosen)), 1 + 2 * NEAREST, figsize=(11, 1.3 * max(1, len(chosen))), squeeze=False
    )
    low, high = images["a"].min(), images["a"].max()
    for row, (name, one) in zip(panels, chosen, strict=False):
        row[0].set_ylabel(name, fontsize="small")
        row[0].add_patch(
            pyplot.Rectangle((-0.5, SIDE - CORNER - 0.5), CORNER, CORNER, fill=False, color="magenta", lw=2)
        )
        pictures = [images["a"][one]]
        for model in "ab":
            far = np.linalg.norm(shown[f"public_by_model_{model}"] - shown[f"a_by_model_{model}"][one], axis=1)
            pictures += [images["public"][near] for near in np.argsort(far)[:NEAREST]]
        for axis, image in zip(row, pictures, strict=True):
            axis.imshow(np.clip((image.transpose(1, 2, 0) - low) / (high - low), 0, 1))
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set_visible(False)
    for column, title in ((0, "image, crop"), (1, "nearest public: its own model"), (1 + NEAREST, "the other model")):
        panels[0, column].set_title(title, fontsize="small", loc="left")
    figure.tight_layout()
    return figure

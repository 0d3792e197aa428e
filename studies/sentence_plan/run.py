"""Table 3.1: how many deep candidates it takes; and that the printed maximum finds none of them."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from studies.record import command, picture, record

from dovetail.text.candidates import Candidates
from dovetail.text.deep_candidate import DeepCandidate
from dovetail.text.encoders import Rows, integer_row, stack
from dovetail.text.plan import drawn_probability, fewest_good, good_probability

SEED = 1
PRINTED = ((3.0, 55, 5), (6.0, 25, 3), (10.0, 5, 2), (23.0, 1, 1))  # epsilon, b, depth
M, SURE = 5000, 0.95
EPSILONS = (1.0, 5.0, 10.0, 20.0)


def main(full: bool, out: Path) -> pl.DataFrame:
    """The table, and the share of good candidates that is selected by the minimum and by the printed maximum."""
    table = pl.concat([planned(), deepest(5000 if full else 500, 100 if full else 30)], how="diagonal")
    table.write_csv(out / "sentence_plan.csv")
    picture(out / "sentence_plan.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=SEED, full=full)
    return table


def planned() -> pl.DataFrame:
    """Rows of Table 3.1, recomputed: exponential as printed, permute-and-flip, and by whole numbers."""
    rows = []
    for epsilon, b, depth in PRINTED:
        given: dict[str, Any] = {"epsilon": epsilon, "candidates": M, "lead": float(depth)}
        exponential = given | {"selection": "exponential"}
        rows.append(
            {
                "part": "table 3.1", "epsilon": epsilon, "depth": depth, "printed_b": b,
                "probability": good_probability(good=b, **exponential),
                "drawn_probability": drawn_probability(good=b, **exponential),
                "least_b": fewest_good(sure=SURE, law=good_probability, **exponential),
                "least_b_permute_and_flip": fewest_good(sure=SURE, law=good_probability, **given),
            }
        )  # fmt: skip
    return pl.DataFrame(rows)


def deepest(m: int, projections: int) -> pl.DataFrame:
    """A fiftieth of the candidates lie amid ten sentences in 64 dimensions, the others aside."""
    public, sentences, good = scene(m, projections)
    rows = []
    for name in ("depth", "published"):
        for epsilon in EPSILONS:
            law = DeepCandidate.of(public, epsilon=epsilon, utility=name, selection="exponential").probabilities(
                sentences
            )
            rows.append({"part": "good candidates", "utility": name, "epsilon": epsilon,
                         "probability": float(law[:good].sum()), "uniform": good / m})  # fmt: skip
    return pl.DataFrame(rows)


def scene(m: int, projections: int) -> tuple[Candidates, Rows, int]:
    """Candidates with the good ones first, ten sentences around these, and how many are good."""
    draw, d, good = np.random.default_rng(SEED), 64, m // 50
    amid = 0.05 * draw.standard_normal((good, d))  # of norm .4, among sentences of norm 1
    aside = np.eye(d)[0] + 0.01 * draw.standard_normal((m - good, d))
    rows = stack((integer_row(one, unit_norm=False) for one in np.concatenate([amid, 0.99 * aside / 1.1])), d)
    around = draw.standard_normal((10, d))
    directions = draw.standard_normal((projections, d))
    made = Candidates(
        rows=rows, names=tuple(map(str, range(m))), labels=None, half_range=1, approved=1, centres=rows[:1],
        clusters=np.zeros(m, dtype=np.int64), samples=rows[:0], owners=np.zeros(0, dtype=np.int64),
        projections=stack((integer_row(one, unit_norm=True) for one in directions), d),
    )  # fmt: skip
    return made, stack((integer_row(one, unit_norm=True) for one in around), d), good


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What the claim says, seen in this table."""
    rows = table.filter(pl.col("part") == "table 3.1")
    found = table.filter(pl.col("part") == "good candidates")
    by = {name: found.filter(pl.col("utility") == name).sort("epsilon") for name in ("depth", "published")}
    return {
        "every printed row reaches .95": bool((rows["probability"] >= SURE).all()),
        "12 instead of 25 are enough at epsilon 6": rows.filter(pl.col("epsilon") == 6.0)["least_b"][0] == 12,
        "at epsilon 20 the minimum finds a good candidate with .9": by["depth"]["probability"][-1] > 0.9,
        "at epsilon 20 the printed maximum selects good ones no more than three times as often as chance": bool(
            by["published"]["probability"][-1] < 3 * by["published"]["uniform"][-1]
        ),
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """The probability of a good candidate against epsilon."""
    figure, axis = pyplot.subplots(figsize=(5.4, 3.6))
    found = table.filter(pl.col("part") == "good candidates")
    labels = {"depth": "minimum over projections", "published": "maximum, as printed"}
    for (name,), rows in found.group_by("utility", maintain_order=True):
        axis.plot(rows["epsilon"], rows["probability"], marker="o", label=labels[name])
    axis.axhline(found["uniform"][0], color="0.5", linestyle=":", label="uniform choice")
    axis.set(xlabel="epsilon", ylabel="probability of a good candidate", ylim=(0, 1.02))
    axis.legend(fontsize="small")
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    command(main, __doc__)

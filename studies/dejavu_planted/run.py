"""Encoders with planted memorization: the attack finds the planted counts exactly, at every share and accuracy."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
from studies.record import command, picture, record

from dovetail.core.entropy import simulation
from dovetail.memorize.dejavu.pairs import Planted
from dovetail.memorize.dejavu.score import Partition, gap, mcnemar_of, measure_score

SEED = 1
IMAGES, TOY = 3600, 200  # in each set: what makes every count whole
REMEMBERED = [Fraction(k, 6) for k in range(7)]
ACCURACIES = [Fraction(1, 10), Fraction(1, 5), Fraction(1, 2)]


def main(full: bool, out: Path) -> pl.DataFrame:
    """Every share and accuracy of 3,600 images in each set in full, some as a toy."""
    images = IMAGES if full else TOY
    shares = REMEMBERED if full else REMEMBERED[::3]
    rows = [row(images, rho, q) for q in (ACCURACIES if full else ACCURACIES[:2]) for rho in shares]
    table = pl.DataFrame(rows)
    table.write_csv(out / "dejavu_planted.csv")
    picture(out / "dejavu_planted.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=SEED, full=full)
    return table


def row(images: int, remembered: Fraction, accuracy: Fraction) -> dict[str, Any]:
    """What was planted and what was found, both directions together."""
    made = Planted(images, remembered, accuracy)
    attacked = made.pair().attack(neighbours=made.neighbours)
    found, planted = Partition.of(attacked), made.partition
    test, whole = mcnemar_of(attacked), gap(attacked)
    score = measure_score(attacked, 0.2, draws=200, rng=simulation(SEED))
    return {
        "remembered": float(remembered), "accuracy": float(accuracy), "images": 2 * images,
        "memorized": found.memorized, "planted_memorized": 2 * planted.memorized,
        "misrepresented": found.misrepresented, "planted_misrepresented": 2 * planted.misrepresented,
        "correlated": found.correlated, "planted_correlated": 2 * planted.correlated,
        "gap": whole.value, "planted_gap": float(remembered * (1 - accuracy)),
        "low": whole.interval[0], "high": whole.interval[1],
        "score_20": score.value, "score_low": score.interval[0], "score_high": score.interval[1],
        "mcnemar_p": test.p_value,
    }  # fmt: skip


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What the claim says, seen in this table."""
    groups = ("memorized", "misrepresented", "correlated")
    nothing = table.filter(remembered=0.0)
    most = table.filter(pl.col("remembered") >= 0.2)
    return {
        "every count is the planted one": all(table[name].equals(table[f"planted_{name}"]) for name in groups),
        "the gap is rho (1 - q)": bool((table["gap"] - table["planted_gap"]).abs().max() < 1e-12),
        "score(20 %) is 1 - q once a fifth is remembered": bool(
            (most["score_20"] - (1 - most["accuracy"])).abs().max() < 1e-12
        ),
        "nothing remembered: every interval holds 0 and McNemar's p is 1": bool(
            ((nothing["low"] < 0) & (nothing["high"] > 0)).all()
            and ((nothing["score_low"] <= 0) & (nothing["score_high"] >= 0)).all()
            and (nothing["mcnemar_p"] == 1.0).all()
        ),
    }  # fmt: skip


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """Gap with its interval on the planted line."""
    figure, axis = pyplot.subplots(figsize=(7, 4.2))
    for (accuracy,), rows in table.group_by("accuracy", maintain_order=True):
        off = (rows["gap"] - rows["low"], rows["high"] - rows["gap"])
        shown = axis.errorbar(
            rows["remembered"], rows["gap"], off, fmt="o", ms=4, capsize=3, label=f"q = {accuracy:g}"
        )
        axis.plot([0, 1], [0, 1 - accuracy], color=shown[0].get_color(), lw=0.8)
    axis.set(xlabel="planted share rho of remembered images", ylabel="accuracy of target less reference")
    axis.legend(title="reference accuracy; lines: rho (1 - q)")
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    command(main, __doc__)

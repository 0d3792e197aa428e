"""The data of the RASE studies in numbers, as in the paper's Table I, and how much of them its stated range holds."""

from pathlib import Path
from typing import Any

import polars as pl
from studies.record import command, picture, record
from studies.table1.loads import FIRST, PAPER, SOCKET, load_statistics, refit, synthetic

SEED = 1
STEPS = {"1m": 1.0, "10m": 10.0, "1h": 60.0, "1d": 1440.0}  # minutes
IDLE = 1.0  # watts


def statistics(source: str, table: pl.DataFrame, every: str) -> pl.DataFrame:
    """One row for each house: Table I, and the shares of readings that are idle or outside of two ranges."""
    watts = pl.col("watts")
    shares = table.group_by("house").agg(
        mean=watts.mean(),
        deviation=watts.std(),
        idle=(watts < IDLE).mean(),
        below_paper=(watts < PAPER[0]).mean(),
        above_paper=(watts > PAPER[1]).mean(),
        outside_socket=1.0 - watts.is_between(*SOCKET).mean(),
    )
    label = [pl.lit(source).alias("source"), pl.lit(every).alias("every")]
    return load_statistics(table).join(shares, on="house").sort("house").select(*label, pl.all())


def made(days: int, every: str) -> pl.DataFrame:
    """The synthetic fleet as readings of a house numbered 0."""
    minutes = STEPS[every]
    fleet = synthetic(64, days, minutes=minutes, seed=SEED)
    rounds = pl.DataFrame(fleet.watts, schema=[f"device {d}" for d in range(64)])
    time = pl.lit(FIRST) + pl.duration(minutes=pl.int_range(pl.len()) * int(minutes))
    long = rounds.with_columns(time=time).unpivot(index="time", variable_name="device", value_name="watts")
    return long.with_columns(house=pl.lit(0, dtype=pl.Int64))


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write table1.csv and .png: in full REFIT where it is at hand, and 30 synthetic days; as a toy 3 of these."""
    parts = [statistics("synthetic", made(30 if full else 3, every), every) for every in STEPS if every != "1d"]
    for every in STEPS if full else ():
        table = refit(every)
        if table is not None:
            parts.append(statistics("REFIT", table, every))
    table = pl.concat(parts)
    table.write_csv(out / "table1.csv")
    picture(out / "table1.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=SEED, full=full)
    return table


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What is claimed, seen in this table."""
    made_up, real = (table.filter(pl.col("source") == name) for name in ("synthetic", "REFIT"))
    return {
        "no reading is outside of what a plug can carry": bool((table["outside_socket"] == 0.0).all()),
        "the synthetic fleet stays in the paper's range": bool(
            (made_up["below_paper"] + made_up["above_paper"] == 0.0).all()
        ),
        "real readings do not: more than half are below it and some far above": bool(
            ((real["below_paper"] > 0.5) & (real["highest"] > PAPER[1])).filter(real["every"] != "1d").all()
        ),
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """Range and mean of each house by the width of a step, beside the paper's range."""
    figure, axis = pyplot.subplots(figsize=(7.5, 4.2))
    steps = list(STEPS)
    for shift, ((source, house), rows) in enumerate(table.group_by("source", "house", maintain_order=True)):
        x = [steps.index(every) + 0.15 * (shift - 1) for every in rows["every"]]
        name = source if source == "synthetic" else f"{source} house {house}"
        axis.vlines(x, rows["lowest"], rows["highest"], color=f"C{shift}", linestyle="-")
        axis.plot(x, rows["highest"], linestyle="", marker="_", markersize=12, color=f"C{shift}")
        axis.plot(
            x, rows["mean"], linestyle="", marker="os^"[shift % 3], color=f"C{shift}", label=f"{name}: mean, range"
        )
    axis.axhspan(*PAPER, color="grey", alpha=0.25, label="range in the paper's Table I")
    axis.set_yscale("symlog", linthresh=1.0)
    axis.set_xticks(range(len(steps)), steps)
    axis.set(xlabel="means over", ylabel="watts")
    axis.legend(fontsize="small", ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.15))
    return figure


if __name__ == "__main__":
    command(main, __doc__)

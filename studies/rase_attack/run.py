r"""Who sent this report? The random-forest attack of the RASE paper on five ways to sanitize it: figures 5 and 6.

A round is one hourly reading of every device. The adversary knows 24 days of non-anonymous history and attacks the
six days that follow. What it looks at decides what a shuffle can do, so there are three of it:

* `values`: value and time of day, learned from the raw history;
* `place`: these and the place in the batch, learned from the raw history;
* `rehearsed`: the same three, learned from the history sanitized by the same mechanism.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from studies.record import command, picture, record
from studies.table1.loads import Fleet, sensor_months, synthetic

from dovetail.attack.experiment.reidentify import (
    ForestAttack,
    Records,
    ReidentificationResult,
    reidentify,
    release_rounds,
)
from dovetail.core.display import COLOURS, DASHES
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.stages import NumericRandomizer, Shuffler
from dovetail.randomize.budget_laplace import BudgetLaplace
from dovetail.randomize.laplace import Laplace
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.rase import RASE
from dovetail.shuffle.uniform import Uniform

SEED = 5
BETA, RHO = 0.5, 0.9  # the paper's
EPSILON, SIZE, ALPHA = 1.0, 16, 30.0  # the paper states alpha alone; SIZE of a group
HISTORY = 0.8  # share of the rounds: 4 : 1
SWEEPS: dict[str, tuple[float, ...]] = {
    "n": (8, 16, 32),
    "epsilon": (0.01, 0.1, 4.0, 10.0, 100.0),
    "groups": (1, 2, 8, 16, 64),
    "alpha": (1.0, 12.0, 60.0, 120.0, 1000.0),
}
CONCERNED = {  # schemes that a parameter can change
    "n": ("raw", "BR", "BR-Mallows", "Laplace-Fisher", "RASE as published", "RASE"),
    "epsilon": ("BR", "BR-Mallows", "Laplace-Fisher", "RASE as published", "RASE"),
    "groups": ("BR-Mallows", "RASE as published", "RASE"),
    "alpha": ("BR-Mallows", "RASE as published"),
}

PERMUTATIONS = 199

Scheme = tuple[NumericRandomizer | None, Shuffler]


def schemes(n: int, bounds: tuple[float, float], *, epsilon: float, groups: float, alpha: float) -> dict[str, Scheme]:
    """Each way to sanitize a round; groups stand in blocks of the roster, and RASE as published halves them."""
    lower, upper = bounds
    own = Groups.from_labels(np.arange(n) * int(groups) // n)
    br = BudgetLaplace(lower, upper, epsilon, beta=BETA, rho=RHO, precision="published")
    published = RASE.fit(own, k=min(n, 2 * int(groups)), alpha=alpha, refine="agglomerative", reference=range(n))
    return {
        "raw": (None, Identity(n)),
        "BR": (br, Identity(n)),
        "BR-Mallows": (br, Mallows.single(own, alpha=alpha, reference=range(n))),
        "Laplace-Fisher": (Laplace(lower, upper, epsilon), Uniform(n)),
        "RASE as published": (br, published),
        "RASE": (br, RASE.fit(own)),
    }


def default(n: int) -> dict[str, float]:
    """What is held while something else is varied."""
    return {"epsilon": EPSILON, "groups": -(-n // SIZE), "alpha": ALPHA}


def sanitized(fleet: Fleet, scheme: Scheme, rounds: slice, *, place: bool, rng: Entropy) -> Records:
    """What the adversary sees of some rounds."""
    randomizer, shuffler = scheme
    reports, devices = release_rounds(fleet.watts[rounds], shuffler, randomizer=randomizer, rng=rng)
    return Records.of_rounds(reports, devices=devices, time_of_day=fleet.hours[rounds], place=place)


def attacked(
    fleet: Fleet, scheme: Scheme, attack: ForestAttack, *, trials: int, rng: Entropy
) -> ReidentificationResult:
    """Attack the last fifth of the rounds."""
    rounds = slice(split(fleet), None)
    place = "place" in attack.features

    def release(source: Entropy) -> Records:
        return sanitized(fleet, scheme, rounds, place=place, rng=source)

    return reidentify(attack, release, trials=trials, permutations=PERMUTATIONS, rng=rng)


def learned(fleet: Fleet, scheme: Scheme, *, place: bool, trees: int, rng: Entropy) -> ForestAttack:
    """An adversary who knows the senders of the first four fifths, sanitized by `scheme`."""
    return ForestAttack.learn(
        sanitized(fleet, scheme, slice(split(fleet)), place=place, rng=rng), trees=trees, rng=rng
    )


def split(fleet: Fleet) -> int:
    """The first round that is attacked."""
    return round(HISTORY * len(fleet.watts))


def row(
    fleet: Fleet, sweep: str, sees: str, name: str, scheme: Scheme, result: ReidentificationResult
) -> dict[str, Any]:
    """One line of the table, without the parameters."""
    n = fleet.watts.shape[1]
    return {
        "fleet": fleet.name, "sweep": sweep, "sees": sees, "scheme": name, "n": n,
        "recall": result.recall, "recall_low": result.recall_interval[0], "recall_high": result.recall_interval[1],
        "recall_least": result.recall_by_device.min(), "recall_most": result.recall_by_device.max(),
        "precision": result.precision, "precision_low": result.precision_interval[0],
        "precision_high": result.precision_interval[1], "precision_most": result.precision_by_device.max(),
        "chance": result.chance, "p_value": result.p_value,
        "stays": float(np.diag(scheme[1].mixing(np.arange(n))).mean()),
        "shuffles": getattr(scheme[1], "mechanism", scheme[1]).name,
        "trials": result.trials, "records": result.records,
    }  # fmt: skip


def comparison(fleet: Fleet, *, trials: int, trees: int, rng: Entropy) -> Iterator[dict[str, Any]]:
    """Figure 5: every scheme against every adversary, at the default parameters."""
    n = fleet.watts.shape[1]
    ways = schemes(n, fleet.bounds, **default(n))
    for sees in ("values", "place", "rehearsed"):
        attack = learned(fleet, ways["raw"], place=sees != "values", trees=trees, rng=rng)
        for name, scheme in ways.items():
            if sees == "rehearsed":
                attack = learned(fleet, scheme, place=True, trees=trees, rng=rng)
            result = attacked(fleet, scheme, attack, trials=trials, rng=rng)
            yield row(fleet, "none", sees, name, scheme, result) | default(n)


def swept(fleet: Fleet, *, trials: int, trees: int, rng: Entropy) -> Iterator[dict[str, Any]]:
    """Figure 6: one parameter at a time; who looks at values feels epsilon, who looks at places the others."""
    whole, forests = fleet.watts.shape[1], dict[tuple[int, str], ForestAttack]()
    for sweep, settings in SWEEPS.items():
        sees = "values" if sweep == "epsilon" else "place"
        for setting in settings:
            n = int(setting) if sweep == "n" else whole
            case = default(n) | ({} if sweep == "n" else {sweep: setting})
            if max(n, case["groups"]) > whole or (n == whole and case == default(n)):
                continue  # beyond this fleet, or in the comparison already
            part = Fleet(fleet.name, fleet.watts[:, :n], fleet.hours, fleet.bounds)
            ways = schemes(n, part.bounds, **case)
            if (n, sees) not in forests:
                forests[n, sees] = learned(part, ways["raw"], place=sees == "place", trees=trees, rng=rng)
            for name in CONCERNED[sweep]:
                result = attacked(part, ways[name], forests[n, sees], trials=trials, rng=rng)
                yield row(part, sweep, sees, name, ways[name], result) | case


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write rase_attack.csv and .png; in full 64 devices, 30 days, 10 trials, 20 trees, as a toy 32, 5, 2, 5."""
    n, days, trials, trees = (64, 30, 10, 20) if full else (32, 5, 2, 5)
    rng = simulation(SEED)
    made = synthetic(n, days, minutes=60.0, seed=SEED)
    real = sensor_months(n, "1h") if full else None
    rows = list(swept(made, trials=trials, trees=trees, rng=rng))
    for fleet in filter(None, (made, real)):
        rows += comparison(fleet, trials=trials, trees=trees, rng=rng)
    table = pl.DataFrame(rows)
    table.write_csv(out / "rase_attack.csv")
    picture(out / "rase_attack.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=SEED, full=full)
    return table


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What is claimed, seen in this table."""
    base = table.filter(pl.col("sweep") == "none")
    made = base.filter((pl.col("fleet") == "synthetic") & (pl.col("sees") == "values"))
    raw, noisy = made.filter(pl.col("scheme") == "raw"), made.filter(pl.col("scheme") != "raw")
    spread = (noisy["recall"] - noisy["recall"][0]).abs() - 3 * float(
        (noisy["recall_high"] - noisy["recall_low"]).to_numpy().max()
    )
    knows = base.filter(pl.col("sees") == "rehearsed")
    br, fisher, published, ours = (
        knows.filter(pl.col("scheme") == name) for name in ("BR", "Laplace-Fisher", "RASE as published", "RASE")
    )
    return {
        "raw values of devices with habits name them, more than ten times as often as noisy ones above chance": bool(
            (noisy["recall"] - noisy["chance"] < (raw["recall"] - raw["chance"])[0] / 10).all()
        ),
        "shuffling is invisible to who looks at values alone": bool((spread <= 0).all()),
        "without a shuffle the place names the device, whatever the noise": bool((br["recall"] > 0.5).all()),
        "after a uniform shuffle of everybody recall is at most twice chance": bool(
            (fisher["recall_low"] <= 2 * fisher["chance"]).all()
        ),
        "after the shuffle inside groups recall is at most twice one in a group": bool(
            (ours["recall_low"] <= 2 * ours["stays"]).all()
        ),
        "RASE as published leaves more reports in place and is attacked better than RASE": bool(
            ((published["stays"] > ours["stays"]) & (published["recall"] > ours["recall"])).all()
        ),
    }


def compared(axis: Any, rows: pl.DataFrame, title: str) -> None:
    """Recall of each scheme, one marker for each adversary, with 95 % intervals, beside chance."""
    for shift, (sees, marker) in enumerate((("values", "o"), ("place", "s"), ("rehearsed", "^"))):
        line = rows.filter(pl.col("sees") == sees)
        reach = [line["recall"] - line["recall_low"], line["recall_high"] - line["recall"]]
        axis.errorbar(np.arange(len(line)) + 0.2 * (shift - 1), line["recall"], reach, fmt=marker, label=sees)
    axis.axhline(rows["chance"][0], color="black", linestyle=":", label="chance")
    names = [name.replace(" as ", "\nas ").replace("-", "-\n") for name in line["scheme"]]
    axis.set_xticks(range(len(line)), names, fontsize="small")
    axis.set(yscale="log", ylim=(0.008, 1.3), title=f"{title}, n = {rows['n'][0]}, epsilon = {EPSILON:g}")


def followed(axis: Any, table: pl.DataFrame, sweep: str, sees: str) -> None:
    """Recall of each scheme along one parameter; its default setting comes from the comparison."""
    rows = table.filter(pl.col("sweep").is_in([sweep, "none"]), sees=sees, fleet="synthetic")
    for number, name in enumerate(CONCERNED["n"]):
        line = rows.filter(scheme=name).sort(sweep)
        if name in CONCERNED[sweep]:
            axis.plot(line[sweep], line["recall"], color=COLOURS[number], linestyle=DASHES[number],
                      marker="xosD^v"[number], label=name)  # fmt: skip
    if sweep == "n":
        axis.plot(line["n"], line["chance"], color="black", linestyle=":", label="chance")
    ticks = rows[sweep].unique().sort().to_list()
    axis.set(xscale="log", yscale="log", ylim=(0.008, 1.3), xlabel=sweep, title=f"synthetic, adversary: {sees}")
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """Recall: above, each fleet by scheme and adversary, and epsilon; below, the sweeps that a shuffle feels."""
    figure, axes = pyplot.subplots(2, 3, figsize=(15, 8.5))
    base = table.filter(sweep="none")
    fleets = base["fleet"].unique(maintain_order=True).to_list()
    for axis, fleet in zip(axes[0], fleets, strict=False):
        compared(axis, base.filter(fleet=fleet), fleet)
    for axis in axes[0, len(fleets) : 2]:
        axis.axis("off")
    for axis, sweep in zip((axes[0, 2], *axes[1]), ("epsilon", "n", "groups", "alpha"), strict=True):
        followed(axis, table, sweep, "values" if sweep == "epsilon" else "place")
    for axis in axes[:, 0]:
        axis.set_ylabel("recall")
    axes[0, 0].legend(title="adversary", fontsize="small", ncols=2, loc="upper right")
    axes[1, 0].legend(fontsize="small", loc="lower left")
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    command(main, __doc__)

"""Figure 1 of Hiding Among the Clones, for one epsilon0: every bound against the number of people."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from studies.record import picture, record

from dovetail.account.amplify import curve
from dovetail.account.attack_lower_bound import BinaryAttack, attack_lower
from dovetail.account.bound import bracket_root
from dovetail.account.clones import ClonePair
from dovetail.account.closed_forms import (
    bennett,
    clones_focs,
    clones_workshop,
    erlingsson,
    hoeffding,
    random_check_ins,
    stronger_tight,
)

DELTA = 1e-6
LINES = {
    "clones_theoretical": "clones, equation (1)",
    "clones_focs": "clones, FOCS prefactor",
    "clones_empirical": "clones, numerical",
    "bbgn19": "BBGN'19, generic",
    "bkmtt20_recalled": "BKMTT'20 (recalled)",
    "erlingsson19": "Erlingsson et al. 2019",
    "stronger_tight": "ours, closed form",
    "stronger_clones": "ours, numerical",
    "binary_all_equal": "2RR, everybody else equal",
    "attack": "best attack found",
}


def row(epsilon0: float, n: int) -> dict[str, Any]:
    """All bounds at one n; null where a bound is out of its regime or says nothing."""
    asked: dict[str, Any] = {"n": n, "delta": DELTA}
    generic = [bound.epsilon for bound in (hoeffding(epsilon0, **asked), bennett(epsilon0, **asked))]
    return {
        "epsilon0": epsilon0,
        "n": n,
        "clones_theoretical": clones_workshop(epsilon0, **asked).epsilon,
        "clones_focs": clones_focs(epsilon0, **asked).epsilon,
        "clones_empirical": ClonePair(epsilon0, n, "clones").epsilon(DELTA).upper,
        "bbgn19": min((value for value in generic if value is not None), default=None),
        "bkmtt20_recalled": random_check_ins(epsilon0, **asked),
        "erlingsson19": erlingsson(epsilon0, **asked).epsilon,
        "stronger_tight": stronger_tight(epsilon0, **asked).epsilon,
        "stronger_clones": ClonePair(epsilon0, n).epsilon(DELTA).upper,
        "binary_all_equal": all_equal(epsilon0, n),
        "attack": attack_lower(epsilon0, n, DELTA),
    }


def all_equal(epsilon0: float, n: int) -> float:
    """What binary randomized response reaches when all others hold one value: a lower end, not "exact"."""
    attack = BinaryAttack(epsilon0, n)
    if attack.delta(0.0) <= DELTA:
        return 0.0
    start = ClonePair(epsilon0, n).epsilon(DELTA).upper
    return bracket_root(
        lambda epsilon: np.log(max(attack.delta(epsilon), 1e-320) / DELTA),
        start, steepness=30.0, most=epsilon0, tolerance=1e-6,
    )[0]  # fmt: skip


def main(name: str, epsilon0: float, full: bool, out: Path) -> pl.DataFrame:
    """Write the table and the picture: 61 points from 1e5 to 1e7 in full, 7 as a toy."""
    people = np.unique(np.rint(np.geomspace(1e5, 1e7, 61 if full else 7))).astype(int)
    table = pl.DataFrame([row(epsilon0, int(n)) for n in people], infer_schema_length=None)
    table.write_csv(out / f"{name}.csv")
    picture(out / f"{name}.png", lambda pyplot: drawn(pyplot, table, epsilon0))
    record(out, seed=0, full=full)
    return table


def verdict(table: pl.DataFrame, epsilon0: float) -> dict[str, bool]:
    """What the figure claims, and that ours is below; nulls do not count."""
    above = ("clones_theoretical", "clones_focs", "bbgn19", "erlingsson19")
    numerical = curve(epsilon0=epsilon0, n=table["n"].to_numpy(), delta=DELTA)
    ours = table["stronger_clones"].cast(pl.Float64).to_numpy()
    return {
        "the numerical clone bound is below every other published bound": all(
            bool((table["clones_empirical"] <= table[name]).all()) for name in above
        ),
        "ours is below the numerical clone bound": bool((table["stronger_clones"] < table["clones_empirical"]).all()),
        "no attack exceeds ours": bool((table["attack"] <= table["stronger_clones"]).all())
        and bool((table["binary_all_equal"] <= table["stronger_clones"]).all()),
        "what is promised is at most ours, and above its attack": bool(
            np.all((numerical.upper <= ours * (1.0 + 1e-9)) | np.isnan(ours))
            and np.all(numerical.lower <= numerical.upper)
        ),
    }


def drawn(pyplot: Any, table: pl.DataFrame, epsilon0: float) -> Any:
    """All curves below epsilon0 on logarithmic axes; ours thick, attacks with markers."""
    figure, axis = pyplot.subplots(figsize=(7, 5))
    for name, label in LINES.items():
        line = table.filter(pl.col(name) < epsilon0)
        if line.is_empty():
            continue
        attack = name in ("binary_all_equal", "attack")
        axis.plot(
            line["n"], line[name].cast(pl.Float64), label=label, linewidth=2.6 if "ours" in label else 1.2,
            marker="v" if attack else "", markevery=6, color="#777777" if attack else None,
        )  # fmt: skip
    axis.set(xscale="log", yscale="log", xlabel="n", ylabel="central epsilon")
    axis.set_title(f"epsilon0 = {epsilon0:g}, delta = 1e-6")
    axis.legend(fontsize="x-small", ncols=2)
    return figure

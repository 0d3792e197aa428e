"""On public tables `best_shuffler` is judged by fresh draws against each shuffler that it could have chosen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from studies.record import command, picture, record

from dovetail.core.entropy import simulation
from dovetail.core.stages import Shuffler
from dovetail.datasets import adult, california_housing, redbook, sml2010, twitch, twitch_friendships
from dovetail.shuffle.best import best_shuffler
from dovetail.shuffle.fitting.components import partition_reference_order
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.noisy_sort import NoisySort
from dovetail.shuffle.planar import PlanarLaplace

ALPHAS = (1.0, 8.0, 64.0)
DRAWS, SEED = 16_000, 99  # people in all draws; other seeds than those of the choice
SIZES = {"full": 400, "toy": 60}
Points = NDArray[np.float64]


def tables(most: int) -> Iterator[tuple[str, Groups, Points | None]]:
    """Name, groups and public points of each table; at most so many of its people."""
    from sklearn import datasets as sklearn_tables

    adults, houses = adult(), california_housing()
    half = adults.height // 2
    lines: dict[str, Any] = {
        "Adult, age, one half": (adults["age"][:half], 1.0),
        "Adult, age, the other half": (adults["age"][half:], 1.0),
        "Adult, hours a week": (adults["hours_per_week"], 2.0),
        "Adult, years of school": (adults["education_num"], 1.0),
        "Redbook, age": (redbook()["age"], 5.0),
        "SML2010, hours": (np.arange(sml2010().height) / 4.0, 1.0),
        "California, income": (houses["median_income"], 0.05),
        "California, age of houses": (houses["housing_median_age"], 2.0),
        "Twitch, days": (twitch()["days"], 20.0),
    }
    for name, load, column in (
        ("Iris, sepal length", sklearn_tables.load_iris, 0), ("Wine, alcohol", sklearn_tables.load_wine, 0),
        ("Diabetes, body mass", sklearn_tables.load_diabetes, 2), ("Diabetes, age", sklearn_tables.load_diabetes, 0),
        ("Breast cancer, radius", sklearn_tables.load_breast_cancer, 0),
        ("Linnerud, weight", sklearn_tables.load_linnerud, 0),
    ):  # fmt: skip
        values = load().data[:, column]
        lines[name] = (values, 0.3 * float(np.std(values)))
    for name, (column, radius) in lines.items():
        kept = _some(np.asarray(column, dtype=np.float64)[:, None], most)
        yield name, Groups.within_radius(kept, radius), kept
    planes = {
        "California, places": (houses.select("longitude", "latitude").to_numpy(), 0.1),
        "Iris, petals": (sklearn_tables.load_iris().data[:, 2:], 0.3),
        "Wine, two columns": (_scaled(sklearn_tables.load_wine().data[:, [0, 6]]), 0.3),
        "Breast cancer, two columns": (_scaled(sklearn_tables.load_breast_cancer().data[:, [0, 1]]), 0.2),
        "Digits, two components": (_components(sklearn_tables.load_digits().data), 0.1),
    }
    for name, (points, radius) in planes.items():
        kept = _some(np.asarray(points, dtype=np.float64), most)
        yield name, Groups.within_radius(kept, radius), kept
    edges = twitch_friendships().select("one", "other").to_numpy()
    few = edges[(edges < most).all(axis=1)]
    yield "Twitch, friends", Groups.from_graph(few, n=most), None


def _some(points: Points, most: int) -> Points:
    """At most so many rows, the same each time."""
    return points[np.sort(np.random.default_rng(SEED).permutation(len(points))[:most])]


def _scaled(points: Points) -> Points:
    return np.asarray((points - points.mean(axis=0)) / points.std(axis=0))


def _components(points: Points) -> Points:
    """The two principal components, scaled."""
    centred = points - points.mean(axis=0)
    return _scaled(centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T)


def row(name: str, groups: Groups, points: Points | None, alpha: float) -> dict[str, Any] | None:
    """The mean distance of the choice and of each candidate; None where the groups are disjoint."""
    if groups.disjoint:
        return None
    line, provenance = partition_reference_order(groups, points=points)
    shared = (line.atom_starts[:-1] + line.atom_starts[1:] - 1)[line.atom] / 2.0
    where = shared[line.places][:, None] if points is None else points
    found: dict[str, Shuffler] = {"chosen": best_shuffler(groups, alpha=alpha, points=points)}
    for kind in (Mallows, NoisySort):
        found[kind.name] = kind.along(line, groups, alpha=alpha, provenance=provenance)
    if points is not None and points.shape[1] == 2:
        found["planar"] = PlanarLaplace.fit(groups, alpha=alpha, points=points)
    result: dict[str, Any] = {"table": name, "n": len(where), "alpha": alpha, "choice": found["chosen"].name}
    draws = max(2, DRAWS // len(where))
    for candidate in ("chosen", Mallows.name, NoisySort.name, "planar"):
        result |= {candidate: None, f"{candidate}_error": None}
        if candidate in found:
            rng = simulation(SEED)
            moves = [
                float(np.linalg.norm(where[found[candidate].permutation(rng)] - where, axis=1).mean())
                for _ in range(draws)
            ]
            result |= {
                candidate: float(np.mean(moves)), f"{candidate}_error": float(np.std(moves) / np.sqrt(draws)),
            }  # fmt: skip
    return result


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write best_shuffler.csv: 21 tables of at most 400 people and three alphas in full, 60 people as a toy."""
    rows = []
    for name, groups, points in tables(SIZES["full" if full else "toy"]):
        for alpha in ALPHAS if full else ALPHAS[1:2]:
            found = row(name, groups, points, alpha)
            rows += [found] if found is not None else []
    table = pl.DataFrame(rows, infer_schema_length=None)
    table.write_csv(out / "best_shuffler.csv")
    picture(out / "best_shuffler.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=SEED, full=full)
    return table


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """How much further each choice moves reports than the best candidate."""
    figure, axis = pyplot.subplots(figsize=(7, 4))
    whole = table["choice"].is_in(["uniform", "within_groups"]).to_numpy()
    for kind, label in ((~whole, "keeps an order"), (whole, "uniform")):
        found = np.sort(100.0 * regret(table)[kind])
        axis.plot(np.arange(1, found.size + 1), found, "o", label=label)
    axis.set(xlabel="choices, in order", ylabel="further than the best candidate (%)")
    axis.legend()
    return figure


def regret(table: pl.DataFrame) -> NDArray[np.float64]:
    """How much further the choice moves reports than the best candidate does, as a share."""
    named = (Mallows.name, NoisySort.name, "planar")
    best = np.min([table[name].cast(pl.Float64).fill_null(np.inf).to_numpy() for name in named], axis=0)
    return np.asarray(table["chosen"].to_numpy() / best - 1.0)


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What the README claims."""
    return {
        "no choice moves reports a tenth further than a candidate": bool((regret(table) < 0.1).all()),
        "no choice that keeps an order moves them a fortieth further": bool(
            (regret(table)[~table["choice"].is_in(["uniform", "within_groups"]).to_numpy()] < 0.025).all()
        ),
    }


if __name__ == "__main__":
    command(main, __doc__)

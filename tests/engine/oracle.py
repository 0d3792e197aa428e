"""The release in memory, one person at a time: what every engine must give, byte for byte."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dovetail.core.discrete_noise import discrete_laplace
from dovetail.core.entropy import KeyedEntropy, purpose_key
from dovetail.job.build import fit_of
from dovetail.job.config import ShuffleSection
from dovetail.shuffle.fitting import components as mallows_on_components
from dovetail.shuffle.fitting.components import PartitionedOrder, kd_order
from dovetail.shuffle.noisy_sort import RATE
from dovetail.shuffle.sampling.permutations import planar_laplace
from dovetail.table.released import to_columns

KEY = bytes(range(32))  # of the ledger
SECRET = bytes(range(100, 132))


def write_table(folder: Path, frame: pl.DataFrame, *, files: int = 3) -> Path:
    """The table in so many files."""
    folder.mkdir(parents=True, exist_ok=True)
    for place, rows in enumerate(np.array_split(np.arange(frame.height), files)):
        frame[rows].write_parquet(folder / f"part-{place}.parquet")
    return folder


def table(n: int = 600, *, text: bool = False) -> pl.DataFrame:
    """People with an answer, an amount and a public region."""
    draw = np.random.default_rng(n)
    ids = draw.permutation(n) * 31 + 5
    return pl.DataFrame(
        {
            "id": [f"p{one}" for one in ids] if text else ids,
            "answer": [["a", "b", "c"][one] for one in draw.integers(0, 3, n)],
            "amount": draw.integers(0, 9, n) / 2.0,
            "region": [["north", "south", "west", "x"][min(3, one)] for one in draw.integers(0, 4, n)],
            "age": np.array([30, 31, 33, 40, 41, 41, 60])[draw.integers(0, 7, n)],
            "x": draw.integers(0, 3, n) / 2.0 + 9.0 * (np.arange(n) % 3 == 0),
            "y": draw.integers(0, 2, n),
        }
    )


GROUPS: dict[str, dict[str, Any]] = {
    "within_groups": {"labels": "region"},
    "noisy_sort": {"labels": "age", "radius": 2.0},
    "mallows": {"labels": "age", "radius": 2.0},
    "planar": {"points": ["x", "y"], "radius": 0.6},
}


def config(path: Path, *, randomizer: str = "krr", shuffler: str = "uniform", epsilon: float = 2.0) -> dict[str, Any]:
    """The configuration of a release of that table."""
    groups = GROUPS.get(shuffler)
    public = [] if groups is None else groups.get("points", [groups.get("labels")])
    if shuffler == "identity":
        public = ["region"]
    numeric = randomizer == "laplace"
    domain = {"lower": 0.0, "upper": 4.5, "grid": 0.5} if numeric else {"categories": ["a", "b", "c"]}
    return {
        "schema_version": 1,
        "mode": "rehearsal" if shuffler == "identity" else "release",
        "data": {
            "path": str(path),
            "person": "id",
            "private": "amount" if numeric else "answer",
            "public": public,
            **domain,
        },
        "randomize": {"randomizer": randomizer, "epsilon": epsilon},
        "shuffle": {
            "shuffler": shuffler,
            **({} if groups is None else {"groups": groups}),
            **({} if shuffler in ("uniform", "within_groups", "identity") else {"alpha": 40.0}),
        },
        "estimate": {"by": public if len(public) == 1 else []},
    }


def released(frame: pl.DataFrame, randomizer: Any, *, shuffle: ShuffleSection) -> pl.DataFrame:
    """The reports of this table in their order, under `KEY` and `SECRET`."""
    public = list(shuffle.groups.columns) if shuffle.groups is not None and shuffle.shuffler != "uniform" else []
    if shuffle.shuffler == "identity":
        public = ["region"]
    people = [_person(row, public) for row in frame.iter_rows(named=True)]
    if shuffle.shuffler != "identity":
        people.sort(key=lambda person: person["label"])
    reports = []
    for person in people:
        drawn = KeyedEntropy(purpose_key(SECRET, f"randomize {randomizer.name}"), person["id"])
        value = person["amount"] if hasattr(randomizer, "lower") else "abc".index(person["answer"])
        reports.append(randomizer.randomize(np.array([value]), drawn)[0])
    if shuffle.shuffler == "identity":
        places = order = list(range(len(people)))
    elif shuffle.shuffler in ("uniform", "within_groups"):
        places = order = sorted(range(len(people)), key=lambda i: (people[i]["label"], people[i]["key"]))
    else:
        labels = pl.DataFrame([person["public"] for person in people], schema=public, orient="row")
        fitted = fit_of(shuffle, len(people))(labels)
        places, order = _ORDERS[shuffle.shuffler](fitted, people)
    columns = to_columns(randomizer, np.array(reports)[order], ["a", "b", "c"])
    beside = [pl.Series(name, [str(people[i]["public"][at]) for i in places]) for at, name in enumerate(public)]
    return pl.DataFrame([*beside, *columns])


def _person(row: dict[str, Any], public: list[str]) -> dict[str, Any]:
    own = np.array([row["id"]], dtype=np.int64) if not isinstance(row["id"], str) else None
    if own is None:
        digest = blake2b(row["id"].encode(), key=purpose_key(KEY, "ids"), digest_size=12).digest()
        own = np.frombuffer(digest, dtype=np.uint32).reshape(1, 3)
    key = KeyedEntropy(purpose_key(SECRET, "order"), own).words(2).tolist()
    beside = [row[name] for name in public]
    return {**row, "id": own, "key": key, "public": beside, "label": "\x1f".join(str(one) for one in beside)}


def _lined(fitted: Any, people: list[dict[str, Any]]) -> tuple[list[int], list[int], list[int]]:
    """Component and atom of everybody, and who stands at which place of the line."""
    component = fitted.line.component[fitted.line.places].tolist()
    atom = fitted.line.atom[fitted.line.places].tolist()
    places = sorted(range(len(people)), key=lambda i: (component[i], atom[i], people[i]["label"], people[i]["key"]))
    return component, atom, places


def _noisy(fitted: Any, people: list[dict[str, Any]]) -> tuple[list[int], list[int]]:
    component, _, places = _lined(fitted, people)
    noise = [
        int(discrete_laplace(RATE, 1, KeyedEntropy(purpose_key(SECRET, "noise noisy_sort"), person["id"]))[0])
        for person in people
    ]
    least = {c: min(s for s, own in zip(fitted.scores, component, strict=True) if own == c) for c in set(component)}
    keys = [
        (c, (int(score) - int(least[c])) * int(fitted.scales[c]) + noise[i], people[i]["key"])
        for i, (score, c) in enumerate(zip(fitted.scores, component, strict=True))
    ]
    return places, sorted(range(len(people)), key=lambda i: keys[i])


def _mallows(fitted: Any, people: list[dict[str, Any]]) -> tuple[list[int], list[int]]:
    component, atom, places = _lined(fitted, people)
    order: list[int] = []
    for number in sorted(set(component)):
        mine = [i for i in places if component[i] == number]
        begins = [k for k in range(len(mine)) if k == 0 or atom[mine[k]] != atom[mine[k - 1]]]
        line = PartitionedOrder(np.arange(len(mine)), np.array([0, len(mine)]), np.array([*begins, len(mine)]))
        stream = KeyedEntropy(purpose_key(SECRET, "order mallows"), np.array([number]))
        kappa = mallows_on_components.draw(line, fitted.thetas[number : number + 1], stream)
        order += [mine[k] for k in kappa.tolist()]
    return places, order


def _planar(fitted: Any, people: list[dict[str, Any]]) -> tuple[list[int], list[int]]:
    _, _, places = _lined(fitted, people)
    own = purpose_key(SECRET, "noise planar")
    noisy = np.array([
        fitted.grid[i] + planar_laplace(RATE, 1, KeyedEntropy(own, people[i]["id"]))[0] for i in places
    ])  # fmt: skip
    line = fitted.line
    mixed = np.array(sorted(range(len(places)), key=lambda k: people[places[k]]["key"]))
    homes = kd_order(fitted.grid[places], line, np.arange(len(places)))
    order = np.empty(len(places), dtype=np.int64)
    order[homes] = np.array(places)[kd_order(noisy, line, mixed)]
    return places, order.tolist()


_ORDERS = {"noisy_sort": _noisy, "mallows": _mallows, "planar": _planar}

"""The release in memory, one person at a time: what every engine must give, byte for byte."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dovetail.core.entropy.keyed import KeyedEntropy, purpose_key
from dovetail.pipeline.files.report_columns import to_columns

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
        }
    )


def config(path: Path, *, randomizer: str = "krr", shuffler: str = "uniform", epsilon: float = 2.0) -> dict[str, Any]:
    """The configuration of a release of that table."""
    grouped = shuffler == "within_groups"
    numeric = randomizer == "laplace"
    domain = {"lower": 0.0, "upper": 4.5, "grid": 0.5} if numeric else {"categories": ["a", "b", "c"]}
    return {
        "schema_version": 1,
        "mode": "release",
        "data": {
            "path": str(path),
            "person": "id",
            "private": "amount" if numeric else "answer",
            "public": ["region"] if grouped else [],
            **domain,
        },
        "randomize": {"randomizer": randomizer, "epsilon": epsilon},
        "shuffle": {"shuffler": shuffler, **({"groups": {"labels": "region"}} if grouped else {})},
        "estimate": {"by": ["region"] if grouped else []},
    }


def released(frame: pl.DataFrame, randomizer: Any, *, grouped: bool) -> pl.DataFrame:
    """The reports of this table in their order, under `KEY` and `SECRET`."""
    keys, reports = [], []
    for row in frame.iter_rows(named=True):
        if isinstance(row["id"], str):
            digest = blake2b(row["id"].encode(), key=purpose_key(KEY, "ids"), digest_size=12).digest()
            own = np.frombuffer(digest, dtype=np.uint32).reshape(1, 3)
        else:
            own = np.array([row["id"]], dtype=np.int64)
        value = row["amount"] if hasattr(randomizer, "lower") else "abc".index(row["answer"])
        key = KeyedEntropy(purpose_key(SECRET, "order"), own).words(2).tolist()
        keys.append((row["region"] if grouped else "", *key))
        drawn = KeyedEntropy(purpose_key(SECRET, f"randomize {randomizer.name}"), own)
        reports.append(randomizer.randomize(np.array([value]), drawn)[0])
    order = sorted(range(frame.height), key=lambda place: keys[place])
    columns = to_columns(randomizer, np.array(reports)[order], ["a", "b", "c"])
    places = [pl.Series("region", [frame["region"][place] for place in order])] if grouped else []
    return pl.DataFrame([*places, *columns])

"""Small tables and configurations for the main job."""

from typing import Any

import numpy as np
import polars as pl


def survey(n: int = 600, seed: int = 3) -> pl.DataFrame:
    """People with an age, a town, a secret, and a column that nobody asked for."""
    draw = np.random.default_rng(seed)
    age = draw.integers(20, 24, n)
    secret = (draw.random(n) < 0.2 + 0.1 * (age - 20)).astype(int)
    return pl.DataFrame(
        {
            "id": np.arange(n),
            "secret": np.where(secret == 1, "yes", "no"),
            "hours": np.round(draw.random(n) * 10, 3),
            "age": age,
            "town": np.where(age % 2 == 0, "north", "south"),
            "dropped": [f"dropped-{row}" for row in range(n)],
        }
    )


def rehearsal(**changes: Any) -> dict[str, Any]:
    """A rehearsal of `survey`, sections merged with `changes`."""
    base: dict[str, Any] = {
        "schema_version": 1,
        "mode": "rehearsal",
        "seed": 1,
        "data": {"person": "id", "private": "secret", "public": ["age", "town"], "categories": ["no", "yes"]},
        "randomize": {"randomizer": "krr", "epsilon": 2.0},
        "shuffle": {"shuffler": "uniform"},
        "estimate": {"by": ["age"], "min_group_size": 50},
    }
    return _merge(base, changes)


def release(**changes: Any) -> dict[str, Any]:
    """A release of `survey`, sections merged with `changes`."""
    base = rehearsal(mode="release")
    del base["seed"]
    return _merge(base, changes)


def numeric(base: dict[str, Any]) -> dict[str, Any]:
    """The same configuration for the numeric column."""
    changed = _merge(base, {"randomize": {"randomizer": "laplace"}})
    changed["data"] = {"private": "hours", "public": ["age", "town"], "lower": 0.0, "upper": 10.0}
    return changed


def _merge(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        merged[key] = {**merged.get(key, {}), **value} if isinstance(value, dict) else value
    return merged

"""Small streams and their configurations."""

from typing import Any

import numpy as np
import polars as pl

NAMES = ("kettle", "oven", "lamp", "fridge", "heater", "pump")
HOUSES = ("north", "north", "south", "south", "east", "east")


def loads(rounds: int = 12, seed: int = 5, devices: int = 6) -> pl.DataFrame:
    """Watts of a few devices in three houses, every round."""
    draw = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "device": [NAMES[place % 6] + "+" * (place // 6) for place in range(devices)] * rounds,
            "house": [HOUSES[place % 6] for place in range(devices)] * rounds,
            "minute": np.repeat(np.arange(1, rounds + 1), devices),
            "watts": draw.integers(5, 100, rounds * devices).astype(float),
        }
    )


def rehearsal(**changes: Any) -> dict[str, Any]:
    """A rehearsal of `loads`, sections merged with `changes`."""
    base: dict[str, Any] = {
        "schema_version": 1,
        "mode": "rehearsal",
        "seed": 1,
        "data": {
            "person": "device",
            "time": "minute",
            "private": "watts",
            "public": ["house"],
            "lower": 4.0,
            "upper": 104.0,
        },
        "randomize": {"randomizer": "budget_laplace", "epsilon": 1.0, "beta": 0.5, "rho": 0.9},
        "shuffle": {"shuffler": "rase", "groups": {"labels": "house"}},
        "estimate": {"window": 4},
    }
    for key, value in changes.items():
        base[key] = {**base.get(key, {}), **value} if isinstance(value, dict) else value
    return base


def release(**changes: Any) -> dict[str, Any]:
    """A release of `loads`, sections merged with `changes`."""
    base = rehearsal(mode="release", **changes)
    del base["seed"]
    return base

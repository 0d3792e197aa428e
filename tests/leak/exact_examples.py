"""Random exact laws, channels and gains for the leakage tests."""

from typing import Any

import numpy as np

from dovetail.leak.qif.inputs import normalize

SEEDS = range(12)


def weights(generator: np.random.Generator, *shape: int) -> Any:
    """Small whole numbers with some zeros, none of them alone in a row."""
    drawn = generator.integers(0, 6, size=shape)
    drawn[..., 0] += 1
    return drawn


def situation(seed: int) -> tuple[Any, Any, Any]:
    """Prior (k,), channel (k, m) and gain (actions, k) with k, m and actions between 2 and 4."""
    generator = np.random.default_rng(seed)
    k, m, actions = generator.integers(2, 5, size=3)
    return normalize(weights(generator, k)), normalize(weights(generator, k, m)), weights(generator, actions, k)


def channel(seed: int, inputs: int, outputs: int) -> Any:
    return normalize(weights(np.random.default_rng([seed, inputs, outputs]), inputs, outputs))

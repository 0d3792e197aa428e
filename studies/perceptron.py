"""A perceptron in numpy alone, for studies that train small networks without a deep-learning package."""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.floating[Any]]

CHANNELS = 16  # of the convolution
MOMENTUM = 0.99  # of a slow network that follows
TINY = 1e-30  # added to moments, so that those of dead units do not become numbers that processors are slow with


class Network:
    """Dense layers with rectifiers between them, trained by Adam.

    With `places` (patches, numbers of a patch) a convolution comes first: one dense layer for all patches.
    """

    def __init__(
        self, sizes: tuple[int, ...], rng: np.random.Generator, *, places: NDArray[np.int64] | None = None
    ) -> None:
        self.places = places
        shapes = list(pairwise(sizes))
        if places is not None:
            shapes = [(places.shape[1], CHANNELS), (len(places) * CHANNELS, sizes[1]), *shapes[1:]]
        self.weights = [
            (np.float32(rng.normal(size=shape) * np.sqrt(2 / shape[0])), np.zeros(shape[1], np.float32))
            for shape in shapes
        ]
        self.moments = [[[np.zeros_like(one), np.zeros_like(one)] for one in pair] for pair in self.weights]
        self.steps = 0

    def forward(self, rows: Rows) -> list[Rows]:
        """What goes into each layer, and at the end the output; the last but one is the backbone."""
        found = [rows if self.places is None else rows[:, self.places]]
        for number, (weight, shift) in enumerate(self.weights):
            made = (found[-1] @ weight + shift).reshape(len(rows), -1)
            found.append(made if number == len(self.weights) - 1 else np.maximum(made, 0.0))
        return found

    def step(self, found: list[Rows], slope: Rows, *, rate: float) -> Rows:
        """Descend along the slope at the output of `forward`; the slope at its input."""
        self.steps += 1
        for number in reversed(range(len(self.weights))):
            given, (weight, shift) = found[number], self.weights[number]
            back = slope.reshape(*given.shape[:-1], len(shift))
            flat = back.reshape(-1, len(shift))
            slope = back @ weight.T * (given > 0.0 if number else 1.0)
            slopes = given.reshape(-1, len(weight)).T @ flat, flat.sum(axis=0)
            for value, (mean, square), towards in zip((weight, shift), self.moments[number], slopes, strict=True):
                mean += 0.1 * (towards + TINY - mean)
                square += 0.001 * (towards**2 + TINY - square)
                value -= (
                    rate / (1 - 0.9**self.steps) * mean / (np.sqrt(square / (1 - 0.999**self.steps)) + 1e-8)
                ).astype(value.dtype)
        return slope

    def follow(self, other: "Network") -> None:
        """Move a hundredth of the way to another network's weights."""
        for mine, theirs in zip(self.weights, other.weights, strict=True):
            for slow, fast in zip(mine, theirs, strict=True):
                slow += (1.0 - MOMENTUM) * (fast - slow)

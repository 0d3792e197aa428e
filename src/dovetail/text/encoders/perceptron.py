"""A multilayer perceptron that is fitted to public documents: its values, its slopes, and steps down them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Layers = tuple[tuple[Doubles, Doubles], ...]  # weights (in, out) and biases (out,)


def forward(layers: Layers, rows: Doubles) -> list[Doubles]:
    """Rows (n, d) and the values of every layer; all but the last are cut at 0."""
    found = [rows]
    for place, (weights, biases) in enumerate(layers):
        made = found[-1] @ weights + biases
        found.append(made if place == len(layers) - 1 else np.maximum(made, 0.0))
    return found


def loss_and_slopes(
    layers: Layers, rows: Doubles, owners: NDArray[np.int64], member: NDArray[np.int64]
) -> tuple[float, Layers]:
    r"""Cross-entropy of clusters, predicted by the last layer from the mean of a document's recoded unit rows.

    .. math:: -\frac{1}{n} \sum_x \log \mathrm{softmax}_{c(x)} \Bigl(L\, \tfrac{1}{k} \sum_{s \in x}
              \tfrac{H(s)}{|H(s)|}\Bigr)

    Parameters
    ----------
    rows : float array (k, d)
        Sentences of all documents.
    owners : int array (k,)
        The document of each, from 0 to n - 1, each at least once.
    member : int array (n,)
        The cluster of each document.
    """
    *hidden, (weights, biases) = layers
    values = forward(tuple(hidden), rows)
    length = np.maximum(np.linalg.norm(values[-1], axis=1, keepdims=True), 1e-12)
    unit, sizes = values[-1] / length, np.bincount(owners)[:, None]
    means = _by_owner(unit, owners, len(member)) / sizes
    logits = means @ weights + biases
    logits -= logits.max(axis=1, keepdims=True)
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    each = np.arange(len(member))
    loss = -float(np.log(np.maximum(chances[each, member], 1e-300)).mean())
    chances[each, member] -= 1.0
    slope = chances / len(member)
    slopes = [(means.T @ slope, slope.sum(axis=0))]
    turn = (slope @ weights.T / sizes)[owners]
    turn = (turn - unit * (unit * turn).sum(axis=1, keepdims=True)) / length
    for place in range(len(hidden) - 1, -1, -1):
        slopes.append((values[place].T @ turn, turn.sum(axis=0)))
        turn = turn @ hidden[place][0].T * (values[place] > 0)
    return loss, tuple(slopes[::-1])


def _by_owner(rows: Doubles, owners: NDArray[np.int64], count: int) -> Doubles:
    total = np.zeros((count, rows.shape[1]))
    np.add.at(total, owners, rows)
    return total


@dataclass(frozen=True, eq=False)
class Adam:
    """Steps with momentum, each scaled by its slope's size.

    Source
    ------
    Kingma, Ba (2015), Adam: A Method for Stochastic Optimization, ICLR, Algorithm 1.
    """

    first: tuple[Doubles, ...]
    second: tuple[Doubles, ...]
    steps: int = 0
    rate: float = 1e-3

    @classmethod
    def of(cls, layers: Layers) -> Self:
        """At the start, for parameters of these shapes."""
        nothing = tuple(np.zeros_like(part) for layer in layers for part in layer)
        return cls(nothing, nothing)

    def step(self, layers: Layers, slopes: Layers) -> tuple[Self, Layers]:
        """The state and the parameters after one step."""
        flat = [part for layer in slopes for part in layer]
        first = tuple(0.9 * old + 0.1 * new for old, new in zip(self.first, flat, strict=True))
        second = tuple(0.999 * old + 0.001 * new**2 for old, new in zip(self.second, flat, strict=True))
        done = self.steps + 1
        moves = [
            self.rate * (one / (1 - 0.9**done)) / (np.sqrt(two / (1 - 0.999**done)) + 1e-8)
            for one, two in zip(first, second, strict=True)
        ]
        moved = [part - move for part, move in zip((p for layer in layers for p in layer), moves, strict=True)]
        state = type(self)(first, second, done, self.rate)
        return state, tuple(zip(moved[::2], moved[1::2], strict=True))

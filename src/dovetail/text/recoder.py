"""A recoder: public layers on top of an encoder that keep clusters of public documents and move them apart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dovetail.text.encoders import UNIT, Rows, SentenceEncoder, SentenceModel, SVDEncoder

# A multilayer perceptron that is fitted to public documents: its values, its slopes, and steps down them.


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


BASES: dict[str, type[SentenceEncoder]] = {one.name: one for one in (SVDEncoder, SentenceModel)}


@dataclass(frozen=True, eq=False)
class RecodedEncoder(SentenceEncoder):
    r"""An encoder followed by public layers, sentence by sentence.

    .. math:: g'(s) = H(g(s))

    Parameters
    ----------
    base : SentenceEncoder
        G, as it was.
    layers : tuple of (weights, biases)
        H, a multilayer perceptron from d to d numbers; fitted to public documents by `fit_recoder`.

    Source
    ------
    Meehan, Mrini, Chaudhuri (2022), section 3.4.3.
    """

    name = "recoded"

    base: SentenceEncoder
    layers: Layers = field(repr=False)

    @property
    def dimension(self) -> int:
        return int(self.layers[-1][0].shape[1])

    def vector(self, sentence: str) -> NDArray[np.float64]:
        return np.asarray(self.recode(self.base.encode([sentence]))[0])

    def recode(self, rows: Rows) -> NDArray[np.float64]:
        """Vectors (n, d) of rows of the base, one at a time; a row without direction stays without one."""
        table = [forward(self.layers, row[None, :] / UNIT)[-1][0] * bool(row.any()) for row in rows]
        return np.array(table).reshape(len(rows), self.dimension)

    def state(self) -> dict[str, Any]:
        made: dict[str, Any] = {"base": self.base.name, "layers": len(self.layers)}
        for place, (weights, biases) in enumerate(self.layers):
            made |= {f"w{place}": weights, f"b{place}": biases}
        return made | {f"base_{name}": part for name, part in self.base.state().items()}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        below = {name.removeprefix("base_"): part for name, part in state.items() if name.startswith("base_")}
        base = BASES[str(state["base"])].restore(below)
        return cls(base, tuple((state[f"w{place}"], state[f"b{place}"]) for place in range(int(state["layers"]))))

"""A recoder: public layers on top of an encoder that keep clusters of public documents and move them apart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dovetail.text.encoders.encoder import SentenceEncoder
from dovetail.text.encoders.perceptron import Layers, forward
from dovetail.text.encoders.sentence_model import SentenceModel
from dovetail.text.encoders.svd import SVDEncoder
from dovetail.text.integer_rows import UNIT, Rows

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

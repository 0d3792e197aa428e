r"""The noisy sort of a release in files: every row draws its own noise, and a sort by noisy scores is the order.

.. math:: \mathrm{key}_i = a_c (s_i - s_{\min}) + N_i, \qquad
          \text{in the order of } (\text{component}, \mathrm{key}, \mathrm{AES}(id_i))

The scores are those of `NoisySort`, the noise is its exact discrete Laplace number from the row's own stream, and
ties are broken by the person's key: uniformly, as there. Where partitions are cut decides nothing but their sizes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy, simulation
from dovetail.core.entropy.keyed import KeyedEntropy
from dovetail.core.numeric.geometric import discrete_laplace
from dovetail.scale.orders.arrangement import Arrangement, Codes, Keys, Marks, changed, codes_of, refuse_twins
from dovetail.scale.orders.line import Fitted, Line
from dovetail.scale.passes.rows import Rows
from dovetail.scale.secrets import Secret
from dovetail.shuffle.noisy_sort import RATE, NoisySort

_BEYOND = 64 * RATE.denominator // RATE.numerator  # steps of noise beyond which places are not told apart
_SEEN = 256  # sampled rows of each partition, from which the cuts are read
_BITS = 62  # of a place among all components


@dataclass(frozen=True, eq=False)
class NoisyPlaces(Arrangement):
    """The order of a noisy sort.

    Parameters
    ----------
    line : Line
    base : int array (labels,)
        Scaled score of each label above the smallest of its component.
    cuts : uint64 array (parts - 1,)
        Places among all components at which a new partition begins.
    starts : int array (parts + 1,)
        Rows before each partition, once they are counted.
    """

    line: Line
    base: NDArray[np.int64] = field(repr=False)
    cuts: NDArray[np.uint64] = field(repr=False)
    starts: NDArray[np.int64] | None = field(default=None, repr=False)

    shuffler: ClassVar[str] = NoisySort.name

    @classmethod
    def of(cls, fitted: Fitted, parts: int) -> Self:
        """The order of a fitted shuffler in about so many even partitions."""
        shuffler, line = fitted.shuffler, fitted.line
        scores = fitted.of_labels(shuffler.scores)
        low = np.full(line.component.max() + 1, np.iinfo(np.int64).max)
        np.minimum.at(low, line.component, scores)
        base = (scores - low[line.component]) * shuffler.scales[line.component]
        whole = cls(line, base, np.empty(0, dtype=np.uint64))
        return cls(line, base, whole.even_cuts(parts, simulation(0)))

    @property
    def parts(self) -> int:  # type: ignore[override]
        return len(self.cuts) + 1

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.line.names

    @property
    def marks(self) -> tuple[np.dtype[Any], ...]:
        return np.dtype(np.int64), np.dtype(np.uint32)

    def counted(self, counts: dict[str, int]) -> NoisyPlaces:
        """With the number of rows of each partition."""
        sizes = [counts.get(str(part), 0) for part in range(self.parts)]
        return NoisyPlaces(self.line, self.base, self.cuts, np.append(0, np.cumsum(sizes)))

    def send(self, rows: Rows, keys: Keys, secret: Secret) -> tuple[NDArray[np.int64], Marks]:
        codes = codes_of(self.names, rows.groups, rows.n)
        noisy = self._noisy(codes, KeyedEntropy(secret.of(f"noise {self.shuffler}"), rows.ids))
        part = np.searchsorted(self.cuts, self._place(codes, noisy), side="right")
        return part, (noisy, self.line.component[codes].astype(np.uint32))

    def order(self, part: int, keys: Keys, marks: Marks, secret: Secret) -> tuple[NDArray[np.int64], Codes]:
        noisy, component = marks
        order = np.lexsort((keys[:, 1], keys[:, 0], noisy, component))
        refuse_twins(keys[order])
        if self.starts is None or len(keys) != self.starts[part + 1] - self.starts[part]:
            raise changed()
        return order, self.line.codes_at(int(self.starts[part]), int(self.starts[part + 1]))

    def even_cuts(self, parts: int, rng: Entropy) -> NDArray[np.uint64]:
        """Where places are cut so that partitions are about even: read off a sample of the public law."""
        line = self.line
        places = (np.arange(_SEEN * parts) * line.n // (_SEEN * parts)).astype(np.int64)
        codes = np.asarray(line.along[np.searchsorted(np.cumsum(line.sizes[line.along]), places, side="right")])
        seen = np.sort(self._place(codes, self._noisy(codes, rng)))
        return np.unique(seen[_SEEN::_SEEN]) if parts > 1 else np.empty(0, dtype=np.uint64)

    def _noisy(self, codes: Codes, rng: Entropy) -> NDArray[np.int64]:
        return self.base[codes] + discrete_laplace(RATE, codes.size, rng)

    def _place(self, codes: Codes, noisy: NDArray[np.int64]) -> NDArray[np.uint64]:
        """A number that never falls along (component, key)."""
        offsets, reach, shift = self._room
        component = self.line.component[codes]
        within = np.clip(noisy + _BEYOND, 0, reach[component]).astype(np.uint64) >> np.uint64(shift)
        return np.asarray(offsets[component] + within)

    @cached_property
    def _room(self) -> tuple[NDArray[np.uint64], NDArray[np.int64], int]:
        """Where the places of each component begin, how far its keys reach, and by how many bits they are cut."""
        reach = np.zeros(self.line.component.max() + 1, dtype=np.int64)
        np.maximum.at(reach, self.line.component, self.base)
        reach += 2 * _BEYOND
        total = sum(reach.tolist()) + reach.size
        shift = max(0, total.bit_length() - _BITS)
        widths = (reach >> shift) + 1
        return (np.cumsum(widths) - widths).astype(np.uint64), reach, shift

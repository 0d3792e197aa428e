"""Randomness that a test chooses word by word, and the reports that a randomizer can make."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy, Words
from dovetail.core.stages import FrequencyRandomizer
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.laplace import Laplace
from dovetail.randomize.local_hashing import LocalHashing
from dovetail.randomize.unary import Unary

FREQUENCY: list[FrequencyRandomizer] = [
    *KRR.examples(),
    *Hadamard.examples(),
    *Unary.examples(),
    *LocalHashing.examples(),
]
TABULATED = [r for r in FREQUENCY if not isinstance(r, LocalHashing)]
NUMERIC = list(Laplace.examples())


class Chosen(Entropy):
    """Returns exactly these words, in order, and fails when they run out."""

    provenance = "simulation"

    def __init__(self, words: Sequence[int]) -> None:
        self.left = list(words)

    def words(self, count: int) -> Words:
        given, self.left = self.left[:count], self.left[count:]
        assert len(given) == count, "the test chose too few words"
        return np.array(given, dtype=np.uint64)


def all_reports(randomizer: FrequencyRandomizer) -> NDArray[Any]:
    """Every possible report, in the order of the channel's columns."""
    if isinstance(randomizer, Unary):
        bits = np.arange(1 << randomizer.k)[:, None] >> np.arange(randomizer.k) & 1
        return np.packbits(bits.astype(np.uint8), axis=1)
    return np.arange(randomizer.channel().shape[1])


def columns(randomizer: FrequencyRandomizer, reports: NDArray[Any]) -> NDArray[np.int64]:
    """The channel's column of each report."""
    if isinstance(randomizer, Unary):
        return np.unpackbits(reports, axis=1)[:, : randomizer.k] @ (1 << np.arange(randomizer.k))
    return reports


def one_by_one(randomizer: FrequencyRandomizer, reports: NDArray[Any]) -> NDArray[np.float64]:
    """What each report alone adds to n times the estimate: (reports, k)."""
    return np.array([randomizer.invert(randomizer.tally(reports[i : i + 1]), 1) for i in range(len(reports))])

"""Randomness that a test chooses word by word, and the reports that a randomizer can make."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy, Words
from dovetail.core.errors import UnsupportedError
from dovetail.core.stages import RANDOMIZERS, FrequencyRandomizer, NumericRandomizer

FREQUENCY: list[FrequencyRandomizer] = [
    example for kind in RANDOMIZERS if issubclass(kind, FrequencyRandomizer) for example in kind.examples()
]
NUMERIC: list[NumericRandomizer] = [
    example for kind in RANDOMIZERS if issubclass(kind, NumericRandomizer) for example in kind.examples()
]
KINDS: list[type[FrequencyRandomizer]] = [kind for kind in RANDOMIZERS if issubclass(kind, FrequencyRandomizer)]


def tabulated(randomizer: FrequencyRandomizer) -> bool:
    """Whether its channel has a matrix."""
    try:
        return randomizer.channel().matrix().size > 0
    except UnsupportedError:
        return False


TABULATED = [randomizer for randomizer in FREQUENCY if tabulated(randomizer)]


class Chosen(Entropy):
    """Returns exactly these words, in order, and fails when they run out."""

    provenance = "simulation"

    def __init__(self, words: Sequence[int]) -> None:
        self.left = list(words)

    def words(self, count: int) -> Words:
        given, self.left = self.left[:count], self.left[count:]
        assert len(given) == count, "the test chose too few words"
        return np.array(given, dtype=np.uint64)


def one_by_one(randomizer: FrequencyRandomizer, reports: NDArray[Any]) -> NDArray[np.float64]:
    """What each report alone adds to n times the estimate: (reports, k)."""
    return np.array([randomizer.invert(randomizer.tally(reports[i : i + 1]), 1) for i in range(len(reports))])

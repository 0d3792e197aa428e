"""Words for the device's samplers: chosen by the test one by one, or from its simulation."""

from collections.abc import Sequence

from dovetail.core.entropy import Entropy
from dovetail_protocol.exact_thresholds import Words


class ChosenBits(Words):
    """Returns exactly these numbers, in order, whatever they are asked for, and fails when they run out."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.left = list(numbers)

    def bits(self, count: int) -> int:
        number = self.left.pop(0)
        assert 0 <= number < 1 << count, "the test chose too large a number"
        return number


class SimulatedBits(Words):
    """The simulation of a test."""

    def __init__(self, rng: Entropy) -> None:
        self.rng = rng

    def bits(self, count: int) -> int:
        words = self.rng.words(-(-count // 64))
        return int.from_bytes(words.tobytes()) >> (64 * words.size - count)

"""The randomness of a device: the operating system's, and nothing else.

No seeded generator lives here, so that no configuration can ever make a device predictable. A test hands in its own
`Words` with the bits it has chosen; simulations belong to the analyst's package.
"""

import os
from abc import ABC, abstractmethod
from typing import final

from dovetail_device.checks import whole


class Words(ABC):
    """A source of random bits; law: all bits ever returned are independent and fair."""

    @abstractmethod
    def bits(self, count: int) -> int:
        """A uniform whole number of `count` bits, at least 0 bits."""

    @final
    def word(self) -> int:
        """A uniform 64-bit word."""
        return self.bits(64)

    @final
    def below(self, bound: int) -> int:
        """A whole number, exactly uniform on [0, bound), by rejection; bound at least 1."""
        size = (whole("bound", bound, least=1) - 1).bit_length()
        while (drawn := self.bits(size)) >= bound:
            pass
        return drawn


@final
class _Device(Words):
    def bits(self, count: int) -> int:
        size = (count + 7) // 8
        return int.from_bytes(os.urandom(size)) >> (8 * size - count)

    def __repr__(self) -> str:
        return "device()"


def device() -> Words:
    """Randomness that protects people: `os.urandom` for every draw. No state is kept; safe under fork and threads."""
    return _Device()

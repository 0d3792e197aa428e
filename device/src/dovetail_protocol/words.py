"""Random bits as the exact samplers ask for them; where they come from is decided by whoever runs a sampler."""

from abc import ABC, abstractmethod
from typing import final

from dovetail_protocol.checks import whole


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

"""The randomness of a device: the operating system's, and nothing else.

No seeded generator lives here, so that no configuration can ever make a device predictable. A test hands in its own
`Words` with the bits it has chosen; simulations belong to the analyst's package.
"""

import os
from typing import final

from dovetail_protocol.exact_thresholds import Words


@final
class _SystemEntropy(Words):
    def bits(self, count: int) -> int:
        size = (count + 7) // 8
        return int.from_bytes(os.urandom(size)) >> (8 * size - count)

    def __repr__(self) -> str:
        return "system_entropy()"


def system_entropy() -> Words:
    """Randomness that protects people: `os.urandom` for every draw. No state is kept; safe under fork and threads."""
    return _SystemEntropy()

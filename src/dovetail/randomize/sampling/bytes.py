"""Reports as devices encode them: whole numbers of fixed length, big endian."""

import numpy as np
from numpy.typing import NDArray

from dovetail.core.stages import Encoded, Reports, Valid


def numbers_below(count: int, encoded: Encoded) -> tuple[Reports, Valid]:
    """Rows as numbers (n,), and which of them are below `count`."""
    numbers = whole_words(encoded)
    return numbers.astype(np.int64), numbers < np.uint64(count)


def whole_words(encoded: Encoded) -> NDArray[np.uint64]:
    """Rows of up to eight bytes as numbers (n,)."""
    padded = np.zeros((len(encoded), 8), dtype=np.uint8)
    padded[:, 8 - encoded.shape[1] :] = encoded
    return padded.view(">u8")[:, 0].astype(np.uint64)

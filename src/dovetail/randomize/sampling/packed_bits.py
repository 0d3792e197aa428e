"""Reports of one bit for each symbol, packed: symbol x is bit 7 - x mod 8 of byte x // 8, and the padding is zero."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.errors import DataError
from dovetail.randomize.sampling.domain import offenders

Packed = NDArray[np.uint8]  # (n, ceil(k / 8))

_SIZES = np.array([bin(byte).count("1") for byte in range(256)], dtype=np.uint8)


def check_packed_bits(reports: ArrayLike, k: int) -> Packed:
    """`reports` as packed bits of k symbols each."""
    array: NDArray[Any] = np.asarray(reports)
    width, padding = -(-k // 8), -k % 8
    if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != width:
        raise DataError(f"`reports` must be packed bits, uint8 (n, {width}), got {array.dtype} {array.shape}.")
    padded = (array[:, -1] & ((1 << padding) - 1)) != 0
    if padded.any():
        raise offenders("reports", f"packed bits that are zero from bit {k}", array, padded)
    return array


def row_sizes(reports: Packed) -> NDArray[np.int64]:
    """How many bits of each report are set (n,)."""
    return np.asarray(_SIZES[reports].sum(axis=1, dtype=np.int64))


def bit_counts(reports: Packed) -> NDArray[np.int64]:
    """How often each bit is set (8 width,), first bit of a byte first."""
    from dovetail.randomize.sampling.report_kernels import count_ones

    return np.asarray(count_ones(reports).reshape(-1))

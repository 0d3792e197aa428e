"""Biased coins, exactly: a random byte decides nearly always, and 56 more bits decide every tie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError
from dovetail.core.stages import Encoded, Reports, Valid
from dovetail.randomize.sampling.domain import offenders
from dovetail_protocol.mechanism import Mechanism

_TAIL = 56  # bits below the first byte


def coins(mass: int, count: int, rng: Entropy) -> NDArray[np.bool_]:
    """`count` independent coins, each true with probability exactly mass / 2^64.

    Parameters
    ----------
    mass : int, 0 to 2^64 - 1

    Notes
    -----
    A uniform 64-bit word is below `mass` when its first byte is below that of `mass`; only if both are equal
    (one coin in 256) the other bits are drawn.
    """
    top, rest = np.uint8(mass >> _TAIL), np.uint64(mass & ((1 << _TAIL) - 1))
    first = rng.narrow(count, np.uint8)
    result = first < top
    if rest:  # otherwise a tie is never below
        ties = np.flatnonzero(first == top)
        if ties.size:
            result[ties] = (rng.owners(ties, count).words(ties.size) >> np.uint64(64 - _TAIL)) < rest
    return np.asarray(result)


# Reports as devices encode them: whole numbers of fixed length, big endian.


def numbers_below(count: int, encoded: Encoded) -> tuple[Reports, Valid]:
    """Rows as numbers (n,), and which of them are below `count`."""
    numbers = whole_words(encoded)
    return numbers.astype(np.int64), numbers < np.uint64(count)


def whole_words(encoded: Encoded) -> NDArray[np.uint64]:
    """Rows of up to eight bytes as numbers (n,)."""
    padded = np.zeros((len(encoded), 8), dtype=np.uint8)
    padded[:, 8 - encoded.shape[1] :] = encoded
    return padded.view(">u8")[:, 0].astype(np.uint64)


# Work in pieces that stay in the cache: page faults of big temporaries cost more than the keystream.


CHUNK = 1 << 17  # values, so that words and reports of one piece fit the second-level cache


def chunks(n: int, size: int = CHUNK) -> Iterator[slice]:
    """Slices that cover 0..n-1 in order.

    >>> list(chunks(5, size=2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


# Reports of one bit for each symbol, packed: symbol x is bit 7 - x mod 8 of byte x // 8, and the padding is zero.


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
    """Count the bits set in each report (n,)."""
    return np.asarray(_SIZES[reports].sum(axis=1, dtype=np.int64))


def bit_counts(reports: Packed) -> NDArray[np.int64]:
    """Count how often each bit is set (8 width,), first bit of a byte first."""
    from dovetail.randomize.sampling.kernels import count_ones

    return np.asarray(count_ones(reports).reshape(-1))


# The analyst's randomizer takes its parameters from the device's mechanism: one check, one set of thresholds.


JUST_BELOW = 1.0 - 1e-12  # of an epsilon at which a mechanism changes its shape


def adopt(randomizer: Any, mechanism: Mechanism) -> None:
    """Give a frozen randomizer the checked parameters of `mechanism`, which has the same ones."""
    for field in fields(randomizer):
        object.__setattr__(randomizer, field.name, getattr(mechanism, field.name))

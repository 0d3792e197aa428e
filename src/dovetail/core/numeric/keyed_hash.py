"""BLAKE2b with a key (RFC 7693) of many short texts at once, which a loop over `hashlib` would take a second for."""

import numpy as np
from numpy.typing import NDArray

from dovetail.core.numeric.compiled import njit

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]

_START = np.array(
    [
        0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
        0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
    ],
    dtype=np.uint64,
)  # fmt: skip
_ORDER = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    ],
    dtype=np.uint8,
)
_BLOCK = 128  # bytes


def keyed_hashes(texts: Bytes, ends: NDArray[np.int64], *, key: bytes, size: int) -> Bytes:
    """Digests (n, size), as `hashlib.blake2b` has them, of texts one after the other, text i up to `ends[i]`.

    >>> keyed_hashes(np.frombuffer(b"ab", np.uint8), np.array([1, 2]), key=bytes(32), size=8).shape
    (2, 8)
    """
    digests = np.empty((ends.size, 8), dtype=np.uint64)
    state = _START.copy()
    state[0] ^= np.uint64(0x01010000 ^ (len(key) << 8) ^ size)
    first = np.zeros(_BLOCK, dtype=np.uint8)
    first[: len(key)] = np.frombuffer(key, dtype=np.uint8)
    _hash_all(np.ascontiguousarray(texts), ends, state, first, digests)
    return np.ascontiguousarray(digests.view(np.uint8)[:, :size])


@njit(cache=True, nogil=True)
def _hash_all(texts: Bytes, ends: NDArray[np.int64], start: Words, first: Bytes, digests: Words) -> None:
    begin, keyed = 0, start.copy()
    _compress(keyed, first.view(np.uint64), _BLOCK, False)
    block = np.zeros(_BLOCK, dtype=np.uint8)
    words = block.view(np.uint64)
    for i in range(ends.size):
        state, length = digests[i], ends[i] - begin
        state[:] = keyed
        if length == 0:  # the key is the last block then
            state[:] = start
            _compress(state, first.view(np.uint64), _BLOCK, True)
        done = 0
        while done < length:
            taken = min(_BLOCK, length - done)
            words[:] = 0
            for j in range(taken):
                block[j] = texts[begin + done + j]
            done += taken
            _compress(state, words, _BLOCK + done, done == length)
        begin = ends[i]


@njit(inline="always")
def _mix(
    a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64, x: np.uint64, y: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """The mixing function G, RFC 7693 section 3.1."""
    a = a + b + x
    d ^= a
    d = (d >> np.uint64(32)) | (d << np.uint64(32))
    c = c + d
    b ^= c
    b = (b >> np.uint64(24)) | (b << np.uint64(40))
    a = a + b + y
    d ^= a
    d = (d >> np.uint64(16)) | (d << np.uint64(48))
    c = c + d
    b ^= c
    b = (b >> np.uint64(63)) | (b << np.uint64(1))
    return a, b, c, d


@njit(cache=True, nogil=True)
def _compress(state: Words, m: Words, count: int, last: bool) -> None:
    """The compression function F, RFC 7693 section 3.2, with its sixteen words in registers."""
    v0, v1, v2, v3 = state[0], state[1], state[2], state[3]
    v4, v5, v6, v7 = state[4], state[5], state[6], state[7]
    v8, v9, v10, v11 = _START[0], _START[1], _START[2], _START[3]
    v12, v13, v14, v15 = _START[4] ^ np.uint64(count), _START[5], _START[6], _START[7]
    if last:
        v14 = ~v14
    for turn in range(12):
        order = _ORDER[turn]
        v0, v4, v8, v12 = _mix(v0, v4, v8, v12, m[order[0]], m[order[1]])
        v1, v5, v9, v13 = _mix(v1, v5, v9, v13, m[order[2]], m[order[3]])
        v2, v6, v10, v14 = _mix(v2, v6, v10, v14, m[order[4]], m[order[5]])
        v3, v7, v11, v15 = _mix(v3, v7, v11, v15, m[order[6]], m[order[7]])
        v0, v5, v10, v15 = _mix(v0, v5, v10, v15, m[order[8]], m[order[9]])
        v1, v6, v11, v12 = _mix(v1, v6, v11, v12, m[order[10]], m[order[11]])
        v2, v7, v8, v13 = _mix(v2, v7, v8, v13, m[order[12]], m[order[13]])
        v3, v4, v9, v14 = _mix(v3, v4, v9, v14, m[order[14]], m[order[15]])
    state[0] ^= v0 ^ v8
    state[1] ^= v1 ^ v9
    state[2] ^= v2 ^ v10
    state[3] ^= v3 ^ v11
    state[4] ^= v4 ^ v12
    state[5] ^= v5 ^ v13
    state[6] ^= v6 ^ v14
    state[7] ^= v7 ^ v15

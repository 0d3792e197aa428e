"""BLAKE2b with a key (RFC 7693) of many short texts at once, which a loop over `hashlib` would take a second for.

Texts of at most one block are hashed side by side: the loop over them has no branch, so the compiler makes it one of
vectors.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from dovetail.core.compiled import COMPILED, njit
from dovetail.core.extras import pl

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
State = tuple[np.uint64, ...]  # 16 words

_START = np.array(
    [
        0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
        0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
    ],
    dtype=np.uint64,
)  # fmt: skip
_BLOCK = 128  # bytes
_LANES = 256  # texts side by side: word j of text i is at j * _LANES + i


def keyed_hashes(texts: Bytes, ends: NDArray[np.int64], *, key: bytes, size: int) -> Bytes:
    """Digests (n, size), as `hashlib.blake2b` has them, of texts one after the other, text i up to `ends[i]`.

    >>> keyed_hashes(np.frombuffer(b"ab", np.uint8), np.array([1, 2]), key=bytes(32), size=8).shape
    (2, 8)
    """
    digests, texts = np.empty((ends.size, 8), dtype=np.uint64), np.ascontiguousarray(texts)
    lengths = np.diff(ends, prepend=0)
    others = np.ones(ends.size, dtype=np.bool_)
    if COMPILED:
        _hash_short(texts, ends, _after_key(key, size), digests)
        others = (lengths == 0) | (lengths > _BLOCK)
    for i in np.flatnonzero(others).tolist():
        text = texts[ends[i] - lengths[i] : ends[i]].tobytes()
        digests[i].view(np.uint8)[:size] = np.frombuffer(
            hashlib.blake2b(text, key=key, digest_size=size).digest(), dtype=np.uint8
        )
    return np.ascontiguousarray(digests.view(np.uint8)[:, :size])


def hashes_of(texts: pl.Series, key: bytes, size: int) -> Bytes:
    """The same of a column of texts."""
    ends = texts.str.len_bytes().cast(pl.Int64).cum_sum().to_numpy()
    joined = texts.str.join("").item().encode() if len(texts) else b""
    return keyed_hashes(np.frombuffer(joined, dtype=np.uint8), ends, key=key, size=size)


def _after_key(key: bytes, size: int) -> Words:
    """The state (8,) once the key, the first block, has been hashed."""
    state, block = _START.copy(), np.zeros(_BLOCK, dtype=np.uint8)
    state[0] ^= np.uint64(0x01010000 ^ (len(key) << 8) ^ size)
    block[: len(key)] = np.frombuffer(key, dtype=np.uint8)
    words, done = np.zeros(16 * _LANES, dtype=np.uint64), np.empty(8 * _LANES, dtype=np.uint64)
    words[::_LANES] = block.view(np.uint64)
    _compress(state, words, np.full(_LANES, _BLOCK, dtype=np.uint64), np.uint64(0), np.uint64(1), done)
    return done[::_LANES].copy()


@njit(cache=True, nogil=True)
def _hash_short(texts: Bytes, ends: NDArray[np.int64], keyed: Words, digests: Words) -> None:
    """The digests of all texts of 1 to 128 bytes; those of others mean nothing."""
    words, done = np.zeros(16 * _LANES, dtype=np.uint64), np.empty(8 * _LANES, dtype=np.uint64)
    counts, letters = np.empty(_LANES, dtype=np.uint64), words.view(np.uint8)
    for first in range(0, ends.size, _LANES):
        lanes = min(_LANES, ends.size - first)
        words[:] = 0
        for i in range(lanes):
            begin = ends[first + i - 1] if first + i else 0
            length = min(ends[first + i] - begin, _BLOCK)
            counts[i] = _BLOCK + length
            for k in range(length):
                letters[8 * ((k >> 3) * _LANES + i) + (k & 7)] = texts[begin + k]
        _compress(keyed, words, counts, np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(lanes), done)
        for i in range(lanes):
            for j in range(8):
                digests[first + i, j] = done[j * _LANES + i]


@njit(forceinline=True)
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


@njit(forceinline=True)
def _turn(
    v: State,
    x0: np.uint64, x1: np.uint64, x2: np.uint64, x3: np.uint64, x4: np.uint64, x5: np.uint64, x6: np.uint64,
    x7: np.uint64, x8: np.uint64, x9: np.uint64, x10: np.uint64, x11: np.uint64, x12: np.uint64, x13: np.uint64,
    x14: np.uint64, x15: np.uint64,
) -> State:  # fmt: skip
    """One of the twelve rounds, RFC 7693 section 3.2, with the words of the message in its order."""
    v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15 = v
    v0, v4, v8, v12 = _mix(v0, v4, v8, v12, x0, x1)
    v1, v5, v9, v13 = _mix(v1, v5, v9, v13, x2, x3)
    v2, v6, v10, v14 = _mix(v2, v6, v10, v14, x4, x5)
    v3, v7, v11, v15 = _mix(v3, v7, v11, v15, x6, x7)
    v0, v5, v10, v15 = _mix(v0, v5, v10, v15, x8, x9)
    v1, v6, v11, v12 = _mix(v1, v6, v11, v12, x10, x11)
    v2, v7, v8, v13 = _mix(v2, v7, v8, v13, x12, x13)
    v3, v4, v9, v14 = _mix(v3, v4, v9, v14, x14, x15)
    return v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15


@njit(cache=True, nogil=True)
def _compress(state: Words, words: Words, counts: Words, last: np.uint64, lanes: np.uint64, done: Words) -> None:
    """The compression function F, RFC 7693 section 3.2, of one block each; `last` has all bits set for the last one.

    ::

        done[j, i] = F(state, words[:, i], counts[i])[j]
    """
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    s4, s5, s6, s7 = state[4], state[5], state[6], state[7]
    for i in range(lanes):
        m0, m1, m2, m3 = (
            words[np.uint64(0 * _LANES) + i],
            words[np.uint64(1 * _LANES) + i],
            words[np.uint64(2 * _LANES) + i],
            words[np.uint64(3 * _LANES) + i],
        )
        m4, m5, m6, m7 = (
            words[np.uint64(4 * _LANES) + i],
            words[np.uint64(5 * _LANES) + i],
            words[np.uint64(6 * _LANES) + i],
            words[np.uint64(7 * _LANES) + i],
        )
        m8, m9, m10, m11 = (
            words[np.uint64(8 * _LANES) + i],
            words[np.uint64(9 * _LANES) + i],
            words[np.uint64(10 * _LANES) + i],
            words[np.uint64(11 * _LANES) + i],
        )
        m12, m13, m14, m15 = (
            words[np.uint64(12 * _LANES) + i],
            words[np.uint64(13 * _LANES) + i],
            words[np.uint64(14 * _LANES) + i],
            words[np.uint64(15 * _LANES) + i],
        )
        v = (
            s0, s1, s2, s3, s4, s5, s6, s7, _START[0], _START[1], _START[2], _START[3],
            _START[4] ^ counts[i], _START[5], _START[6] ^ last, _START[7],
        )  # fmt: skip
        # twelve rounds, each with its permutation of the words (section 2.7)
        v = _turn(v, m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15)
        v = _turn(v, m14, m10, m4, m8, m9, m15, m13, m6, m1, m12, m0, m2, m11, m7, m5, m3)
        v = _turn(v, m11, m8, m12, m0, m5, m2, m15, m13, m10, m14, m3, m6, m7, m1, m9, m4)
        v = _turn(v, m7, m9, m3, m1, m13, m12, m11, m14, m2, m6, m5, m10, m4, m0, m15, m8)
        v = _turn(v, m9, m0, m5, m7, m2, m4, m10, m15, m14, m1, m11, m12, m6, m8, m3, m13)
        v = _turn(v, m2, m12, m6, m10, m0, m11, m8, m3, m4, m13, m7, m5, m15, m14, m1, m9)
        v = _turn(v, m12, m5, m1, m15, m14, m13, m4, m10, m0, m7, m6, m3, m9, m2, m8, m11)
        v = _turn(v, m13, m11, m7, m14, m12, m1, m3, m9, m5, m0, m15, m4, m8, m6, m2, m10)
        v = _turn(v, m6, m15, m14, m9, m11, m3, m0, m8, m12, m2, m13, m7, m1, m4, m10, m5)
        v = _turn(v, m10, m2, m8, m4, m7, m6, m1, m5, m15, m11, m9, m14, m3, m12, m13, m0)
        v = _turn(v, m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15)
        v = _turn(v, m14, m10, m4, m8, m9, m15, m13, m6, m1, m12, m0, m2, m11, m7, m5, m3)
        done[i] = s0 ^ v[0] ^ v[8]
        done[np.uint64(1 * _LANES) + i] = s1 ^ v[1] ^ v[9]
        done[np.uint64(2 * _LANES) + i] = s2 ^ v[2] ^ v[10]
        done[np.uint64(3 * _LANES) + i] = s3 ^ v[3] ^ v[11]
        done[np.uint64(4 * _LANES) + i] = s4 ^ v[4] ^ v[12]
        done[np.uint64(5 * _LANES) + i] = s5 ^ v[5] ^ v[13]
        done[np.uint64(6 * _LANES) + i] = s6 ^ v[6] ^ v[14]
        done[np.uint64(7 * _LANES) + i] = s7 ^ v[7] ^ v[15]

"""The only two doors to randomness.

`system_entropy()` protects people: an AES-256-CTR keystream of the audited `cryptography` package under a key from
the operating system, fresh for every request. Nothing is kept between requests, so there is no state to fork, to
pickle, to seed or to steal afterwards. `simulation(seed)` is reproducible and says so in whatever it makes. Where a
task may be retried on another machine, `keyed.KeyedEntropy` deals the same protected words to the same person again.
"""

from __future__ import annotations

import hmac
import os
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import whole
from dovetail.core.errors import ParameterError

Words = NDArray[np.uint64]  # (count,), independent and uniform on [0, 2**64)
Narrow = TypeVar("Narrow", np.uint32, np.uint16, np.uint8)
Permutation = NDArray[np.int64]  # (n,), each of 0..n-1 once
Rows = slice | NDArray[np.integer[Any]]  # some of the rows that are drawn for

_ZEROS = bytes(1 << 18)  # plaintext of the keystream, one block that stays in the cache
_SLACK = 16  # bytes that `update_into` wants beyond the payload


class Entropy(ABC):
    """A source of random words; law: all words ever returned are independent and uniform on [0, 2^64).

    Raises
    ------
    ParameterError
        For a number of words or of things to permute that is no whole number, at least 0.

    Examples
    --------
    >>> isinstance(simulation(1), Entropy), isinstance(system_entropy(), Entropy), system_entropy().provenance
    (True, True, 'device')
    """

    provenance: ClassVar[Literal["device", "simulation"]]
    seed: int | None = None  # what a simulation starts from; nothing else has one

    @abstractmethod
    def words(self, count: int) -> Words:
        """`count` independent uniform 64-bit words."""

    def at(self, rows: Rows) -> Entropy:
        """Source of randomness for some of the rows: itself, unless each row has a stream of its own.

        Mechanisms ask it wherever they want words for a part of their rows, so that the words of a row do not depend
        on which other rows there are.
        """
        return self

    def owners(self, places: NDArray[np.int64], count: int) -> Entropy:
        """Generator of the rows to which these places of a request for `count` words belong, once for each place."""
        return self

    def narrow(self, count: int, dtype: type[Narrow]) -> NDArray[Narrow]:
        """`count` independent uniform words of a narrower type: uint32, uint16 or uint8."""
        per_word = 8 // np.dtype(dtype).itemsize
        return self.words(-(-count // per_word)).view(dtype)[:count]

    @final
    def below(self, bound: int, count: int) -> NDArray[np.int64]:
        """`count` integers, exactly uniform on [0, bound), by rejection; 1 <= bound <= 2^63."""
        bound = whole("bound", bound, least=1, most=1 << 63)
        limit = (1 << 64) // bound * bound  # the largest multiple of `bound`: words beyond it are redrawn
        words = self.words(count)
        if limit < 1 << 64:
            late = np.flatnonzero(words >= np.uint64(limit))
            while late.size:
                words[late] = self.owners(late, count).words(late.size)
                late = late[words[late] >= np.uint64(limit)]
        return (words % np.uint64(bound)).astype(np.int64)

    @final
    def permutation(self, n: int) -> Permutation:
        """A uniform permutation of 0..n-1 (Fisher-Yates with rejection)."""
        from dovetail.core.kernels import fisher_yates

        n = whole("n", n, least=0)
        result = np.arange(n, dtype=np.int64)
        todo = n
        while todo > 1:  # a second round only if rejections used up the spare words
            todo = fisher_yates(result, todo, self.words(todo + 64))
        return result


class _SystemEntropy(Entropy):
    provenance = "device"

    def words(self, count: int) -> Words:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES
        from cryptography.hazmat.primitives.ciphers.modes import CTR

        payload = 8 * whole("count", count, least=0)
        stream = Cipher(AES(os.urandom(32)), CTR(bytes(16))).encryptor()
        buffer = np.empty(payload + _SLACK, dtype=np.uint8)
        view = buffer.data
        for start in range(0, payload, len(_ZEROS)):
            block = memoryview(_ZEROS)[: min(len(_ZEROS), payload - start)]
            stream.update_into(block, view[start:])
        return buffer[:payload].view(np.uint64)

    def __repr__(self) -> str:
        return "system_entropy()"

    def __reduce__(self) -> tuple[object, ...]:
        return (system_entropy, ())


class _Simulation(Entropy):
    provenance = "simulation"

    def __init__(self, seed: int) -> None:
        self.seed: int = whole("seed", seed, least=0)
        self._bits = np.random.PCG64DXSM(self.seed)

    def words(self, count: int) -> Words:
        return np.asarray(self._bits.random_raw(whole("count", count, least=0)), dtype=np.uint64)

    def __repr__(self) -> str:
        return f"simulation({self.seed})"


def system_entropy() -> Entropy:
    """Randomness that protects people: AES-256-CTR keyed by the operating system for each request.

    Every request draws its own 256-bit key with `os.urandom` and forgets it. Safe under fork and threads.

    Raises
    ------
    ParameterError
        From its methods, for counts that are no whole number, at least 0.

    Notes
    -----
    The key never leaves the call, so a later compromise of the process does not reveal earlier draws.

    Examples
    --------
    >>> system_entropy().words(3).shape
    (3,)
    """
    return _SystemEntropy()


def simulation(seed: int) -> Entropy:
    """Reproducible randomness for studies and tests (PCG64-DXSM); it protects nobody.

    Parameters
    ----------
    seed : int, at least 0

    Raises
    ------
    ParameterError
        For a seed that is no whole number, at least 0.

    Examples
    --------
    >>> simulation(1).permutation(5)
    array([0, 4, 1, 3, 2])
    >>> simulation(1).provenance
    'simulation'
    """
    return _Simulation(seed)


def entropy_or_system(rng: object) -> Entropy:
    """`rng` itself, and the operating system's entropy where None is given; what every `rng` parameter means.

    >>> entropy_or_system(None)
    system_entropy()

    Raises
    ------
    ParameterError
        For anything else, such as a numpy Generator or a seed: whether draws protect people is never guessed.
    """
    if rng is None:
        return system_entropy()
    if isinstance(rng, Entropy):
        return rng
    raise ParameterError(
        "`rng` must be dovetail.system_entropy() or, for simulations, dovetail.simulation(seed), "
        f"got {rng!r}; use dt.simulation(seed)."
    )


# Random words that belong to people: a row's words are the same in whatever order, batch or attempt it is drawn.


Ids = NDArray[Any]  # (n,) 64-bit integers, or uint32 (n, 3): distinct for distinct people

Item = TypeVar("Item", np.uint64, np.uint32, np.uint16, np.uint8)

KEY_BYTES = 32
_BLOCK = 16  # bytes
_CACHED = 1 << 15  # blocks that are encrypted at once, so that they stay in the cache


@final
class KeyedEntropy(Entropy):
    r"""A stream of words for each row under one secret key: AES-256 of (id, number of the block).

    .. math:: \text{block } c \text{ of row } i = \mathrm{AES}_{key}(id_i \,\|\, c), \qquad c = 0, 1, 2, \dots

    For releases that several machines draw: a task that is tried again, rows that are cut into other batches and
    people in another order give the same reports, so nobody ever sends a second one. Anybody who draws in one process
    takes `system_entropy`, which keeps nothing.

    Parameters
    ----------
    key : bytes (32,)
        Secret and used for one purpose (`purpose_key`): with it and the ids, every draw can be computed again.
    ids : integer array (n,) of 64 bits, or uint32 array (n, 3)
        Distinct for distinct rows; equal ids draw the same words.

    Raises
    ------
    ParameterError
        For another key or other ids, for requests that are no multiple of the rows, and for permutations.

    Notes
    -----
    A request of m words a row takes ceil(m / 2) fresh blocks of each row, wherever its counter stands. Distinct
    blocks make the words differ from uniform ones by at most the advantage against AES-256 as a permutation and
    q^2 / 2^129, q the number of blocks: a computational promise, as that of the operating system's own generator.

    Examples
    --------
    >>> people = np.array([7, 8, 9])
    >>> all_of_them = KeyedEntropy(bytes(32), people).words(3)
    >>> bool((KeyedEntropy(bytes(32), people[[2, 0]]).words(2) == all_of_them[[2, 0]]).all())
    True
    """

    provenance: ClassVar[Literal["device", "simulation"]] = "device"

    def __init__(self, key: bytes, ids: Ids) -> None:
        if not isinstance(key, bytes) or len(key) != KEY_BYTES:
            raise ParameterError(f"`key` must be {KEY_BYTES} bytes, got a value of type {type(key).__name__}.")
        self._key = key
        self._rows: Rows = slice(0, len(ids))  # of this view, in its order
        self._low, self._next = _as_words(np.asarray(ids))  # shared by all views, `_next` moves on

    def __len__(self) -> int:
        rows = self._rows
        return rows.stop - rows.start if isinstance(rows, slice) else rows.size

    def __repr__(self) -> str:
        return f"KeyedEntropy of {len(self):,} rows"  # mute: the key is worth the table

    def __reduce__(self) -> str:
        raise TypeError("keyed entropy is not pickled: a copy would draw the same words again.")

    def at(self, rows: Rows) -> KeyedEntropy:
        """The streams of some rows of these, each going on where it stands; a row named twice draws twice."""
        view = KeyedEntropy.__new__(KeyedEntropy)
        view._key, view._low, view._next = self._key, self._low, self._next
        mine = self._rows
        if isinstance(mine, slice) and isinstance(rows, slice):
            start, stop, _ = rows.indices(len(self))
            view._rows = slice(mine.start + start, mine.start + max(start, stop))
        else:
            places = np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else rows
            view._rows = np.asarray(places + mine.start if isinstance(mine, slice) else mine[places])
        return view

    def owners(self, places: NDArray[np.int64], count: int) -> KeyedEntropy:
        return self.at(places // self._each(count))

    def words(self, count: int) -> Words:
        return self._draw(count, np.uint64)

    def narrow(self, count: int, dtype: type[Narrow]) -> NDArray[Narrow]:
        return self._draw(count, dtype)

    def _each(self, count: int) -> int:
        """Items of each row in a request for `count`."""
        rows, wanted = len(self), whole("count", count, least=0)
        if wanted % rows if rows else wanted:
            raise ParameterError(f"`count` must be a multiple of the {rows:,} rows, got {count:,}.")
        return wanted // rows if rows else 1

    def _draw(self, count: int, dtype: type[Item]) -> NDArray[Item]:
        """`count` items, those of a row side by side."""
        each, per_block = self._each(count), _BLOCK // np.dtype(dtype).itemsize
        blocks = -(-each // per_block)
        low, numbers = self._low[self._rows], self._next[self._rows]
        if not isinstance(self._rows, slice):
            numbers += _times_before(self._rows) * np.uint64(blocks << 32)
        result = np.empty((low.size, each), dtype=dtype)
        rows = max(1, _CACHED // max(1, blocks))
        encrypt = _Encryptor(self._key, min(rows, low.size) * blocks)
        for start in range(0, low.size if blocks else 0, rows):
            part = slice(start, start + rows)
            stream = encrypt(low[part], numbers[part], blocks).view(dtype)
            if each == 1:  # the usual request, in one stride
                result[part, 0] = stream[::per_block]
            else:
                result[part] = stream.reshape(-1, blocks * per_block)[:, :each]
        if not isinstance(self._rows, slice):
            np.maximum.at(self._next, self._rows, numbers)
        return result.reshape(-1)


class _Encryptor:
    """AES-256 of numbered blocks, in buffers that are used again."""

    def __init__(self, key: bytes, blocks: int) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES
        from cryptography.hazmat.primitives.ciphers.modes import ECB

        self._cipher = Cipher(AES(key), ECB()).encryptor()  # of distinct blocks: a pseudorandom function
        self._plain = np.empty((blocks, 2), dtype=np.uint64)
        self._sealed = np.empty(self._plain.nbytes + _BLOCK, dtype=np.uint8)  # `update_into` wants a block to spare

    def __call__(self, low: Words, numbers: Words, each: int) -> NDArray[np.uint8]:
        """The next `each` blocks of these rows, whose numbers move on; valid until the next call."""
        from dovetail.core.kernels import number_blocks

        if number_blocks(low, numbers, each, self._plain):
            raise ParameterError("a row has drawn all 2^32 blocks that its id is good for.")
        size = low.size * each * _BLOCK
        self._cipher.update_into(self._plain.reshape(-1).view(np.uint8).data[:size], self._sealed.data)
        return self._sealed[:size]


def purpose_key(secret: bytes, purpose: str) -> bytes:
    """The key of one purpose: HMAC-SHA256 of its name, so that no two purposes draw the same words.

    >>> purpose_key(bytes(32), "order") == purpose_key(bytes(32), "randomize krr")
    False
    """
    return hmac.digest(secret, purpose.encode(), "sha256")


def keyed_prints(key: bytes, ids: Ids) -> Words:
    """128 bits (n, 2) of each id: distinct for distinct ids, and random to anybody who lacks the key."""
    return KeyedEntropy(key, ids).words(2 * len(ids)).reshape(-1, 2)


def encrypt_blocks(key: bytes, blocks: Words) -> Words:
    """AES-256 of each block (n, 2): a keyed permutation of 128 bits.

    >>> encrypt_blocks(bytes(32), np.array([[0x80, 0]], dtype=np.uint64)).tobytes().hex()
    'ddc6bf790c15760d8d9aeb6f9a75fd4e'
    """
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES
    from cryptography.hazmat.primitives.ciphers.modes import ECB

    sealed = Cipher(AES(key), ECB()).encryptor().update(np.ascontiguousarray(blocks).tobytes())
    return np.frombuffer(sealed, dtype=np.uint64).reshape(-1, 2)


def _as_words(ids: NDArray[Any]) -> tuple[Words, Words]:
    """The lower 64 bits of each id, and the upper 32 below a block number of 0."""
    if ids.dtype == np.uint32 and ids.ndim == 2 and ids.shape[1] == 3:
        return np.ascontiguousarray(ids[:, :2]).view(np.uint64).reshape(-1), ids[:, 2].astype(np.uint64)
    if ids.dtype not in (np.int64, np.uint64) or ids.ndim != 1:
        raise ParameterError(f"`ids` must be 64-bit integers (n,) or uint32 (n, 3), got {ids.dtype} {ids.shape}.")
    return np.ascontiguousarray(ids).view(np.uint64), np.zeros(len(ids), dtype=np.uint64)


def _times_before(rows: NDArray[np.integer[Any]]) -> Words:
    """Number of times each row was named before, at its place."""
    if rows.size < 2 or (rows[1:] > rows[:-1]).all():
        return np.zeros(rows.size, dtype=np.uint64)
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    new = np.append(True, ordered[1:] != ordered[:-1])
    starts = np.maximum.accumulate(np.where(new, np.arange(rows.size), 0))
    result = np.empty(rows.size, dtype=np.uint64)
    result[order] = np.arange(rows.size) - starts
    return result

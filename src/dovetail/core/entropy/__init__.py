"""The only two doors to randomness.

`system_entropy()` protects people: an AES-256-CTR keystream of the audited `cryptography` package under a key from
the operating system, fresh for every request. Nothing is kept between requests, so there is no state to fork, to
pickle, to seed or to steal afterwards. `simulation(seed)` is reproducible and says so in whatever it makes. Where a
task may be retried on another machine, `keyed.KeyedEntropy` deals the same protected words to the same person again.
"""

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

    def at(self, rows: Rows) -> "Entropy":
        """What draws for some of the rows alone: itself, unless each row has a stream of its own.

        Mechanisms ask it wherever they want words for a part of their rows, so that the words of a row do not depend
        on which other rows there are.
        """
        return self

    def owners(self, places: NDArray[np.int64], count: int) -> "Entropy":
        """What draws for the rows that some places of a request for `count` words belong to, once for each place."""
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
        from dovetail.core.numeric.kernels import fisher_yates

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

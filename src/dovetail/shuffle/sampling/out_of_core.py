"""Mallows shuffling of a line that never fits into memory: reports come in reference order and go out shuffled."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core.checks import not_negative_or_infinite, refuse
from dovetail.core.entropy import Entropy, Permutation, entropy_or_system
from dovetail.core.errors import DataError
from dovetail.core.stages import Reports
from dovetail.shuffle.sampling.lehmer_code import MOST_THETA, LehmerCode, draw_lehmer_code
from dovetail.shuffle.sampling.lehmer_decode import decode_lehmer_code

_BATCH = 1 << 16
_ENDLESS = (1 << 31) - 1 - _BATCH  # places that may follow: digits are drawn as if so many did


def shuffle_out_of_core(batches: Iterable[ArrayLike], theta: float, rng: Entropy | None = None) -> Iterator[Reports]:
    r"""The reports of `batches`, shuffled by the Mallows law of all of them, without knowing how many there are.

    Place t releases the (c + 1)-th of the reports that are still held back, reading on until there are so many. The
    digit c is drawn as if the line had no end; where the input ends before it, c is thrown away and drawn again
    below the number of reports that are left. That is rejection, so the law is exactly the one of a known length.

    Parameters
    ----------
    batches : iterable of arrays (any number, ..)
        Reports in reference order, below 2^31 in all; the last place must not depend on the values.
    theta : float above 0, at most 1000, or infinite
    rng : Entropy, optional

    Yields
    ------
    array (any number, ..)
        Released reports, in order.

    Notes
    -----
    Holds back about (log n + 30) / theta reports and a batch of 65,536; with theta = 0 nothing could be released
    before the end, so use `Uniform`.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> list(shuffle_out_of_core([[10, 11, 12], [13, 14]], 1.0, simulation(3)))
    [array([11, 13, 10, 12]), array([14])]
    """
    rng = entropy_or_system(rng)
    rate = not_negative_or_infinite("theta", theta)
    if rate == 0.0 or MOST_THETA < rate < math.inf:
        raise refuse("theta", "above 0 and at most 1000, or infinite", theta)
    return _flow(batches, rate, rng)


def _flow(batches: Iterable[ArrayLike], theta: float, rng: Entropy) -> Iterator[Reports]:
    held: Reports | None = None
    drawn = np.empty(0, dtype=np.int32)  # digits that were not used yet
    read = 0
    for batch in _gathered(batches, max(_BATCH, int(4.0 / theta))):
        read += len(batch)
        if read > _ENDLESS:
            raise DataError(f"`batches` must hold at most {_ENDLESS:,} reports.")
        if math.isinf(theta):
            yield batch
            continue
        pool = batch if held is None else np.concatenate((held, batch))
        while drawn.size < len(pool):
            drawn = np.concatenate((drawn, _endless(theta, rng)))
        taken, left = _release(drawn, len(pool), theta)
        drawn, held = drawn[taken.size :], pool[left]
        if taken.size:
            yield pool[taken]
    if held is not None and len(held):
        last = np.array([0, len(held)]), np.array([theta])
        yield held[decode_lehmer_code(draw_lehmer_code(*last, rng), *last)]


def _endless(theta: float, rng: Entropy) -> LehmerCode:
    return draw_lehmer_code(np.array([0, _BATCH]), np.array([theta]), rng, beyond=_ENDLESS)


def _gathered(batches: Iterable[ArrayLike], least: int) -> Iterator[Reports]:
    """Batches joined until they hold at least so many reports; the last one may be smaller."""
    parts: list[Reports] = []
    for batch in batches:
        rows = np.asarray(batch)
        if rows.ndim == 0:
            raise DataError("`batches` must be arrays of reports, got a single value.")
        for start in range(0, len(rows), least):
            parts.append(rows[start : start + least])
            if sum(map(len, parts)) >= least:
                yield np.concatenate(parts)
                parts = []
    if parts:
        yield np.concatenate(parts)


def _release(drawn: LehmerCode, held: int, theta: float) -> tuple[Permutation, Permutation]:
    """Which of the reports at hand are released, in order, and which are left when a digit is too large for them."""
    late = np.flatnonzero(drawn[:held] >= np.arange(held, 0, -1))
    count = int(late[0]) if late.size else held
    padded = np.zeros(held, dtype=np.int32)  # digits 0 line up what is left
    padded[:count] = drawn[:count]
    order = decode_lehmer_code(padded, np.array([0, held]), np.array([theta]))
    return order[:count], order[count:]

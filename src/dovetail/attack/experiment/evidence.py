"""What one report says about its sender's value, whatever the randomizer."""

from __future__ import annotations

from math import log

import numpy as np
from numpy.typing import NDArray

from dovetail.core.channel import MOST_CELLS
from dovetail.core.errors import UnsupportedError
from dovetail.core.stages import FrequencyRandomizer, Reports
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.local_hashing import LocalHashing
from dovetail.randomize.unary import Unary
from dovetail_protocol.exact_thresholds import WORD

Support = NDArray[np.bool_]  # (n, k)


def supports(randomizer: FrequencyRandomizer, reports: Reports) -> Support:
    r"""Which values each report speaks for: those that make it likelier, all by the same factor.

    .. math:: \Pr[y \mid x] = c(y)\, e^{\lambda\, S(y, x)}, \qquad S(y, x) \in \{0, 1\}

    So the likeliest common value of some people is the one that most of their reports support. The named value for
    KRR, the set bits for unary encoding, the values with the reported hash for local hashing, the owners of the
    report for Hadamard response; lambda is `log_odds`.

    Raises
    ------
    UnsupportedError
        For randomizers without this form, and above ten million cells.

    Examples
    --------
    >>> supports(KRR(k=3, epsilon=1.0), np.array([2, 0])).tolist()
    [[False, False, True], [True, False, False]]
    """
    given, k = randomizer.check_reports(reports), randomizer.k
    if len(given) * k > MOST_CELLS:
        raise UnsupportedError(f"{len(given):,} reports about {k:,} values exceed {MOST_CELLS:,} cells; join values.")
    if isinstance(randomizer, KRR):
        return np.asarray(given[:, None] == np.arange(k))
    if isinstance(randomizer, Unary):
        return np.unpackbits(given, axis=1, count=k).astype(np.bool_)
    if isinstance(randomizer, LocalHashing):
        seeds, named = given[:, :2], given[:, 2].astype(np.int64)
        hashed = [randomizer.hash(np.full(len(given), value), seeds) == named for value in range(k)]
        return np.column_stack(hashed)
    if isinstance(randomizer, Hadamard):
        law = randomizer.channel().matrix()
        return np.asarray((law > (law.max() + law.min()) / 2)[:, given].T)
    raise UnsupportedError(
        f"Reports of {randomizer.name} do not support values; use krr, hadamard, unary or hashing."
    )


def log_odds(randomizer: FrequencyRandomizer) -> float:
    """By how much a value that a report supports is likelier than one that it does not; nats."""
    if isinstance(randomizer, Unary):
        p, q = randomizer.masses
        return log(p * (WORD - q)) - log(q * (WORD - p))
    if isinstance(randomizer, LocalHashing):
        return randomizer.hash_channel().epsilon
    return randomizer.channel().epsilon


def indicators(randomizer: FrequencyRandomizer, reports: Reports) -> NDArray[np.float64]:
    r"""Unbiased indicators (n, k) of each sender's value.

    .. math:: \mathbb{E}[u_v \mid x] = 1 \text{ if } x = v, \quad 0 \text{ otherwise}

    >>> indicators(KRR(k=2, epsilon=1.0), np.array([0])).round(3).tolist()
    [[1.582, -0.582]]
    """
    if isinstance(randomizer, Hadamard):
        kinds, which = np.unique(randomizer.check_reports(reports), return_inverse=True)
        channel = randomizer.channel()
        return np.asarray(channel.invert(kinds[:, None] == np.arange(channel.shape[1]))[which])
    seen = supports(randomizer, reports)
    return randomizer.invert(seen, np.ones(len(seen)))

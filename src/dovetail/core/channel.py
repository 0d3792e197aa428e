"""Channels: row-stochastic W[x, y] = Pr(y | x), the one object that every metric reads.

Estimation inverts a channel, accounting bounds its ratios, leakage measures it, attacks maximise its posterior.
Dense channels hold the matrix; structured ones answer in O(k) and are tested equal to their dense form.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import whole
from dovetail.core.errors import DataError, ParameterError, UnsupportedError

Matrix = NDArray[np.float64]  # (inputs, outputs)
Law = NDArray[np.float64]  # (.., inputs) or (.., outputs)

MOST_CELLS = 10_000_000


class Channel(ABC):
    """Law of a report given the value.

    Laws: `matrix` is row-stochastic; `output_law(p)` = p W; `invert(p W)` = p for every p that sums to 1;
    `epsilon` is the largest log ratio within a column (infinite where one row has a zero and another has none).

    Raises
    ------
    UnsupportedError
        From `matrix` and what needs one, where it would be too large to hold.

    Examples
    --------
    >>> from dovetail.core.channel import KRRChannel
    >>> isinstance(KRRChannel.of(2, 0.75), Channel), KRRChannel.of(2, 0.75).matrix().tolist()
    (True, [[0.75, 0.25], [0.25, 0.75]])
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(number of inputs, number of outputs)."""

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """Largest log ratio W[x, y] / W[x', y]; nats."""

    @abstractmethod
    def output_law(self, prior: ArrayLike) -> Law:
        """Law of the report (.., outputs) for a law or share of values (.., inputs)."""

    @abstractmethod
    def invert(self, law: ArrayLike) -> Law:
        """Unbiased linear inverse (.., inputs) of observed report shares (.., outputs)."""

    @abstractmethod
    def inverse_variance(self, prior: ArrayLike) -> Law:
        """n times the variance of `invert` on n reports of people whose value shares are exactly `prior`."""

    @abstractmethod
    def _cells(self) -> Matrix:
        """The dense matrix, whatever its size."""

    @final
    def matrix(self) -> Matrix:
        """The dense matrix (inputs, outputs); refused above ten million cells."""
        inputs, outputs = self.shape
        if inputs * outputs > MOST_CELLS:
            raise UnsupportedError(
                f"A dense channel of {inputs:,} x {outputs:,} cells exceeds {MOST_CELLS:,}; "
                "use output_law, invert and epsilon, which need no matrix."
            )
        return self._cells()


@dataclass(frozen=True, eq=False)
class DenseChannel(Channel):
    """A channel held as its matrix.

    Parameters
    ----------
    rows : float array (inputs, outputs), entries in [0, 1], rows sum to 1 within 1e-9

    Examples
    --------
    >>> round(float(DenseChannel([[0.75, 0.25], [0.25, 0.75]]).epsilon), 12)  # log 3
    1.098612288668
    """

    rows: Any

    def __post_init__(self) -> None:
        try:
            rows = np.array(self.rows, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise DataError("`rows` must be a matrix (inputs, outputs) of real numbers.") from None
        if rows.ndim != 2 or rows.size == 0:
            raise ParameterError(f"`rows` must be a matrix (inputs, outputs), got shape {rows.shape}.")
        if not np.all(np.isfinite(rows)) or rows.min() < 0.0:
            bad = np.argwhere(~np.isfinite(rows) | (rows < 0.0))[0]
            raise DataError(f"`rows` must be probabilities; entry {tuple(bad.tolist())} is {rows[tuple(bad)]!r}.")
        off = np.flatnonzero(np.abs(rows.sum(axis=1) - 1.0) > 1e-9)
        if off.size:
            raise DataError(f"`rows` must each sum to 1; row {off[0]} sums to {rows[off[0]].sum()!r}.")
        rows.setflags(write=False)
        object.__setattr__(self, "rows", rows)

    @property
    def shape(self) -> tuple[int, int]:
        return (self.rows.shape[0], self.rows.shape[1])

    @property
    def epsilon(self) -> float:
        used = self.rows[:, self.rows.max(axis=0) > 0.0]
        smallest = used.min(axis=0)
        if np.any(smallest == 0.0):
            return float("inf")
        return float(np.log(used.max(axis=0) / smallest).max())

    def output_law(self, prior: ArrayLike) -> Law:
        return np.asarray(np.asarray(prior, dtype=np.float64) @ self.rows)

    def invert(self, law: ArrayLike) -> Law:
        return np.asarray(np.asarray(law, dtype=np.float64) @ self._inverse())

    def inverse_variance(self, prior: ArrayLike) -> Law:
        shares = np.asarray(prior, dtype=np.float64)
        return np.asarray(self.output_law(shares) @ self._inverse() ** 2 - shares)

    def _inverse(self) -> Matrix:
        if np.linalg.matrix_rank(self.rows) < self.rows.shape[0]:
            raise UnsupportedError(
                "This channel has linearly dependent rows, so shares of values cannot be recovered from reports."
            )
        return np.asarray(np.linalg.pinv(self.rows))

    def _cells(self) -> Matrix:
        return np.asarray(self.rows)


@dataclass(frozen=True)
class KRRChannel(Channel):
    r"""k-ary randomized response with realized integer masses.

    .. math:: W[x, y] = \mathrm{keep}/\mathrm{total} \text{ if } x = y, \quad \mathrm{lie}/\mathrm{total}
              \text{ otherwise}, \qquad \mathrm{keep} + (k - 1)\,\mathrm{lie} = \mathrm{total}

    Parameters
    ----------
    k : int, at least 2
    keep, lie : int, at least 1
        Masses out of keep + (k - 1) lie.
    """

    k: int
    keep: int
    lie: int

    def __post_init__(self) -> None:
        whole("k", self.k, least=2)
        whole("keep", self.keep, least=1)
        whole("lie", self.lie, least=1)

    @classmethod
    def of(cls, k: int, keep: float) -> KRRChannel:
        """The channel that keeps the value with probability `keep` (to within 2^-53 of it)."""
        if not 0.0 < keep < 1.0:
            raise ParameterError(f"`keep` must be a probability strictly between 0 and 1, got {keep!r}.")
        top, bottom = float(keep).as_integer_ratio()
        return cls(whole("k", k, least=2), top * (k - 1), bottom - top)

    @property
    def total(self) -> int:
        """Total that the integer probabilities sum to."""
        return self.keep + (self.k - 1) * self.lie

    @property
    def p(self) -> float:
        """Probability of keeping the value."""
        return self.keep / self.total

    @property
    def s(self) -> float:
        """Probability of each other value."""
        return self.lie / self.total

    @property
    def contrast(self) -> float:
        """p - s, from whole numbers: no cancellation."""
        return (self.keep - self.lie) / self.total

    @property
    def shape(self) -> tuple[int, int]:
        return (self.k, self.k)

    @property
    def epsilon(self) -> float:
        return abs(float(np.log(self.keep / self.lie)))

    def output_law(self, prior: ArrayLike) -> Law:
        shares = np.asarray(prior, dtype=np.float64)
        return np.asarray(self.s * shares.sum(axis=-1, keepdims=True) + self.contrast * shares)

    def invert(self, law: ArrayLike) -> Law:
        if self.keep == self.lie:
            raise UnsupportedError("keep = lie: the report does not depend on the value and cannot be inverted.")
        shares = np.asarray(law, dtype=np.float64)
        return np.asarray((shares - self.s * shares.sum(axis=-1, keepdims=True)) / self.contrast)

    def inverse_variance(self, prior: ArrayLike) -> Law:
        shares = np.asarray(prior, dtype=np.float64)
        spread = shares * (self.p * (1 - self.p)) + (1 - shares) * (self.s * (1 - self.s))
        return np.asarray(spread / self.contrast**2)

    def _cells(self) -> Matrix:
        return np.full(self.shape, self.s) + self.contrast * np.eye(self.k)


@dataclass(frozen=True)
class HadamardChannel(Channel):
    r"""Hadamard response: `blocks` blocks of `width` reports, a symbol owns half of one block.

    Symbol x lives in block x mod blocks and owns the reports y of that block with
    parity(popcount(row & y)) = 0, row = x // blocks + 1. Each owned report has mass `keep`, each other `lie`,
    out of (width / 2) (keep + (2 blocks - 1) lie).

    Parameters
    ----------
    k : int, at least 2, at most blocks (width - 1)
    blocks, width : int, powers of two, width at least 2
    keep, lie : int, at least 1

    Source
    ------
    Acharya, Sun, Zhang (2019), Hadamard Response, AISTATS.
    """

    k: int
    blocks: int
    width: int
    keep: int
    lie: int

    def __post_init__(self) -> None:
        for name in ("blocks", "width"):
            size = whole(name, getattr(self, name), least=1 if name == "blocks" else 2)
            if size & (size - 1):
                raise ParameterError(f"`{name}` must be a power of two, got {size}.")
        whole("k", self.k, least=2, most=self.blocks * (self.width - 1))
        whole("keep", self.keep, least=1)
        whole("lie", self.lie, least=1)

    @property
    def total(self) -> int:
        """Mass of one half block times the number of half blocks, in units of one report's mass."""
        return self.keep + (2 * self.blocks - 1) * self.lie

    @property
    def contrast(self) -> float:
        """(keep - lie) / total."""
        return (self.keep - self.lie) / self.total

    @property
    def shape(self) -> tuple[int, int]:
        return (self.k, self.blocks * self.width)

    @property
    def epsilon(self) -> float:
        return abs(float(np.log(self.keep / self.lie)))

    def output_law(self, prior: ArrayLike) -> Law:
        shares = np.asarray(prior, dtype=np.float64)
        spread = self._spread(shares)
        block = spread.sum(axis=-1, keepdims=True)
        sign = hadamard_transform(spread)  # sum over rows of share * (-1)^parity
        half = self.width / 2
        lie = self.lie / (self.total * half)
        # owned = (1 + sign) / 2 of the block's share
        law = lie * shares.sum(axis=-1)[..., None, None] + (block + sign) * (self.contrast / (2 * half))
        return np.asarray(law.reshape(*shares.shape[:-1], -1))

    def invert(self, law: ArrayLike) -> Law:
        if self.keep == self.lie:
            raise UnsupportedError("keep = lie: the report does not depend on the value and cannot be inverted.")
        seen = np.asarray(law, dtype=np.float64)
        blocks = seen.reshape(*seen.shape[:-1], self.blocks, self.width)
        return self._gather(hadamard_transform(blocks)) / self.contrast

    def inverse_variance(self, prior: ArrayLike) -> Law:
        # with F the share of the symbol's block: E[sign^2] = Pr(report falls into the block)
        #                                                   = (2 lie + (keep - lie) F) / total
        shares = np.asarray(prior, dtype=np.float64)  # of the first symbols; all others hold nothing
        asked = shares.shape[-1]
        rows = np.zeros((*shares.shape[:-1], -(-asked // self.blocks), self.blocks))
        rows.reshape(*shares.shape[:-1], -1)[..., :asked] = shares
        inside = 2 * self.lie / self.total + self.contrast * rows.sum(axis=-2)
        mine = np.take(inside, np.arange(asked) % self.blocks, axis=-1)
        return np.asarray(mine / self.contrast**2 - shares)

    def _spread(self, shares: Law) -> Law:
        """Shares (.., k) laid out as (.., blocks, width) by block and Hadamard row."""
        cells = np.zeros((*shares.shape[:-1], self.width, self.blocks))
        cells.reshape(*shares.shape[:-1], -1)[..., self.blocks : self.blocks + self.k] = shares
        return np.swapaxes(cells, -1, -2)

    def _gather(self, cells: Law) -> Law:
        """The inverse of `_spread`."""
        flat = np.swapaxes(cells, -1, -2).reshape(*cells.shape[:-2], -1)
        return np.asarray(flat[..., self.blocks : self.blocks + self.k])

    def _cells(self) -> Matrix:
        return self.output_law(np.eye(self.k))


def hadamard_transform(values: ArrayLike) -> Law:
    """Walsh-Hadamard transform over the last axis, whose length is a power of two; O(w log w).

    >>> hadamard_transform([1.0, 0.0, 0.0, 2.0])
    array([ 3., -1., -1.,  3.])
    """
    result = np.array(values, dtype=np.float64)
    width = result.shape[-1]
    if width & (width - 1):
        raise ParameterError(f"the last axis must have a power of two as its length, got {width}.")
    step = 1
    while step < width:
        pairs = result.reshape(*result.shape[:-1], width // (2 * step), 2, step)
        low, high = pairs[..., 0, :].copy(), pairs[..., 1, :].copy()
        pairs[..., 0, :] = low + high
        pairs[..., 1, :] = low - high
        step *= 2
    return result

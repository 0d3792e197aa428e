"""Who stands in a row: an id that keys the row's randomness, and the print by which a ledger knows people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.entropy.keyed import purpose_key
from dovetail.core.numeric.keyed_hash import keyed_hashes

Ids = NDArray[Any]  # int64 (n,), or uint32 (n, 3) of hashed texts
Prints = NDArray[np.uint64]  # (n,)


@dataclass(frozen=True)
class People:
    """Reads ids and prints off the column of people.

    Parameters
    ----------
    key : bytes
        The ledger's; ids of texts are 96 bits of a keyed hash, so that equal ones come up as duplicates, loudly.
    numbers : bool
        Whether texts that spell numbers count as these numbers, as the ledger has it where all of them do.
    """

    key: bytes = field(repr=False)
    numbers: bool = True

    def ids(self, column: pl.Series) -> Ids:
        """Distinct for distinct people."""
        if column.dtype.is_integer():
            kind = pl.UInt64 if column.dtype == pl.UInt64 else pl.Int64
            return column.cast(kind).to_numpy().view(np.int64)
        digests = _hashes(column.cast(pl.String), purpose_key(self.key, "ids"), 12)
        return digests.view(np.uint32).reshape(-1, 3)

    def prints(self, column: pl.Series) -> Prints:
        """What the release ledger keeps of people: the same for the same name, whatever the table."""
        text = column.cast(pl.String)
        if self.numbers or column.dtype.is_numeric():
            spelled = column if column.dtype.is_numeric() else text.cast(pl.Float64, strict=False)
            number = spelled.cast(pl.Float64).cast(pl.String)
            text = number if not number.null_count() else number.fill_null(text)
        return _hashes(text, self.key, 8).view(np.uint64).reshape(-1)

    def kinds(self, column: pl.Series) -> tuple[int, int]:
        """How many texts spell a number, and how many do not."""
        if column.dtype != pl.String:
            return column.len(), 0
        no = int(column.cast(pl.Float64, strict=False).null_count())
        return column.len() - no, no


def low_words(ids: Ids) -> Prints:
    """64 bits of each id."""
    return np.ascontiguousarray(ids[:, :2] if ids.ndim == 2 else ids).view(np.uint64).reshape(-1)


def _hashes(text: pl.Series, key: bytes, size: int) -> NDArray[np.uint8]:
    ends = text.str.len_bytes().cast(pl.Int64).cum_sum().to_numpy()
    joined = text.str.join("").item().encode() if len(text) else b""
    return keyed_hashes(np.frombuffer(joined, dtype=np.uint8), ends, key=key, size=size)

"""A batch of rows as the job works with them: ids, encoded values, public groups; and what is wrong, counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.display.display import mute
from dovetail.core.entropy.keyed import encrypt_blocks, keyed_prints, purpose_key
from dovetail.core.errors import DataError
from dovetail.pipeline.config.sections import DataSection
from dovetail.pipeline.files.table import columns_of
from dovetail.scale.passes.people import Ids, People

MISSING_PERSON, MISSING_VALUE, UNDECLARED, NO_NUMBER, OUTSIDE, MISSING_GROUP = (
    "{n:,} rows have no person in column {person!r}",
    "private column {private!r}: {n:,} values are missing",
    "private column {private!r}: {n:,} values are not among the declared categories",
    "private column {private!r}: {n:,} values are no numbers",
    "private column {private!r}: {n:,} values lie outside the declared range",
    "public column {group}: {n:,} values are missing",
)

_HALF = np.uint64(0xFFFFFFFF)
BETWEEN = "\x1f"  # the columns of a label


@mute
@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that are in order, encoded.

    Parameters
    ----------
    people : series (n,)
    ids : Ids (n,)
    values : int array (n,) of codes, or float array (n,)
    groups : series (n,) of texts, or None
    """

    people: pl.Series
    ids: Ids
    values: NDArray[Any]
    groups: pl.Series | None

    @property
    def n(self) -> int:
        """How many."""
        return len(self.values)


@dataclass(frozen=True)
class Reader:
    """Encodes batches as [data] declares them; errors carry counts and never a value.

    Parameters
    ----------
    data : DataSection
    people : People
    columns : public columns that groups are made of
    numbers : those of them that must be numbers
    """

    data: DataSection
    people: People
    columns: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()

    def read(self, frame: pl.DataFrame) -> tuple[Rows, Counter[str]]:
        """The rows that are in order, and how often which sentence is true of the others."""
        assert self.data.person is not None
        try:
            frame = columns_of(frame, self.data, numbers=self.numbers)
        except DataError:
            names = " or ".join(repr(name) for name in (self.data.private, *self.numbers))
            raise DataError(f"column {names} is not spelled as [data] says; check it first.") from None
        wrong: Counter[str] = Counter()
        values, good = self._values(frame[self.data.private], wrong)
        named = frame[self.data.person].is_not_null().to_numpy()
        wrong[MISSING_PERSON] += int((~named).sum())
        good = good & named
        if self.columns:
            grouped = frame.select(pl.all_horizontal(pl.col(self.columns).is_not_null())).to_series().to_numpy()
            wrong[MISSING_GROUP] += int((~grouped).sum())
            good &= grouped
        if not good.all():  # the job will end: what is left is counted only
            frame, values = frame.filter(pl.Series(good)), values[good]
        groups = self._labels(frame) if self.columns else None
        people = frame[self.data.person]
        return Rows(people, self.people.ids(people), values, groups), +wrong

    def exactly(self, frame: pl.DataFrame) -> Rows:
        """The rows, all of which were in order when they were counted."""
        rows, wrong = self.read(frame)
        if wrong:
            raise DataError("the table has changed while it was read; nothing was released.")
        return rows

    def fingerprint(self, rows: Rows) -> int:
        """Sum of a keyed pseudorandom function of (person, value, group), modulo 2^128: the same in any order.

        Clarke, Devadas, van Dijk, Gassend, Suh (2003), Incremental Multiset Hash Functions, ASIACRYPT: MSet-Add-Hash.
        """
        key = purpose_key(self.people.key, "snapshot")
        return _multiset_hash(key, rows, np.ascontiguousarray(rows.values).view(np.uint64))

    def grouping(self, rows: Rows) -> int:
        """The same of (person, group): who is grouped with whom, whatever they answer."""
        return _multiset_hash(purpose_key(self.people.key, "grouping"), rows, np.zeros(rows.n, dtype=np.uint64))

    def _labels(self, frame: pl.DataFrame) -> pl.Series:
        """One text for each public label; a point is the texts of its coordinates."""
        texts = [frame[name].cast(pl.String) for name in self.columns]
        return texts[0] if len(texts) == 1 else pl.select(pl.concat_str(texts, separator=BETWEEN)).to_series()

    def _values(self, column: pl.Series, wrong: Counter[str]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        text = column.cast(pl.String) if not self.data.numeric else column
        absent = column.is_null() | (column.is_nan() if column.dtype.is_float() else False)
        if self.data.missing != "refuse":
            text = pl.select(pl.when(absent).then(pl.lit(self.data.missing)).otherwise(text)).to_series()
            absent = absent & False
        wrong[MISSING_VALUE] += int(absent.sum())
        if self.data.numeric:
            return self._numbers(text, absent.to_numpy(), wrong)
        names = self.data.categories or []
        codes = text.cast(pl.Enum(names), strict=False).to_physical().cast(pl.Int64)
        unknown = (codes.is_null() & ~absent).to_numpy()
        wrong[UNDECLARED] += int(unknown.sum())
        return codes.fill_null(0).to_numpy(), ~(unknown | absent.to_numpy())

    def _numbers(
        self, column: pl.Series, absent: NDArray[np.bool_], wrong: Counter[str]
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        text = column.str.strip_chars() if column.dtype == pl.String else column
        numbers = text.cast(pl.Float64, strict=False)
        bad = (numbers.is_null() | ~numbers.is_finite()).fill_null(True).to_numpy() & ~absent
        values = numbers.fill_null(0.0).to_numpy()
        outside = ~(bad | absent) & ~((values >= self.data.lower) & (values <= self.data.upper))
        wrong[NO_NUMBER] += int(bad.sum())
        wrong[OUTSIDE] += int(outside.sum())
        return values, ~(bad | absent | outside)


def _multiset_hash(key: bytes, rows: Rows, values: NDArray[np.uint64]) -> int:
    blocks = keyed_prints(key, rows.ids)
    blocks[:, 0] ^= values
    if rows.groups is not None:
        names = rows.groups.unique()
        digests = [int.from_bytes(purpose_key(key, f"group {name}")[:8], "big") for name in names]
        codes = rows.groups.replace_strict(names, range(len(names)), return_dtype=pl.Int64).to_numpy()
        blocks[:, 1] ^= np.array(digests, dtype=np.uint64)[codes.astype(np.int64)]
    words = encrypt_blocks(key, blocks)
    halves = [half.sum() for half in (words[:, 0] & _HALF, words[:, 0] >> 32, words[:, 1] & _HALF, words[:, 1] >> 32)]
    return sum(int(total) << (32 * place) for place, total in enumerate(halves)) % (1 << 128)

"""A batch of rows as the job works with them: ids, encoded values, public groups; and what is wrong, counted."""

from __future__ import annotations

import hmac
import os
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

from dovetail.core.display import mute
from dovetail.core.entropy import KEY_BYTES, encrypt_blocks, keyed_prints, purpose_key
from dovetail.core.errors import DataError, StorageError
from dovetail.core.keyed_hash import keyed_hashes
from dovetail.table.data_section import DataSection
from dovetail.table.reader import columns_of

# Who stands in a row: an id that keys the row's randomness, and the print by which a ledger knows people.


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


# The secrets of one release: in memory only, mute, and apart by purpose.


_NONCE = 12


@dataclass(frozen=True)
class Secret:
    """32 bytes of the operating system, drawn on the driver for one release and never written down.

    With the people's ids and the released files they tell who sent which report: they are worth the table.
    """

    key: bytes = field(repr=False)

    @classmethod
    def fresh(cls) -> Secret:
        """A new one, from the operating system."""
        return cls(os.urandom(KEY_BYTES))

    def of(self, purpose: str) -> bytes:
        """The key of one purpose."""
        return purpose_key(self.key, purpose)


@dataclass(frozen=True)
class Sealer:
    """Seals what travels between tasks: AES-256-GCM, a function of (secret, content), so that attempts agree.

    The nonce is a keyed hash of the content: a repeated task writes the same bytes, without which Spark gives up a
    job whose machine died ("indeterminate output"). That hash is GMAC, a universal hash, below HMAC-SHA256, a
    pseudorandom function, which is one again: what GCM-SIV does, at the speed of GCM.
    """

    secret: Secret

    def seal(self, content: bytes, part: int) -> bytes:
        """The sealed content for one partition."""
        place = part.to_bytes(8, "big")
        hashed = AESGCM(self.secret.of("hash")).encrypt(bytes(_NONCE), b"", content)  # nobody sees it
        nonce = hmac.digest(self.secret.of("nonce"), place + hashed, "sha256")[:_NONCE]
        return nonce + AESGCM(self.secret.of("exchange")).encrypt(nonce, content, place)

    def open(self, sealed: bytes, part: int) -> bytes:
        """What was sealed for this partition.

        Raises
        ------
        StorageError
            When it has been altered on its way.
        """
        try:
            gcm = AESGCM(self.secret.of("exchange"))
            return gcm.decrypt(sealed[:_NONCE], sealed[_NONCE:], part.to_bytes(8, "big"))
        except (InvalidTag, ValueError):
            raise StorageError(
                f"partition {part}: what one task sent another was altered; nothing was released."
            ) from None

"""A batch of rows as the job works with them: ids, encoded values, public groups; and what is wrong, counted."""

from __future__ import annotations

import hmac
import os
from collections import Counter
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import numpy as np
import polars as pl
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

from dovetail.core.display import counted, mute
from dovetail.core.entropy import KEY_BYTES, encrypt_blocks, keyed_prints, purpose_key
from dovetail.core.errors import DataError, StorageError
from dovetail.core.keyed_hash import hashes_of
from dovetail.engine.source import PLACE
from dovetail.table.arrays import rows_of_arrays
from dovetail.table.data_section import RULES, DataSection
from dovetail.table.reader import Further, are_numbers, columns_of
from dovetail.table.spelling import absent, bare_name, one_name

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
        Whether all names are numbers: then those with exponents are, too, as the ledger has it.
    """

    key: bytes = field(repr=False)
    numbers: bool = True

    def ids(self, column: pl.Series) -> Ids:
        """Distinct for distinct people."""
        if column.dtype.is_integer():
            kind = pl.UInt64 if column.dtype == pl.UInt64 else pl.Int64
            return column.cast(kind).to_numpy().view(np.int64)
        digests = hashes_of(self.names(column), purpose_key(self.key, "ids"), 12)
        return digests.view(np.uint32).reshape(-1, 3)

    def prints(self, column: pl.Series) -> Prints:
        """Prints of people for the release ledger: the same for the same name, whatever the table."""
        return hashes_of(self.names(column), self.key, 8).view(np.uint64).reshape(-1)

    def names(self, column: pl.Series) -> pl.Series:
        """One text for each person, as the ledger has it."""
        return one_name(column.cast(pl.String), numbers=self.numbers or column.dtype.is_numeric())

    def kinds(self, column: pl.Series) -> tuple[int, int]:
        """How many texts spell a number, and how many do not."""
        if column.dtype != pl.String:
            return column.len(), 0
        no = int(bare_name(column).cast(pl.Float64, strict=False).null_count())
        return column.len() - no, no


def low_words(ids: Ids) -> Prints:
    """64 bits of each id."""
    return np.ascontiguousarray(ids[:, :2] if ids.ndim == 2 else ids).view(np.uint64).reshape(-1)


MISSING_PERSON, MISSING_VALUE, UNDECLARED, NO_NUMBER, OUTSIDE, NO_ARRAY, MISSING_GROUP = (
    "{rows_have} no person in column {person!r}",
    "private column {private!r}: {values_are} missing",
    "private column {private!r}: {values_are} not among the declared categories",
    "private column {private!r}: {no_numbers}",
    "private column {private!r}: {values_lie} outside the declared range",
    "private column {private!r}: {no_arrays} of as many finite numbers as `dimension` says",
    "public column {group}: {values_are} missing",
)


def in_words(sentence: str, rows: int, **names: str) -> str:
    """One of these sentences, about so many rows."""
    words = {
        "rows_have": counted(rows, "row has", "rows have"),
        "values_are": counted(rows, "value is", "values are"),
        "values_lie": counted(rows, "value lies", "values lie"),
        "no_arrays": counted(rows, "value is no array", "values are no arrays"),
        "no_numbers": counted(rows, "value is no number", "values are no numbers"),
    }
    return sentence.format(**words, **names)


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
    values : for each question an int array (n,) of codes, a float array (n,) or (n, columns), or texts (n,)
    groups : series (n,) of texts, or None
    places : int array (n,)
        Where each row stands in the table; None where its rows stand in no order.
    """

    people: pl.Series
    ids: Ids
    values: tuple[NDArray[Any], ...]
    groups: pl.Series | None
    left_out: int = 0  # rows without an answer
    places: NDArray[np.int64] | None = None

    @property
    def n(self) -> int:
        """How many."""
        return len(self.ids)


@dataclass(frozen=True)
class Asked:
    """The private columns of a question.

    Parameters
    ----------
    data : DataSection
    further : private columns beside the first one, with ranges of numbers, or with categories
    arrays : numbers of each array, where the first column holds those
    texts : whether any text is an answer
    """

    data: DataSection
    further: Further = field(default_factory=dict)
    arrays: int | None = None
    texts: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """All of them."""
        return (self.data.private, *self.further)

    def read(self, frame: pl.DataFrame, wrong: Counter[str]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The encoded values, and which rows are in order."""
        if self.arrays is not None:
            values, good = rows_of_arrays(frame[self.data.private], self.data.private, self.arrays)
            wrong[_about(NO_ARRAY, self.data.private)] += int((~good).sum())
            return values, good
        values, good = self._first(frame[self.data.private], wrong)
        for name, domain in self.further.items():
            limits: dict[str, Any] = {"lower": None, "upper": None, "categories": list(domain)}
            if are_numbers(domain):
                low, high = domain
                limits = {"lower": float(low), "upper": float(high), "categories": None, "missing": "refuse"}
            others, fine = Asked(self.data.model_copy(update=limits))._first(frame[name], wrong)
            values, good = np.column_stack([values, others]), good & fine
        return values, good

    def _first(self, column: pl.Series, wrong: Counter[str]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        text = column.cast(pl.String) if not self.data.numeric else column
        gone = absent(column)
        if self.data.missing not in RULES and not self.data.numeric:
            text = pl.select(pl.when(gone).then(pl.lit(self.data.missing)).otherwise(text)).to_series()
            gone = gone & False
        if self.data.missing in RULES:
            wrong[_about(MISSING_VALUE, column.name)] += int(gone.sum())
        if self.data.numeric:
            ends = (float(self.data.lower or 0.0), float(self.data.upper or 0.0))
            if self.data.missing not in RULES:  # a missing number is an answer, too
                values, good = _numbers(text.alias(column.name), gone.to_numpy(), wrong, ends, clip=self.data.clip)
                return np.where(gone, np.nan, values), good | gone.to_numpy()
            return _numbers(text.alias(column.name), gone.to_numpy(), wrong, ends, clip=self.data.clip)
        if self.texts:
            return text.fill_null("").to_numpy(), ~gone.to_numpy()
        names = self.data.categories or []
        codes = text.cast(pl.Enum(names), strict=False).to_physical().cast(pl.Int64)
        unknown = (codes.is_null() & ~gone).to_numpy()
        wrong[_about(UNDECLARED, column.name)] += int(unknown.sum())
        return codes.fill_null(0).to_numpy(), ~(unknown | gone.to_numpy())


def _numbers(
    column: pl.Series, gone: NDArray[np.bool_], wrong: Counter[str], ends: tuple[float, float], *, clip: bool
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    text = column.str.strip_chars() if column.dtype == pl.String else column
    numbers = text.cast(pl.Float64, strict=False)
    bad = (numbers.is_null() | ~numbers.is_finite()).fill_null(True).to_numpy() & ~gone
    values = numbers.fill_null(0.0).to_numpy()
    if clip:
        values = np.clip(values, *ends)
    outside = ~(bad | gone) & ~((values >= ends[0]) & (values <= ends[1]))
    wrong[_about(NO_NUMBER, column.name)] += int(bad.sum())
    wrong[_about(OUTSIDE, column.name)] += int(outside.sum())
    return values, ~(bad | gone | outside)


def _about(sentence: str, column: str) -> str:
    """A sentence about this private column, to be filled with numbers later."""
    return sentence.replace("{private!r}", repr(column).replace("{", "{{").replace("}", "}}"))


@dataclass(frozen=True)
class Reader:
    """Encodes batches as [data] declares them; errors carry counts and never a value.

    Parameters
    ----------
    asked : private columns of each question
    people : People
    columns : public columns that groups are made of
    numbers : those of them that must be numbers
    levels : instead of public columns, how many groups a public hash of the name makes; 0 for none
    """

    asked: tuple[Asked, ...]
    people: People
    columns: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    levels: int = 0

    @property
    def person(self) -> str:
        """The column of people."""
        assert self.asked[0].data.person is not None
        return self.asked[0].data.person

    def read(self, frame: pl.DataFrame) -> tuple[Rows, Counter[str]]:
        """The rows that are in order, and how often which sentence is true of the others."""
        wrong: Counter[str] = Counter()
        values, each = list[NDArray[Any]](), list[NDArray[np.bool_]]()
        for asked in self.asked:
            try:
                read, answered = columns_of(
                    frame, asked.data, numbers=self.numbers, further=asked.further, arrays=asked.arrays is not None
                )
            except DataError:
                names = " or ".join(repr(name) for name in (*asked.columns, *self.numbers))
                raise DataError(f"column {names} is not spelled as [data] says; check it first.") from None
            found, fine = asked.read(read, wrong)
            values.append(found)
            each.append(fine)
        places = frame[PLACE].filter(answered) if PLACE in frame.columns else None
        frame = read  # people and public columns are the same for every question
        named = frame[self.person].is_not_null().to_numpy()
        wrong[MISSING_PERSON] += int((~named).sum())
        good = np.logical_and.reduce([named, *each])
        if self.columns:
            grouped = frame.select(pl.all_horizontal(pl.col(self.columns).is_not_null())).to_series().to_numpy()
            wrong[MISSING_GROUP] += int((~grouped).sum())
            good &= grouped
        if not good.all():  # the job will end: what is left is counted only
            frame, values, places = frame.filter(pl.Series(good)), [held[good] for held in values], None
        people = frame[self.person]
        groups = self._labels(frame) if self.columns else None
        if self.levels:
            from dovetail.job.strings import levels_of  # other questions have no use for it

            groups = pl.Series(levels_of(self.people.names(people), self.levels)).cast(pl.String)
        left_out = int((~answered).sum())  # of one question: several leave nobody out
        stand = None if places is None else places.to_numpy()
        return Rows(people, self.people.ids(people), tuple(values), groups, left_out, stand), +wrong

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
        words = [np.ascontiguousarray(_numbered(held, key)).view(np.uint64) for held in rows.values]
        first, *others = (column for held in words for column in np.atleast_2d(held.T))
        for column in others:  # several private columns: one word of a chain over all of them
            first = encrypt_blocks(key, np.column_stack([first, column]))[:, 0]
        return _multiset_hash(key, rows, first)

    def grouping(self, rows: Rows) -> int:
        """The same of (person, group): who is grouped with whom, whatever they answer."""
        rows = replace(rows, groups=None) if self.levels else rows  # names are in it
        return _multiset_hash(purpose_key(self.people.key, "grouping"), rows, np.zeros(rows.n, dtype=np.uint64))

    def _labels(self, frame: pl.DataFrame) -> pl.Series:
        """One text for each public label; a point is the texts of its coordinates."""
        texts = [frame[name].cast(pl.String) for name in self.columns]
        return texts[0] if len(texts) == 1 else pl.select(pl.concat_str(texts, separator=BETWEEN)).to_series()


def _numbered(values: NDArray[Any], key: bytes) -> NDArray[Any]:
    """The values; of texts two words (n, 2) of a keyed hash each."""
    if values.dtype != object:
        return values
    return hashes_of(pl.Series(values, dtype=pl.String), purpose_key(key, "texts"), 16).view(np.uint64).reshape(-1, 2)


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

    @classmethod
    def simulated(cls, seed: int) -> Secret:
        """That of a rehearsal, which is the same again for the same seed and protects nobody."""
        return cls(sha256(f"rehearsal {seed}".encode()).digest())

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
        """Open what was sealed for this partition.

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

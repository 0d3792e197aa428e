"""From a table to a survey: the private column encoded, the public ones chosen, the rows in a fresh random order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dovetail.core.checks import nearest
from dovetail.core.display import counted, mute
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, MissingExtraError, ParameterError
from dovetail.core.extras import pl
from dovetail.table.csv_text import WrittenOtherwise, read_csv
from dovetail.table.data_section import RULES, DataSection, FileFormat, Spellings
from dovetail.table.spelling import absent, at_rows, names_of, one_spelling, plain_numbers, read_numbers, spelled

_READERS = {".csv": "csv", ".data": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet"}


@mute
@dataclass(frozen=True, eq=False)
class Survey:
    """People in a random order that has nothing to do with the order of the table.

    Parameters
    ----------
    values : int array (n,) of codes, or float array (n,) or (n, d)
        The private column.
    public : data frame (n, public columns)
    categories : tuple of str, or None for numbers
    identity : data frame
        What tells this table from another one: people and private values, or whole rows where nobody is named.
    people : data frame (n, 0 or 1)
        Names of the people, where the table has them.
    left_out : int, optional
        Rows without an answer, where `missing` = "drop" leaves them out.
    clipped : int, optional
        Numbers outside their bounds, where `clip` moves them to the nearest one; private.
    prints : bytes
        Of arrays, instead of `identity`.
    """

    values: NDArray[Any]
    public: pl.DataFrame
    categories: tuple[str, ...] | None
    identity: pl.DataFrame
    people: pl.DataFrame
    left_out: int | None = None
    clipped: int | None = None
    prints: bytes = b""

    @classmethod
    def of(cls, public: pl.DataFrame) -> Survey:
        """Public columns alone, in their order, for fitting what is fitted to public data."""
        return cls(np.zeros(public.height, dtype=np.int64), public, None, public.clear(), public.select([]))

    @property
    def n(self) -> int:
        """Number of people."""
        return len(self.values)

    @property
    def content(self) -> bytes:
        """`identity`, whatever the order of rows and columns."""
        return self.prints or canonical(self.identity)

    def numbers(self, columns: list[str]) -> NDArray[np.float64]:
        """Public columns as finite numbers (n, len(columns)); text that is no number is refused."""
        return np.column_stack([numeric(self.public[name]) for name in columns])


Domain = tuple[float, float] | tuple[str, ...]
Further = Mapping[str, Domain]  # private columns beside the first one


def read_survey(
    data: DataSection, rng: Entropy, *, table: Any = None, numbers: Sequence[str] = (), compared: Sequence[str] = (),
    further: Further | None = None,
) -> Survey:  # fmt: skip
    """Read, check and encode the declared columns; then permute the rows with `rng`.

    Parameters
    ----------
    data : DataSection
    rng : Entropy
        A file's order may encode the secret, so the order is redrawn before anything else happens.
    table : data frame, optional
        Anything that speaks the Arrow interface (polars, pandas, duckdb, pyarrow), instead of `data.path`.
    numbers : column names
        Public columns that must be finite numbers.
    compared : column names
        Public columns that must be finite numbers if one of their values is a number.
    further : private columns beside the first one, with ranges of numbers, or with categories
        Values are numbers or codes (n, 1 + further) then.

    Raises
    ------
    DataError
        Missing column, empty table, duplicate person, missing or undeclared value: counted, with the first places.
    """
    given = table_of(data, table)
    beside = further or {}
    frame, answered = columns_of(given, data, numbers=numbers, further=beside)
    told = [name for name in compared if name not in numbers and _tells_numbers(frame[name], data)]
    frame = frame.with_columns([plain_numbers(frame[name], data) for name in told])
    if frame.height == 0:
        raise DataError("nobody has answered." if given.height else "the table has no rows.")
    if data.person is not None:
        refuse_duplicates(frame[data.person])
    column = frame[data.private]
    for name in data.public:
        refuse_missing(frame[name], f"public column {name!r}")
    for name in [*numbers, *told]:
        numeric(frame[name])
    categories: tuple[str, ...] | None = None
    clipped = 0
    if data.numeric:
        values: NDArray[Any]
        ends = float(data.lower or 0.0), float(data.upper or 0.0)
        values, clipped = bounded(column, *ends, clip=data.clip, gaps=data.missing not in RULES)
    else:
        values, categories = _codes(column, data)
    if beside:
        read = [_further(frame[name], domain, data) for name, domain in beside.items()]
        values = np.column_stack([values, *(each for each, _ in read)])
        clipped += sum(moved for _, moved in read)
    order = rng.permutation(frame.height)
    named = [] if data.person is None else [data.person]
    shuffled = frame[order]
    return Survey(
        values[order],
        shuffled.select(data.public),
        categories,
        identity=shuffled.select([*named, data.private, *beside])
        if named
        else given.filter(answered).with_columns(frame),
        people=shuffled.select(named),
        left_out=int((~answered).sum()) if data.missing == "drop" else None,
        clipped=clipped if data.clip else None,
    )


def are_numbers(domain: Domain) -> bool:
    """True of a range, and not of categories."""
    return not isinstance(domain[0], str)


def _further(column: pl.Series, domain: Domain, data: DataSection) -> tuple[NDArray[Any], int]:
    """Another private column, encoded, and how many numbers were moved to an end of their range."""
    if are_numbers(domain):
        low, high = domain
        return bounded(column, float(low), float(high), clip=data.clip)
    return _codes(column, data.model_copy(update={"categories": list(domain)}))[0], 0


def _tells_numbers(column: pl.Series, data: DataSection) -> bool:
    """True if a value is a number, so that the others have to be."""
    return column.dtype != pl.String or read_numbers(column, data).is_not_null().any()


def canonical(frame: pl.DataFrame) -> bytes:
    """Content of a table whatever the order of its rows and columns, and whether numbers came as text."""
    columns = [as_text(frame[name]).alias(name) for name in sorted(frame.columns)]
    return pl.DataFrame(columns).sort(pl.all()).write_csv().encode()


def as_text(column: pl.Series) -> pl.Series:
    """One text for one content: a number is the same whether a file holds it as text or as a number."""
    text = column.cast(pl.String)
    numbers = one_spelling(text)
    return numbers if numbers.null_count() == text.null_count() else text


def table_of(data: DataSection, table: Any = None) -> pl.DataFrame:
    """The table that a section names, or the data frame that is given instead."""
    if table is None and data.table is not None:
        raise DataError(f"[data] `table` {data.table!r} is of Spark's catalogue: use --engine spark.")
    return read_table(data.path, written=data) if table is None else as_frame(table)


def read_table(path: str | None, *, header: bool = True, written: FileFormat | None = None) -> pl.DataFrame:
    """Read CSV (every column as text; without `header` they are column_1, column_2, ..) or Parquet.

    `written` says how a CSV file is written: by default as programs write it, UTF-8 with commas.
    """
    kind, place = _kind_of(path)
    said = written or FileFormat()
    try:
        # text first: numbers are parsed where they are declared, so that 01 stays 01
        if kind == "csv":
            return read_csv(place, said, header=header)
        _refuse_text_settings(place, said)
        return pl.read_parquet(place)
    except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException) as error:
        raise DataError(f"{place}: is not readable as {kind}: {_first_line(error)}") from None


def is_text_file(path: str) -> bool:
    """True if a path leads to a table of text."""
    return _kind_of(path)[0] == "csv"


def _kind_of(path: str | None) -> tuple[str, Path]:
    if path is None:
        raise DataError("`path` is missing in [data], and no table was given.")
    place = Path(path)
    try:
        if place.is_dir():
            raise DataError(
                f"{place}: is a directory; name a CSV or Parquet file, or draw from its files with --engine."
            )
        if not place.exists():
            raise DataError(f"{place}: no such file.")
    except OSError as error:
        raise DataError(f"{str(place)[:80]}: cannot be read ({error.strerror}).") from None
    kind = _READERS.get(place.suffix.lower())
    if kind is None:
        sheet = place.suffix.lower() in (".xlsx", ".xls", ".ods", ".numbers")
        hint = "; save the sheet as CSV" if sheet else ""
        raise DataError(f"{place}: must be a .csv or .parquet file, got {place.suffix or 'no suffix'!r}{hint}.")
    if place.stat().st_size == 0:
        raise DataError(f"{place}: the file is empty.")
    return kind, place


def _refuse_text_settings(place: Path, written: FileFormat) -> None:
    """A key that would be ignored."""
    for name, field in FileFormat.model_fields.items():
        if getattr(written, name) != field.default:
            raise DataError(f"{place}: `{name}` in [data] is for text files; Parquet says itself how it is written.")


def as_frame(table: Any) -> pl.DataFrame:
    """Any table that speaks Arrow."""
    if isinstance(table, pl.LazyFrame):
        return table.collect()
    try:
        return table if isinstance(table, pl.DataFrame) else pl.DataFrame(table)
    except ImportError:
        raise MissingExtraError(
            "A pandas table with text columns is read through Arrow: pip install pyarrow"
        ) from None
    except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
        raise DataError(f"`table` must be a data frame that speaks Arrow: {_first_line(error)}") from None


def columns_of(
    frame: pl.DataFrame, data: DataSection, *, numbers: Sequence[str] = (), further: Further | None = None,
    arrays: bool = False,
) -> tuple[pl.DataFrame, pl.Series]:  # fmt: skip
    """The declared columns and no others, their values as [data] says they are spelled; `numbers` must be some.

    Besides, which rows of the table have an answer; `missing` = "drop" leaves the others out. With `arrays` the
    private column holds those, and stays as it is.
    """
    further = further or {}
    wanted = [data.private, *further, *data.public, *(name for name in (data.person, data.time) if name)]
    for name in wanted:
        if name not in frame.columns:
            raise DataError(f"the table has no column {name!r}{nearest(name, frame.columns)}.")
    if arrays:
        held, others = frame[data.private], list[pl.Series]()
        if len(wanted) > 1:
            beside = data.model_copy(update={"private": wanted[1], "person": None, "public": wanted[2:]})
            others = list(columns_of(frame, beside, numbers=numbers)[0])
        return pl.DataFrame([held, *others]), pl.Series([True]).new_from_index(0, len(held))
    for name in wanted:
        kind = frame.schema[name]
        if not is_plain(kind):
            raise DataError(f"column {name!r} has type {kind}; use text, numbers, dates or booleans.")
    # dictionaries of categories keep the order in which a file listed them: plain text does not
    plain = frame.select(wanted).with_columns(pl.selectors.by_dtype(pl.Categorical, pl.Enum).cast(pl.String))
    measured = [name for name, domain in further.items() if are_numbers(domain)]
    counted = [*numbers, *measured, *([data.private] if data.numeric else []), *([data.time] if data.time else [])]
    return spelled(plain, data, numbers=counted, answers=(data.private, *further))


def is_plain(kind: pl.DataType) -> bool:
    """True if a column holds one text, number, date or boolean in each row."""
    plain = (pl.String, pl.Boolean, pl.Date, pl.Datetime, pl.Time, pl.Categorical, pl.Enum, pl.Null)
    return kind.is_numeric() or kind in plain or isinstance(kind, plain)


def read_pairs(path: str) -> pl.DataFrame:
    """The first two columns of a table of public relationships, as text."""
    table = read_table(path)
    if table.width < 2 or table.height == 0:
        raise DataError(f"{path}: must have two columns, and a row for each relationship; got {table.shape}.")
    pairs = table.select(pl.nth(0, 1).cast(pl.String))
    for column in pairs:
        refuse_missing(column, f"{path}: column {column.name!r}")
    return pairs


def refuse_duplicates(people: pl.Series) -> None:
    """DataError for people without a name, and for those who stand in two rows."""
    refuse_missing(people, f"person column {people.name!r}")
    names = names_of(people)
    repeated = names.is_duplicated()
    if repeated.any():
        rows = repeated.arg_true()
        raise DataError(
            f"person column {people.name!r}: {in_several_rows(names.filter(repeated).n_unique())} "
            f"({at_rows(rows)}); one report per person, so keep one row each, or set `duplicates` "
            'in [data] to "first" or "last".'
        )


def in_several_rows(people: int) -> str:
    """Say that so many people are in several rows."""
    return f"{counted(people, 'person stands', 'people stand')} in more than one row"


def missing_values(count: int, of: int | None = None) -> str:
    """Say how many values are missing, in the words of every check and refusal."""
    if of is None:
        return counted(count, "value is missing", "values are missing")
    return f"{count:,} of {counted(of, 'value')} {'is' if count == 1 else 'are'} missing"


def refuse_missing(column: pl.Series, what: str) -> None:
    """DataError with a count and the first places when a value is missing."""
    empty = absent(column)
    if empty.any():
        rows = empty.arg_true()
        raise DataError(f"{what}: {missing_values(len(rows))} ({at_rows(rows)}).")


def _codes(column: pl.Series, data: DataSection) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    text = column.cast(pl.String)
    if data.missing in RULES:
        refuse_missing(column, f"private column {column.name!r}")
    else:
        text = pl.select(pl.when(absent(column)).then(pl.lit(data.missing)).otherwise(text)).to_series()
    categories = data.categories if data.categories is not None else text.unique().sort().to_list()
    codes = text.replace_strict(categories, range(len(categories)), default=None, return_dtype=pl.Int64)
    unknown = codes.is_null()
    if unknown.any():
        rows = unknown.arg_true()
        shown = ", ".join(repr(value) for value in text.filter(unknown).unique(maintain_order=True)[:3])
        raise DataError(
            f"private column {column.name!r}: {counted(len(rows), 'value is', 'values are')} not among the declared "
            f"categories ({at_rows(rows)}: {shown}); declare them or correct the table."
        )
    if len(categories) < 2:
        raise DataError(
            f"private column {column.name!r}: has one category, {categories[0]!r}; "
            "a constant needs no collection (declare `categories` if others are possible)."
        )
    return codes.to_numpy().astype(np.int64), tuple(categories)


def bounded(
    column: pl.Series, lower: float, upper: float, *, clip: bool = False, gaps: bool = False
) -> tuple[NDArray[np.float64], int]:
    """Private numbers inside the declared range, and how many `clip` has moved to one of its ends.

    With `gaps` a missing number is NaN.
    """
    empty = absent(column)
    if gaps and empty.any():
        given = pl.select(pl.when(empty).then(pl.lit(lower).cast(column.dtype)).otherwise(column)).to_series()
        values, moved = bounded(given.alias(column.name), lower, upper, clip=clip)
        return np.where(empty.to_numpy(), np.nan, values), moved
    refuse_missing(column, f"private column {column.name!r}")
    values = numeric(column)
    outside = np.flatnonzero((values < lower) | (values > upper))
    if outside.size and not clip:
        raise DataError(
            f"private column {column.name!r}: {counted(outside.size, 'value lies', 'values lie')} outside the "
            "declared "
            f"[{lower:g}, {upper:g}] ({at_rows(pl.Series(outside))}); "
            "widen the bounds, correct the table, or set clip = true in [data]: nothing is clipped silently."
        )
    return np.clip(values, lower, upper), int(outside.size)


def numeric(column: pl.Series) -> NDArray[np.float64]:
    """A column as finite numbers; DataError with a count and the first places otherwise."""
    text = column.str.strip_chars() if column.dtype == pl.String else column
    numbers = text.cast(pl.Float64, strict=False)
    bad = numbers.is_null() | ~numbers.is_finite()
    if bad.any():
        rows = bad.arg_true()
        hint = "; correct the table, or let `dovetail check` say what they may stand for"
        if column.dtype == pl.String and column.filter(bad).str.contains(r"\d[.,\x{27}\s]\d|\d\s*[%\p{Sc}]").any():
            hint = "; `decimal`, `thousands` and `units` in [data], or --decimal, say how numbers are spelled"
        raise DataError(
            f"column {column.name!r}: {counted(len(rows), 'value is no number', 'values are no numbers')} "
            f"({at_rows(rows)}){hint}."
        )
    return numbers.to_numpy().astype(np.float64)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".") + "."


# Reading tables where no [data] says how they are written, but options of a verb do.


Read: TypeAlias = "Callable[[str], pl.DataFrame]"

_AS_PROGRAMS_WRITE = FileFormat()


@dataclass(frozen=True)
class TableReader:
    """Reader of tables whose text files have one format; Parquet files say theirs themselves.

    With a decimal comma, columns whose values all are numbers so spelled are read as numbers.
    """

    written: FileFormat = _AS_PROGRAMS_WRITE
    decimal: Literal[".", ","] = "."

    def __call__(self, path: str, *, header: bool = True) -> pl.DataFrame:
        """Read one table, as `read_table` does."""
        if not is_text_file(path):
            return read_table(path)
        try:
            frame = read_table(path, header=header, written=self.written)
        except WrittenOtherwise as error:
            raise DataError(error.options) from None
        if self.decimal == ".":
            return frame
        how = Spellings(decimal=self.decimal)
        return frame.with_columns([_with_points(column, how) for column in frame])

    def check(self, paths: Sequence[str]) -> None:
        """ParameterError where nothing is left that the options are for."""
        if self != READ_TABLE and not any(map(is_text_file, paths)):
            raise ParameterError(
                f"{paths[0]}: --separator, --text-encoding and --decimal are for text files; Parquet says itself how "
                "it is written."
            )


READ_TABLE = TableReader()  # UTF-8, commas, points


def _with_points(column: pl.Series, how: Spellings) -> pl.Series:
    """Numbers with a decimal comma as programs spell them; other columns as they are."""
    spelled = read_numbers(column, how).is_not_null() | column.is_null() | (column.str.strip_chars() == "")
    return column.str.replace(",", ".") if bool(spelled.all()) else column
